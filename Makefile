PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DEMO := demo-audit

.PHONY: venv demo test lint docs browser bench claims clean

venv: $(VENV)/.stamp-test

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "errata needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# The demo needs torch, the tests more. Each installs only its own.
$(VENV)/.stamp-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[torch,app]'
	touch $@

$(VENV)/.stamp-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[test]'
	touch $@ $(VENV)/.stamp-demo

demo: $(VENV)/.stamp-demo
	rm -rf $(DEMO)
	$(BIN)/errata demo -o $(DEMO)

SPHINX := $(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

lint: $(VENV)/.stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(SPHINX)

# A warning is an error: a link to a page or heading that does not exist is one. Links to other sites are not followed.
# `lint` builds the pages as they are committed; a test compares the generated ones with the code.
docs: $(VENV)/.stamp-test
	$(BIN)/python docs/generate.py
	$(SPHINX)

# Tests of the pages need a browser, and say so where they are skipped. One is installed where that is easy.
browser:
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] \
	  || apt-get install -qq -y chromium >/dev/null 2>&1 \
	  || (apt-get update -qq && apt-get install -qq -y chromium) >/dev/null 2>&1 \
	  || echo "chromium could not be installed: the tests of the pages are skipped"

test: lint browser
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 15

# One table of ratios beside other tools, and curves over n; docs/performance.md has the last run. About 20 minutes.
# `benchmarks/scoreboard.py --install-peers` installs those tools that the tests do not need, into .venv-peers.
bench: $(VENV)/.stamp-test
	$(BIN)/python benchmarks/scoreboard.py
	$(BIN)/python benchmarks/curves.py

# Every claim of speed and error rate by itself, with its bound: fails where one does not hold.
claims: $(VENV)/.stamp-test
	$(BIN)/python benchmarks/spotlight.py
	$(BIN)/python benchmarks/domino.py
	$(BIN)/python benchmarks/barlow.py
	$(BIN)/python benchmarks/directions.py
	$(BIN)/python benchmarks/influence.py head
	$(BIN)/python benchmarks/influence.py layers
	$(BIN)/python benchmarks/null.py
	$(BIN)/python benchmarks/app.py

clean:
	rm -rf $(VENV) $(DEMO) build .pytest_cache .mypy_cache .ruff_cache
