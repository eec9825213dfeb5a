# Every target works as the first command typed on a machine with only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help run test test-e2e test-slow fuzz soak test-lowest lint format docs benchmark benchmark-peers clean

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*?## "}; {printf "  make %-16s %s\n", $$1, $$2}'

run: $(VENV)/.run  ## Start, learn, arrive, bill: the built-in demo; demo.png and demo.html
	@$(BIN)/fedplan run demo --plot demo.png --report demo.html
	@echo "The report, to open in a browser: $(CURDIR)/demo.html"
	@echo "Next: . $(BIN)/activate, then fedplan run setup3 energy-weight=0.5 --plot setup3.png, or one to change: fedplan run examples/study.toml"

test: $(VENV)/.dev  ## Run every fast check: tests, properties, doctests, examples of the pages (five minutes)
	$(BIN)/pytest -n auto --dist worksteal -q -m "not e2e and not slow and not soak"

test-e2e: $(VENV)/.dev  ## Run what needs more than this process: a browser, a real federation, kills (five minutes)
	$(BIN)/pytest -n auto --dist worksteal -q -m "e2e and not slow"

test-slow: $(VENV)/.dev  ## Run the checks that need minutes or gigabytes
	$(BIN)/pytest -q -m slow -o faulthandler_timeout=7200

fuzz: $(VENV)/.dev  ## Try 20,000 hostile inputs of each kind; make test tries 300
	FEDPLAN_FUZZ=20000 $(BIN)/pytest -n auto -q --hypothesis-show-statistics tests/fuzz -o faulthandler_timeout=7200

soak: $(VENV)/.dev  ## Two hundred pages for a minute, then a mixed load for FEDPLAN_SOAK minutes (30)
	$(BIN)/pytest -q -s -m soak -o faulthandler_timeout=0 tests/web/test_soak.py

test-lowest: $(VENV)-lowest/.run  ## Run the fast checks of the package alone with the lowest version of each dependency
	$(VENV)-lowest/bin/pytest -n auto --dist worksteal -q -m "not e2e and not slow and not soak" -W ignore::DeprecationWarning tests \
	  $(addprefix --ignore=tests/,$(WITH_EXTRAS))

lint: $(VENV)/.dev  ## Check style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs  ## Build the documentation site in build/docs; make test builds it, too
	$(BIN)/sphinx-build -W --keep-going -q -c docs . build/docs
	@echo "Open build/docs/index.html"

benchmark: $(VENV)/.run  ## Time the planner to 1,000,000 devices, the explorer, and the simulator, by turns too
	$(BIN)/python benchmarks/plan_scaling.py
	$(BIN)/python benchmarks/explorer.py --clients 50 --seconds 20
	$(BIN)/python benchmarks/peers/run.py --peers
	$(BIN)/python benchmarks/turns.py

benchmark-peers: $(VENV)/.run  ## Time the simulator against Flower, FedJAX, pfl and a PyTorch loop
	$(BIN)/python benchmarks/peers/run.py --output benchmarks/peers/results.json $(ARGS)

clean:  ## Remove the virtual environment and everything generated but the store
	rm -rf $(VENV) $(VENV)-lowest .benchmark-envs build dist demo.png demo.md demo.html report.html .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fedplan needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo "Installing fedplan into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --editable ./reproduction
	@touch $@

# Those of extras, of pages and of a browser need what the package itself does not.
WITH_EXTRAS := flower docs test_public.py contracts/test_torch.py models/test_torch_learner.py models/torch_cases.py
$(VENV)-lowest/.run: pyproject.toml reproduction/pyproject.toml
	$(PYTHON) -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct \
	  --editable . --editable ./reproduction
	@$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
	  hypothesis import-linter markdown-it-py mpmath playwright pytest pytest-xdist
	@touch $@

$(VENV)/.docs: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo "Installing fedplan and what builds its documentation into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' --editable ./reproduction
	@touch $@ $(VENV)/.run

$(VENV)/.dev: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo "Installing fedplan and its development tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./reproduction
	@command -v chromium >/dev/null || { [ -f /etc/debian_version ] && [ "$$(id -u)" = 0 ] && \
	  echo "Installing chromium, for the tests of the explorer's page (once) ..." && \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
	  echo "No chromium here: the explorer's page will not be tested. Install it for that."
	@touch $@ $(VENV)/.run $(VENV)/.docs
