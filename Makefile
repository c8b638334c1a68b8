# `make` alone lists the targets. Each sets up what it needs, once: the stamps below are renewed when the
# pins change. The main job never installs torch; the tests do, pinned and before anything that asks for it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help reproduce demo test lint format bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "payback needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11"; exit 2; }
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run-ready: $(VENV)/.created $(PINS)
	@echo "installing what the experiments need (about a minute, once) …"
	@$(PIP) --editable '.[paper]'
	@touch $@

$(VENV)/.dev-ready: $(VENV)/.run-ready
	@echo "installing what the tests need (a few minutes, once) …"
	@$(PIP) torch==2.13.0
	@$(PIP) --editable '.[dev]'
	@touch $@

reproduce: $(VENV)/.run-ready  ## the main job: shape a random walker's rewards under all eight schemes
	@$(BIN)/python examples/random_walker.py

test: $(VENV)/.dev-ready  ## all tests, with the doctests and the README's code
	@$(BIN)/python -m pytest

lint: $(VENV)/.dev-ready  ## ruff and pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

format: $(VENV)/.dev-ready  ## rewrite the code in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev-ready  ## the core beside its peers, as ratios measured in one run
	@$(BIN)/python benchmarks/core.py

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build
