#!/bin/sh
# Verifies a log under user-mode emulation of two other processors: one without FMA and AVX (Nehalem), one with both (Haswell).
# Usage: tools/verify_under_qemu.sh LOG [python]     Needs Debian's package qemu-user.
set -eu
cd "$(dirname "$0")/.."
log=$1
python=${2:-.venv/bin/python}
command -v qemu-x86_64 >/dev/null || { echo "qemu-x86_64 is missing: apt-get install qemu-user"; exit 2; }
real=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
paths=$("$python" -c 'import os, sys; print(os.pathsep.join([os.getcwd(), *filter(None, sys.path)]))')
for cpu in Nehalem Haswell; do
    echo "== $cpu"
    PYTHONPATH=$paths QEMU_CPU=$cpu OPENBLAS_NUM_THREADS=1 qemu-x86_64 -cpu "$cpu" "$real" -m hil_server replay "$log" --verify
done
