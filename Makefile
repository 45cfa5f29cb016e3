# Two commands matter to a newcomer: `make run` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/installed
PROJECTS := pyproject.toml proving/pyproject.toml
LOCKS := requirements/build.txt requirements/locked.txt
CLASSES := $(VENV)/spark-classes.jsa
FLINK_VENV := .venv-conformance
FLINK_STAMP := $(FLINK_VENV)/installed
PEERS_VENV := .venv-peers
PEERS_STAMP := $(PEERS_VENV)/installed
DOCS_VENV := .venv-docs
DOCS_STAMP := $(DOCS_VENV)/installed
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
# A test that hangs ends so; none that waits for a busy machine does.
TEST_TIMEOUT_S := 300
TEST_PROCESSES ?= 3
SHARED = -n $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder
# Tests force files to the disk tens of thousands of times: 4 GB of memory are quicker, where there are.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 { print "TMPDIR=/dev/shm" }')
# Tests start hundreds of Pythons, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Of `make nemesis`: which random mixtures of faults, for how long, and WRITE=1 to write the page.
SEED ?= 1
MINUTES ?= 5
UV ?= uv
AZURITE := azurite@3.37.0
AXE := axe-core-4.14.1
AXE_SHA512 := 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help run test check lint mutants mutants-deep check-deep conformance venv bench bench-checker soak fuzz draw format lock
.PHONY: versions clean postgres nemesis netfilter bench-flink bench-ingest-peers browser azurite extended kills programs docs

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: $(STAMP) ## ingest a real data set exactly once while its workers are killed
	@$(RUN) -m epochgate demo

test: $(STAMP) $(CLASSES) postgres ## run the tests (eight minutes on two cores)
	@$(IN_MEMORY) $(RUN) -m pytest --timeout $(TEST_TIMEOUT_S) $(SHARED)

check: lint extended mutants kills programs ## all of the following

lint: $(STAMP) ## formatting, lint, types, import order, stale diagrams
	$(RUN) -m ruff format --check
	$(RUN) -m ruff check
	$(RUN) -m mypy
	$(RUN) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache --no-logo
	$(RUN) -m epochgate draw --check

extended: $(STAMP) $(CLASSES) postgres browser azurite ## run features in real Spark sessions, and whatever else `make test` has no time for
	@$(IN_MEMORY) $(RUN) -m pytest -m "extended and not (deep or kills or programs)" --timeout $(TEST_TIMEOUT_S) $(SHARED)

mutants: $(STAMP) $(CLASSES) ## break the machines: checker, fuzzer and tests must find each (a sample of rows and bodies)
	@$(IN_MEMORY) $(RUN) -m pytest -m "mutants and not deep" --timeout 600 $(SHARED)

mutants-deep: $(STAMP) $(CLASSES) ## judge every mutant of every kind, go on where it was cut, and write docs/mutants.md
	@$(IN_MEMORY) $(RUN) -m tests.mutation.judging

kills: $(STAMP) $(CLASSES) postgres ## kill and stop drivers, executors and workers of jobs and queries
	@$(IN_MEMORY) $(RUN) -m pytest -m "kills and not deep" --timeout $(TEST_TIMEOUT_S) $(SHARED) tests/spark

programs: $(STAMP) $(CLASSES) ## run the programs of README and guides, and commands, as a user does
	@$(IN_MEMORY) $(RUN) -m pytest -m "programs and not deep" --timeout $(TEST_TIMEOUT_S) $(SHARED)

venv: $(STAMP) ## make .venv and install everything into it, once

bench: $(STAMP) ## measure throughput, recovery and checkpoints, and write it into docs/benchmarks.md
	@$(RUN) -m epochgate bench --write

bench-checker: $(STAMP) ## measure the checker beside Spin, which is installed if it is missing, and on Spark
	@$(RUN) -m epochgate bench checker checker-reduction checker-start checker-spark --write

