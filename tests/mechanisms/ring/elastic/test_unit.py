"""Elastic-adaptive unit: sequence of operation, cables, the cases of chapter 7, energy and momentum of the whole unit."""


import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.ring.elastic.retraction import CableRetraction, OperationSequence
from rt_kernels.mechanisms.ring.elastic.unit import ElasticAdaptive
from rt_kernels.offline.two_craft import TwoCraft, aux_index, first_contact
from tests.mechanisms.shipped import column, shipped

EYES = np.array([[0, np.cos(a), np.sin(a)] for a in np.radians([60, 180, 300])]) * 0.62


@pytest.fixture(scope="module")
def table():
    return shipped("elastic_adaptive")


def meet(table, mass, v, w_deg, miss, angles_deg, **change):
    """Two craft 0.3 s before first contact; target of 400 t. Angles yaw, pitch, roll. Returns (mechanism, trial)."""
    unit = ElasticAdaptive(**(table | change))
    q = Rotation.from_euler("YZX", angles_deg, degrees=True).as_quat()
    X_TA = first_contact(unit, q, *miss)
    X_TA[:3] -= 0.3 * np.array(v)
    radius, length = 1.8, 4.0
    across = mass * (3 * radius**2 + length**2) / 12
    arm = np.array([2.5, 0, 0])
    p = X_TA[:3] - Rotation.from_quat(q).apply(arm)
    here = [0, 0, 0, 0, 0, 0, 1]
    active = dict(mass=mass, inertia=np.diag([mass * radius**2 / 2, across, across]), X_port=[*arm, 0, 0, 0, 1], X=[*p, *q], v=v,
                  w=np.radians(w_deg))
    target = dict(mass=4e5, inertia=np.diag([5e7, 1e8, 1e8]), X_port=here, X=here, v=[0, 0, 0], w=[0, 0, 0])
    return unit, TwoCraft(unit, active, target)


EXPERT = dict(mass=5000.0, w_deg=[0.2, 0.1414, 0.1414], miss=(0.1, 0.0), angles_deg=(2.83, 2.83, 4.0))


def test_N25_p1_central_impact(table):
    """25 t, 0.10 m/s, no errors: capture before the initial position is lost, no throw, rods within 35 mm and 15 % of the stroke."""
    unit, trial = meet(table, 25000.0, [0.10, 0, 0], [0, 0, 0], (0, 0), (0, 0, 0))
    energy = trial.kinetic_energy()
    assert energy == pytest.approx(125.0)
    out = trial.run(3.0, 5e-4, every=2)
    assert column(unit, out, "aligned_time")[-1] > 0 and column(unit, out, "capture_time")[-1] > 0
    assert column(unit, out, "release_time")[-1] == -1.0
    travel = -np.min(column(unit, out, "stroke", 6))
    assert travel <= 0.035 and travel <= 0.15 * table["stroke_m"]
    # one dynamic peak from the deformation of all chains at once, then a plateau
    force = out["F_T"][:, 0]
    peak = int(np.argmax(force))
    later = out["t"] > out["t"][peak] + 0.1
    assert force[peak] < 6500.0 and force[later].max() < 3500.0 and force[peak] > 1.05 * force[later].max()
    # the energy is in springs, losses and what is left: mean strut-sum force over the axial travel
    assert np.all(out["status"] == 0)
    axial = column(unit, out, "ring_position", 3)[:, 0]
    assert 125.0 / (0.35 - axial.min()) < force[peak]


def test_N26_p2_expert_case_in_order_and_p3_too_early(table):
    """P-2: contact, long slide on the petals, throw, capture soon after; P-3, twice the lateral speed: throw too early, no capture."""
    unit, trial = meet(table, v=[0.05, 0.02, 0], **EXPERT)
    out = trial.run(9.0, 5e-4, every=10)
    contact, release, aligned = (column(unit, out, n)[-1] for n in ("first_contact_time", "release_time", "aligned_time"))
    assert 0.0 < contact < release < aligned
    # ratios of the text: slide 3.343 s, capture 0.207 s after the release
    assert 2.0 < release - contact < 4.5
    assert aligned - release < 0.5 and aligned - release < 0.2 * (release - contact)
    assert column(unit, out, "capture_time")[-1] > 0
    assert np.all(out["status"] == 0)
    # absorption: a second after the capture less than a tenth of the relative motion's energy is left
    speed, at = np.linalg.norm(out["V_TA"][:, :3], axis=1), np.searchsorted(out["t"], [aligned, aligned + 1.0])
    assert speed[at[1]:].max() < 0.3 * speed[at[0]]
    unit, trial = meet(table, v=[0.05, 0.04, 0], **EXPERT)
    out = trial.run(12.0, 5e-4, every=20)
    early = column(unit, out, "release_time")[-1]
    assert 0.0 < early < 0.3 * release
    assert column(unit, out, "aligned_time")[-1] == -1.0 and column(unit, out, "capture_time")[-1] == -1.0
    # the way from the initial to the forward position is used up
    assert np.all(column(unit, out, "stroke", 6)[-1] > 0.95 * table["ready_compression_m"])


