"""The console: who may look, what the feed keeps, what is drawn, what a page is sent, and every view in a real headless Chromium."""

import asyncio
import contextlib
import json
import math
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hil_server.bus.process import TelemetryProcess
from hil_server.bus.publisher import first_trip
from hil_server.bus.settings import TelemetrySettings
from hil_server.client import Batch, Client
from hil_server.config import SHIPPED, load_test, toml_text
from hil_server.console.access import Access
from hil_server.console.alarm import in_words, safety
from hil_server.console.arm import Arm
from hil_server.console.feed import Feed, limits_of
from hil_server.console.history import History
from hil_server.console.live import Pane
from hil_server.console.picture import Picture, angles_deg, picture_of
from hil_server.console.programme import shown
from hil_server.console.recording import Recording, thinned
from hil_server.line.run_header import CONFIGURATION
from hil_server.log.record import aux_channels, record_dtype
from hil_server.run.session import Options, simulate
from rt_kernels.extends import read_tables
from rt_kernels.layout import BITS, CODES, FAULTS, SAMPLE_DTYPE
from rt_kernels.pictures import along, multiply, rotate
from rt_kernels.ring import SharedBlock
from tests.bus.conftest import LoopStandIn
from tests.console.chromium import CHROMIUM, Browser, wait_for
from tests.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
ANY = "tcp://127.0.0.1:*"
LOCAL = {"host": "127.0.0.1:8780"}


# -------------------------------------------------------------------------------------------------------------- access


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        (LOCAL, True),
        ({"host": "localhost:8780", "origin": "http://localhost:8780"}, True),
        ({"host": "[::1]:8780"}, True),
        ({"host": "stand7:8780", "origin": "http://stand7:8780"}, True),
        ({"host": "evil.example:8780"}, False),
        ({}, False),
        (LOCAL | {"origin": "http://evil.example"}, False),
        (LOCAL | {"origin": "http://127.0.0.1:9999"}, False),
        (LOCAL | {"origin": "null"}, False),
    ],
)
def test_only_our_own_pages_may_talk(headers, good):
    assert Access(None, names=("stand7",)).may_talk(headers) is good


