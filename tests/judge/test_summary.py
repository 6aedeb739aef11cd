"""Figures of a run whose every number is known."""

import json

import numpy as np
import pytest

from hil_server.judge.rebound import not_measured
from hil_server.judge.run import Run
from hil_server.judge.summary import microseconds, summarise
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES, FAULTS

MASS, SPEED, STIFFNESS, RESTITUTION = 1000.0, 0.2, 4.0e5, 0.9
BIT = {name: bit for name, bit, *_ in FAULTS}
CONTRACT = {"end", "exit_code", "captured", "capture_time_s", "ticks", "missed", "overflow", "lateness_us", "compute_us"}
CONTRACT |= {"peak_wrench", "faults", "log"}


def test_keys_of_the_contract_and_json(bounce_log):
    summary = summarise(Run(bounce_log)).as_json()
    assert CONTRACT <= set(summary)
    assert {"p50", "p99", "p999", "max"} <= set(summary["lateness_us"]) & set(summary["compute_us"])
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_captured_run(bounce_log):
    s = summarise(Run(bounce_log))
    assert (s.end, s.exit_code, s.captured, s.ticks, s.missed) == ("captured", 0, True, 4000, 0)
    assert s.capture_time_s == 2.0 and s.first_contact_time_s == 1.0 and s.faults == [] and s.complete
    assert s.peak_wrench["fx_n"] == pytest.approx(-SPEED * np.sqrt(MASS * STIFFNESS), rel=1e-3)
    assert s.peak_wrench["my_n_m"] == pytest.approx(0.1 * s.peak_wrench["fx_n"]) and s.peak_wrench["fy_n"] == 0.0
    assert s.stroke_margin_min_m == pytest.approx(0.4 - 0.05 * 3.999) and s.following_error_max_m == 0.0005
    assert s.lateness_us["p50"] == 20.0 and s.compute_us["max"] == 5.0 and s.margin_us["min"] == 960.0


def test_rebound_and_energy_of_every_contact(bounce_log):
    first, second = summarise(Run(bounce_log)).contacts
    assert first["begin_s"] == 1.0 and first["duration_s"] == pytest.approx(np.pi * np.sqrt(MASS / STIFFNESS), abs=2e-3)
    assert first["rebound"] == pytest.approx(RESTITUTION, rel=1e-12) and first["rebound_note"] == ""
    assert first["energy_ratio"] == pytest.approx(RESTITUTION**2, rel=1e-12)
    assert first["energy_before_j"] == pytest.approx(0.5 * MASS * SPEED**2) and first["work_j"] == -3.0
    assert first["energy_ratio_of_contact"] == pytest.approx(1.0 - 3.0 / 20.0)
    assert (first["axial_speed_before_m_s"], first["axial_speed_after_m_s"]) == (-SPEED, pytest.approx(SPEED * RESTITUTION))
    assert not second["ended"] and second["energy_after_j"] is None and second["rebound"] is None
    assert second["energy_ratio"] is None and second["energy_ratio_of_contact"] is None


def test_what_is_held_is_no_rebound(write_run, make_bounce):
    latched, inwards = make_bounce(), make_bounce()
    latched["capture_time"] = np.where(latched["time_ns"] >= 1_010_000_000, 1.01, -1.0)
    inwards["V_TA"][inwards["contact"] == 0, 0] = -SPEED
    rebounds = [summarise(Run(read_log(write_run(records)))).contacts[0]["rebound"] for records in (make_bounce(), latched, inwards)]
    assert rebounds == [pytest.approx(RESTITUTION), None, None]


def test_tripped_run(trip_log):
    s = summarise(Run(trip_log))
    assert (s.end, s.exit_code, s.trip_tick, s.missed) == ("tripped", 3, 1020, 2)
    assert s.faults == ["force_limit"] and s.notes_raised == ["drive_limit_touched"]
    (detail,) = s.fault_details
    assert detail["tick"] == 1020 and detail["severity"] == "stop" and "software limit" in detail["meaning"] and detail["action"]
    assert s.late_causes == {"wake_up": 1, "compute": 0, "io": 2} and s.lateness_us["max"] == 2500.0
    assert s.margin_us["min"] == 1000.0 - 2500.0 - 20.0
    assert s.clipped_ticks == {"length": 0, "rate": 1, "acceleration": 3}


def test_facts_of_the_server_take_precedence(write_run, make_bounce):
    log = read_log(write_run(make_bounce(), facts={"end": "stopped", "exit_code": 4, "overflow": 7}))
    s = summarise(Run(log))
    assert (s.end, s.exit_code, s.overflow) == ("stopped", 4, 7)


def test_unfinished_and_empty_runs(write_run, make_bounce):
    running = make_bounce(seconds=0.5)
    running["end_cause"] = 0
    assert summarise(Run(read_log(write_run(running)))).end == "stopped"
    s = summarise(Run(read_log(write_run(running[:0]))))
    assert s.ticks == 0 and s.contacts == [] and not s.captured and json.dumps(s.as_json(), allow_nan=False)


