PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
# Everything that decides what is installed: when one of these changes, the environment is made anew.
STAMP := .venv/.installed

.PHONY: install demo test test-slow test-browser test-package test-scale test-site docs fuzz lint bench reproduction clean

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/shotproof demo

# One process per core, and one thread per process: more threads than cores would wait for each other.
# Bytecode is kept whatever the environment says: tests start many processes, and each would compile all it imports.
# COVERAGE=1 measures and prints the lines that tests reach, which takes a fifth longer.
test: $(STAMP)
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist worksteal $(if $(COVERAGE),--cov --cov-report=term:skip-covered)

# Processes that are killed, interrupted or installed, demos, and simulations: what takes many seconds each.
test-slow: $(STAMP)
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m slow -n auto --dist worksteal

test-browser: $(STAMP)
	$(BIN)/pytest -m browser

# Builds the package, and runs the demo and every extra from environments that have nothing but what they ask for.
test-package: $(STAMP)
	$(BIN)/pytest -m package -n 2

# A Ray cluster of three nodes on this machine, each with one core and one thread, and an S3 server.
test-scale: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[ray,stores]'
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m scale

# The site in a folder of its own: strictly, with its notebooks, looked through for links that lead nowhere; needs chromium.
test-site: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[docs]'
	$(BIN)/pytest -m site

# The site, into site/; any broken link ends it.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# SECONDS of each format; guided by coverage where atheris is installed (.venv/bin/pip install atheris).
SECONDS ?= 20
fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzzing $(if $(CASES),--cases $(CASES),$(SECONDS))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.plain_english

bench: $(STAMP)
	$(BIN)/python -m benchmarks

reproduction: $(STAMP)
	$(BIN)/python -m reproduction

$(STAMP): pyproject.toml $(CONSTRAINTS)
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[dev,browser]'
	touch $(STAMP)

clean:
	rm -rf .venv build dist site src/*.egg-info shotproof-demo
