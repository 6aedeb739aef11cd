"""Every compensator against its closed form, tick by tick: constants, signs, comparisons."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal
from scipy.spatial.transform import Rotation

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.compensation.declarations import lead_inertia
from rt_kernels.compensation.effective_mass import relative_inverse_inertia
from rt_kernels.context import Delays
from rt_kernels.layout import CODES
from tests.first_sample import first_sample

H = 1e-3
FREE = CODES["motion"]["free"]
# a drive and a delay of about the same weight: no term of a lead is small beside the others
W, ZETA, TAU = 2.0 * np.pi * 6.0, 0.7, 0.03
DELAYS = Delays(
    total_s=TAU + 2.0 * ZETA / W, transport_s=TAU, sensor_delay_s=0.0, drive_lag_s=2.0 * ZETA / W,
    drive_frequency_hz=W / (2.0 * np.pi), drive_damping=ZETA, measured_leg_delay_s=0.0,
)  # fmt: skip
L1, L2 = TAU + 2.0 * ZETA / W, 1.0 / W**2 + 2.0 * ZETA * TAU / W + 0.5 * TAU**2
LEADS = {"phase_lead": {}, "lead_and_pose_force": {"stiffness_n_per_m": 1e5}, "adaptive_time_series": {}}


@pytest.fixture(scope="module")
def context():
    test = assembly.simulation(load_test("stand_configs/programmes/elastic_contact.toml", ["guidance.part=docking"]))
    return test.context | {"delays": DELAYS, "period_s": H}


def build(name, context, **keys):
    part = registry.part("compensation", name)
    return part(**keys, **{wanted: context[wanted] for wanted in part.CONTEXT})


def sample(**fields):
    s = first_sample(motion=FREE)
    for name, value in fields.items():
        if np.ndim(value) == 0 or s[name].ndim == 1:
            s[name] = value
        else:
            s[name][0, : len(value)] = value
    return s


# ------------------------------------------------------------------------------------------------------------------ lead


@pytest.mark.parametrize("name", LEADS)
def test_lead_is_the_inverse_of_drive_and_delay(name, context):
    """l1 and l2 term by term, factor and order; and what they are for: C H e^(-st) - 1 falls with the third power of s."""
    s = sample()
    build(name, context, **LEADS[name]).step(s)
    assert s["lead"][0] == pytest.approx([1.0, L1, L2], rel=1e-12)
    left = []
    for w in (0.2, 0.4):
        q = 1j * w
        lead, drive = 1.0 + s["lead"][0, 1] * q + s["lead"][0, 2] * q * q, W**2 / (q * q + 2 * ZETA * W * q + W**2)
        left.append(abs(lead * drive * np.exp(-q * TAU) - 1.0))
    assert left[1] / left[0] == pytest.approx(8.0, rel=0.01)
    build(name, context, **LEADS[name], lead_factor=0.5).step(s)
    if name != "adaptive_time_series":
        assert s["lead"][0] == pytest.approx([1.0, 0.5 * L1, 0.5 * L2], rel=1e-12)
        build(name, context, **LEADS[name], order=1).step(s)
        assert s["lead"][0] == pytest.approx([1.0, L1, 0.0], rel=1e-12)
    ideal = context | {"delays": replace(DELAYS, drive_frequency_hz=0.0, total_s=TAU, drive_lag_s=0.0)}
    s = sample()
    build(name, ideal, **LEADS[name]).step(s)
    assert s["lead"][0] == pytest.approx([1.0, TAU, 0.5 * TAU**2], rel=1e-12)


def test_adaptive_lead_adds_the_delay_that_it_cannot_see(context):
    """Delay of the force less that of the measured legs: a1 + d, a2 + a1 d + d^2/2 is the lead of the whole delay again."""
    s = sample()
    build("adaptive_time_series", context | {"delays": replace(DELAYS, sensor_delay_s=0.012, measured_leg_delay_s=0.002)}).step(s)
    assert s["lead"][0] == pytest.approx([1.0, L1, L2], rel=1e-12)


def test_lead_foresees_the_step_that_the_wrench_makes(context):
    """A' = A - L^-1 (F' - F), V' = V + h A': a lead whose rate is limited continues by so much, along the foreseen change."""
    part = build("phase_lead", context, lead_rate_max_m_s=0.05, lead_acceleration_max_m_s2=1e4)
    rng = np.random.default_rng(4)
    inverse = lead_inertia(context["vehicles"], context["start"])
    V, A, F = 0.02 * rng.normal(size=6), 0.1 * rng.normal(size=6), 300.0 * rng.normal(size=6)
    V[3:] *= 0.01
    A[3:] *= 0.01
    F[3:] *= 0.001
    part.step(sample(V_TA=V, A_TA=A))
    d0 = L1 * (V + H * A) + L2 * A
    s = sample(V_TA=V, A_TA=A, F_T=F)
    part.step(s)
    a = A - inverse @ F
    d = L1 * (V + H * a) + L2 * a
    change = d - d0
    for i in (slice(0, 3), slice(3, 6)):
        change[i] *= min(1.0, 0.05 * H / np.linalg.norm(change[i]))
    assert s["compensation_status"][0] & 1 and np.linalg.norm(d[:3] - d0[:3]) > 0.05 * H
    np.testing.assert_allclose(s["lead_offset"][0], d0 + change - d, rtol=1e-9, atol=1e-15)
    # outside of the closed loop no wrench acts: nothing to foresee
    part = build("phase_lead", context, lead_rate_max_m_s=0.05)
    part.step(sample(V_TA=V, A_TA=A, motion=0))
    s = sample(V_TA=V, A_TA=A, F_T=F, motion=0)
    part.step(s)
    assert not s["lead_offset"].any() and not s["compensation_status"][0]


@pytest.mark.parametrize(("rates", "bounds"), [
    pytest.param((1e9, 1e9, 1e9), (0.3, 3.0), id="free"),
    pytest.param((0.03, 0.002, 5e-4), (0.3, 3.0), id="slow"),
    pytest.param((1e9, 1e9, 1e9), (0.9, 1.02), id="bounded"),
])  # fmt: skip
def test_adaptive_fit_is_the_least_squares_of_command_on_measured_pose(rates, bounds, context):
    """Both filtered alike, so that the columns are the filtered pose and its backward differences, z, Dz, D^2 z; old rows weigh
    e^(-t/window); Dz is half a tick old. What is taken over moves no faster than its rate and stays inside its bounds."""
    n, window, rng = 900, 0.4, np.random.default_rng(5)
    t = np.arange(n)[:, None] * H
    start = np.array([0.11, -0.07, 0.05])
    # every axis its own sines, from rest; the drive: a gain of 0.95 and a frequency and damping of every axis
    moving = np.clip((t - 0.01) / 0.1, 0.0, 1.0)
    u = start + 0.02 * moving**3 * sum(rng.normal(size=3) * np.sin(w * t + rng.normal(size=3)) for w in (7.0, 19.0, 31.0))
    drives = [([w * w], [1.0, 2.0 * zeta * w, w * w]) for w, zeta in ((24.0, 0.7), (27.0, 0.8), (25.0, 0.9))]
    y = start + 0.95 * np.column_stack([signal.lsim(drive, u[:, i] - start[i], t[:, 0])[1] for i, drive in enumerate(drives)])
    X_WF, X_PM = context["mounting"].X_WF, context["mounting"].X_PM
    assert not X_WF[3:6].any() and not X_PM[3:6].any()  # translations of the platform are those of the port
    platform = u + (X_WF - X_PM)[:3]
    corner, gate = 2.0 * np.pi * 12.0, 0.004
    part = build("adaptive_time_series", context, rates=rates, window_s=window, corner_hz=12.0, gate_m_s=gate, gain_bounds=bounds,
                 lead_bounds=bounds)  # fmt: skip
    taken, coefficients = [], []
    for k in range(n):
        s = sample(motion=CODES["motion"]["follow_profile"], X_TA=y[k], X_TA_measured=y[k], X_WP=platform[k])
        coefficients.append(part.step(s).copy())
        taken.append(bool(s["compensation_status"][0] & 16))
    keep = 1.0 - np.exp(-corner * H)
    fu, fy = u - start, y - start
    for _ in range(3):
        fu, fy = (signal.lfilter([keep], [1.0, keep - 1.0], x, axis=0) for x in (fu, fy))
    D1 = np.diff(fy, axis=0, prepend=0.0) / H
    D2 = np.diff(D1, axis=0, prepend=0.0) / H
    nominal = np.array([1.0, L1, L2])
    low, high = nominal * bounds[0], nominal * bounds[1]
    a, adapted, inside = nominal.copy(), 0, np.zeros(3, int)
    for k in range(n):
        weight = np.sqrt(np.exp(-H / window) ** (k - np.arange(k + 1)))[:, None]
        rows = np.stack([fy[: k + 1], D1[: k + 1], D2[: k + 1]], axis=-1)
        Y = (weight[:, :, None] * rows).reshape(-1, 3)
        N = Y.T @ Y
        scaled = N / np.sqrt(np.outer(np.diag(N), np.diag(N))) if np.diag(N).all() else np.zeros((3, 3))
        excited = np.linalg.det(scaled) > 1e-4
        assert taken[k] == (excited and np.linalg.norm(D1[k]) >= gate), k
        if taken[k]:
            fit = np.linalg.lstsq(Y, (weight * fu[: k + 1]).ravel(), rcond=None)[0]
            fit[2] -= 0.5 * H * fit[1]
            most = np.array(rates) * H
            a = np.clip(np.clip(fit, a - most, a + most), low, high)
            adapted += 1
            inside += a == fit
        np.testing.assert_allclose(coefficients[k], a, rtol=1e-6)
    assert 400 < adapted < n - 10
    # each limit has been met, or none where there is none
    assert (inside > 400).all() if rates[0] > 1.0 and bounds[0] < 0.5 else (inside < adapted).all()


def test_adaptive_gain_works_from_where_the_motion_began(context):
    """x_c = x0 + a0 (x - x0) + a1 v + a2 a: the offset is (a0 - 1)(x - x0); a force that is older than the legs adds its delay."""
    older = {"sensor_delay_s": 0.02, "measured_leg_delay_s": 0.005}
    own = context | {"delays": replace(DELAYS, **older)}
    part = build("adaptive_time_series", own, rates=(1e9, 0.0, 0.0), gate_m_s=0.0, corner_hz=50.0)
    mounting, origin = context["mounting"], np.array([0.2, 0.1, -0.3])
    for k in range(400):
        x = origin + 0.02 * np.sin(20.0 * max(k - 5, 0) * H) * np.array([1.0, -0.5, 0.3])
        u = origin + 1.2 * (x - origin)
        s = sample(motion=CODES["motion"]["follow_profile"], X_TA=x, X_TA_measured=x, X_WP=u + (mounting.X_WF - mounting.X_PM)[:3])
        a = part.step(s)
    nominal = part.fields()["lead"]
    assert abs(a[0] - 1.0) > 0.05 and s["lead"][0, 0] == a[0]
    np.testing.assert_allclose(s["lead_offset"][0, :3], (a[0] - 1.0) * (x - origin), rtol=1e-9)
    d = 0.015
    assert s["lead"][0, 1] == pytest.approx(a[1] + a[0] * d, rel=1e-12) == pytest.approx(nominal["l1"], rel=1e-12)
    assert s["lead"][0, 2] == pytest.approx(a[2] + a[1] * d + 0.5 * a[0] * d * d, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("spacing", [1, 7])
def test_polynomial_reads_a_polynomial_off_at_its_horizon(order, spacing, context):
    """Motion of the degree that goes through the poses: x_new + lead v_new + offset is exact, one horizon ahead."""
    part = build("polynomial", context, order=order, spacing_ticks=spacing)
    p = np.polynomial.Polynomial([0.1, 0.3, -2.0, 5.0, 40.0][: order + 1])
    for k in range(order * spacing + 3):
        t = k * H
        s = sample(X_TA=[p(t), 0.0, 0.0])
        part.step(s)
    v = (p(t + H) - p(t)) / H
    ahead = p(t + H) + s["lead"][0, 1] * v + s["lead_offset"][0, 0]
    rounding = 4e-16 * max(1.0, DELAYS.total_s / (spacing * H)) ** order  # what the extrapolation makes of the last digit
    assert ahead == pytest.approx(p(t + H + DELAYS.total_s), abs=rounding)


# ----------------------------------------------------------------------------------------------------------------- force


def test_force_goes_to_the_simulated_pose_with_its_damper(context):
    """F + K e + B e' with the error e = x - y growing at a steady rate: from the fourth tick of a contact on."""
    part = build("pose_referenced_force", context, stiffness_n_per_m=1e5, damping_n_s_per_m=700.0)
    for k in range(8):
        y, e = 2e-3, 1e-4 + 3e-5 * k
        s = sample(contact=k > 2, F_T=[1e5 * y], X_TA=[y + e], X_TA_measured=[y])
        part.step(s)
        if k > 6:
            assert s["F_T_corrected"][0, 0] == pytest.approx(1e5 * (y + e) + 700.0 * 3e-5 / H, rel=1e-9)
    assert s["compensation_status"][0] == 8


