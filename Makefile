# Give each target a description after `## `, which `make help` prints. A target that needs tools or
# the tests' packages depends on $(TEST), one that runs Wakeful on $(RUN).
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# With it, each process would compile what it imports, and each worker all tests: 10 s of CPU each.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
export VENV
BIN := $(VENV)/bin
# Wheels only: installing must work without a compiler and libcurl's headers, which pycurl's build needs.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --only-binary :all: --require-hashes
# No build isolation: it would download the newest build tools, without checking a hash.
OURSELVES := $(PIP) --no-deps --no-build-isolation --editable .
# `wakeful serve` runs without docstrings (app/commands/entry.py) where modules are compiled for it.
COMPILED := $(BIN)/python -OO -c "import app.alerts.worker, app.commands.entry, app.commands.serve, app.commands.web.webserver, app.engine.checker, app.web, app.api, app.pages"

# Stamps: a second `make run` starts at once, and a changed lock file is installed again.
RUN := $(VENV)/run.stamp
TEST := $(VENV)/test.stamp

# Programs that tests start themselves: a browser with two fonts, a target that breaks (nginx),
# proxies, PostgreSQL, Redis; promtool (prometheus); and what makes PDF files needs Pango.
DEBIAN_PACKAGES := caddy chromium-headless-shell fonts-dejavu-core fonts-liberation libharfbuzz-subset0 libpangoft2-1.0-0 nginx postgresql prometheus redis-server

# ARGS goes to pytest: make quick ARGS="tests/web -k login". Two workers for each core: tests wait for
# a browser, a database or a moment that comes. With three, the start of the others costs more time
# than it saves: 10 s of CPU each.
PYTEST := $(BIN)/python -m pytest --numprocesses $(shell echo $$((2 * $$(nproc)))) --dist worksteal

.PHONY: help run test test-more quick quick-3.13 pictures lint format messages lock audit wheel demo try-places kills bench-truth bench-checks bench-api bench-web bench-status bench-pings bench-engine bench-schedule \
	bench-growth bench-places bench-slow bench-strangers bench-start bench-kills clean

help: ## List the targets
	@sed -nE 's/^([a-z][a-z0-9.-]*):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run: $(RUN) ## Install into .venv and serve on http://127.0.0.1:8000 until Ctrl-C
	@exec $(BIN)/wakeful serve

# Beside the tests, which often wait, style and types take no time; what they say comes last. In a
# fresh clone each worker would compile app/ and the tests at the same time.
test: $(TEST) ## Install what the tests need, run all tests but those of test-more, and check style and types
	@scripts/debian-packages $(DEBIAN_PACKAGES)
	@$(BIN)/python -m compileall -q -j 0 app
	@ls tests/__pycache__/conftest*pytest*.pyc >/dev/null 2>&1 || $(BIN)/python -m pytest -qq --collect-only >/dev/null
	@mkdir -p build; $(MAKE) lint >build/lint.txt 2>&1 & lint=$$!; \
	$(PYTEST) -m "not more" $(ARGS); tests=$$?; \
	wait $$lint; lint=$$?; cat build/lint.txt; exit $$((tests ? tests : lint))

test-more: $(TEST) ## Run the tests that take minutes or are timed; a release runs both
	@scripts/debian-packages $(DEBIAN_PACKAGES)
	@$(PYTEST) -m more $(ARGS)
	@$(PYTEST) --hypothesis-profile thousands tests/judge tests/stats

quick: $(TEST) ## Run the tests that need no browser and are not slow
	@$(PYTEST) -m "not browser and not slow and not more" $(ARGS)

quick-3.13: ## Run the same on Python 3.13, if it is installed, in .venv-3.13
	@$(MAKE) quick VENV=.venv-3.13 PYTHON=$(or $(PYTHON),python3.13)

pictures: $(TEST) ## Put pictures of every page into build/pictures, and those of the README into docs/pictures
	@PICTURES=build/pictures $(PYTEST) tests/web/test_every_page.py $(ARGS)
	@$(BIN)/python scripts/readme-pictures build/pictures

lint: $(TEST) ## Check style and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy app wsgi.py

format: $(TEST) ## Sort imports and format the code
	@$(BIN)/ruff check --select I --fix
	@$(BIN)/ruff format

messages: $(TEST) ## Write app/translations/messages.pot, the catalogue of all sentences
	@scripts/messages

