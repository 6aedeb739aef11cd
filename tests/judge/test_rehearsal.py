"""Score sheet of a berthing attempt against what was put into the log, and the trend of several."""

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.cli import main
from hil_server.judge.rehearsal import is_rehearsal, oscillation, reversals, score_sheet, trend
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.report.run_page import page
from rt_kernels.layout import CODES

CLOSED, TOUCH, CAPTURE, END = 2.0, 30.0, 34.0, 36.0
ANGLES = {"yaw": 1.5, "pitch": -0.8, "roll": 0.4}
CONFIGURATION = """[test]
name = "practice"
operator = "{operator}"
[guidance]
part = "berthing"
rotation_from = "right"
[dynamics]
part = "two_bodies"
"""
AUX = (("arm_wrench_E", "N,N.m", "load", 6),)


def attempt(lateral=0.03, captured=True, force=400.0):
    """A flight of 34 s at 100 Hz: the left stick forward for 20 s at half, then right and left; one Step, one load beyond the limit."""
    t = np.arange(round(100 * END)) * 0.01
    r = np.zeros(len(t), record_dtype(6))
    r["tick"], r["time_ns"], r["periods"], r["trip_tick"] = np.arange(len(t)), np.arange(len(t)) * 10_000_000, 1, -1
    flown = (t >= CLOSED) & (t < END - 1.0)
    r["motion"] = np.where(flown, CODES["motion"]["free"], CODES["motion"]["follow_profile"])
    r["phase"] = np.where(flown, CODES["phase"]["contact"], CODES["phase"]["finish"])
    r["X_TA"][:, 0], r["X_TA"][:, 1], r["X_TA"][:, 2] = -0.5 + 0.01 * t, lateral, 0.04
    r["X_TA"][:, 3:] = Rotation.from_euler("YZX", list(ANGLES.values()), degrees=True).as_quat()
    r["V_TA"][:] = [0.012, 0.003, -0.004, 0.0, 0.0, np.radians(0.05)]
    stick = np.zeros((len(t), 12))
    stick[(t >= 5.0) & (t < 25.0), 0] = 0.5
    stick[(t >= 26.0) & (t < 27.0), 1] = 1.0
    stick[(t >= 28.0) & (t < 29.0), 1] = -1.0
    stick[(t >= 10.0) & (t < 14.0), 10] = -0.25
    stick[t < 1.0, 0] = 1.0  # before the loop is closed: not counted
    r["hand_axis"] = stick
    r["operator_rate"][:, 0] = 0.019 * stick[:, 0] * flown
    r["supervisory"][(t >= 15.0) & (t < 17.0)] = CODES["supervisory"]["step"]
    r["supervisory"][t >= 17.0] = CODES["supervisory"]["aborted"]
    r["dynamics_status"][(t >= 31.0) & (t < 31.5)] = 64
    r["F_T"][(t >= TOUCH) & flown, 0] = -force
    r["F_T"][t >= END - 0.5, 0] = -9000.0  # after the flight
    r["aux"][(t >= TOUCH) & flown] = [300.0, 0, 0, 0, 400.0, 300.0]
    r["first_contact_time"] = np.where(t >= TOUCH, TOUCH, -1.0)
    r["capture_time"] = np.where((t >= CAPTURE) & captured, CAPTURE, -1.0)
    r["end_cause"][-1] = CODES["end_cause"]["captured" if captured else "time"]
    return r


@pytest.fixture(scope="module")
def logs(write_run):
    def make(name, operator, created, **keys):
        header = {"configuration": {"configuration.toml": CONFIGURATION.format(operator=operator)}, "aux": AUX, "period_ns": 10_000_000}
        return write_run(attempt(**keys), name, created=created, **header)

    first = make("first", "Ada", 100.0, lateral=0.05, captured=False)
    return [make("second", "Ada", 200.0, lateral=0.01), first, make("other", "Bo", 150.0)]


