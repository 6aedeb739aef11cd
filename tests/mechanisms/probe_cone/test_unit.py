"""Central docking unit: parameters, energy, base wrench, sensors, errata, and the course of a docking (numbers of the text)."""

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.hysteresis import Hysteresis
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone, implicit_euler
from rt_kernels.mechanisms.probe_cone_docking import virtual_docking
from rt_kernels.mechanisms.probe_cone_sequence import DockingSequence

CONFIGS = Path(__file__).parents[3] / "stand_configs" / "mechanisms"
DECLARED = {p.key: p for p in ProbeCone.PARAMETERS}
NAMES = [a.name.removeprefix("probe.") for a in ProbeCone.AUX]
DT = 5e-4
BITS = {n: i for i, n in enumerate(
    "DK1 DSG DK2 initial limiter lever1 lever2 lever3 pushers latch1 latch2 latch3 latch4 drive".split())} | {"together": 18}


def column(rows, name, offset=13):
    return rows[:, offset + NAMES.index(name)]


def configuration(name):
    table = tomllib.loads((CONFIGS / f"{name}.toml").read_text())
    assert table.pop("synthetic") is True and table.pop("part") == "probe_cone"
    for key in ("name", "description", "source"):
        table.pop(key)
    return table


def pose(x=-2.0, y=0.0, z=0.0, angles=(0.0, 0.0, 0.0)):
    return np.array([x, y, z, *Rotation.from_euler("YZX", angles).as_quat()])


def captured(part, compression=0.0):
    """Drive the unit coaxially into the socket at 0.1 m/s and let it rest; the pose of its base."""
    travel = 0.50 - 0.055 - 0.35 - 0.60 + compression
    X, _ = part.glide(pose(travel - 0.06), [0.1, 0, 0, 0, 0, 0], DT, int(round(0.06 / 0.1 / DT)))
    X, rows = part.glide(X, np.zeros(6), DT, 2000)
    return X, rows


# ------------------------------------------------------------------------------------------------------------- configuration


def test_shipped_configurations_are_marked_synthetic_and_build():
    existing = configuration("probe_cone_existing")
    assert set(existing) == set(DECLARED)
    for key, value in existing.items():
        assert value == DECLARED[key].default, key
    for name in ("probe_cone_existing", "probe_cone_modified", "probe_cone_movable_limiter"):
        ProbeCone(**configuration(name))


@pytest.mark.parametrize(("key", "value", "words"), [
    ("head_radius_m", 0.061, "socket radius"),
    ("head_radius_m", -1.0, "between"),
    ("head_radius_m", "thick", "head_radius_m"),
    ("head_radiu_m", 0.05, "unknown parameter 'head_radiu_m'"),
    ("substeps", 2.5, "whole number"),
    ("spring_base_m", [[0.0, 0.0, 0.0]], "shape"),
    ("axial_damper", "oil", "one of"),
    ("levers", 1, "true or false"),
    ("cone_profile_m", [[0.0, 0.4], [0.1, 0.3]], "cone_profile_m"),
    ("bend_return", [[0.0, 0.0], [1e-4, 0.8], [0.02, 170.0], [0.2, 1600.0]], "generate energy"),
    ("brake_table", [[0.0, 5.0], [1.0, 6.0]], "start at"),
    ("brake_axis", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "brake chain"),
    ("groove_ramp_m", [0.02, 0.01], "ramp"),
    ("probe_length_m", 0.9, "probe_length_range_m"),
    ("head_stiffness_n_per_m", float("nan"), "between"),
])
def test_wrong_parameters_are_named(key, value, words):
    with pytest.raises(ValueError, match=words):
        ProbeCone(**{key: value})


def test_N18_more_than_300_named_channels():
    assert len(NAMES) == len(set(NAMES)) > 300
    assert all(a.unit and a.meaning for a in ProbeCone.AUX)


def test_snapshot_restores_the_same_bits_and_runs_are_deterministic():
    one, two = ProbeCone(), ProbeCone()
    X, _ = captured(one, 0.03)
    saved = one.snapshot()
    V = [0.02, 0.01, -0.02, 0.01, 0.02, -0.01]
    _, first = one.glide(X, V, DT, 400)
    one.restore(saved)
    _, again = one.glide(X, V, DT, 400)
    two.restore(saved)
    _, other = two.glide(X, V, DT, 400)
    assert first.tobytes() == again.tobytes() == other.tobytes()


def test_advance_of_the_plug_equals_glide():
    one, two = ProbeCone(), ProbeCone()
    X = pose(-0.52)
    out = one.advance(X, [0.1, 0, 0, 0, 0, 0], DT)
    _, rows = two.glide(X, [0.1, 0, 0, 0, 0, 0], DT, 1)
    assert np.array_equal(out["F_T"], rows[0, :6]) and np.array_equal(out["F_A"], rows[0, 6:12]) and out["signals"] == rows[0, 12]


def test_first_contact_is_found_by_bisection():
    part = ProbeCone()

    def deepest(x):
        return part.max_penetration(pose(x, 0.15, -0.10))

    low, high = -1.6, -0.7
    assert deepest(low) == 0.0 and deepest(high) > 1e-3
    while not 0.0 < deepest(high) <= 1e-6:
        middle = 0.5 * (low + high)
        if deepest(middle) > 0.0:
            high = middle
        else:
            low = middle
    # closed form on the first cone: half-angle from the profile, head centre at d from the axis
    a, d = np.arctan2(0.24, 0.30), np.hypot(0.15, 0.10)
    touch = 0.40 / np.tan(a) - d / np.tan(a) - 0.055 / np.sin(a)
    assert 0.0 < high + 0.95 - touch <= 1e-6 / np.sin(a) * 1.001


