# simt: `make run` trains the tutorial's PyTorch program on real MNIST, `make test` runs the tests.
# Both do all their set-up from a clean clone (private .venv, build). See CONTRIBUTING.md.
#   make test T=name   the tests whose name or file contains `name`
#   make check         format, lint, layers, size, the wheel, and the tests once more under ASan + UBSan
#   make reliability   interrupts, forks, memory that ends, threads: all of tools/reliability
#   make fuzz SECONDS=n SEED=s   programs made at random, under ASan + UBSan
#   make check-keras   all of Keras's own tests on simt (docs/keras.md)
#   make check-threads threads under ThreadSanitizer (part of make check)
#   make bench         speed against other libraries, in turns
#   make build         the development build, linked into python/simt (use with PYTHONPATH=python)
#   make format        formats C and Python; make coverage: regenerates docs/coverage

PY := .venv/bin/python
# meson and ninja of the private environment first
export PATH := $(CURDIR)/.venv/bin:$(PATH)
NINJA = .venv/bin/ninja
SOURCES := $(shell find src include python meson.build pyproject.toml -type f \
             -not -name '*.pyc' -not -name '*.so' 2>/dev/null)
C_FILES = $(shell find src include tests -name '*.[ch]' -not -path '*/generated/*' -type f)
PY_DIRS = $(wildcard python tests tools examples bench)
PYTEST = -m pytest -q -p no:cacheprovider
T ?=
# What computes; the others are about the launcher, tools, pages, the vm alone, or processes.
REMOTE_TESTS = tests/conformance $(wildcard $(addprefix tests/python/test_,$(addsuffix *.py,adam array cupy exchange \
    fusion grad kernel launch lessons numba odd products programs reduce save sort torch transforms)))
SELECT = $(if $(T),$(if $(findstring /,$(T)),$(T),tests -k "$(T)"),tests)
# The C compiler's own copy of the sanitizer's library, loaded before the (uninstrumented) Python.
# With the C++ library in front: a package of Python's that throws C++ exceptions ends the process without it.
ASAN_LIB = $(shell $${CC:-cc} -print-file-name=libasan.so):$(shell $${CC:-cc} -print-file-name=libstdc++.so.6)

SANITIZED = PYTHONPATH="$(CURDIR)/build-asan/python" SIMT_SANITIZE=1 LD_PRELOAD="$(ASAN_LIB)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONMALLOC=malloc $(PY)

# Likewise for threads. NumPy's own OpenBLAS is not instrumented: it gets no threads.
TSAN_LIB = $(shell $${CC:-cc} -print-file-name=libtsan.so)
RACES = PYTHONPATH="$(CURDIR)/build-tsan/python" LD_PRELOAD="$(TSAN_LIB)" OPENBLAS_NUM_THREADS=1 \
    TSAN_OPTIONS="suppressions=$(CURDIR)/tools/tsan.supp:exitcode=66:history_size=4" $(PY)
THREAD_SEEDS ?= 1
THREAD_SECONDS ?= 20

.PHONY: run test check check-remote bench build format coverage install clean reliability \
        fuzz build-sanitized check-format check-lint check-static check-layers check-size check-wheel \
        check-docs check-keras check-sanitize check-fuzz check-threads

run: install
	.venv/bin/simt run examples/mnist_pytorch.py

test: build
	PYTHONPATH="$(CURDIR)/python" $(PY) $(PYTEST) $(SELECT)

# Arrays, tensors and kernels on a device whose memory the host cannot touch (src/device/remote).
check-remote: build
	SIMT_TARGET=remote PYTHONPATH="$(CURDIR)/python" $(PY) $(PYTEST) \
	    -m "not slow and not exhaustive" $(or $(T),$(REMOTE_TESTS))

check: check-format check-lint check-layers check-static check-size check-wheel check-docs check-sanitize \
       check-fuzz check-threads

# docs/reliability.md; ARGS='forks --count 10' for one kind
reliability: build
	PYTHONPATH="$(CURDIR)/python" $(PY) tools/reliability $(or $(ARGS),all)

bench: install
	@if [ -f bench/run.py ]; then $(PY) bench/run.py $(ARGS); else echo "bench: not there yet"; fi

