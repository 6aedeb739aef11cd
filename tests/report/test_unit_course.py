"""What a docking unit did over a run: switchings, events in order, diagrams that the units declare."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import load_test
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.report import unit_course
from hil_server.report.run_page import make_report
from hil_server.report.scene import instants, scene
from hil_server.run.session import Options, simulate
from rt_kernels.pictures import Picture


def test_switchings_are_the_changes_of_bits():
    words = np.array([1, 1, 3, 2, 2, 0], np.uint32)
    assert unit_course.switchings(words, {"a": 1, "b": 2}) == [(2, "b", True), (3, "a", False), (5, "b", False)]


@pytest.mark.parametrize("name", sorted(registry.parts("mechanisms")))
def test_every_channel_of_a_declared_diagram_is_one_of_the_unit(name):
    part = registry.part("mechanisms", name)
    known = {channel.name for channel in part.AUX}
    for one in getattr(part, "PICTURE", Picture).DIAGRAMS:
        assert set(one.channels) <= known, one.label


@pytest.fixture(scope="module")
def docking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ring")
    short = ("guidance.finish_on_capture=true", "guidance.after_capture_s=0.5", "guidance.contact_max_s=8.0", "test.duration_max_s=12.0",
             "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0")  # fmt: skip
    simulate(load_test("programmes/virtual_docking_ring.toml", short), Options(out=str(folder), quiet=True, report=False))
    return read_log(folder / "run.mcap")


def test_events_are_in_order_and_tell_the_docking(docking):
    found = unit_course.events(Run(docking))
    times, words = zip(*found, strict=True)
    assert list(times) == sorted(times)
    contact, capture = words.index("first contact"), words.index("capture")
    assert words[0].startswith("phase ") and contact < capture
    latches = [i for i, word in enumerate(words) if word.startswith("latch") and word.endswith(" on")]
    assert latches and contact < latches[0] and times[latches[-1]] <= times[capture] + 1e-9


def test_the_report_draws_the_unit(docking, tmp_path):
    drawn = {plot.title: plot for plot in unit_course.state(Run(docking))}
    assert drawn["latches have closed"].lanes and drawn["latches have closed"].values is None
    peak = np.abs(drawn["travel of the rods, mm"].values).max()
    assert peak == pytest.approx(1e3 * np.abs(docking.aux("stroke")).max(), rel=0.02)
    on = unit_course.sensors(docking)
    assert [name for name, spans, _ in on.lanes if spans] == [name for name, *_ in on.lanes]
    page = make_report(docking.path, tmp_path).read_text()
    assert "Docking unit" in page and "first contact" in page


def test_a_part_that_the_unit_does_not_have_has_no_curve(docking):
    travels = next(i for i, c in enumerate(docking.header.aux) if c.name == "stroke")
    assert docking.header.aux[travels].count == 6
    still = replace(docking, records=docking.records.copy())
    still.aux("stroke")[:, 2] = 0.0
    drawn = {plot.title: plot for plot in unit_course.state(Run(still))}["travel of the rods, mm"]
    assert len(drawn.names) == 5 == drawn.values.shape[1] and not any("3" in name for name in drawn.names)


def test_the_scene_holds_the_units_and_the_stand_where_they_were(docking):
    """The active port's poses are the log's, and the legs drawn in the target's axes have the lengths that the run demanded, to the
    millimetre to which they are written."""
    made = scene(Run(docking))
    about = json.loads(re.search(r'application/json">(.*?)</script>', made)[1])
    rows = instants(docking)
    assert about["times"] == pytest.approx(docking.time_s[rows].tolist(), abs=1e-4)
    assert np.abs(np.array(about["poses"]["A"]) - docking.records["X_TA"][rows]).max() <= 1e-5
    legs = np.linalg.norm(np.array(about["stand"]["top"]) - np.array(about["stand"]["base"]), axis=2)
    assert np.abs(legs - docking.records["leg_demand"][rows]).max() < 2e-3
    bodies = {shape["body"] for shape in about["shapes"]}
    assert {"T", "A"} <= bodies and bodies - {"T"} <= set(about["poses"])
    bare = replace(docking, header=replace(docking.header, configuration={}))
    assert scene(Run(bare)) == "", "nothing to draw without a configuration"