def test_figures_of_one_attempt(logs):
    sheet = score_sheet(Run(read_log(logs[0])))
    assert (sheet["operator"], sheet["test"], sheet["end"], sheet["captured"]) == ("Ada", "practice", "captured", True)
    assert sheet["time_to_capture_s"] == pytest.approx(CAPTURE - CLOSED) and sheet["first_contact_s"] == pytest.approx(TOUCH - CLOSED)
    assert sheet["lateral_miss_m"] == pytest.approx(np.hypot(0.01, 0.04))
    for name, value in ANGLES.items():
        assert sheet[f"{name}_miss_deg"] == pytest.approx(value)
    assert sheet["closing_speed_m_s"] == pytest.approx(0.012) and sheet["lateral_speed_m_s"] == pytest.approx(0.005)
    assert sheet["turn_rate_deg_s"] == pytest.approx(0.05)
    assert sheet["peak_contact_force_n"] == 400.0, "only while the loop was closed"
    assert (sheet["peak_load_force_n"], sheet["peak_load_moment_n_m"]) == (300.0, 500.0)
    assert sheet["stick_translation_s"] == pytest.approx(20 * 0.5 + 2.0) and sheet["stick_rotation_s"] == pytest.approx(1.0)
    assert sheet["commanded_m"] == pytest.approx(0.019 * 10.0)
    assert sheet["overshoots"] == 1 and sheet["commands"] == 1
    assert sheet["stops"] == 2 and sheet["stopped_by"]["overload"] == sheet["stopped_by"]["aborted"] == 1


def test_overshoots_are_changes_of_side():
    assert reversals(np.array([[0, 1, 1, 0, 0, 1, -1, 0, -1, 1]]).T) == 2
    assert reversals(np.array([[1.0, -1.0], [0.0, 0.0], [-0.2, -1.0]])) == 1
    assert reversals(np.zeros((5, 3))) == 0


def test_oscillation_is_what_a_stick_keeps_up():
    t = np.arange(0.0, 120.0, 0.02)
    cycle = 0.4 * np.sin(2 * np.pi * 0.13 * t)
    assert oscillation(t, cycle[:, None]) == pytest.approx(0.4, rel=0.05)
    assert oscillation(t, np.column_stack([0.0 * t, cycle * (t > 70.0)])) == pytest.approx(0.4, rel=0.05), "of any axis, at any time"
    assert oscillation(t[t < 39.0], cycle[t < 39.0, None]) == 0.0, "not kept up for two windows"
    # a step, its return by and by, and a hand that trembles
    step = np.where(t > 40.0, np.exp(-(t - 40.0) / 8.0), 0.0) + 0.02 * np.sin(2 * np.pi * 1.5 * t)
    assert oscillation(t, step[:, None]) < 0.1
    assert oscillation(np.zeros(0), np.zeros((0, 6))) == 0.0


def test_trend_is_by_operator_and_in_the_order_of_flight(logs):
    by_operator = trend([score_sheet(Run(read_log(path))) for path in logs])
    assert list(by_operator) == ["Ada", "Bo"]
    assert [s["run"] for s in by_operator["Ada"]] == ["first", "second"]


def test_report_shows_the_score_sheet(logs, bounce_log):
    text = page(Run(read_log(logs[0])))
    assert "Score sheet" in text and "overshoots" in text and "Ada" in text and text.count("<canvas") >= 10
    assert not is_rehearsal(Run(bounce_log)) and "Score sheet" not in page(Run(bounce_log))


def test_verb_writes_table_and_page(logs, tmp_path, capsys, bounce):
    out = tmp_path / "page.html"
    assert main(["rehearsal", *map(str, logs), "--out", str(out), "--json", str(tmp_path / "r.json")]) == 0
    reported = capsys.readouterr().out
    assert "operator Ada: 1 of 2 captured" in reported and "operator Bo: 1 of 1 captured" in reported
    text = out.read_text()
    assert text.count("<img") == 2 and not re.search(r"https?://|<script src", text)
    assert [s["run"] for s in json.loads((tmp_path / "r.json").read_text())["attempts"]] == ["second", "first", "other"]
    assert main(["rehearsal", str(bounce)]) == 2 and "not a berthing run" in capsys.readouterr().err
