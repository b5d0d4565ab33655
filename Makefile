PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help dev check format test golden cov docs demo bench packing soak faults build clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: $(VENV)/.installed ## make .venv with everything; again and again without harm

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "trio-sched needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 dev")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	$(BIN)/python -m compileall -q trio_sched plugins_builtin
	@touch $@

check: dev ## what CI runs; never edits a file
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: dev ## let ruff put the files in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: dev ## all tests, in three to five minutes on two cores
	$(BIN)/pytest -q -n 3 --dist worksteal

golden: dev ## every decision recorded from kube-scheduler
	$(BIN)/pytest -q tests/golden --golden-dir tests/golden/data -n 2

cov: dev ## tests with a coverage report
	$(BIN)/pytest -q --cov --cov-report=term-missing:skip-covered

docs: dev ## write the reference pages again from the code
	$(BIN)/python -m contrib.docs

demo: dev ## schedule a realistic cluster on the embedded API server
	$(BIN)/trio-sched simulate --demo

bench: dev ## measure it; beside kube-scheduler where KUBEBUILDER_ASSETS has one
	$(BIN)/python -m contrib.benchmarks

packing: dev ## GPUs allocated on a full cluster, against the paper's table; DATA=folder of the openb trace
	$(BIN)/python contrib/plugins/gpu_packing/experiment.py --keep --data "$(DATA)"

soak: dev ## a hundred thousand pods and ten thousand nodes come and go; minutes
	$(BIN)/python -m contrib.soak

faults: dev ## outages, restarts, rotations in front of it and of kube-scheduler; needs KUBEBUILDER_ASSETS; 45 minutes
	$(BIN)/python -m contrib.faults

build: dev ## wheel and sdist into dist/
	$(BIN)/python -m build

clean: ## forget .venv and everything made
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