@pytest.mark.parametrize("drive", ["speed", "two_motors"])
def test_p2_retraction_aligns_the_rings_and_ends_mated(table, drive):
    """Starts 10 s after capture; the longest cable joins first; rings aligned before the planes are mated."""
    unit, trial = meet(table, v=[0.05, 0.02, 0], drive=drive, **EXPERT)
    out = trial.run(180.0, 5e-4, every=20, stop_aux=aux_index(unit, "done_time"))
    aligned, done = column(unit, out, "aligned_time")[-1], column(unit, out, "done_time")[-1]
    drive_start = out["t"][np.flatnonzero(column(unit, out, "phase") == 5)[0]]
    assert drive_start == pytest.approx(aligned + 10.0, abs=0.02)
    joined = column(unit, out, "cable_joined", 3)
    first = int(np.argmax(joined.any(axis=1)))
    assert out["t"][first] > drive_start
    assert np.argmax(column(unit, out, "drum_angle", 3)[first]) == np.argmax(joined[first])
    assert np.all(column(unit, out, "cable_tension", 3) >= 0.0)
    assert aligned < done < 180.0
    # relative attitude of the ports shrinks while drawn in (a 5 t craft still swings a little on the cables)
    angle = np.degrees(np.linalg.norm(Rotation.from_quat(out["X_TA"][:, 3:]).as_rotvec(), axis=1))
    assert angle[0] > 5.0 and angle[-1] < 0.4 * angle[0]
    assert out["X_TA"][-1, 0] == pytest.approx(-table["mated_distance_m"], abs=5e-3)
    assert np.all(out["status"] == 0)
    if drive == "two_motors":
        # torque balance of a wheel: k_u u - m_Fr - k w = half the carrier's load, i_PG times the drive's over the efficiency (0.04, 0.8)
        tension = column(unit, out, "cable_tension", 3).sum(axis=1)
        load = tension * table["drum_roll_radius_m"] / (table["gear_ratio"] * table["gear_efficiency"])
        w = (0.30 - 0.01 - 0.5 * 0.04 * load / 0.8) / 5.8e-4
        turning = np.flatnonzero((column(unit, out, "phase") == 5) & (out["t"] > drive_start + 5.0))[:-1]
        assert load[turning].max() > 0.2
        # the wheels lag behind a load that comes on: their inertia over the fall of the torque is 0.4 s
        rate = column(unit, out, "wheel_rate", 2)
        off = np.abs((rate + 0.4 * np.gradient(rate, out["t"], axis=0))[turning].T / w[turning] - 1)
        assert np.median(off) < 1e-3 and off.max() < 0.005, off.max()
        np.testing.assert_allclose(column(unit, out, "drive_rate"), -0.02 * column(unit, out, "wheel_rate", 2).sum(axis=1), atol=1e-12)


def test_two_motor_drive_pays_out_and_is_held_without_voltage(table):
    """No load: both wheels at (k_u u - m_Fr)/k, the output shaft i_PG = 0.04 slower; without voltage the stopping clutches hold it."""
    unit = ElasticAdaptive(**(table | {"start_phase": "retracted", "drive": "two_motors"}))
    aux, far = np.zeros(sum(c.count for c in unit.AUX)), [-5.0, 0, 0, 0, 0, 0, 1]
    for i in range(4000):
        unit.advance(far, np.zeros(6), 1e-3, commands=1 if i == 0 else 0, aux=aux)
    assert aux[aux_index(unit, "wheel_rate"):][:2] == pytest.approx([-500.0, -500.0], rel=1e-3)
    assert aux[aux_index(unit, "drive_rate")] == pytest.approx(20.0, rel=1e-3)
    ready = ElasticAdaptive(**(table | {"drive": "two_motors"}))
    ready.advance(far, np.zeros(6), 1e-3, aux=aux)
    assert aux[aux_index(ready, "drive_rate")] == 0.0 and np.all(aux[aux_index(ready, "wheel_rate"):][:2] == 0.0)
    with pytest.raises(ValueError, match="drive: must be one of speed, two_motors, got 'crank'"):
        ElasticAdaptive(**(table | {"drive": "crank"}))


