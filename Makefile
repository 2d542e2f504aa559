# Every target does the set-up it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build tools demo test check soak bench docs format clean

UV := $(shell command -v uv || echo .tools/bin/uv)
RUN := $(UV) run --no-sync
WORKERS ?= 2
ROUNDS ?= 20
export UV_PYTHON_DOWNLOADS := never

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: build ## A hub and four clusters on this machine: a rollout, drift undone, the hub lost and back
	@$(RUN) bash examples/demo.sh

test: check build tools ## Everything: checks, unit, integration and end-to-end tests
	@$(RUN) pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: setup ## Formatting, lint, types, layers
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) lint-imports

soak: build tools ## The fault and fuzz tests with many more rounds (ROUNDS=20)
	@STARLING_ROUNDS=$(ROUNDS) $(RUN) pytest -m rounds --timeout 3600 -n $(WORKERS) --dist worksteal

bench: build ## Figures, as ratios against the raw API server in the same run
	@$(RUN) python -m benchmarks

docs: setup ## Write the generated references under docs/reference
	@$(RUN) python docs/generate.py

format: setup ## Format and fix what can be fixed
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

clean: ## Remove what these targets made in this folder (not the cached Kubernetes build)
	@rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

setup: $(UV)
	@$(UV) sync --locked --quiet --compile-bytecode

build: setup ## Build Kubernetes from source, once; later runs find it in the cache
	@$(RUN) starling local build >/dev/null

tools: build # what tests need besides: Debian's packages, other projects' manifests, and helm to render them
	@bash tests/tools.sh
	@$(RUN) python -m tests.integration.third_party

.tools/bin/uv: # --target works where the system's Python is externally managed, and touches nothing outside
	@echo "installing uv into .tools" >&2
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools uv
