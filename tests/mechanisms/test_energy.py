"""Energy of ring and berthing units in closed cycles: nothing is gained; what is put in is found again in springs and losses to 0.1 %.

The central unit has the same tests in probe_cone/test_unit.py. Springs and clutches are summed up a second time from the logged strokes, by
elements of their own.
"""


import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.berthing.head import BerthingHead
from rt_kernels.mechanisms.berthing.pins import BerthingPins
from rt_kernels.mechanisms.common.hysteresis import Hysteresis
from rt_kernels.mechanisms.ring.elastic.accumulator import EnergyAccumulator
from rt_kernels.mechanisms.ring.elastic.unit import ElasticAdaptive
from rt_kernels.mechanisms.ring.unit import Ring
from rt_kernels.offline.two_craft import TwoCraft, aux_index
from tests.mechanisms.shipped import shipped

HERE = [0, 0, 0, 0, 0, 0, 1]
RELEASE = 4


def drag(unit, start, motion, dt, commands=0):
    """Move the base at given velocities against a fixed target: rows (velocity (3,), duration) one after the other, on craft that nothing
    stops. Returns the arrays of TwoCraft.run, one row per tick, and the work of the target on the mechanism [J]: all, and what was put in.
    """
    heavy = dict(mass=1e13, inertia=np.eye(3) * 1e13, X_port=HERE, w=[0, 0, 0])
    X, parts = np.array(start, dtype=float), []
    for v, duration in motion:
        trial = TwoCraft(unit, heavy | dict(X=X, v=v), heavy | dict(X=HERE, v=[0, 0, 0]))
        parts.append(trial.run(duration, dt, commands=commands))
        X[:3] = X[:3] + np.multiply(v, duration)
    rows = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    power = np.sum(rows["F_T"] * rows["V_TA"], axis=1)
    return rows, dt * np.sum(power), dt * np.sum(np.maximum(power, 0.0))


def there_and_back(reach, duration, rest):
    """Velocities of a push of `reach` (3,) and its return, sinusoidal, then rest."""
    n = int(duration / 0.01)
    return [(np.array(reach) * np.pi / duration * np.sin(2 * np.pi * (k + 0.5) / n), 0.01) for k in range(n)] + [([0, 0, 0], rest)]


def last(unit, rows, *names):
    return [rows["aux"][-1, aux_index(unit, name)] for name in names]


def test_ring_in_a_closed_cycle():
    """Over the petals, plane on plane and back: the loss is the area of the six spring loops, the leg dampers' work and the contact's."""
    table = shipped("ring")
    unit, dt = Ring(**table), 1e-4
    rows, work, put_in = drag(unit, [-0.40, -0.012, 0, 0, 0, 0, 1], there_and_back((0.09, 0.025, 0), 3.0, 1.5), dt, RELEASE)
    contact, springs, kinetic, stored = last(unit, rows, "lost_contact", "given_to_springs", "kinetic_energy", "stored_contact")
    assert np.all(rows["status"] == 0) and rows["aux"][:, aux_index(unit, "depth")].max() > 2e-5 and put_in > 0.5
    assert work >= -1e-9 * put_in
    assert work == pytest.approx(contact + springs + kinetic + stored, abs=1e-3 * put_in)
    stroke = rows["aux"][:, aux_index(unit, "stroke"):][:, :6]
    area = damper = 0.0
    for q in stroke.T:
        Q = Hysteresis(table["spring_forward_n"], table["spring_backward_n"]).path(q)
        area += np.sum(0.5 * (Q[1:] + Q[:-1]) * np.diff(q))
        damper += table["leg_damping_n_s_per_m"] * np.sum(np.diff(q) ** 2) / dt
    assert area > 0.05 and springs == pytest.approx(area + damper, rel=1e-3)


