"""Hysteresis: golden cases G2 and G3, the literal branch table as a slow twin, loop areas, and passivity."""

import numpy as np
import pytest

from rt_kernels.mechanisms.common.hysteresis import Hysteresis, TwoBrakes

F = [(0.001, 0), (0.002, 1), (0.010, 5), (0.020, 15)]
B = [(0.001, 0), (0.002, 1), (0.0175, 5), (0.020, 15)]
PATH = [0, 0.015, 0.006, 0.012, 0.004, 0.0225, 0.003, 0]
CORNERS = [10, 2.032258064516, 7, 1.516129032258, 25, 1.258064516129, 0]


def walk(corners, dq):
    """Deformations from corner to corner in steps of at most dq, and the index of each corner."""
    q, at = [np.array(corners[:1], dtype=float)], []
    for a, b in zip(corners[:-1], corners[1:], strict=True):
        q.append(np.linspace(a, b, max(2, int(np.ceil(abs(b - a) / dq)) + 1))[1:])
        at.append(sum(map(len, q)) - 1)
    return np.concatenate(q), at


def work(q, Q):
    return float(np.sum(0.5 * (Q[1:] + Q[:-1]) * np.diff(q)))


def test_T5_golden_G2_corners_and_first_unloading():
    for dq in (1.0, 1.5e-3, 1e-5):                             # one step per leg, coarse, fine: the same values
        q, at = walk(PATH, dq)
        Q = Hysteresis(F, B).path(q)
        assert Q[at] == pytest.approx(CORNERS, abs=1e-12 + 5e-13)
    element = Hysteresis(F, B)
    element.path([0, 0.015])
    corner = 0.013491379310
    assert element.step(corner) == pytest.approx(3.965517241379, abs=5e-8)   # the corner is given to 12 decimals, slope 4000
    before = Hysteresis(F, B)
    before.path([0, 0.015])
    assert before.step(corner + 1e-5) == pytest.approx(3.965517241379 + 4000e-5, abs=5e-8)


def test_T5_golden_G2_work():
    q, _ = walk(PATH, 1e-6)
    assert work(q, Hysteresis(F, B).path(q)) == pytest.approx(0.0838832347, abs=2e-8)
    for top, loss in ((0.015, 0.0224353444), (0.0225, 0.0525)):
        q, _ = walk([0, top, 0], 1e-6)
        assert work(q, Hysteresis(F, B).path(q)) == pytest.approx(loss, abs=2e-9)


def test_T5_golden_G3_clutch():
    path = [0, 0.025, 0.0225, 0.007, 0.0055, 0, 0.03, 0.01]
    expected, slip = [15, 5, 1, 0, -2.5, 15, 0], [0.005] * 5 + [0.010] * 2
    for dq in (1.0, 1e-4):
        element = Hysteresis(F, B, slips=True)
        got, slips = [], []
        for a, b in zip(path[:-1], path[1:], strict=True):
            got.append(element.path(walk([a, b], dq)[0][1:])[-1])
            slips.append(element.slip)
        assert got == pytest.approx(expected, abs=1e-12) and slips == pytest.approx(slip, abs=1e-15)
    q, _ = walk(path, 1e-6)
    assert work(q, Hysteresis(F, B, slips=True).path(q)) == pytest.approx(0.2560183189, abs=2e-8)


def test_E37_transition_slope_is_the_greatest_not_the_last():
    """With the printed k_3 = last slope (0 for a clutch) the force after a reversal would not fall at all."""
    element = Hysteresis(F, B, slips=True)
    element.path([0, 0.025])
    assert element.slope_max == pytest.approx(4000)
    assert element.step(0.0245) == pytest.approx(15 - 4000 * 0.0005)


# ----------------------------------------------------------------------------------------- the literal table of the text, repaired


