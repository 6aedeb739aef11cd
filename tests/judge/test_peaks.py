"""What a peak is worth, on courses in closed form; and the loads of the shipped programmes against their logs, read by another program."""

import json
import math
import re

import numpy as np
import pytest
from mcap.reader import make_reader

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.judge import life
from hil_server.judge.peaks import worth
from hil_server.judge.run import Run
from hil_server.log.moments import peaks_of
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES

ROS = {"float64": "<f8", "int64": "<i8", "int32": "<i4", "uint32": "<u4"}


def course(make_bounce, force):
    """A run of 4 s whose contact from 1 s on has the force (n,) along x."""
    r = make_bounce()
    r["F_T"] = 0.0
    r["F_T"][1000 : 1000 + len(force), 0] = -force
    return r


def test_a_half_sine_lasts_and_a_spike_does_not(make_bounce, write_run):
    t = 1e-3 * np.arange(201)
    half_sine = course(make_bounce, 1000.0 * np.sin(np.pi * t / 0.2))
    log = read_log(write_run(half_sine))
    found = worth(Run(log), peaks_of(log.records).headline())
    assert found["above_half_s"] == pytest.approx(2.0 / 3.0 * 0.2, abs=2e-3) and found["lasts"]
    # integral of the sine between 30 and 150 degrees; mean over 10 ms about its top
    # (a tick of half the peak more or less at either end)
    assert found["impulse_n_s"] == pytest.approx(1000.0 * 0.2 / math.pi * math.sqrt(3.0), abs=2 * 500.0 * 1e-3)
    a = math.pi * 0.005 / 0.2
    assert found["mean_n"] == pytest.approx(1000.0 * math.sin(a) / a, rel=1e-4)
    spike = np.full(201, 200.0)
    spike[100] = 1000.0
    log = read_log(write_run(course(make_bounce, spike)))
    found = worth(Run(log), peaks_of(log.records).headline())
    assert not found["lasts"] and found["mean_n"] == pytest.approx((200.0 * 9 + 1000.0) / 10, rel=1e-3)
    assert found["above_half_s"] == pytest.approx(1e-3) and "short peak" in found["text"]


@pytest.mark.parametrize(("force", "captured_s", "words"), [
    ((100.0, 40.0, 0.0), -1.0, "108 N, above"), ((-100.0, 40.0, 0.0), -1.0, "108 N (a pull), above"),
    ((-40.0, 100.0, 0.0), 1.2, "108 N, above"), ((100.0, 0.0, 0.0), 1.05, "100 N (0.05 s after the capture), above"),
    ((-100.0, 0.0, 0.0), 0.6, "100 N (a pull, 0.5 s after the capture), above")])  # fmt: skip
def test_a_peak_that_is_no_push_before_the_capture_says_what_it_is(make_bounce, write_run, force, captured_s, words):
    r = course(make_bounce, np.zeros(201))
    r["F_T"][1100, :3] = force
    if captured_s >= 0.0:
        r["capture_time"][r["time_ns"] * 1e-9 >= captured_s] = captured_s
    log = read_log(write_run(r))
    run = Run(log)
    row = max((one for one in run.peaks.rows() if one["moment"] != "stand"), key=lambda one: one["force_n"])
    assert worth(run, row)["text"].startswith(words)


def test_of_a_thinned_log_it_is_not_available(make_bounce, write_run):
    r = course(make_bounce, 1000.0 * np.sin(np.pi * np.arange(201) / 200.0))
    r["F_T"][:, 4] = 0.1 * r["F_T"][:, 0]
    keep = (r["tick"] % 20 == 0) | (r["tick"] == 1100)
    log = read_log(write_run(r[keep]))
    log.header.configuration["configuration.toml"] = "[mechanism]\nmoment_step_max_s = 0.0005\n"
    assert "needs 2000 Hz for it" in worth(Run(log), peaks_of(log.records).headline(), "moment")["text"]
    found = worth(Run(log), peaks_of(log.records).headline())
    assert found["mean_n"] is None and "1000 N" in found["text"] and "telemetry.log_every=1" in found["text"]


