# Everything a person or CI does here. `make` lists it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.longhaul-ready
RUNTIME := $(VENV)/.longhaul-runtime

.DEFAULT_GOAL := help
.PHONY: help setup demo test chaos fuzz sdk check docs reference pictures dev bench bench-peers faults rules lock lock-peers clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{printf "make %-11s %s\n", $$1, $$2}'

setup: $(READY) ## an environment in .venv with the `longhaul` command (PYTHON= names the Python, 3.11 or newer)

# Only what a lock file names is installed, each file checked by its hash; the stamp makes a second run instant. The demo
# takes what the product needs: what contributors need besides is twice as much, and contains it.
$(READY): requirements-dev.lock pyproject.toml
	@$(INSTALL) requirements-dev.lock
	@touch $(RUNTIME) $@

$(RUNTIME): requirements.lock pyproject.toml
	@$(INSTALL) requirements.lock
	@touch $@

INSTALL = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Longhaul needs Python 3.11 or newer; name one with PYTHON=")' \
	&& $(PYTHON) -m longhaul.starter.dev_server.checkout $(VENV)

demo: $(RUNTIME) ## a whole job, offline: embedded server, worker, scripted model
	@$(BIN)/python -m longhaul.starter.demo

# Fetches the servers first: a test's seconds must not be spent on a download. Most tests wait for servers, so six
# processes keep two cores busy, each with whole files: what a file's tests share is made once. tests/suite/order.py says which
# come first, so pytest-xdist must not order them by their number. Tests that watch the clock run when the others are
# done, no more at once than there are cores, and what failed in a crowd is tried once more.
test: setup ## all tests but the slow chaos, with all that they need
	@$(BIN)/python -m tests.servers
	@$(KEPT) $(BIN)/python -m pytest --cache-clear --numprocesses $(TEST_PROCESSES) $(WHOLE_FILES) \
		-m "not chaos and not alone"; most=$$?; \
	$(KEPT) $(BIN)/python -m pytest --numprocesses $(CLOCK_PROCESSES) $(WHOLE_FILES) -m "alone and not chaos" $(ALONE); few=$$?; \
	$(KEPT) $(BIN)/python -m tests.suite.again $$most $$few

TEST_PROCESSES ?= 6
CLOCK_PROCESSES ?= 2
# To read all tests anew takes each process twenty seconds of the processor, and each program half a second: what was read
# is kept, also where the shell forbids to keep it beside the sources.
KEPT := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/bytecode
WHOLE_FILES := --dist loadfile --no-loadscope-reorder
# To read all files again for these few would take half a minute.
ALONE = $$(grep -rl --include='test_*.py' mark.alone tests)

chaos: setup ## kills and storms that take minutes
	@$(BIN)/python -m tests.servers
	$(BIN)/python -m pytest -m chaos

fuzz: setup ## FUZZ_LINES= command lines of chance from FUZZ_SEED= on; what is allowed runs in a scratch folder
	nice $(BIN)/python -m tests.activities.corpora.fuzzing --lines $(FUZZ_LINES) --seed $(FUZZ_SEED)

FUZZ_LINES ?= 50000
FUZZ_SEED ?= 1000

check: setup ## format, lint, types, layers and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/codebase/test_codebase.py tests/codebase/test_event_vocabulary.py

# Strictly: a link that leads nowhere, or a page that is not there, ends it.
docs: setup ## the documentation as a site in site/; open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Plain Markdown, which is committed: a test fails when it differs from the code.
reference: setup ## write docs/reference and the list of decisions from the code
	$(BIN)/python -m docs.making.reference

# What models take is looked up by others, whose packages are newer than ours from day to day.
rules: setup ## write down anew what models take and cost, from packages and our own rows; list what is older than 60 days
	$(BIN)/python -m longhaul.activities.models.requests.rule_sources

pictures: setup ## take the pictures of docs/images anew; needs Chromium
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/terminal_pictures.py

dev: $(RUNTIME) ## an embedded Temporal server and one worker, until Ctrl-C
	$(BIN)/longhaul dev

sdk: setup ## SDK=1.35.0: replays, sessions and asks under that version of Temporal's SDK
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/sdk-$(SDK) temporalio==$(SDK)
	PYTHONPATH=$(VENV)/sdk-$(SDK) $(BIN)/python -m pytest $(SMALL_PART)

SDK ?= 1.35.0
SMALL_PART := tests/replay tests/embedding tests/workflows/workers/test_sdk_internals.py tests/workflows/workers/test_runner.py \
	tests/workflows/incarnation/test_needless_passes.py tests/workflows/incarnation/test_reset.py

bench: setup ## measure this machine; results go to docs/benchmarks.md
	$(BIN)/python -m benchmarks --docs docs
	$(BIN)/python -m benchmarks.parked --docs docs
	$(BIN)/python -m benchmarks.soak --docs docs
	$(BIN)/python -m benchmarks.recovery --docs docs --repeats 50
	$(BIN)/python -m benchmarks.interrupting --docs docs
	$(BIN)/python -m benchmarks.first_token --docs docs
	$(BIN)/python -m benchmarks.permission_speed --docs docs
	$(BIN)/python -m benchmarks.sandbox_start --docs docs
	$(BIN)/python -m benchmarks.cost --docs docs
	$(BIN)/python -m benchmarks.wire --peers --docs docs
	$(BIN)/python -m benchmarks.mcp --docs docs

faults: setup ## kill workers and the server at every event of a job and of an application, and FAULTS= times at random
	$(BIN)/python -m benchmarks.faults --docs docs --random $(FAULTS)
	$(BIN)/python -m benchmarks.order_faults --docs docs

FAULTS ?= 1000

bench-peers: setup ## the same beside other frameworks, which it installs apart (half an hour on a quiet machine)
	$(BIN)/python -m benchmarks.peers

# Written for all platforms and Pythons at once, so that one pair of files serves everybody.
lock: setup ## pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --extra all --group build --output-file requirements.lock $(LOCKING)
	$(BIN)/uv pip compile pyproject.toml --extra all --extra a2a --extra ai --extra cohere --extra azure --extra bedrock --extra kms --extra vectors --extra vertex --group dev --constraint requirements.lock --output-file requirements-dev.lock $(LOCKING)
	$(BIN)/uv pip compile tests/servers/openapi_generator.in --output-file tests/servers/openapi_generator.lock $(LOCKING)

# Apart from `lock`: the published figures are those of the locked versions.
lock-peers: setup ## pin the newest peers; measure them anew afterwards
	cd benchmarks/peers && for name in *.in; do \
	  ../../$(BIN)/uv pip compile $$name --output-file $${name%.in}.lock $(LOCKING) || exit 1; done

LOCKING := --upgrade --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --quiet

clean: ## remove what was made here; caches in the home folder stay
	rm -rf $(VENV) build site *.egg-info tests/mockserver/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