# ------------------------------------------------------------------------------------------------------------------- energy


def cycle(part, X, shapes, period=4.0, turns=1.0):
    """Move the base on closed sinusoidal paths relative to the socket, tick by tick on constant twists."""
    n = int(period * turns / DT)
    s = np.linspace(0, 2 * np.pi * turns, n + 1)
    offset = np.array([a * (1 - np.cos(s)) / 2 if kind == "push" else a * np.sin(s) for a, kind in shapes]).T
    rows, start = [], X.copy()
    for i in range(n):
        here = start.copy()
        here[:3] += offset[i]
        V = np.concatenate([(offset[i + 1] - offset[i]) / DT, np.zeros(3)])
        rows.append(part.glide(here, V, DT, 1)[1][0])
    rest = start.copy()
    rest[:3] += offset[-1]
    _, tail = part.glide(rest, np.zeros(6), DT, 2000)
    return np.vstack([rows, tail])


def ledger(rows):
    supplied, stored, lost = (column(rows, f"energy_{k}") for k in ("supplied", "stored", "lost"))
    return supplied, stored, lost


@pytest.mark.parametrize(
    ("name", "reach"), [("probe_cone_existing", 0.05), ("probe_cone_modified", 0.05), ("probe_cone_movable_limiter", 0.15)]
)
def test_closed_cycles_gain_nothing_and_the_ledger_closes(name, reach):
    """Axial push with a lateral circle, captured: what is put in is stored or lost, within 0.1 %, and nothing is gained."""
    part = ProbeCone(**configuration(name))
    travel = 0.445 - part.coordinates[5] - DECLARED["exit_x_m"].default
    travel -= configuration(name).get("exit_x_m", 0.35) - 0.35
    X, _ = part.glide(pose(travel - 0.06), [0.1, 0, 0, 0, 0, 0], DT, 1200)
    X, rest = part.glide(X, np.zeros(6), DT, 2000)
    rows = cycle(part, X, [(reach, "push"), (0.012, "circle"), (0.008, "circle")])
    if name == "probe_cone_movable_limiter":
        # pressed in by the cone for most of its travel, and held back by the head
        assert np.ptp(column(rows, "movable_x")) > 0.05 and np.abs(column(rows, "limiter_f_x")).max() > 100.0
    supplied, stored, lost = (k - k_0[-1] for k, k_0 in zip(ledger(rows), ledger(rest), strict=True))
    turnover = np.sum(np.maximum(np.diff(supplied), 0))
    assert turnover > 20.0
    # the net work of the cycle is lost, never gained
    assert supplied[-1] - stored[-1] > -1e-9 * turnover
    assert lost[-1] > 0.2 * turnover
    assert np.all(np.diff(lost) > -1e-5 * turnover)
    gap = np.abs(supplied - stored - lost)
    assert gap[-1] < 1e-3 * turnover


def test_axial_loss_equals_hysteresis_area_and_screw_friction_work():
    """Slow coaxial push and return, magnetic brakes off: the two losses against independent sums."""
    k = 0.08
    part = ProbeCone(screw_friction=k, axial_brake_table=[[0.0, 0.0], [1.0, 0.0]], head_friction=0.0, sensor_friction_n=0.0)
    X, rest = captured(part, 0.005)
    rows = cycle(part, X, [(0.10, "push"), (0.0, "circle"), (0.0, "circle")], period=8.0)
    clutch = np.concatenate([[0.0], column(rest, "clutch_angle"), column(rows, "clutch_angle")])
    table = [DECLARED[key].default for key in ("axial_forward", "axial_return", "axial_pull_forward", "axial_pull_return")]
    element = Hysteresis(*table, slips=True)
    Q = element.path(clutch)
    at = len(rest)
    area = np.sum(0.5 * (Q[at + 1:] + Q[at:-1]) * np.diff(clutch[at:]))
    before = Hysteresis(*table, slips=True)
    before.path(clutch[: at + 1])
    area -= element.stored - before.stored
    lost = column(rows, "energy_lost_axial")[-1] - column(rest, "energy_lost_axial")[-1]
    assert lost > 50.0 and lost == pytest.approx(area, rel=1e-3)
    stroke = np.concatenate([column(rest, "stroke")[-1:], column(rows, "stroke")])
    force = column(rows, "screw_limit")
    screw = np.sum(force * np.abs(np.diff(stroke)))
    lost = column(rows, "energy_lost_screw")[-1] - column(rest, "energy_lost_screw")[-1]
    assert lost == pytest.approx(screw, rel=1e-3)
    assert np.all(force == pytest.approx(k * np.abs(column(rows, "contact_f_x")), rel=1e-9))


def test_modified_axial_loss_is_the_work_of_the_slipping_brakes():
    """FrT1 slips in to its stop, then FrT2; drawn out FrT1 comes back at a third of its moment: moments times slips, and the train."""
    v = configuration("probe_cone_modified")
    part = ProbeCone(**v, screw_friction=0.0, head_friction=0.0, sensor_friction_n=0.0)
    X, _ = part.glide(pose(-0.655 - 0.06), [0.1, 0, 0, 0, 0, 0], DT, 1200)
    X, rest = part.glide(X, np.zeros(6), DT, 2000)
    rows = cycle(part, X, [(0.22, "push"), (0.0, "circle"), (0.0, "circle")], period=12.0)
    names = ("clutch_angle", "clutch_slip1", "clutch_slip")
    clutch, slip1, slip2 = (np.concatenate([column(rest, name)[-1:], column(rows, name)]) for name in names)
    assert slip1.max() == pytest.approx(v["brake1_stroke_rad"], abs=1e-9) and slip2.max() > 1.0 and slip1[-1] < 0.5 * slip1.max()
    work = 0.0
    for slip, (inwards, outwards) in ((slip1, v["brake1_moment_n_m"]), (slip2, v["brake2_moment_n_m"])):
        step = np.diff(slip)
        work += inwards * step[step > 0].sum() - outwards * step[step < 0].sum()
    # the gear train in front of the brakes: the area of its own loop
    train = Hysteresis(*(DECLARED[key].default for key in ("axial_pull_forward", "axial_pull_return")))
    x = clutch - slip1 - slip2
    Q = train.path(x)
    work += np.sum(0.5 * (Q[1:] + Q[:-1]) * np.diff(x)) - train.stored
    lost = column(rows, "energy_lost_axial")[-1] - column(rest, "energy_lost_axial")[-1]
    assert lost > 100.0 and lost == pytest.approx(work, rel=1e-3)


