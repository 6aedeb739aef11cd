"""Energy accumulator: the completed transition tables of (7.4), T-07, and the printed treatment of stops and transitions told apart."""

import numpy as np
import pytest

from rt_kernels.mechanisms.ring.elastic.accumulator import EnergyAccumulator

K = 1e6
TABLE = dict(
    spring_load_n=[[0.0, 120.0], [0.05, 300.0], [0.15, 560.0], [0.26, 900.0]],
    spring_recoil_n=[[0.0, 90.0], [0.08, 280.0], [0.26, 700.0]],
    stop_stiffness_n_per_m=K, backlash_m=3e-4, slip_force_n=800.0, stroke_m=0.25, release_time_s=3e-3,
)


class PrintedMachine:
    """The branch-by-branch machine of tables 7.4.1 and 7.4.2, with the rows that are missing there: literal and slow."""

    def __init__(self):
        self.f1, self.f2 = (np.array(TABLE[key], dtype=float) for key in ("spring_load_n", "spring_recoil_n"))
        self.branch, self.d, self.locked = 0, 0.0, True
        self.d4B, self.d4E = 0.0, self.meet(0.0, 0.0, self.f1)      # unloaded: the stiff line from zero ends on the loading branch
        self.f4E = K * self.d4E
        self.d3B = self.d3E = self.f3E = 0.0
        self.to_rod_in = False

    def load(self, d):
        return float(np.interp(d, self.f1[:, 0], self.f1[:, 1]))

    def recoil(self, d):
        return float(np.interp(d, self.f2[:, 0], self.f2[:, 1]))

    def meet(self, d0, f0, curve):
        """Intersection of the stiff line through (d0, f0) with a branch, closed intervals."""
        for (da, fa), (db, fb) in zip(curve[:-1], curve[1:], strict=True):
            k = (fb - fa) / (db - da)
            d = (fa - k * da - f0 + K * d0) / (K - k)
            if da - 1e-12 <= d <= db + 1e-12:
                return d
        return None

    def line4(self, d4E, f4E):
        self.d4E, self.f4E = d4E, f4E
        self.d4B = d4E - f4E / K

    def line3(self, d0, f0):
        self.d3E = self.meet(d0, f0, self.f1)
        self.d3B = self.meet(d0, f0, self.f2)
        self.z3 = d0 - f0 / K
        self.f3E = K * (self.d3E - self.z3)

    def force(self, d):
        d11E = self.d4B - TABLE["backlash_m"]
        return {0: 0.0, 1: self.load(d), 2: self.recoil(d), 3: K * (d - getattr(self, "z3", 0.0)), 4: K * (d - self.d4B),
                11: K * (d - d11E)}[self.branch]

    def step(self, d, locked):
        old, rising, falling = self.force(self.d), d > self.d, d < self.d
        if locked and not self.locked:
            # at the moment of blocking: 2 and 3 continue a stiff line to zero
            if self.branch == 2:
                self.line3(self.d, old)
            if self.branch in (2, 3):
                self.line4(self.d3E, self.f3E)
                self.branch = 4
        self.locked = locked
        for _ in range(4):
            before, d11E = self.branch, self.d4B - TABLE["backlash_m"]
            if self.branch == 0:
                if d < d11E:
                    self.branch = 11
                elif d > self.d4B:
                    self.branch = 4
            elif self.branch == 1 and falling:
                if locked:
                    self.line4(self.d, self.load(self.d))
                    self.branch = 4
                else:
                    self.line3(self.d, self.load(self.d))
                    self.branch = 3
            elif self.branch == 2:
                if rising:
                    self.line3(self.d, self.recoil(self.d))
                    self.branch = 3
                elif d < 0.0:
                    self.line4(0.0, self.f2[0, 1])
                    self.branch = 4
            elif self.branch == 3:
                if d > self.d3E:
                    self.branch = 1
                elif self.d3B is not None and d < self.d3B:
                    self.branch = 2
                elif d < 0.0 and self.d3B is None:
                    self.line4(self.d3E, self.f3E)
                    self.branch = 4
            elif self.branch == 4:
                if d < self.d4B:
                    self.branch = 0
                elif d > self.d4E and self.f4E < self.load(self.d4E) - 1e-6:
                    self.line3(self.d4E, self.f4E)
                    self.branch = 3
                elif d > self.d4E:
                    self.branch = 1
            elif self.branch == 11 and d > d11E:
                self.branch = 0
            if self.branch == before:
                break
            falling = rising = False        # a transition of this step is made once
        self.d = d
        return self.force(d)


