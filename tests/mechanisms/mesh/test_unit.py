"""Unit from meshes: forces of contact, springs, latches and stops in closed form, energy of closed cycles, and what it refuses."""

import numpy as np
import pytest

from rt_kernels.mechanisms.mesh.unit import MeshUnit
from rt_kernels.offline.two_craft import TwoCraft, aux_index
from tests.mechanisms.mesh import drawings

R, R_CONE, K = 0.04, 0.12, 1e10
HERE = [0, 0, 0, 0, 0, 0, 1]
POINTS = [
    {"name": "nose", "body": "active", "position_m": [0.0, 0.0, 0.0]},
    {"name": "face", "body": "target", "position_m": [0.0, 0.01, 0.0]},
]
RELEASE, RELEASED = 4, 1 << 17


@pytest.fixture(scope="module")
def ball_on_plate(tmp_path_factory):
    """Keys of a rigid ball whose foremost point is the origin of A, and a plate with its face in x = 0 of T."""
    ball = drawings.ball(R, [-R, 0, 0], 6)
    return drawings.unit_keys(tmp_path_factory.mktemp("plate"), ball, drawings.plate(thick=0.05), cell=0.005, spacing=0.001, friction=0.0,
                              dissipation_s_per_m=0.0)  # fmt: skip


@pytest.fixture(scope="module")
def ball_in_cone(tmp_path_factory):
    ball = drawings.ball(R_CONE, [0, 0, 0], 6)
    return drawings.unit_keys(tmp_path_factory.mktemp("cone"), ball, drawings.cone(sections=256), cell=0.006, spacing=0.002, friction=0.0,
                              dissipation_s_per_m=0.0)  # fmt: skip


def still(unit, X, V=(0, 0, 0, 0, 0, 0), dt=1e-6, commands=0):
    """Wrenches and channels at a pose; substeps of nothing move nothing."""
    aux = np.zeros(sum(c.count for c in unit.AUX))
    found = unit.advance(X, V, dt, commands=commands, aux=aux)
    return found | {c.name: aux[aux_index(unit, c.name)] for c in unit.AUX if c.count == 1}


def driven(unit, path, dt=1e-3):
    """Work of the port on the target along poses (n, 3) without turning, and the largest energy stored on the way."""
    F, stored = [], []
    for here, there in zip(path, [*path[1:], path[0]], strict=True):
        aux = np.zeros(sum(c.count for c in unit.AUX))
        F.append(unit.advance([*here, 0, 0, 0, 1], [*(there - here) / dt, 0, 0, 0], dt, aux=aux)["F_T"][:3])
        stored.append(aux[aux_index(unit, "mesh.energy_stored")])
    mean = 0.5 * (np.array(F)[1:] + np.array(F)[:-1])
    return np.sum(mean * np.diff(path, axis=0)), max(stored)


def test_ball_on_a_plane(ball_on_plate):
    """A zone of the sphere has the area 2 pi R dh, so F = pi k R d^2, its energy pi k R d^3/3, the area 2 pi R d; through the centre."""
    unit = MeshUnit(**ball_on_plate)
    for d in (5e-4, 1e-3, 2e-3):
        found = still(unit, [d, 0.013, -0.02, 0, 0, 0, 1])
        force = np.pi * K * R * d * d
        assert found["F_T"][0] == pytest.approx(force, rel=0.01) and np.abs(found["F_T"][1:3]).max() < 0.002 * force
        assert found["F_T"][3:] == pytest.approx(np.cross([d - R, 0.013, -0.02], found["F_T"][:3]), abs=1e-4 * force)
        assert found["mesh.energy_stored"] == pytest.approx(np.pi * K * R * d**3 / 3, rel=0.015)
        assert found["mesh.area"] == pytest.approx(2 * np.pi * R * d, rel=0.06) and found["mesh.depth"] == pytest.approx(d, rel=0.03)
        assert unit.max_penetration([d, 0.013, -0.02, 0, 0, 0, 1]) == found["mesh.depth"]
        # the same force on the active unit, at its own port
        assert found["F_A"][:3] == pytest.approx(-found["F_T"][:3])
        assert found["F_A"][3:] == pytest.approx(-found["F_T"][3:] + np.cross([d, 0.013, -0.02], found["F_T"][:3]), abs=1e-9 * force)