def test_percentiles():
    us = microseconds(np.arange(100_001) * 1000)
    assert us == {"p50": 50_000.0, "p99": 99_000.0, "p999": pytest.approx(99_900.0), "p9999": pytest.approx(99_990.0), "max": 100_000.0}


def test_notes_are_no_faults(write_run, make_bounce):
    """One clipped tick in a good run: noted, and neither a fault nor a cause."""
    records = make_bounce()
    records["faults"][1500:] |= BIT["acceleration_limit"]
    s = summarise(Run(read_log(write_run(records))))
    assert s.faults == [] and s.fault_details == [] and s.cause is None
    assert s.notes_raised == ["acceleration_limit"] and s.note_details[0]["tick"] == 1500


def test_first_cause_comes_first(write_run, make_bounce):
    """Faults in order of their ticks, whatever their bits; within a tick what stops before what is noted."""
    records = make_bounce()
    for name, tick in (("operator_stop", 1300), ("following_error", 1200), ("sensor_no_data", 1250), ("tare_drift", 1200)):
        records["faults"][tick:] |= BIT[name]
    s = summarise(Run(read_log(write_run(records))))
    assert s.faults == ["following_error", "sensor_no_data", "operator_stop"]
    assert [f["tick"] for f in s.fault_details] == [1200, 1250, 1300] and s.fault_details[0]["time_s"] == pytest.approx(1.2)
    assert s.cause["text"].startswith("following_error: a leg") and s.cause["tick"] == 1200


@pytest.mark.parametrize(("periods", "gap", "fault", "named"), [
    (35, 3, "sensor_no_data", True), (35, 3, "force_limit", False), (2, 3, "sensor_no_data", False), (35, 800, "sensor_no_data", False),
    (120, 0, "loop_overrun", True),
])  # fmt: skip
def test_host_that_stood_still_is_the_cause_of_device_faults(write_run, make_bounce, periods, gap, fault, named):
    """Periods missed at tick 600, device faults just after: the host, not four devices. A load is no consequence of it, nor is a fault
    long after it, nor one of a single period."""
    records = make_bounce()
    records["periods"][600], records["late_cause"][600] = periods, CODES["late_cause"]["wake_up"]
    for i, name in enumerate((fault, "drive_no_data", "signals_no_data")):
        records["faults"][600 + gap + i :] |= BIT[name]
    s = summarise(Run(read_log(write_run(records))))
    assert s.faults[0] == fault
    assert s.cause["text"].startswith("host too busy") == named
    if named:
        assert f"{periods - 1} periods" in s.cause["text"] and "wake-up" in s.cause["text"] and s.cause["tick"] == 600
        assert "drive_no_data" in s.cause["text"]


def test_cause_faults_and_notes_on_the_screen(write_run, make_bounce, capsys):
    from hil_server.terminal.outcome import print_summary

    records = make_bounce()
    records["faults"][700:] |= BIT["acceleration_limit"]
    records["faults"][1200:] |= BIT["force_limit"]
    print_summary(summarise(Run(read_log(write_run(records)))).as_json())
    reported = capsys.readouterr().out
    assert "cause     force_limit: a force component" in reported and "(tick 1200, 1.200 s)" in reported
    assert "faults    force_limit (tick 1200, 1.200 s)\n" in reported and "notes     acceleration_limit (tick 700, 0.700 s)\n" in reported
    print_summary(summarise(Run(read_log(write_run(make_bounce())))).as_json())
    reported = capsys.readouterr().out
    assert "faults    none" in reported and "cause" not in reported and "notes" not in reported
    assert f"contact   at 1.000 s: e measured {RESTITUTION:.4f}" in reported
    assert "contact   1 without e, no force was measured: at 2.000 s" in reported


def test_contacts_without_a_restitution_are_a_line_for_each_reason(write_run, make_bounce):
    """Of ninety contacts: not ninety lines."""
    rows = [{"begin_s": 0.5 * i, "rebound": 0.9 if i == 3 else None, "rebound_note": ""} for i in range(90)]
    for i, row in enumerate(rows):
        row["rebound_note"] = "" if i == 3 else "a graze" if i % 2 else f"the force's noise, {0.1 * i:.2g} N, hides its ends"
    assert not_measured(rows) == [
        "45 without e, the force's noise, 0 N, hides its ends: at 0.000, 1.000, 2.000, 3.000 ... s",
        "44 without e, a graze: at 0.500, 2.500, 3.500, 4.500 ... s",
    ]
    assert not_measured(rows[3:4]) == []


def test_grazes_and_passages_have_no_ratios(write_run, make_bounce):
    """Along the surface, slower than anything can be told, or on through it: no restitution and no ratio, and the reason."""
    graze, through = make_bounce(), make_bounce()
    graze["V_TA"][:, 0] *= 1e-4
    through["V_TA"][through["contact"] == 0, 0] = -SPEED
    for records, why in ((graze, "a graze"), (through, "not measurable: the bodies do not separate")):
        contact = summarise(Run(read_log(write_run(records)))).contacts[0]
        assert (contact["rebound"], contact["energy_ratio"], contact["energy_ratio_of_contact"]) == (None, None, None)
        assert contact["rebound_note"] == why and contact["peak_force_n"] > 0.0