bench-flink: $(STAMP) $(FLINK_STAMP) ## measure beside Flink 2.3.0, and write it into docs/flink.md (needs a JDK)
	@EPOCHGATE_CONFORMANCE_VENV=$(abspath $(FLINK_VENV)) $(RUN) -m epochgate.benchmarks.flink --write

bench-ingest-peers: $(STAMP) $(PEERS_STAMP) postgres ## load files beside dlt, Sling and open-auto-loader, and write it into docs/comparison-ingest.md
	@EPOCHGATE_PEERS_VENV=$(abspath $(PEERS_VENV)) $(RUN) -m epochgate.benchmarks.peers --write

docs: $(DOCS_STAMP) ## make the documentation site in build/site; each warning is an error
	@$(DOCS_VENV)/bin/python -m sphinx --builder html --fail-on-warning --keep-going --jobs auto --quiet \
		--conf-dir docs --doctree-dir build/doctrees . build/site
	@echo "build/site/index.html is the site"

check-deep: $(STAMP) $(CLASSES) postgres ## every system at its full bounds, and whatever else takes a while
	@$(RUN) -m pytest -m deep --timeout 1800 $(SHARED)
	@EPOCHGATE_TABLES=50000 $(RUN) -m pytest tests/spark/values -n0 --timeout 7200

conformance: $(STAMP) $(FLINK_STAMP) ## compare with the real classes of Flink 2.3.0 (needs a JDK)
	@EPOCHGATE_CONFORMANCE_VENV=$(abspath $(FLINK_VENV)) \
		$(RUN) -m pytest -m conformance --timeout 900 tests/conformance tests/benchmarks

versions: ## start jobs on every version of Spark and Python that there is (half an hour, 12 GB)
	@$(PYTHON) -m tests.versions.environments

soak: $(STAMP) ## the long run: at least 200 kills
	@$(RUN) -m tests.soak.run

nemesis: $(STAMP) $(CLASSES) netfilter ## strike the hosts of a cluster, and judge what its jobs did (needs root)
	@$(RUN) -m pytest -m nemesis --timeout 600 tests/nemesis --seed $(SEED) --minutes $(MINUTES) $(if $(WRITE),--write)

fuzz: $(STAMP) ## explore failures and late messages with Hypothesis for longer than the tests do
	@$(RUN) -m tests.stateful.session

draw: $(STAMP) ## draw the machines again under diagrams/generated
	@$(RUN) -m epochgate draw

format: $(STAMP) ## format the code and repair what lint can repair
	@$(RUN) -m ruff format
	@$(RUN) -m ruff check --fix

lock: ## resolve the dependencies again (needs uv)
	$(LOCK) --upgrade requirements/build.in --output-file requirements/build.txt
	$(LOCK) --upgrade requirements/docs.in --output-file requirements/docs.txt
	$(LOCK) --upgrade $(PROJECTS) $(addprefix --extra ,spark metrics objects fsspec delta iceberg postgres avro pandas sqs watch otlp draw demo prove dev) \
		--no-emit-package epochgate --constraint requirements/build.txt --output-file requirements/locked.txt

clean: ## remove .venv and what tools have left behind
	rm -rf $(VENV) $(FLINK_VENV) $(PEERS_VENV) $(DOCS_VENV) .venv-versions .browser .azurite build dist run spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build tools come first and by their own lock, because pyspark is built from source and would
# otherwise fetch the newest ones unchecked.
$(STAMP): $(PROJECTS) $(LOCKS)
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
		echo "epochgate needs Python 3.11 or newer, and '$(PYTHON)' is not on PATH." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "epochgate needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 venv" >&2; exit 1; }
	@$(RUN) -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) could not make a virtual environment; its message is above." >&2; \
		echo "On Debian and Ubuntu, install the package python3-venv and try again." >&2; exit 1; }
	@echo "installing the locked dependencies into $(VENV) (about 1.3 GB, once)"
	@$(PIP) --require-hashes --requirement requirements/build.txt
	@$(PIP) --require-hashes --no-build-isolation --requirement requirements/locked.txt
	@$(PIP) --no-deps --no-build-isolation --editable . --editable proving
	@touch $@