def test_of_a_moment_and_whether_the_tick_is_short_enough_for_it(make_bounce, write_run):
    r = course(make_bounce, np.zeros(201))
    r["F_T"][1000:1201, 4] = 40.0
    r["F_T"][1100, 3:] = (0.0, 240.0, -180.0)  # one tick of 300 N.m
    log = read_log(write_run(r))
    found = worth(Run(log), peaks_of(log.records).headline(), "moment")
    assert found["mean_n_m"] == pytest.approx((40.0 * 9 + 300.0) / 10, rel=1e-3) and not found["lasts"] and found["resolved"]
    assert found["impulse_n_m_s"] == pytest.approx(0.3) and "300 N.m, above its half for 1 ms (0.3 N.m.s)" in found["text"]
    for needed, resolved in ((0.001, True), (0.0005, False)):
        log.header.configuration["configuration.toml"] = f"[mechanism]\nmoment_step_max_s = {needed}\n"
        found = worth(Run(log), peaks_of(log.records).headline(), "moment")
        assert found["resolved"] == resolved and ("needs 2000 Hz" in found["text"]) != resolved
        assert worth(Run(log), peaks_of(log.records).headline())["resolved"]


def test_the_peaks_of_a_contact_are_sizes(make_bounce, write_run):
    r = course(make_bounce, np.full(201, 30.0))
    r["contact"][1000:1201] = 1
    r["F_T"][1100] = (-30.0, 40.0, 0.0, 0.0, 240.0, -180.0)
    contact = next(one for one in Run(read_log(write_run(r))).contacts if one["begin_s"] <= 1.1 <= one["begin_s"] + one["duration_s"])
    assert (contact["peak_force_n"], contact["peak_moment_n_m"]) == (50.0, 300.0)


# ------------------------------------------------------------------------------------------------------------ another program


def columns(path):
    """Fields of every record of a log, by the mcap library and the schema in the file; nothing of ours reads it."""
    with open(path, "rb") as file:
        found, text = [], ""
        for schema, _, message in make_reader(file).iter_messages():
            if schema is not None and schema.encoding == "ros2msg":
                text = text or schema.data.decode()
                found.append(message.data[4:])
    fields = re.findall(r"^(\w+?)(?:\[(\d+)\])? (\w+)", text, re.M)
    return np.frombuffer(b"".join(found), np.dtype([(name, ROS[kind], (int(n),) if n else ()) for kind, n, name in fields]))


def by_hand(path):
    """Largest force and moment by moment of the docking, of a run that goes through them in order without a break."""
    r = columns(path)
    code = {name: number for group in ("motion", "sequence") for name, number in CODES[group].items()}
    t = r["time_ns"] * 1e-9
    closed = np.flatnonzero((r["motion"] != code["follow_profile"]) & (r["motion"] != code["freeze"]))
    begin, end = closed[0], closed[-1] + 1
    assert len(closed) == end - begin, "the loop is closed once"
    rows = np.arange(len(r))

    def first(condition):
        found = np.flatnonzero(condition & (rows >= begin) & (rows < end))
        return int(found[0]) if len(found) else end

    touch = first(r["first_contact_time"] >= 0.0)
    draw = first(r["sequence"] == code["retract"])
    close = first((r["signal_discrete"] & (1 << 18) != 0) & (rows >= draw))
    done = first(r["sequence"] == code["complete"])
    free = first(r["sequence"] == code["separation"])
    gone = first((rows > free) & (r["contact"] == 0) & (np.maximum.accumulate((rows >= free) & (r["contact"] != 0))))
    gone = min(gone, first(r["sequence"] == code["retreat"]))
    edges = {"approach": begin, "impact": touch, "retraction": draw, "closure": min(close, done), "docked": done, "release": free,
             "separation": gone}  # fmt: skip
    found, starts = {}, [*edges.values(), end]
    for i, moment in enumerate(edges):
        stop = min(starts[i + 1 :])
        if starts[i] < stop:
            F = r["f_t"][starts[i] : stop]
            force, size = np.sqrt((F[:, :3] ** 2).sum(axis=1)), np.sqrt((F[:, 3:] ** 2).sum(axis=1))
            found[moment] = (force.max(), size.max(), t[starts[i] + force.argmax()])
    return found