def test_lateral_loss_equals_hysteresis_area():
    part = ProbeCone(brake_table=[[0.0, 0.0], [1.0, 0.0]])
    X, rest = captured(part, 0.01)
    rows = cycle(part, X, [(0.0, "circle"), (0.06, "circle"), (0.04, "circle")], period=6.0)
    lost = 0.0
    for i in (1, 2):
        stroke = np.concatenate([[0.0], column(rest, f"spring{i}_stroke"), column(rows, f"spring{i}_stroke")])
        element = Hysteresis(DECLARED["spring_forward"].default, DECLARED["spring_return"].default)
        Q = element.path(stroke)
        at = len(rest)
        start = Hysteresis(DECLARED["spring_forward"].default, DECLARED["spring_return"].default)
        start.path(stroke[: at + 1])
        lost += np.sum(0.5 * (Q[at + 1:] + Q[at:-1]) * np.diff(stroke[at:])) - (element.stored - start.stored)
    got = column(rows, "energy_lost_lateral")[-1] - column(rest, "energy_lost_lateral")[-1]
    assert got > 0.1 and got == pytest.approx(lost, rel=1e-3)


def test_quasi_static_push_pull_returns_to_the_same_nut_angle():
    """No slip, friction removed: a full cycle of the serial model ends where it began."""
    part = ProbeCone(screw_friction=0.0, sensor_friction_n=0.0)
    X, rest = captured(part, 0.005)
    rows = cycle(part, X, [(0.05, "push"), (0.0, "circle"), (0.0, "circle")], period=6.0)
    assert column(rows, "clutch_slip")[-1] == 0.0
    assert column(rows, "nut_angle")[-1] == pytest.approx(column(rest, "nut_angle")[-1], abs=0.02)


# -------------------------------------------------------------------------------------------------------------- base wrench


def test_base_and_target_wrench_balance_at_rest():
    part = ProbeCone()
    X, _ = captured(part, 0.03)
    X, _ = part.glide(X, [0, 0.02, -0.01, 0, 0, 0], DT, 1000)
    X, rows = part.glide(X, np.zeros(6), DT, 20000)
    F_T, F_A = rows[-1, :6], rows[-1, 6:12]
    assert abs(F_T[0]) > 500 and np.abs(F_T[1:3]).max() > 20
    R, p = Rotation.from_quat(X[3:]).as_matrix(), X[:3]
    force = R @ F_A[:3]
    moment = R @ F_A[3:] + np.cross(p, force)
    assert F_T[:3] + force == pytest.approx(np.zeros(3), abs=1e-3)
    assert F_T[3:] + moment == pytest.approx(np.zeros(3), abs=1e-3)


def test_two_free_craft_keep_their_momentum():
    """Internal forces only (no thrust): after the mechanism has come to rest the momentum of the two craft is that of the start."""
    part = ProbeCone()
    out = virtual_docking(part, (20e3, [4e4, 1.2e5, 1.2e5], [4, 0, 0]), (4e5, [1e7, 3e7, 3e7], [-15, 0, 0]),
                          pose(-0.50 - 0.15, 0.01, 0.005), [0.1, 0, 0, 0, 0, 0], duration=12.0)
    inside = sum(DECLARED[k].default for k in ("body_mass_kg", "probe_mass_kg"))
    # what is left is the momentum of the mechanism's own motion
    assert np.abs(out["momentum_drift"]).max() < inside * 0.02
    assert np.abs(out["momentum_drift"]).max() < 1e-3 * 20e3 * 0.1


# ------------------------------------------------------------------------------------------------------------------- errata


def test_E46_brake_opposes_the_speed_not_the_angle():
    part = ProbeCone(screw_friction=0.0)
    q = part.coordinates
    for stroke, rate in ((-0.02, 0.05), (-0.02, -0.05)):
        q[5] = 0.6 + stroke
        part.set_state(q, [0, 0, 0, 0, 0, rate, 0])
        _, rows = part.glide(pose(), np.zeros(6), 1e-6, 1)
        assert column(rows, "axial_friction")[0] * rate < 0


def test_E47_screw_friction_takes_energy_in_both_directions():
    """Pushed in by the contact force and pulled out: with the printed sign the loss would be negative in compression."""
    part = ProbeCone(screw_friction=0.2)
    X, _ = captured(part)
    losses = []
    for v in (0.05, -0.05):
        X, rows = part.glide(X, [v, 0, 0, 0, 0, 0], DT, 800)
        losses.append(np.diff(column(rows, "energy_lost_screw")))
        rate, friction = column(rows, "stroke_rate")[-1], column(rows, "axial_friction")[-1]
        assert rate * v < 0
        # against the motion, and as large as screw and brakes together: the printed sign would take the screw's part off in compression
        assert friction == pytest.approx(-np.sign(rate) * (column(rows, "screw_limit")[-1] + column(rows, "axial_brake")[-1]), rel=1e-9)
    assert all(step.min() >= 0 and step.sum() > 0.5 for step in losses)