class LiteralTable:
    """Table 3.2.1 for positive deformation with the transition in slope form and closed intervals (E1.33, E1.34)."""

    def __init__(self):
        self.state, self.q, self.k3 = 0, 0.0, 4000.0
        self.f, self.b = np.array(F), np.array(B)

    def cross(self, table, x, y):
        for (xa, ya), (xb, yb) in zip(table[1:-1], table[2:], strict=True):
            k = (yb - ya) / (xb - xa)
            if abs(self.k3 - k) < 1e-9:
                continue
            xc = (ya - k * xa - y + self.k3 * x) / (self.k3 - k)
            if xa - 1e-12 <= xc <= xb + 1e-12:
                return xc
        return table[-1][0]

    def value(self, q):
        if self.state == 3:
            return self.y + self.k3 * (q - self.x)
        table = self.b if self.state == 2 else self.f
        if q > table[-1][0]:
            return table[-1][1] + self.k3 * (q - table[-1][0])
        return float(np.interp(q, table[:, 0], table[:, 1]))

    def step(self, q):
        up, last = q > self.q, self.value(self.q)
        if q < self.f[1, 0]:
            self.state = 0
        elif self.state == 0 and up:
            self.state = 1
        elif self.state in (1, 2) and q > self.f[-1, 0]:
            self.state = 10
        elif self.state == 1 and not up:
            self.state, self.x, self.y = 3, self.q, last
            self.e, self.b_end = self.q, self.cross(self.b, self.q, last)
        elif self.state == 2 and up:
            self.state, self.x, self.y = 3, self.q, last
            self.b_end, self.e = self.q, self.cross(self.f, self.q, last)
        elif self.state == 10 and q < self.f[-1, 0]:
            self.state = 2
        if self.state == 3 and q > self.e:
            self.state = 1
        elif self.state == 3 and q < self.b_end:
            self.state = 2
        self.q = q
        return self.value(q)


def test_operator_equals_the_literal_table_for_small_steps():
    q, _ = walk(PATH[:-1], 2e-6)
    twin = LiteralTable()
    literal = np.array([twin.step(value) for value in q[1:]])
    assert np.abs(Hysteresis(F, B).path(q)[1:] - literal).max() < 1e-9


# --------------------------------------------------------------------------------------------------------------------- energy


def random_signal(rng, n=40_000):
    t = np.linspace(0, 200, n)
    return 0.02 * sum(rng.uniform(0.2, 1) * np.sin(w * t + p) for w, p in rng.uniform(0.1, 6, (6, 2))) / 2


@pytest.mark.parametrize("slips", [False, True])
def test_random_signal_slope_and_passivity(slips):
    rng = np.random.default_rng(6)
    for _ in range(5):
        element = Hysteresis(F, B, slips=slips)
        q = np.concatenate([[0.0], random_signal(rng), [0.0]])
        Q = element.path(q)
        assert np.abs(np.diff(Q)).max() <= element.slope_max * np.abs(np.diff(q)).max() * (1 + 1e-12)
        supplied = np.concatenate([[0.0], np.cumsum(0.5 * (Q[1:] + Q[:-1]) * np.diff(q))])
        # never gives back more than was put in, and net work of the closed path is a loss
        assert supplied.min() > -1e-9 * supplied.max() and supplied[-1] > 0


@pytest.mark.parametrize("slips", [False, True])
def test_stored_energy_is_what_monotonic_unloading_returns(slips):
    rng = np.random.default_rng(9)
    for _ in range(60):
        element = Hysteresis(F, B, slips=slips)
        start = rng.uniform(-0.024, 0.024, 9)
        sign = np.sign(element.path(start)[-1])
        stored = element.stored
        # unload until the reaction vanishes
        q = np.linspace(start[-1], start[-1] - sign * 0.05, 200_001)
        Q = element.path(q)
        stop = np.argmax(Q * sign <= 0) if sign else 0
        assert -work(q[: stop + 1], Q[: stop + 1]) == pytest.approx(stored, rel=1e-4, abs=1e-8)
        assert stored >= 0


