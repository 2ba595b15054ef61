# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
LOWEST_VENV := .venv-lowest
BIN := $(VENV)/bin
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -not -path '*/target/*') $(wildcard crates/*/Cargo.toml)
DEMO := build/demo_job
REAL_JOB := tests/reference/traces/dlrm_8rank
# Neighbouring tests share fixtures, so each worker gets a contiguous range of tests; idle workers take tests from other workers.
WORKERS := -n auto --dist worksteal
# One worker more than there are cores, because tests with browsers or other processes mostly wait.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)' 2>/dev/null)
# Hundreds of tests start Python; without compiled modules, each start takes 0.2 CPU seconds more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-python test-everything test-rust test-pages test-lowest test-clusters test-stores test-servers store-trials check lint types layers generate generated javascript rust docs links bench pictures fuzz fuzz-files golden clean needs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/.built ## analyse a sample job and a real one, 8 ranks each; write report.html and real_report.html
	@$(BIN)/python -m holotrace.testing.synthetic $(DEMO) --ranks 8
	@$(BIN)/holotrace summary $(DEMO)
	@$(BIN)/holotrace report $(DEMO) -o report.html --force
	@echo && echo "A real job, DLRM on 8 GPUs:"
	@$(BIN)/holotrace report $(REAL_JOB) -o real_report.html --force

test: test-rust test-python ## test every module and analysis, in a few minutes

test-all: test-rust test-everything test-clusters test-stores ## run all tests, also slow ones and those that need clusters and object stores

test-python: $(VENV)/.built $(VENV)/.test-tools
	$(BIN)/python -m pytest -q $(WORKERS) -m "not clusters and not stores and not slow"

test-everything: $(VENV)/.built $(VENV)/.test-tools
	$(BIN)/python -m pytest -q $(WORKERS) -m "not clusters and not stores" --hypothesis-profile thorough

test-lowest: $(LOWEST_VENV)/.built ## test with the lowest versions of dependencies that pyproject.toml allows
	$(LOWEST_VENV)/bin/python -m pytest -q $(WORKERS) $(LOWEST_WARNINGS) $(LOWEST_TESTS)

test-pages: $(VENV)/.built $(VENV)/.test-tools ## run only the tests of the pages in a real browser; needs chromium
	HOLOTRACE_SCREENSHOTS=build/screenshots $(BIN)/python -m pytest -q $(WORKERS) -m browser

test-clusters: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.cluster-tools ## compare clusters of Dask, Ray and MPI with one process
	$(BIN)/python -m pytest -q -m clusters tests/clusters

test-stores: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.store-tools ## read from servers of S3, Google Cloud Storage, Azure and HDFS
	-@scripts/install_test_servers.sh $(BIN)/python
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m stores tests/remote

test-servers: $(VENV)/bin/python ## install the object store servers for tests into build/test-servers; needs Maven and a network
	@scripts/install_test_servers.sh $(BIN)/python

store-trials: $(VENV)/.built ## stress caches and stores with many writers, kills and damage, for a quarter of an hour
	$(BIN)/python scripts/store_trials.py race
	$(BIN)/python scripts/store_trials.py race --same
	$(BIN)/python scripts/store_trials.py race --address 'local://{folder}/job.store'
	$(BIN)/python scripts/store_trials.py kills
	$(BIN)/python scripts/store_trials.py damage

# Without optimisation, these tests still run in seconds, build in a fifth of the CPU time, and fail on integer overflow.
test-rust: export CARGO_PROFILE_DEV_DEBUG := false
test-rust: needs
	cargo test --quiet -p algorithms -p checksums -p trace-reader

check: lint types layers generated javascript rust docs ## check format, lint, types, layers, docs; CI runs this too

lint: $(VENV)/.check-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.check-tools
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest holotrace._native --mypy-config-file pyproject.toml

layers: $(VENV)/.built $(VENV)/.check-tools
	$(BIN)/lint-imports

generated: $(VENV)/.built # `make generate` has been run
	$(BIN)/python scripts/generate --check

javascript: node_modules/.installed ## lint, type-check and test the scripts of the pages; needs Node.js with npm
	npm run --silent lint
	npm run --silent types
	npm run --silent test

rust: needs
	cargo fmt --check
	cargo clippy --release --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --document-private-items --quiet

docs: $(VENV)/.built $(VENV)/.docs-tools ## build the documentation into site/; a warning or a dead link inside is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env -d build/docs -b html docs site

links: $(VENV)/.built $(VENV)/.docs-tools ## check the links of the documentation to other sites; needs a network
	$(BIN)/python -m sphinx --quiet -d build/docs -b linkcheck docs build/links

bench: $(VENV)/.built ## measure speed and memory; TRACE=trace file, PEER=python of an environment with HTA
	$(BIN)/python benchmarks/open_and_answer.py $(if $(TRACE),--trace $(TRACE)) $(if $(PEER),--peer $(PEER))
	$(BIN)/python benchmarks/analyses.py $(if $(TRACE),--trace $(TRACE)) $(if $(PEER),--peer $(PEER))

generate: $(VENV)/.built ## write the pages, stubs and colours that follow from the code
	$(BIN)/python scripts/generate

pictures: $(VENV)/.built $(VENV)/.test-tools ## draw the pictures of the documentation from real traces; needs chromium
	$(BIN)/python scripts/pictures

fuzz: needs ## fuzz the reader for a minute; needs cargo-fuzz and a nightly toolchain
	mkdir -p crates/fuzz/corpus/reader
	cd crates/trace-reader && cargo +nightly fuzz run --fuzz-dir ../fuzz reader ../fuzz/corpus/reader ../fuzz/seeds -- -max_total_time=$(or $(SECONDS),60)

fuzz-files: $(VENV)/.built $(VENV)/.test-tools ## damage real traces in 10,000 ways and read each of them
	$(BIN)/python scripts/fuzz_files.py --count $(or $(COUNT),10000)

golden: $(VENV)/.built $(VENV)/.test-tools ## rewrite the golden tables from the current results
	$(BIN)/python -m pytest -q tests --rewrite-golden

clean: ## remove everything that make created
	rm -rf $(VENV) $(LOWEST_VENV) node_modules build dist target site report.html real_report.html src/holotrace/_native*.so

needs:
	@command -v $(PYTHON) >/dev/null || { echo "make: Python is missing; install Python 3.10 or newer"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "make: $$($(PYTHON) --version) is too old; set PYTHON= to a Python 3.10 or newer"; exit 1; }
	@command -v cargo >/dev/null || { echo "make: Rust is missing; install a stable toolchain from https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "make: a linker is missing; install a C compiler such as gcc or clang, which Rust links with"; exit 1; }

$(VENV)/bin/python: | needs
	@$(PYTHON) -m venv $(VENV) || { echo "make: $(PYTHON) has no venv module; install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check -U 'pip>=25.1' 'maturin>=1.9,<2'

$(VENV)/.built: pyproject.toml packages/holotrace-hta/pyproject.toml $(RUST_SOURCES) | $(VENV)/bin/python
	@echo "building holotrace (a minute or two the first time)"
	@PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --release --quiet >$(VENV)/build.log 2>&1 \
		|| { cat $(VENV)/build.log; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e packages/holotrace-hta
	@touch $@

# Uses the lowest Python on this machine, or LOWEST_PYTHON. Old direct dependencies run with new indirect ones, so deprecation warnings are not errors.
LOWEST_TESTS := tests/analyses tests/enrich tests/cli/test_commands.py tests/cli/test_pipes.py tests/cli/test_output.py tests/sql_queries tests/export tests/html_report tests/drawing tests/store/tables/test_arrow_tables.py tests/test_init.py tests/test_content_equality.py tests/testing/mistakes
LOWEST_TESTS += packages/holotrace-hta/tests -m "not slow" --hypothesis-profile few
# Leaves out tests that only run our rules on more data: random and simulated jobs, and other tools' results. Other tests already use each call of a dependency.
LOWEST_TESTS += $(foreach file,planted_jobs simulated_mistakes torch_tb_profiler_* hta_*goldens,--ignore-glob='*/test_$(file).py')
LOWEST_WARNINGS := -W default::DeprecationWarning -W default::PendingDeprecationWarning -W default::FutureWarning
$(LOWEST_VENV)/.built: pyproject.toml $(RUST_SOURCES) $(shell find src packages -name '*.py') | $(VENV)/.built
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'uv>=0.8'
	@lowest=$(LOWEST_PYTHON); for candidate in python3.10 python3.11 python3.12 python3.13 $(PYTHON); do \
		[ -n "$$lowest" ] || ! $$candidate -c 'import sys' 2>/dev/null || lowest=$$(command -v $$candidate); done; \
		$(BIN)/uv venv --quiet --clear --python "$$lowest" $(LOWEST_VENV)
	@rm -rf build/wheels
	@PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin build --release --quiet --out build/wheels
	@$(BIN)/uv build --quiet --wheel --out-dir build/wheels packages/holotrace-hta
	@$(BIN)/uv pip install --quiet --python $(LOWEST_VENV)/bin/python --resolution lowest-direct -r pyproject.toml --extra testing --extra sql --extra perfetto --extra web --extra remote --group runner
	@$(BIN)/uv pip install --quiet --python $(LOWEST_VENV)/bin/python --no-deps build/wheels/*.whl
	@touch $@

node_modules/.installed: package.json package-lock.json
	@command -v npm >/dev/null || { echo "make: npm is missing; install Node.js 18.18 or newer with npm"; exit 1; }
	@npm ci --silent --no-audit --no-fund
	@touch $@

$(VENV)/.test-tools: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group test
	@touch $@

$(VENV)/.cluster-tools: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group clusters
	@touch $@

$(VENV)/.store-tools: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group stores
	@touch $@

$(VENV)/.check-tools: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group check
	@touch $@

$(VENV)/.docs-tools: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check --group docs
	@touch $@