lock: ## Write requirements/*.txt from pyproject.toml (UPGRADE=1: with newer versions)
	@scripts/venv
	@UPGRADE=$(UPGRADE) scripts/lock

audit: $(TEST) ## Ask the package index for known faults of the locked versions, and show the lock's age
	@$(BIN)/python scripts/audit.py requirements/test.txt

wheel: $(RUN) ## Build the wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

demo: $(RUN) ## Serve a demonstration: local targets that really fail, and 90 days of made-up history
	@exec $(BIN)/python -m app.demo

try-places: $(TEST) ## Start PostgreSQL, Redis, Wakeful, a checker over the queue and two probers, to try
	@scripts/debian-packages postgresql redis-server
	@exec scripts/try-places

kills: $(TEST) ## Kill all that makes checks, in turn, for three minutes, with 200 monitors (KILLS_SECONDS)
	@KILLS_SECONDS=$(or $(KILLS_SECONDS),180) KILLS_MONITORS=$(or $(KILLS_MONITORS),200) \
	KILLS_INTERVAL=$(or $(KILLS_INTERVAL),30) \
	$(BIN)/python -m pytest tests/faults/test_killed_carriers.py $(ARGS)

bench-truth: $(TEST) ## Measure how often checks are right: accuracy, causes, false alarms
	@$(BIN)/python -m bench.truth $(ARGS)

bench-checks: $(TEST) ## Measure the CPU time of a check, compared with other tools
	@scripts/debian-packages nginx wrk
	@$(BIN)/python -m bench.checks $(ARGS)

bench-api: $(TEST) ## Measure the API with 10,000 monitors
	@$(BIN)/python -m bench.api $(ARGS)

bench-web: $(TEST) ## Measure pages with 10,000 monitors and 90 days of data (created once, in minutes)
	@$(BIN)/python -m bench.web $(ARGS)

bench-status: $(TEST) ## Measure the requests that a status page takes, and the cost of a change
	@$(BIN)/python -m bench.status $(ARGS)

bench-pings: $(TEST) ## Measure the pings of heartbeats that are taken a second, and a burst of a thousand
	@$(BIN)/python -m bench.pings $(ARGS)

bench-engine: $(TEST) ## Measure CPU and memory of all processes, at rest and with up to 10,000 monitors
	@scripts/debian-packages nginx postgresql prometheus-blackbox-exporter
	@$(BIN)/python -m bench.engine $(ARGS)

bench-schedule: $(TEST) ## Measure how late checks start, with 1,000 and 10,000 monitors
	@scripts/debian-packages nginx
	@$(BIN)/python -m bench.schedule $(ARGS)

bench-growth: $(TEST) ## Measure a check, pages and the API with 100 to 100,000 monitors (half an hour)
	@scripts/debian-packages nginx
	@$(BIN)/python -m bench.growth $(ARGS)

bench-places: $(TEST) ## Measure what a check costs from another place: by a checker, over the queue, by an agent
	@scripts/debian-packages nginx postgresql redis-server
	@$(BIN)/python -m bench.places $(ARGS)

bench-slow: $(TEST) ## Measure normal requests while 500 clients are slow on purpose
	@$(BIN)/python -m bench.slow $(ARGS)

bench-strangers: $(TEST) ## Measure how late checks start while 500 slow clients and 16 threads of log-ins try to stop them
	@scripts/debian-packages nginx
	@$(BIN)/python -m bench.strangers $(ARGS)

bench-kills: $(TEST) ## Kill two checkers at random for four minutes, and look for late and double checks
	@scripts/debian-packages postgresql
	@$(BIN)/python -m bench.kills $(ARGS)

bench-start: $(TEST) ## Measure the time from the start to the first check
	@$(BIN)/python -m bench.start $(ARGS)

clean: ## Remove what building and testing left behind (not .venv, not instance/)
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(RUN): requirements/run.txt requirements/build.txt pyproject.toml
	@scripts/venv
	@echo "Installing Wakeful and what it needs into $(VENV)"
	@$(LOCKED) -r requirements/run.txt -r requirements/build.txt
	@$(OURSELVES)
	@$(COMPILED)
	@touch $@

$(TEST): requirements/test.txt pyproject.toml
	@scripts/venv for-tests
	@echo "Installing Wakeful and what its tests need into $(VENV)"
	@$(LOCKED) -r requirements/test.txt
	@$(OURSELVES)
	@$(COMPILED)
	@touch $@
