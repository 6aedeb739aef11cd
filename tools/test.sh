#!/bin/sh
# Sets up what the tests need in .venv and runs them: first those that share the machine, one process for each core and two more (many tests
# wait for a process or a wire), a file in one of them, those that take long first; then, one at a time, those marked `alone`, which need
# the machine to themselves (real-time scheduling, live processes, a browser).
#
#   sh tools/test.sh [quick] [ARGUMENT ...]    quick: a first look in two minutes; the arguments go to pytest
set -eu
cd "$(dirname "$0")/.."
. tools/environment.sh
# some hundred processes read these tests and the program: compiled once
unset PYTHONDONTWRITEBYTECODE
QUICK="test_architecture.py test_generated.py test_mirror.py test_parameters.py test_records.py test_stubs.py test_table.py test_units.py algebra compensation
config contact contracts control events forward_kinematics line loop model operator_desk requirements safety setpoint_kinematics stewart wrench"

export OPENBLAS_NUM_THREADS=1  # each core has a process already
SHARED="-n $(($(nproc) + 2)) --dist loadfile"
code=5  # pytest's, when nothing was selected
# run_tests ARGUMENT ...: its exit code counts; what is neither "passed", "failed" nor "none selected" ends the script
run_tests() {
    answer=0
    .venv/bin/python -m pytest "$@" || answer=$?
    case $answer in
        0) [ "$code" = 1 ] || code=0 ;;
        1) code=1 ;;
        5) ;;
        *) exit "$answer" ;;
    esac
}

if [ "${1:-}" = quick ]; then
    shift
    prepare_environment test
    for name in $QUICK; do set -- "$@" "tests/$name"; done
    run_tests $SHARED -m "not alone" "$@"
    exit "$code"
fi
echo "All tests take about 11 minutes on two cores, the kernels three more where they are not built; 'sh tools/test.sh quick': two minutes."
prepare_environment test
if [ $# = 0 ] && ! ls tests/__pycache__/test_architecture.*-pytest-*.pyc >/dev/null 2>&1; then
    # the first time: each core compiles its share of the tests, not every process all of them
    set -- tests/*/ tests/test_*.py
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n $(($# / $(nproc) + 1)) .venv/bin/python -m pytest --collect-only -qq -p no:cacheprovider >/dev/null || :
    set --
fi
run_tests $SHARED -m "not alone" "$@"
case "$code $*" in *1*-x*) exit 1 ;; esac
echo "The tests that need the machine to themselves, one at a time:"
[ $# -gt 0 ] || set -- $(grep -rl --include='test_*.py' 'pytest\.mark\.alone' tests)  # to collect the others takes ten seconds
run_tests -m alone "$@"
exit "$code"
