"""Thrusters and wheels: what valves give, what the resultant is, and a limit cycle with the impulse of a hand calculation."""

import numpy as np
import pytest
from scipy.signal import lsim
from scipy.spatial.transform import Rotation

from hil_server import registry
from hil_server.config import SHIPPED
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.control.allocation import actuators, shares
from rt_kernels.layout import BITS, CODES
from rt_kernels.model.craft import Craft, Link, Thruster, Wheel, at_rest
from rt_kernels.model.craft_file import read_craft
from rt_kernels.model.modes import ModalBody
from tests.first_sample import first_sample

REQUEST, STATUS, MOTION = BITS["control_request"], BITS["control_status"], CODES["motion"]
MASS, INERTIA = 7000.0, np.diag([4235.0, 30700.0, 30700.0])
PERIOD = 0.01
STATION = Vehicle(420000.0, np.diag([1e7, 3e7, 3e7]))
THRUST, LEVER = 20.0, (1.1, 2.5, 2.5)
MOMENT = 2 * THRUST * np.array(LEVER)  # of a couple about each axis


def rigid(thrusters=(), name="ship", thrust_n=0.0):
    craft = Craft(name, (Link("body", ModalBody.rigid(MASS, inertia=INERTIA), joint="free"),), thrusters=tuple(thrusters))
    return Vehicle(MASS, INERTIA, thrust_n=thrust_n, craft=craft)


def couples(minimum_pulse_s=0.05, delay_s=0.02, rise_s=0.01):
    """Twelve thrusters, a couple for each axis and sense, in the order +X +X -X -X +Y ...: places and directions."""
    found = []
    for axis, (at, along) in enumerate(((1, 2), (2, 0), (0, 1))):
        for sense in (1.0, -1.0):
            for end in (1.0, -1.0):
                position, direction = np.zeros(3), np.zeros(3)
                position[at], direction[along] = end * LEVER[axis], end * sense
                found.append(Thruster(f"{axis}{sense:+g}{end:+g}", "body", position, direction, THRUST, minimum_pulse_s, delay_s, rise_s))
    return found


def part(active=None, target=STATION, rate=(0.0, 0.0, 0.0), period=PERIOD, **keys):
    start = Start(IDENTITY, np.zeros(6), rate)
    active = rigid(couples()) if active is None else active
    return registry.part("control", "thrusters")(period_s=period, vehicles=Vehicles(active, target), start=start, **keys)


def free(*asked):
    return first_sample(motion=MOTION["free"], control_request=sum(REQUEST[name] for name in asked))


# --------------------------------------------------------------------------------------------------------------- valves

