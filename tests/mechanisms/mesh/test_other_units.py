"""Units of other kinds from their STL files: petals of an androgynous ring, and a hook that catches a bar."""

import re

import numpy as np
import pytest

from hil_server import cli
from hil_server.config import unit_meshes
from hil_server.log.reader import read_log
from rt_kernels.mechanisms.mesh.unit import MeshUnit
from rt_kernels.offline.two_craft import TwoCraft, aux_index
from tests.mechanisms.mesh import drawings

HERE = [0, 0, 0, 0, 0, 0, 1]
RING = """head_m = [-0.01, 0.0, 0.0]
head_mass_kg = 12.0
head_inertia_kg_m2 = [1.4, 0.8, 0.8]
axial_stiffness_n_per_m = 8000.0
axial_damping_n_s_per_m = 3000.0
lateral_stiffness_n_per_m = 15000.0
lateral_damping_n_s_per_m = 1500.0
roll_stiffness_n_m_per_rad = 1500.0
roll_damping_n_m_s_per_rad = 120.0
tilt_stiffness_n_m_per_rad = 1500.0
tilt_damping_n_m_s_per_rad = 120.0
"""
# three places of the faces, between the petals: a latch, and a stop where the faces meet
PLACE = """
[[points]]
name = "catch {k}"
body = "active"
position_m = [0.0, {y:.5f}, {z:.5f}]

[[points]]
name = "seat {k}"
body = "target"
position_m = [-0.002, {y:.5f}, {z:.5f}]

[[points]]
name = "face {k}"
body = "target"
position_m = [0.0, {y:.5f}, {z:.5f}]

[[latches]]
active = "catch {k}"
target = "seat {k}"

[[springs]]
active = "catch {k}"
target = "face {k}"
stiffness_n_per_m = 5e5
damping_n_s_per_m = 1e3
docked = true
"""


def test_petals_lead_a_ring_home(tmp_path, monkeypatch, capsys):
    """With 3 cm of miss the petals touch first, and push the ring sideways until the three latches close."""
    monkeypatch.chdir(tmp_path)
    half = drawings.petal_ring()
    for name, body in (("ring.stl", half), ("mate.stl", drawings.mate_of(half))):
        body.copy().apply_scale(1000.0).export(name)
    options = ["--unit", "mm", "--cell-m", "0.006", "--spacing-m", "0.008", "--miss-m", "0.03", "-0.02"]
    assert cli.main(["new-unit", "ring.stl", "mate.stl", *options]) == 0
    text = (tmp_path / "unit/unit.toml").read_text()
    places = "".join(PLACE.format(k=k, y=0.35 * np.cos(a), z=0.35 * np.sin(a)) for k, a in enumerate(np.radians([90, 210, 330])))
    (tmp_path / "unit/unit.toml").write_text(text[: text.index("# the active drawing is a rigid body")] + RING + places)
    ideal = ["--set", "test.stand=stands/ideal_stand.toml"]  # its logs have the channels of the unit
    assert cli.main(["simulate", "unit/test.toml", *ideal, "--out", "run", "--quiet", "--no-report"]) == 0
    assert re.search(r"end +captured", capsys.readouterr().out)
    log = read_log("run/run.mcap")
    latched, area, phi = log.aux("mesh.latched"), log.aux("mesh.area").ravel(), log.aux("mesh.deflection")
    closed, touched = np.flatnonzero(latched[:, :3].all(axis=1))[0], np.flatnonzero(area)[0]
    assert 0.05 < log.time_s[closed] - log.time_s[touched] < 3.0
    assert np.abs(phi[touched:closed, 1:3]).max() > 0.005  # led sideways
    assert log.records["X_TA"][closed, 0] > -0.02


def test_a_hook_snaps_over_a_bar_and_its_keeper_holds(tmp_path):
    """The ramp of the hook has to go 12 mm down under the bar, less 1 mm of miss; then it swings back and the keeper bears the pull."""
    for name, body in (("hook.stl", drawings.hook()), ("bar.stl", drawings.bar())):
        body.export(tmp_path / name)
    hook, bar = (unit_meshes.read_mesh(tmp_path / name) for name in ("hook.stl", "bar.stl"))
    places = (("barb", "active", [0.01, 0.0, -0.004]), ("behind", "target", [0.0085, 0.0, -0.004]), ("tip", "active", [0.05, 0.0, -0.032]),
              ("pad", "target", [0.052, 0.0, -0.032]))  # fmt: skip
    springs = {"head_m": [-0.03, 0.0, -0.02], "head_mass_kg": 0.5, "axial_stiffness_n_per_m": 5e4, "axial_damping_n_s_per_m": 250.0,
               "lateral_stiffness_n_per_m": 400.0, "lateral_damping_n_s_per_m": 6.0}  # fmt: skip
    keeper = {"active": "barb", "target": "behind", "radius_m": 0.006, "stiffness_n_per_m": 1e5, "damping_n_s_per_m": 500.0}
    pad = {"active": "tip", "target": "pad", "stiffness_n_per_m": 2e4, "damping_n_s_per_m": 1500.0, "docked": True}
    points = [{"name": name, "body": body, "position_m": place} for name, body, place in places]
    keys = {"points": points, "latches": [keeper], "springs": [pad], **springs}
    unit = MeshUnit(**drawings.unit_keys(tmp_path, hook, bar, cell=0.002, spacing=0.002, depth=0.002, **keys))
    active = dict(mass=2000.0, inertia=np.diag([800.0, 1e3, 1e3]), X_port=[0.4, 0, 0, 0, 0, 0, 1], X=[-0.45, 0.002, 0.001, 0, 0, 0, 1],
                  v=[0.03, 0, 0], w=[0, 0, 0])  # fmt: skip
    target = dict(mass=5000.0, inertia=np.diag([2e3, 3e3, 3e3]), X_port=[-0.5, 0, 0, 0, 0, 0, 1], X=[0.5, 0, 0, 0, 0, 0, 1], v=[0, 0, 0],
                  w=[0, 0, 0])  # fmt: skip
    rows = TwoCraft(unit, active, target).run(5.0, 1e-3)
    signals, down = rows["signals"].astype(int), rows["aux"][:, aux_index(unit, "mesh.deflection") + 2]
    captured = np.flatnonzero(signals & 0b010)[0]
    assert down[:captured].min() == pytest.approx(-0.013, abs=1e-3) and (rows["status"] == 0).all()
    assert abs(down[captured + 200]) < 1e-3 and (signals[captured:] & 0b010).all()
    assert rows["F_T"][captured:, 0].min() < -20.0 and np.abs(rows["X_TA"][captured:, 0]).max() < 0.015
    supplied, stored, lost = (rows["aux"][-1, aux_index(unit, f"mesh.energy_{k}")] for k in ("supplied", "stored", "lost"))
    assert supplied == pytest.approx(stored + lost, rel=5e-3)
