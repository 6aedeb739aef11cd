# The commands of a developer's day. `make` alone lists them. Everything runs in .venv, which `make build` makes where it is missing.
PYTHON = .venv/bin/python
FOLDER ?= tests

.PHONY: help build test fast lint types generate docs snippets bench checked mutants planted demo clean

help:            ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

build:           ## environment and kernels, only what is missing
	@sh -c '. tools/environment.sh && prepare_environment test'

test:            ## all tests, on all cores
	sh tools/test.sh

fast: build      ## the tests of one folder: make fast FOLDER=tests/safety
	$(PYTHON) -m pytest -x $(FOLDER)

lint:            ## ruff, cython-lint
	.venv/bin/ruff check .
	PATH="$(CURDIR)/.venv/bin:$$PATH" cython-lint rt_kernels drivers

types:           ## mypy
	.venv/bin/mypy

generate:        ## everything that is generated, the committed files too; builds the kernels where the rest needs it
	@$(PYTHON) tools/generate.py || { $(MAKE) build && $(PYTHON) tools/generate.py; }

docs: build      ## the documentation site with pictures and API reference in build/docs
	$(PYTHON) tools/make_site.py

snippets: build  ## every command and snippet of the documents, in a copy of the tree; long ones too
	$(PYTHON) tools/run_snippets.py --long

bench: build     ## time of a tick, of the tree kernels (beside Pinocchio, MuJoCo, generated C) and of a virtual docking
	$(PYTHON) tools/bench_tick.py
	$(PYTHON) tools/bench_multibody.py
	$(PYTHON) tools/bench_generated.py
	$(PYTHON) tools/bench_virtual_docking.py

checked:         ## kernels with bounds checks, in a copy of their own, and the tests of the kernels with them
	sh tools/test_checked.sh

mutants: build   ## do the tests bite? (long)
	$(PYTHON) tools/mutate_kernels.py

planted: build   ## does hil-server world find them? (long)
	$(PYTHON) tools/mutate_kernels.py --planted

demo:            ## a docking on the virtual stand
	sh tools/demo.sh

clean:           ## what the build made; .venv stays
	rm -rf build
	find rt_kernels drivers -name '*.so' -delete