def test_ball_in_a_cone(ball_in_cone):
    """Contact along a circle: per length k (4/3) d sqrt(2 R d) of the depth d along the normal; d is what the axial way gives."""
    unit = MeshUnit(**ball_in_cone)
    half = np.arctan2(0.4 - 0.055, 0.3)  # of the cone's angle
    x_touch = 0.055 / np.tan(half) - R_CONE / np.sin(half)
    assert unit.max_penetration([x_touch - 3e-4, 0, 0, 0, 0, 0, 1]) == 0.0
    for way in (6e-4, 1.2e-3):
        found = still(unit, [x_touch + way, 0, 0, 0, 0, 0, 1])
        d = way * np.sin(half)
        circle = 2 * np.pi * R_CONE * np.cos(half)
        # the force along the axis is what the normals give; chords of the cone and the ball: 2 %, the surface falls away from the circle
        assert found["F_T"][0] == pytest.approx(K * 4 / 3 * d * np.sqrt(2 * R_CONE * d) * circle * np.sin(half), rel=0.05)
        assert np.abs(found["F_T"][1:3]).max() < 0.01 * found["F_T"][0]


@pytest.mark.parametrize("unit", ["plate", "cone"])
def test_nothing_is_gained_in_a_closed_cycle(ball_on_plate, ball_in_cone, unit):
    """Into the target, along it, out and back: springs give back what they took to 0.1 %; damper and friction only take."""
    keys, depth = (ball_on_plate, 1.5e-3) if unit == "plate" else (ball_in_cone, 2e-3)
    start = np.zeros(3) if unit == "plate" else np.array([-0.1111, 0.0, 0.0])
    s = np.linspace(0.0, 1.0, 401)[:, None]
    turn = 2 * np.pi * s
    path = start + np.hstack([depth * np.sin(np.pi * s) ** 2, 0.0012 * np.sin(turn) * np.sin(np.pi * s), 0.001 * np.sin(2 * turn)])
    work, most = driven(MeshUnit(**keys), path)
    assert most > 0.01 and abs(work) < 1e-3 * most
    rubbed, _ = driven(MeshUnit(**keys | {"friction": 0.2}), path)
    damped, _ = driven(MeshUnit(**keys | {"dissipation_s_per_m": 2.0}), path)
    assert rubbed > 1e-3 * most and damped > 1e-3 * most


