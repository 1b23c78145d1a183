# Two commands matter: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FUZZ_CXX ?= clang++
OLDEST := .venv-oldest
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/*.hpp) $(wildcard cpp/*.cpp)
MODULES := $(shell find src -name '*.py' | sort)

.PHONY: demo test lint bench test-long test-sanitize test-oldest fuzz clean always

# --- environments: editable, so that Python edits need no reinstall; new modules and the compiled core do ---

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Rewritten only when a module comes or goes.
build/modules.txt: always
	@mkdir -p build; echo "$(MODULES)" | cmp -s - $@ || echo "$(MODULES)" > $@

$(VENV)/.runtime: $(BIN)/python $(NATIVE) build/modules.txt
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed: $(BIN)/python $(NATIVE) build/modules.txt
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/.runtime

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(OLDEST)/.installed: constraints-oldest.txt $(NATIVE) build/modules.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[test]" --constraint constraints-oldest.txt
	touch $@

# --- what they are for ---

demo: $(VENV)/.runtime
	$(BIN)/python examples/demo.py
	$(BIN)/python -m rankwise demo

test: lint
	$(BIN)/python -m pytest -m "not long"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-long: $(VENV)/.installed
	$(BIN)/python -m pytest

# The oldest supported numpy, SciPy and scikit-learn: the estimators' contract and everything that touches it.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -q -m "not long" tests/estimators tests/solvers tests/data tests/pairs

# The kernels alone, without Python: out-of-bounds and undefined behaviour in one build, data races in the other.
test-sanitize:
	mkdir -p build/sanitize
	for kind in address,undefined thread; do for source in cpp/tests/*_test.cpp; do \
		$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Icpp -pthread -fsanitize=$$kind -fno-sanitize-recover=all \
			$$source -o build/sanitize/kernel_test && build/sanitize/kernel_test || exit 1; \
	done; done

# Any bytes as text, and damaged stores and model files, guided by coverage (needs clang with its sanitizers). What the text fuzzer finds
# worth keeping is merged into the corpus that the tests read.
FUZZ_SECONDS ?= 300
CORPUS := tests/data/svmlight_corpus.txt
fuzz: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[fuzz]"
	mkdir -p build/fuzz/found build/fuzz/stores build/fuzz/models
	$(FUZZ_CXX) -std=c++17 -O1 -g -Icpp -pthread -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		fuzz/svmlight.cpp -o build/fuzz/svmlight
	$(BIN)/python fuzz/corpus.py unpack $(CORPUS) build/fuzz/found
	cd build/fuzz && ./svmlight -max_total_time=$(FUZZ_SECONDS) -max_len=400 -dict=../../fuzz/svmlight.dictionary found
	rm -rf build/fuzz/merged && mkdir build/fuzz/merged
	cd build/fuzz && ./svmlight -merge=1 merged found
	$(BIN)/python fuzz/corpus.py pack build/fuzz/merged $(CORPUS)
	cd build/fuzz && ../../$(BIN)/python ../../fuzz/store.py stores -max_total_time=$(FUZZ_SECONDS)
	cd build/fuzz && ../../$(BIN)/python ../../fuzz/model_files.py models ../../tests/persistence/corpus \
		-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048

bench: $(VENV)/.bench
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf build $(VENV) $(OLDEST)
