"""The whole EtherCAT port on a wire: a veth pair in a network namespace of the test's own, pysoem, six small slaves in another process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INSIDE = """
import json, subprocess, sys, time
import numpy as np
from drivers.drives.cia402_ethercat import Cia402EthercatPort
from drivers.identity import WrongDeviceError
from drivers.raw_frames import ethercat_link
from rt_kernels.layout import SAMPLE_DTYPE

for command in ("ip link add v0 type veth peer name v1", "ip link set v0 up", "ip link set v1 up"):
    subprocess.run(command.split(), check=True)
slaves = subprocess.Popen([sys.executable, "-m", "tests.drivers.peers.ethercat_segment_small", "v1", "6"], stdout=subprocess.PIPE)
try:
    slaves.stdout.readline()
    keys = {"watchdog_ms": 1000.0, "zero_m": [1.0] * 6, "timeout_s": 20.0, "clock_tolerance_ns": 1000000}
    found = {"findings": [f[:2] for f in ethercat_link.findings("v0")]}
    there = {"vendor": 0x9A, "product": 0x924, "revision": 0, "serial": 0}
    try:
        Cia402EthercatPort(interface="v0", identity=[there | {"vendor": 1}] * 6, **keys).open()
    except WrongDeviceError as error:
        found["stranger"] = str(error)
    port = Cia402EthercatPort(interface="v0", identity=[there | {"serial": n + 1} for n in range(6)], no_data_periods=1000, **keys)
    port.open()
    port.begin()
    found["words"] = [port.axes.inputs(i) for i in range(6)]
    found["counters"] = port.axes.working_counters
    sample, aux = np.zeros(1, SAMPLE_DTYPE), np.zeros(7)
    for k in range(300):
        port.read(sample, aux)
        sample["safety_state"] = 1
        sample["leg_setpoint"] = 1.0 + 1e-6 * (1000 + min(k, 200) * np.arange(1, 7))
        port.write(sample, aux)
        time.sleep(0.001)
    found["legs"] = sample["measured_leg"][0].tolist()
    found["device"] = sample["drive_device_status"][0].tolist()
    found["al"], found["wkc"] = aux[4], aux[3]
    found["sums"] = port.counters()
    port.close()
    found["problems"] = port.close_problems
    port.open()  # and once more
    port.close()
    found["again"] = port.close_problems
    print(json.dumps(found))
finally:
    slaves.kill()
"""


def refusal():
    """Why there can be no wire of one's own here; empty when there can."""
    try:
        import pysoem  # noqa: F401
    except ImportError:
        return "pysoem is not installed"
    try:
        tried = subprocess.run(
            ["unshare", "-rn", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], capture_output=True, text=True
        )
    except OSError as error:
        return str(error)
    return tried.stderr.strip() if tried.returncode else ""


@pytest.mark.alone
@pytest.mark.skipif(bool(why := refusal()), reason=f"no veth pair in a namespace of one's own: {why}")
def test_to_operational_through_a_course_and_down_again():
    done = subprocess.run(["unshare", "-rn", sys.executable, "-c", INSIDE], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["findings"] == [["info", "EtherCAT v0 link"], ["info", "EtherCAT v0 raw sockets"]]
    assert "slave 0 on v0: identity[0].vendor is 154 at the device, 1 in the stand file" in found["stranger"]
    assert found["words"] == [[0x1237, 1000, 8]] * 6
    assert found["counters"] == [18, 6, 18, 6]
    # the drives went where the setpoints ended, counted exactly
    assert found["legs"] == pytest.approx([1.0 + 1e-6 * (1000 + 200 * n) for n in range(1, 7)], abs=1e-12)
    assert found["device"] == [0x1237] * 6 and (found["al"], found["wkc"]) == (8, 18)
    sums = found["sums"]
    assert sums["cycles"] == 300 and sums["bus_corrupt"] == sums["bus_short"] == sums["bus_doubled"] == sums["bus_not_returned"] == 0
    assert found["problems"] == found["again"] == []
