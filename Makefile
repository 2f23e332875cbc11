# Every target sets up what it needs: nothing but Python 3.11+, pip and make is expected on the machine.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SITE := .venv-site/.ready
# where it is set, each of the thousands of processes that the tests start would compile all of Muster anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo quick test test-all soak bench lint docs site clean

setup: $(READY)

# the build backend is fetched into an environment of its own: -c does not reach it, older pips read the one variable there
# and newer ones the other
$(READY): pyproject.toml constraints.txt constraints-build.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints-build.txt PIP_BUILD_CONSTRAINT=constraints-build.txt \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/muster demo

# before every commit: what finds most mistakes in at most 90 s
quick: lint
	$(BIN)/python -m pytest -m "not slow" -n 2 -x tests/unit/stats tests/unit/judge tests/unit/plan tests/unit/controller tests/unit/store tests/contract/test_store.py

# three at a time on two cores: much of a test is waiting for processes
test: $(READY)
	$(BIN)/python -m pytest -m "not slow" -n 3 --dist loadgroup

# COLD: each command in a new interpreter; see tests/warm_muster.py
test-all: $(READY)
	COLD=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -rP -m slow
	COLD=1 $(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow"

# larger counts: storms, simulated campaigns and hostile inputs from SEED on for MINUTES, ONLY=storm for one kind; a second call goes on
SEED ?= 1
MINUTES ?= 10
soak: $(READY)
	$(BIN)/python tools/soak.py --seed $(SEED) --minutes $(MINUTES) $(if $(ONLY),--only $(ONLY))

bench: $(READY)
	$(BIN)/python bench/run.py

lint: $(READY)
	$(BIN)/ruff check --no-cache src tests bench examples tools
	$(BIN)/ruff format --check src tests bench examples tools
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/python -m muster.spec.reference > docs/campaign.md

# an environment of its own: what is in .venv is what constraints.txt pins
$(SITE): pyproject.toml constraints-site.txt
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['site'], sep='\n')" > .venv-site/requirements.txt
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-site.txt -r .venv-site/requirements.txt
	@touch $(SITE)

# the documents as pages in site/; fails on a broken link, and on anything that would be loaded from outside
site: $(SITE)
	NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict --quiet
	.venv-site/bin/python tools/check_site.py site

clean:
	rm -rf .venv .venv-site site