@pytest.mark.parametrize(("sensor", "legs"), [(0.0025, 0.0), (0.0, 0.0015)])
def test_force_and_pose_of_different_age(sensor, legs, context):
    """A force that is older than the measured pose belongs to an earlier pose, linear between the ticks; an older pose is set against the
    model of its own instant."""
    own = context | {"delays": replace(DELAYS, sensor_delay_s=sensor, measured_leg_delay_s=legs)}
    part = build("pose_referenced_force", own, stiffness_n_per_m=1e5)
    vx, vy = 0.4, 0.3
    for k in range(300):
        s = sample(contact=k > 280, F_T=[1000.0], X_TA=[vx * k * H], X_TA_measured=[vy * k * H])
        part.step(s)
    x, y = vx * (k * H - legs), vy * (k * H - sensor)
    assert s["F_T_corrected"][0, 0] == pytest.approx(1000.0 + 1e5 * (x - y), rel=1e-9)


def test_first_tick_catches_up_what_was_missed(context):
    """Model n ticks ahead at v: in the first tick of the contact k times the sum of min(n v h, depth) over the ticks since it touched."""
    part = build("pose_referenced_force", context, stiffness_n_per_m=1e5)
    n, v, depth_y = 6, 0.05, 1e-5
    touch = 100
    for k in range(touch + 1):
        x = v * H * (k - touch)
        s = sample(contact=k == touch, X_TA=[x], X_TA_measured=[x - n * v * H], F_T=[1e5 * depth_y if k == touch else 0.0])
        part.step(s)
    lag = n * v * H
    missed = sum(min(lag, depth_y + lag - j * v * H) for j in range(1, 50) if depth_y + lag - j * v * H > 0.0)
    assert s["F_T_corrected"][0, 0] == pytest.approx(1e5 * (depth_y + lag + missed), rel=1e-9)