def test_equals_the_completed_tables_on_a_fine_path():
    """Loading, partial returns on both clutch states, blocking on branch 2, return through zero, backlash and tension."""
    printed, ours = PrintedMachine(), EnergyAccumulator(TABLE)
    corners = [(0.06, 1), (0.0595, 1), (0.061, 1), (0.12, 1), (0.1185, 1), (0.13, 1), (0.13, 0), (0.05, 0), (0.06, 0), (0.055, 0),
               (0.055, 1), (0.0546, 1), (0.09, 1), (0.0895, 1), (0.0890, 1), (0.20, 1), (0.20, 0), (-0.0004, 0), (0.0, 0), (0.1, 0)]
    d, worst, seen = 0.0, 0.0, set()
    for target, locked in corners:
        for x in np.linspace(d, target, max(2, int(abs(target - d) / 2e-6)))[1:] if target != d else [d]:
            worst = max(worst, abs(printed.step(x, bool(locked)) - ours.step(x, bool(locked), 1.0)))
            seen.add(printed.branch)
        d = target
    assert seen >= {0, 1, 2, 3, 4, 11}
    # the literal machine notices a reversal one step of 2e-6 m late
    assert worst < 2.1 * 2e-6 * K


@pytest.mark.parametrize("seed", range(4))
def test_t07_random_walk(seed):
    """|df| <= k |dd| except at a release, the slip cap holds, and the force stays below the loading branch."""
    rng = np.random.default_rng(seed)
    spring = EnergyAccumulator(TABLE)
    d, f, locked, since_release = 0.0, 0.0, True, 1.0
    for _ in range(20_000):
        step = rng.normal(scale=2e-4) if rng.random() < 0.9 else rng.normal(scale=5e-3)
        d_new = float(np.clip(d + step, -3e-4, 0.25))         # between the stops
        if rng.random() < 0.02:
            since_release = 0.0 if locked else since_release
            locked = not locked
        since_release += 5e-4
        f_new = spring.step(d_new, locked)
        load, recoil = spring.limits(d_new)
        assert f_new <= max(load, 0.0) + 1e-9
        assert f_new >= -TABLE["slip_force_n"] - 1e-9
        if not locked and since_release > 4e-3 and recoil > 0:
            assert f_new >= recoil - 1e-9
        if locked or since_release > 4e-3:
            assert abs(f_new - f) <= K * abs(d_new - d) + 5e-9 * K * 1e-3 + 1e-7
        d, f = d_new, f_new


def loss(spring, path, locked):
    """Work put in over a path of d (trapezia)."""
    work, f_old, d_old = 0.0, spring.step(path[0], locked, 1.0), path[0]
    for d in path[1:]:
        f = spring.step(d, locked, 1.0)
        work += 0.5 * (f + f_old) * (d - d_old)
        f_old, d_old = f, d
    return work


def test_closed_cycle_loses_the_area_between_the_branches():
    spring = EnergyAccumulator(TABLE)
    spring.step(0.1, False, 1.0)
    path = lambda a, b: np.linspace(a, b, 40_001)  # noqa: E731
    loss(spring, path(0.1, 0.05), False)
    got = loss(spring, path(0.05, 0.2), False) + loss(spring, path(0.2, 0.05), False)
    # exact: between the branches, cut by the two stiff lines
    load, recoil = np.array(TABLE["spring_load_n"]), np.array(TABLE["spring_recoil_n"])
    x = np.linspace(0.05, 0.2, 2_000_001)
    f1, f2 = np.interp(x, load[:, 0], load[:, 1]), np.interp(x, recoil[:, 0], recoil[:, 1])
    up = np.minimum(f1, f2[0] + K * (x - 0.05))
    down = np.maximum(f2, f1[-1] + K * (x - 0.2))
    assert got == pytest.approx(np.trapezoid(up - down, x), rel=1e-3)
    assert got > 0.0


