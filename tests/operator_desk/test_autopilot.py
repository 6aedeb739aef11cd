"""The made-up operator in front of an arm that follows late and swings: order of work, no chase of the swing, a head that stands, both
hands, reaction."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.judge.rehearsal import oscillation
from hil_server.operator_desk.autopilot import DEADMAN, Habits, Pilot

LINEAR, ANGULAR = 0.019, np.radians(0.15)
START = np.array([-1.2, 0.12, -0.08, *np.radians([2.0, -1.0, 1.5])])
SWING_HZ, DECREMENT = 0.08, 0.1
CONTACT_X = -0.6


def fly(pilot, seconds=400.0, stop=np.inf):
    """An elastic load: the arm's end goes where the sticks say, the load swings about it, hardly damped until the units hold it, and goes
    no further than the place `stop`. Returns t, coordinates of the load, of the place where it will come to rest, sticks, task."""
    omega = 2 * np.pi * SWING_HZ
    damping = 2 * omega * DECREMENT / np.sqrt(4 * np.pi**2 + DECREMENT**2)
    end, load, speed, stick = START.copy(), START.copy(), np.zeros(6), np.zeros(6)
    dt, out = 0.04, []
    pilot.take_over(0.0)
    for k in range(round(seconds / dt)):
        contact = load[0] > CONTACT_X
        X = np.concatenate([load[:3], Rotation.from_rotvec(load[3:]).as_quat()])
        for row in pilot.look(k * dt, X, contact, contact and k * dt > 300.0):
            assert row.buttons == DEADMAN and max(map(abs, row.values)) <= 1.0
            if row.what == 0:
                stick[:3] = row.values[:3]
            else:
                stick[3:] = row.values[3:]
        rate = stick * np.repeat([LINEAR, ANGULAR], 3)
        for _ in range(4):
            end += 0.25 * dt * rate
            speed += 0.25 * dt * (omega**2 * (end - load) + (omega if contact else damping) * (rate - speed))
            load += 0.25 * dt * speed
            if load[0] > stop:
                load[0], speed[0] = stop, 0.0
        out.append((k * dt, *load, *end, *stick, pilot.task))
    t = np.array([row[0] for row in out])
    return t, *(np.array([row[i : i + 6] for row in out]) for i in (1, 7, 13)), np.array([row[19] for row in out])


def order(task):
    return [name for name, before in zip(task, ["", *task], strict=False) if name != before]


def test_order_of_work_and_what_is_left_at_contact():
    t, x, rest, stick, task = fly(Pilot(LINEAR, ANGULAR, CONTACT_X))
    assert order(task)[:4] == ["attitude", "lateral", "approach", "insert"] and task[-1] == "done"
    assert not stick[-1].any(), "lets go at the capture"
    # nothing moves sideways while the attitude is put right, nothing forward before both are
    still = task == "attitude"
    assert np.abs(x[still, :3] - START[:3]).max() < 1e-9
    forward = task == "lateral"
    assert np.abs(x[forward, 0] - START[0]).max() < 1e-9
    touch = np.flatnonzero(x[:, 0] > CONTACT_X)[0]
    assert np.linalg.norm(rest[touch, 1:3]) < 0.006 and np.linalg.norm(np.degrees(rest[touch, 3:])) < 0.4
    swing = round(1.0 / SWING_HZ / 0.04)
    speed = np.gradient(x[:, 0], t)[touch - swing : touch].mean()
    assert speed < 0.35 * LINEAR, "slowly in front of the contact, over a swing of the load"


def test_without_the_slow_mean_it_would_chase_the_swing():
    """The place at which the load comes to rest, not the load itself: one that looks at the load alone keeps it swinging. Up to the
    contact: there the units hold the load, and it presses with what it sees."""
    t, _, calm, quiet, _ = fly(Pilot(LINEAR, ANGULAR, CONTACT_X), 150.0)
    _, _, nervous, shaken, _ = fly(Pilot(LINEAR, ANGULAR, CONTACT_X, habits=Habits(mean_s=0.05, crossover_rad_s=0.5)), 150.0)
    touch = [int(np.argmax(x[:, 0] > CONTACT_X)) or len(x) for x in (calm, nervous)]
    begin = min(2500, *(end - 500 for end in touch))
    spread = [np.degrees(np.ptp(x[begin:end, 3:], axis=0).max()) for x, end in zip((calm, nervous), touch, strict=True)]
    assert spread[0] < 0.2 < 0.5 < spread[1]
    kept_up = [oscillation(t[:end], sticks[:end]) for end, sticks in zip(touch, (quiet, shaken), strict=True)]
    assert kept_up[0] < 0.1 < 0.3 < kept_up[1]


def test_presses_while_the_head_stands_and_goes_back_to_the_approach_when_it_goes_in():
    """The load is stopped at the latches, and swings against them, for the rest of the flight; the sticks come to rest all the same."""
    _, _, _, stick, task = fly(Pilot(LINEAR, ANGULAR, CONTACT_X), 299.0, CONTACT_X + 0.01)
    assert order(task)[-2:] == ["insert", "press"] and stick[-1, 0] == Habits().press_part
    assert np.ptp(stick[task == "press"][500:], axis=0).max() < 0.1
    # the latches give way after half a minute of it
    pilot = Pilot(LINEAR, ANGULAR, CONTACT_X)
    pilot.take_over(0.0)
    X, x, seen = np.array([0.0, 0, 0, 0, 0, 0, 1.0]), [CONTACT_X], []
    pilot.task = "approach"
    for k in range(1000):
        x.append(x[-1] + 0.04 * (0.0 if k < 800 else 0.005))
        X[0] = x[-1]
        rows = pilot.look(0.04 * k, X, True, False)
        pilot.task = "approach" if k == 0 else pilot.task
        seen += [(0.04 * k, row.values[0]) for row in rows if row.what == 0]
    assert max(v for _, v in seen) == Habits().press_part and seen[-1][1] == pytest.approx(Habits().contact_part, abs=0.02)
    assert 32.5 < min(t for t, v in seen if t > 10.0 and v < 0.5) < 34.5


@pytest.mark.parametrize(("source", "stations", "place"), [("right", {0, 1}, 3), ("right_first", {0, 1}, 0), ("left", {0}, 3)])
def test_hands(source, stations, place):
    pilot = Pilot(LINEAR, ANGULAR, CONTACT_X, source)
    rows = pilot.take_over(0.0)
    assert {row.what for row in rows} == stations
    X = np.concatenate([START[:3], Rotation.from_rotvec(START[3:]).as_quat()])
    rows = [row for k in range(100) for row in pilot.look(0.04 * k, X, False, False)]
    last = [row for row in rows if row.what == max(stations)][-1]
    turned = np.sign(last.values[place : place + 3])
    np.testing.assert_array_equal(turned, -np.sign(START[3:]))


def test_reaction_time():
    pilot = Pilot(LINEAR, ANGULAR, CONTACT_X, habits=Habits(reaction_s=0.4))
    X = np.array([-1.0, 0, 0, 0, 0, 0, 1.0])
    turned = np.concatenate([X[:3], Rotation.from_rotvec([0.05, 0, 0]).as_quat()])
    pilot.take_over(0.0)
    first = next(t for t in np.arange(0.0, 4.0, 0.04) if pilot.look(t, X if t < 1.0 else turned, False, False))
    assert 1.4 <= first < 1.7
