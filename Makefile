# Two commands do everything, set-up included: `make train` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: train test test-all lint format bench bench-learning mutants docs clean

train: $(READY)  ## a short run of the recommended algorithm that ends with a readable result and a figure
	$(BIN)/flashbulb train mice-salient SafetyPointGoal1-v0 --seed 0 --steps 1e6 --cost-limit 25 --violations 0.1
	@echo "Next: . $(BIN)/activate && flashbulb runs"

test: lint  ## everything that must hold before a change lands (a few minutes on two cores)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: lint  ## the same with the slow tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "" --timeout 3600

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## speed as ratios, measured in one run
	$(BIN)/python -m benchmarks.throughput

docs: $(READY)  ## the documentation site, in build/site; fails on a dead link or anchor
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench-learning: $(READY)  ## every algorithm at one length, beside published results; goes on where it was stopped
	$(BIN)/python -m benchmarks.learning --scale $(or $(SCALE),short)

mutants: $(READY)  ## whether the tests notice faults; goes on where it was stopped (SAMPLE=150 SEED=0)
	nice $(BIN)/python -m tests.mutation --sample $(or $(SAMPLE),150) --seed $(or $(SEED),0) --table tests/mutation/table.md

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'flashbulb needs Python 3.11 or newer, this is ' + sys.version.split()[0])"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build dist src/*.egg-info