@pytest.mark.parametrize("start", ["retracted"])
def test_extension_blocks_each_strut_at_the_initial_position(table, start):
    unit = ElasticAdaptive(**(table | {"start_phase": start, "drive_rate_rad_s": 60.0}))
    aux = np.zeros(sum(c.count for c in unit.AUX))
    far = [-5.0, 0, 0, 0, 0, 0, 1]
    for _ in range(200):
        unit.advance(far, np.zeros(6), 5e-4, aux=aux)
    assert aux[aux_index(unit, "phase")] == 0 and abs(aux[0] - table["mated_distance_m"]) < 1e-6
    phases = []
    for i in range(60_000):
        unit.advance(far, np.zeros(6), 1e-3, commands=1 if i == 0 else 0, aux=aux)
        phases.append(int(aux[aux_index(unit, "phase")]))
        if phases[-1] == 2 and aux[aux_index(unit, "drive_rate")] == 0.0:
            break
    assert sorted(set(phases)) == [1, 2]
    assert np.all(aux[aux_index(unit, "clutch_blocked"):][:6] == 1) and np.all(aux[aux_index(unit, "initial_position"):][:6] == 1)
    assert aux[aux_index(unit, "gear_cam")] >= table["gear_cam_max_rad"]
    assert aux[0] == pytest.approx(table["ready_distance_m"], abs=0.01)


# -- T-10: the controller against event scripts -------------------------------------------------------------------------------


def test_t10_sequence_p1(table):
    c = OperationSequence(table, EYES)
    assert c.step([0.0] * 6, [0, 0, 0])[0] == "ready"
    # the sensors come first: no throw, clutches stay blocked
    phase, blocked, _ = c.step([-0.001] * 6, [1, 1, 1])
    assert phase == "captured" and all(blocked)
    phase, blocked, _ = c.step([-0.030] * 6, [1, 1, 1])
    assert phase == "captured" and all(blocked)


def test_t10_sequence_p2_to_the_end(table):
    c = OperationSequence(table, EYES)
    for _ in range(10):
        phase, blocked, drive = c.step([0.0] * 6, [0, 0, 0], gear_cam=3.0)
    assert phase == "ready" and drive > 0                      # still paying out the reserve
    phase, _, _ = c.step([0.0] * 6, [0, 0, 0], gear_cam=table["gear_cam_max_rad"])
    _, _, drive = c.step([0.0] * 6, [1, 0, 1], gear_cam=table["gear_cam_max_rad"])
    assert drive == 0.0
    phase, blocked, _ = c.step([0.0] * 5 + [-0.01], [1, 0, 1], gear_cam=11.0)       # one strut is enough
    assert phase == "thrown" and not any(blocked)
    phase, blocked, _ = c.step([0.05] * 6, [1, 1, 0])
    assert phase == "thrown" and not any(blocked)
    phase, blocked, _ = c.step([0.08] * 6, [1, 1, 1])
    assert phase == "captured" and all(blocked)
    steps = 0
    while phase == "captured":
        phase, blocked, drive = c.step([0.05] * 6, [1, 1, 1], dt=0.01)
        steps += 1
    assert phase == "retracting" and steps * 0.01 == pytest.approx(table["retract_delay_s"], abs=0.011) and all(blocked)
    assert c.step([0.0] * 6, [1, 1, 1])[2] < 0
    assert c.step([-0.1] * 6, [1, 1, 1], mated=True)[0] == "done"
    assert c.step([-0.1] * 6, [1, 1, 1], mated=True)[2] == 0.0


def test_t10_sequence_p3_and_extension(table):
    c = OperationSequence(table, EYES)
    c.step([-0.01] + [0.0] * 5, [0, 0, 0])
    for _ in range(100):
        phase, blocked, _ = c.step([0.12] * 6, [0, 1, 0])
    assert phase == "thrown" and not any(blocked)
    c = OperationSequence(table, EYES, "retracted")
    assert c.step([-0.1] * 6, [0, 0, 0])[1] == [True] * 6
    phase, blocked, _ = c.step([-0.1] * 6, [0, 0, 0], extend=True)
    assert phase == "extending" and not any(blocked)
    _, blocked, drive = c.step([0.001, -0.05, 0.0, -0.01, -0.1, 0.002], [0, 0, 0])
    assert blocked == [True, False, True, False, False, True] and drive > 0
    phase, blocked, _ = c.step([-0.001, 0.0, -0.001, 0.0, 0.0, 0.0], [0, 0, 0])     # the blocked ones stay so
    assert phase == "ready" and all(blocked)


# -- T-09: cables ---------------------------------------------------------------------------------------------------------------


