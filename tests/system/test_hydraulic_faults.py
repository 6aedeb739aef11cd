"""Faults of the hydraulic stand during a contact, in process: the right fault, legs inside their strokes, the platform stands within 0.2 s.

The transducers say the true lengths here. `tools/live_fault_matrix.py --hydraulic` does the same over the wires and prints figures.
"""

import numpy as np
import pytest

from drivers.simulated.injections import HYDRAULIC, IN_PROCESS
from hil_server.config import load_test
from hil_server.log.reader import read_log
from hil_server.run.replay import replay
from hil_server.run.session import Options, run_live
from rt_kernels.layout import BITS, CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

TRUE = ("stand.virtual.leg_noise_m=0.0", "stand.virtual.leg_resolution_m=0.0")
HYDRAULIC_STAND = ("test.stand=stands/hydraulic_stand.toml", *QUICK, *TRUE, "guidance.fault_s=0.6", "test.duration_max_s=5.5")
SOCKETS = ("publish", "command", "hand_controller")
STATE = CODES["safety_state"]
AT_S, STOP_TICKS = 3.13, 200  # 0.1 s after first contact
MM = 1e-3
# fault, leg, value, further settings -> fault of the trip, legs that are blocked at once
MATRIX = [
    ("supply_loss", 0, 0.05, (), "supply_pressure", ()),
    ("supply_loss", 0, 0.5, (), "supply_pressure", ()),
    ("line_burst", 0, 2e-4, (), "following_error", (0,)),
    ("valve_stuck", 2, 0.0, (), "following_error", (2,)),
    ("leg_stuck", 2, 0.0, (), "following_error", (2,)),
    ("leg_slow", 2, 0.002, ("safety.following_max_m=0.06",), "valve_saturated", ()),
    ("leg_stuck", 2, 0.0, ("stand.platform.leg_force_max_n=8000.0",), "leg_force_limit", ()),
]


def test_the_matrix_names_every_fault_of_hydraulic_legs():
    assert set(HYDRAULIC) - set(IN_PROCESS) <= {row[0] for row in MATRIX}


@pytest.mark.parametrize(("name", "leg", "value", "settings", "fault", "at_once"), MATRIX, ids=[f"{r[0]}-{r[2]:g}-{r[4]}" for r in MATRIX])
def test_fault_during_a_contact(name, leg, value, settings, fault, at_once):
    injected = f"stand.virtual.faults=[{{fault='{name}', at_s={AT_S}, index={leg}, value={value}}}]"
    r = run_line((*HYDRAULIC_STAND, *settings, injected))
    assert r["contact"][int(AT_S * 1000)] and r[-1]["trip_tick"] > AT_S * 1000
    trip = int(np.flatnonzero(r["tick"] == r[-1]["trip_tick"])[0])
    assert fault_names(r["faults"][trip]) & STOPPING == {fault}

    # legs stay inside their strokes, whatever the setpoints do
    legs = r["measured_leg"]
    assert legs.min() > 3.0 and legs.max() < 5.0

    # in 0.2 s no leg is faster than 25 mm/s any more, nor does it come further than 2 mm
    rate = (legs[trip + STOP_TICKS + 10 :] - legs[trip + STOP_TICKS : -10]) / 10e-3
    assert np.abs(rate).max() < 25 * MM
    assert np.abs(legs[trip + STOP_TICKS :] - legs[trip + STOP_TICKS]).max() < 2 * MM
    assert r[-1]["end_cause"] == CODES["end_cause"]["tripped"]

    # setpoints decelerate inside the legs' limits; then the valves are closed where the drives cannot be trusted
    assert np.abs(np.diff(r["leg_rate_setpoint"][trip:], axis=0)).max() <= 10.0 * 1e-3 + 1e-12
    blocked = r["setpoint_status"][trip] >> 24 & 0x3F
    assert blocked == sum(1 << i for i in at_once)
    assert r["safety_state"][-1] == STATE["blocked"] and r["setpoint_status"][-1] >> 24 == 0x3F
    assert all(word & BITS["drive_status"]["hydraulics_blocked"] for word in r["drive_status"][-1])
    assert fault_names(r["faults"][-1]) & {"drive_not_enabled", "drive_no_data"} == set()


def test_what_the_drives_say_before_a_fault():
    """Weight of platform and legs on six legs; a supply that the motion does not empty; no spool at its end."""
    r = run_line((*HYDRAULIC_STAND, "test.duration_max_s=1.0"))
    assert not fault_names(r[-1]["faults"]) & STOPPING
    # 2500 kg, and of each leg what its two bodies put on the platform joint: less than their 250 kg, more than the rod's 70 kg
    weight = 9.80665 * np.array([2500 + 6 * 70, 2500 + 6 * 250])
    vertical = r["leg_force"][0].sum() * 3.395 / r["measured_leg"][0].mean()
    assert weight[0] < vertical < weight[1]
    area = 6.2e-3
    # the force is that of the plant step before
    np.testing.assert_allclose(r["leg_force"], area * (r["leg_pressure_a"] - r["leg_pressure_b"]), rtol=0, atol=5.0)
    assert r["supply_pressure"].min() > 19e6 and np.abs(r["leg_valve"]).max() < 0.5 and not r["drive_status"].any()


@pytest.mark.alone
def test_supply_loss_over_the_wires(tmp_path):
    """Live, CiA 408: trip, record, replay, and where the legs truly were; how fast is the tool's matter, not of a busy machine."""
    stand = {
        "drives": {"profile": "cia408"},
        "sensor": {"variant": "axia"},
        "truth_file": str(tmp_path / "truth.npy"),
        "faults": [{"name": "supply_loss", "at_s": 1.0}],
    }
    settings = [*HYDRAULIC_STAND, "test.duration_max_s=3.0", *(f"telemetry.{socket}=tcp://127.0.0.1:*" for socket in SOCKETS)]
    summary = run_live(load_test(None, settings), Options(out=str(tmp_path), quiet=True, report=False, force=True, stand=stand))
    log = read_log(summary["log"])
    assert summary["exit_code"] == 3 and not log.incomplete
    last = log.records[-1]
    assert fault_names(last["faults"]) & STOPPING == {"supply_pressure"}
    assert last["safety_state"] == STATE["blocked"] and last["supply_pressure"] < 12e6
    assert replay(summary["log"], verify=True)["equal"]
    truth = np.load(tmp_path / "truth.npy")
    legs, twist = truth[:, 1:7], truth[:, 13:19]
    assert legs.min() > 3.0 and legs.max() < 5.0 and np.abs(twist[-1]).max() < 25 * MM
    # what the drives have reported is what they do: forces by the pressures, to their counts
    r = log.records[100:]
    assert np.abs(r["leg_force"] - 6.2e-3 * (r["leg_pressure_a"] - r["leg_pressure_b"])).max() < 100.0