def test_E48_E49_load_of_the_clutch_slows_the_drive_by_the_reflected_moment():
    """Retraction against a pull: the wheels slow down by the load times i_PG (printed: divided, 625 times more, and helping)."""
    free = ProbeCone()
    _, rows = free.glide(pose(), np.zeros(6), DT, 4000, commands=1)
    speed = column(rows, "drive_wheel_a_rate")[-1]
    v = {k: p.default for k, p in DECLARED.items()}
    no_load = (v["motor_stall_n_m"] - v["motor_friction_n_m"]) / v["motor_back_emf_n_m_s_per_rad"] / v["motor_ratio"][0]
    load = column(rows, "drive_load")[-1]
    i_PG = (v["reducer_radii_m"][0] / (2 * v["reducer_radii_m"][2])) ** 2
    assert i_PG == pytest.approx(0.04)

    def steady(load):
        per_wheel = 0.5 * i_PG * load / (v["drive_efficiency"] if load < 0 else 1 / v["drive_efficiency"])
        return no_load + per_wheel / (v["motor_ratio"][0] ** 2 * v["motor_back_emf_n_m_s_per_rad"])

    assert speed == pytest.approx(steady(load), rel=1e-6)
    # held by the latches the clutch pulls: the load is negative and slows the drive a little
    part = ProbeCone()
    X, _ = captured(part)
    X, rows = part.glide(X, np.zeros(6), DT, 140000, commands=1, every=100)
    assert column(rows, "drive_load")[-1] < -1.0
    pulled = column(rows, "drive_wheel_a_rate")[-1]
    assert 0.7 * speed < pulled < speed
    assert pulled == pytest.approx(steady(column(rows, "drive_load")[-1]), rel=1e-3)
    # the pull is limited by the clutch
    assert column(rows, "contact_f_x").max() == pytest.approx(100.0 * 0.25 * 2 * np.pi / 0.02, rel=0.08)


def test_E50_E51_differential_inertia_from_the_kinetic_energy():
    """One step from rest: the wheels' accelerations against the inertia matrix built from the kinetic energy."""
    v = {k: p.default for k, p in DECLARED.items()}
    v["wheel_radii_m"], v["motor_ratio"] = [0.02, 0.024, 0.022, 0.01], [100.0, 90.0]
    part = ProbeCone(**{k: v[k] for k in ("wheel_radii_m", "motor_ratio")})
    dt = 1e-6
    _, rows = part.glide(pose(), np.zeros(6), dt, 1, commands=1)
    Ra, Rb, RH, Rg = v["wheel_radii_m"]
    Ia, Ib, IH, Ig = v["wheel_inertia_kg_m2"]
    Ga, Gb, GH, Gg = v["reducer_radii_m"]
    JGa, JGH, JGg = v["reducer_inertia_kg_m2"]
    n = v["satellites"]

    def energy(a, b):
        H, g = (Ra * a + Rb * b) / (2 * RH), (Rb * b - Ra * a) / (2 * Rg)
        stage, total = H, 0.0
        for _ in range(2):                                     # two planetary stages, the fixed wheel at rest
            carrier, satellite = stage * Ga / (2 * GH), stage * Ga / (2 * Gg)
            total += JGa * stage**2 + JGH * (stage * Ga / (Ga + Gb)) ** 2 + n * JGg * satellite**2
            stage = carrier
        return 0.5 * (Ia * a**2 + Ib * b**2 + IH * H**2 + n * Ig * g**2 + total)

    A = np.array([[energy(1, 0) * 2, energy(1, 1) - energy(1, 0) - energy(0, 1)],
                  [energy(1, 1) - energy(1, 0) - energy(0, 1), energy(0, 1) * 2]])
    net = v["motor_stall_n_m"] - v["motor_friction_n_m"]
    expected = np.linalg.solve(A, net * np.array(v["motor_ratio"])) * dt
    got = column(rows, "drive_wheel_a_rate")[0], column(rows, "drive_wheel_b_rate")[0]
    assert got == pytest.approx(expected, rel=1e-4)


def test_drive_extends_to_the_initial_position():
    part = ProbeCone()
    X, _ = part.glide(pose(), np.zeros(6), DT, 20000, commands=1, every=20000)
    assert part.coordinates[5] < 0.595
    _, rows = part.glide(X, np.zeros(6), DT, 60000, commands=1 | 8, every=100)
    assert int(rows[-1, 12]) & 8 and part.coordinates[5] == pytest.approx(0.6, abs=2e-3)


def test_E53_E52_N17_head_frame_is_turned_by_the_end_slope():
    """Slope at the end of the beam 1.5 delta/l: the latch plane follows 1.5 sin q3, 1.5 sin q4, not q4, q5."""
    part = ProbeCone()
    q = np.array([0, 0, 0.02, -0.03, 0, 0.6, 0.0])
    part.set_state(q, np.zeros(7))
    _, rows = part.glide(pose(-0.55), np.zeros(6), 1e-9, 1)
    tips = np.array([[column(rows, f"latch{k}_tip_{axis}")[0] for axis in "xyz"] for k in (1, 2, 3, 4)])
    centre = tips.mean(axis=0)
    head = np.array([column(rows, f"head_{axis}")[0] for axis in "xyz"])
    axis = (head - centre) / np.linalg.norm(head - centre)
    # about Y by q3, then Z: the axis of a beam whose end slope is 1.5 sin q
    s3, s4 = 1.5 * np.sin(0.02), 1.5 * np.sin(-0.03)
    expected = np.array([np.cos(s4) * np.cos(s3), np.sin(s4), -np.cos(s4) * np.sin(s3)])
    assert axis == pytest.approx(expected, abs=2e-5)
    assert (tips[0] - tips[2]) @ (tips[1] - tips[3]) == pytest.approx(0.0, abs=1e-15)