def with_instrument(x, y, force, forgetting, excitation, known=(0.0, 0.0)):
    """cov(x, f) and cov(x, y) over the ticks of a contact with the forgetting's weights, those of earlier contacts faded with them."""
    w = forgetting ** np.arange(len(x))[::-1]
    fade = forgetting ** len(x)
    xf, xy = (np.sum(w * x * v) - np.sum(w * x) * np.sum(w * v) / np.sum(w) for v in (force, y))
    return known[0] * fade + xf, known[1] * fade + xy


@pytest.mark.parametrize("older", [0.0, 1.5])
@pytest.mark.parametrize("prior", [0.75, 1.2, 1.9, 2.2, 0.6])
def test_stiffness_is_learnt_with_the_simulated_pose_as_instrument(prior, older, context):
    """Covariances over each contact, faded by the forgetting, the prior counted as ten motions of the given size; a second contact, whose
    surfaces have moved, continues from what the first has taught; and the estimate stays within 0.5...1.5 times the prior."""
    k_true, excitation, forgetting = 1e5, 5e-5, 0.98
    learning = {"estimate": True, "excitation_m": excitation, "forgetting": forgetting}
    own = context | {"delays": replace(DELAYS, measured_leg_delay_s=older * H)}
    part = build("pose_referenced_force", own, stiffness_n_per_m=prior * k_true, **learning)
    u, ticks = np.array([0.6, 0.0, 0.8]), np.arange(260)
    noise = 2e-5 * np.random.default_rng(3).normal(size=260)

    def depth(k):
        return 3e-3 + 1.2e-3 * np.sin(0.03 * k) + np.where(k > 150, 4e-4, 0.0)

    # the pose is `older` ticks older than the force of its tick; what belongs to its instant is read off linearly between the ticks
    y, force, x = depth(ticks - older) + noise, k_true * depth(ticks), depth(ticks) + 3e-4
    then = np.interp(ticks - older, ticks, x), np.interp(ticks - older, ticks, force)
    begins, known, taught = 10, (0.0, 0.0), []
    for k in range(260):
        contact = 9 < k < 140 or k > 165
        s = sample(contact=contact, F_T=force[k] * u, X_TA=x[k] * u, X_TA_measured=y[k] * u)
        part.step(s)
        if not contact:
            begins = k + 1
            known = taught[-1] if taught else known
            continue
        span = slice(begins, k + 1)
        taught.append(with_instrument(then[0][span], y[span], then[1][span], forgetting, excitation, known))
        weight = 10.0 * excitation**2
        factor = np.clip((taught[-1][0] / (prior * k_true) + weight) / (taught[-1][1] + weight), 0.5, 1.5)
        if k > begins:
            expected = force[k] + factor * prior * k_true * (then[0][k] - y[k])
            np.testing.assert_allclose(s["F_T_corrected"][0, :3], expected * u, rtol=1e-9, atol=1e-9)
        assert bool(s["compensation_status"][0] & 16)


