# `make` alone lists the targets.

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
PYTHON ?= python3
MINUTES ?= 10
SEED ?= 0
UV := $(shell command -v uv 2>/dev/null)

# Looked up each time it is needed, so that moving the checkout or Java breaks nothing.
WITH_JAVA = JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help setup bench bench-full bench-assertions bench-choosing bench-driver bench-embedded bench-growth bench-hand bench-nested bench-peers bench-policies bench-recursion bench-triggers conformance demo fuzz test test-all test-cluster tpc lint clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv with the locked dependencies, and find Java

bench: setup ## TPC-H at scale 1 on both engines: transactions against recomputation
	@$(WITH_JAVA) $(PY) -m bench --changes 0.001%,0.1% --fresh
	@$(WITH_JAVA) $(PY) -m bench --changes 10% --alone
	@$(WITH_JAVA) $(PY) -m bench --deletes recent --changes 0.001%,0.1% --alone
	@$(PY) -m bench --headline

bench-full: bench ## the same, and scale 10
	@$(WITH_JAVA) $(PY) -m bench --scale 10 --changes 0.001%,0.1% --fresh
	@$(WITH_JAVA) $(PY) -m bench --scale 10 --deletes recent --changes 0.001%,0.1% --alone
	@$(PY) -m bench --headline

bench-assertions: setup ## the check of an assertion over two tables of a million rows, on both engines
	@$(PY) -m bench.assertions --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.assertions --engine spark

bench-choosing: setup ## large changes as they are chosen to be followed, and in either way, on both engines
	@$(PY) -m bench.choosing --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.choosing --engine spark

bench-driver: setup ## DataFrames in, nothing held, the first transaction, a bounded driver; on Spark
	@$(WITH_JAVA) $(PY) -m bench.driver --measure frame,large,first,unheld,stream --scale 1
	@$(WITH_JAVA) $(PY) -m bench.driver --measure first --scale 3
	@$(WITH_JAVA) $(PY) -m bench.driver --measure memory --scale 3 --memory 1GB --heap 4g
	@$(WITH_JAVA) $(PY) -m bench.driver --measure unheld,policies --scale 10

bench-embedded: setup ## measure a transaction on DuckDB against one written by hand
	@$(PY) -m bench.embedded

bench-growth: setup ## the same change over data 1 to 16 times as large, on both engines
	@$(PY) -m bench.growth --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.growth --engine spark

bench-hand: setup ## three views against scripts written by hand for them, on both engines
	@$(PY) -m bench.hand --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.hand --engine spark

bench-nested: setup ## one movie under a nested view, one element into collections of any size, on both engines
	@$(PY) -m bench.nested --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.nested --engine spark

bench-policies: setup ## rows read and time per change under each policy, as groups grow; embedded
	@$(PY) -m bench.policies

bench-recursion: setup ## one edge of a graph against evaluating its closure from scratch, on both engines
	@$(PY) -m bench.recursion --engine duckdb
	@$(WITH_JAVA) $(PY) -m bench.recursion --engine spark

bench-triggers: setup ## trigger programs on TPC-H: batches, single rows, and growing data; in process
	@$(PY) -m bench.triggers

bench-peers: setup ## three views on Pathway, Flink SQL and Spark Structured Streaming beside ours
	@PYTHON="$(PYTHON)" bench/peers/setup.sh
	@$(WITH_JAVA) $(PY) -m bench.peers

conformance: setup ## cases that others wrote, on every engine; writes docs/conformance.md
	@$(WITH_JAVA) $(PY) -m conformance

demo: setup ## run the shop: tables, views, changes, audit
	@$(WITH_JAVA) $(PY) -m demo.shop

fuzz: setup ## random views on both engines against plain Spark; MINUTES=10 SEED=0
	@scripts/postgres.sh
	@$(WITH_JAVA) $(PY) -m everview fuzz --seconds $$(( 60 * $(MINUTES) )) --seed $(SEED)

test: setup ## all tests but the slow ones, those with Spark beside the others
	@scripts/test.sh $(PY) "not slow"

test-all: setup ## all tests, the laws with more examples, what is sampled in full
	@HYPOTHESIS_PROFILE=thorough scripts/test.sh $(PY)

test-cluster: setup ## a Spark cluster on loopback: every kind of work, with executors and drivers killed
	@$(WITH_JAVA) $(PY) -m pytest -q -m cluster tests/cluster

tpc: setup ## the queries of TPC-H and TPC-DS as views, on every engine
	@$(WITH_JAVA) $(PY) -m pytest -q tests/tpc

lint: setup ## style, format, types, import boundaries
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

clean: ## remove the environment, caches and what Spark leaves behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .conformance
	rm -rf bench/peers/.venv-*
	rm -rf spark-warehouse metastore_db derby.log
	find src tests demo -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml requirements.lock
	@scripts/venv.sh "$(PYTHON)" "$(VENV)" "$(UV)"
	@scripts/java.sh >/dev/null
	@touch $@
