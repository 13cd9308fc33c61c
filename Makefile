.DEFAULT_GOAL := help
BIN := .venv/bin

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-8s %s\n", $$1, $$2}'

check:  ## Before a commit: all checks and the quick tests (under 3 minutes)
	@scripts/test quick

lint: .venv  ## Format check and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv  ## Strict types
	$(BIN)/mypy

layers: .venv  ## Import contracts
	$(BIN)/lint-imports

test:  ## Everything: all checks and all tests, what CI runs
	@scripts/test

cover:  ## The quick tests, with the lines they do not reach
	@scripts/test --cov -m "not ray and not slow and not postgres"

fix: .venv  ## Apply all safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv  ## Measure speed and size; prints JSON
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/bench

pins: .venv  ## Write constraints.txt anew from what the registry has now
	scripts/lib/pin.sh

.venv:
	bash -euo pipefail -c 'extras=dev,postgres . scripts/lib/venv.sh'

.PHONY: help check lint types layers test cover fix bench pins