def test_noise_of_the_pose_does_not_pull_the_estimate_down(context):
    """One contact of 50 ms, 0.3 mm deep, 20 um of noise on the pose: least squares of force on pose would be 4 % low, the instrument is
    not, by the mean of many contacts."""
    k_true, ticks, rng = 1e5, np.arange(50), np.random.default_rng(1)
    depth = 3e-4 * np.sin(np.pi * (ticks + 0.5) / 50)
    found, squares = [], []
    for _ in range(60):
        part = build("pose_referenced_force", context, stiffness_n_per_m=k_true, estimate=True, excitation_m=1e-6, forgetting=1.0)
        y = depth + 2e-5 * rng.normal(size=50)
        aux = np.zeros(1)
        for k in ticks:
            part.step(sample(contact=1, F_T=[k_true * depth[k]], X_TA=[depth[k] + 5e-5], X_TA_measured=[y[k]]), aux)
        found.append(aux[0] / k_true)
        squares.append(np.polyfit(y, depth, 1)[0])
    assert np.mean(squares) < 0.97
    assert np.mean(found) == pytest.approx(1.0, abs=4.0 * np.std(found) / np.sqrt(60))
    assert np.std(found) < 0.05


def test_one_factor_of_a_stiffness_matrix_is_estimated(context):
    """A contact of couples alone, which only a matrix knows, its stiffness 20 % wrong: the factor is found and used."""
    k_true = 3e4
    rows = np.zeros((6, 6))
    rows[4, 4] = 0.8 * k_true
    part = build("pose_referenced_force", context, stiffness_rows=rows.tolist(), estimate=True)
    aux = np.zeros(1)
    for k in range(100):
        y, x = 2e-3 * np.sin(0.03 * k), 2e-3 * np.sin(0.03 * k) + 2e-4
        turned = [[0.0, 0.0, 0.0, 0.0, np.sin(0.5 * a), 0.0, np.cos(0.5 * a)] for a in (x, y)]
        s = sample(contact=1, F_T=[0, 0, 0, 0, k_true * (y + 1e-3), 0], X_TA=turned[0], X_TA_measured=turned[1])
        part.step(s, aux)
    assert aux[0] == pytest.approx(k_true, rel=2e-3)
    assert s["F_T_corrected"][0] == pytest.approx([0, 0, 0, 0, k_true * (y + 1e-3) + aux[0] * 2e-4, 0], rel=1e-9)


