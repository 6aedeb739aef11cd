#!/bin/sh
# Sets everything up in .venv and performs two docking tests. The first is seen as soon as the kernels that it needs are built: a
# simulation of the detailed probe-cone unit. The second, when all are: live at 1 kHz, over the real wire protocols of the virtual stand.
# Arguments go to the second.
set -eu
cd "$(dirname "$0")/.."
. tools/environment.sh
if [ ! -e build/kernels ]; then
    prepare_environment "" first
    echo "The first docking, simulated:"
    .venv/bin/hil-server simulate virtual_docking_ship --out runs/first
    echo
    echo "Look at it while the rest is built: runs/first/run.html"
fi
prepare_environment console
echo "A docking live, on the virtual stand (half a minute at 1 kHz):"
.venv/bin/hil-server run --out runs/demo --json runs/demo.json "$@"
echo
echo "Summary for machines: runs/demo.json    All runs, tick by tick: .venv/bin/hil-server console --logs runs"