ENGINE = Thruster("engine", "body", np.array([-3.5, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), 300.0, 0.1, 0.03, 0.02)
RETRO = Thruster("retro", "body", np.array([2.5, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]), 150.0)


def thrust_of(asked, engine=ENGINE, thrust_n=300.0, period=PERIOD):
    """Thrust in each tick for press asked for or not."""
    one = part(rigid((engine, RETRO), thrust_n=thrust_n), press="thrusters", active_attitude="off", period=period)
    found = []
    for press in asked:
        sample = free(*(("press",) if press else ()))
        one.step(sample)
        found.append(sample["thruster_A"][0, 0])
    return np.array(found)


def test_a_pulse_is_the_step_response_of_the_valve_and_keeps_its_impulse():
    """Against the step response of a first-order lag by scipy, sampled finely and averaged over every tick."""
    asked = np.zeros(120, bool)
    asked[5:47] = True
    fine = 200
    t = np.arange(len(asked) * fine + 1) * PERIOD / fine
    late = 3  # ticks of delay
    u = np.repeat(np.roll(asked, late), fine).astype(float)
    _, y, _ = lsim(([1.0], [ENGINE.rise_s, 1.0]), np.append(u, 0.0), t, interp=False)
    means = 0.5 * (y[:-1] + y[1:]).reshape(-1, fine).mean(axis=1)
    thrust = thrust_of(asked)
    np.testing.assert_allclose(thrust, 300.0 * means, atol=300.0 * 2e-3)
    assert thrust.sum() * PERIOD == pytest.approx(300.0 * asked.sum() * PERIOD, rel=1e-9)


def test_a_short_request_gives_the_shortest_pulse_and_no_opening_is_shorter():
    asked = np.zeros(100, bool)
    asked[[3, 40, 44, 46]] = True
    openings = thrust_of(asked, Thruster("e", "body", ENGINE.position, ENGINE.direction, 300.0, 0.055, 0.0, 0.0)) / 300.0
    # 55 ms are six ticks; what is asked for meanwhile has been given by the end
    assert np.flatnonzero(openings).tolist() == [*range(3, 9), *range(40, 46)]


def test_the_end_of_the_request_is_seen_after_the_delay_in_the_same_way():
    """A request that ends in tick 30 ends the thrust after the delay, not before and not later."""
    asked = np.zeros(60, bool)
    asked[10:30] = True
    openings = thrust_of(asked, Thruster("e", "body", ENGINE.position, ENGINE.direction, 300.0, 0.0, 0.07, 0.0)) / 300.0
    assert np.flatnonzero(openings).tolist() == list(range(17, 37))


def test_an_engine_that_is_too_strong_opens_for_a_share_of_the_time():
    openings = thrust_of(np.ones(4000, bool), thrust_n=110.0) > 290.0
    thrust = thrust_of(np.ones(4000, bool), thrust_n=110.0)
    assert thrust.mean() == pytest.approx(110.0, rel=0.005) and thrust.max() == pytest.approx(300.0, rel=1e-2)
    edges = np.flatnonzero(np.diff(openings.astype(int)))
    assert np.diff(edges)[::2].min() >= 5 or np.diff(edges)[1::2].min() >= 5


def test_skipped_periods_take_nothing_from_the_impulse():
    one = part(rigid((ENGINE, RETRO), thrust_n=300.0), press="thrusters", active_attitude="off")
    impulse = 0.0
    for periods, press in ((1, False), (4, True), (7, True), (1, True), (30, False), (30, False), (30, False)):
        sample = free(*(("press",) if press else ()))
        sample["periods"] = periods
        one.step(sample)
        impulse += sample["control_A"][0, 0] * periods * PERIOD
    assert impulse == pytest.approx(300.0 * 12 * PERIOD, rel=1e-9)


# --------------------------------------------------------------------------------------------------------------- wrench


def random_craft(rng, n=16):
    """A body with another one fixed to it, turned, thrusters on both."""
    R = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    links = (
        Link("bus", ModalBody.rigid(900.0, [0.3, -0.2, 0.1], np.diag([300.0, 500.0, 600.0])), joint="free"),
        Link("module", ModalBody.rigid(400.0, [0.1, 0.5, -0.2], np.diag([100.0, 90.0, 50.0])), "bus", position=[1.0, 2.0, -0.5],
             rotation=R),
    )  # fmt: skip
    thrusters = []
    for k in range(n):
        d = rng.normal(size=3)
        thrusters.append(Thruster(f"t{k}", ("bus", "module")[k % 2], rng.normal(size=3), d / np.linalg.norm(d), rng.uniform(5.0, 50.0)))
    return Craft("pair", links, thrusters=tuple(thrusters)), R


def test_the_wrench_is_the_resultant_at_the_centre_of_mass():
    craft, R = random_craft(np.random.default_rng(3))
    rest = at_rest(craft)
    one = part(Vehicle(rest.mass, rest.inertia, craft=craft, thrust_n=60.0), press="thrusters")
    sample = free("press", "attitude")
    sample["V_NC"][0, 3:] = [0.3, -0.2, 0.1]
    mixed = 0
    for _ in range(50):
        one.step(sample)
        force, moment = np.zeros(3), np.zeros(3)
        for thruster, thrust in zip(craft.thrusters, sample["thruster_A"][0], strict=False):
            on = thruster.body == "bus"
            f = thrust * (thruster.direction if on else R @ thruster.direction)
            p = thruster.position if on else R @ thruster.position + [1.0, 2.0, -0.5]
            centre = (900.0 * np.array([0.3, -0.2, 0.1]) + 400.0 * (R @ [0.1, 0.5, -0.2] + [1.0, 2.0, -0.5])) / 1300.0
            force, moment = force + f, moment + np.cross(p - centre, f)
        np.testing.assert_allclose(sample["control_A"][0], np.concatenate([force, moment]), rtol=1e-9, atol=1e-9)
        mixed = max(mixed, np.count_nonzero(sample["thruster_A"]))
    assert mixed > 3 and not sample["control_T"].any()


@pytest.mark.parametrize("seed", range(5))
def test_shares_give_the_axis_with_least_propellant(seed):
    """Against every choice of six thrusters that can give it: a vertex of the simplex is one of them."""
    from itertools import combinations

    a = actuators(random_craft(np.random.default_rng(seed), 10)[0])
    for axis in range(12):
        e = np.eye(6)[axis // 2] * (1.0 if axis % 2 == 0 else -1.0)
        best = np.inf
        for chosen in combinations(range(10), 6):
            x = np.linalg.solve(a.wrench[list(chosen)].T, e)
            if x.min() > -1e-9:
                best = min(best, x @ a.thrust[list(chosen)])
        x = shares(a.wrench, a.thrust, axis)
        if np.isinf(best) and axis < 6:
            assert x is None
        elif np.isinf(best):
            # a moment with a force beside it
            assert x is None or (x @ a.wrench)[3:] == pytest.approx(e[3:], abs=1e-6)
        else:
            assert x @ a.wrench == pytest.approx(e, abs=1e-9) and x.min() >= 0.0 and x @ a.thrust == pytest.approx(best, rel=1e-6)


def test_thrusters_that_do_the_same_do_it_together():
    four = [Thruster(f"{y}{z}", "body", np.array([-3.0, y, z]), np.array([1.0, 0.0, 0.0]), 75.0) for y in (-1.0, 1.0) for z in (-0.8, 0.8)]
    a = actuators(rigid(four).craft)
    assert shares(a.wrench, a.thrust, 0) == pytest.approx(np.full(4, 1.0 / 300.0), rel=1e-6)
    assert shares(a.wrench, a.thrust, 1) is None


def test_press_thrust_makes_room_for_the_attitude_and_no_moment():
    """Four engines that press and turn: the moment is that of the attitude alone."""
    engines = [Thruster(f"{s}{y}{z}", "body", np.array([s * 3.0, y, z]), np.array([-s, 0.0, 0.0]), 75.0)
               for s in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-0.8, 0.8)]  # fmt: skip
    ship = rigid([*engines, *couples()[:4]], thrust_n=300.0)
    calm, busy = (part(ship, press="thrusters", active_dead_band_deg=0.1) for _ in range(2))
    quiet, turned = free("press", "attitude"), free("press", "attitude")
    calm.step(quiet), busy.step(turned)
    turned["X_NC"][0, 3:] = Rotation.from_euler("z", 1.0, degrees=True).as_quat()
    calm.step(quiet), busy.step(turned)
    assert quiet["control_A"][0] == pytest.approx([300.0, 0, 0, 0, 0, 0], abs=1e-6)
    moment = turned["control_A"][0, 3:]
    assert moment[2] < -100.0 and np.abs(moment[:2]).max() < 1e-6 and turned["control_A"][0, 0] < 300.0
    assert turned["control_status"] & STATUS["thrust_limited"] and not quiet["control_status"] & STATUS["thrust_limited"]


# ------------------------------------------------------------------------------------------------------- attitude hold


class Flight:
    """Control and dynamics in turn, 600 s in steps of 10 ms; the contact wrench stays zero, a moment may act on one craft."""

    def __init__(self, control, vehicles, rates, orbital_rate=(0.0, 0.0, 0.0)):
        start = Start(IDENTITY, np.zeros(6), orbital_rate)
        self.control = control
        self.bodies = registry.part("dynamics", "two_bodies")(period_s=PERIOD, vehicles=vehicles, start=start, range_max_m=1e3)
        self.sample = free("attitude")
        self.sample["motion"] = MOTION["close_loop"]
        self.sample["X_TA_measured"][0, 6], self.sample["V_TA_measured"][0, 3:] = 1.0, rates
        self.bodies.step(self.sample)
        self.sample["motion"] = MOTION["free"]

    def fly(self, seconds, moment=(0.0, 0.0, 0.0), craft="A"):
        """(attitude (n, 3) deg, control moment (n, 3), status (n,)) of a craft."""
        s = self.sample
        n = round(seconds / PERIOD)
        attitude, moments, status = np.empty((n, 4)), np.empty((n, 3)), np.empty(n, np.uint32)
        X, W = s["X_NC" if craft == "A" else "X_NV"], s[f"control_{craft}"]
        for k in range(n):
            self.control.step(s)
            attitude[k], moments[k], status[k] = X[0, 3:], W[0, 3:], s["control_status"][0]
            W[0, 3:] += moment  # what else turns it
            self.bodies.step(s)
        return np.degrees(Rotation.from_quat(attitude).as_rotvec()), moments, status


@pytest.mark.parametrize(("axis", "share", "delay_s"), [(0, 0.5, 0.02), (1, 0.5, 0.02), (2, 0.3, 0.02), (0, 0.2, 0.02), (0, 0.4, 0.2)])
def test_limit_cycle_has_two_shortest_pulses_and_the_impulse_of_a_hand_calculation(axis, share, delay_s):
    """A 7 t craft for 600 s, no disturbance. Pulse J = moment x shortest opening, D = J/I. A craft that comes to an edge at the rate v sees
    it at d - T v, drifts on for t (delay, rise, half the pulse) and goes back at D - v: 2 d - (T - t) D to cross at the rates u and D - u.
    Impulse per second 2 J / ((2 d - (T - t) D) (1/u + 1/(D - u))); also with a valve that is four shortest pulses late."""
    d, T = (np.radians(0.1) if axis == 0 else np.radians(0.05)), 5.0
    ship = rigid(couples(delay_s=delay_s))
    J = MOMENT[axis] * 0.05
    D = J / INERTIA[axis, axis]
    u, t = share * D, delay_s + 0.01 + 0.025
    keys = {"active_dead_band_deg": np.degrees(d), "active_rate_weight_s": T}
    flight = Flight(part(ship, **keys), Vehicles(ship, STATION), np.eye(3)[axis] * u)
    attitude, moments, status = flight.fly(600.0)
    assert np.abs(attitude).max() < np.degrees(d) and (status & STATUS["attitude"]).all()
    impulse = np.abs(moments).sum(axis=0) * PERIOD
    by_hand = 600.0 * 2.0 * J / ((2.0 * d - (T - t) * D) * (1.0 / u + 1.0 / (D - u)))
    assert impulse[axis] == pytest.approx(by_hand, rel=0.05) and impulse.sum() == pytest.approx(impulse[axis], rel=1e-3)
    pulses = impulse[axis] / J
    assert pulses > 12.0 and pulses == pytest.approx(round(pulses), abs=1e-6)  # all of them shortest ones


def test_under_a_constant_moment_the_thrusters_give_its_impulse_on_one_edge():
    """M t of angular impulse; the craft falls back D^2 I / (8 M) from the edge, less than the dead band is wide."""
    d, axis, M = np.radians(0.1), 1, 0.4
    J = MOMENT[axis] * 0.05
    D = J / INERTIA[axis, axis]
    assert D * D * INERTIA[axis, axis] / (8.0 * M) < 0.5 * d
    ship = rigid(couples())
    flight = Flight(part(ship, active_dead_band_deg=np.degrees(d)), Vehicles(ship, STATION), np.zeros(3))
    flight.fly(100.0, [0.0, M, 0.0])
    attitude, moments, _ = flight.fly(600.0, [0.0, M, 0.0])
    # the edge is crossed by what a pulse takes to come: delay, rise and half of it, at the rate before it
    assert attitude[:, axis].max() < np.degrees(d) and attitude[:, axis].min() > 0.0
    impulse = moments.sum(axis=0) * PERIOD
    assert impulse[axis] == pytest.approx(-M * 600.0, rel=0.02)
    assert np.abs(moments[:, axis]).sum() * PERIOD == pytest.approx(M * 600.0, rel=0.02)


def test_from_outside_it_comes_back_at_the_rate_limit():
    ship = rigid(couples())
    keys = {"active_dead_band_deg": 0.2, "active_rate_limit_deg_s": 0.05}
    flight = Flight(part(ship, **keys), Vehicles(ship, STATION), np.radians([0.0, 0.0, 1.0]))
    attitude, _, _ = flight.fly(300.0)
    rate = np.diff(attitude[:, 2]) / PERIOD
    assert attitude[:, 2].max() > 1.0  # it starts far out of the dead band
    coming = rate[np.argmax(attitude[:, 2]) :]
    pulse = np.degrees(MOMENT[2] * 0.05 / INERTIA[2, 2])
    assert -0.05 - pulse < coming.min() < -0.05 + pulse and np.abs(attitude[-10000:]).max() < 0.21


def test_the_target_craft_holds_its_own_attitude():
    ship = rigid(couples())
    control = part(STATION, ship, active_attitude="off", target_attitude="thrusters", target_dead_band_deg=0.1)
    flight = Flight(control, Vehicles(STATION, ship), np.zeros(3))
    attitude, moments, _ = flight.fly(200.0, [0.0, 0.0, -0.5], craft="T")
    assert np.abs(attitude).max() < 0.1 and moments[:, 2].sum() * PERIOD == pytest.approx(100.0, rel=0.1)
    assert not flight.sample["control_A"].any() and not flight.sample["thruster_A"].any() and flight.sample["thruster_T"].shape == (1, 64)
    drift = Flight(part(STATION, ship, active_attitude="off"), Vehicles(STATION, ship), np.zeros(3))
    assert np.abs(drift.fly(200.0, [0.0, 0.0, -0.5], craft="T")[0]).max() > 10.0


def test_in_orbit_the_attitude_turns_with_the_frame():
    """A craft that turns with the orbital frame is where it should be for half a revolution: no pulse."""
    rate = (0.0, 1.13e-3, 0.0)
    ship = rigid(couples())
    flight = Flight(part(ship, rate=rate), Vehicles(ship, STATION), np.zeros(3), rate)
    attitude, moments, status = flight.fly(1000.0)
    assert not moments.any() and np.degrees(1.13) == pytest.approx(attitude[-1, 1], rel=1e-3) and (status == STATUS["attitude"]).all()


def test_the_hold_ends_with_the_request_and_in_indicator_mode_with_the_contact():
    for keys, asked, contact, held in (
        ({}, ("attitude",), True, True),
        ({"attitude_in_contact": False}, ("attitude",), True, False),
        ({}, (), False, False),
    ):
        one, sample = part(**keys), free("attitude")
        one.step(sample)
        sample["X_NC"][0, 3:] = Rotation.from_euler("y", 2.0, degrees=True).as_quat()
        for touch in (contact, False, False):
            sample["contact"], sample["control_request"] = touch, sum(REQUEST[name] for name in asked)
            one.step(sample)
        one.repeat(sample, 10)
        assert bool(sample["control_A"][0, 4] < 0.0) == held and bool(sample["control_status"][0] & STATUS["attitude"]) == held
        # another run begins with nothing of this one
        sample["motion"] = MOTION["follow_profile"]
        one.step(sample)
        assert not any(sample[name].any() for name in ("control_A", "thruster_A", "control_status"))
        assert one.snapshot() == part(**keys).snapshot()


def test_a_snapshot_in_the_middle_of_a_pulse_continues_to_the_same_bits():
    one, other = part(), part()
    sample = free("attitude", "press")
    one.step(sample)
    sample["V_NC"][0, 3:] = [0.01, -0.02, 0.005]
    one.repeat(sample, 3)
    other.restore(one.snapshot())
    samples = [sample.copy() for _ in range(2)]
    for copy, control in zip(samples, (one, other), strict=True):
        for k in range(40):
            copy["V_NC"][0, 3] = 0.01 - 0.001 * k
            control.step(copy)
    assert samples[0]["thruster_A"].any() and samples[0].tobytes() == samples[1].tobytes()
    part().load(part().dump())
    with pytest.raises(ValueError, match="thrust"):
        part().load(part(rigid([*couples()[:11], ENGINE])).dump())


# --------------------------------------------------------------------------------------------------------------- wheels

AXES = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0] / np.sqrt(3.0)])
WHEEL = 0.5  # kg.m2


