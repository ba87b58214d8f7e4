# Everything sets itself up: `make test` and `make demo` work on a fresh clone with python3.11 and a C compiler.
# `make test PYTHON=3.13` does the same for another CPython, in an environment of its own.

PYTHON ?= 3.11
PYTHON_NUMBER := $(patsubst python%,%,$(notdir $(PYTHON)))
INTERPRETER   := $(if $(filter $(PYTHON_NUMBER),$(PYTHON)),python$(PYTHON),$(PYTHON))
TORCH  ?= torch==2.13.0
VENV   := $(if $(filter 3.11,$(PYTHON_NUMBER)),.venv,.venv-$(PYTHON_NUMBER))
BIN    := $(VENV)/bin
PY     := $(BIN)/python
JOBS   ?= 2
TESTS  ?= tests

SOURCES := $(wildcard src/framegraft/csrc/*.c src/framegraft/csrc/*.h)

.PHONY: help venv build demo examples test pytest lint typecheck imports cwarnings asan wheel wheels docs bench clean distclean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/'

venv: $(VENV)/.dependencies ## virtual environment with torch and the tools

$(VENV)/.python:
	$(INTERPRETER) -m venv $(VENV)
	touch $@

$(VENV)/.torch: $(VENV)/.python
	$(PY) -m pip install --quiet "$(TORCH)"
	touch $@

$(VENV)/.dependencies: $(VENV)/.torch requirements-dev.txt
	$(PY) -m pip install --quiet "setuptools>=77,<81" wheel -r requirements-dev.txt
	touch $@

build: $(VENV)/.build ## the package, editable, with its C extension

$(VENV)/.build: $(VENV)/.dependencies pyproject.toml $(wildcard setup.py) $(SOURCES)
	$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

demo: build ## capture the toy example and a small transformer, with graphs, guards and breaks
	$(PY) examples/demo.py

examples: build ## the other examples
	$(PY) examples/quick_start.py
	$(PY) examples/own_compiler.py
	$(PY) examples/training_loop.py
	$(PY) examples/failing_backend.py

test: lint typecheck imports cwarnings pytest ## everything that CI checks

pytest: build
	$(PY) -m pytest -n $(JOBS) $(TESTS)

lint: venv
	$(BIN)/ruff check src tests examples benchmarks docs $(wildcard setup.py)

typecheck: build
	$(BIN)/pyright

imports: build
	$(BIN)/lint-imports

# The extension again, with every warning an error; the object files are thrown away.
cwarnings: venv
	@set -e; include=$$($(PY) -c "import sysconfig; print(sysconfig.get_paths()['include'])"); \
	for f in $(filter %.c,$(SOURCES)); do \
	    echo "cc -Wall -Wextra -Werror $$f"; \
	    $(CC) -std=c11 -O1 -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers \
	        -Wno-cast-function-type -Werror -Isrc/framegraft/csrc -I$$include $$f; \
	done

# The extension with sanitizers, in a copy of the package: Python itself has none, so that the runtime is loaded first.
# Leaks of the interpreter's own are not looked for. ASAN_TESTS picks what runs.
ASAN_DIR   := build/asan
ASAN_TESTS ?= tests/native tests/bytecode tests/engine tests/soundness
SANITIZE   := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

asan: venv ## the native tests under AddressSanitizer and UndefinedBehaviorSanitizer
	rm -rf $(ASAN_DIR) && mkdir -p $(ASAN_DIR)
	cp -r src/framegraft $(ASAN_DIR)/framegraft && rm -f $(ASAN_DIR)/framegraft/*.so
	@set -e; include=$$($(PY) -c "import sysconfig; print(sysconfig.get_paths()['include'])"); \
	suffix=$$($(PY) -c "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"); \
	$(CC) -std=c11 -g -O1 -shared -fPIC $(SANITIZE) -I$$include $(filter %.c,$(SOURCES)) -ldl -o $(ASAN_DIR)/framegraft/_native$$suffix
	ulimit -s 65536; ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=$(ASAN_DIR) \
	    LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	    $(PY) -X faulthandler -m pytest -p no:cacheprovider $(ASAN_TESTS)

wheel: venv ## a wheel for the CPython at hand, in dist/
	$(PY) -m pip install --quiet build
	$(PY) -m build --wheel --no-isolation

wheels: ## a wheel for each CPython that is here
	@for version in 3.10 3.11 3.12 3.13; do \
	    if python$$version -c '' 2>/dev/null; then python$$version -m pip wheel --quiet --no-deps -w dist . || exit 1; \
	    else echo "no python$$version here"; fi; \
	done; ls dist

docs: venv ## files made from the source
	$(PY) docs/generate.py

bench: build ## ratios against torch.compile
	$(PY) benchmarks/overhead.py
	$(PY) benchmarks/capture.py
	$(PY) benchmarks/first_call.py
	$(PY) benchmarks/memory.py

clean: ## what was built
	rm -rf build dist src/*.egg-info src/framegraft/*.so .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f $(VENV)/.build

distclean: clean ## and the virtual environment
	rm -rf .venv .venv-*