# of each shipped programme, those variants that between them go through every moment
PARTS = {"whole_dockings": ("RING", "MODIFIED"), "damper_comparison": ("CENTRAL-EXISTING", "CENTRAL-MODIFIED"), "ring_cases": ("P-3",)}


@pytest.fixture(scope="module", params=PARTS)
def programme(request, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    text = (SHIPPED / "programmes" / f"{request.param}.toml").read_text()
    head, *variants = text.split("[[variant]]")
    rest = "".join(re.findall(r"\[\[requirement\]\][^\[]*", variants[-1]))
    chosen = [v.split("[[requirement]]")[0] for v in variants if any(f'number = "{n}"\n' in v for n in PARTS[request.param])]
    if request.param == "whole_dockings":  # the ring parts again, in a tenth of the time of the central unit
        chosen[1] = chosen[1].replace('"complete"', '"separated"').replace("set = { ", 'set = { "guidance.undock" = true, ')
    head = re.sub(r'^test = "(?!programmes)', 'test = "programmes/', head, flags=re.M)
    (out / "part.toml").write_text("[[variant]]".join([head, *chosen]) + rest)
    code = main(["simulate", str(out / "part.toml"), "--quiet", "--no-report", "--out", str(out), "--json", str(out / "reported.json")])
    assert code == 0
    return request.param, json.loads((out / "reported.json").read_text()), out


def test_the_peaks_of_every_page_are_those_of_the_log(programme):
    name, reported, out = programme
    overview = (out / "programme.html").read_text()
    table = json.loads((out / "programme.json").read_text())
    for row in reported["variants"]:
        own = by_hand(row["log"])
        listed = {one["moment"]: one for one in row["peaks"] if one["moment"] != "stand"}
        assert list(listed) == list(own), row["number"]
        for moment, (force, size, at) in own.items():
            told = listed[moment]
            assert told["force_n"] == pytest.approx(force, rel=1e-12) and told["moment_n_m"] == pytest.approx(size, rel=1e-12)
            assert told["force_time_s"] == pytest.approx(at, abs=1e-9) or force == 0.0
        whole = [max(values[i] for values in own.values()) for i in (0, 1)]
        figures = [*own["impact"][:2], *whole]
        keys = ("impact_force_n", "impact_moment_n_m", "docking_force_n", "docking_moment_n_m")
        assert [row[key] for key in keys] == pytest.approx(figures, rel=1e-12)
        assert all(f'data-sort="{value:.9g}"' in overview for value in figures), row["number"]
        short = next(one for one in table["variants"] if one["variant"] == row["number"])
        assert (short["impact N"], short["impact N.m"]) == pytest.approx(figures[:2], abs=0.051)
    blunt = [row["number"] for row in reported["variants"] if not row["moment_worth"]["resolved"]]
    assert (f"{', '.join(blunt)}: largest moment of the impact not resolved" in overview) == bool(blunt)
    assert blunt or name == "ring_cases"
    if name == "damper_comparison":
        page = (out / "side_by_side.html").read_text()
        for case in reported["side_by_side"]:
            for design in case["designs"]:
                F = read_log(design["log"]).records["F_T"]
                assert design["figures"]["axial_n"] == pytest.approx(F[:, 0].max(), rel=1e-12)
                assert f'data-sort="{design["figures"]["axial_n"]:.9g}"' in page
    if name == "whole_dockings":
        _modified(next(row for row in reported["variants"] if row["number"] == "MODIFIED"))


def _modified(row):
    """The blow at the opening of the latches after the run is no load of the docking: not of its pages, not of its life."""
    moments = {one["moment"]: one for one in row["peaks"]}
    assert round(row["impact_force_n"]) == 2440 and round(row["docking_force_n"]) == 2440 and round(moments["stand"]["force_n"]) == 777
    log = read_log(row["log"])
    (spectrum,) = life.spectra([Run(log)], ["F_T[0]"], life.curve("5:8000@1e5"))
    F = log.records["F_T"][np.isin(log.records["motion"], [CODES["motion"][name] for name in ("close_loop", "free", "joined")]), 0]
    assert spectrum.ranges.max() == pytest.approx(np.ptp(F), rel=1e-9) and spectrum.by_moment["impact"] == pytest.approx(4.50e-8, rel=0.02)
