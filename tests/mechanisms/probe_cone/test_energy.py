"""Energy of the central unit in closed cycles: nothing is gained; what is put in is found again in springs and losses, to 0.1 %."""

import numpy as np
import pytest

from rt_kernels.mechanisms.common.hysteresis import Hysteresis
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone
from tests.docking_course import DT
from tests.mechanisms.probe_cone.shipped import DECLARED, captured, column, pose
from tests.mechanisms.shipped import shipped


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
    part = ProbeCone(**shipped(name))
    travel = 0.445 - part.coordinates[5] - DECLARED["exit_x_m"].default
    travel -= shipped(name).get("exit_x_m", 0.35) - 0.35
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
    v = shipped("probe_cone_modified")
    part = ProbeCone(**v, screw_friction=0.0, head_friction=0.0, sensor_friction_n=0.0)
    X, _ = part.glide(pose(-0.755 - 0.06), [0.1, 0, 0, 0, 0, 0], DT, 1200)
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