def test_N17_bending_stiffness_goes_with_the_inverse_length():
    moments = []
    for length in (0.6, 0.4):
        part = ProbeCone(bend_damping_n_m_s_per_rad=0.0)
        part.set_state([0, 0, 0.0, 0, 0, length, 0], [0, 0, 0.5, 0, 0, 0, 0])
        _, rows = part.glide(pose(), np.zeros(6), DT, 3)
        moments.append(column(rows, "joint_bend_y")[-1] / column(rows, "bend_y")[-2])
        assert column(rows, "joint_stiffening")[-1] == pytest.approx(0.6 / column(rows, "length")[-2], rel=1e-3)
    assert moments[1] / moments[0] == pytest.approx(0.6 / 0.4, rel=0.02)


def test_golden_hatch_cover_step():
    h, m, k, c, f_beg, x_beg, f, v, x = 5e-4, 80.0, 4e6, 3e3, 500.0, 1e-4, 2500.0, 0.01, 3e-4
    got = implicit_euler(h, m, k, c, f - f_beg - k * (x - x_beg), v, x)
    assert got == pytest.approx((0.01696969696969697, 3.0848484848484844e-4), rel=1e-14)
    A = np.array([[1 + h * c / m, h * k / m], [-h, 1]])
    assert got == pytest.approx(tuple(np.linalg.solve(A, [v + (f - f_beg + k * x_beg) * h / m, x])), rel=1e-12)


def test_N6_stop_cone_of_45_degrees():
    from rt_kernels.contact.primitives import Cavity

    stop = Cavity([(0.0, 0.30), (0.1, 0.20)])
    (c,) = stop.sphere((0.05, 0.26, 0.0), 0.0)
    assert c["depth"] == pytest.approx((0.26 - (0.30 - 0.05)) / np.sqrt(2), abs=1e-15)
    assert c["n"] == pytest.approx((1 / np.sqrt(2), 1 / np.sqrt(2), 0))


# ---------------------------------------------------------------------------------------------------------- stops and sequence


def test_N16_lateral_stops_in_eight_equally_spaced_directions():
    """Swing limit over direction: the hard directions (spring or crank exhausted first) lie at multiples of 45 degrees."""
    part = ProbeCone()
    directions = np.radians(np.arange(0, 360, 7.5))
    limit = []
    for a in directions:
        for swing in np.arange(0.02, 0.5, 0.002):
            part.set_state([swing * -np.sin(a), swing * np.cos(a), 0, 0, 0, 0.6, 0], np.zeros(7))
            _, rows = part.glide(pose(), np.zeros(6), 1e-9, 1)
            strokes = [abs(column(rows, f"spring{i}_stroke")[0]) for i in (1, 2)]
            angles = [abs(column(rows, f"brake{i}_angle")[0]) for i in (1, 2)]
            if max(strokes) > 0.045 or max(angles) > 0.60:
                break
        limit.append(swing)
    limit = np.array(limit)
    nearest = np.array([i for i in range(len(limit)) if limit[i] <= limit[i - 1] and limit[i] <= limit[(i + 1) % len(limit)]])
    degrees = np.degrees(directions[nearest]) % 45
    assert np.all(np.minimum(degrees, 45 - degrees) <= 7.5)
    sectors = {int(round(d / 45)) % 8 for d in np.degrees(directions[nearest])}
    assert sectors == set(range(8))


def test_N7_no_capture_within_ten_seconds_reverses_the_thrust():
    cycle_ = DockingSequence()
    assert cycle_.step(0.1) == (0, 1)
    assert cycle_.step(0.1, DK1=True) == (0, 1 | 2)
    for _ in range(99):
        _, craft = cycle_.step(0.1)                            # contact is lost again: the timer goes on
    assert cycle_.phase == "press" and craft & 2
    for _ in range(3):
        _, craft = cycle_.step(0.1, DK1=True)
    assert cycle_.phase == "retreat" and craft == 1 | 4


def test_N8_delays_after_start_of_docking():
    cycle_, dt = DockingSequence(), 0.01
    cycle_.step(dt, DK1=True)
    cycle_.step(dt, DK1=True, DK2=True)                        # the bottom before the capture, then chatter: latched
    _, craft = cycle_.step(dt, DSG=True)
    assert cycle_.phase == "damping" and craft == 0
    start = cycle_.times["start"]
    history = [(cycle_.times["now"] - start, cycle_.step(dt, DSG=True)[0]) for _ in range(4000)]
    brakes = [t + dt for t, u in history if u & 2]
    drive = [t + dt for t, u in history if u & 1]
    assert brakes[0] == pytest.approx(2.0, abs=dt) and brakes[-1] + dt == pytest.approx(32.0, abs=dt)
    assert drive[0] == pytest.approx(35.0, abs=dt) and cycle_.phase == "retract"
    cycle_.step(dt, DSG=True, complete=True)
    assert cycle_.phase == "complete"


def test_N8_whole_process_takes_nearly_five_minutes():
    """The shipped unit as it is: first contact to planes together in 4.9 min. The text has 5 to 7 min; it gives neither the probe's way nor
    the drive's speed but for one unit (1 mm/s), and the shipped ones (190 mm, 0.8 mm/s) are invented."""
    out = docking(**ATV)
    assert out["phase"] == 5 and out["times"]["end"] - out["times"]["contact"] == pytest.approx(295.0, abs=6.0)
    drive, t = out["first"][BITS["drive"]], out["rows"][:, 0]
    on = (t > drive + 10.0) & (t < out["first"][BITS["pushers"]])
    assert np.polyfit(t[on], series(out, "stroke")[on], 1)[0] == pytest.approx(-8.1e-4, rel=0.02)


