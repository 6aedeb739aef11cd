"""Wrench path against its equations written with rotation matrices: calibration, weight and inertia, filter, transfer, channel faults."""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, lfilter, lfilter_zi
from scipy.spatial.transform import Rotation

from rt_kernels.context import IDENTITY, Mounting
from rt_kernels.layout import BITS, CODES
from rt_kernels.wrench.six_axis import SixAxis
from tests.first_sample import first_sample

PERIOD = 1e-3
RECORDED = Path(__file__).parents[1] / "data" / "force_torque" / "1-baseline_wrench.csv"
STATUS = BITS["sensor_status"]
PHASE = CODES["phase"]
G_W = np.array([0.3, -9.8, 0.4])  # not along an axis, so that no component is free
COM_S = np.array([0.05, -0.2, 0.11])
MASS = 12.5


def pose(position, *angles):
    return np.concatenate([position, Rotation.from_euler("xyz", angles).as_quat()])


X_S = pose([0.1, 0.5, -0.3], 0.3, -0.2, 0.5)
X_ST = pose([0.02, -0.04, 0.4], -0.4, 0.6, 0.2)
X_TA = pose([-0.3, 0.07, 0.02], 0.2, 0.1, -0.3)
X_WP = pose([0.4, 1.2, -0.1], 0.1, 0.25, -0.15)


def part(**changes):
    mounting = {"carried_mass_kg": 0.0, "carried_com_m": COM_S, "gravity_m_s2": G_W, "X_S": X_S, "X_S_port": X_ST,
                "load_cell_on": "floor", "unit_on_load_cell": "target", "carried_inertia_kg_m2": np.zeros((3, 3))}  # fmt: skip
    mounting |= {k: changes.pop(k) for k in list(changes) if k in mounting}
    mounting = Mounting(X_WF=IDENTITY, X_PM=IDENTITY, **mounting)
    return SixAxis(period_s=PERIOD, mounting=mounting, sensor_scale=changes.pop("sensor_scale", [1e3] * 6), **changes)


def sample(counts=(0.0,) * 6, **fields):
    return first_sample(wrench_raw=counts, **{"wrench_sequence": 1, "X_WP_measured": X_WP, "X_TA_measured": X_TA} | fields)


def wrench_in(X_ST, F_S):
    """A wrench at and in S as it is at and in T."""
    R = Rotation.from_quat(X_ST[3:]).as_matrix()
    return np.concatenate([R.T @ F_S[:3], R.T @ (F_S[3:] - np.cross(X_ST[:3], F_S[:3]))])


def tared(bias, noise=0.0, records=200, phases=None, contacts=None, **changes):
    """F_S of `records` records with this force along x and noise; the tare takes 100 of them."""
    one, rng, out = part(tare_s=0.1, **changes), np.random.default_rng(4), []
    for k in range(records):
        s = sample([1e3 * (bias + noise * rng.standard_normal()), *[0.0] * 5], phase=0 if phases is None else phases[k],
                   contact=0 if contacts is None else contacts[k])  # fmt: skip
        one.step(s)
        out.append(s["F_S"][0, 0])
    return np.array(out)


def test_a_tare_is_the_mean_before_the_approach():
    F = tared(5.0, noise=0.5)
    assert np.abs(F[:99].mean() - 5.0) < 0.2
    assert abs(F[100:].mean()) < 4 * 0.5 * np.sqrt(2 / 100)
    np.testing.assert_array_equal(tared(5.0), [5.0] * 99 + [0.0] * 101)


@pytest.mark.parametrize(
    "bias, changes, left",
    [
        (9.9, {}, 0.0),
        (10.1, {}, 10.1),  # no zero
        (5.0, {"tare_max_n": 4.0}, 5.0),
        (5.0, {"phases": [0] * 50 + [PHASE["approach"]] * 50 + [0] * 200}, 5.0),
        (5.0, {"contacts": [0] * 99 + [1] + [0] * 200}, 5.0),
        (5.0, {"phases": [0] * 50 + [PHASE["position"]] * 250}, 0.0),
    ],
)
def test_a_tare_is_taken_of_a_zero_alone(bias, changes, left):
    assert tared(bias, records=300, **changes)[-1] == pytest.approx(left, abs=1e-12)


