#!/bin/sh
# Builds the sdist, and from the sdist alone a wheel, as who packages the project does; installs the wheel where no source tree is, and
# simulates a docking with it.
#
#     sh tools/test_packages.sh [first]     first: only the kernels that the docking needs (a quarter of the time)
set -eu
here="$(cd "$(dirname "$0")/.." && pwd)"
python="$here/.venv/bin/python"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export HIL_KERNELS="${1:-}"
cd "$here"
"$python" -c "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])" "$work/sdist" >"$work/log" 2>&1 || {
    tail -n 30 "$work/log" >&2
    exit 1
}
cd "$work"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w wheel sdist/hil_server-*.tar.gz
"$python" -m venv --without-pip environment
# the other packages are those of .venv; what lies in its .pth files (the source tree) does not come along
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"environment/$(environment/bin/python -c 'import sysconfig
print(sysconfig.get_path("purelib", vars={"base": "environment", "platbase": "environment"}).partition("environment/")[2])')/others.pth"
"$python" -m pip --python environment/bin/python install --quiet --disable-pip-version-check --no-deps wheel/*.whl
environment/bin/python -c 'import hil_server, sys; assert hil_server.__file__.startswith(sys.prefix), hil_server.__file__'
environment/bin/hil-server simulate --out run
ls -l sdist wheel
