# Each target does all of its own set-up, on a fresh machine too, and asks no question. `make` alone lists them.
# What is installed goes into .venv and the user's cache folder; `make clean` removes the first.

# The distribution's Python where it is new enough: those that pyenv builds have no profile-guided optimisation unless asked for, and
# everything here takes up to half as long again with them.
PYTHON ?= $(shell for python in /usr/bin/python3 python3; do \
  $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; done; echo $$python)
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup check test demo demo-kafka bench soak mutants schemas clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY) ## create .venv with the packages of all targets

$(READY): pyproject.toml constraints.txt | python
	@$(PYTHON) -m lab.setup.python_packages

.PHONY: python
python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed ($(PYTHON)): apt-get install --yes python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing: apt-get install --yes python3-venv" >&2; exit 1; }

check: $(READY) ## lint, format, types, layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: $(READY) ## run all tests that this machine can run, and list the others (ARGS="--quick", ARGS="-k name": some; ARGS=--help)
	$(if $(filter --quick --help -h,$(ARGS)),,$(RUN) -m lab.setup.prepare)
	$(RUN) -m lab.test_runs.suites $(ARGS)

.PHONY: smoke e2e chaos
smoke: $(READY) ## install, topics, a move and uninstall in a kind cluster: the part of e2e that CI runs
	$(RUN) -m e2e -m smoke $(ARGS)

e2e: $(READY) ## run the product in a kind cluster of three nodes, or in that of KUBECONFIG (ARGS="--keep -k name")
	$(RUN) -m e2e $(ARGS)

chaos: $(READY) ## rounds of random faults in such a cluster under load (ARGS="--seed 1 --rounds 20")
	$(RUN) -m e2e.chaos $(ARGS)

demo: demo-kafka ## show the main functions once: at most three minutes from nothing

demo-kafka: python ## the same: a topic, load, failures and a move on real Kafka and a real Kubernetes API
	@$(PYTHON) -m lab.setup.prepare --demo
	@$(RUN) -m lab.demo

bench: $(READY) ## measure Steward and its peers
	$(RUN) -m lab.setup.prepare --strict
	$(RUN) -m bench $(ARGS)

soak: $(READY) ## mutated requests to the listener, then load and random faults, for any time
	$(RUN) -m lab.setup.prepare --strict
	$(RUN) -m bench.soak $(ARGS)

mutants: $(READY) ## seed bugs into a copy of the controller; its tests must catch each of them
	$(RUN) -m bench.mutants $(ARGS)

schemas: $(READY) ## generate the tables of Kafka's messages, errors, topic configs and settings from its jars
	broker=$$($(RUN) -m lab.downloads.jars 3.9.2) && newest=$$($(RUN) -m lab.downloads.jars 4.3.1) && export PATH="$(CURDIR)/$(VENV)/bin:$$PATH" && \
	  $(RUN) tools/extract_schemas.py "3.9.2=$$broker" "4.3.1=$$newest" && \
	  $(RUN) tools/extract_errors.py "$$newest" && \
	  $(RUN) -m tools.extract_topic_configs "$$broker" "$$newest" && \
	  $(RUN) -m tools.extract_broker_settings "$$newest" && \
	  $(RUN) -m tools.extract_resource_configs "$$newest" && \
	  $(RUN) -m tools.extract_config_documentation "$$newest"

.PHONY: dist
dist: $(READY) ## write the files of a release to dist/: chart, operator.yaml, package, SBOM, checksums (ARGS="--registry NAME")
	$(RUN) -m lab.release $(ARGS)

.PHONY: shown
shown: $(READY) ## write the lists of tests in docs/features.md and docs/invariants.md from the marks of the tests again
	$(RUN) -m lab.test_runs.shown

clean: ## remove .venv, dist and what tools leave in the tree; the user's cache stays
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
