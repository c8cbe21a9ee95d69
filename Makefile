# make book     build the HTML         make lab      open the notebooks in JupyterLab
# make serve    show the built book    make refresh  run every notebook and store its outputs
# make test     check every number     make clean    remove what was made
# make epub     one file to read       make oldest   check with the oldest numpy that is supported
# make onepage  one page, zipped       make newest   check with the newest one
#
# Each target first makes .venv if it is missing or out of date.
# With a Python of another name: make PYTHON=python3.12 book

ifeq ($(OS),Windows_NT)
PYTHON ?= python
VENV_PYTHON := .venv/Scripts/python.exe
else
PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
endif

.PHONY: book epub onepage serve test refresh lab oldest newest clean environment

book: environment
	$(VENV_PYTHON) tools/build_book.py

epub onepage: environment
	$(VENV_PYTHON) tools/build_book.py $@

serve: environment
	$(VENV_PYTHON) tools/serve.py

test: environment
	$(VENV_PYTHON) -m pytest

refresh: environment
	$(VENV_PYTHON) tools/refresh.py

lab: environment
	$(VENV_PYTHON) -m jupyterlab $(LAB) chapters

oldest newest:
	$(PYTHON) tools/other_versions.py $@

environment:
	@command -v $(PYTHON) > /dev/null || \
	    { echo "No '$(PYTHON)' here. Install Python 3.11 or newer from python.org or your system's packages."; exit 1; }
	@$(PYTHON) tools/environment.py

clean:
	rm -rf _build .cache .venv web/node_modules .pytest_cache .hypothesis .ruff_cache build src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
