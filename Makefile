# Everything a newcomer needs: `make figure1`, `make test`. The environment is made on first use.
PYTHON ?= python3
VENV ?= .venv
LOWEST = .venv-lowest
BIN = $(VENV)/bin
PIP = -m pip install --quiet --disable-pip-version-check
INSTALL = $(BIN)/python $(PIP) --constraint constraints.txt
INSTALL_LOWEST = $(LOWEST)/bin/python $(PIP) --constraint $(LOWEST)/versions.txt

.PHONY: help figure1 figure2 figure3 evidence known fitted quickstart docs dist test test-all test-lowest mutants attack inventorybench lint format bench clean

help:
	@echo "make figure1      install, run the paper's experiment, draw its figure"
	@echo "make figure2      UCBVI-f and repair of a wrong f in the same worlds"
	@echo "make figure3      how regret grows with the horizon; UCB-f with Bernstein's bonus and with a reference"
	@echo "make quickstart   install, learn an inventory policy, show it"
	@echo "make docs         the manual as HTML, in build/docs; warnings and broken links within it are errors"
	@echo "make dist         wheel and sdist, in dist"
	@echo "make test         lint and every test but the slow ones"
	@echo "make test-all     lint and every test"
	@echo "make test-lowest  every test but the slow ones, with the oldest versions that pyproject.toml allows"
	@echo "make mutants      small bugs put into the package, and those that no test notices, in half an hour"
	@echo "make attack       kills, faults, damaged and forged files, wrong tables and arguments, in ten minutes"
	@echo "make bench        how fast the kernels are; with AGAINST=revision: old and new in turn, in a quarter of an hour"
	@echo "make evidence     certificates, few switches, the model check, repair: measured, in half an hour"
	@echo "make known        problems with known answers, solved and learned; docs/cost.png, docs/censored.png"
	@echo "make fitted       values that are fitted, where no table fits: lost sales of long lead times and others, in some hours"
	@echo "make inventorybench DATA=file-or-folder  a fixed policy on that benchmark: score, parts left out, in minutes"
	@echo "make lint         ruff, mypy --strict, import contracts"
	@echo "make format       rewrite the sources as ruff likes them"
	@echo "make clean        remove the environments and all caches"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ucbf needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.use: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable ".[plot]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable ".[dev]"
	@touch $@ $(VENV)/.use

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable ".[docs]"
	@touch $@ $(VENV)/.use

# The build tool too is the oldest allowed: it is installed first, and used instead of the newest.
$(LOWEST)/.dev: pyproject.toml benchmarks/lowest.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "needs Python 3.11; set PYTHON=python3.11")'
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python benchmarks/lowest.py > $(LOWEST)/versions.txt
	$(INSTALL_LOWEST) hatchling editables
	$(INSTALL_LOWEST) --no-build-isolation --editable ".[dev]"
	@touch $@

figure1: $(VENV)/.use
	$(BIN)/ucbf figure1

figure2: $(VENV)/.use
	$(BIN)/ucbf figure2

figure3: $(VENV)/.use
	$(BIN)/ucbf figure3

quickstart: $(VENV)/.use
	$(BIN)/python examples/inventory.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs
	$(BIN)/python docs/links.py build/docs
	@echo "build/docs/index.html"

dist: | $(BIN)/python
	$(INSTALL) hatchling
	$(BIN)/python -m hatchling build

DATA ?= ../shared/bench/inventorybench_dev.csv
inventorybench: $(VENV)/.use
	$(BIN)/python benchmarks/inventorybench.py $(DATA) --seeds 3 --ablate $(WRITE:%=--write %)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Kernels that are optimised less compile in half the time, and give the same bits; they are kept apart.
test: lint
	NUMBA_OPT=1 NUMBA_CACHE_DIR=$(CURDIR)/.test-kernels $(BIN)/pytest -q -n 2 -m "not slow"

test-all: lint
	$(BIN)/pytest -q -n 2

# Ray has one test, a slow one.
test-lowest: $(LOWEST)/.dev
	$(LOWEST)/bin/pytest -q -n 2 -m "not slow"
	$(LOWEST)/bin/pytest -q tests/test_studies.py -k ray_cluster

mutants: $(VENV)/.dev
	$(BIN)/python benchmarks/mutants.py

attack: $(VENV)/.dev
	$(BIN)/python benchmarks/attack

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/$(if $(AGAINST),against.py $(AGAINST),speed.py)
	$(if $(AGAINST),,$(BIN)/python benchmarks/large.py)

evidence: $(VENV)/.use
	$(BIN)/python benchmarks/evidence.py

known: $(VENV)/.dev
	$(BIN)/python benchmarks/known.py

fitted: $(VENV)/.use
	$(BIN)/python benchmarks/fitted.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-* .test-kernels results build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