@pytest.mark.parametrize("seed", range(5))
def test_closed_cycles_never_give_energy(seed):
    """Any closed path of (d, clutch) that ends as it began in every state."""
    rng = np.random.default_rng(seed)
    spring = EnergyAccumulator(TABLE)
    put_in = total = 0.0
    d = 0.1
    loss(spring, np.linspace(0.0, 0.1, 2001), False)
    loss(spring, np.linspace(0.1, 0.08, 2001), False)
    loss(spring, np.linspace(0.08, 0.1, 2001), False)       # on the loading branch at 0.1
    d = 0.1
    for _ in range(30):
        target, locked = float(rng.uniform(0.02, 0.24)), bool(rng.random() < 0.5)
        work = loss(spring, np.linspace(d, target, 4001), locked)
        total += work
        put_in += max(work, 0.0)
        d = target
    # back to the loading branch at 0.1, clutch open: wound exactly as at the start
    for target in (0.02, 0.1):
        total += loss(spring, np.linspace(d, target, 4001), False)
        d = target
    assert total >= -1e-9 * put_in


def test_slip_keeps_the_wind_up_and_the_stops():
    """E06: after a slip of 0.1 m outwards the branches have moved, the stop at rod-in has not."""
    spring = EnergyAccumulator(TABLE)
    loss(spring, np.linspace(0.0, 0.2, 2001), True)
    f_at_02 = spring.limits(0.2)[0]
    f = [spring.step(d, True, 1.0) for d in np.linspace(0.2, 0.1, 2001)]
    assert min(f) == pytest.approx(-TABLE["slip_force_n"], abs=1e-9) and spring.branch == 12
    assert spring.slipped == pytest.approx(0.1 - f_at_02 / K - TABLE["backlash_m"] - TABLE["slip_force_n"] / K, rel=1e-9)
    # pushing back in meets the loading branch where the wind-up is as before, earlier in d by the slip
    f = [spring.step(d, True, 1.0) for d in np.linspace(0.1, 0.2 - spring.slipped, 2001)]
    assert spring.branch == 1 and f[-1] == pytest.approx(f_at_02, rel=1e-9)
    # fixed stop: printed shift of the nodes would put it at 0.25 - slip
    inside, beyond = spring.step(0.249, True, 1.0), spring.step(0.251, True, 1.0)
    assert spring.branch == 5 and beyond - inside == pytest.approx(K * 0.001, rel=0.02)


def test_release_of_an_unloaded_strut_is_a_ramp():
    spring = EnergyAccumulator(TABLE)
    loss(spring, np.linspace(0.0, 0.12, 2001), True)
    loss(spring, np.linspace(0.12, 0.1193, 2001), True)         # in the backlash
    assert spring.step(0.1193, True) == 0.0
    recoil = spring.limits(0.1193)[1]
    forces = [spring.step(0.1193, False, 5e-4) for _ in range(8)]
    np.testing.assert_allclose(forces[:6], recoil * np.arange(1, 7) / 6, rtol=1e-12)
    assert forces[7] == pytest.approx(recoil)


@pytest.mark.parametrize("change, message", [
    (dict(spring_recoil_n=[[0.0, 130.0], [0.26, 900.0]]), "spring_recoil_n: the recoil branch is above"),
    (dict(stop_stiffness_n_per_m=1000.0), "stop_stiffness_n_per_m: 1000 N/m is below the steepest"),
    (dict(stroke_m=0.5), "the tables end before the stroke of 0.5 m"),
    (dict(spring_load_n=[[0.0, 0.0], [0.26, 900.0]]), "spring_load_n: forces must be > 0 N"),
    (dict(backlash_m=-1e-3), "backlash_m: -0.001 m"),
])
def test_wrong_tables_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        EnergyAccumulator(TABLE | change)