def wheeled(torque=5.0, momentum=200.0, n=4):
    """A bus with wheels along the three axes and the diagonal, each off the centre."""
    links, wheels = [Link("bus", ModalBody.rigid(2000.0, inertia=np.diag([900.0, 1500.0, 1300.0])), joint="free")], []
    for k, axis in enumerate(AXES[:n]):
        inertia = 0.3 * np.eye(3) + 0.2 * np.outer(axis, axis)
        links.append(Link(f"w{k}", ModalBody.rigid(10.0, inertia=inertia), "bus", joint="continuous", axis=axis, position=0.3 * axis))
        wheels.append(Wheel(f"wheel{k}", f"w{k}", torque, momentum))
    craft = Craft("observer", tuple(links), wheels=tuple(wheels))
    rest = at_rest(craft)
    return Vehicle(rest.mass, rest.inertia, craft=craft)


class Gyrostat:
    """A rigid body with wheels: I w + A h = R^T H, h = J (rate + A^T w), h' = torque. Momentum in N is the state, so it is kept exactly."""

    def __init__(self, vehicle, n=4):
        self.A = AXES[:n].T
        self.I = vehicle.inertia_kg_m2 - WHEEL * self.A @ self.A.T  # without the wheels about their own axes
        self.h, self.R, self.H = np.zeros(n), Rotation.identity(), np.zeros(3)

    def rate(self):
        return np.linalg.solve(self.I, self.R.inv().apply(self.H) - self.A @ self.h)

    def step(self, sample, dt, name="A"):
        n = len(self.h)
        w = self.rate()
        half = self.R * Rotation.from_rotvec(0.5 * dt * w)
        self.h = self.h + 0.5 * dt * sample[f"wheel_torque_{name}"][0, :n]
        w = np.linalg.solve(self.I, half.inv().apply(self.H) - self.A @ self.h)
        self.h = self.h + 0.5 * dt * sample[f"wheel_torque_{name}"][0, :n]
        self.R = self.R * Rotation.from_rotvec(dt * w)
        self.put(sample, name)

    def put(self, sample, name="A"):
        X, V = ("X_NC", "V_NC") if name == "A" else ("X_NV", "V_NV")
        w = self.rate()
        sample[X][0, 3:], sample[V][0, 3:] = self.R.as_quat(), self.R.apply(w)
        sample[f"wheel_rate_{name}"][0, : len(self.h)] = self.h / WHEEL - self.A.T @ w