def test_elastic_unit_with_throw_in_a_closed_cycle():
    """A strut loses the initial position, the springs throw the ring forward, it is caught: what they give is the work of six accumulators
    of their own on the logged strokes, and all of it is found again."""
    table = shipped("elastic_adaptive")
    unit, dt = ElasticAdaptive(**table), 1e-4
    rows, work, put_in = drag(unit, [-0.40, -0.012, 0, 0, 0, 0, 1], there_and_back((0.045, 0.025, 0), 3.0, 0.5), dt, RELEASE)
    names = ("lost_contact", "given_to_springs", "given_to_cables", "kinetic_energy", "stored_contact", "release_time", "aligned_time")
    contact, springs, cables, kinetic, stored, release, aligned = last(unit, rows, *names)
    assert 0.0 < release < aligned and np.all(rows["status"] == 0)
    turnover = put_in + abs(springs)
    assert springs < -1.0                                       # the throw: springs give more than they take back
    assert work == pytest.approx(contact + springs + cables + kinetic + stored, abs=1e-3 * turnover)
    compression = rows["aux"][:, aux_index(unit, "compression"):][:, :6]
    blocked = rows["aux"][:, aux_index(unit, "clutch_blocked"):][:, :6].astype(bool)
    given, released, K = 0.0, 0.0, table["stop_stiffness_n_per_m"]
    load = np.array(table["spring_load_n"])
    ready = table["ready_compression_m"]
    wound = brentq(lambda d: d - np.interp(d, load[:, 0], load[:, 1]) / K - ready, ready, ready + 0.02, xtol=1e-15)
    for d, locked in zip(compression.T, blocked.T, strict=True):
        # wound up, blocked and without force in the initial position
        spring = EnergyAccumulator(table)
        for x in (wound, ready):
            spring.step(x, True, 1.0)
        force = np.array([spring.step(x, before, dt) for x, before in zip(d, np.concatenate([[True], locked[:-1]]), strict=True)])
        given += np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(d)) + table["screw_damping_n_s_per_m"] * np.sum(np.diff(d) ** 2) / dt
    assert springs == pytest.approx(given, abs=1e-3 * turnover)
    # no more than the recoil branches hold
    recoil = np.array(table["spring_recoil_n"])
    x = np.linspace(0.0, wound, 1001)
    released = 6 * np.trapezoid(np.interp(x, recoil[:, 0], recoil[:, 1]), x)
    assert contact + kinetic + stored <= work + released


def push(unit, start, q, move, duration, dt, commands):
    """Closed path p = start + move(s), s = 0..1, of a base with attitude q: (work, what was put in, channels at the end)."""
    n = int(round(duration / dt))
    path = np.array([move(s) for s in np.linspace(0, 1, n + 1)]) + start
    aux, work, put_in = np.zeros(sum(c.count for c in unit.AUX)), 0.0, 0.0
    for i in range(n):
        V = (path[i + 1] - path[i]) / dt
        out = unit.advance([*path[i], *q], [*V, 0, 0, 0], dt, commands=commands(i / n), aux=aux)
        step = dt * out["F_T"][:3] @ V
        work += step
        put_in += max(step, 0.0)
        assert out["status"] == 0
    ledger = {c.name: aux[aux_index(unit, c.name)] for c in unit.AUX if c.count == 1}
    return work, put_in, ledger


def test_berthing_head_in_a_closed_cycle():
    """Over the cone, past the latches to capture, released and out again: the latches lose the energy of their springs."""
    table = shipped("berthing_head")
    unit = BerthingHead(**table)

    def move(s):
        u = 0.5 * (1 - np.cos(2 * np.pi * s))
        return np.array([0.15 * u, -0.0195 * u, 0.0117 * u])

    q = Rotation.from_rotvec(np.radians([1.0, 0.6, -0.5])).as_quat()
    work, put_in, e = push(unit, [-0.19, 0.020, -0.012], q, move, 2.0, 4e-5, lambda s: RELEASE if s > 0.55 else 0)
    assert e["capture_time"] > 0
    lost = sum(value for name, value in e.items() if name.startswith("energy_lost"))
    assert min(value for name, value in e.items() if name.startswith("energy_lost")) > 1e-3
    assert work == pytest.approx(e["energy_supplied"], rel=1e-9) and work >= -1e-9 * put_in
    assert work == pytest.approx(lost + e["energy_kinetic"] + e["energy_stored"], rel=1e-3)
    # every latch is turned up to where its nose passes the edge of the stop: between the preload's and the full turn's energy
    full = np.radians(table["latch_angle_max_deg"])
    assert 0.0 < e["energy_lost_latch"] < 4 * full * (table["latch_moment_n_m"] + 0.5 * table["latch_rate_n_m_per_rad"] * full)


def test_berthing_pins_in_a_closed_cycle():
    """Lock over its cone into the cylinder, past the ball to capture and planes, released, out: the ball takes its force times its way."""
    table = shipped("usa_usp")
    unit = BerthingPins(**table)

    def move(s):
        u = 0.5 * (1 - np.cos(2 * np.pi * s))
        return np.array([0.0795 * u, -0.0062 * u, 0.004 * u])

    q = Rotation.from_rotvec(np.radians([0.08, 0.1, -0.1])).as_quat()
    work, put_in, e = push(unit, [-0.080, 0.006, -0.004], q, move, 4.0, 2e-4, lambda s: RELEASE if s > 0.55 else 0)
    assert 0 < e["capture_time"] < e["plane_time"]
    lost = e["energy_lost_contact"] + e["energy_lost_friction"] + e["energy_lost_lock"]
    assert work == pytest.approx(e["energy_supplied"], rel=1e-9) and work >= -1e-9 * put_in and lost > 1.0
    assert work == pytest.approx(lost + e["energy_stored"], rel=1e-3)
    # in and out through the ball, less what the smooth sign leaves at the slow end of the way
    assert e["energy_lost_lock"] == pytest.approx(2 * table["ball_force_n"] * (table["ball_end_m"] - table["ball_begin_m"]), rel=0.01)
