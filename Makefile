# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Each target prepares its own virtual environment in .venv first, from nothing but a Python of 3.11 to 3.13.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
# What Python has compiled of the sources is kept, whatever the environment says: many tests start processes.
RUN := PYTHONDONTWRITEBYTECODE= JAX_PLATFORMS=cpu $(VENV)/bin/python
# The tests of a file run in one process, as they share what they compile and what they start.
TESTS := $(RUN) -m pytest -q -n 2 --dist loadfile -m "not slow"

.PHONY: demo test test-v3 test-slow lint docs format bench corpus wheels check-install check-versions gpu-test gpu-bench gpu-bundle clean help

help:
	@echo "make demo | test | test-v3 | test-slow | lint | docs | format | bench | corpus | wheels | check-install | check-versions | clean"
	@echo "make gpu-test | gpu-bench, where there is an NVIDIA GPU; gpu-bundle, for a machine that has one (docs/gpu.md)"

$(STAMP): pyproject.toml CMakeLists.txt $(wildcard $(addprefix shlo_disc/runtime/,native/* native/*/* include/* include/*/*))
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Python 3.11 to 3.13 is needed: make PYTHON=python3.12 ...")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[test,lint,mpi,docs]'
	touch $(STAMP)

demo: $(STAMP)
	$(RUN) -m examples.demo

test: $(STAMP)
	$(TESTS)

# The tests that generated code matters to, once more as for processors without AVX-512, where this one has it. Others
# run as much in `make test`. There is no level below x86-64-v3.
test-v3: $(STAMP)
	@if grep -q -m 1 avx512vl /proc/cpuinfo; then \
	  $(TESTS) --cpu x86-64-v3 $(addprefix tests/,run $(addprefix unit/,codegen lowering_cpu runtime transforms)); \
	else \
	  echo "test-v3: skipped, for the level of this processor is x86-64-v3 already"; \
	fi

test-slow: $(STAMP)
	$(RUN) -m pytest -q -m slow

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(RUN) scripts/make_stubs.py
	$(VENV)/bin/mypy

# The programs of the pages, the notebooks, and the site of the pages. A warning is an error, as is a link to nowhere.
docs: $(STAMP)
	$(RUN) -m pytest -q -n 2 -m slow tests/docs/test_pages.py tests/docs/test_notebooks.py
	$(RUN) -m sphinx -W --keep-going -q -b html docs build/site
	@echo "the site is build/site/index.html"

format: $(STAMP)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(STAMP)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[bench]'
	$(RUN) -m benchmarks

# Programs of other people's libraries, pinned, in an environment of its own that also sees that of this Makefile. For a part,
# or to go on: make corpus CORPUS='--resume --only diffrax'.
CORPUS_VENV := .venv-corpus
CORPUS ?=
$(CORPUS_VENV)/.installed: corpus/requirements.txt $(STAMP)
	test -x $(CORPUS_VENV)/bin/python || $(VENV)/bin/python -m venv $(CORPUS_VENV)
	$(VENV)/bin/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' > "$$($(CORPUS_VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')/shlo_disc.pth"
	$(CORPUS_VENV)/bin/python -m pip install --disable-pip-version-check --quiet -r corpus/requirements.txt
	touch $@

corpus: $(CORPUS_VENV)/.installed
	$(CORPUS_VENV)/bin/python -m corpus $(CORPUS)

# The reference is JAX on the processor; its programs for GPUs, where it has any, are timed in a process of their own.
gpu-test: $(STAMP)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[cuda]'
	$(RUN) -m pytest -q -rs tests/gpu/test_on_gpu.py

gpu-bench: $(STAMP)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[cuda]'
	$(RUN) -m benchmarks.gpu

# For instance: make gpu-bundle GPU_TARGET=cuda:sm_80
GPU_TARGET ?= cuda:sm_90a
gpu-bundle: $(STAMP)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[cuda]'
	$(RUN) -m tests.gpu.make_bundle --target $(GPU_TARGET)

# For each Python of 3.11 to 3.13 that is found, into dist/; each is installed and tried.
wheels:
	$(PYTHON) scripts/make_wheels.py

# Pages, notebooks and examples, where nothing but the package is installed. To leave PyTorch out, name the others:
# make check-install STAGES='saved plain notebooks pypjrt examples'. For a wheel: WHEEL=dist/NAME.whl.
STAGES ?=
check-install:
	$(PYTHON) -m scripts.check_install $(if $(WHEEL),--wheel $(WHEEL)) $(STAGES)

# A short list of tests in environments that have the package, for their versions of Python, JAX and PyTorch:
# make check-versions PYTHONS='one/bin/python other/bin/python'.
PYTHONS ?=
check-versions:
	$(PYTHON) -m scripts.check_versions $(PYTHONS)

clean:
	rm -rf $(VENV) $(CORPUS_VENV) build dist stubs demo_out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