# Tests of the PostgreSQL sink start servers of their own, so the package need not start one. Where
# it can neither be found nor installed, those tests are skipped, and say so.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		echo "installing PostgreSQL for the tests of its sink (once)" && \
		mkdir -p /etc/postgresql-common/createcluster.d && \
		echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.d/epochgate.conf && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends postgresql >/dev/null; \
	} || echo "PostgreSQL is not installed, and cannot be by this user: tests of its sink are skipped" >&2

# Tests of the pages look at them in Chromium, and judge them with axe-core, from npm. Where one of
# them can neither be found nor installed, those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null 2>&1 || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		echo "installing Chromium for the tests of the pages (once)" && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
			chromium fonts-dejavu-core >/dev/null; \
	} || echo "Chromium is not installed, and cannot be by this user: pages are not looked at" >&2
	@test -f .browser/axe.min.js || { \
		mkdir -p .browser && cd .browser && npm pack --silent $(subst core-,core@,$(AXE)) >/dev/null && \
		echo "$(AXE_SHA512)  $(AXE).tgz" | sha512sum --check --quiet && \
		tar -xzf $(AXE).tgz --strip-components=1 package/axe.min.js; \
	} || echo "axe-core cannot be fetched from npm: pages are not judged by it" >&2

# Tests of targets in Azure start the emulator of its blob storage, Azurite, from npm. Where it can
# neither be found nor installed, those tests are skipped, and say so.
azurite:
	@test -f .azurite/node_modules/azurite/package.json || { \
		echo "installing Azurite for the tests of targets in Azure (340 MB, once)" && \
		mkdir -p .azurite && npm install --silent --no-audit --no-fund --ignore-scripts \
			--prefix .azurite $(AZURITE) >/dev/null; \
	} || echo "Azurite cannot be fetched from npm: targets in Azure are not tried" >&2

# The hosts of `make nemesis` filter packets. Where that cannot be installed, its tests are skipped.
netfilter:
	@command -v nft >/dev/null 2>&1 || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		echo "installing nftables for the lab of hosts (once)" && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
			iproute2 nftables >/dev/null; \
	} || echo "nftables is not installed, and cannot be by this user: nothing is struck" >&2

# From an archive of the classes that Spark loads, its JVMs start in two thirds of the time. Without
# one, as where Java cannot write any, the tests take two minutes more.
$(CLASSES): spark/class_archive.py $(STAMP)
	@echo "archiving the classes that Spark loads (once)"
	@rm -f $@
	@$(RUN) -m epochgate class-archive $@ >/dev/null || touch $@

# Flink has an environment of its own: one jar of it is wanted, and none of what it depends on.
$(FLINK_STAMP): requirements/conformance.txt | $(STAMP)
	@$(FLINK_VENV)/bin/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(FLINK_VENV)
	@echo "installing Flink 2.3.0 into $(FLINK_VENV) (329 MB, once)"
	@$(FLINK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--require-hashes --requirement requirements/conformance.txt
	@touch $@

# The other loaders of files have one too. open-auto-loader asks for Python 3.12 or newer; where
# there is none, it is installed all the same, and what comes of that stands in the table.
$(PEERS_STAMP): requirements/peers.txt | $(STAMP)
	@$(PEERS_VENV)/bin/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(PEERS_VENV)
	@echo "installing dlt, Sling and open-auto-loader into $(PEERS_VENV) (once)"
	@$(PEERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--ignore-requires-python --requirement requirements/peers.txt
	@touch $@

# The site has an environment of its own too. Its reference imports the package, so what that needs
# is taken from the other one, behind the tools of the site.
$(DOCS_STAMP): requirements/docs.txt | $(STAMP)
	@$(DOCS_VENV)/bin/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(DOCS_VENV)
	@echo "installing Sphinx into $(DOCS_VENV) (90 MB, once)"
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--require-hashes --requirement requirements/docs.txt
	@$(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(DOCS_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/epochgate-needs.pth"
	@touch $@