@pytest.mark.parametrize(
    ("site", "good"),
    [("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True), ("", False)],
)
def test_another_site_gets_nothing(site, good):
    assert Access(None).may_talk(LOCAL | {"sec-fetch-site": site}) is good


def test_token():
    access = Access(None, "a-long-secret-token")
    assert not access.knows(LOCAL, "") and not access.knows(LOCAL, "a-long-secret-toke")
    assert not access.knows({"cookie": "hil_console="}, "")
    assert access.knows(LOCAL, "a-long-secret-token") and access.knows({"cookie": "x=1; hil_console=a-long-secret-token"}, "")
    assert Access(None).knows(LOCAL, "")


# ---------------------------------------------------------------------------------------------------------------- feed


def batch(t, faults=0, events=0, force=0.0, lost=0):
    values = {"F_T": [force, 0.0, 0.0, 0.0, 0.0, 0.0], "phase": CODES["phase"]["contact"], "end_cause": 0}
    bits = {"faults": faults, "events": events}
    return Batch("slow", t, int(t * 1e9), int(t * 1e3), "run", 0, 1, lost, last=values, minimum=values, maximum=values, any_bits=bits)


def test_feed_keeps_each_fault_and_event_once_and_says_what_to_do():
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    contact = BITS["event"]["first_contact"]
    name, bit, severity, meaning, action, _ = FAULTS[3]
    for t, faults, events in ((0.04, 0, 0), (0.08, bit, contact), (0.12, bit, contact), (0.16, 0, 0), (0.2, bit, 0)):
        feed.take(batch(t, faults, events, force=-7.5, lost=1))
    assert [(line.t, line.name) for line in feed.lines] == [(0.2, name), (0.08, "first_contact"), (0.08, name)]
    assert feed.lines[0].severity == severity and meaning in feed.lines[0].action and action in feed.lines[0].action
    assert feed.lost == 5 and feed.history.rows(["F_T[0]", "F_T[5]"], 4) == [[0.2, -7.5, -7.5, 0.0, 0.0]]
    assert [row["name"] for row in feed.rows] == [line.name for line in feed.lines]


def test_history_keeps_every_extreme_of_the_last_minute():
    """Against the stream itself: whatever is lost of older messages, of what is kept no peak is."""
    rng = np.random.default_rng(3)
    history, stream = History(points=50), rng.normal(size=(80, 30, 2))
    for i, part in enumerate(stream):
        low, high = part.min(axis=0), part.max(axis=0)
        last = {"a": float(part[-1, 0]), "b": part[-1].tolist(), "bits": 5}
        history.add(0.03 * i, last, {"a": float(low[0]), "b": low.tolist()}, {"a": float(high[0]), "b": high.tolist()})
    assert history.names == ["a", "b[0]", "b[1]", "bits"] and history.count == 80
    rows = np.array(history.rows(["a", "b[1]", "bits"]))
    assert rows.shape == (50, 7) and np.allclose(rows[:, 0], 0.03 * np.arange(30, 80))
    assert np.allclose(rows[:, 1], stream[30:, :, 0].min(axis=1), rtol=1e-5)
    assert np.allclose(rows[:, 4], stream[30:, :, 1].max(axis=1), rtol=1e-5)
    assert (rows[:, 5:] == 5).all()
    assert history.rows(["b[0]"], 79)[0][1:] == pytest.approx([stream[79, :, 0].min(), stream[79, :, 0].max()], rel=1e-5)
    assert history.rows(["nothing"], 79) == [[pytest.approx(2.37), None, None]]
    history.add(3.0, {"a": math.nan}, {}, {})
    assert history.rows(["a"]) == [[3.0, None, None]], "another run's channels: nothing of the old ones is kept"


def test_requirements_of_a_run_are_kept_as_they_stand():
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    feed.take(batch(0.1))
    reported = {"name": "peak force", "verdict": "met", "value": 800.0, "limit": 2000.0, "margin": math.inf, "unit": "N"}
    feed.take_requirements(Batch("requirements", 0.1, 0, 100, "another", 0, 1, 0, head={"requirements": [reported]}))
    assert feed.requirements is None
    feed.take_requirements(Batch("requirements", 0.1, 0, 100, "run", 0, 1, 0, head={"requirements": [reported, 7]}))
    assert feed.requirements == [reported | {"margin": None}], "what JSON has no number for is not sent as one"
    feed.take_requirements(Batch("requirements", 0.1, 0, 100, "run", 0, 2, 0, head={}))
    assert feed.requirements is not None


def test_programme_says_what_is_next():
    rows = [{"variant": "A", "state": "done", "result": "passed"}, {"variant": "B", "state": "next", "description": "the second"}, 7]
    found = shown({"programme": "two", "ended": False, "held": True, "variants": [*rows, {"variant": "C", "state": "waiting"}]})
    assert found["title"] == "Programme two: waits for start; next is B, 1 of 3 done, 1 passed"
    assert found["next"] == {"number": "B", "description": "the second"} and found["held"] and found["between"]
    going = [{"variant": "A", "state": "running"}, {"variant": "B", "state": "waiting"}]
    found = shown({"programme": "two", "ended": False, "variants": going})
    assert found["next"]["number"] == "B" and not found["held"] and not found["between"]
    assert shown({"programme": "two", "ended": True, "variants": rows})["next"] is None
    assert shown(None) is None and shown({"variants": 3}) is None


def test_first_trip_names_the_faults_of_its_own_tick(make_records):
    bit = {name: mask for name, mask, *_ in FAULTS}
    records = make_records(10, 100)
    records["faults"][3:] = bit["tare_drift"]
    records["faults"][6:] |= bit["analogue_chain"]
    records["faults"][8:] |= bit["drive_not_enabled"]  # its consequence, with a smaller number
    assert first_trip(records, 0) is None
    records["trip_tick"][6:] = 106
    assert first_trip(records, 0) == {"tick": 106, "t": pytest.approx(0.106), "faults": bit["analogue_chain"]}
    assert first_trip(records[6:], records["faults"][5]) == first_trip(records, 0)
    told = in_words(first_trip(records, 0))
    assert [fault["name"] for fault in told["faults"]] == ["analogue chain"]
    assert told["faults"][0]["action"] == "clear it at its own panel; the server cannot" and in_words(None) is None


def test_safety_is_given_in_words():
    assert safety({"safety_state": 3, "trip_tick": -1}) == "not armed"
    assert safety({"safety_state": 2, "trip_tick": 7465}) == "held, tripped at tick 7465"


def test_situation_of_a_run():
    """Never started, running, tripped, lost, ended: from what was heard alone."""
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
    assert feed.situation()["run"] == "no run" and feed.situation()["from"] == "tcp://127.0.0.1:1"
    first = batch(0.1)
    feed.take(first)
    assert feed.situation() | {"trouble": ""} == {
        "run": "run", "trouble": "", "trip": None, "end": "", "from": "tcp://127.0.0.1:1", "old": False, "log": "", "desk": "",
    }  # fmt: skip
    feed._arrived["slow"] -= 1.0
    assert feed.situation()["old"] and feed.situation()["end"] == ""
    status = Batch("status", 0.1, 0, 100, "run", 0, 1, 0, head={"running": True, "trip": {"tick": 99, "t": 0.099, "faults": 1 << 30}})
    feed.take_status(status)
    assert feed.situation()["trip"]["faults"][0]["name"] == "operator stop" and feed.situation()["end"] == ""
    first.last["end_cause"] = CODES["end_cause"]["tripped"]
    feed.take_status(Batch("status", 0.2, 0, 200, "run", 0, 2, 0, head={"running": False}))
    assert feed.situation()["end"] == "tripped" and feed.situation()["trip"]["tick"] == 99, "a trip does not fade"
    feed.take_status(Batch("status", 0.2, 0, 200, "another", 0, 2, 0, head={"running": True}))
    assert feed.situation()["end"] == "", "the word of another run says nothing about this one"


def test_limits_come_from_the_run_itself():
    from hil_server.config import load_test

    limits = limits_of({"configuration.toml": load_test(None).as_toml()})
    assert limits["leg_length_min_m"] == 3.0 and limits["leg_length_max_m"] == 5.0
    assert limits_of({}) == {} and limits_of({"configuration.toml": "= nonsense"}) == {}


# ------------------------------------------------------------------------------------------------------------ pictures

DOCKED = ["test.duration_max_s=9"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Log of the shipped docking, captured and retreating; the same test twice, the second a little slower."""
    folder = tmp_path_factory.mktemp("logs")
    for name, more in (("first", []), ("second", ["initial_conditions.velocity_x_m_s=0.11"])):
        simulate(load_test(None, [*DOCKED, *more]), Options(out=str(folder / name), quiet=True, report=False))
    return folder / "first" / "run.mcap"


def test_angles_and_turns_against_scipy():
    rng = np.random.default_rng(3)
    for _ in range(50):
        turn = Rotation.from_euler("YZX", rng.uniform([-170, -80, -170], [170, 80, 170]), degrees=True)
        other, vector = Rotation.random(random_state=rng.integers(1 << 30)), rng.normal(size=3)
        q = turn.as_quat()
        assert np.allclose(angles_deg(q), turn.as_euler("YZX", degrees=True))
        assert np.allclose(rotate(q, vector), turn.apply(vector))
        assert np.allclose(Rotation.from_quat(multiply(q, other.as_quat())).as_matrix(), (turn * other).as_matrix())
        assert np.allclose(rotate(along(vector), [1.0, 0.0, 0.0]), vector / np.linalg.norm(vector))


@pytest.mark.parametrize(("test", "labels"), [("docking", ["LPS", "BPR", "BPT"]), ("elastic_contact", []),
                                              ("virtual_docking_ring", [f"rod {k}" for k in range(1, 7)])])  # fmt: skip
def test_the_analogue_signals_have_the_names_of_the_unit(test, labels):
    drawn = Picture({CONFIGURATION: toml_text.dumps(load_test(test).document)})
    group = drawn.things()["numbers"][-1]
    assert (group["title"], [label for label, *_ in group["rows"]]) == ("Sensors", labels)
    record = np.zeros(1, SAMPLE_DTYPE)[0]
    record["X_TA_measured"][6] = 1.0
    values = {name: record[name].tolist() for name in SAMPLE_DTYPE.names} | {"signal_analog": [0.1 * k for k in range(8)]}
    assert drawn.frame(values)["numbers"][-1] == pytest.approx([0.1 * k for k in range(len(labels))])


@pytest.mark.parametrize("file", sorted((SHIPPED / "mechanisms").glob("*.toml")), ids=lambda file: file.stem)
def test_every_shipped_unit_is_drawn_in_sight(file):
    picture = picture_of(read_tables(file))
    unit = picture.looks
    assert {shape.body for shape in unit.shapes} >= {"T", "A"}
    # a spring alone has no parts whose state a bar could show
    has_parts = read_tables(file)["part"] not in ("bumper", "linear_contact", "several_contacts")
    assert bool(unit.bars) == bool(picture.ANALOG) == has_parts
    for shape in unit.shapes:
        points = np.array([p for line in shape.lines for p in line])
        assert np.isfinite(points).all() and np.abs(points[:, 1:]).max() < unit.extent and all(len(line) > 1 for line in shape.lines)
    json.dumps(unit.to_dict(), allow_nan=False)


def test_a_bar_stands_for_a_part_that_the_unit_has():
    """Two friction brakes stand in the place of spring mechanism and magnetic brakes; a limiter that moves has its way back."""
    tables = {name: read_tables(SHIPPED / "mechanisms" / f"probe_cone_{name}.toml") for name in ("existing", "modified", "movable_limiter")}
    axial = {name: [bar.label for bar in picture_of(t).looks.bars if bar.place == "axial"] for name, t in tables.items()}
    assert axial["existing"] == ["PM travel", "FrT travel", "axial MT speed"]
    assert axial["modified"] == ["probe travel", "FrT1 travel", "FrT2 travel"]
    assert axial["movable_limiter"] == [*axial["modified"], "XLimD"]
    front = tables["movable_limiter"]["limiter_front_m"]
    drawn = Picture({CONFIGURATION: load_test("programmes/virtual_docking_movable_limiter.toml").as_toml()})
    values = {"X_TA": [-0.9, 0, 0, 0, 0, 0, 1], "V_TA": [0.0] * 6, "F_T": [0.0] * 6, "probe.movable_x": front - 0.1}
    assert drawn.frame(values)["bars"][-1] == {"value": -0.1, "flags": []}


def test_measured_force_enters_the_head_where_it_touches():
    """A force along the line from the head's centre to the point of contact, and its moment about T: the point comes back."""
    config = load_test(None)
    picture = Picture({"configuration.toml": config.as_toml()})
    radius, length = config.mechanism["head_radius_m"], np.linalg.norm(config.mechanism["probe_m"])
    X = [-0.7, 0.02, -0.01, 0.0, 0.0, 0.0, 1.0]
    towards = np.array([0.6, -0.64, 0.48])
    point = np.array([X[0] + length, X[1], X[2]]) + radius * towards
    force = 200.0 * towards
    values = {"X_TA": X, "V_TA": [0.0] * 6, "F_T": [*force, *np.cross(point, force)], "contact": 1}
    assert np.allclose(picture.frame(values)["contacts"], [point], atol=1e-5)
    assert picture.frame(values | {"contact": 0})["contacts"] == []
    beside = [*force, *np.cross(point + [0.0, 0.3, 0.0], force)]
    assert picture.frame(values | {"F_T": beside})["contacts"] == [], "a line that misses the head"


def test_contact_flags_of_the_mechanism_colour_its_parts():
    picture = Picture({"configuration.toml": load_test(SHIPPED / "programmes" / "virtual_docking.toml").as_toml()})
    values = {"X_TA": [-0.5, 0, 0, 0, 0, 0, 1], "V_TA": [0.0] * 6, "F_T": [0.0] * 6, "probe.swing_y": 0.0, "probe.swing_z": 0.0}
    values |= {f"probe.{name}_{a}": 0.1 for name in ("head", "lining4_r") for a in "xyz"}
    values |= {f"probe.head_v_{a}": 0.0 for a in "xyz"} | {f"probe.axis_{a}": float(a == "x") for a in "xyz"}
    assert picture.frame(values)["on"] == []
    touched = picture.frame(values | {"probe.lining4_depth": 1e-4, "probe.latch2_phase": 2.0, "probe.stroke": -0.05})
    assert touched["on"] == ["lining4", "latch2"] and touched["contacts"] == [[0.1, 0.1, 0.1]] and touched["bars"][0]["value"] == -0.05


def test_contacts_of_a_berthing_unit_come_from_its_own_kernel():
    table = tomllib.loads((SHIPPED / "mechanisms" / "usa_usp.toml").read_text())
    document = tomllib.loads(load_test(None).as_toml()) | {"mechanism": table}
    picture = Picture({"configuration.toml": toml_text.dumps(document)})
    values = {"V_TA": [0.0] * 6, "F_T": [0.0] * 6}
    assert picture.frame(values | {"X_TA": [-0.2, 0, 0, 0, 0, 0, 1]})["contacts"] == []
    touching = picture.frame(values | {"X_TA": [-0.03, 0.012, 0, 0, 0, 0, 1]})["contacts"]
    assert touching and all(abs(abs(p[1]) - 0.26) < 0.05 or abs(p[1]) < 0.05 for p in touching)


def test_arm_against_a_chain_of_matrices():
    document = {"dynamics": {"part": "manipulator_payload", "model": "manipulators/srms.toml"}}
    arm = Arm.of(document)
    angles = np.random.default_rng(5).uniform(-1.5, 1.5, len(arm.joints))
    bodies = read_tables(SHIPPED / "manipulators" / "srms.toml")["body"]
    X, left, expected = np.eye(4), iter(angles), [[0.0, 0.0, 0.0]]
    for body in bodies:
        step = np.eye(4)
        step[:3, 3] = body["position_m"]
        if body["joint"] == "revolute":
            step[:3, :3] = Rotation.from_rotvec(np.array(body["axis"]) * next(left)).as_matrix()
        X = X @ step
        expected.append(X[:3, 3].tolist())
    assert np.allclose(arm.places(angles), expected, atol=1e-4)
    arm.low, arm.high = [-1.6] * 6, [1.6] * 6
    assert arm.frame({"arm_q": [0.0, 1.55, -1.59, 1.0, 0.0, 0.0]})["near"] == [0, 1, 1, 0, 0, 0]
    assert arm.frame({}) is None and Arm.of({"dynamics": {"part": "two_bodies"}}) is None


def test_recording_shows_the_tick_that_was(log):
    recording = Recording(log)
    t = float(recording.log.records["capture_time"][-1])
    before, after = recording.frame(t - 0.0015), recording.frame(t)
    assert before["capture_time"] < 0 <= after["capture_time"] and before["t"] == pytest.approx(t - 0.002)
    i = recording.at(t)
    assert after["numbers"][4] == pytest.approx(recording.log.records["F_T"][i], abs=1e-5)
    found = recording.curves(["F_T[0]", "nothing"], t - 0.1, t + 0.1)
    assert found["names"] == ["F_T[0]"] and len(found["data"][0]) == 200
    assert recording.facts()["capture"] == t


def test_one_cursor_is_one_tick(log):
    """What a page gets for a time: drawn frame, figures and selected channels are those of one and the same tick."""
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    recording = Recording(log)
    pane = Pane(feed, pictures=True)
    pane.show(recording)
    pane.select(["F_T[0]", "X_TA[1]", "kinetic_energy"])
    contact = recording.at(float(recording.log.records["first_contact_time"][-1]))
    for i in range(contact - 3, contact + 4):
        pane._answers.clear()
        pane._take({"seek": float(recording.log.time_s[i])})
        (frame,) = pane._answers
        record = recording.log.records[i]
        assert frame["tick"] == record["tick"] and frame["names"] == ["F_T[0]", "X_TA[1]", "kinetic_energy"]
        assert frame["selected"] == [record["F_T"][0], record["X_TA"][1], record["kinetic_energy"]]
        assert frame["numbers"][4][0] == pytest.approx(record["F_T"][0], abs=1e-5)
    pane.select(["F_T[2]"])
    assert pane._answers[-1]["selected"] == [record["F_T"][2]], "another channel of the same tick, at once"
    pane.close()


def test_what_is_no_message_of_a_page_is_passed_over(log):
    """The page's line outlives it."""

    async def scene():
        feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
        pane, page = Pane(feed, pictures=False), Socket()
        pane.show(Recording(log))
        serving = asyncio.create_task(pane.serve(page))
        nonsense = [7, None, [], {}, {"ack": {}}, {"ack": "x", "age": []}, {"seek": "now"}, {"seek": math.inf}, {"seek": None}]
        nonsense += [{"curves": 3}, {"curves": [1]}, {"curves": ["a", "b"]}, {"select": [[]]}, {"select": 4}, {"hand": 1}, {"clock": {}}]
        for message in nonsense:
            page.incoming.put_nowait(message)
        page.incoming.put_nowait({"seek": 5.0})
        for _ in range(200):
            await asyncio.sleep(0.01)
            if any(message.get("t") == 5.0 for message in page.sent):
                break
        assert not serving.done() and any(message.get("t") == 5.0 for message in page.sent)
        serving.cancel()
        pane.close()

    asyncio.run(scene())


def test_thinned_curve_keeps_every_peak():
    values = np.sin(np.arange(30000) * 1e-3)
    values[[17, 12345]] = 9.0, -9.0
    found = np.array(thinned(np.arange(30000.0), values))
    assert found[:, 0].tolist() == sorted(found[:, 0]) and len(found) <= 1500
    assert found[:, 1].max() == 9.0 and found[:, 1].min() == -9.0 and np.all(values[found[:, 0].astype(int)] == found[:, 1])


# ---------------------------------------------------------------------------------------------------------------- panes


class Socket:
    """A page that reads and shows only what the test names."""

    def __init__(self):
        self.sent, self.incoming = [], asyncio.Queue()

    async def send_text(self, text):
        self.sent.append(json.loads(text))

    async def receive_text(self):
        return json.dumps(await self.incoming.get())

    @property
    def frames(self):
        return [message for message in self.sent if message.get("n")]


def test_a_page_that_shows_nothing_gets_two_frames_and_delays_no_one():
    async def scene():
        feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
        slow, quick = (Pane(feed, pictures=False) for _ in range(2))
        sockets = Socket(), Socket()
        tasks = [asyncio.create_task(pane.serve(socket)) for pane, socket in zip((slow, quick), sockets, strict=True)]
        for i in range(20):
            await asyncio.sleep(0)
            feed.take(batch(0.03 * i, 0))
            for _ in range(5):
                await asyncio.sleep(0)
            if sockets[1].frames:
                sockets[1].incoming.put_nowait({"ack": sockets[1].frames[-1]["n"]})
            for _ in range(5):
                await asyncio.sleep(0)
        assert len(sockets[0].frames) == 2 and len(sockets[1].frames) == 20
        # when it wakes up it gets the newest, not what it has slept through
        sockets[0].incoming.put_nowait({"ack": 2})
        await asyncio.sleep(0.05)
        assert [frame["t"] for frame in sockets[0].frames] == [0.0, pytest.approx(0.03), pytest.approx(0.57)]
        for task in tasks:
            task.cancel()
        slow.close()
        quick.close()
        assert not feed.listeners

    asyncio.run(scene())


def test_no_picture_goes_out_before_the_answer_to_an_abort():
    async def scene():
        feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
        pane, page = Pane(feed, pictures=False), Socket()
        answered = asyncio.Event()

        async def give(name, arguments=None):
            await answered.wait()
            return {"answer": name, "good": True}

        pane.commander.give = give
        serving = asyncio.create_task(pane.serve(page))
        page.incoming.put_nowait({"command": "abort", "at": 7})
        for i in range(5):
            await asyncio.sleep(0.01)
            feed.take(batch(0.03 * i, 0))
        await asyncio.sleep(0.02)
        assert not page.frames
        answered.set()
        await asyncio.sleep(0.05)
        feed.take(batch(0.2, 0))
        await asyncio.sleep(0.05)
        first = next(i for i, message in enumerate(page.sent) if message.get("n"))
        assert page.sent.index({"answer": "abort", "good": True, "at": 7}) < first
        serving.cancel()
        pane.close()

    asyncio.run(scene())


def test_sticks_of_a_page_count_only_in_a_rehearsal(monkeypatch):
    from hil_server.operator_desk import sender

    sent = []

    class Sender:
        def __init__(self, station, address):
            sent.append((station, address))

        def send(self, axes, buttons):
            sent.append((axes, buttons))

        def close(self):
            sent.append("closed")

    monkeypatch.setattr(sender, "HandSender", Sender)
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1", "tcp://127.0.0.1:9")
    pane = Pane(feed, pictures=False)
    pane._take({"hand": [0.5] * 6, "buttons": 1})
    assert sent == []
    feed.picture = Picture({"configuration.toml": load_test(None, ["test.rehearsal=true"]).as_toml()})
    pane._take({"hand": [0.5] * 6, "buttons": 1})
    pane.close()
    assert sent == [(0, "tcp://127.0.0.1:9"), ([0.5] * 6, 1), "closed"]


# ------------------------------------------------------------------------------------------------------------- Chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def start_console(tmp_path_factory):
    """start_console(*arguments) -> its address, once it serves. start_console.running: the processes, each with its `errors`."""
    running = []

    def start(*arguments):
        command = [sys.executable, "-m", "hil_server", "console", "--port", str(free_port()), *arguments]
        errors = open(tmp_path_factory.mktemp("console") / "errors", "w+")  # noqa: SIM115  closed with its process
        running.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True))
        running[-1].errors = errors
        address = running[-1].stdout.readline().split()[-1]

        def serves():
            try:
                urllib.request.urlopen(address, timeout=5).close()
            except urllib.error.HTTPError:
                return True
            except OSError:
                return False
            return True

        wait_for(serves, 40)
        return address

    start.running = running
    yield start
    for process in running:
        process.terminate()
        process.wait(20)
        process.stdout.close()
        process.errors.close()


def status_of(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_served_pages_hold_the_rules(start_console, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-secret\n")
    address = start_console("--token-file", str(token))
    plain, cookie = address.partition("?")[0], "hil_console=0123456789abcdef-secret"
    assert status_of(plain) == 401 and status_of(plain, Cookie=cookie) == 200
    assert status_of(plain, Cookie=cookie, Origin="http://evil.example") == 403
    assert status_of(plain + "_nicegui_ws/socket.io/?EIO=4&transport=polling") == 401, "the page's own channel as well"
    for headers in ({}, {"Cookie": cookie, "Origin": "http://evil.example"}, {"Cookie": cookie}):
        with pytest.raises(InvalidStatus), connect(plain.replace("http", "ws") + "live/unknown", additional_headers=headers):
            pass


def post(address, **headers):
    request = urllib.request.Request(address, method="POST", headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def test_abort_of_another_site_is_refused_and_closed_pages_leave_no_trace(start_console):
    """A console without a run: pages that go politely, that are cut off, and that had asked for something."""
    address = start_console("--telemetry", "tcp://127.0.0.1:1", "--command", "tcp://127.0.0.1:1")
    process = start_console.running[-1]
    for site in ("cross-site", "same-site"):
        assert post(address + "abort", Sec_Fetch_Site=site)[0] == 403
    status, answer = post(address + "abort", Sec_Fetch_Site="same-origin")
    assert status == 200 and not answer["good"] and "no answer from tcp://127.0.0.1:1" in answer["answer"]
    for asks, cut in ((False, False), (False, True), (True, False), (True, True)):
        with urllib.request.urlopen(address, timeout=10) as page:
            number = re.search(r'hilPane = \\?"([^"\\]+)', page.read().decode()).group(1)
        with connect(address.replace("http", "ws") + f"live/{number}") as line:
            assert json.loads(line.recv(timeout=10))["state"]["run"] == "no run"
            if asks:
                line.send('{"command": "start"}')
            if cut:
                line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                line.socket.close()
    time.sleep(1.0)
    process.terminate()
    process.wait(20)
    process.errors.seek(0)
    assert process.errors.read() == ""


JOINTS = ("active shoulder", "target wing")


def with_joints(ticks, header):
    """The ticks with channels of two joints, as a part of jointed crafts logs them: more room than names."""
    first = header.aux_count
    header.aux = aux_channels([*header.aux, *((f"joint_{what}", "-", "-", 3) for what in ("position", "rate", "torque"))])
    header.notes = [*header.notes, f"dynamics: joints {', '.join(JOINTS)}"]
    found = np.zeros(len(ticks), record_dtype(header.aux_count))
    for name in ticks.dtype.names:
        if name != "aux":
            found[name] = ticks[name]
    found["aux"][:, :first] = ticks["aux"]
    found["aux"][:, first:] = [0.5, -0.25, 9e9, 1.5, -2.5, 9e9, 30.0, -40.0, 9e9]
    return found


class Stage:
    """A run that continues with the log's own ticks round its contact, its telemetry process, and the console that looks at it."""

    def __init__(self, log, start_console, folder):
        recording = Recording(log)
        contact = recording.at(float(recording.log.records["first_contact_time"][-1]))
        ticks = recording.log.records[contact - 300 : contact + 700]
        header = recording.log.header
        header.run_id = "RT-07"
        ticks = with_joints(ticks, header)
        text = header.configuration[CONFIGURATION]
        assert "rehearsal = false" in text
        header.configuration[CONFIGURATION] = text.replace("rehearsal = false", "rehearsal = true")
        self.loop = LoopStandIn(SharedBlock.create(8192, header.aux_count), lambda count, first, aux: ticks)
        settings = TelemetrySettings(log_path=str(folder / "run.mcap"), telemetry_address=ANY, command_address=ANY, hand_address=ANY)
        self.process = TelemetryProcess.start(self.loop.block.fd, settings, header)
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()
        ends = self.process.endpoints
        self.telemetry, self.command = ends["telemetry_address"], ends["command_address"]
        logs = str(log.parent.parent)
        self.programme(log.parent.parent)
        self.address = start_console(
            "--logs", logs, "--telemetry", self.telemetry, "--command", self.command, "--hand", ends["hand_address"]
        )
        self.log = log

    def trip(self, fault):
        """From the next tick on the loop is tripped by this fault."""
        ticks = self.loop._template
        self.tripped = self.loop.tick
        ticks["faults"] |= next(bit for name, bit, *_ in FAULTS if name == fault)
        ticks["end_cause"], ticks["safety_state"], ticks["trip_tick"] = CODES["end_cause"]["tripped"], 2, self.tripped

    @staticmethod
    def programme(folder):
        rows = [{"variant": f"RT-{i}", "state": state, "description": "", "expect": "any"} for i, state in ((1, "done"), (2, "running"))]
        rows[0] |= {"verdict": "captured", "R1": "0.40", "capture s": "7.622", "impact N": "724", "impact N.m": "22", "result": "passed"}
        (folder / "programme.json").write_text(json.dumps({"programme": "two dockings", "ended": False, "variants": rows}))

    def end(self):
        self.loop.stop()
        self.thread.join()

    def close(self):
        self.end()
        if self.process.alive:
            self.process.kill()
        self.loop.close()


@pytest.fixture(scope="module")
def stage(log, start_console, tmp_path_factory):
    made = Stage(log, start_console, tmp_path_factory.mktemp("stage"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Folder of the screenshots: HIL_PICTURES, else one of pytest's own."""
    folder = Path(os.environ.get("HIL_PICTURES") or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def live(browser):
    return "\nlive" in browser.text and browser.value("!document.body.classList.contains('stale')")


def ink(browser, selector):
    """How many pixels of each canvas that matches are not empty."""
    data = "c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
    count = f"c => {{ const d = {data}; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; }}"
    return browser.value(f"[...document.querySelectorAll({selector!r})].map({count})")


def taken(stage):
    return [code for _, code, *_ in stage.loop.taken]


@pytest.mark.alone
def test_engineer_live_and_abort(stage, browser, pictures):
    browser.go(stage.address)
    wait_for(lambda: "RT-07" in browser.text and live(browser), 40)
    wait_for(lambda: "phase\ncontact\nin this phase" in browser.text, 30)
    assert browser.value("document.querySelectorAll('.live').length") >= 7
    assert "Programme two dockings: RT-2 is running, 1 of 2 done, 1 passed" in browser.text
    wait_for(lambda: re.search(r"target wing\s+-0.2500\s+-2.5000\s+-40.00", browser.text), 30)
    wait_for(lambda: "remove joint_position[1]" in browser.value("document.querySelector('.hil-channels').innerHTML"), 30)
    wait_for(lambda: ink(browser, ".hil-plot canvas")[0] > 1000, 30)
    assert "9e9" not in browser.text and "9000000000" not in browser.text
    browser.click("#hold")
    wait_for(lambda: "hold: taken by the loop at tick" in browser.text, 30)
    browser.click("#abort")
    wait_for(lambda: "abort: taken by the loop at tick" in browser.text, 30)
    assert taken(stage)[-2:] == [CODES["command"]["hold"], CODES["command"]["abort"]]
    browser.value("document.querySelector('#abort').focus()")
    before = len(taken(stage))
    browser.key("Enter", 13, "\r")
    wait_for(lambda: len(taken(stage)) > before, 30)
    assert taken(stage)[before:] == [CODES["command"]["abort"]], "by keyboard, once"
    assert browser.picture(pictures / "engineer.png").stat().st_size > 20_000


@pytest.mark.alone
def test_operator_live(stage, browser, pictures):
    browser.go(stage.address + "operator")
    wait_for(lambda: live(browser) and browser.value("window.hilPicture?.().count ?? 0") > 20, 30)
    assert all(n > 1000 for n in ink(browser, ".hil-box canvas")[:4]), "three cameras in one picture, three wire-frames"
    shown = browser.value("window.hilPicture()")
    assert 0 < shown["age"] < 5000, "from the tick to the pixel, on one machine: the clocks agree"
    arm = "getComputedStyle([...document.querySelectorAll('.hil-box')].at(-1)).display"
    assert len(ink(browser, ".hil-box canvas")) == 5 and browser.value(arm) == "none", "a run without a manipulator has no panel for it"
    browser.click("#step-go")
    wait_for(lambda: "step: taken by the loop" in browser.text, 30)
    assert stage.loop.taken[-1][3][:3] == [1.0, 0.01, 0.005]
    assert browser.picture(pictures / "operator.png").stat().st_size > 40_000


@pytest.mark.alone
def test_mimic_live(stage, browser, pictures):
    browser.go(stage.address + "mimic")
    wait_for(lambda: live(browser) and browser.value("window.hilPicture?.().count ?? 0") > 40, 30)
    assert all(n > 300 for n in ink(browser, ".hil-box canvas"))
    assert browser.picture(pictures / "mimic.png").stat().st_size > 30_000


def press_until(browser, selector, done):
    """Clicks as a person does: again, if the page was still moving and the click met nothing."""
    for _ in range(5):
        browser.click(selector)
        with contextlib.suppress(AssertionError):
            return wait_for(lambda: browser.value(done), 3)
    raise AssertionError(f"{selector}: never {done}")


@pytest.mark.alone
def test_browser_sticks_reach_the_loop(stage, browser):
    """Keys, then a gamepad: records of station 0, none before it is asked for, none of motion once the page is left."""
    browser.go(stage.address + "operator")
    wait_for(lambda: live(browser) and browser.value("document.querySelector('.hil-rehearsal')?.style.display === ''"), 30)
    assert stage.loop.hand(0)[0] == 0
    press_until(browser, "#rehearse", "document.querySelector('#rehearse').checked")
    browser.value("document.activeElement.blur()")
    browser.hold("Enter", 13, "\r")
    for _ in range(3):
        browser.key("w", 87)
    wait_for(lambda: stage.loop.hand(0)[2][0] == pytest.approx(0.6) and stage.loop.hand(0)[3] == 1, 30)
    first = stage.loop.hand(0)[0]
    wait_for(lambda: stage.loop.hand(0)[0] > first + 50, 30)
    assert stage.loop.hand(0)[2][0] == pytest.approx(0.6), "a press stays, as in the terminal"
    browser.key("s", 83)
    browser.key("v", 86)
    wait_for(lambda: stage.loop.hand(0)[2][0] == pytest.approx(0.4) and stage.loop.hand(0)[3] == 3, 30)
    browser.value("document.querySelector('#again').focus()")
    browser.key(" ", 32)
    wait_for(lambda: not any(stage.loop.hand(0)[2]) and stage.loop.hand(0)[3] == 3, 30)
    assert "again" not in str(browser.value("window.hilAnswer && window.hilAnswer.answer")), "space stops the arm and presses no button"
    browser.value("document.activeElement.blur()")
    browser.key("v", 86)
    browser.hold("Enter", 13, "\r", again=True)
    first = stage.loop.hand(0)[0]
    wait_for(lambda: stage.loop.hand(0)[0] > first + 50, 30)
    assert stage.loop.hand(0)[3] == 1, "it stays as long as the key is down"
    browser.key("Enter", 13, kinds=["keyUp"])
    wait_for(lambda: stage.loop.hand(0)[3] == 0, 30)
    browser.key("Enter", 13, "\r")
    browser.key("w", 87)
    wait_for(lambda: stage.loop.hand(0)[2][0] == pytest.approx(0.2), 30)
    assert stage.loop.hand(0)[3] == 0, "a short press leaves nothing behind"
    browser.click("#deadman", ["mousePressed"])
    wait_for(lambda: stage.loop.hand(0)[3] == 1 and not any(stage.loop.hand(0)[2]), 30)
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5, button="left", buttons=1)
    browser.ask("Input.dispatchMouseEvent", type="mouseReleased", x=5, y=5, button="left", clickCount=1)
    wait_for(lambda: stage.loop.hand(0)[3] == 0, 30)
    buttons = "Array.from({length: 16}, (_, i) => ({pressed: i == 4, value: 0}))"
    pad = f"{{connected: true, id: 'test', axes: [0.25, -0.5, 0.05, 1], buttons: {buttons}}}"
    browser.value(f"navigator.getGamepads = () => [{pad}]")
    wait_for(lambda: stage.loop.hand(0)[2] == [0.5, 0.0, 0.25, 0.0, 0.0, -1.0] and stage.loop.hand(0)[3] == 1, 30)
    browser.value("navigator.getGamepads = () => []")
    wait_for(lambda: not any(stage.loop.hand(0)[2]), 30)
    browser.value("document.activeElement.blur()")
    browser.hold("Enter", 13, "\r")
    browser.key("d", 68)
    wait_for(lambda: stage.loop.hand(0)[2][1] == pytest.approx(-0.2) and stage.loop.hand(0)[3] == 1, 30)
    browser.value("window.dispatchEvent(new Event('blur'))")
    wait_for(lambda: stage.loop.hand(0)[3] == 0, 30)
    browser.hold("Enter", 13, "\r", again=True)
    first = stage.loop.hand(0)[0]
    wait_for(lambda: stage.loop.hand(0)[0] > first + 50, 30)
    assert stage.loop.hand(0)[3] == 0, "what the keyboard repeats is no press: the key has to come up first"
    browser.key("Enter", 13, kinds=["keyUp"])
    browser.click("#rehearse")


@pytest.mark.alone
def test_slow_page_delays_no_one(stage, browser):
    """The browser stands still: telemetry loses nothing, the ring does not fill, and the page is at the newest instant right after."""
    wait_for(lambda: live(browser), 30)
    with Client(stage.telemetry, stage.command) as client:
        assert client.status()["overflow"] == 0
        with browser.stopped():
            seen = [batch for batch, _ in zip(client.subscribe(["tick"]), range(75), strict=False)]
        assert all(batch.lost == 0 for batch in seen) and seen[-1].tick - seen[0].tick == 74 * 20
        status = client.status()
        assert status["overflow"] == 0 and status["ring_waiting"] < 1000 and status["log_lost_ticks"] == 0
        wait_for(lambda: live(browser), 30)
        newest = next(client.subscribe(["tick"])).t
        assert float(browser.value("document.querySelector('.time-shown').innerText").split()[0]) > newest - 5.0


@pytest.mark.alone
def test_two_pages_one_commands(stage, browser, tmp_path):
    other = Browser(tmp_path / "browser")
    try:
        other.go(stage.address)
        wait_for(lambda: live(other), 30)
        browser.go(stage.address)
        for page in (browser, other):
            wait_for(lambda page=page: live(page) and "phase\ncontact\nin this phase" in page.text, 30)
        browser.click("#start")
        wait_for(lambda: "start: taken by the loop" in browser.text, 30)
        other.click("#park")
        wait_for(lambda: "the desk is held by" in other.text and "console" in other.text.split("the desk is held by")[1][:40], 30)
        wait_for(lambda: live(other), 30)  # it may watch
        before = len(taken(stage))
        other.click("#abort")
        wait_for(lambda: "abort: taken by the loop" in other.text, 30)
        assert taken(stage)[before:] == [CODES["command"]["abort"]], "and stop"
    finally:
        other.close()


@pytest.mark.alone
def test_every_view_of_a_log(stage, browser, pictures):
    end = float(Recording(stage.log).log.time_s[-1])
    for view in ("mimic", "operator"):
        browser.go(f"{stage.address}{view}?log={stage.log}")
        wait_for(lambda: "T capture" in browser.text and f"of {end:.2f} s" in browser.text, 30)
        browser.value("document.querySelector('#capture').click()")
        wait_for(lambda: browser.value("document.querySelectorAll('.hil-lamp.on').length") >= 3, 30)
        words = browser.value("document.querySelector('.hil-words').innerText")
        capture = words.split("T capture")[1].split()[0]
        assert words.split("T current")[1].split()[0] == capture, "all windows show the capture's instant"
        assert browser.picture(pictures / f"{view}_log.png").stat().st_size > 30_000
    browser.value("document.activeElement.blur()")
    before = time_shown(browser)
    for _ in range(3):
        browser.key("ArrowRight", 39)
    wait_for(lambda: time_shown(browser) == pytest.approx(before + 0.15, abs=2e-3), 30)
    browser.value("document.querySelector('#step').value = '0.5'")
    browser.key("ArrowLeft", 37)
    wait_for(lambda: time_shown(browser) == pytest.approx(before - 0.35, abs=2e-3), 30)
    browser.key(" ", 32)
    wait_for(lambda: time_shown(browser) > before, 30)


@pytest.mark.alone
def test_replay_and_comparison(stage, browser, pictures):
    browser.go(stage.address + "replay")
    wait_for(lambda: "no log chosen" in browser.text, 30)
    items = "document.querySelectorAll('.q-menu .q-item')"
    browser.click(".q-select")
    wait_for(lambda: browser.value(f"{items}.length") == 2, 30)
    browser.value(f"[...{items}].find(e => e.innerText.includes('first')).click()")
    wait_for(lambda: browser.value(f"{items}.length") == 0, 30)  # the menu is closed, not about to
    wait_for(lambda: "ticks, whole" in browser.text and "phase approach" in browser.text, 30)
    wait_for(lambda: min(ink(browser, ".hil-box canvas")) > 500, 30)
    browser.value("document.querySelector('#contact').click()")
    before = time_shown(browser)
    browser.value("document.querySelector('#play').click()")
    wait_for(lambda: time_shown(browser) > before + 0.2, 30)
    browser.value("document.querySelector('#play').click()")
    wait_for(lambda: "phase\tcontact" in browser.text, 30)
    assert browser.picture(pictures / "replay.png").stat().st_size > 30_000
    browser.value("document.querySelector('#other').closest('.q-field').querySelector('.q-field__control').click()")
    wait_for(lambda: browser.value(f"[...{items}].some(e => e.innerText.includes('second'))"), 30)
    browser.value(f"[...{items}].find(e => e.innerText.includes('second')).click()")
    rows = "document.querySelectorAll('.comparison tbody tr').length"
    wait_for(lambda: "aligned at first contact" in browser.text and browser.value(rows) == 19, 30)
    browser.value("document.querySelector('.comparison').scrollIntoView()")
    browser.drawn()
    assert browser.picture(pictures / "comparison.png").stat().st_size > 30_000


WIDTHS = (360, 390, 768, 1366, 1920, 2560)
# what is outside of the window, a table's or card's own scrolled inside left out; and whether ABORT is where it is drawn, all of it
OUTSIDE = """[...document.querySelectorAll('body *')].filter((e) => {
    const r = e.getBoundingClientRect();
    const own = e.closest('.q-table__middle, .q-loading-bar, .hil-card, .hil-column, .hil-figures, .hil-skip');
    return r.width && r.height && (r.right > innerWidth + 0.5 || r.left < -0.5) && !own;
}).map((e) => `${e.tagName}.${e.className}`)"""
ABORT = """(() => {
    const b = document.querySelector('#abort');
    if (!b) return null;
    const r = b.getBoundingClientRect();
    const corners = [[4, 4], [r.width - 4, 4], [4, r.height - 4], [r.width - 4, r.height - 4], [r.width / 2, r.height / 2]];
    const seen = corners.every(([x, y]) => document.elementFromPoint(r.left + x, r.top + y) === b);
    return { inside: r.left >= 0 && r.right <= innerWidth && r.top >= 0 && r.bottom <= innerHeight, seen, wide: r.width, tall: r.height,
             cut: b.scrollWidth > b.clientWidth || b.scrollHeight > b.clientHeight };
})()"""


@pytest.mark.alone
@pytest.mark.parametrize("view", ["", "operator", "mimic"])  # the page of a log gives no commands
def test_abort_is_whole_and_in_sight_at_every_width(stage, browser, pictures, view):
    try:
        browser.go(stage.address + view)
        wait_for(lambda: live(browser), 40)
        for width in WIDTHS:
            browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=760, deviceScaleFactor=1, mobile=False)
            wait_for(lambda w=width: browser.value("innerWidth") == w, 20)
            browser.value("window.scrollTo(0, 0)")
            wait_for(lambda: browser.value("document.documentElement.scrollWidth <= innerWidth") and browser.value(OUTSIDE) == [], 10)
            for down in ("0", "document.documentElement.scrollHeight"):
                browser.value(f"window.scrollTo(0, {down})")
                wait_for(lambda: browser.value(ABORT) is not None, 20)  # a page that connects again is rebuilt
                found = browser.value(ABORT)
                assert found["inside"] and found["seen"] and not found["cut"], (view, width, found)
                assert found["wide"] >= 88 and found["tall"] >= 40, "large enough for a finger"
            browser.picture(pictures / f"{view or 'engineer'}_{width}.png")
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


@pytest.mark.alone
def test_curve_and_table_show_one_tick(stage, browser):
    """The figure beside the curve is the table's, tick by tick round the first contact."""
    browser.go(f"{stage.address}replay")
    wait_for(lambda: "no log chosen" in browser.text, 30)
    items = "document.querySelectorAll('.q-menu .q-item')"
    browser.click(".q-select")
    wait_for(lambda: browser.value(f"{items}.length") == 2, 30)
    browser.value(f"[...{items}].find(e => e.innerText.includes('first')).click()")
    wait_for(lambda: browser.value(f"{items}.length") == 0, 30)  # the menu is closed, not about to
    wait_for(lambda: "ticks, whole" in browser.text, 30)
    browser.value(
        "window.drawn = []; const plain = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {"
        "window.drawn.push(text); return plain.call(this, text, ...at); }"
    )
    records = Recording(stage.log).log.records
    contact = int(np.searchsorted(records["time_ns"], records["first_contact_time"][-1] * 1e9 - 1))
    cells = "Object.fromEntries([...document.querySelectorAll('.hil-values tbody tr')].map((r) => [...r.children].map((c) => c.innerText)))"
    for i in range(contact - 2, contact + 3):
        browser.value(f"window.hilGo({records['time_ns'][i] * 1e-9})")
        tick = str(int(records["tick"][i]))
        wait_for(lambda tick=tick: browser.value(cells).get("tick") == tick and f"tick {tick}" in browser.text, 30)
        table = float(browser.value(cells)["F_T[0]"])
        browser.value("window.drawn.length = 0")
        wait_for(lambda: "F_T[0]" in browser.value("window.drawn"), 10)
        drawn = browser.value("window.drawn")
        curve = float(drawn[drawn.index("F_T[0]") + 1])
        assert table == pytest.approx(records["F_T"][i, 0], rel=1e-5) and curve == pytest.approx(table, rel=1e-4), tick


# contrast of a text against what is behind it (WCAG 2): colours and the opacity and filters of everything round it
CONTRAST = """((e) => {
    const linear = (x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const light = (c) => {
        const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map((x) => linear(x / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (let up = e; up; up = up.parentElement) {
        const { opacity, filter } = getComputedStyle(up);
        if (opacity !== '1' || filter !== 'none') return 0;
    }
    const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(e).backgroundColor)].sort();
    return (b + 0.05) / (a + 0.05);
})"""


def banner(browser):
    """Lines of the banner; every one is in the window and can be read."""
    lines = browser.value(f"[...document.querySelectorAll('.hil-banner div')].map((e) => [e.innerText, {CONTRAST}(e)])") or []
    assert all(contrast >= 4.5 for _, contrast in lines), lines
    return [text for text, _ in lines]


@pytest.mark.alone
def test_a_trip_does_not_fade_and_lost_ended_gone_and_never_started_are_told_apart(stage, browser, pictures, start_console):
    browser.go(stage.address + "operator")
    wait_for(lambda: "rehearsal" in browser.text and live(browser), 30)
    wait_for(lambda: banner(browser) == [], 30)
    stage.trip("operator_stop")
    trip = f"Run RT-07 TRIPPED at tick {stage.tripped}"
    action = "operator stop: ABORT was commanded. What to do: none: the operator caused it."
    wait_for(lambda: any(line.startswith(trip) and action in line for line in banner(browser)), 30)
    stage.end()
    wait_for(lambda: any(line.startswith("CONNECTION LOST to run RT-07: no data for") for line in banner(browser)), 30)
    wait_for(lambda: browser.value("document.body.classList.contains('stale')"), 10)
    assert "grayscale" in browser.value("getComputedStyle(document.querySelector('.hil-box.live')).filter")
    for width in (360, 1366):
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=760, deviceScaleFactor=1, mobile=False)
        wait_for(lambda w=width: browser.value("innerWidth") == w, 20)
        assert banner(browser)[0].startswith(trip) and browser.value(ABORT)["seen"]
        browser.picture(pictures / f"tripped_{width}.png")
    browser.ask("Emulation.clearDeviceMetricsOverride")
    # the server says goodbye
    stage.loop.block.finished = True
    stage.process.finish()
    wait_for(lambda: any(line.startswith("Run RT-07 has ended: tripped.") for line in banner(browser)), 30)
    assert banner(browser)[0].startswith(trip) and not any("LOST" in line for line in banner(browser))
    # a page that is opened now is not told that the run lives
    browser.go(stage.address)
    wait_for(lambda: any("has ended: tripped." in line for line in banner(browser)), 30)
    wait_for(lambda: f"held, tripped at tick {stage.tripped}" in browser.text, 30)
    browser.picture(pictures / "ended.png")
    # another console, which never saw a run; then it dies
    never = start_console("--telemetry", "tcp://127.0.0.1:1", "--command", "tcp://127.0.0.1:1")
    browser.go(never)
    wait_for(lambda: banner(browser) and "No run yet: nothing has come from tcp://127.0.0.1:1" in banner(browser)[0], 30)
    foreign = [url for url in browser.requests if url.partition(":")[0] in ("http", "https", "ws", "wss") and "//127.0.0.1:" not in url]
    assert browser.requests and not foreign, "nothing came from elsewhere"
    assert browser.complaints == []
    start_console.running[-1].kill()
    wait_for(lambda: any(line.startswith("CONSOLE DOES NOT ANSWER") for line in banner(browser)), 30)
    browser.picture(pictures / "gone.png")


def time_shown(browser):
    return float(browser.value("document.querySelector('.time-shown').innerText").split()[0])
