# `make` shows what there is. `make demo` and `make test` set up all they need on a fresh machine.
SHELL := /bin/bash
BIN := .venv/bin
READY := .venv/.ready
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): setup.cfg constraints.txt pyproject.toml .ci/setup
	@.ci/setup
	@touch $@

.PHONY: setup
setup: $(READY) ## the environment in .venv, Java if it is missing

.PHONY: demo
demo: $(READY) ## a tour on a small Delta table
	@$(BIN)/mainstem demo

# Tests start many JVMs, each for minutes: to compile twice never pays, and the first compiler alone would have 48 MB for
# its code, which Spark fills. Their files are in memory where there is plenty: they are thousands, gone with the test.
TESTING := SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
MEMORY := $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 6000000 ] 2>/dev/null && echo /dev/shm)
TESTING += $(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY))

# Ivy's cache knows no locks: two sessions that begin at once on a new machine would write the same jars.
.venv/.jars: $(READY) spark-defaults.conf
	@echo "fetching the jars of Spark's session (once) …"
	@$(BIN)/python -c 'from mainstem import build_session; build_session("jars", master="local[1]").stop()' 2>.venv/jars.log \
	  || { cat .venv/jars.log >&2; exit 1; }
	@touch $@

.PHONY: test
test: .venv/.jars ## every test, on the three databases
	$(TESTING) $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

.PHONY: test-fast
test-fast: $(READY) ## the tests that need neither Spark nor a server, in seconds
	$(BIN)/python -m pytest tests/unit

.PHONY: test-all
test-all: .venv/.jars ## every test, the slow ones too
	$(TESTING) $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: s3
s3: $(READY) ## data on an S3 API, with Hadoop's S3A and a store that the tests start
	$(BIN)/python -m pytest tests/s3

.PHONY: lint
lint: $(READY) ## format, style, types, layers
	$(BIN)/ruff format --check lib jobs tests
	$(BIN)/ruff check lib jobs tests
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## put the code into the house format
	$(BIN)/ruff format lib jobs tests
	$(BIN)/ruff check --fix lib jobs tests

SCALE ?= full
.PHONY: bench
bench: $(READY) ## Mainstem beside Delta Spark and delta-rs; SCALE=small takes minutes, SCENARIOS="head reopen" some
	$(BIN)/mainstem bench --scale $(SCALE) $(SCENARIOS)

.venv/.notebooks: $(READY)
	@.ci/setup dev,notebooks
	@touch $@

.PHONY: notebooks
notebooks: .venv/.notebooks ## run every notebook from top to bottom, and keep what it shows
	$(BIN)/python -m pytest tests/notebooks

.venv-airflow/.ready: $(READY) constraints-airflow.txt .ci/airflow
	@.ci/airflow
	@touch $@

.PHONY: airflow
airflow: .venv-airflow/.ready ## parse the example DAGs and run them for real, in an Airflow of their own
	$(BIN)/python -m pytest tests/airflow

.PHONY: dist
dist: $(READY) ## the wheel, for --py-files
	@rm -rf dist build
	$(BIN)/python -m build --wheel --quiet

.PHONY: constraints
constraints: $(READY) ## write constraints.txt anew from .venv
	@{ head -n 1 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.new && mv constraints.new constraints.txt

.PHONY: clean
clean: ## remove what was built; .venv stays
	rm -rf dist build lib/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache spark-warehouse