def test_calibration_and_bias():
    """F = C (counts - bias), every entry of C in its place; without a matrix the sensor's own scale, counts per unit."""
    rng = np.random.default_rng(3)
    C, bias, counts = np.diag([1e-3] * 6) + 1e-5 * rng.normal(size=(6, 6)), rng.normal(size=6) * 1e4, rng.normal(size=6) * 1e5
    s = sample(counts)
    part(calibration=C.tolist(), bias_counts=bias.tolist()).step(s)
    np.testing.assert_allclose(s["F_S"][0], C @ (counts - bias), rtol=1e-13)
    part(sensor_scale=[1e3, 2e3, 4e3, 1e4, 2e4, 4e4]).step(s)
    np.testing.assert_allclose(s["F_S"][0], counts / [1e3, 2e3, 4e3, 1e4, 2e4, 4e4], rtol=1e-13)
    assert s["wrench_fault"][0] == 0 and s["wrench_channel_fault"][0] == 0


def test_wrench_at_the_port():
    """F_T = +F_S moved to T when the cell carries the target unit; minus that at A, moved on to T, when it carries the active one."""
    F = np.array([100.0, -60.0, 40.0, 3.0, -5.0, 8.0])
    s = sample(1e3 * F)
    part().step(s)
    np.testing.assert_allclose(s["F_T"][0], wrench_in(X_ST, F), rtol=1e-13)
    part(unit_on_load_cell="active").step(s)
    F_A, R = wrench_in(X_ST, F), Rotation.from_quat(X_TA[3:]).as_matrix()
    f = R @ F_A[:3]
    np.testing.assert_allclose(s["F_T"][0], -np.concatenate([f, R @ F_A[3:] + np.cross(X_TA[:3], f)]), rtol=1e-13)


def test_weight_of_the_carried_unit_on_the_floor():
    """m g in axes of the cell and its moment about it are taken off; a platform that moves does not matter there."""
    f = Rotation.from_quat(X_S[3:]).as_matrix().T @ (MASS * G_W)
    F = np.array([10.0, 20.0, -5.0, 1.0, 2.0, 3.0])
    s = sample(1e3 * (F + np.concatenate([f, np.cross(COM_S, f)])))
    path = part(carried_mass_kg=MASS)
    for speed in (0.0, 0.3):
        s["V_WP_measured"][0] = speed
        path.step(s)
        np.testing.assert_allclose(s["F_S"][0], F, rtol=1e-11, atol=1e-9)


def test_weight_and_inertia_on_the_platform():
    """m (g - dv/dt - dw/dt x r), r from the platform's origin to the carried centre of mass, from the change of the measured twist."""
    A = np.array([0.5, -0.8, 0.3, 0.9, -0.4, 1.1])
    X_WS = np.concatenate([X_WP[:3] + Rotation.from_quat(X_WP[3:]).apply(X_S[:3]),
                           (Rotation.from_quat(X_WP[3:]) * Rotation.from_quat(X_S[3:])).as_quat()])
    R_WS = Rotation.from_quat(X_WS[3:])
    r = R_WS.apply(COM_S) + X_WS[:3] - X_WP[:3]
    f = R_WS.inv().apply(MASS * (G_W - A[:3] - np.cross(A[3:], r)))
    F = np.array([10.0, 20.0, -5.0, 1.0, 2.0, 3.0])
    s = sample(1e3 * (F + np.concatenate([f, np.cross(COM_S, f)])))
    path = part(carried_mass_kg=MASS, load_cell_on="platform")
    start = np.array([0.02, 0.01, -0.03, 0.05, 0.02, 0.01])
    s["V_WP_measured"][0] = start
    path.step(s)
    s["V_WP_measured"][0] = start + A * PERIOD
    path.step(s)
    np.testing.assert_allclose(s["F_S"][0], F, rtol=1e-10, atol=1e-9)


J_C = np.array([[2.0, 0.3, -0.1], [0.3, 3.0, 0.2], [-0.1, 0.2, 2.5]])


@pytest.mark.parametrize("on", ["floor", "platform"])
def test_accelerometers_take_off_weight_and_inertia(on):
    """Newton and Euler of a body that S accelerates: the force that holds it is m (a_c - g), about S the moment c x that and J dw/dt."""
    rng = np.random.default_rng(7)
    a, dw = rng.normal(size=3), rng.normal(size=3)
    proper = a - Rotation.from_quat(X_S[3:]).as_matrix().T @ G_W
    held = MASS * (proper + np.cross(dw, COM_S))
    felt = -np.concatenate([held, np.cross(COM_S, held) + J_C @ dw])
    F = np.array([10.0, 20.0, -5.0, 1.0, 2.0, 3.0])
    path = part(carried_mass_kg=MASS, carried_inertia_kg_m2=J_C, load_cell_on=on, inertia_from="accelerometers")
    for speed in (0.0, 0.3):
        # neither pose nor twist of the platform matters
        s = sample(1e3 * (F + felt), cell_acceleration=[*proper, *dw], V_WP_measured=speed)
        path.step(s)
        np.testing.assert_allclose(s["F_S"][0], F, rtol=1e-11, atol=1e-9)
        assert s["wrench_fault"][0] == 0


