"""Large crafts: a ship with four drives at a station of twelve joints and 96 modes, an arm on that station takes a module in orbit."""

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.judge.crafts import names_in
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES

FREE = CODES["motion"]["free"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Variant → its log."""
    out = tmp_path_factory.mktemp("large") / "out"
    assert main(["simulate", str(SHIPPED / "programmes/large_crafts.toml"), "--out", str(out), "--no-report", "--quiet"]) == 0
    return {file.parent.name: file for file in out.glob("*/run.mcap")}


@pytest.mark.parametrize(("variant", "joints", "modes"), [("STATION", 16, 108), ("ARM", 19, 104)])
def test_they_are_captured_and_replay_to_the_same_bytes(runs, variant, joints, modes, capsys):
    """Every joint has channels of its own, moves, and stays near its place; the ports part no faster than the unit's spring throws them."""
    (file,) = (path for name, path in runs.items() if variant in name)
    log = read_log(file)
    records, names = log.records, names_in(log.header.notes)
    assert records["end_cause"][-1] == CODES["end_cause"]["captured"]
    assert len(names["joints"]) == joints and len(names["modes"]) == modes
    position, rate = (log.aux(f"joint_{what}").reshape(log.ticks, -1) for what in ("position", "rate"))
    assert position.shape[1] == rate.shape[1] == joints
    free = np.flatnonzero(records["motion"] == FREE)
    moved = np.ptp(position[free], axis=0)
    assert (moved > 0.0).all() and moved.max() < np.radians(10.0)
    before, after = records["V_TA"][free[0], 0], records["V_TA"][free[-1], 0]
    assert before == pytest.approx(0.12, rel=0.02) and abs(after) < 0.6 * before
    assert log.aux("modal_energy").max() > 1e-3 and np.isfinite(log.aux("modal_coordinate")).all()
    assert main(["replay", str(file), "--verify"]) == 0
    assert "equal" in capsys.readouterr().out