def test_stiffness_matrix_and_its_stop_at_zero_force(context):
    rng = np.random.default_rng(2)
    K = rng.normal(size=(6, 6)) * 1e4
    part = build("pose_referenced_force", context, stiffness_rows=K.tolist())
    e = np.array([1e-4, -2e-4, 3e-4])
    F = np.array([500.0, 300.0, -200.0, 10.0, 5.0, 2.0])
    s = sample(contact=1, F_T=F, X_TA=e)
    part.step(s)
    np.testing.assert_allclose(s["F_T_corrected"][0], F + K @ np.concatenate([e, np.zeros(3)]), rtol=1e-12)
    turned = -K @ np.concatenate([e, np.zeros(3)])
    s = sample(contact=1, F_T=0.5 * turned, X_TA=e)
    part.step(s)
    assert not s["F_T_corrected"].any()


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_smith_predictor_is_its_transfer_function(share, context):
    """3/2 z + 1/(1 + z/2), z = T s, exact for a force that runs straight from sample to sample."""
    part = build("smith", context, lead_factor=share)
    T = DELAYS.total_s * share
    rng = np.random.default_rng(3)
    F = np.concatenate([[0.0], np.cumsum(rng.normal(size=300))])
    _, low, _ = signal.lsim(([1.0], [0.5 * T, 1.0]), F, np.arange(len(F)) * H)
    out = []
    for f in F:
        s = sample(F_T=[0.0, f])
        part.step(s)
        out.append(s["F_T_corrected"][0, 1])
    np.testing.assert_allclose(out[1:], 1.5 * T / H * np.diff(F) + low[1:], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------------- energy


def kinetic_after(F, V, energy, inverse):
    """Energy of relative motion after one symplectic step under F on the target (and -F on the active unit)."""
    return energy - H * F @ V + 0.5 * H * H * F @ inverse @ F


def test_energy_cap_leaves_exactly_what_is_allowed(context):
    """While the force pushes apart; the rest of the time, and below the cap, nothing is touched."""
    inverse = relative_inverse_inertia(context["vehicles"], context["start"].X_TA)
    part = build("energy_cap", context, dissipated=0.25)
    F, V = np.array([900.0, 0, 0, 0, 0, 0]), np.array([0.02, 0, 0, 0, 0, 0])
    part.step(sample(contact=1, F_T=F, V_TA=V, kinetic_energy=0.06))  # allowed from now on: three quarters of it
    s = sample(contact=1, F_T=F, V_TA=-V, kinetic_energy=0.04)
    part.step(s)
    k = s["F_T_corrected"][0, 0] / F[0]
    assert 0.0 < k < 1.0 and s["compensation_status"][0] == 8 | 32
    assert kinetic_after(k * F, -V, 0.04, inverse) == pytest.approx(0.045, rel=1e-12)
    for energy, V_now, untouched in ((0.01, -V, True), (0.04, V, True), (0.05, -V, False)):
        s = sample(contact=1, F_T=F, V_TA=V_now, kinetic_energy=energy)
        part.step(s)
        assert s["F_T_corrected"][0, 0] == (F[0] if untouched else 0.0)
    s = sample(contact=0, F_T=F, V_TA=-V, kinetic_energy=1.0)
    part.step(s)
    assert s["F_T_corrected"][0, 0] == F[0] and s["compensation_status"][0] == 0


def test_energy_cap_begins_where_a_whole_step_would_pass_the_limit(context):
    """The full force would leave kinetic - h F.V + h^2 F L^-1 F/2: a little more than allowed is cut back, a little less is not."""
    inverse = relative_inverse_inertia(context["vehicles"], context["start"].X_TA)
    F, V, allowed = np.array([900.0, 0, 0, 0, 0, 0]), np.array([0.02, 0, 0, 0, 0, 0]), 0.06
    gain = kinetic_after(F, -V, 0.0, inverse)
    square = 0.5 * H * H * F @ inverse @ F
    part = build("energy_cap", context)
    part.step(sample(contact=1, F_T=F, V_TA=V, kinetic_energy=allowed))
    for beyond in (-1.5 * square, -1e-6, 1e-6, 0.5 * square, 1.5 * square):
        s = sample(contact=1, F_T=F, V_TA=-V, kinetic_energy=allowed - gain + beyond)
        part.step(s)
        k = s["F_T_corrected"][0, 0] / F[0]
        assert (k == 1.0) == (beyond < 0.0)
        assert kinetic_after(k * F, -V, s["kinetic_energy"][0], inverse) == pytest.approx(allowed + min(beyond, 0.0), rel=1e-12)


def cut_back(context, target_kg=None, **acting):
    """(share of the force, energy allowed) after a tick in which the control acts on crafts in a contact of 0.05 J; and the masses."""
    vehicles = context["vehicles"]
    if target_kg is not None:
        vehicles = replace(vehicles, target=replace(vehicles.target, mass_kg=target_kg))
    part = build("energy_cap", context | {"vehicles": vehicles})
    F, V = np.array([900.0, 0, 0, 0, 0, 0]), np.array([-0.02, 0, 0, 0, 0, 0])
    fields = {"contact": 1, "F_T": F, "V_TA": V, "kinetic_energy": 0.05}
    part.step(sample(**fields, **acting))
    s = sample(**fields)
    part.step(s)
    k = s["F_T_corrected"][0, 0] / F[0]
    inverse = relative_inverse_inertia(vehicles, context["start"].X_TA)
    return k, kinetic_after(k * F, V, 0.05, inverse), np.array([vehicles.active.mass_kg, vehicles.target.mass_kg])


def test_energy_cap_allows_what_the_thrust_puts_in(context):
    """Share of the thrust's power in the relative motion: m_V / (m_C + m_V) f . (v_C - v_V)."""
    _, allowed, masses = cut_back(context, 1800.0, control_A=[400.0], V_NC=[0.03], V_NV=[0.01])
    assert masses.tolist() == [600.0, 1800.0]
    assert allowed == pytest.approx(0.05 + H * 400.0 * 0.02 * 1800.0 / 2400.0, rel=1e-12)


def test_energy_cap_allows_what_the_control_moment_puts_in(context):
    """All of the moment's power: force and moment in axes of the vehicle, its rates in inertial ones."""
    turned = Rotation.from_euler("xyz", [0.4, -0.7, 1.1])
    f, m, v, w = np.array([200.0, -90.0, 40.0]), np.array([30.0, 50.0, -20.0]), np.array([0.03, 0.01, 0.02]), np.array([0.02, 0.03, -0.01])
    k, allowed, masses = cut_back(context, control_A=[*f, *m], V_NC=[*v, *w], X_NC=[0.5, 0.6, 0.7, *turned.as_quat()])
    assert 0.0 < k < 1.0 and allowed > 0.05
    assert allowed == pytest.approx(0.05 + H * (masses[1] / masses.sum() * turned.apply(f) @ v + turned.apply(m) @ w), rel=1e-12)


def test_energy_cap_allows_what_the_targets_own_actuators_put_in(context):
    """The force on the target takes the relative velocity the other way, with the active craft's share of the mass."""
    turned = Rotation.from_euler("xyz", [-0.2, 0.9, 0.3])
    f, m, v, w = np.array([-200.0, 90.0, 40.0]), np.array([30.0, -50.0, -20.0]), np.array([0.03, 0.01, 0.02]), np.array([0.02, 0.03, -0.04])
    k, allowed, masses = cut_back(context, 1800.0, control_T=[*f, *m], V_NC=[*v], V_NV=[0.0, 0.0, 0.0, *w],
                                  X_NV=[0.5, 0.6, 0.7, *turned.as_quat()])  # fmt: skip
    assert 0.0 < k < 1.0 and abs(allowed - 0.05) > 1e-5
    assert allowed == pytest.approx(0.05 + H * (-masses[0] / masses.sum() * turned.apply(f) @ v + turned.apply(m) @ w), rel=1e-12)


# ---------------------------------------------------------------------------------------------------------------- change


def test_both_parts_are_mixed_in_every_field(context):
    """Free part plus w (3 - 2 w) w of the difference to the contact part, in force, lead and offset; status of the one that outweighs."""
    limits = {"lead_rate_max_m_s": 0.05, "lead_acceleration_max_m_s2": 2.0}
    tables = {"free": {"part": "polynomial"}, "contact": {"part": "lead_and_pose_force", "stiffness_n_per_m": 1e5} | limits}
    part = build("phased", context, **tables, blend_s=0.05, hold_s=0.004)
    free, contact = (build(table["part"], context, **{k: v for k, v in table.items() if k != "part"}) for table in tables.values())
    rng, w, since, mixed = np.random.default_rng(8), 0.0, 1e9, 0
    for k in range(400):
        touching = 250 <= k < 290
        x = 1e-3 * np.sin(0.05 * k + np.arange(3))
        s = sample(contact=touching, F_T=300.0 * rng.normal(size=6), X_TA=x, X_TA_measured=x + 1e-4 * rng.normal(size=3),
                   V_TA=0.02 * rng.normal(size=6), A_TA=0.1 * rng.normal(size=6))  # fmt: skip
        a, b = s.copy(), s.copy()
        for one, data in ((part, s), (free, a), (contact, b)):
            one.step(data)
        since = 0.0 if touching else since + H
        w = min(max(w + (1 if since < 0.0045 else -1) * H / 0.05, 0.0), 1.0)
        share = w * w * (3.0 - 2.0 * w)
        for field in ("F_T_corrected", "lead", "lead_offset"):
            np.testing.assert_allclose(s[field][0], a[field][0] + share * (b[field][0] - a[field][0]), rtol=1e-9, atol=1e-12)
        if abs(share - 0.5) > 1e-9:
            assert s["compensation_status"][0] == (b if share > 0.5 else a)["compensation_status"][0]
        differ = all(np.abs(a[field][0] - b[field][0]).max() > 1e-4 for field in ("F_T_corrected", "lead", "lead_offset"))
        mixed += 0.05 < share < 0.95 and differ
    assert mixed > 25


def test_change_between_two_compensators_follows_its_curve(context):
    """3 w^2 - 2 w^3 over the blend; the contact one stays for hold_s after the contact; the command overrides both."""
    part = build("phased", context, free={"part": "none"}, contact={"part": "phase_lead"}, blend_s=0.01, hold_s=0.003)

    def lead(**fields):
        s = sample(**fields)
        part.step(s)
        return s["lead"][0, 1] / L1

    assert lead() == 0.0
    for i in range(1, 11):
        w = i / 10
        assert lead(contact=1) == pytest.approx(3 * w**2 - 2 * w**3, rel=1e-9)
    assert [lead() for _ in range(3)] == pytest.approx([1.0] * 3)
    assert lead() == pytest.approx(3 * 0.9**2 - 2 * 0.9**3, rel=1e-9)
    command = {"command_code": CODES["command"]["set_compensator"]}
    for choice, end in ((2.0, 1.0), (1.0, 0.0), (0.0, 1.0)):
        lead(**command, command_arg=[choice], contact=1)
        assert [lead(contact=int(choice != 2.0)) for _ in range(12)][-1] == pytest.approx(end, abs=1e-12)


def test_none_passes_everything_on(context):
    F = np.arange(1.0, 7.0)
    s = sample(F_T=F, V_TA=[1.0], contact=1)
    build("none", context).step(s)
    assert (s["F_T_corrected"][0] == F).all() and list(s["lead"][0]) == [1.0, 0.0, 0.0] and not s["lead_offset"].any()


@pytest.mark.parametrize("name", ["none", "smith", "energy_cap", "pose_referenced_force"])
@pytest.mark.parametrize("contact", [0, 1])
def test_parts_that_work_on_the_force_lead_by_nothing(name, contact, context):
    """Whatever stood in the fields before."""
    part = build(name, context, **({"stiffness_n_per_m": 1e5} if name == "pose_referenced_force" else {}))
    for _ in range(3):
        s = sample(contact=contact, F_T=np.arange(1.0, 7.0), V_TA=[0.1, 0.2, 0.3], lead=[7.0, 7.0, 7.0], lead_offset=np.full(6, 7.0))
        part.step(s)
        assert s["lead"][0].tolist() == [1.0, 0.0, 0.0] and not s["lead_offset"].any()
