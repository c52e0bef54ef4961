PYTHON ?= python3
VENV := .venv
SETS ?= ../shared/eval
BIN := $(VENV)/bin

.PHONY: demo test check bench bench-large bench-serve bench-postgres quality tune slow faults clean

demo: $(VENV)/.ready
	$(BIN)/recollect demo

test: $(VENV)/.ready-dev $(VENV)/.ready-browser
	$(BIN)/pytest

slow: $(VENV)/.ready-dev
	$(BIN)/pytest -m slow --timeout 1800

faults: $(VENV)/.ready-dev
	$(BIN)/pytest tests/faults tests/fuzz -m slow --timeout 7200 -rP

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scale.py

bench-large: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/scale.py --large

bench-serve: $(VENV)/.ready-dev $(VENV)/.ready-browser
	$(BIN)/python benchmarks/serving.py

bench-postgres: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/postgres.py

quality: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/quality.py $(SETS)

tune: $(VENV)/.ready-dev
	$(BIN)/python -m recollect.eval.tuning $(SETS) --save benchmarks/tuning.json

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/pip install --quiet --group dev
	touch $@

# The tests of the page need a browser; where it cannot be installed they are skipped, and say so.
$(VENV)/.ready-browser: $(VENV)/.ready
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium >/dev/null) || \
	  echo "chromium could not be installed: the tests of the page will be skipped"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
