PYTHON ?= python3
VENV := .venv
SETS ?= ../shared/eval
BIN := $(VENV)/bin

.PHONY: demo test check bench quality tune slow clean

demo: $(VENV)/.ready
	$(BIN)/recollect demo

test: $(VENV)/.ready-dev
	$(BIN)/pytest

slow: $(VENV)/.ready-dev
	$(BIN)/pytest -m slow --timeout 1800

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/run.py

quality: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/quality.py $(SETS)

tune: $(VENV)/.ready-dev
	$(BIN)/python -m recollect.eval.tuning $(SETS)

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
