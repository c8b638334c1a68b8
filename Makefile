# `make` alone lists the targets. Each sets up what it needs, once: the stamps below are renewed when the locks change.
# The main job (`make reproduce`) never installs Torch.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PINS := pyproject.toml lab/pyproject.toml constraints.txt
# Of each environment; the pip that a Python brings may be older than dependency groups (25.1).
pip = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(2)

# Prints nothing unless the command fails, because pip is noisy where an index has no page for a name.
quietly = @out=$$($(1) 2>&1) || { echo "$$out"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help reproduce reproduce-all demo test test-all test-slow test-hosts test-floors test-busy times coverage mutants lint \
	format bench docs tables lock clean

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
	$(call quietly,$(call pip,$(VENV),constraints.txt) --upgrade pip)
	$(call quietly,$(call pip,$(VENV),constraints.txt) --editable . --editable 'lab[experiments]')
	@touch $@

# Torch first, as pinned: what asks for any Torch would fetch the newest one and gigabytes of accelerator libraries.
$(VENV)/.dev-ready: $(VENV)/.run-ready
	@echo "installing what the tests need (a few minutes, once) …"
	$(call quietly,$(call pip,$(VENV),constraints.txt) torch==2.13.0)
	$(call quietly,$(call pip,$(VENV),constraints.txt) --editable . --editable 'lab[ray]' --group dev)
	@touch $@

.envs/%/.ready: pyproject.toml constraints-%.txt
	@echo "installing .envs/$* (a few minutes, once) …"
	@$(PYTHON) -m venv .envs/$*
	$(call quietly,$(call pip,.envs/$*,constraints-$*.txt) --upgrade pip)
	$(call quietly,$(call pip,.envs/$*,constraints-$*.txt) torch==2.13.0)
	$(call quietly,$(call pip,.envs/$*,constraints-$*.txt) --group $*)
	$(call quietly,$(call pip,.envs/$*,constraints-$*.txt) --no-deps $(WITHOUT_PINS_$*) --editable .)
	@touch $@

WITHOUT_PINS_hosts := rllte-core

reproduce: $(VENV)/.run-ready  ## the main job: the cliffs in full, a short DoorKey 8×8 and 11×11, the report (about a quarter of an hour)
	@$(BIN)/payback-lab reproduce

# In a folder of its own, since a short and a full DoorKey cannot share one. Breadth-first: whenever it is stopped, what
# is there is balanced, and the same command goes on. On a cluster: make reproduce-all ON='--engine ray --address HOST:6379'
# (docs/howto/cluster.md).
ALL := full
OTHERS := grm-3 even-10 geometric-0.9 when
LONGER := grm-30 grm-100
ON ?=
RUN := $(BIN)/payback-lab run $(ON)
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
	@for e in reach delay curiosity arena safe-range depth learned hosts; do $(RUN) $$e --again --out $(ALL) || exit; done
	@$(BIN)/payback-lab report --out $(ALL)

demo: $(VENV)/.run-ready  ## four agents learn DoorKey 11×11 before your eyes: no bonus, a raw one, GRM, GRM as an advantage (about two minutes)
	@$(BIN)/python lab/examples/doorkey_agent.py --out demo

# Markers in the test files decide what runs where (pyproject.toml lists them). OMP_NUM_THREADS=1, because there is one worker per core.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal
QUICK := "not (slow or browser or ray or host)"
# Without doctests, which would import files that need what these environments lack.
HOST_PYTEST := bin/python -m pytest --quiet --numprocesses 2 --dist loadfile -o addopts="--import-mode=importlib -ra --strict-markers"

test: $(VENV)/.dev-ready  ## the library's tests and the core of the lab's, with the doctests (about five minutes)
	@$(PYTEST) -m $(QUICK)

test-all: test-slow test-hosts test-floors  ## what `make test` leaves out: slow tests, browser, Ray, hosts, oldest versions (a quarter of an hour)

test-slow: $(VENV)/.dev-ready  ## the slow tests, the browser's and Ray's
	@$(PYTEST) -m "(slow or browser or ray) and not host"

test-hosts: .envs/hosts/.ready  ## the adapters of RLlib, rllte, gymnax, rsl_rl, skrl and RL Zoo, and of Gymnasium 1.2
	@OMP_NUM_THREADS=1 .envs/hosts/$(HOST_PYTEST) -m "host or gymnasium" tests/integrations tests/docs/test_pages.py

test-floors: .envs/floors/.ready  ## the adapters of Gymnasium, SB3 and TorchRL with the oldest versions that are allowed
	@OMP_NUM_THREADS=1 .envs/floors/$(HOST_PYTEST) -m "not (host or slow)" tests/integrations

times: $(VENV)/.dev-ready  ## what each test of `make test` costs, in CPU seconds
	@PYTHONPATH=tests $(PYTEST) -p cpu_times -m $(QUICK)

test-busy: $(VENV)/.dev-ready  ## `make test` three times, with eight busy processes beside it
	@$(BIN)/python tests/busy.py 3

coverage: $(VENV)/.dev-ready  ## lines and branches of the library that `make test` runs; fails below 95 %
	@$(BIN)/coverage erase
	@$(subst -m pytest,-m coverage run -m pytest,$(PYTEST)) -m $(QUICK)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --show-missing --skip-covered

mutants: $(VENV)/.dev-ready  ## change the core in some fifty wrong ways; fails unless the tests notice each
	@OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py

lint: $(VENV)/.dev-ready  ## ruff, and pyright for the oldest and the newest Python
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@for version in 3.11 3.14; do $(BIN)/pyright --warnings --pythonversion $$version || exit; done
	@$(BIN)/pyright --warnings --project lab

format: $(VENV)/.dev-ready  ## rewrite the code in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev-ready  ## speed beside peers, as ratios measured in one run, and what changed since the committed ones
	@$(BIN)/python benchmarks/bench.py

# The tutorials are run, which takes some minutes; NOTEBOOKS=off leaves their results out.
NOTEBOOKS ?= force
docs: $(VENV)/.dev-ready  ## the site, in build/site; runs the tutorials (make docs NOTEBOOKS=off does not)
	@NOTEBOOKS=$(NOTEBOOKS) OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "wrote build/site/index.html"

tables: $(VENV)/.run-ready  ## the tables and figures of docs/, made again from lab/results
	@$(BIN)/payback-lab docs

# The first lines of a lock are its own; a CPU build (torch 2.13.0+cpu) is locked as the version it is of.
lock = { grep '^\#' $(2); $(1)/bin/python -m pip freeze --all --exclude-editable | sed 's/+cpu$$//'; } > $(2).new && mv $(2).new $(2)

lock: $(VENV)/.dev-ready .envs/hosts/.ready  ## renew the locks from what is installed in .venv and .envs/hosts
	@$(call lock,$(VENV),constraints.txt)
	@$(call lock,.envs/hosts,constraints-hosts.txt)

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .envs .pytest_cache .ruff_cache .hypothesis dist build
