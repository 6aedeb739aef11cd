"""What a docking unit's springs and drives may give is not taken for the stand's; no more than that."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad

from hil_server.config import SHIPPED, load_test
from rt_kernels.context import UnitEnergy
from rt_kernels.layout import BITS, CODES
from tests.safety.conftest import PERIOD, names, through
from tests.system.line_runs import fault_names, run_line

RECOIL = [[0.0, 110.0], [0.05, 240.0], [0.12, 480.0], [0.30, 700.0]]
WOUND, DAMPING = 0.12, 200.0
MASS, SPEED = 5000.0, 0.05
ENERGY = 0.5 * MASS * SPEED**2
RUNS = BITS["mechanism_signal"]["drive_running"]
EXPERT = SHIPPED / "programmes" / "ring_expert.toml"


def unit(**keys):
    return SimpleNamespace(gives=UnitEnergy(**keys))


def springs(**keys):
    return unit(**({"struts": 6, "compression_m": WOUND, "recoil_n": RECOIL, "damping_n_s_per_m": DAMPING} | keys))


def in_one_spring(d):
    """Integral of the recoil branch from 0 to d, by quadrature."""
    return quad(lambda x: np.interp(x, *np.transpose(RECOIL)), 0.0, max(d, 0.0), points=[0.05], limit=200)[0]


def pushed(quiet, gain, strokes=None, running=False, n=400):
    """A contact with a constant force that takes a body of MASS from SPEED to an energy of `gain` more; strokes (n, 6)."""
    energy = ENERGY + gain * np.clip((np.arange(n) - 50) / (n - 60), 0.0, 1.0)
    v = np.sqrt(2.0 * energy / MASS)
    s = quiet(n, kinetic_energy=energy)
    s["V_TA"][:, 0] = v
    s["contact"][51:] = 1
    s["F_T"][1:, 0] = -MASS * np.diff(v) / PERIOD
    s["F_T_corrected"] = s["F_T"]
    if strokes is not None:
        s["signal_analog"][:, :6] = strokes
    if running:
        s["signal_discrete"] = RUNS
    return s


def largest_quiet_gain(stage, quiet, mechanism, strokes=None, running=False, n=400):
    """Greatest gain [J] that does not trip, by halving."""
    low, high = 0.0, 4000.0
    while high - low > 0.02:
        gain = 0.5 * (low + high)
        made = stage(following_max_m=1.0, mechanism=mechanism, limits={"force_limit_n": [1e9] * 3})
        s = pushed(quiet, gain, strokes, running, n)
        made.through(s[:2].copy())
        tripped = "energy_gain" in names(through(made, s)["faults"][-1])
        low, high = (low, gain) if tripped else (gain, high)
    return low


def thrown(way, n, begin=40, end=320):
    """All six struts out by `way` at a constant rate."""
    return np.repeat(way * np.clip((np.arange(n) - begin) / (end - begin), 0.0, 1.0)[:, None], 6, axis=1)


def test_a_unit_at_rest_gets_nothing(stage, quiet):
    """0.2 of the energy before, as without a unit."""
    for mechanism in (None, springs()):
        assert largest_quiet_gain(stage, quiet, mechanism) == pytest.approx(0.2 * ENERGY, rel=0.03)


# to just above the second row of the recoil branch; from beyond its last one
@pytest.mark.parametrize(("wound", "way"), [(WOUND, 0.02), (WOUND, 0.046), (WOUND, 0.115), (0.4, 0.15)])
def test_a_throw_gives_what_the_springs_lose_less_what_their_dampers_take(stage, quiet, wound, way):
    """6 (U(d) - U(d - way)) - 6 c v^2 t, and 0.2 of the energy before."""
    n, rate = 400, way / 0.28
    given = 6 * (in_one_spring(wound) - in_one_spring(wound - way)) - 6 * DAMPING * rate**2 * 0.28
    # the gain comes a little later than the throw, so the end decides
    found = largest_quiet_gain(stage, quiet, springs(compression_m=wound, resolution_m=0.0), thrown(way, n), n=n)
    assert found == pytest.approx(given + 0.2 * ENERGY, rel=0.01)


def test_all_that_is_stored_is_the_bound_whatever_the_strokes_say(stage, quiet):
    """Strokes that are no numbers, or beyond every stop: never more than the energy that was wound up."""
    n, most = 400, 6 * in_one_spring(WOUND)
    for wrong in (np.nan, np.inf, -np.inf, 0.5):
        strokes = np.zeros((n, 6))
        strokes[60:] = wrong
        # beyond every stop inwards is energy put in: less than nothing to give
        assert largest_quiet_gain(stage, quiet, springs(damping_n_s_per_m=0.0), strokes, n=n) <= most + 0.21 * ENERGY


def test_strokes_that_are_noisy_or_coarse_take_no_energy_off(stage, quiet):
    """1 mm steps with the resolution declared: no less is allowed than with exact strokes."""
    n, way = 400, 0.08
    exact = largest_quiet_gain(stage, quiet, springs(), thrown(way, n), n=n)
    coarse = np.round(thrown(way, n), 3)
    assert largest_quiet_gain(stage, quiet, springs(resolution_m=1e-3), coarse, n=n) > exact


def test_drives_give_their_power_and_save_up_one_second_of_it(stage, quiet):
    power = 20.0
    # the contact lasts 0.349 s, its drive from the first tick of the loop on
    assert largest_quiet_gain(stage, quiet, unit(drive_power_w=power), running=True) == pytest.approx(0.4 * power + 0.2 * ENERGY, rel=0.05)
    assert largest_quiet_gain(stage, quiet, unit(drive_power_w=power)) == pytest.approx(0.2 * ENERGY, rel=0.03)
    # three seconds of waiting are not saved up
    n = 3400
    made = stage(following_max_m=1.0, mechanism=unit(drive_power_w=power), limits={"force_limit_n": [1e9] * 3})
    s = pushed(quiet, 2.2 * power, running=True)
    waiting = quiet(n - len(s), kinetic_energy=ENERGY, signal_discrete=RUNS)
    waiting["V_TA"][:, 0] = SPEED
    all_of_it = np.concatenate([waiting, s])
    made.through(all_of_it[:2].copy())
    assert "energy_gain" in names(through(made, all_of_it)["faults"][-1])


def test_a_drive_that_is_drawn_from_gives_its_power_as_long_as_the_contact_lasts(stage, quiet):
    """0.9 of its power drawn for 3.3 s; what is not drawn is not given after one second."""
    power, n = 20.0, 3400
    made = stage(following_max_m=1.0, mechanism=unit(drive_power_w=power), limits={"force_limit_n": [1e9] * 3})
    s = pushed(quiet, 0.9 * power * n * PERIOD, running=True, n=n)
    made.through(s[:2].copy())
    assert "energy_gain" not in names(through(made, s)["faults"][-1])


def test_what_one_contact_has_had_the_next_does_not_get(stage, quiet):
    """The springs are let go in the first contact, which has all of it; a second gain trips."""
    n, way = 400, 0.08
    given = 0.99 * (6 * (in_one_spring(WOUND) - in_one_spring(WOUND - way)) - 6 * DAMPING * (way / 0.28) ** 2 * 0.28)
    first = pushed(quiet, given, thrown(way, n), n=n)
    free = quiet(1200, kinetic_energy=first["kinetic_energy"][-1])
    free["V_TA"][:, 0], free["signal_analog"][:, :6] = first["V_TA"][-1, 0], way
    second = pushed(quiet, 0.0, np.full((n, 6), way), n=n)
    again = first["kinetic_energy"][-1] + 0.5 * given * np.clip((np.arange(n) - 50) / (n - 60), 0.0, 1.0)
    v = np.sqrt(2.0 * again / MASS)
    second["kinetic_energy"], second["V_TA"][:, 0] = again, v
    second["F_T"][1:, 0] = second["F_T_corrected"][1:, 0] = -MASS * np.diff(v) / PERIOD
    made = stage(following_max_m=1.0, energy_trip=0.05, mechanism=springs(), limits={"force_limit_n": [1e9] * 3})
    made.through(first[:2].copy())
    out = through(made, np.concatenate([first, free, second]))
    assert "energy_gain" not in names(out["faults"][n + 1100])
    assert "energy_gain" in names(out["faults"][-1])


class Tank:
    """The balance of `rt_kernels.safety.unit_energy`, by its equations."""

    def __init__(self, struts=0, compression_m=0.0, damping_n_s_per_m=0.0, resolution_m=0.0, drive_power_w=0.0):
        self.struts, self.wound, self.damping, self.resolution, self.power = (
            struts, compression_m, damping_n_s_per_m, resolution_m, drive_power_w)  # fmt: skip
        self.begun = False

    def stored(self, strokes):
        d, force = np.transpose(RECOIL)
        total = 0.0
        for way in self.wound - strokes[: self.struts]:
            if 0.0 < way < 10.0:
                inner = np.append(d[d < way], way)
                total += np.trapezoid(np.interp(inner, d, force), inner)
        return total

    def begin(self, strokes):
        self.begun, self.springs, self.drive, self.drawn = True, 0.0, 0.0, 0.0
        self.energy, self.since, self.passed = self.stored(strokes), strokes.copy(), 0.0

    def may_give(self, strokes, running, work, dt):
        if not self.begun:
            self.begin(strokes)
        self.springs += self.energy - self.stored(strokes)
        self.energy = self.stored(strokes)
        self.passed += dt
        if self.passed >= 0.005:
            way = np.fmax(np.abs(strokes - self.since)[: self.struts] - self.resolution, 0.0)
            self.springs -= self.damping * (way @ way) / self.passed
            self.since, self.passed = strokes.copy(), 0.0
        given = max(self.springs, 0.0)
        self.drawn = max(self.drawn, work - given)
        if running:
            self.drive = min(self.drive + self.power * dt, self.drawn + self.power)
        return given + self.drive

    def contact_over(self, work):
        self.springs, self.drive, self.drawn = max(self.springs - max(work, 0.0), 0.0), 0.0, 0.0


# first and last tick of contacts and the force along the motion in them: next to nothing is taken, or put in, or more than there is
CONTACTS = ((20, 40, 0.2), (100, 300, 400.0), (500, 700, -300.0), (800, 820, 0.2), (900, 1100, 50.0), (2600, 3400, 1500.0),
            (3500, 3900, 200.0))  # fmt: skip
OPENED = (1200, 1260)  # between two of them the loop is open


@pytest.mark.parametrize("keys", [
    {"struts": 6, "compression_m": WOUND, "damping_n_s_per_m": DAMPING, "resolution_m": 2e-4, "drive_power_w": 20.0},
    {"struts": 1, "compression_m": 0.25, "damping_n_s_per_m": DAMPING, "resolution_m": 1e-3},
    {"struts": 3, "compression_m": 0.34},
    {"drive_power_w": 20.0},
    {},
])  # fmt: skip
def test_what_a_unit_may_give_is_the_balance_of_its_tank(stage, quiet, keys):
    """Tick by tick through seven contacts, in the sample's own ratio."""
    n = 4000
    k = np.arange(n)[:, None]
    s = quiet(n, kinetic_energy=ENERGY)
    s["signal_analog"][:, :6] = (0.4 * np.sin(k / (250.0 + 40.0 * np.arange(6))) * np.sin(k / 900.0)) ** 2
    s["signal_analog"][950:960, 2] = np.nan
    s["signal_discrete"] = np.where((k[:, 0] // 1000) % 3 > 0, RUNS, 0)
    s["periods"][::7] = 2
    s["V_TA"][:, 0] = SPEED
    s["motion"][slice(*OPENED)] = CODES["motion"]["follow_profile"]
    for first, last, force in CONTACTS:
        s["contact"][first:last] = 1
        s["F_T"][first:last, 0] = -force
    s["F_T_corrected"] = s["F_T"]
    made = stage(following_max_m=1.0, energy_trip=1e3, mechanism=unit(recoil_n=RECOIL if keys.get("struts") else (), **keys),
                 limits={"force_limit_n": [1e9] * 3})  # fmt: skip
    out = through(made, s.copy())
    tank, expected, found = Tank(**keys), [], []
    for i in range(n):
        strokes, dt = s["signal_analog"][i, :6], PERIOD * s["periods"][i]
        if out["safety_state"][i] == CODES["safety_state"]["not_armed"]:
            continue
        if OPENED[0] <= i < OPENED[1]:
            tank.begin(strokes)
            continue
        contact = next((one for one in CONTACTS if one[0] <= i <= one[1]), None)
        work = out["contact_work"][i] if contact else 0.0
        given = tank.may_give(strokes, bool(s["signal_discrete"][i]), work, dt)
        if contact:
            expected.append(given)
            found.append(out["unit_energy_ratio"][i] * (ENERGY - out["contact_work"][contact[0]]))
            if i == contact[1]:
                tank.contact_over(work)
    assert max(expected) > 1.0 or not keys
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_declaration_that_does_not_fit_is_refused(stage):
    with pytest.raises(ValueError, match="9 sprung struts"):
        stage(mechanism=springs(struts=9))
    with pytest.raises(ValueError, match="1 rows"):
        stage(mechanism=springs(recoil_n=[[0.0, 1.0]]))


# ------------------------------------------------------------------------------------------------------------------- the line

SHORT = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "test.duration_max_s=8.0")


def test_the_expert_case_of_the_ring_unit_throws_captures_and_does_not_trip():
    """Contact, release, alignment in this order; the ring has given more than the monitor would let a passive unit."""
    out = run_line(config=load_test(EXPERT, list(SHORT)))
    signal = out["signal_discrete"]
    when = {name: np.flatnonzero(signal & mask == mask) for name, mask in {
        "contact": BITS["mechanism_signal"]["DK1"], "release": BITS["mechanism_signal"]["released"],
        "aligned": sum(BITS["mechanism_signal"][f"ring_aligned{k}"] for k in (1, 2, 3))}.items()}  # fmt: skip
    contact, release, aligned = (out["time_ns"][when[name][0]] * 1e-9 for name in ("contact", "release", "aligned"))
    assert 2.0 < release - contact < 4.5 and 0.0 < aligned - release < 0.2 * (release - contact)
    assert out["contact_energy_ratio"].max() > 1.5
    # of that the unit's springs may have given all but what the monitor lets a passive unit have, and not more than there was in them
    gain = out["contact_energy_ratio"] - 1.0
    assert (gain - out["unit_energy_ratio"]).max() < 0.1 and (out["unit_energy_ratio"][gain < 0.0]).min() >= 0.0
    assert not {"energy_gain", "energy_warning"} & fault_names(out["faults"][-1]) and out["trip_tick"][-1] < 0


def test_an_unstable_stand_with_the_same_unit_trips_within_its_bound():
    """Drives 15 times as late as they are, uncompensated: the gain trips, no later than the springs' net energy of the steady stand and
    0.2 of the energy before allow (14 J and 1.5 J)."""
    # the first blow would end the run by the analogue chain
    late = ("compensation.part=none", "stand.virtual.drive_delay_s=0.03", "stand.virtual.chain_force_n=1e6",
            "stand.virtual.chain_moment_n_m=1e6")  # fmt: skip
    out = run_line(config=load_test(EXPERT, [*SHORT, *late]))
    assert "energy_gain" in fault_names(out["faults"][-1])
    at = int(out["trip_tick"][-1])
    assert out["phase"][at] == CODES["phase"]["contact"] or out["motion"][at - 1] == CODES["motion"]["free"]
    assert out["contact_work"][at] < 16.0