def test_elastic_blow(ball_on_plate):
    """A free craft bounces off with its speed; with dissipation c the restitution is 1 - 2 c v/3 (Hunt and Crossley 1975) for small c v."""
    heavy = dict(mass=1e9, inertia=np.eye(3) * 1e9, X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
    for c, v, expected in ((0.0, 0.05, 1.0), (1.0, 0.05, 1.0 - 2 / 3 * 0.05)):
        unit = MeshUnit(**ball_on_plate | {"dissipation_s_per_m": c, "substeps": 2})
        light = dict(mass=100.0, inertia=np.eye(3), X_port=HERE, X=[-0.0005, 0, 0, 0, 0, 0, 1], v=[v, 0, 0], w=[0, 0, 0])
        rows = TwoCraft(unit, light, heavy).run(0.1, 2e-5)
        assert rows["F_T"][:, 0].max() > 50.0 and rows["F_T"][-1, 0] == 0.0
        assert -rows["V_TA"][-1, 0] / v == pytest.approx(expected, abs=2e-3)
        supplied, stored, lost = (rows["aux"][-1, aux_index(unit, f"mesh.energy_{k}")] for k in ("supplied", "stored", "lost"))
        assert supplied == pytest.approx(0.5 * 100.0 * v * v * (1 - expected**2), abs=3e-4) and stored == 0.0
        assert lost == pytest.approx(supplied, abs=1e-3 * 0.125)


def test_friction_slides_and_is_smooth(ball_on_plate):
    unit = MeshUnit(**ball_on_plate | {"friction": 0.3, "slip_speed_m_s": 1e-3, "contact_mass_kg": 1e6})
    X = [1e-3, 0, 0, 0, 0, 0, 1]
    fast, slow = still(unit, X, [0, 0.1, 0, 0, 0, 0])["F_T"], still(unit, X, [0, 1e-3, 0, 0, 0, 0])["F_T"]
    assert fast[1] / fast[0] == pytest.approx(0.3, rel=1e-3) and slow[1] / slow[0] == pytest.approx(0.3 / np.sqrt(2.0), rel=1e-3)
    # friction that a light body bears: what stops its slip in a sub-step
    light = MeshUnit(**ball_on_plate | {"friction": 0.3, "contact_mass_kg": 0.01, "substeps": 1})
    assert still(light, X, [0, 0.01, 0, 0, 0, 0], dt=1e-3)["F_T"][1] == pytest.approx(0.01 / 1e-3 * 0.01, rel=1e-6)


def test_spring_pushes_and_latch_pulls(ball_on_plate):
    spring = {"active": "nose", "target": "face", "axis": [2, 0, 0], "preload_n": 5.0, "stiffness_n_per_m": 1e3, "damping_n_s_per_m": 10.0}
    latch = {"active": "nose", "target": "face", "radius_m": 0.02, "stiffness_n_per_m": 1e4, "damping_n_s_per_m": 20.0}
    soft = {"points": POINTS, "springs": [spring | {"docked": True}], "latches": [latch], "foundation_stiffness_n_per_m3": 1e4}
    unit = MeshUnit(**ball_on_plate | soft)
    away = still(unit, [-0.001, 0.01, 0, 0, 0, 0, 1])
    assert not away["F_T"].any() and away["signals"] == 0
    found = still(unit, [0.002, 0.01, 0, 0, 0, 0, 1], [0.1, 0, 0, 0, 0, 0])
    assert found["F_T"][0] == pytest.approx(5.0 + 1e3 * 0.002 + 10.0 * 0.1, abs=0.01)
    assert found["F_T"][5] == pytest.approx(-0.01 * found["F_T"][0])
    assert found["signals"] == 0b111  # touches, captured, docked
    held = still(unit, [-0.002, 0.01, 0, 0, 0, 0, 1], [-0.1, 0, 0, 0, 0, 0])
    assert held["F_T"][0] == pytest.approx(-1e4 * 0.002 - 20.0 * 0.1) and held["signals"] == 0b010
    assert not still(unit, [-0.002, 0.01, 0, 0, 0, 0, 1], commands=RELEASE)["F_T"].any()
    # it does not close beside its axis
    assert still(unit, [0.002, 0.05, 0, 0, 0, 0, 1])["signals"] & 0b010 == 0


SPRUNG = {"head_m": [-R, 0, 0], "head_mass_kg": 2.0, "axial_stiffness_n_per_m": 5e3, "lateral_stiffness_n_per_m": 8e3}


def test_head_swings_on_its_springs(ball_on_plate):
    """A jerk of the base leaves the head swinging with sqrt(k/m) along X and Y, sqrt(k/I) about Z; the base feels its momentum."""
    turning = {"head_inertia_kg_m2": [0.01, 0.02, 0.02], "roll_stiffness_n_m_per_rad": 40.0, "tilt_stiffness_n_m_per_rad": 60.0}
    unit = MeshUnit(**ball_on_plate | SPRUNG | turning)
    X, dt, n = [-1, 0, 0, 0, 0, 0, 1], 1e-4, 4000
    unit.advance(X, [0.1, 0.1, 0, 0, 0, 0.5], dt)
    rows = []
    for _ in range(n):
        aux = np.zeros(sum(c.count for c in unit.AUX))
        F = unit.advance(X, np.zeros(6), dt, aux=aux)["F_A"]
        rows.append([*aux[aux_index(unit, "mesh.deflection") :][:6], *F])
    rows = np.array(rows)
    for column, w in ((0, np.sqrt(5e3 / 2)), (1, np.sqrt(8e3 / 2)), (5, np.sqrt(60.0 / 0.02))):
        x = rows[:, column]
        crossings = np.flatnonzero((x[:-1] < 0.0) & (x[1:] >= 0.0))
        period = dt * (crossings[-1] - crossings[0]) / (len(crossings) - 1)
        assert 2 * np.pi / period == pytest.approx(w, rel=2e-3)
    assert np.abs(rows[:, 6]).max() == pytest.approx(0.1 * np.sqrt(5e3 * 2.0), rel=0.01)


def test_release_draws_the_head_away(ball_on_plate):
    """Pressed against the plate, it comes off when the release has moved it back; its energy is the port's and the drive's work."""
    away = {"axial_damping_n_s_per_m": 60.0, "release_way_m": [-0.02, 0.0, 0.0], "release_s": 0.5}
    unit = MeshUnit(**ball_on_plate | SPRUNG | away)
    for x in np.linspace(0.0, 0.01, 2000):
        found = still(unit, [x, 0, 0, 0, 0, 0, 1], [0.005, 0, 0, 0, 0, 0], dt=1e-3)
    assert found["F_T"][0] == pytest.approx(5e3 * 0.0098 + 60.0 * 0.005, rel=2e-3)  # 0.2 mm in the plate
    pressed = found
    for k in range(1000):
        found = still(unit, [0.01, 0, 0, 0, 0, 0, 1], dt=1e-3, commands=RELEASE)
        assert bool(found["signals"] & RELEASED) == (k >= 500) or k == 499
    assert found["F_T"][0] == 0.0 and unit.max_penetration([0.01, 0, 0, 0, 0, 0, 1]) > 0.0
    gained, stored, lost = (found[f"mesh.energy_{k}"] - pressed[f"mesh.energy_{k}"] for k in ("supplied", "stored", "lost"))
    assert gained == pytest.approx(stored + lost, abs=0.02 * lost) and stored < 0.0


def test_stops_end_the_travel(ball_on_plate):
    """Pressed against the plate, the head gives way by its travel and then by little."""
    stiff = {"travel_m": [0.01, 0.01, 0.01], "stop_stiffness_n_per_m": 1e6, "axial_damping_n_s_per_m": 500.0}
    unit = MeshUnit(**ball_on_plate | SPRUNG | stiff)
    for x in np.linspace(0.0, 0.012, 4000):
        found = unit.advance([x, 0, 0, 0, 0, 0, 1], [0.012 / 4, 0, 0, 0, 0, 0], 1e-3)
    stroke = found["analog"][0]
    assert stroke > 0.0103 and found["F_A"][0] == pytest.approx(-5e3 * stroke - 1e6 * (stroke - 0.01), abs=5.0)
    assert found["F_T"][0] == pytest.approx(-found["F_A"][0], rel=0.02)


def test_the_search_changes_no_bit(ball_in_cone):
    """A unit that was elsewhere before gives the same bytes as one that was not."""
    here, there = MeshUnit(**ball_in_cone), MeshUnit(**ball_in_cone)
    rng = np.random.default_rng(6)
    for _ in range(50):
        X = [-0.111 + 0.002 * rng.random(), *rng.uniform(-0.002, 0.002, 2), 0, 0, 0, 1]
        there.max_penetration([-0.11 - 0.05 * rng.random(), 0.01, 0, 0, 0, 0, 1])
        assert still(here, X)["F_T"].tobytes() == still(there, X)["F_T"].tobytes()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"field_sha256": "00"}, "field_sha256: '00', but .* another field; take the file"),
        ({"field": "/nowhere/unit.npz"}, "field: /nowhere/unit.npz: No such file"),
        ({"penetration_max_m": 0.05}, "penetration_max_m: 0.05, limit 0.005.*--depth-m"),
        ({"head_mass_kg": 1.0}, "axial_stiffness_n_per_m"),
        ({"head_inertia_kg_m2": [1.0, 0.0, 1.0]}, "head_inertia_kg_m2: all three"),
        ({"latches": [{"active": "nose", "target": "nose"}], "points": POINTS}, r"latches\[0\].target: 'nose' is no.*there are: face"),
        ({"springs": [{"active": "nose", "target": "face", "axis": [0, 0, 0]}], "points": POINTS}, r"springs\[0\].axis must not be zero"),
        ({"points": POINTS[:1] * 2}, r"points\[1\].name: 'nose' is there twice"),
    ],
)
def test_refusals(ball_on_plate, keys, words):
    with pytest.raises(ValueError, match=words):
        MeshUnit(**ball_on_plate | keys)
