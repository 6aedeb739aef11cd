#!/bin/sh
# Builds the kernels with bounds checks in a copy of the tree as it is now (build/checked; the fast kernels stay as they are), and runs the
# tests of the kernels there. Arguments go to pytest: tools/test_checked.sh tests/wrench
set -eu
cd "$(dirname "$0")/.."
. tools/environment.sh
[ -x .venv/bin/pytest ] || prepare_environment test
rm -rf build/checked
mkdir -p build/checked
# what git knows or would know, with changes that are not committed yet; files that were removed are passed over
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read --files-from=- -cf - | tar -xf - -C build/checked
python="$PWD/.venv/bin/python"
cd build/checked
HIL_DEBUG_KERNELS=1 "$python" setup.py --quiet build_ext --inplace -j"$(nproc)" >../log-checked.txt 2>&1 || {
    tail -n 40 ../log-checked.txt >&2
    stop "The checked kernels did not build; all of the compiler's output is in build/log-checked.txt."
}
# PYTHONPATH: workers and processes started by a test take the modules of the copy, too
PYTHONPATH="$PWD" "$python" -c 'import os, rt_kernels.ring as m; assert m.__file__.startswith(os.getcwd()), m.__file__'
if [ $# -eq 0 ]; then
    for folder in algebra contact contracts dynamics mechanisms multibody model offline safety stewart forward_kinematics \
        setpoint_kinematics events guidance compensation wrench drivers loop; do
        set -- "$@" "tests/$folder"
    done
fi
# the steps are slower with the checks: a test may take longer than in the fast build
PYTHONPATH="$PWD" exec "$python" -m pytest -n auto --dist loadfile --timeout 600 "$@"
