"""tools/soak.py: one short flight as it is flown for hours, and the verdict over what hours would have left."""

import json
import random
import shutil

import pytest

from hil_server.config import SHIPPED
from tests.processes import free_port
from tools.soak import SETTLED_S, Look, main, verdict

DOCKING = SHIPPED / "programmes" / "docking.toml"
GOOD = {"flight": 1, "t": 60.0, "exit_code": 0, "end": "captured", "ticks": 250_000, "missed": 3, "overflow": 0, "complete": True,
        "equal": True, "faults": [], "lateness_us": {"p50": 18.0, "p99": 40.0, "max": 900.0}, "good": True}  # fmt: skip


def looks(**growth):
    """Two hours of one server whose figures grow by these shares."""
    made = []
    for t in range(0, 7200, 5):
        share = max(0.0, t - SETTLED_S) / (7200 - SETTLED_S)
        values = {name: round(start * (1 + growth.get(name, 0.0) * share)) for name, start in
                  (("memory_kb", 500_000), ("descriptors", 20), ("threads", 8))}  # fmt: skip
        made.append(Look(float(t), "server", 1, **values))
    return made


def test_a_good_soak():
    found = verdict([GOOD] * 28, looks(memory_kb=0.01), 7200.0)
    assert found["wrong"] == [] and found["ticks"] == 7_000_000 and found["memory_kb"]["after_settling"] < 501_000


@pytest.mark.parametrize(
    ("flight", "growth", "word"),
    [
        ({"overflow": 2}, {}, "2 samples lost"),
        ({"equal": False}, {}, "replay"),
        ({"complete": False}, {}, "complete"),
        ({}, {"memory_kb": 0.05}, "memory"),
        ({}, {"memory_kb": -0.05}, "memory"),
        ({}, {"descriptors": 0.5}, "descriptors 2"),
        ({}, {"threads": 1.0}, "threads "),
    ],
)
def test_a_bad_one_is_named(flight, growth, word):
    (wrong,) = verdict([GOOD, GOOD | flight], looks(**growth), 7200.0)["wrong"]
    assert word in wrong


def test_a_soak_without_a_flight_is_not_good():
    assert verdict([{"flight": 1, "error": "DeviceError: absent", "exit_code": 4, "good": False}], [], 60.0)["wrong"]


@pytest.mark.alone
def test_one_flight(tmp_path, monkeypatch):
    """Held, disturbed, docked, replayed; the log of a good flight is gone, the rest of what was seen is there."""
    monkeypatch.setattr(random.Random, "uniform", lambda self, low, high: low)
    config, quick = tmp_path / "quick.toml", "speed_max_m_s = 0.4\nacceleration_max_m_s2 = 1.0\nsettle_s = 0.1\nafter_capture_s = 0.5\n"
    config.write_text(DOCKING.read_text().replace("after_capture_s = 2.0\n", quick))
    while True:
        own = ["--config", str(config), "--out", str(tmp_path / "soak"), "--port", str(min(free_port(), 65000))]
        code = main(["--hours", "0.001", "--hold-s", "5", *own])
        found = json.loads((tmp_path / "soak" / "soak.json").read_text())
        (flight,) = map(json.loads, (tmp_path / "soak" / "flights.jsonl").read_text().splitlines())
        if flight["end"] != "tripped" or not flight["missed"]:
            break
        shutil.rmtree(tmp_path / "soak")  # the machine stood still in the middle of the flight: another one
    assert flight["end"] == "captured" and flight["equal"] and flight["overflow"] == 0, flight
    assert found["toggled_by_operator"] >= 1 and sum(found["shown_by_devices"].values()) == 2 and found["wrong"] == [] and code == 0
    assert not list((tmp_path / "soak").glob("flight_*")) and (tmp_path / "soak" / "soak.png").stat().st_size > 10_000
    seen = (tmp_path / "soak" / "processes.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in seen} >= {"server", "stand", "telemetry"}