def test_dissipation_inequality_of_the_stored_energy():
    """Supplied work never falls below the rise of the stored energy: S is a storage function."""
    rng = np.random.default_rng(12)
    for slips in (False, True):
        element = Hysteresis(F, B, slips=slips)
        q = np.concatenate([[0.0], random_signal(rng, 400_000)])
        Q_last, S_last = 0.0, 0.0
        for a, b in zip(q[:60_000], q[1:60_001], strict=True):
            Q = element.step(b)
            S = element.stored
            assert S - S_last <= 0.5 * (Q + Q_last) * (b - a) + 4000 * (b - a) ** 2 / 4 + 1e-14      # a corner inside the step
            Q_last, S_last = Q, S


# ---------------------------------------------------------------------------------------------------------- two brakes in series

TRAIN_F, TRAIN_B = [(0.0, 0), (0.05, 5), (0.6, 80)], [(0.0, 0), (0.05, 5), (0.6, 80)]


def test_two_brakes_slip_in_order_and_brake_1_returns():
    m = TwoBrakes(TRAIN_F, TRAIN_B, 10.0, 10.0 / 3, 2.0, 40.0, 60.0)
    assert m.step(1.0) == pytest.approx(10.0) and m.slip1 > 0 and m.slip2 == 0
    assert m.step(4.0) == pytest.approx(40.0) and m.slip1 == pytest.approx(2.0) and m.slip2 > 0
    deep = m.slip2
    # pull out: brake 1 slides back at a third of its moment until its stroke is gone, then brake 2 at its larger moment
    assert m.step(2.5) == pytest.approx(-10.0 / 3) and 0 < m.slip1 < 2 and m.slip2 == deep
    assert m.step(-3.0) == pytest.approx(-60.0) and m.slip1 == 0.0 and m.slip2 < deep


def test_two_brakes_do_not_depend_on_the_step_size():
    path = [0, 1.0, 0.7, 3.5, 2.0, 2.6, -1.0, 0.5, 0.0]
    one = TwoBrakes(TRAIN_F, TRAIN_B, 10.0, 10.0 / 3, 2.0, 40.0, 60.0)
    many = TwoBrakes(TRAIN_F, TRAIN_B, 10.0, 10.0 / 3, 2.0, 40.0, 60.0)
    for a, b in zip(path[:-1], path[1:], strict=True):
        coarse = one.step(b)
        fine = many.path(walk([a, b], 1e-4)[0][1:])[-1]
        assert coarse == pytest.approx(fine, abs=1e-9)
        assert (one.slip1, one.slip2) == pytest.approx((many.slip1, many.slip2), abs=1e-11)


def test_slip_work_of_two_brakes():
    """An elastic train: all the work of a closed path is moment times slip."""
    m = TwoBrakes(TRAIN_F, TRAIN_B, 10.0, 10.0 / 3, 2.0, 40.0, 60.0)
    q, _ = walk([0, 4.0, 2.2, 3.0], 1e-5)
    Q, spent, last = np.zeros(len(q)), 0.0, (0.0, 0.0)
    for i, value in enumerate(q):
        Q[i] = m.step(value)
        spent += Q[i] * (m.slip1 - last[0] + m.slip2 - last[1])
        last = m.slip1, m.slip2
    assert work(q, Q) == pytest.approx(spent + m.stored, rel=1e-5)


# ------------------------------------------------------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (B, F, "above the forward branch"),
        (F, [*B[:3], (0.021, 15)], "end in the same point"),
        (F, [(0.001, 0), (0.003, 1), (0.020, 15)], "first two points"),
        ([(0.001, 1), (0.002, 1)], B, "starts at"),
        ([(0.002, 0), (0.001, 1)], B, "rises"),
        ([(0.0, 0.0)], B, "2 to 12 rows"),
    ],
)
def test_tables_that_could_generate_energy_are_refused(forward, backward, message):
    with pytest.raises(ValueError, match=message):
        Hysteresis(forward, backward)


def test_weak_second_brake_is_refused():
    with pytest.raises(ValueError, match="stronger"):
        TwoBrakes(TRAIN_F, TRAIN_B, 10.0, 3.0, 2.0, 5.0, 60.0)
