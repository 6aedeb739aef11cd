#!/bin/sh
# Sets everything up in .venv and performs a live docking test on the virtual stand: 1 kHz, over the real wire protocols.
set -eu
cd "$(dirname "$0")/.."
. tools/environment.sh
prepare_environment ""
.venv/bin/hil-server run --out runs/demo --json runs/demo.json "$@"
echo
echo "Summary for machines: runs/demo.json"