def slew(vehicle, angle, seconds, name="A", **keys):
    """A gyrostat let go `angle` (rotation vector) from the attitude that it is to hold: (angles (n, 3), gyrostat, samples)."""
    both = (vehicle, STATION) if name == "A" else (STATION, vehicle)
    hold = {"active_attitude": "wheels" if name == "A" else "off", "target_attitude": "off" if name == "A" else "wheels"}
    control = part(*both, period=0.05, **hold, **keys)
    body, sample = Gyrostat(vehicle), free("attitude")
    body.put(sample, name)
    control.step(sample)
    body.R = Rotation.from_rotvec(angle)
    body.put(sample, name)
    angles, samples = [], []
    for _ in range(round(seconds / 0.05)):
        angles.append(body.R.as_rotvec())
        control.step(sample)
        samples.append(sample.copy())
        body.step(sample, 0.05, name)
    return np.array(angles), body, np.concatenate(samples)


@pytest.mark.parametrize("name", ["A", "T"])
def test_wheels_hold_the_attitude_with_the_frequency_and_damping_asked_for(name):
    """Small angles: phi'' + 2 z W phi' + W^2 phi = 0 about every axis, from rest."""
    vehicle, angle = wheeled(), np.array([0.004, -0.003, 0.005])
    craft = "active" if name == "A" else "target"
    angles, body, samples = slew(vehicle, angle, 40.0, name, **{f"{craft}_wheel_frequency_hz": 0.03, f"{craft}_wheel_damping": 0.5})
    t, W, z = np.arange(len(angles)) * 0.05, 2 * np.pi * 0.03, 0.5
    b = W * np.sqrt(1 - z * z)
    shape = np.exp(-z * W * t) * (np.cos(b * t) + z * W / b * np.sin(b * t))
    np.testing.assert_allclose(angles, shape[:, None] * angle, atol=0.02 * np.abs(angle).max())
    # what the craft gets is what the wheels take
    reaction = -samples[f"wheel_torque_{name}"][:, : len(AXES)] @ AXES
    np.testing.assert_allclose(samples[f"control_{name}"], np.hstack([np.zeros_like(reaction), reaction]), atol=1e-12)
    assert reaction.any() and not samples["control_T" if name == "A" else "control_A"].any()
    assert np.abs(body.A @ body.h + body.I @ body.rate()).max() < 1e-12
    assert (samples["control_status"] == STATUS["attitude"]).all()