def test_sequence_manual_and_bad_delay():
    cycle_ = DockingSequence()
    cycle_.step(0.1, DK1=True)
    assert cycle_.step(0.1, manual=True) == (0, 0) and cycle_.phase == "manual"
    with pytest.raises(ValueError, match="brakes_delay_s"):
        DockingSequence(brakes_delay_s=-1.0)


# ---------------------------------------------------------------------------------------------------------- course of a docking


@cache
def docking(
    name="probe_cone_existing", vx=0.15, miss=(0.0, 0.0), angles=(0.0, 0.0, 0.0), v_lateral=(0.0, 0.0), w=(0.0, 0.0, 0.0), duration=20.0,
    target=420e3, press=200.0, every=10, overrides=(),
):
    part = ProbeCone(**{**configuration(name), **dict(overrides)})
    base = -(configuration(name).get("exit_x_m", 0.35) + 0.6) - 0.1
    return virtual_docking(part, (20e3, [4e4, 1.2e5, 1.2e5], [4.0, 0, 0]), (target, [1e7, 3e7, 3e7], [-15.0, 0, 0]),
                           pose(base, *miss, angles), [vx, *v_lateral, 0, 0, 0], w, duration=duration, every=every, press_thrust=press)


def series(out, name):
    return column(out["rows"], name, 31)


def test_N1_same_run_with_two_step_sizes():
    """0.5 ms ticks with one and with two sub-steps agree within 1 %."""
    results = []
    for substeps in (1, 2):
        out = docking(duration=8.0, overrides=(("substeps", substeps),))
        lost, compression = series(out, "energy_lost")[-1], series(out, "stroke").min()
        results.append((out["peaks"][0], out["peaks"][6], compression, lost, out["times"]["capture"]))
    assert results[0] == pytest.approx(results[1], rel=0.01)


def test_N2_stiffness_ratio_and_penetration_limit():
    v = {k: p.default for k, p in DECLARED.items()}
    train = (v["axial_forward"][2][1] - v["axial_forward"][1][1]) / (v["axial_forward"][2][0] - v["axial_forward"][1][0])
    link = train * (v["clutch_ratio"] * 2 * np.pi / v["screw_lead_m"]) ** 2
    bend = v["bend_forward"][2][1] / v["bend_forward"][2][0] / v["probe_length_m"] ** 2
    assert v["head_stiffness_n_per_m"] > 90 * link and v["head_stiffness_n_per_m"] > 500 * bend
    out = docking()
    assert series(out, "penetration").max() < v["penetration_max_m"] and series(out, "over_limit")[-1] == 0


def test_N11_central_impact_of_20_tonnes():
    """225 J for a fixed partner, 215 J with 420 t; springs and brakes before the clutch; the modified damper is softer both ways."""
    heavy = docking(target=1e12, press=0.0)
    assert series(heavy, "energy_lost")[-1] + series(heavy, "energy_stored")[-1] == pytest.approx(225.0, rel=0.015)
    out = docking(press=0.0)
    assert series(out, "energy_lost")[-1] + series(out, "energy_stored")[-1] == pytest.approx(215.0, rel=0.015)
    stroke, force, slip = series(out, "stroke"), out["rows"][:, 14], series(out, "clutch_slip")
    first = np.argmax(slip > 0)
    spring = (stroke < -0.03) & (stroke > -0.065) & (np.arange(len(force)) < first)
    assert 800 < force[spring].max() < 0.5 * force[slip > 0].max()
    modified = docking("probe_cone_modified", press=0.0)
    assert modified["peaks"][0] < out["peaks"][0] and modified["peaks"][6] > out["peaks"][6]
    assert out["peaks"][6] < -1000.0


def test_N10_rebound_is_weaker_and_second_impact_slower():
    out = docking()
    t, v, force, slip = out["rows"][:, 0], out["rows"][:, 8], out["rows"][:, 14], series(out, "clutch_slip")
    peak = np.argmax(force)
    turn = peak + np.argmax(v[peak:] < 0)
    rebound = force[turn + 400:][force[turn + 400:] > 0]
    # on the way back, spring released: force at the same stroke is below that on the way in
    stroke = series(out, "stroke") + slip / (0.25 * 2 * np.pi / 0.02) * 1.0
    level = -0.04
    inward = np.argmax(series(out, "stroke") < level)
    outward = turn + np.argmax(stroke[turn:] > level)
    assert 0 < force[outward] < 0.6 * force[inward] and len(rebound) and t[outward] > t[inward]
    bottoms = np.flatnonzero(np.diff((out["rows"][:, 26].astype(int) & 4) > 0).astype(int) == 1)
    assert len(bottoms) >= 2
    speeds = [v[i] for i in bottoms[:2]]
    assert speeds[1] < 0.6 * speeds[0]


ATV = dict(vx=0.12, miss=(0.06, -0.04), angles=(0.02, -0.015, 0.02), w=(0.001, -0.002, 0.002), v_lateral=(0.005, -0.005),
           duration=420.0, press=300.0, every=20)


