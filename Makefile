# `make` alone lists the targets. Each sets up what it needs, once: the stamps below are renewed when the
# pins change. The main job never installs torch; the tests do, pinned and before anything that asks for it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PINS := pyproject.toml lab/pyproject.toml constraints.txt

# Says nothing unless it fails: pip is noisy where an index has no page for a name.
quietly = @out=$$($(1) 2>&1) || { echo "$$out"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help reproduce reproduce-all demo test test-fast test-hosts lint format bench readme clean

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
	$(call quietly,$(PIP) --editable . --editable lab)
	@touch $@

$(VENV)/.dev-ready: $(VENV)/.run-ready
	@echo "installing what the tests need (a few minutes, once) …"
	$(call quietly,$(PIP) torch==2.13.0)
	$(call quietly,$(PIP) --editable '.[dev]' --editable 'lab[ray]')
	@touch $@

reproduce: $(VENV)/.run-ready  ## the main job: the cliffs in full, a short DoorKey 8×8 and 11×11, the report (about a quarter of an hour)
	@$(BIN)/payback-lab list
	@$(BIN)/payback-lab run cliff
	@$(BIN)/payback-lab run cliff --ablation cumulative-mean
	@$(BIN)/payback-lab run cliff --ablation wide-rnd
	@$(BIN)/payback-lab run long-cliff
	@$(BIN)/payback-lab run doorkey --schemes none im grm-10 --settings a0.02-g0.995 --seeds 1 --steps 1499136
	@$(BIN)/payback-lab run reach --schemes none im grm-30 --settings s11-a0.02-g0.995-l0.95 --seeds 1 --steps 1499136
	@$(BIN)/payback-lab report

# In a folder of its own, since a short and a full DoorKey cannot share one. Breadth-first: whenever it is stopped, what
# is there is balanced, and the same command goes on.
ALL := full
OTHERS := grm-3 grm-30 grm-100 even-10 geometric-0.9 when
reproduce-all: $(VENV)/.run-ready  ## everything in full, with all seeds and ablations (many hours; stop and go on as you like)
	@mkdir -p $(ALL)
	@$(BIN)/payback-lab list --out $(ALL)
	@$(BIN)/payback-lab run cliff --out $(ALL)
	@$(BIN)/payback-lab run cliff --ablation cumulative-mean --out $(ALL)
	@$(BIN)/payback-lab run cliff --ablation wide-rnd --out $(ALL)
	@$(BIN)/payback-lab run long-cliff --out $(ALL)
	@for n in 1 2 3; do $(BIN)/payback-lab run doorkey --again --seeds $$n --out $(ALL) && $(BIN)/payback-lab report --out $(ALL) || exit; done
	@for n in 1 2 3; do \
	  for a in plain-settlement learner-discount-0.99 entropy-0.001; do \
	    $(BIN)/payback-lab run doorkey --again --ablation $$a --seeds $$n --out $(ALL) || exit; done; \
	  $(BIN)/payback-lab run doorkey --again --schemes $(OTHERS) --settings a0.02-g0.995 --seeds $$n --out $(ALL) \
	  && $(BIN)/payback-lab report --out $(ALL) || exit; done
	@for n in 1 2 3; do \
	  $(BIN)/payback-lab run reach --again --seeds $$n --out $(ALL) && $(BIN)/payback-lab run delay --again --seeds $$n --out $(ALL) \
	  && $(BIN)/payback-lab run center --seeds $$n --out $(ALL) \
	  && $(BIN)/payback-lab run center --ablation recent-mean --seeds $$n --out $(ALL) || exit; done
	@$(BIN)/payback-lab run reach --again --out $(ALL)
	@$(BIN)/payback-lab run center-cliff --out $(ALL)
	@$(BIN)/payback-lab run center-cliff --ablation cumulative-mean --out $(ALL)
	@$(BIN)/payback-lab report --out $(ALL)

demo: $(VENV)/.run-ready  ## three agents learn DoorKey 11×11 before your eyes: no bonus, a raw one, GRM (about two minutes)
	@$(BIN)/python lab/examples/doorkey_agent.py --out demo

# RLlib and rllte pin packages that the rest does not: each is tested in an environment of its own.
HOST_TOOLS := numpy array-api-compat pytest pytest-timeout
HOST_PIP := bin/python -m pip install --quiet --disable-pip-version-check

.envs/rllib/.ready: $(PINS)
	@echo "installing RLlib in an environment of its own (about two minutes, once) …"
	@$(PYTHON) -m venv .envs/rllib
	$(call quietly,.envs/rllib/$(HOST_PIP) torch==2.13.0)
	$(call quietly,.envs/rllib/$(HOST_PIP) 'ray[rllib]==2.60.0' gymnasium==1.2.2 $(HOST_TOOLS))
	$(call quietly,.envs/rllib/$(HOST_PIP) --no-deps --editable .)
	@touch $@

.envs/rllte/.ready: $(PINS)
	@echo "installing rllte in an environment of its own (about a minute, once) …"
	@$(PYTHON) -m venv .envs/rllte
	$(call quietly,.envs/rllte/$(HOST_PIP) torch==2.13.0)
	$(call quietly,.envs/rllte/$(HOST_PIP) gymnasium==1.4.0 termcolor==3.3.0 pynvml==11.5.0 $(HOST_TOOLS))
	$(call quietly,.envs/rllte/$(HOST_PIP) --no-deps rllte-core==1.0.1)
	$(call quietly,.envs/rllte/$(HOST_PIP) --no-deps --editable .)
	@touch $@

test: $(VENV)/.dev-ready test-hosts  ## all tests, with the doctests and the README's code
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

FAST := tests/core tests/check tests/auditing tests/bonuses tests/docs tests/test_*.py
test-fast: $(VENV)/.dev-ready  ## the library's tests on NumPy alone (under two minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses 2 --dist loadfile \
	  -k "not torch and not jax" $(FAST)

HOST_TESTS := tests/integrations
test-hosts: .envs/rllib/.ready .envs/rllte/.ready  ## the adapters of RLlib and rllte, in their own environments
	@OMP_NUM_THREADS=1 .envs/rllib/bin/python -m pytest --quiet $(HOST_TESTS)/test_rllib.py $(HOST_TESTS)/test_gymnasium.py $(HOST_TESTS)/test_truncation.py
	@OMP_NUM_THREADS=1 .envs/rllte/bin/python -m pytest --quiet $(HOST_TESTS)/test_rllte.py

lint: $(VENV)/.dev-ready  ## ruff and pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --warnings
	@$(BIN)/pyright --warnings --project lab

format: $(VENV)/.dev-ready  ## rewrite the code in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev-ready  ## the core beside its peers, as ratios measured in one run
	@$(BIN)/python benchmarks/core.py

readme: $(VENV)/.run-ready  ## the tables and figures of README and docs, made again from lab/results
	@$(BIN)/payback-lab docs

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .envs .pytest_cache .ruff_cache .hypothesis dist build
