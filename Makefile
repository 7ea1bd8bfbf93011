# Two commands from a fresh clone: `make demo` and `make test`. Both do their own set-up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export RAG_AUDIT_DATA ?= ../shared/data

.PHONY: help setup native circuits demo test test-full bench bench-full lint format lock clean

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

NATIVE_SOURCES := $(shell find native -name '*.rs' -o -name 'Cargo.*' | grep -v /target/)

$(VENV)/.native: $(VENV)/.stamp pyproject.toml $(NATIVE_SOURCES)
	@command -v cargo >/dev/null || \
	  { echo "rag-audit: needs a Rust toolchain; install it: curl https://sh.rustup.rs -sSf | sh" >&2; exit 2; }
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) flock $(VENV)/.native.lock $(BIN)/maturin develop --release --locked --quiet >/dev/null
	@touch $@

native: $(VENV)/.native  ## build the Rust core into the virtual environment

setup: $(VENV)/.native  ## everything that the other targets need, but circuits and keys
