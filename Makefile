# Every command below makes the environment first (.venv, exact versions from constraints.txt); once made, it starts at once.
# Other versions, or no extras: make test VENV=build/lowest CONSTRAINTS=lowest.txt (or CONSTRAINTS=/dev/null, the newest; or EXTRAS=).

VENV := .venv
CONSTRAINTS := constraints.txt
EXTRAS := rl
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTED := $(VENV)/.tested

# The first interpreter that is new enough, tested versions first; `make run PYTHON=/path/to/python` takes another.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: help run quick test test-slow coverage lint pages replay site speed
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# What is imported is compiled to bytecode then, once; to compile all of torch takes longer than the rest of the installation.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c $(1)

# The pip of a new environment may be too old for groups of dependencies (--group).
$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { echo "clickgym needs Python 3.11 or later, and there is none (PYTHON=... names one elsewhere)" >&2; exit 1; }
	@echo "Making $(VENV) with the versions of $(CONSTRAINTS) (once, a few minutes) ..."
	$(PYTHON) -m venv --clear $(VENV)
	$(call INSTALL,constraints.txt) pip
	$(call INSTALL,$(CONSTRAINTS)) -e .
	@touch $@

# What tests, lint, pages and the site need: the tools, and the libraries of the extras (PyTorch is large, so `make run` does without).
# The import compiles PyTorch once; otherwise, each process that imports it at the same time would.
$(TESTED): $(INSTALLED)
	$(call INSTALL,$(CONSTRAINTS)) --group dev -e '.$(if $(EXTRAS),[$(EXTRAS)])'
	@$(if $(EXTRAS),$(BIN)/python -c 'import sb3_contrib; import torch._dynamo')
	@touch $@

run: $(INSTALLED)  ## play the comparison of the README; results and figures in results/first
	$(BIN)/clickgym run PBMRank-v0 CMRank-v0 --instances shipped \
		--agents CascadeTS PBMHB CascadeKLUCB CascadeKLUCB:c=0 TopRank BatchRank EpsilonGreedy Random \
		--horizon 1e4 --runs 5 --out results/first

# Bytecode is kept beside the sources, also where the shell says no: the tests are many processes, and each would compile and
# rewrite all of them again.
export PYTHONDONTWRITEBYTECODE :=

# The workers share the cache of kernels, and each takes whole files, so that what the tests of a file share is made once.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile

quick: $(TESTED)  ## what to run between two edits: one agent of each family, three pairs in both engines, the runner
	$(PYTEST) @tests/quick.txt

test: $(TESTED)  ## all tests but those of test-slow
	$(PYTEST) -m "not slow"

# Other people's libraries are installed here and not before, each by itself: where one cannot be, the tests that need it are
# skipped, and its name stands at the end.
LOOPS := 'minari[create,hdf5]' sbx-rl skrl 'tianshou[eval]' torchrl tensorboard moviepy
test-slow: $(TESTED)  ## long tests: statistics, all pairs of agent and click model, other libraries' loops, other processors
	@rm -f $(VENV)/.missing; for library in '--group=notebooks' $(LOOPS); do \
		$(call INSTALL,$(CONSTRAINTS)) "$$library" || echo "$${library#--group=}" >> $(VENV)/.missing; done
	$(PYTEST) -m slow -rs; tests=$$?; $(BIN)/python tests/processors.py; processors=$$?; \
	test ! -f $(VENV)/.missing || echo "Not installed, and not tested:" $$(cat $(VENV)/.missing); \
	exit $$((tests + processors > 0))

# Only Python is measured, so kernels run as Python, and the few tests that need the compiler fail. Other processes do not count.
coverage: $(TESTED)  ## the lines that the tests do not run, but for slow tests and those of compiled code
	-NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -q -m "not slow and not compiled"
	$(BIN)/python -m coverage report --sort=miss

lint: $(TESTED)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy src/clickgym

pages: $(TESTED)  ## the pages and tables made from shipped results
	$(BIN)/python tools/make_pages.py

replay: $(TESTED)  ## play a sample of the scorecard's shipped runs again, and compare
	$(BIN)/python tools/replay.py $(ARGS)

# Its packages are installed here and not before, so that `make run` need not wait for them.
site: $(TESTED)  ## the website with executed notebooks, into build/site
	$(call INSTALL,$(CONSTRAINTS)) --group site --group notebooks -e .
	$(BIN)/python docs/site/build.py
	$(BIN)/python -m pytest -q -m "not slow" tests/docs/test_notebooks.py

speed: $(TESTED)  ## the measurements of speed/README.md
	$(BIN)/python speed/measure.py