def cables(table, gear):
    return CableRetraction(table, EYES, gear * table["gear_ratio"])


def test_t09_longest_cable_joins_first_and_tension_pulls_only(table):
    law = cables(table, 11.0)
    R = Rotation.from_euler("YZX", [3.0, -2.0, 0.0], degrees=True).as_matrix()
    p = np.array([0.40, 0.01, -0.02])
    order, previous = [], None
    for _ in range(40_000):
        out = law.step(p, R, np.zeros(3), np.zeros(3), -table["drive_rate_rad_s"], 2e-3)
        for i in range(3):
            if out["joined"][i] and i not in order:
                order.append(i)
        assert np.all(out["tension"] >= 0.0)
        assert all(t == 0.0 for t, j in zip(out["tension"], out["joined"], strict=True) if not j)
        previous = out
        if len(order) == 3:
            break
    assert order == list(np.argsort(-previous["cam"]))


def test_t09_wrenches_are_opposite_and_follow_the_telescoped_sums(table):
    law = cables(table, 5.0)
    R, p = np.eye(3), np.array([0.35, 0, 0])
    law.step(p, R, np.zeros(3), np.zeros(3), 0.0)
    start = law.step(p, R, np.zeros(3), np.zeros(3), 0.0)
    assert start["joined"] == [True] * 3 and np.all(start["tension"] == 0.0)
    R2, p2 = Rotation.from_rotvec([0.01, -0.02, 0.015]).as_matrix(), p + [0.03, 0.003, -0.002]
    out = law.step(p2, R2, np.zeros(3), np.zeros(3), 0.0)
    # series stiffness of cable and flexible shaft: solve f = k (stretch - R phi_shaft(f)) independently, E07 with the plus sign
    k, k_FS, i_G, roll = (table[n] for n in ("cable_stiffness_n_per_m", "flexible_shaft_n_m_per_rad", "gear_ratio", "drum_roll_radius_m"))
    stretch = out["length"] - start["length"]
    for s, f in zip(stretch, out["tension"], strict=True):
        assert s > 0
        twist = f * roll / (i_G * k_FS)
        assert f == pytest.approx(k * (s - roll * twist / i_G), rel=1e-12)
        # with the printed minus the cable would be wound in by its own tension
        assert f < k * s < k * (s + roll * twist / i_G)
    np.testing.assert_allclose(out["gear_twisted"] - out["gear"], out["tension"] * roll / (i_G**2 * k_FS), rtol=1e-12)
    # total wrench of ring and base about the base origin vanishes
    F = out["F_ring"]
    total = out["base_wrench"] + np.concatenate([F[:3], F[3:] + np.cross(p2, F[:3])])
    assert np.max(np.abs(total)) < 1e-10 * np.max(np.abs(F))
    assert out["load"] == pytest.approx(out["tension"].sum() * roll / (i_G * table["gear_efficiency"]), rel=1e-12)


def test_gear_is_self_locking(table):
    law = cables(table, 5.0)
    law.step([0.35, 0, 0], np.eye(3), np.zeros(3), np.zeros(3), 0.0)
    gear = law.step([0.37, 0, 0], np.eye(3), np.zeros(3), np.zeros(3), 0.0)["gear"]
    for _ in range(100):
        out = law.step([0.37, 0, 0], np.eye(3), np.zeros(3), np.zeros(3), 0.0)
    assert out["gear"] == gear and out["tension"].min() > 0


# -- the unit as a part -----------------------------------------------------------------------------------------------------------


def test_momentum_of_two_craft_and_mechanism(table):
    """F_A + F_T (about one point) is minus the rate of the mechanism's momentum: over a whole run both sides agree."""
    unit, trial = meet(table, v=[0.05, 0.02, 0], **EXPERT)
    before = trial.momentum()
    out = trial.run(12.0, 5e-4, every=100)
    after = trial.momentum()
    # the mechanism (about 100 kg with nuts) is at rest relative to the active craft at both ends
    assert np.linalg.norm(column(unit, out, "ring_velocity", 3)[-1]) < 5e-3
    change = np.linalg.norm(after[:3] - before[:3]) / np.linalg.norm(before[:3])
    assert change < 0.03


def test_errors_name_the_key(table):
    for change, message in ((dict(stroke_m=-1.0), "stroke_m: must be a number within 0.01 ... 2 m, got -1.0"),
                            (dict(ready_compression_m=0.3), "ready_compression_m: 0.3 m"),
                            (dict(gear_efficiency=0.7), "gear_efficiency: 0.7")):
        with pytest.raises(ValueError, match=message):
            ElasticAdaptive(**(table | change))
