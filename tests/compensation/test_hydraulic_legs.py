"""What the recommended compensator does on a stand whose machine is known: legs' dead band and friction, and ports on springs."""

import math

import numpy as np
import pytest
from scipy import signal

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.layout import CODES
from tests.first_sample import first_sample

H = 1e-3
STIFFNESS = 1e6
DEAD_BAND, OBSERVED, LIMITED = 1 << 6, 1 << 7, 1 << 8
UNIT = {"unit_mass_kg": 600.0, "unit_com_m": [-0.2, 0.05, 0.0], "unit_mode_hz": [30.0, 34.0, 38.0, 42.0, 46.0, 50.0],
        "unit_inertia_kg_m2": [[60.0, 0.0, 0.0], [0.0, 70.0, 0.0], [0.0, 0.0, 80.0]]}  # fmt: skip


@pytest.fixture(scope="module")
def context():
    programme = "stand_configs/programmes/elastic_contact.toml"
    return assembly.simulation(load_test(programme, ["test.stand=stands/hydraulic_stand.toml"])).context


def build(context, model=None, **keys):
    part = registry.part("compensation", "lead_and_pose_force")
    own = context | {"stand_model": context["stand_model"] | (model or {})}
    return part(stiffness_n_per_m=STIFFNESS, **keys, **{wanted: own[wanted] for wanted in part.CONTEXT})


def sample(context, V=(0.0,) * 6):
    return first_sample(motion=CODES["motion"]["free"], X_WP=context["platform"].neutral_pose, V_TA=V)


def expected_offsets(context, rates, crossing=1e-3):
    """(ticks, 6) m, of the given leg rates (ticks, 6), by the formulas of the kernel's page in numpy; without its bounds."""
    k, platform = context["stand_model"], context["platform"]
    K = k["valve_flow_m3_per_s"] / math.sqrt(0.5 * k["valve_pressure_drop_pa"])
    K_x = K * math.sqrt(0.5 * k["supply_pressure_pa"]) / k["piston_area_a_m2"]
    y = np.asarray(platform.leg_lengths(platform.neutral_pose)) - 3.0
    A = k["piston_area_a_m2"]
    oil = k["bulk_modulus_pa"] * A**2 * (1 / (k["dead_volume_a_m3"] + A * y) + 1 / (k["dead_volume_b_m3"] + A * (2.0 - y)))
    z, low, before, out = np.zeros(6), np.zeros(6), np.zeros(6), []
    w = 2.0 * math.pi * k["pressure_highpass_hz"]
    for v in rates:
        g = k["friction_coulomb_n"] + (k["friction_static_n"] - k["friction_coulomb_n"]) / (1.0 + (v / k["friction_stribeck_m_s"]) ** 2)
        z = (z + H * v) / (1.0 + H * k["friction_bristle_n_per_m"] * np.abs(v) / g)
        f = k["friction_bristle_n_per_m"] * z
        low = low + w * H * (f - low)
        sense = v / np.sqrt(v**2 + crossing**2)
        out.append((K_x * (k["valve_overlap"] * sense + k["pressure_gain_per_pa"] * (f - low) / A) + (f - before) / (H * oil))
                   / k["position_gain_per_s"])  # fmt: skip
        before = f
    return np.array(out)


def test_legs_cross_dead_band_and_friction(context):
    """Tick by tick against numpy, where the bounds do not act; each leg by its own rate."""
    part = build(context, leg_offset_max_m=0.01, leg_offset_acceleration_max_m_s2=1e4)
    J = np.asarray(context["platform"].jacobian(context["platform"].neutral_pose))
    t = H * np.arange(400)
    V = 0.02 * np.sin(2.0 * math.pi * 2.0 * t)[:, None] * np.array([1.0, 0.4, -0.2, 0.1, 0.0, 0.05])
    # velocity of P by that of A, which stands on it
    p = context["mounting"].X_PM[:3]
    of_P = np.concatenate([V[:, :3] - np.cross(V[:, 3:], p), V[:, 3:]], axis=1)
    found = []
    for v in V:
        s = sample(context, v)
        part.step(s)
        found.append(s["leg_offset"][0].copy())
        assert s["compensation_status"][0] & DEAD_BAND
    expected = expected_offsets(context, of_P @ J.T)
    assert np.abs(expected).max() > 5e-5
    # the acceleration bound smooths a reversal over a tick or two
    assert np.abs(np.array(found) - expected).max() < 2e-6 + 0.02 * np.abs(expected).max()


def test_steady_motion_needs_the_dead_band_alone(context):
    """overlap K_x/k_v = 46 um a leg, after the high-pass has let the friction stand; at rest nothing moves."""
    part = build(context)
    for _ in range(6000):
        s = sample(context, [0.02, 0, 0, 0, 0, 0])
        part.step(s)
    assert s["leg_offset"][0] == pytest.approx(4.57e-5, abs=1e-6)
    part = build(context)
    rng = np.random.default_rng(1)
    offsets = []
    for _ in range(200):
        s = sample(context, 1e-6 * rng.normal(size=6))
        part.step(s)
        offsets.append(s["leg_offset"][0].copy())
    assert np.abs(offsets).max() < 1e-6


