"""Joints, measured points and interfaces of the crafts in summary and report, of a run whose every number is known."""

import json

import numpy as np
import pytest

from hil_server.judge.crafts import names_in
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.report.run_page import page

NOTES = [
    "dynamics: dynamics: joints active shoulder, target wing",
    "dynamics: sensors active tip",
    "dynamics: interfaces target root, target end",
]
# more room than names, as the channels of a part have it
AUX = (("joint_position", "rad,m", "-", 4), ("joint_rate", "rad/s,m/s", "-", 4), ("joint_torque", "N.m,N", "-", 4),
       ("sensor_acceleration", "m/s2", "-", 6), ("interface_wrench", "N,N.m", "-", 18))  # fmt: skip
SIZES = np.cumsum([0, *(count for *_, count in AUX)])
AT = {name: slice(SIZES[i], SIZES[i + 1]) for i, (name, *_) in enumerate(AUX)}


@pytest.fixture
def moving(write_run, make_bounce):
    """A log with peaks at known ticks; beyond the names the channels hold what no one may show."""
    plain = make_bounce()
    records = np.zeros(len(plain), record_dtype(int(SIZES[-1])))
    for name in plain.dtype.names:
        if name != "aux":
            records[name] = plain[name]
    aux = records["aux"]
    aux[:] = 1e9
    n = len(records)
    aux[:, AT["joint_position"]][:, :2] = np.stack([np.linspace(-0.5, 0.25, n), np.zeros(n)], axis=1)
    for channel, width in (("joint_rate", 2), ("joint_torque", 2), ("sensor_acceleration", 3), ("interface_wrench", 12)):
        aux[:, AT[channel]][:, :width] = 0.0
    aux[700, AT["joint_rate"]][:2] = [-3.0, 0.5]
    aux[800, AT["joint_torque"]][:2] = [40.0, -70.0]
    aux[900, AT["sensor_acceleration"]][:3] = [2.0, -3.0, 6.0]
    aux[1000, AT["interface_wrench"]][6:12] = [30.0, 0.0, -40.0, 0.0, 5.0, 12.0]
    aux[1100, AT["interface_wrench"]][3] = np.nan
    aux[1200, AT["interface_wrench"]][3] = -8.0
    return read_log(write_run(records, "moving", aux=AUX, notes=[*NOTES, "flown by hand"]))


def test_names_of_the_notes():
    assert names_in(NOTES) == {"joints": ("active shoulder", "target wing"), "sensors": ("active tip",),
                               "interfaces": ("target root", "target end")}  # fmt: skip
    assert names_in(["dynamics: stage taken: two_bodies", "guidance: joints a", "joints a, b"]) == {}


def test_peaks_by_name_and_time(moving):
    s = summarise(Run(moving))
    crafts = s.crafts
    assert json.loads(json.dumps(s.as_json(), allow_nan=False))["crafts"] == crafts
    shoulder, wing = crafts["joints"]
    assert shoulder.pop("rate_time_s") == pytest.approx(0.7) and shoulder.pop("torque_time_s") == pytest.approx(0.8)
    assert shoulder == {"name": "active shoulder", "position_min": -0.5, "position_max": 0.25, "rate_peak": -3.0, "torque_peak": 40.0}
    assert (wing["name"], wing["rate_peak"], wing["torque_peak"], wing["position_max"]) == ("target wing", 0.5, -70.0, 0.0)
    assert crafts["sensors"] == [{"name": "active tip", "acceleration_peak_m_s2": 7.0, "acceleration_time_s": pytest.approx(0.9)}]
    root, end = crafts["interfaces"]
    assert (root["moment_peak_n_m"], root["moment_time_s"]) == (8.0, pytest.approx(1.2))  # the broken number before it is passed over
    assert (end["force_peak_n"], end["force_time_s"], end["moment_peak_n_m"], end["moment_time_s"]) == (50.0, 1.0, 13.0, 1.0)


def test_report_shows_them_with_a_picture(moving, bounce_log):
    text, without = page(Run(moving)), page(Run(bounce_log))
    for words in ("Loads and motion within the crafts", "active shoulder", "target wing", "active tip", "target root", "m/s²", "-70"):
        assert words in text and words not in without
    assert text.count("<canvas") >= without.count("<canvas") + 6
    assert '<p class="banner">flown by hand</p>' in text and "joints active" not in text  # names are no message for people
    assert "1e+09" not in text and "1000000000" not in text


def test_a_run_without_such_channels_has_none(bounce_log, write_run, make_bounce):
    assert summarise(Run(bounce_log)).crafts is None
    # names without channels: an old or damaged log
    crafts = summarise(Run(read_log(write_run(make_bounce(), notes=NOTES)))).crafts
    assert crafts["joints"] == [{"name": "active shoulder"}, {"name": "target wing"}]
    assert "active shoulder" in page(Run(read_log(write_run(make_bounce(), notes=NOTES))))
