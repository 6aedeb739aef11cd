#!/bin/sh
# The fuzzing under the address and undefined-behaviour sanitizers, in a copy of this checkout: tools/fuzz_sanitized.sh [FOLDER [COUNT [TARGET]]]
# The copy is built once (a quarter of an hour on two cores) and used again when FOLDER is there already. gcc with libasan and libubsan.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
copy=${1:-$(mktemp -d)/sanitized}
count=${2:-20000}
mkdir -p "$copy"
tar -C "$here" -cf - --exclude=./.git --exclude=./.venv --exclude=./build --exclude='*.so' --exclude=__pycache__ . | tar -C "$copy" -xf -
cd "$copy"
HIL_SANITIZE=1 nice "$here/.venv/bin/python" setup.py --quiet build_ext --inplace -j2
# Python itself leaks by design; a library of the interpreter's that is no part of this project is not stopped for
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:handle_segv=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
nice "$here/.venv/bin/python" -m tests.fuzz --no-limits --count "$count" ${3:+--target "$3"}