# --- set-up and builds ---------------------------------------------------------------------------

.venv/.ready: tools/setup.sh tools/requirements-test.txt
	@tools/setup.sh

.venv/.ready-check: .venv/.ready tools/requirements-check.txt
	@tools/setup.sh check

# Development build: optimised, assertions on.
build: .venv/.ready
	@[ -f build/build.ninja ] || .venv/bin/meson setup build >/dev/null
	@$(NINJA) -C build --quiet
	@$(PY) tools/link_core.py build

# The package as a user gets it (release, assertions off), in the private environment.
install: .venv/.installed
.venv/.installed: .venv/.ready $(SOURCES)
	@echo "simt: building and installing into .venv (a minute or two)" >&2
	@$(PY) -m pip install -q --no-build-isolation --no-deps --force-reinstall --config-settings=build-dir=build-release .
	@touch $@

# --- checks --------------------------------------------------------------------------------------

check-format: .venv/.ready-check
	@$(if $(C_FILES),.venv/bin/clang-format --dry-run -Werror $(C_FILES),true)
	@.venv/bin/ruff format -q --check $(PY_DIRS)

check-lint: .venv/.ready-check
	@.venv/bin/ruff check -q $(PY_DIRS)

check-static: .venv/.ready-check
	@tools/check_static.sh

check-layers: .venv/.ready
	@$(PY) tools/check_layers.py

check-size: .venv/.ready
	@$(PY) tools/check_size.py --wheel

# Installs what check-size built into an environment without a compiler and runs programs there.
check-wheel: .venv/.ready
	@$(PY) tools/try_wheel.py

# docs/add-an-op.md, followed in a copy that is built.
check-docs: build
	PYTHONPATH="$(CURDIR)/python" $(PY) $(PYTEST) -m exhaustive tests/python/test_add_an_op.py

# ARGS='layers/core ops/nn_test.py' for some of them, ARGS='--backend jax' on stock Keras
check-keras: build .venv-keras/.ready
	.venv-keras/bin/python tools/keras_suite.py $(ARGS)

.venv-keras/.ready: .venv/.ready tools/requirements-keras.txt
	@[ -d .venv-keras ] || $(PY) -m venv .venv-keras
	@.venv-keras/bin/python -m pip install -q -r tools/requirements-keras.txt
	@touch $@

build-sanitized: .venv/.ready
	@[ -f build-asan/build.ninja ] || .venv/bin/meson setup build-asan \
	    -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@$(NINJA) -C build-asan --quiet
	@$(PY) tools/link_core.py build-asan --tree

# The quick tests, and PyTorch's recorded answers.
check-sanitize: build-sanitized
	$(SANITIZED) $(PYTEST) -m "not slow and not exhaustive" $(SELECT)
	$(if $(T),,$(SANITIZED) $(PYTEST) -m "slow and not exhaustive" tests/conformance)

# What fails is made smaller and kept in tests/fuzz_found, where tests run it again (tools/fuzz).
SECONDS ?= 60
SEED ?=
fuzz: build-sanitized
	$(SANITIZED) tools/fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

check-fuzz: build-sanitized
	$(SANITIZED) tools/fuzz --programs 400 --seconds 300 --seed 1

# Launches, training, loaders and array work of several threads, on separate and on shared objects.
check-threads: .venv/.ready
	@[ -f build-tsan/build.ninja ] || .venv/bin/meson setup build-tsan \
	    -Db_sanitize=thread -Db_lundef=false >/dev/null
	@$(NINJA) -C build-tsan --quiet
	@$(PY) tools/link_core.py build-tsan --tree
	for seed in $(THREAD_SEEDS); do \
	    $(RACES) tools/reliability/threads.py --seed=$$seed --threads=4 --round=$(THREAD_SECONDS) || exit 1; \
	done

format: .venv/.ready-check
	@$(if $(C_FILES),.venv/bin/clang-format -i $(C_FILES),true)
	@.venv/bin/ruff format -q $(PY_DIRS)
	@.venv/bin/ruff check -q --fix $(PY_DIRS)

coverage: build
	@PYTHONPATH="$(CURDIR)/python" $(PY) tools/gen_coverage.py

clean:
	rm -rf build build-* dist python/simt/_core*.so