def test_N9_N8_order_of_events_of_a_whole_docking():
    out = docking(**ATV)
    first, times, rows = out["first"], out["times"], out["rows"]
    t, signals = rows[:, 0], rows[:, 26].astype(int)
    on = {n: (signals >> b & 1).astype(bool) for n, b in BITS.items()}
    contact = first[BITS["DK1"]]
    # first contact, then loss of contact before the socket
    before_bottom = (t > contact) & (t < first[BITS["DK2"]])
    assert np.any(~on["DK1"][before_bottom]) and out["rises"][BITS["DK1"]] > 2
    # spring and brakes, then the clutch, then rest, rebound and the latches on their stops
    slip = series(out, "clutch_slip")
    clutch = t[np.argmax(slip > 0)]
    assert contact < first[BITS["DK2"]] < clutch
    rest = t[(t > clutch) & (rows[:, 8] < 0)][0]
    groove = [series(out, f"latch{k}_groove_force") for k in range(1, 5)]
    stops = [t[np.argmax(f > 0)] for f in groove if f.max() > 0]
    assert clutch < rest < max(stops)
    # second bottom contact, slower
    bottoms = np.flatnonzero(np.diff(on["DK2"].astype(int)) == 1)
    assert len(bottoms) >= 2
    # limiter at least twice, drive 35 s after t_S, rollers at most two at once, pushers, end
    assert out["rises"][BITS["limiter"]] >= 2
    assert first[BITS["drive"]] == pytest.approx(times["start"] + 35.0, abs=2 * DT)
    rollers = [n for n in ("lever1", "lever2", "lever3") if first[BITS[n]] > 0]
    assert rollers and min(first[BITS[n]] for n in rollers) > 150.0
    assert max(sum(on[n].astype(int) for n in ("lever1", "lever2", "lever3"))) <= 2
    assert min(first[BITS[n]] for n in rollers) < first[BITS["pushers"]] < times["end"]
    assert out["phase"] == 5 and 200.0 < times["end"] < 420.0
    # DSG with all four latches
    assert first[BITS["DSG"]] >= max(first[BITS[f"latch{k}"]] for k in range(1, 5))


@pytest.mark.parametrize("tilt", [0.0, 0.008, 0.03])
@pytest.mark.parametrize("axis", [1, 2])
def test_planes_are_together_only_when_all_four_gaps_are_closed(axis, tilt):
    """At the pushers' 0.6 m a tilt of 0.008 rad opens one side by 4.8 mm more and closes the other; one closed gap says nothing."""
    gaps = {}
    for gap in (0.0049, 0.0151, 0.03):
        part, angles = ProbeCone(), [0.0, 0.0, 0.0]
        angles[axis - 1] = tilt
        out = part.advance(pose(-0.3 * np.cos(tilt) - gap, angles=angles), np.zeros(6), 1e-7, aux=(aux := np.zeros(len(NAMES))))
        four = np.array([aux[NAMES.index(f"pusher{i}_gap")] for i in range(1, 5)])
        assert four.max() - four.min() == pytest.approx(1.2 * np.sin(tilt), rel=1e-9, abs=1e-12) and four.mean() == pytest.approx(gap)
        assert aux[NAMES.index("plane_gap")] == out["analog"][3] == four.max()
        gaps[gap] = (bool(out["signals"] >> BITS["together"] & 1), bool(out["signals"] >> BITS["pushers"] & 1))
        assert gaps[gap][0] == (four.max() <= 0.010) and gaps[gap][1] == (four.min() < 0.020)
    assert gaps[0.0049][0] == (tilt < 0.0085) and not gaps[0.0151][0]


@pytest.mark.parametrize(("coordinate", "end"), [(2, 0.2), (4, 0.2)], ids=["bending", "torsion"])
def test_an_elastic_element_beyond_its_table_is_out_of_the_valid_range(coordinate, end):
    part = ProbeCone()
    for share, status in ((0.99, 0), (1.01, 1), (-1.01, 1)):
        state = part.coordinates
        state[coordinate] = share * end
        part.set_state(state, np.zeros(7))
        assert part.advance(pose(-2.0), np.zeros(6), 1e-7)["status"] == status, share


def test_penetration_beyond_the_contact_law_is_out_of_the_valid_range():
    """Head on the bottom of the socket, 1.9 and 2.1 mm deep; the law is declared valid to 2 mm."""
    for depth, status in ((0.0019, 0), (0.0021, 1)):
        assert ProbeCone().advance(pose(0.5 - 0.055 - 0.95 + depth), np.zeros(6), 1e-7)["status"] == status


def test_N12_ratios_of_the_modified_damper():
    v = configuration("probe_cone_modified")
    existing = {k: p.default for k, p in DECLARED.items()}
    assert v["brake1_moment_n_m"][0] / v["brake2_moment_n_m"][0] == pytest.approx(0.25, rel=0.02)
    assert v["brake1_moment_n_m"][1] / v["brake1_moment_n_m"][0] == pytest.approx(1 / 3, rel=1e-6)
    assert v["brake2_moment_n_m"][1] > v["brake2_moment_n_m"][0]
    travel = existing["axial_forward"][3][0] - existing["axial_forward"][2][0]
    assert v["brake1_stroke_rad"] / travel == pytest.approx(2.5, rel=0.01)
    # and the unit shows them: plateau of brake 1 while the probe is pushed in
    part = ProbeCone(**v, screw_friction=0.0)
    X, _ = part.glide(pose(-0.655 - 0.06), [0.05, 0, 0, 0, 0, 0], DT, 5000)
    _, rows = part.glide(X, [0.05, 0, 0, 0, 0, 0], DT, 200)
    assert rows[-1, 0] == pytest.approx(v["brake1_moment_n_m"][0] * 0.25 * 2 * np.pi / 0.02, rel=0.06)
    assert column(rows, "clutch_slip1")[-1] > 1.0 and column(rows, "clutch_slip")[-1] == 0.0


