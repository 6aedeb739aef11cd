"""Moments of a docking out of samples written by hand: their order, their edges, blocks of any size."""

import numpy as np
import pytest

from hil_server.line.free_run import Thinner
from hil_server.log.moments import MOMENTS, Moments, peaks_of
from hil_server.log.record import record_dtype
from rt_kernels.layout import BITS, CODES

MOTION, SEQUENCE = CODES["motion"], CODES["sequence"]
RELEASE, DRIVE, EXTEND = (BITS["mechanism_command"][name] for name in ("release", "drive", "extend"))
TOGETHER = BITS["mechanism_signal"]["planes_together"]
# moment → how many ticks, and what its records have
COURSE = [
    ("stand", 50, {}),
    ("approach", 40, {"motion": "free"}),
    ("impact", 100, {"motion": "free", "touched": True, "contact": 1}),
    ("impact", 60, {"motion": "free", "touched": True, "captured": True, "sequence": "damping", "contact": 1}),
    ("retraction", 80, {"motion": "free", "touched": True, "captured": True, "sequence": "retract", "command": DRIVE}),
    ("closure", 30, {"motion": "free", "touched": True, "captured": True, "sequence": "retract", "command": DRIVE, "signal": TOGETHER}),
    ("closure", 10, {"motion": "free", "touched": True, "captured": True, "sequence": "retract", "command": DRIVE}),  # they rattle
    ("docked", 50, {"motion": "free", "touched": True, "captured": True, "sequence": "complete", "signal": TOGETHER}),
    ("release", 3, {"motion": "free", "touched": True, "captured": True, "sequence": "separation", "command": RELEASE}),
    ("release", 20, {"motion": "free", "touched": True, "captured": True, "sequence": "separation", "command": RELEASE, "contact": 1}),
    ("separation", 70, {"motion": "free", "touched": True, "captured": True, "sequence": "separation", "command": RELEASE}),
    ("separation", 5, {"motion": "free", "touched": True, "captured": True, "sequence": "separation", "command": RELEASE, "contact": 1}),
    ("stand", 60, {"touched": True, "captured": True, "sequence": "separation", "command": RELEASE, "contact": 1}),
]


def written(course):
    """Records of the course, 1 ms apart, and the names of their moments."""
    names = [moment for moment, count, _ in course for _ in range(count)]
    r = np.zeros(len(names), record_dtype(0))
    r["tick"], r["time_ns"], r["periods"] = np.arange(len(r)), np.arange(len(r)) * 1_000_000, 1
    at = 0
    for _, count, has in course:
        rows = slice(at, at + count)
        r["motion"][rows] = MOTION[has.get("motion", "follow_profile")]
        r["first_contact_time"][rows] = 0.09 if has.get("touched") else -1.0
        r["capture_time"][rows] = 0.19 if has.get("captured") else -1.0
        r["sequence"][rows] = SEQUENCE[has.get("sequence", "press" if has.get("touched") else "approach")]
        r["mechanism_command"][rows], r["signal_discrete"][rows] = has.get("command", 0), has.get("signal", 0)
        r["contact"][rows] = has.get("contact", 0)
        at += count
    r["F_T"] = np.random.default_rng(5).normal(0.0, 100.0, (len(r), 6))
    return r, np.array(names)


@pytest.mark.parametrize("block", [1, 7, 97, 10_000])
def test_moments_in_blocks_of_any_size(block):
    records, names = written(COURSE)
    teller = Moments()
    found = np.concatenate([teller.of(records[i : i + block]) for i in range(0, len(records), block)])
    assert [list(MOMENTS)[place] for place in found] == names.tolist()


def test_peaks_of_each_moment_are_those_of_its_rows():
    records, names = written(COURSE)
    found = peaks_of(records)
    rows = {row["moment"]: row for row in found.rows()}
    assert list(rows) == [moment for moment in MOMENTS if moment in names]
    for moment, row in rows.items():
        inside = names == moment
        force = np.linalg.norm(records["F_T"][inside, :3], axis=1)
        assert row["force_n"] == force.max() and row["force_time_s"] == pytest.approx(1e-3 * np.flatnonzero(inside)[force.argmax()])
        assert row["moment_n_m"] == np.linalg.norm(records["F_T"][inside, 3:], axis=1).max()
        assert [abs(v) for v in row["wrench"].values()] == np.abs(records["F_T"][inside]).max(axis=0).tolist()
    closed = np.linalg.norm(records["F_T"][names != "stand", :3], axis=1)
    assert found.closed()["force_n"] == closed.max() and found.headline() is rows["impact"]


def test_a_release_that_nothing_is_felt_of_ends_after_a_second():
    quiet = [("docked", 10, COURSE[7][2]), ("release", 1001, COURSE[8][2]), ("separation", 500, COURSE[8][2])]
    records, names = written(quiet)
    assert [list(MOMENTS)[place] for place in Moments().of(records)] == names.tolist()


def test_a_capture_before_the_first_contact_begins_the_impact():
    """A gentle berthing: the latch catches below the threshold of a contact."""
    gentle = {"motion": "free", "captured": True}
    records, names = written([("approach", 20, {"motion": "free"}), ("impact", 20, gentle)])
    assert [list(MOMENTS)[place] for place in Moments().of(records)] == names.tolist()


def test_a_drive_that_extends_retracts_nothing_and_a_retreat_separates():
    out = {"motion": "free", "touched": True, "captured": True, "sequence": "manual", "command": DRIVE | EXTEND}
    back = {"motion": "free", "touched": True, "sequence": "retreat", "contact": 1}
    records, names = written([("impact", 20, out), ("separation", 20, back)])
    assert [list(MOMENTS)[place] for place in Moments().of(records)] == names.tolist()


def test_a_loop_that_was_never_closed_has_no_docking():
    records, _ = written([("stand", 30, {})])
    found = peaks_of(records)
    assert found.closed() is None and found.headline() is None and [row["moment"] for row in found.rows()] == ["stand"]
    assert peaks_of(records[:0]).rows() == []


@pytest.mark.parametrize("block", [13, 256])
def test_a_thinned_log_keeps_the_peaks_of_every_moment(block):
    records, _ = written(COURSE)
    records["F_T"][100] = 5000.0  # the impact is above all that follows
    chosen = Thinner(50)
    kept = [chosen(records[i : i + block]).copy() for i in range(0, len(records), block)]
    thin = np.concatenate([*kept, chosen.last()] if len(chosen.last()) else kept)
    assert len(thin) < 0.6 * len(records)
    # the last record of a moment need not be kept, its first and those of its peaks are
    whole, found = ([{**row, "to_s": 0.0} for row in peaks_of(some).rows()] for some in (records, thin))
    assert found == whole
