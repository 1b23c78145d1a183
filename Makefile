# Two commands matter: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/*.hpp) $(wildcard cpp/*.cpp)

.PHONY: demo test lint bench test-long test-sanitize test-oldest clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Editable, so that Python edits need no reinstall; a change of the compiled core does.
$(VENV)/.installed: $(BIN)/python $(NATIVE)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

test: lint
	$(BIN)/python -m pytest -m "not long"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The kernels alone, without Python: out-of-bounds and undefined behaviour in one build, data races in the other.
test-sanitize:
	mkdir -p build/sanitize
	for kind in address,undefined thread; do \
		$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Icpp -pthread -fsanitize=$$kind -fno-sanitize-recover=all \
			cpp/tests/kernels_test.cpp -o build/sanitize/kernels_test && build/sanitize/kernels_test || exit 1; \
	done

clean:
	rm -rf build $(VENV)