def test_authority_of_the_legs_is_bounded(context):
    """By length and by acceleration, whatever is asked; the status says so. Switched off, nothing is written."""
    part = build(context, leg_offset_max_m=2e-5, leg_offset_acceleration_max_m_s2=0.5)
    offsets, seen = [], 0
    for k in range(300):
        s = sample(context, [0.02 if k // 60 % 2 else -0.02, 0, 0, 0, 0, 0])
        part.step(s)
        offsets.append(s["leg_offset"][0].copy())
        seen |= int(s["compensation_status"][0])
    assert 1.5e-5 < np.abs(offsets).max() <= 2.1e-5
    assert np.abs(np.diff(offsets, 2, axis=0)).max() / H**2 <= 0.5 * (1.0 + 1e-9)
    assert seen & LIMITED
    s = sample(context, [0.02, 0, 0, 0, 0, 0])
    build(context, dead_band=False).step(s)
    assert not s["leg_offset"].any() and not s["compensation_status"][0] & DEAD_BAND


def test_setpoints_get_rate_and_offset(context):
    """The demanded twist has lead_offset_rate on top, the legs leg_offset."""
    def demand(**fields):
        part = registry.part("setpoint_kinematics", "stewart")(**{k: context[k] for k in ("period_s", "platform", "mounting")})
        s = sample(context, [0.01, 0, 0, 0, 0, 0])
        s["X_TA"][0, :3] = [-0.4, 0.0, 0.0]
        s["lead"][0, 0] = 1.0
        for name, value in fields.items():
            s[name] = value
        part.step(s)
        return s

    plain, more = demand(), demand(lead_offset_rate=[0.02, 0, 0, 0, 0, 0.01], leg_offset=np.arange(6) * 1e-4)
    assert more["leg_demand"][0] - plain["leg_demand"][0] == pytest.approx(np.arange(6) * 1e-4, abs=1e-12)
    J = np.asarray(context["platform"].jacobian(plain["X_WP"][0]))
    p = context["mounting"].X_PM[:3]
    V = np.array([0.02, 0, 0]) - np.cross([0, 0, 0.01], p)
    assert more["leg_rate_demand"][0] - plain["leg_rate_demand"][0] == pytest.approx(J @ np.r_[V, 0, 0, 0.01], abs=1e-12)


# ------------------------------------------------------------------------------------------------------------- structure


def ringing(M, K, C, foot, F):
    """Motion of a body on a spring (n, 6): foot (n, 6) and wrench (n, 6) straight between the ticks (scipy)."""
    inverse, one, none = np.linalg.inv(M), np.eye(6), np.zeros((6, 6))
    # d = x - y, x' = v:  d' = v - y', v' = M^-1 (F - K d - C (v - y'))
    rate = np.gradient(foot, H, axis=0)
    A = np.block([[none, one], [-inverse @ K, -inverse @ C]])
    B = np.block([[-one, none], [inverse @ C, inverse]])
    out = signal.lsim((A, B, np.eye(12), np.zeros((12, 12))), np.hstack([rate, F]), H * np.arange(len(F)))[1]
    return out[:, :6]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_ports_are_where_the_unit_is_on_its_spring(axis, context):
    """The force correction shows the pose that it uses: F + k (x - y). Unit of 600 kg on six modes off its port, foot and force swinging at
    6 Hz: y within 2 % of the deflection that scipy has."""
    from rt_kernels.model.modal_spring import modal_spring

    part = build(context | {"mounting": context["mounting"]}, UNIT, dead_band=False)
    n = 400
    t = H * np.arange(n)
    foot, force = np.zeros((n, 6)), np.zeros((n, 3))
    foot[:, axis] = 1e-3 * (1.0 - np.cos(2.0 * math.pi * 6.0 * t))
    force[:, axis] = 2000.0 * (1.0 - np.cos(2.0 * math.pi * 6.0 * t)) + 300.0
    com = np.array(UNIT["unit_com_m"])
    J = np.array(UNIT["unit_inertia_kg_m2"])
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = 600.0 * np.eye(3), J
    K, C = modal_spring(600.0, J, UNIT["unit_mode_hz"], [0.02] * 6)
    # the force on the target acts the other way on the unit, at its port
    on_unit = np.hstack([-force, np.cross(-com, -force)])
    deflection = ringing(M, K, C, foot, on_unit)
    at_port = deflection[:, :3] + np.cross(deflection[:, 3:], -com)
    found = []
    age = round(context["delays"].measured_leg_delay_s / H)
    for k in range(n):
        s = sample(context)
        y = foot[max(0, k - age)]
        s["contact"], s["F_T"][0, :3], s["X_TA_measured"][0, :3] = k > 0, force[k], y[:3]
        s["X_TA"][0, :3] = foot[k, :3]
        part.step(s)
        corrected = s["F_T_corrected"][0, axis] - force[k, axis]
        found.append(-corrected / STIFFNESS)
        assert s["compensation_status"][0] & OBSERVED
    skip = 5
    shown = np.array(found)[skip + age :]
    truth = at_port[skip : n - age if age else n, axis]
    assert np.abs(truth).max() > 1e-4
    assert np.abs(shown - truth).max() < 0.02 * np.abs(truth).max()


def test_structure_that_cannot_be_observed_is_refused(context):
    with pytest.raises(ValueError, match="stand_model.unit has a mode at 8 Hz, limit 15 Hz"):
        build(context, UNIT | {"unit_mode_hz": [8.0, 30.0, 30.0, 40.0, 40.0, 40.0]})
    both = {"base_mass_kg": 300.0, "base_inertia_kg_m2": np.diag([20.0] * 3).tolist(), "base_mode_hz": [60.0] * 6,
            "cell_mode_hz": [80.0] * 6}  # fmt: skip
    with pytest.raises(ValueError, match="base and cell"):
        build(context, both)
    build(context, both, structure=False)
