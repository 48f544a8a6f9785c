# One line each; the work is in tools/, in the `rejoin` command and in pytest.
# compiled test files are kept: pytest would rewrite their asserts in every process
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-long e2e compose-test lint format classes kernel bench faults differential simulation golden lock clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## Python packages, jars and the kernel; quick when nothing changed
	@$(PYTHON) tools/setup_env.py

demo: setup ## broker, events, job and joined rows, live; Ctrl-C ends it
	@$(BIN)/rejoin demo

test: setup lint classes ## lint and every test but the long ones
	@$(BIN)/pytest -m "not service and not long" -n 2
	@$(BIN)/pytest -m "service and not long" -n 2 --dist loadfile --no-loadscope-reorder

test-fast: setup ## the tests that start neither Spark nor a broker
	@$(BIN)/pytest -m "not service and not long" -n 2

test-long: setup classes ## containers, real Debezium and PostgreSQL, all conformance cases, faults, a longer oracle
	@$(BIN)/pytest -m long -n 2 --dist loadfile --no-loadscope-reorder

e2e: setup ## PostgreSQL, Debezium, registry, job: the answers compared; ARGS="--seconds 20"
	@$(BIN)/python -m tests.e2e $(ARGS)

compose-test: setup ## the Dockerfile built and docker-compose.yml run with podman, as root
	@$(BIN)/pytest tests/compose -s

lint: setup ## ruff, mypy --strict, import-linter, Scala warnings
	@$(BIN)/python tools/lint.py

format: setup ## rewrite the Python files as ruff formats them
	@$(BIN)/ruff check --quiet --fix-only && $(BIN)/ruff format

classes: setup ## keep Spark's loaded classes anew: its JVM then starts in half the time
	@$(BIN)/python -m bench.class_archive

kernel: setup ## compile the Scala kernel if a source changed
	@$(BIN)/python -m spark_jobs.kernel.build

bench: setup ## rows per second, Kafka to Kafka; ARGS="temporal-left --rows 4000000"
	@$(BIN)/rejoin bench $(or $(ARGS),regular-upsert)

faults: setup ## every kind of fault against a 200k-row run; ARGS="--kinds zombie --rounds 1"
	@$(BIN)/python -m tests.faults $(ARGS)

differential: setup ## random queries beside DuckDB; ARGS="--cases 5000 --seed 2", --flink for Flink as well
	@$(BIN)/python -m tests.differential $(ARGS)

simulation: setup ## jobs under random faults, in memory, by seed; ARGS="--histories 100000 --seed 2"
	@$(BIN)/python -m tests.simulation $(ARGS)

golden: setup ## rewrite the expected plans; review the difference
	@$(BIN)/pytest -m "not service and not long" --update-golden -q

lock: setup ## resolve the Python dependencies anew
	@$(BIN)/python tools/lock.py

clean: ## remove what setup, tests and runs have made
	@rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info spark-warehouse metastore_db
