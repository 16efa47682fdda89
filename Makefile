# Needs Python 3.11+ and make, nothing else. Every target makes .venv and installs what it
# uses, once: the stamp files say what is installed, and are redone when the pins change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
PINS := pyproject.toml constraints.txt
DEMO_READY := $(VENV)/.installed-demo
DEV_READY := $(VENV)/.installed-dev

.PHONY: demo test browser lint format clean
.DEFAULT_GOAL := demo

demo: $(DEMO_READY)
	$(BIN)/limis demo

# Two workers of one thread each: torch would otherwise start as many threads as cores in both.
test: $(DEV_READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

# The tests of the web page need a browser, and are skipped where there is none.
# Where apt-get is missing or not allowed, Playwright brings one of its own.
browser: $(DEV_READY)
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
			command -v $$name > /dev/null && exit 0; done; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
			apt-get update -q && apt-get install -qy --no-install-recommends chromium && exit 0; fi; \
		$(BIN)/playwright install chromium

lint: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src/limis
	$(BIN)/lint-imports

format: $(DEV_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "limis needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): $(PINS) | $(BIN)/python
	$(INSTALL) -e '.[lightgbm]'
	@touch $@

# dev holds all that demo needs, so it marks both as done.
$(DEV_READY): $(PINS) | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	@touch $(DEMO_READY) $@