@pytest.mark.parametrize(("reading", "bit"), [(np.zeros(6), "no_data"), ([np.nan, 0, 0, 0, 0, 0], "out_of_range")])
def test_accelerometers_that_say_nothing_are_named(reading, bit):
    """A stand without them, or a broken one: the wrench is not usable, and it is not taken for a contact of the weight."""
    path = part(carried_mass_kg=MASS, inertia_from="accelerometers")
    s = sample([1e4] * 6, cell_acceleration=reading)
    path.step(s)
    assert s["wrench_fault"][0] & STATUS[bit]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_low_pass_is_the_butterworth_of_scipy(order):
    """Primed at its first value, then the difference equation of the digital Butterworth with the same corner; every channel by itself."""
    corner, rng = 80.0, np.random.default_rng(5)
    x = np.cumsum(rng.normal(size=(200, 6)), axis=0) + [100, -50, 20, 5, -3, 1]
    path, got = part(filter_order=order, filter_corner_hz=corner), []
    for row in x:
        s = sample(1e3 * row)
        path.step(s)
        got.append(s["F_S"][0].copy())
    if order:
        b, a = butter(order, corner, fs=1.0 / PERIOD)
        wanted = np.column_stack([lfilter(b, a, x[:, i], zi=lfilter_zi(b, a) * x[0, i])[0] for i in range(6)])
        w = 2.0 * np.tan(np.pi * corner * PERIOD) / PERIOD
        assert path.filter_delay_s == pytest.approx((1.0 if order == 1 else np.sqrt(2.0)) / w)
    else:
        wanted = x
        assert path.filter_delay_s == 0.0
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize("i", range(6))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_range_and_saturation_of_every_channel(i, sign):
    """Just inside: nothing. Just beyond: the status bit and the channel's own bit, range in bits 0-5, saturation in 8-13."""
    ranges, moments = [500.0, 600.0, 700.0], [30.0, 40.0, 50.0]
    limit = [*ranges, *moments][i]
    path = part(range_force_n=ranges, range_moment_n_m=moments, saturation_counts=1e6)
    for value, bits, channels in ((limit * (1 - 1e-9), 0, 0), (limit * (1 + 1e-9), STATUS["out_of_range"], 1 << i),
                                  (1e3, STATUS["saturated"] | STATUS["out_of_range"], 1 << i | 1 << 8 + i)):
        counts = np.zeros(6)
        counts[i] = sign * value * 1e3
        s = sample(counts)
        path.step(s)
        assert s["wrench_fault"][0] == bits and s["wrench_channel_fault"][0] == channels


@pytest.mark.parametrize("i", range(6))
def test_broken_wire_of_every_channel(i):
    path = part(broken_wire_counts=[-4000.0, -3990.0])
    for value, broken in ((-4001.0, 0), (-4000.0, 1), (-3990.0, 1), (-3989.0, 0)):
        counts = np.zeros(6)
        counts[i] = value
        s = sample(counts)
        path.step(s)
        assert s["wrench_fault"][0] == broken * STATUS["broken_wire"] and s["wrench_channel_fault"][0] == broken << 16 + i
    s = sample()
    part().step(s)  # no such check configured: a zero count is no broken wire
    assert s["wrench_fault"][0] == 0


def test_status_of_the_port_continues_with_that_of_the_channels():
    counts = np.zeros(6)
    counts[2] = 6e6
    s = sample(counts, wrench_status=STATUS["lost"])
    part().step(s)
    assert s["wrench_fault"][0] == STATUS["lost"] | STATUS["out_of_range"]


