# What one does with a checkout. Each target brings .venv to its lock file first, and finds it so the next time.
# ARGS is handed on:  make serve ARGS="--port 8081"   make test ARGS="tests/game -x"   PYTHON picks the interpreter.

PYTHON ?= python3
export PYTHON

# Three processes, whatever there are of cores, for a test waits as much as it computes: for a start, a lock, a time-out.
# A file's tests stay together and share its services; files go in order, or the long ones of few tests would come last.
TESTS_BESIDE_EACH_OTHER := --numprocesses 3 --dist loadfile --no-loadscope-reorder

.PHONY: help serve test check bench manifest pictures

help: ## List these targets
	@sed -n 's/^\([a-z]*\): ## /  make \1\t/p' Makefile

serve: ## Play: a database, a demonstration operator and the HTTP server
	@requirements/setup.sh serve
	@exec .venv/bin/casino-brag serve $(ARGS)

test: ## Run the whole test suite
	@requirements/setup.sh test
	@exec .venv/bin/pytest $(TESTS_BESIDE_EACH_OTHER) $(ARGS)

check: ## Format, lint, type and layering checks
	@requirements/setup.sh dev
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/hadolint Dockerfile

manifest: ## After a change that was meant: make the manifests of the program's files anew
	@verification/digests.sh --write

bench: ## Measure, in ratios taken within one run
	@requirements/setup.sh dev
	@exec .venv/bin/python benchmarks/run.py $(ARGS)

pictures: ## Make the console's pictures anew, of a demonstration
	@requirements/setup.sh test
	@.venv/bin/python -m tests.browser.pictures
