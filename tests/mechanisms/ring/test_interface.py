"""Interface of the ring units: planes, pushers, pins by closed forms; drawn together, latched in the nest and parted again, both units."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.ring.elastic.unit import ElasticAdaptive
from rt_kernels.mechanisms.ring.interface import RingInterface
from rt_kernels.mechanisms.ring.parameters import RING_PARAMETERS, joint_circles
from rt_kernels.mechanisms.ring.unit import Ring
from rt_kernels.offline.two_craft import TwoCraft, aux_index, first_contact
from tests.mechanisms.shipped import column, shipped

HERE = [0, 0, 0, 0, 0, 0, 1]
DRIVE, RELEASE = 1, 4
TOGETHER, PUSHERS, RUNNING = 1 << 18, 1 << 8, 1 << 13


@pytest.fixture(scope="module")
def table():
    return {p.key: p.default for p in RING_PARAMETERS} | shipped("ring")


def pose(table, gap, miss=(0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    """X_TA with the docking planes `gap` apart; turn: rotation vector."""
    return np.array([-table["plane_x_m"] - gap, *miss, *Rotation.from_rotvec(turn).as_quat()])


# ------------------------------------------------------------------------------------------------------------- closed forms


def test_pressed_planes_carry_their_springs_and_pushers(table):
    """Flat, 0.1 mm deep: four springs of planes, four pushers, nothing across; tilted: the moment of their places."""
    law, depth = RingInterface(table), 1e-4
    k, K, length = table["pusher_stiffness_n_per_m"], table["plane_stiffness_n_per_m"], table["pusher_length_m"]
    out = law.touch(pose(table, -depth))
    want = 4 * K * depth + 4 * k * (length + depth)
    assert out["F_T"] == pytest.approx([want, 0, 0, 0, 0, 0], abs=1e-9) and out["F_A"] == pytest.approx([-want, 0, 0, 0, 0, 0], abs=1e-9)
    assert out["force"] == pytest.approx(4 * K * depth) and out["stored"] == pytest.approx(2 * K * depth**2 + 2 * k * (length + depth) ** 2)
    # free: nothing
    assert not law.touch(pose(table, length + 1e-6))["F_T"].any()
    # 1 mrad about Y with open planes: the pushers at +Z and -Z differ by k 2 r sin, which turns the target with it
    angle, r = 1e-3, table["pusher_radius_m"]
    out = law.touch(pose(table, 0.04, turn=(0.0, angle, 0.0)))
    gaps = 0.04 + table["plane_x_m"] * (1 - np.cos(angle)) - np.array([0, 1, 0, -1]) * r * np.sin(angle)
    assert out["gaps"] == pytest.approx(gaps, abs=1e-12) and out["pushers"] == pytest.approx(k * (length - gaps), rel=1e-9)
    across = -table["plane_x_m"] * np.sin(angle)  # of all places: the planes lie before the point about which the base is turned
    assert out["F_T"][4] == pytest.approx(2 * k * r**2 * np.sin(angle) * np.cos(angle) + across * out["F_T"][0], rel=1e-6)


def test_wrenches_on_both_sides_are_opposite(table):
    """Turned, missed, moving: moved to T, the wrench on the base is minus that on the target."""
    X, V = pose(table, 0.001, (2e-3, -1e-3), (0.01, 0.003, -0.002)), [0.02, 0.01, -0.01, 0.02, -0.01, 0.03]
    out, R = RingInterface(table).touch(X, V), Rotation.from_quat(X[3:])
    f, m = R.apply(out["F_A"][:3]), R.apply(out["F_A"][3:])
    assert np.abs(out["F_T"]).min() > 1e-3
    np.testing.assert_allclose(out["F_T"], -np.concatenate([f, m + np.cross(X[:3], f)]), rtol=1e-12, atol=1e-9)


def test_what_is_put_in_is_stored_or_lost(table):
    """In and out, across and turning: taken in the middle of each step, work is what springs store and dampers and friction lose."""
    law, h = RingInterface(table | {"pusher_stiffness_n_per_m": 200.0}), 5e-4
    X, work, lost, most = pose(table, 0.01), 0.0, 0.0, 0.0
    before = law.touch(X)["stored"]
    for i in range(2400):
        s = np.pi * i / 1200
        V = np.array([0.027 * np.sin(s), 1e-3 * np.sin(s), -1e-3 * np.sin(2 * s), 0, 0, 0])
        out = law.touch([*(X[:3] + 0.5 * h * V[:3]), *X[3:]], V)
        work += h * out["F_T"] @ V
        lost += h * out["lost_power"]
        X[:3] += h * V[:3]
        now = law.touch(X)
        most = max(most, now["stored"])
        assert work == pytest.approx(now["stored"] + lost - before, abs=1e-3 * most)
        assert out["lost_power"] >= 0.0
    assert lost > 0.05 * most and now["force"] == 0.0


@pytest.mark.parametrize("speed", [0.002, 0.02])
def test_planes_that_close_flat_have_the_stated_restitution(table, speed):
    """At the ticks of a run, at any speed; without pushers."""
    law, h = RingInterface(table | {"pusher_stiffness_n_per_m": 0.0}), 5e-4
    x, v, mass = -table["plane_x_m"] - 1e-5, speed, table["plane_mass_kg"]
    for _ in range(2000):
        f = law.touch([x + 0.5 * h * v, 0, 0, 0, 0, 0, 1], [v, 0, 0, 0, 0, 0])["F_T"][0]
        v -= h * f / mass
        x += h * v
    assert -v / speed == pytest.approx(table["plane_restitution"], abs=0.02)


def test_pins_take_out_miss_and_roll(table):
    """Within their play nothing; beyond it they push back; before they reach the sockets they are free."""
    law, play, reach = RingInterface(table), table["pin_clearance_m"], table["pin_length_m"]
    assert not law.touch(pose(table, 0.001, (0.7 * play, 0.0)))["pins"].any()
    out = law.touch(pose(table, 0.001, (play + 1e-4, 0.0)))
    # on the cylinder of both sockets, along Y: the miss of the base pushes the target the same way
    assert out["F_T"][1] == pytest.approx(2 * table["plane_stiffness_n_per_m"] * 1e-4, rel=0.01) and (out["pins"] > 0.0).all()
    roll = 2 * (play + 1e-4) / table["pusher_radius_m"]
    assert law.touch(pose(table, 0.001, turn=(roll, 0, 0)))["F_T"][3] > 10.0
    assert law.touch(pose(table, 0.001, turn=(-roll, 0, 0)))["F_T"][3] < -10.0
    # the mouths catch 15 mm at half the way and push along the axis, too; beyond their length the pins touch nothing
    out = law.touch(pose(table, 0.5 * reach, (0.018, 0.0)))
    assert out["F_T"][1] > 0.0 and out["F_T"][0] > 4 * table["pusher_stiffness_n_per_m"] * (table["pusher_length_m"] - 0.5 * reach)
    assert not law.touch(pose(table, reach + 1e-4, (0.018, 0.0)))["pins"].any()


# ---------------------------------------------------------------------------------------------------------------- the units


def drawn_together(unit, longest):
    """7 t meets 400 t at 0.1 m/s, small misses, is captured and drawn in until 2 s after the nest has latched."""
    q = np.array([0.01, 0.005, -0.008, 0.9999])
    q /= np.linalg.norm(q)
    X = first_contact(unit, q, 0.03, -0.02)
    X[0] -= 0.02
    active = dict(mass=7000.0, inertia=np.diag([4235.0, 30700.0, 30700.0]), X_port=[3.6, 0, 0, 0, 0, 0, 1],
                  X=[*(X[:3] - Rotation.from_quat(q).apply([3.6, 0, 0])), *q], v=[0.1, 0, 0], w=[0, 0, 0])  # fmt: skip
    target = dict(mass=4e5, inertia=np.diag([5e7, 1e8, 1e8]), X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
    trial = TwoCraft(unit, active, target)
    captured = trial.run(45.0, 5e-4, every=50)
    trial.run(longest, 5e-4, every=50, commands=DRIVE, stop_signals=TOGETHER)
    return trial, captured, trial.run(10.0, 5e-4, every=10, commands=DRIVE)


def channel(unit, out, name, width=1):
    return column(unit, out, name, width)[-1]


@pytest.mark.parametrize("name", ["ring", "ring_idss", "hunt", "elastic_adaptive"])
def test_drawn_together_pressed_latched_and_parted(name):
    """The end of a retraction is an equilibrium of planes, pushers and what holds the ring; released, the pushers part the craft."""
    table = shipped(name)
    unit = (ElasticAdaptive if name == "elastic_adaptive" else Ring)(**table)
    trial, _, docked = drawn_together(unit, 600.0)
    assert not docked["status"].any() and channel(unit, docked, "nest_held") == 1.0
    assert docked["signals"][-1] & TOGETHER and docked["signals"][-1] & PUSHERS and not docked["signals"][-1] & RUNNING
    gaps = [channel(unit, docked, f"plane{i}_gap") for i in range(1, 5)]
    planes, pushers = channel(unit, docked, "plane_force"), sum(channel(unit, docked, f"plane{i}_pusher") for i in range(1, 5))
    deepest = 5e-4 if name == "elastic_adaptive" else 2e-4  # its cables are stretched further before the drive stands
    assert -deepest < min(gaps) <= max(gaps) <= 0.0
    assert planes == pytest.approx(-table["plane_stiffness_n_per_m"] * sum(gaps), rel=0.02) and planes > 0.7 * table["plane_preload_n"]
    roll, *tilt = Rotation.from_quat(docked["X_TA"][-1, 3:]).as_rotvec(degrees=True)
    assert abs(roll) < 0.1 and np.hypot(*tilt) < 0.01 and np.hypot(*docked["X_TA"][-1, 1:3]) < 1e-3
    # at rest: the pull of the ring is what planes and pushers carry
    assert np.abs(docked["V_TA"][-1]).max() < 1e-4 and abs(docked["F_T"][-1, 0]) < 0.02 * (planes + pushers)
    if name != "elastic_adaptive":
        # the legs' springs, along X by the direction of strut or link; the nest holds the ring where they had brought it
        force, stroke = (channel(unit, docked, one, 6) for one in ("spring_force", "stroke"))
        base, ring = joint_circles(table)
        # across and along X
        leg = np.array([np.full(6, np.linalg.norm(ring[0] - base[0])), np.full(6, channel(unit, docked, "ring_position"))])
        if name == "hunt":
            crank = np.array([np.cos(stroke / table["crank_length_m"]), np.sin(stroke / table["crank_length_m"])])
            leg -= table["crank_length_m"] * crank
            force = force * np.hypot(*leg) / (leg[1] * crank[0] - leg[0] * crank[1])
        assert -np.sum(force * leg[1] / np.hypot(*leg)) == pytest.approx(planes + pushers, rel=0.05)
    # parted: the pushers' energy on the reduced mass
    energy = 2 * table["pusher_stiffness_n_per_m"] * table["pusher_length_m"] ** 2
    parted = trial.run(4.0, 5e-4, every=10, commands=RELEASE)
    mass = 7000.0 * 4e5 / 4.07e5
    assert -parted["V_TA"][-1, 0] == pytest.approx(np.sqrt(2 * energy / mass), rel=0.03)
    assert channel(unit, parted, "plane_force") == 0.0 and not parted["status"].any()


def test_the_ledger_closes_over_the_whole_docking():
    """Work of the target = kinetic, springs, contact and what planes, pins and nest have: what the impact leaves open does not grow."""
    unit = Ring(**shipped("ring"))
    _, captured, out = drawn_together(unit, 200.0)
    work, parts = unit.LEDGER
    before, after = (channel(unit, run, work) - sum(channel(unit, run, name) for name in parts) for run in (captured, out))
    assert {"stored_planes", "lost_planes", "given_to_nest"} < set(parts)
    assert channel(unit, out, "stored_planes") == pytest.approx(2 * 3500.0 * 0.080**2, rel=0.01)
    assert channel(unit, out, "lost_planes") > 0.5 and abs(after - before) < 0.05


def test_without_planes_a_unit_is_as_before():
    """Keys of an older log: no force at the place of the planes, no nest, together by the gap of the drawn-in ring alone."""
    table = shipped("ring")
    old = {key: value for key, value in table.items() if key not in ("plane_x_m", "together_gap_m")}
    unit, aux = Ring(**old), np.zeros(sum(c.count for c in Ring.AUX))
    out = unit.advance([-0.16, 0, 0, 0, 0, 0, 1], np.zeros(6), 5e-4, commands=RELEASE, aux=aux)
    assert out["signals"] & TOGETHER and aux[aux_index(unit, "plane_force")] == 0.0 and aux[aux_index(unit, "stored_planes")] == 0.0
    new = Ring(**table)
    out = new.advance([-table["plane_x_m"] + 1e-4, 0, 0, 0, 0, 0, 1], np.zeros(6), 5e-4, commands=RELEASE, aux=aux)
    assert not out["signals"] & TOGETHER and aux[aux_index(new, "plane_force")] > 300.0


def test_errors_name_the_key():
    table = shipped("ring")
    for change, message in ((dict(socket_mouth_m=0.005), "socket_mouth_m: 0.005 m"), (dict(nest_x_m=0.3), "nest_x_m: 0.3 m"),
                            (dict(plane_restitution=0.05), "plane_restitution: must be a number within 0.15"),
                            (dict(leg_kind="RSU"), "crank_length_m: not given; legs of the kind RSU need it"),
                            (dict(leg_kind="RUS", crank_length_m=0.2, crank_angle_deg=40.0), "crank_angle_deg: 40.0 deg"),
                            (dict(leg_kind="RUS", crank_length_m=0.2, plane_x_m=None), "plane_x_m: not given")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Ring(**(table | change))
