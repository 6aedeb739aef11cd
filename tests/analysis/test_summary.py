"""Figures of a run whose every number is known."""

import json

import numpy as np
import pytest

from hil_server.analysis.summary import microseconds, summarise
from hil_server.telemetry.log_file import open_log

MASS, SPEED, STIFFNESS, RESTITUTION = 1000.0, 0.2, 4.0e5, 0.9
CONTRACT = {"end", "exit_code", "captured", "capture_time_s", "ticks", "missed", "overflow", "lateness_us", "compute_us"}
CONTRACT |= {"peak_wrench", "faults", "log"}


def test_keys_of_the_contract_and_json(bounce_log):
    summary = summarise(bounce_log)
    assert CONTRACT <= set(summary)
    assert {"p50", "p99", "p999", "max"} <= set(summary["lateness_us"]) & set(summary["compute_us"])
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_captured_run(bounce_log):
    s = summarise(bounce_log)
    assert (s["end"], s["exit_code"], s["captured"], s["ticks"], s["missed"]) == ("captured", 0, True, 4000, 0)
    assert s["capture_time_s"] == 2.0 and s["first_contact_time_s"] == 1.0 and s["faults"] == [] and s["complete"]
    assert s["peak_wrench"]["fx_N"] == pytest.approx(-SPEED * np.sqrt(MASS * STIFFNESS), rel=1e-3)
    assert s["peak_wrench"]["my_N_m"] == pytest.approx(0.1 * s["peak_wrench"]["fx_N"]) and s["peak_wrench"]["fy_N"] == 0.0
    assert s["stroke_margin_min_m"] == pytest.approx(0.4 - 0.05 * 3.999) and s["following_error_max_m"] == 0.0005
    assert s["lateness_us"]["p50"] == 20.0 and s["compute_us"]["max"] == 5.0 and s["margin_us"]["min"] == 960.0


def test_rebound_and_energy_of_every_contact(bounce_log):
    first, second = summarise(bounce_log)["contacts"]
    assert first["begin_s"] == 1.0 and first["duration_s"] == pytest.approx(np.pi * np.sqrt(MASS / STIFFNESS), abs=2e-3)
    assert first["restitution"] == pytest.approx(RESTITUTION, rel=1e-12)
    assert first["energy_ratio"] == pytest.approx(RESTITUTION**2, rel=1e-12)
    assert first["energy_before_J"] == pytest.approx(0.5 * MASS * SPEED**2) and first["work_J"] == -3.0
    assert first["energy_ratio_of_contact"] == pytest.approx(1.0 - 3.0 / 20.0)
    assert (first["axial_speed_before_m_per_s"], first["axial_speed_after_m_per_s"]) == (-SPEED, pytest.approx(SPEED * RESTITUTION))
    assert not second["ended"] and second["energy_after_J"] is None and second["restitution"] is None


def test_what_is_held_is_no_rebound(write_run, make_bounce):
    latched, inwards = make_bounce(), make_bounce()
    latched["capture_time"] = np.where(latched["time_ns"] >= 1_010_000_000, 1.01, -1.0)
    inwards["V_TA"][inwards["contact"] == 0, 0] = -SPEED
    rebounds = [summarise(open_log(write_run(records)))["contacts"][0]["rebound"] for records in (make_bounce(), latched, inwards)]
    assert rebounds == [pytest.approx(RESTITUTION), None, None]


def test_tripped_run(trip_log):
    s = summarise(trip_log)
    assert (s["end"], s["exit_code"], s["trip_tick"], s["missed"]) == ("tripped", 3, 1020, 2)
    assert s["faults"] == ["drive_limit_touched", "force_limit"]
    detail = s["fault_details"][1]
    assert detail["tick"] == 1020 and detail["severity"] == "stop" and "software limit" in detail["meaning"] and detail["action"]
    assert s["late_causes"] == {"wake_up": 1, "compute": 0, "io": 2} and s["lateness_us"]["max"] == 2500.0
    assert s["margin_us"]["min"] == 1000.0 - 2500.0 - 20.0
    assert s["clipped_ticks"] == {"length": 0, "rate": 1, "acceleration": 3}


def test_facts_of_the_server_take_precedence(write_run, make_bounce):
    log = open_log(write_run(make_bounce(), facts={"end": "stopped", "exit_code": 4, "overflow": 7}))
    s = summarise(log)
    assert (s["end"], s["exit_code"], s["overflow"]) == ("stopped", 4, 7)


def test_unfinished_and_empty_runs(write_run, make_bounce):
    running = make_bounce(seconds=0.5)
    running["end_cause"] = 0
    assert summarise(open_log(write_run(running)))["end"] == "stopped"
    s = summarise(open_log(write_run(running[:0])))
    assert s["ticks"] == 0 and s["contacts"] == [] and not s["captured"] and json.dumps(s, allow_nan=False)


def test_percentiles():
    us = microseconds(np.arange(100_001) * 1000)
    assert us == {"p50": 50_000.0, "p99": 99_000.0, "p999": pytest.approx(99_900.0), "p9999": pytest.approx(99_990.0), "max": 100_000.0}
