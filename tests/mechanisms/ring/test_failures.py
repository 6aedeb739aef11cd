"""Failed parts of the ring units: each changes the outcome, or a figure by more than the sound unit's scatter, where it matters.

Scatter: the sound docking with conditions off by errors of SIGMA, four draws."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.layout import BITS
from rt_kernels.mechanisms.ring.elastic.unit import ElasticAdaptive
from rt_kernels.mechanisms.ring.interface import RingInterface
from rt_kernels.mechanisms.ring.parameters import RING_PARAMETERS
from rt_kernels.mechanisms.ring.unit import Ring
from rt_kernels.offline.two_craft import TwoCraft, aux_index, first_contact
from tests.mechanisms.shipped import shipped

HERE = [0, 0, 0, 0, 0, 0, 1]
SIGNAL, COMMAND = BITS["mechanism_signal"], BITS["mechanism_command"]
LATCHES = sum(SIGNAL[f"latch{k}"] for k in (1, 2, 3))
ALIGNED = sum(SIGNAL[f"ring_aligned{k}"] for k in (1, 2, 3))
PARTS = {"ring": Ring, "elastic_adaptive": ElasticAdaptive}
# of the shipped virtual_docking_ring: miss, yaw pitch roll, velocity, rates; and the errors with which they vary
NOMINAL = np.array([0.06, -0.04, 1.1, -0.9, 1.1, 0.12, 0.005, -0.005, 0.0, -0.1, 0.1])
EXPERT = np.array([0.1, 0.0, 2.83, 2.83, 4.0, 0.05, 0.02, 0.0, 0.2, 0.1414, 0.1414])
SIGMA = np.array([0.001, 0.001, 0.02, 0.02, 0.02, 0.001, 0.0005, 0.0005, 0.005, 0.005, 0.005])


def meet(name, conditions, mass=7000.0, target=20e3, **failed):
    """Two craft 0.3 s before the first contact. Returns (unit, trial)."""
    unit = PARTS[name](**(shipped(name) | failed))
    y, z, *angles = conditions[:5]
    q, v, w = Rotation.from_euler("YZX", angles, degrees=True), conditions[5:8], np.radians(conditions[8:])
    X = first_contact(unit, q.as_quat(), y, z)
    arm = [2.5, 0.0, 0.0]
    turned = mass * np.diag([1.6, 2.1, 2.1])
    active = dict(mass=mass, inertia=turned, X_port=[*arm, 0, 0, 0, 1], X=[*(X[:3] - 0.3 * v - q.apply(arm)), *q.as_quat()], v=v, w=w)
    passive = dict(mass=target, inertia=target * np.diag([5.0, 12.0, 12.0]), X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
    return unit, TwoCraft(unit, active, passive)


@cache
def impact(name="ring", seed=0, seconds=3.0, expert=False, **failed):
    """Figures of the first seconds: largest moment, longest stroke, relative speed left, captured, signals of the last tick."""
    conditions = (EXPERT if expert else NOMINAL) + (np.random.default_rng(seed).normal(0.0, SIGMA) if seed else 0.0)
    unit, trial = meet(name, conditions, *((5000.0, 4e5) if expert else ()), **failed)
    out = trial.run(seconds, 5e-4, every=2)
    assert not out["status"].any()
    at = {key: aux_index(unit, key) for key in ("stroke", "capture_time")}
    return {"moment": np.linalg.norm(out["F_T"][:, 3:], axis=1).max(), "captured": out["aux"][-1, at["capture_time"]] >= 0.0,
            "stroke": -out["aux"][:, at["stroke"] : at["stroke"] + 6].min(axis=0), "signals": int(np.bitwise_or.reduce(out["signals"])),
            "turn": np.degrees(np.linalg.norm(out["V_TA"][-1, 3:]))}  # fmt: skip


def sound(key, **how):
    """Mean and standard deviation of a figure of the sound unit."""
    values = np.array([impact(seed=seed, **how)[key] for seed in (1, 2, 3, 4)])
    return values.mean(axis=0), values.std(axis=0, ddof=1)


# --------------------------------------------------------------------------------------------------------------------- capture


@pytest.mark.parametrize("pair", [1, 2, 3])
def test_a_jammed_pair_of_latches_leaves_two_corners_held_and_no_capture(pair):
    assert all(impact(seed=seed)["captured"] for seed in (0, 1, 2, 3, 4))
    failed = impact(latch_jammed=pair)
    assert not failed["captured"] and not failed["signals"] & SIGNAL["DSG"]
    assert [bool(failed["signals"] & SIGNAL[f"latch{k}"]) for k in (1, 2, 3)] == [k != pair for k in (1, 2, 3)]


def test_a_dead_alignment_sensor_leaves_the_unit_captured_and_never_aligned():
    whole, failed = impact(), impact(sensor_dead=2)
    assert whole["signals"] & ALIGNED == ALIGNED
    assert failed["captured"] and not failed["signals"] & SIGNAL["ring_aligned2"] and failed["signals"] & SIGNAL["ring_aligned1"]
    assert failed["moment"] == whole["moment"]  # its plunger still pushes


def test_a_broken_spring_lets_its_leg_go_further_and_shifts_the_moment():
    mean, scatter = sound("stroke")
    assert impact(spring_broken=1)["stroke"][0] - mean[0] > 30.0 * scatter[0]  # 84 mm instead of 49
    mean, scatter = sound("moment")
    assert impact(spring_broken=4)["moment"] - mean > 5.0 * scatter  # 361 N.m instead of 269 +- 6


def test_dead_leg_dampers_treble_the_moment():
    mean, scatter = sound("moment")
    assert impact(leg_damping_n_s_per_m=0.0)["moment"] - mean > 50.0 * scatter


ELASTIC = dict(name="elastic_adaptive", expert=True, seconds=9.0)


@pytest.mark.parametrize("failed", [dict(clutch_stuck=2), dict(clutch_stuck=4), dict(spring_broken=2)], ids=str)
def test_the_throw_of_the_expert_case_needs_every_clutch_and_spring(failed):
    """7.6: all struts push the ring forward; one that does not leaves the rings apart."""
    assert all(impact(seed=seed, **ELASTIC)["captured"] for seed in (0, 1, 2, 3, 4))
    assert not impact(**ELASTIC, **failed)["captured"]


# -------------------------------------------------------------------------------------------------- retraction and separation


@cache
def drawn_in(name="ring", seconds=100.0, **failed):
    """A gentle docking, 40 s of rest, `seconds` of drive at most, then 2 s with the latches drawn in. Signals and gap at either end."""
    unit, trial = meet(name, NOMINAL * 0.5, **failed)
    trial.run(40.0, 5e-4, every=1000)
    drawn = trial.run(seconds, 5e-4, every=1000, commands=COMMAND["drive"], stop_signals=SIGNAL["planes_together"])
    parted = trial.run(2.0, 5e-4, every=1000, commands=COMMAND["release"])
    at = aux_index(unit, "plane1_gap")
    gaps = [run["aux"][-1, at : at + 12 : 3] for run in (drawn, parted)]
    return {"signals": int(drawn["signals"][-1]), "gap": gaps[0].max(), "still": int(parted["signals"][-1]), "apart": gaps[1]}


@pytest.mark.parametrize(("name", "failed"), [("ring", dict(retract_speed_m_s=0.0)), ("elastic_adaptive", dict(drive_dead=True))])
def test_a_dead_drive_leaves_the_planes_apart(name, failed):
    found = drawn_in(name, 60.0, **failed)
    assert not found["signals"] & (SIGNAL["planes_together"] | SIGNAL["drive_running"]) and found["gap"] > 0.1


def test_a_nest_whose_latches_do_not_close_never_says_together():
    assert drawn_in()["signals"] & SIGNAL["planes_together"]
    failed = drawn_in(nest_latches_dead=True)
    assert not failed["signals"] & SIGNAL["planes_together"] and failed["gap"] < 0.0  # the drive pulls on


def test_a_latch_that_stays_holds_its_corner():
    whole = drawn_in()
    assert whole["apart"].min() > 0.2 and not whole["still"] & LATCHES
    failed = drawn_in(latch_stays=1)
    assert failed["still"] & LATCHES == SIGNAL["latch1"] and failed["apart"].min() < 0.15
    assert drawn_in(latch_stays=4)["apart"].max() < 0.001


@pytest.mark.parametrize("number", [1, 3])
def test_a_dead_pusher_leaves_three_and_their_moment(number):
    keys = {p.key: p.default for p in RING_PARAMETERS} | shipped("ring")
    X = [-keys["plane_x_m"] - 0.03, 0, 0, 0, 0, 0, 1]
    whole, dead = (RingInterface(keys | {"pusher_dead": k}).touch(X) for k in (0, number))
    force = keys["pusher_stiffness_n_per_m"] * (keys["pusher_length_m"] - 0.03)
    assert whole["pushers"] == pytest.approx([force] * 4)
    assert dead["pushers"] == pytest.approx([0.0 if k == number else force for k in (1, 2, 3, 4)])
    assert dead["F_T"][5] - whole["F_T"][5] == pytest.approx((1 if number == 1 else -1) * force * keys["pusher_radius_m"])