def test_nothing_has_arrived_yet():
    """Before the first record the wrench is zero, not the bias; afterwards the last one stays, whatever the status says."""
    s = sample(wrench_sequence=0, wrench_status=STATUS["no_data"] | STATUS["stale"], F_S=7.0, F_T=7.0, wrench_channel_fault=5)
    path = part(bias_counts=[1e5] * 6)
    path.step(s)
    assert not s["F_S"].any() and not s["F_T"].any() and s["wrench_channel_fault"][0] == 0
    assert s["wrench_fault"][0] == STATUS["no_data"] | STATUS["stale"]
    s = sample([2e5] * 6, wrench_status=STATUS["no_data"])
    path.step(s)
    np.testing.assert_allclose(s["F_S"][0], 100.0)
    s = sample([2e5] * 6, wrench_sequence=0)  # a sensor may begin to count at nought
    path.step(s)
    np.testing.assert_allclose(s["F_S"][0], 100.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e16])
@pytest.mark.parametrize("i", range(6))
def test_what_is_not_finite_never_enters_the_filter(bad, i):
    path = part(filter_order=2, carried_mass_kg=MASS, load_cell_on="platform")
    other = part(filter_order=2, carried_mass_kg=MASS, load_cell_on="platform")
    counts = np.full(6, 1e4)
    good = sample(counts)
    path.step(good)
    other.step(good.copy())
    damaged = good.copy()
    damaged["wrench_raw"][0, i] = bad
    path.step(damaged)
    assert np.array_equal(damaged["F_S"], good["F_S"]) and np.array_equal(damaged["F_T"], good["F_T"])
    assert damaged["wrench_fault"][0] & STATUS["out_of_range"] and damaged["wrench_fault"][0] & STATUS["saturated"]
    again, wanted = sample(counts + 10.0), sample(counts + 10.0)
    path.step(again)
    other.step(wanted)
    assert np.array_equal(again["F_S"], wanted["F_S"])


@pytest.mark.parametrize("calibration", [np.zeros((6, 6)), np.ones((6, 6)), np.eye(6) * np.nan])
def test_a_calibration_without_full_rank_is_refused(calibration):
    with np.errstate(invalid="ignore", divide="ignore"), pytest.raises((ValueError, np.linalg.LinAlgError)):
        part(calibration=calibration.tolist())


# ---------------------------------------------------------------------------------------------------------------- frozen


def stays(records, n=60, noiseless=False, way=0.0, force=50.0, **keys):
    """The sensor's path on n ticks of equal counts; `records`: how many of them are new ones in each tick. The ticks with the bit."""
    made = part(noiseless=noiseless, **keys)
    found = []
    s = sample(1e3 * force * np.ones(6), periods=1)
    for k in range(n):
        s["wrench_sequence"] = 1 + int(records * k)
        s["X_TA_measured"][0, :3] = X_TA[:3] + np.array([way * k, 0.0, 0.0])
        made.step(s)
        if s["wrench_fault"][0] & STATUS["frozen"]:
            found.append(k)
    return found


def test_equal_values_in_new_records_are_a_frozen_sensor():
    """Ten new records or more and frozen_s: the later of both."""
    assert stays(1, frozen_s=0.0205)[0] == 21 and stays(4, frozen_s=0.0205)[0] == 21
    assert stays(1, frozen_s=0.0045)[0] == 10
    assert stays(0.25, frozen_s=0.0205)[0] == 40  # a record every fourth tick
    assert stays(0, frozen_s=0.0205) == []  # no new records: another fault's
    assert stays(1, frozen_s=0.0) == []


def test_one_count_in_one_channel_is_enough_to_be_alive():
    made = part()
    for k in range(200):
        s = sample([*np.zeros(5), k % 15 == 0], wrench_sequence=k + 1, periods=1)
        made.step(s)
        assert not s["wrench_fault"][0]


def test_a_sensor_without_noise_is_judged_in_a_contact_that_moves():
    assert stays(1, noiseless=True) == []
    assert stays(1, noiseless=True, way=1e-5)[0] == 21  # 0.2 mm
    assert stays(1, noiseless=True, way=1e-5, force=0.4) == []


def test_a_recorded_sensor_is_never_frozen():
    """ATI Gamma, Net Box: no two records in succession are equal."""
    counts = np.round(np.loadtxt(RECORDED, delimiter=",", skiprows=1)[:, 1:] * 1e6)
    assert len(counts) > 4000 and not (np.diff(counts, axis=0) == 0).all(axis=1).any()
    made = part()
    for k, row in enumerate(counts):
        s = sample([*row, *np.zeros(6 - len(row))], wrench_sequence=k + 1, periods=1)
        made.step(s)
        assert not s["wrench_fault"][0] & STATUS["frozen"]
