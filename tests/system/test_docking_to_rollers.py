"""The detailed unit on the docking stand, over its wires, as far as the rollers of its alignment levers: against the same docking in
orbit, and with the unit's own channels in its log."""

import numpy as np
import pytest

from drivers.simulated.unit_channels import NOT_MEASURED
from hil_server.config import load_test
from hil_server.judge.run import Run
from hil_server.line import assembly
from hil_server.line.free_run import blocks
from hil_server.log.reader import read_log
from hil_server.report import unit_course
from hil_server.run.replay import replay
from hil_server.world.flight import fly

NO_BUS = [f"telemetry.{key}=''" for key in ("publish", "command", "hand_controller")]
IN_ORBIT = ["test.stand=stands/ideal_stand.toml", "compensation.part=none"]


def rollers_of(names):
    return [i for i, name in enumerate(names) if name.startswith("probe.roller") and name.endswith("_force")]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    flight = fly(load_test("docking_to_rollers", NO_BUS), 1, tmp_path_factory.mktemp("rollers"), force=True)
    assert flight.error is None and flight.left == [] and flight.summary["complete"]
    assert flight.summary["end"] == "region" and flight.summary["exit_code"] == 0 and not flight.summary["faults"]
    return read_log(flight.log)


def test_it_is_the_docking_in_orbit(log):
    orbit = assembly.simulation(load_test("docking_to_rollers", IN_ORBIT))
    rollers, peak, touched = rollers_of([name for name, *_ in orbit.line.aux_channels]), 0.0, None
    for block in blocks(orbit):
        peak = max(peak, np.abs(block["F_T"][:, 0]).max())
        on = block["aux"][:, rollers].any(axis=1)
        if touched is None and on.any():
            touched = 1e-9 * block["time_ns"][on.argmax()] - block["first_contact_time"][on.argmax()]
    last = block[-1]
    r, ours = log.records, rollers_of(log.aux_names)
    first = int(r["aux"][:, ours].any(axis=1).argmax())
    assert touched is not None and r["aux"][first, ours].any()
    contact = float(r["first_contact_time"][-1])
    assert log.time_s[first] - contact == pytest.approx(touched, rel=0.01)
    assert r["capture_time"][-1] - contact == pytest.approx(float(last["capture_time"] - last["first_contact_time"]), rel=0.02)
    assert np.abs(r["F_T"][:, 0]).max() == pytest.approx(peak, rel=0.05) and peak > 2000.0


def test_its_unit_is_drawn_as_not_measured(log):
    of_unit = [channel for channel in log.header.aux if channel.name.startswith("probe.")]
    assert len(of_unit) > 300 and all(channel.meaning.startswith(NOT_MEASURED) for channel in of_unit)
    drawn = {plot.title: plot for plot in unit_course.state(Run(log))}
    assert {plot.note for plot in drawn.values()} == {NOT_MEASURED}
    # the drive takes the probe in by 150 mm before the rollers come
    assert drawn["travel of probe and limiter, mm"].values.min() == pytest.approx(-150.0, abs=5.0)
    assert "rollers on the cone, N" in drawn and "movable limiter on the body, mm" not in drawn


def test_its_log_replays(tmp_path):
    short = fly(load_test("docking_to_rollers", [*NO_BUS, "test.duration_max_s=4.0"]), 1, tmp_path, force=True)
    assert np.isfinite(read_log(short.log).records["aux"]).all() and replay(short.log, verify=True)["equal"]