def test_N13_peaks_are_weak_below_thirty_percent_of_the_limits():
    """All initial conditions scaled together: limiter contact and lateral peaks at full values, weak or absent at 30 %."""
    limits = dict(vx=(0.2,), miss=(0.20, -0.15), angles=(0.06, -0.06, 0.06), w=(0.005, -0.010, 0.010), v_lateral=(0.02, -0.02))
    peaks = []
    for share in (0.3, 1.0):
        scaled = {k: tuple(share * x for x in v) for k, v in limits.items()}
        out = docking(duration=30.0, press=200.0, every=20, **(scaled | {"vx": scaled["vx"][0]}))
        assert out["first"][BITS["DSG"]] > 0
        peaks.append(max(np.abs(series(out, "limiter_f_x")).max(), np.abs(out["peaks"][[1, 2, 7, 8]]).max()))
    assert peaks[0] < 0.2 * peaks[1]


MOVABLE = dict(vx=0.10, miss=(0.03, -0.02), angles=(0.02, -0.02, 0.01), w=(0.0, 0.003, 0.003), duration=420.0, press=300.0, every=20)


def test_N14_course_with_the_movable_limiter():
    """Limiter after capture, full contact, pushers, brake 1 turned back by the drive while the nut stands still, end at a gap of 10 mm."""
    out = docking("probe_cone_movable_limiter", **MOVABLE)
    t, first = out["rows"][:, 0], out["first"]
    # the widest of the four gaps, and with it every one
    assert out["phase"] == 5 and series(out, "plane_gap")[-1] == pytest.approx(0.010, abs=1e-4)
    assert max(series(out, f"pusher{i}_gap")[-1] for i in range(1, 5)) == series(out, "plane_gap")[-1]
    slip1, stroke, drive = series(out, "clutch_slip1"), series(out, "stroke"), series(out, "drive_angle")
    assert slip1.max() > 1.0
    assert first[BITS["DSG"]] < first[BITS["drive"]] < first[BITS["pushers"]]
    # retraction at 1 mm/s while nothing resists
    on = (t > first[BITS["drive"]] + 10.0) & (t < first[BITS["pushers"]])
    speed = np.polyfit(t[on], stroke[on], 1)[0]
    assert speed == pytest.approx(-1e-3, rel=0.05)
    # the limiter is pressed in and follows
    assert series(out, "movable_x").min() < 0.69 - 0.03
    # brake 1: turned back while the pushers pull; the probe stands still meanwhile
    back = np.flatnonzero((np.diff(slip1) < 0) & (t[1:] > first[BITS["pushers"]]))
    assert len(back)
    turned = slip1[back[0]] - slip1[back[-1] + 1]
    travel = turned / (0.25 * 2 * np.pi / 0.02)
    elapsed = t[back[-1] + 1] - t[back[0]]
    assert travel > 0.002 and travel / elapsed == pytest.approx(1e-3, rel=0.35)
    moved = stroke[back[0]] - stroke[back[-1] + 1]
    assert abs(moved) < 0.5 * travel
    assert np.all(np.diff(drive)[back] > 0)


def test_N15_angular_amplitude_is_smaller_with_the_movable_limiter():
    """Limiter forward, no retraction, both models inside their range: the tilt between the craft reaches 8.2 deg with the fixed limiter and
    4.2 deg with the movable one. The text has "about 1.5 times" for its expert case and its own dimensions; the shipped, invented ones give
    2.0 (1.8 to 2.2 in four cases of this class), and leave the range of the model in the expert case."""
    initial = dict(vx=0.10, miss=(0.03, -0.02), angles=(0.02, -0.02, 0.01), w=(0.0, 0.005, 0.005), duration=110.0, press=200.0, every=20,
                   overrides=(("motor_stall_n_m", 0.0),))
    amplitude = []
    for name in ("probe_cone_modified", "probe_cone_movable_limiter"):
        out = docking(name, **initial)
        assert out["first"][BITS["DSG"]] > 0 and series(out, "over_limit")[-1] == 0.0
        axis = Rotation.from_quat(out["rows"][:, 4:8]).as_matrix()[:, 0, 0]
        tilt = np.degrees(np.arccos(axis[out["rows"][:, 0] > out["times"]["capture"]]))
        # swung out and on its way back: an amplitude, not a drift that was cut off
        assert tilt[-1] < 0.98 * tilt.max()
        amplitude.append(tilt.max())
    assert amplitude == [pytest.approx(8.24, rel=0.03), pytest.approx(4.18, rel=0.03)]


def test_energy_of_a_docking_is_the_energy_of_the_craft():
    """Kinetic energy the two craft lose = what the mechanism stores and loses (no thrust)."""
    out = docking(vx=0.12, miss=(0.03, -0.02), angles=(0.01, -0.01, 0.0), duration=15.0, press=0.0)
    lost = series(out, "energy_lost")[-1] + series(out, "energy_stored")[-1]
    reduced = 20e3 * 420e3 / 440e3
    assert lost < 0.5 * reduced * 0.12**2
    assert lost > 0.9 * 0.5 * reduced * 0.12**2


def test_hatch_cover_lengthens_the_intervals_between_impacts():
    """Correlation option (6.1.6): a compliant cover delays the latch stop after the first bottom impact."""
    soft = (("cover", True), ("cover_forward", ((0.0, 0.0), (1e-4, 10.0), (0.01, 1500.0), (0.05, 7500.0))),
            ("cover_return", ((0.0, 0.0), (1e-4, 10.0), (0.01, 1300.0), (0.045, 6000.0), (0.05, 7500.0))))
    intervals = []
    for overrides in ((), soft):
        out = docking(duration=12.0, press=0.0, overrides=overrides)
        bottom = out["first"][BITS["DK2"]]
        stop = out["rows"][:, 0][np.argmax(out["rows"][:, 14] < -200.0)]
        intervals.append(stop - bottom)
    assert intervals[1] > intervals[0] + 0.02
