"""The emulated EtherCAT line brought to OP by a master that others wrote, over raw frames on a veth pair in a namespace."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_pysoem_brings_two_drives_to_operation_enabled() -> None:
    pytest.importorskip("pysoem")
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("no unshare or ip")
    probe = "unshare -rn ip link add p0 type veth peer name p1"
    if (tried := subprocess.run(probe.split(), capture_output=True, text=True)).returncode:
        pytest.skip(f"no network namespace with a veth pair: {tried.stderr.strip()}")
    command = ["unshare", "-rn", sys.executable, str(ROOT / "tests/drivers/peers/ethercat_masters.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {
        "found": 2,
        "dc": True,
        "safeop": 4,
        "wkc": 6,
        "states": [8, 8],
        "status": [0x1237, 0x1237],
        "position": [100, 100],
        "name": "HIL emulated servo drive",
        "abort": 0x06020000,
    }
