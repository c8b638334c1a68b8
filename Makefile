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
.PHONY: help reproduce reproduce-all demo test test-fast test-hosts test-floors test-hosts-all lint format bench docs tables \
	clean

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
OTHERS := grm-3 even-10 geometric-0.9 when
LONGER := grm-30 grm-100
RUN := $(BIN)/payback-lab run
reproduce-all: $(VENV)/.dev-ready  ## everything in full, with all seeds and ablations (days; stop and go on as you like)
	@mkdir -p $(ALL)
	@$(BIN)/payback-lab list --out $(ALL)
	@$(RUN) cliff --out $(ALL)
	@$(RUN) cliff --ablation cumulative-mean --out $(ALL)
	@$(RUN) cliff --ablation wide-rnd --out $(ALL)
	@$(RUN) long-cliff --out $(ALL)
	@$(RUN) center-cliff --out $(ALL)
	@$(RUN) center-cliff --ablation cumulative-mean --out $(ALL)
	@for n in 1 2 3 4 5; do $(RUN) doorkey --again --seeds $$n --out $(ALL) \
	  && $(RUN) doorkey --again --schemes $(LONGER) --settings a0.02-g0.995 --seeds $$n --out $(ALL) \
	  && $(BIN)/payback-lab report --out $(ALL) || exit; done
	@for n in 1 2 3; do \
	  for a in plain-settlement learner-discount-0.99 entropy-0.001; do \
	    $(RUN) doorkey --again --ablation $$a --seeds $$n --out $(ALL) || exit; done; \
	  $(RUN) doorkey --again --schemes $(OTHERS) --settings a0.02-g0.995 --seeds $$n --out $(ALL) \
	  && $(BIN)/payback-lab report --out $(ALL) || exit; done
	@for n in 1 2 3; do \
	  $(RUN) reach --again --seeds $$n --out $(ALL) && $(RUN) delay --again --seeds $$n --out $(ALL) \
	  && $(RUN) center --again --seeds $$n --out $(ALL) \
	  && $(RUN) center --again --ablation recent-mean --seeds $$n --out $(ALL) || exit; done
	@for e in reach delay curiosity arena; do $(RUN) $$e --again --out $(ALL) || exit; done
	@$(BIN)/payback-lab report --out $(ALL)

demo: $(VENV)/.run-ready  ## three agents learn DoorKey 11×11 before your eyes: no bonus, a raw one, GRM (about two minutes)
	@$(BIN)/python lab/examples/doorkey_agent.py --out demo

# Hosts that the main environment cannot hold: RLlib pins Gymnasium 1.2.2, gymnax asks for one below 1.4, RL Zoo for
# python-dateutil below 3, and rllte's pins resolve with nothing. They agree with each other, and share `hosts`;
# `floors` has the oldest hosts that pyproject.toml allows.
HOST_TOOLS := numpy array-api-compat pytest pytest-timeout pytest-xdist
host_pip = .envs/$(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-$(1).txt

.envs/hosts/.ready: pyproject.toml constraints-hosts.txt
	@echo "installing RLlib, rllte, gymnax, rsl_rl and RL Zoo in an environment of their own (a few minutes, once) …"
	@$(PYTHON) -m venv .envs/hosts
	$(call quietly,$(call host_pip,hosts) torch==2.13.0)
	$(call quietly,$(call host_pip,hosts) 'ray[rllib]' gymnax rsl-rl-lib rl_zoo3 termcolor pynvml pyarrow $(HOST_TOOLS))
	$(call quietly,$(call host_pip,hosts) --no-deps rllte-core)
	$(call quietly,$(call host_pip,hosts) --no-deps --editable .)
	@touch $@

.envs/floors/.ready: pyproject.toml constraints-floors.txt
	@echo "installing the oldest hosts in an environment of their own (about two minutes, once) …"
	@$(PYTHON) -m venv .envs/floors
	$(call quietly,$(call host_pip,floors) torch==2.13.0)
	$(call quietly,$(call host_pip,floors) gymnasium stable-baselines3 sb3-contrib torchrl minigrid $(HOST_TOOLS))
	$(call quietly,$(call host_pip,floors) --no-deps --editable .)
	@touch $@

test: $(VENV)/.dev-ready test-hosts  ## all tests, with the doctests and the code of README and docs
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

FAST := tests/core tests/check tests/auditing tests/bonuses tests/test_*.py
test-fast: $(VENV)/.dev-ready  ## the library's tests on NumPy alone (under two minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal \
	  -k "not torch and not jax and not planted" $(FAST)

# Without the doctests, whose option skips a test file that cannot be imported: here that is a failure.
HOST_RUN := bin/python -m pytest --quiet --numprocesses 2 --dist loadfile -o addopts="--import-mode=importlib -ra"
OF_GYMNASIUM := $(addprefix gymnasium_,vectors payments ends state bad_input)
OF_RLLIB := $(addprefix rllib_,payments mean bonuses checks)
OF_GYMNAX := gymnax gymnax_checks gymnax_environments
OF_RSL_RL := $(addprefix rsl_rl_,time_outs payments bonuses checks)
IN_HOSTS := $(OF_RLLIB) rllte $(OF_GYMNAX) $(OF_RSL_RL) rl_zoo $(OF_GYMNASIUM) truncation bonus_reset
AT_FLOORS := $(OF_GYMNASIUM) sb3 torchrl truncation wiring watch dropped_debts bonus_reset own_match learner_gamma

test-hosts: .envs/hosts/.ready  ## the adapters of RLlib, rllte, gymnax, rsl_rl and RL Zoo, in an environment of their own
	@OMP_NUM_THREADS=1 .envs/hosts/$(HOST_RUN) $(IN_HOSTS:%=tests/integrations/test_%.py)
	@OMP_NUM_THREADS=1 .envs/hosts/$(HOST_RUN) tests/docs/test_pages.py -k "rllib or rllte or gymnax or rsl_rl"

test-floors: .envs/floors/.ready  ## the adapters of Gymnasium, SB3 and TorchRL with the oldest versions that are allowed
	@OMP_NUM_THREADS=1 .envs/floors/$(HOST_RUN) $(AT_FLOORS:%=tests/integrations/test_%.py)

test-hosts-all: test-hosts test-floors  ## the adapters in all environments; CI builds the first alone

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

# The tutorials are run, which takes some minutes; NOTEBOOKS=off leaves their results out.
NOTEBOOKS ?= force
docs: $(VENV)/.dev-ready  ## the site, in build/site; runs the tutorials (make docs NOTEBOOKS=off does not)
	@NOTEBOOKS=$(NOTEBOOKS) OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "wrote build/site/index.html"

tables: $(VENV)/.run-ready  ## the tables and figures of docs/, made again from lab/results
	@$(BIN)/payback-lab docs

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .envs .pytest_cache .ruff_cache .hypothesis dist build
