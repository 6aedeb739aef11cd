"""The served stand with its drives on EtherCAT: what its configuration refuses, and one live run with a fault of the line, by the tool that
prints them all."""

import subprocess
import sys
from pathlib import Path

import pytest

from drivers.simulated.injections import ETHERCAT, wire_fault
from drivers.simulated.stand_server import complete
from tests.drivers.drives.test_ethercat_wire import refusal

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("drives", "words"),
    [({"wire": "tram"}, "drives.wire = 'tram': must be can or ethercat"),
     ({"wire": "ethercat"}, "needs drives.interface"),
     ({"wire": "ethercat", "interface": "a1", "master_interface": "a0", "profile": "cia408"}, "profile cia402")],
)  # fmt: skip
def test_a_wire_that_cannot_be_is_refused(drives, words):
    with pytest.raises(ValueError, match=words):
        complete({"drives": drives})


def test_faults_of_the_line_have_numbers_and_defaults():
    assert [wire_fault(fault.name, None, "net_ft") for fault in ETHERCAT] == [(fault.number, fault.value) for fault in ETHERCAT]
    assert wire_fault("clock_drift", -20.0, "net_ft") == (107, -20.0)


@pytest.mark.skipif(bool(why := refusal()), reason=f"no veth pair in a namespace of one's own: {why}")
def test_a_slave_that_leaves_its_state_trips_a_live_run():
    """Six emulated drives, the session, the log and its replay; status bits and fault of `al_error`."""
    done = subprocess.run([sys.executable, "tools/ethercat_docking.py", "--faults", "al_error"], cwd=ROOT, capture_output=True, text=True,
                          timeout=240)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    row = done.stdout.splitlines()[-1]
    assert row.startswith("ok  al_error") and "replay equal" in row
    for bit in ("bus_fault", "not_enabled", "emergency"):
        assert bit in row.partition("all bits seen")[2]
