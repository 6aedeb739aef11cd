"""The emulated EtherCAT line on a veth pair in a namespace: brought to OP by masters of others, with faults, under nonsense."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAME = "HIL emulated servo drive"


def in_namespace(program: str, *arguments: str) -> dict[str, Any]:
    """What a program of `peers` says at its end, run in a network namespace of its own. Skips where there can be none."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("no unshare or ip")
    probe = "unshare -rn ip link add p0 type veth peer name p1"
    if (tried := subprocess.run(probe.split(), capture_output=True, text=True)).returncode:
        pytest.skip(f"no network namespace with a veth pair: {tried.stderr.strip()}")
    command = ["unshare", "-rn", sys.executable, str(ROOT / "tests/drivers/peers" / program), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # the masters have short time-outs of their own: a machine that holds the line up for longer gives them another try
    for _ in range(3):
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)
        if run.returncode == 0:
            break
    assert run.returncode == 0, run.stderr
    # libraries print too, when they please
    return dict(json.loads(next(line for line in reversed(run.stdout.splitlines()) if line.startswith("{"))))


def seen_by(library: str) -> dict[str, Any]:
    """What `library` saw of two drives, which are at its end as it left them."""
    pytest.importorskip(library)
    reported = in_namespace("ethercat_masters.py", library)
    assert reported.pop("drives") == [{"al_state": 8, "al_code": 0, "status": 0x1237, "target": 100, "actual": 100}] * 2
    return reported


@pytest.mark.alone
def test_pysoem_brings_two_drives_to_operation_enabled_with_distributed_clocks() -> None:
    seen = seen_by("pysoem")
    # the cable between them, from the port times of a clock that is slow by 20 ppm, in whole nanoseconds, and halved
    assert seen.pop("delay_ns") in ([0, 699], [0, 700])
    assert seen == {
        "found": 2,
        "dc": True,
        "identity": [0xDAC, 0x402, 1],
        "op from preop": [0x12, 0x11],  # AL state with the error bit, status code
        "short outputs": [0x12, 0x1D],
        "safeop": 4,
        "bytes": [[9, 17], [9, 17]],  # with torque offset and following error, which it mapped itself
        "wkc": 6,
        "states": [8, 8],
        "status": [0x1237, 0x1237],
        "position": [100, 100],
        "sync0_ns": [1_000_000, 1_000_000],
        "name": NAME,
        "window": 4321,
        "aborts": [0x06020000, 0x06090011, 0x06010002, 0x06090030, 0x08000022],
    }


@pytest.mark.alone
def test_kickcat_brings_two_drives_to_operation_enabled() -> None:
    assert seen_by("kickcat") == {
        "found": 2,
        "bytes": [[7, 13], [7, 13]],
        "states": [8, 8],
        "status": [0x1237, 0x1237],
        "position": [100, 100],
        "serial": [0, 2],  # 0: success
        "name": [0, NAME],
        "write": 0,
        "window": [0, 4321],
    }


@pytest.mark.alone
def test_nonsense_from_a_master_does_not_stop_the_served_stand() -> None:
    reported = in_namespace("ethercat_nonsense.py")
    assert reported["slaves"] == 6
    assert reported["frames"] > 1000  # of 2000 damaged ones those that are EtherCAT still


@pytest.mark.alone
def test_faults_of_the_line_as_a_raw_socket_sees_them() -> None:
    reported = in_namespace("ethercat_faults.py")
    for name, rate in (("clock", 1.0), ("clock_drift", 1.5)):
        low, high = reported.pop(name)
        assert low - 0.01 < rate < high + 0.01
    assert reported == {
        "none": [8, 6, 6],  # answers to 8 frames; working counters of all inputs, of a read by all
        "frames_lost": 9,  # every fourth of 12
        "frames_doubled": 18,  # every second of 12
        "frames_late": True,
        "cable_cut": 0,
        "slave_lost": [2, 2],  # the third and all behind it
        "working_counter": [6, 5],  # one answers, but not with its inputs
        "al_error": [[4, 0], [0x14, 0x1B]],  # AL status and code of its neighbour and of itself
        "after": [8, 6, 6],
    }