def test_motors_and_momentum_have_limits():
    angles, body, samples = slew(wheeled(torque=1.0), np.array([0.5, -0.4, 0.6]), 100.0)
    torque = samples["wheel_torque_A"][:, :4]
    assert np.abs(torque).max() == pytest.approx(1.0, rel=1e-12) and samples["control_status"][0] & STATUS["wheel_limited"]
    assert np.abs(angles[-1]).max() < 0.02
    # in the ratio of what was asked for
    free_torque = slew(wheeled(), np.array([0.5, -0.4, 0.6]), 0.05)[2]["wheel_torque_A"][0, :4]
    np.testing.assert_allclose(torque[0] / torque[0].max(), free_torque / free_torque.max(), rtol=1e-9)
    _, body, samples = slew(wheeled(momentum=3.0), np.array([0.8, 0.0, 0.0]), 20.0)
    assert np.abs(body.h).max() < 3.0 + 5.0 * 0.05 and (samples["control_status"] & STATUS["wheel_limited"]).any()


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("vehicle", "keys", "words"),
    [
        (rigid([*couples(), *(Thruster(f"x{k}", "body", np.zeros(3), np.eye(3)[0], 1.0) for k in range(53))]), {},
         "65 thrusters, limit 64"),
        (rigid(couples()[:6]), {}, "its 6 thrusters cannot give moment"),
        (rigid(), {}, "its 0 thrusters cannot give moment"),
        (rigid(couples(delay_s=0.9)), {"period": 1e-3}, r"delay_s: 0.9 s are 900 ticks, limit 511"),
        (rigid([ENGINE], thrust_n=300.0), {"press": "thrusters", "active_attitude": "off"}, "cannot give force -X"),
        (wheeled(n=2), {"active_attitude": "wheels"}, "2 wheels do not turn about three different axes"),
        (STATION, {"active_attitude": "wheels"}, "0 wheels"),
        (rigid(couples()), {"active_dead_band_deg": 0.0}, "active_dead_band_deg"),
    ],
)  # fmt: skip
def test_what_a_craft_cannot_do_is_refused(vehicle, keys, words):
    with pytest.raises(ValueError, match=words):
        part(vehicle, **keys)


def test_the_shipped_ship_can_turn_both_ways_about_every_axis():
    craft = read_craft(SHIPPED / "vehicles/transport_ship_thrusters.toml")
    rest = at_rest(craft)
    one = part(Vehicle(rest.mass, rest.inertia, thrust_n=300.0, craft=craft), press="thrusters")
    assert one.notes == (
        "active craft: moments +X -X +Y -Y +Z -Z of 44, 44, 100, 100, 100, 100 N.m by thrusters, with at most "
        + one.notes[0].rpartition("at most ")[2],
        "active craft: press thrust 300 N, retreat 300 N by thrusters, thrust_n 300 N",
    )
    assert float(one.notes[0].rpartition("at most ")[2].split()[0]) < 1e-9
