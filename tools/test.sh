#!/bin/sh
# Sets up what the tests need in .venv and runs them on all cores, a file on one of them. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
. tools/environment.sh
prepare_environment test
exec .venv/bin/python -m pytest -n auto --dist loadfile "$@"
