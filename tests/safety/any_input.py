"""Random bad days for the assembled line, and what must hold of every setpoint on them.

    python -m tests.safety.any_input [--ticks N] [--seed S]       the long form; the suite runs a short one

A day is one run of the shipped line in process: an ideal or a virtual stand in closed loop, and behind it a script that overwrites inputs:
measured legs and wrenches that are NaN, infinite, wrong or jump; status words; stalls of up to 400 periods; every command at any time,
and `recover` after the trips.
Most days have few events, so that runs get as far as contacts, stops, resumptions and trips.
"""

import argparse
import time

import numpy as np

from drivers.simulated.scripted_inputs import ScriptedInputs, events
from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.layout import CODES
from rt_kernels.loop import LoopLine
from tests.open_stand import opened

FOLLOWING, NOT_ARMED, RECOVERING = (CODES["safety_state"][name] for name in ("following", "not_armed", "recovering"))
DAY = 6000  # ticks of a day at the most
QUICK = (
    "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=2.0", "guidance.settle_s=0.05", "guidance.retreat_distance_m=0.1",
    "guidance.ramp_s=0.2", "guidance.constant_s=0.4", "guidance.close_before_s=0.3", "guidance.fault_s=0.05", "guidance.contact_max_s=4.0",
    "guidance.finish_at_region_end=false", "safety.following_max_m=0.5", "safety.skipped_periods_max=300",
    "guidance.recover_s=1.5", "safety.recover_fresh_s=0.05", "safety.recover_limit_s=0.2",
    "safety.sensor_missing_periods=300", "safety.drive_missing_periods=300", "safety.signals_missing_periods=300",
    "safety.damaged_max_per_s=1000.0", "safety.drive_lost_max_per_s=1000.0", "safety.rate_excess_s=2.0", "safety.energy_trip=1e5",
    "stand.limits.force_limit_n=[1e6, 1e6, 1e6]", "stand.limits.moment_limit_n_m=[1e6, 1e6, 1e6]",
    "stand.limits.analogue_force_n=[1e7, 1e7, 1e7]", "stand.limits.analogue_moment_n_m=[1e7, 1e7, 1e7]",
)  # fmt: skip
PROGRAMME = "stand_configs/programmes/elastic_contact.toml"
# (share of the days, overrides)
LINES = (
    (0.8, ("test.stand=stands/ideal_stand.toml", "stand.platform.leg_rate_max_m_s=0.5", "stand.platform.leg_acceleration_max_m_s2=10.0")),
    (0.15, ("test.stand=stands/ideal_stand.toml", "stand.platform.leg_rate_max_m_s=0.3", "stand.platform.leg_acceleration_max_m_s2=3.0",
            "safety.braking_m_s2=0.5", "test.rate_hz=500.0", "safety.stroke_reserve_m=0.0")),
    (0.05, ("test.stand=stands/msfc_6dof.toml",)),
)  # fmt: skip
WEIRD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, 1e-3, 2.99, 5.01, 3.4e38])


class Days:
    """One line, run again and again from its first tick."""

    def __init__(self, overrides=()):
        self.config = load_test(PROGRAMME, opened([*QUICK, *overrides], PROGRAMME))
        self.script = ScriptedInputs(DAY)
        self.assemble()

    def assemble(self):
        test = assembly.simulation(self.config)
        self.stand = test.ports[1]
        self.clock = registry.part("clocks", "free_running")(period_ns=test.period_ns, duration_ns=DAY * test.period_ns)
        self.line = LoopLine(self.clock, [self.stand, self.script], test.line.stages)
        self.first = self.line.snapshot()
        self.constants = test.line.stages["safety"].constants

    def run(self, parts):
        """The samples of a day with these events."""
        if hasattr(self.stand, "plant"):
            self.assemble()  # a plant cannot be taken back to its beginning
        self.line.restore(self.first)
        self.clock.restart()
        self.script.load(parts)
        self.line.run()
        return self.script.kept


def script(rng, load):
    """Events of a random day. load: the wrench on the load cell when nothing happens, shape (6,)."""
    out = []

    def some(mean, last=DAY):
        """Ticks of a Poisson number of events."""
        return rng.integers(0, last, rng.poisson(mean))

    # the very start: a leg outside its stroke, with no value, late to come, or beside the others
    if rng.random() < 0.3:
        ticks = np.arange(rng.integers(0, 3), rng.choice([3, 30, 700]))
        value = rng.choice([rng.choice(WEIRD), rng.uniform(2.0, 6.0), 3.997 + rng.normal(0.0, 0.03)])
        out.append(events(ticks, "measured_leg", int(rng.integers(6)), np.full(ticks.shape, value)))
    # stalls
    for tick in some(rng.choice([0.0, 2.0, 30.0])):
        out.append(events(tick, "periods", 0, int(rng.choice([2, 3, 10, 40, 80, 200, 290, 400], p=[.2, .2, .2, .15, .1, .1, .04, .01]))))
    # pushes: forces for a while, up to what throws 600 kg out of the stroke
    for tick in some(rng.choice([0.0, 2.0, 8.0])):
        ticks = np.arange(tick, tick + rng.integers(1, 400))
        size = 10.0 ** rng.uniform(0.0, 4.5) * np.array([1.0, 1.0, 1.0, 0.2, 0.2, 0.2]) * rng.normal(size=6)
        for i in range(6):
            out.append(events(ticks, "wrench_raw", i, load[i] + size[i] * np.ones(ticks.shape)))
    for tick in some(rng.choice([0.0, 0.3])):
        out.append(events(tick, "wrench_raw", int(rng.integers(6)), rng.choice(WEIRD)))
    # wrong lengths: for a tick, or for good
    for tick in some(rng.choice([0.0, 1.0])):
        ticks = np.arange(tick, tick + rng.choice([1, 5, 2000]))
        value = rng.choice([rng.choice(WEIRD), rng.uniform(3.0, 5.0)])
        out.append(events(ticks, "measured_leg", int(rng.integers(6)), np.full(ticks.shape, value)))
    # status words
    for field, elements in (("wrench_status", 1), ("drive_status", 6), ("signal_status", 1)):
        for tick in some(rng.choice([0.0, 0.3], p=[0.8, 0.2])):
            out.append(events(tick, field, int(rng.integers(elements)), 1 << int(rng.integers(15))))
    if rng.random() < 0.05:
        out.append(events(int(rng.integers(DAY)), "analogue_chain", 0, int(rng.integers(8))))
    # commands: any, with any arguments; mostly those that stop and resume
    for tick in some(rng.choice([0.0, 2.0, 10.0])):
        code = rng.choice([2, 3, 4, 5, 6, int(rng.integers(0, 22))], p=[0.1, 0.3, 0.4, 0.1, 0.02, 0.08])
        out.append(events(tick, "command_code", 0, int(code)))
        out.append(events(tick, "command_arg", int(rng.integers(8)), rng.choice([*WEIRD, 1.0, 2.0])))
    if rng.random() < 0.05:
        out.append(events(int(rng.integers(DAY)), "supervisor_age_ns", 0, int(rng.choice([6e9, -1, 2**62]))))
    # an operator who clears what tripped, over and over, and then continues
    if rng.random() < 0.5:
        for tick in range(int(rng.integers(300)), DAY, 300):
            out.append(events(tick, "command_code", 0, CODES["command"]["recover"]))
            out.append(events(tick + 200, "command_code", 0, CODES["command"][str(rng.choice(["park", "resume", "hold", "abort"],
                                                                                               p=[0.6, 0.2, 0.15, 0.05]))]))
    return out


def broken(samples, c):
    """What these samples of one run do not keep, as text; empty when all is well. c: `SafetyLimits.constants`."""
    y, v, mode = samples["leg_setpoint"], samples["leg_rate_setpoint"], samples["safety_state"]
    waiting = mode == NOT_ARMED
    # before the start: what the drives report or nothing, and once started never back
    told = np.where(np.abs(samples["measured_leg"]) < 1e6, samples["measured_leg"], 0.0)
    if not np.array_equal(y[waiting], told[waiting]) or v[waiting].any():
        return "before the start a setpoint of ours"
    first = int(np.argmin(waiting)) if not waiting.all() else len(samples)
    if waiting[first:].any():
        return "not armed again"
    if first == len(samples):
        return ""
    y, v = y[first:], v[first:]
    if not (np.isfinite(y).all() and np.isfinite(v).all()):
        return "not finite"
    if y.min() < c["leg_min"] or y.max() > c["leg_max"]:
        return "outside the stroke"
    tiny = 64 * 2.0**-53 * c["leg_max"]  # rounding of a length
    if np.abs(y[0] - samples["measured_leg"][first]).max() > c["rate_step"] * c["period"] + tiny:
        return "does not start where the legs are"
    # a frame before the first: at rest where the legs are
    y = np.concatenate([samples["measured_leg"][first : first + 1], y])
    v = np.concatenate([np.zeros((1, 6)), v])
    step = np.diff(y, axis=0)
    if np.abs(v).max() > c["rate_max"] or np.abs(step).max() > c["rate_max"] * c["period"] + tiny:
        return "faster than the rate limit"
    if np.abs(np.diff(v, axis=0)).max() > c["rate_step"] * (1 + 1e-12):
        return "beyond the acceleration limit"
    if np.abs(np.diff(step, axis=0, prepend=0.0)).max() > c["rate_step"] * c["period"] + 2 * tiny:
        return "setpoints beyond the acceleration limit"
    if np.abs(step - v[1:] * c["period"]).max() > tiny:
        return "length and rate do not agree"
    return ""


def recoveries(samples):
    """How many recoveries let motion go again."""
    mode = samples["safety_state"]
    return int(np.count_nonzero((mode[:-1] == RECOVERING) & (mode[1:] == FOLLOWING)))


def campaign(ticks, seed=0):
    """Days until `ticks` are through. Returns (ticks, days, tally of how the days ended, recoveries). Raises AssertionError naming the
    day."""
    lines = [(share, Days(overrides)) for share, overrides in LINES]
    tally, done, days, recovered = {}, 0, 0, 0
    idle = lines[0][1].run([])["wrench_raw"][0].copy()
    while done < ticks:
        rng = np.random.default_rng([seed, days])
        k = int(rng.choice(len(lines), p=[share for share, _ in lines]))
        samples = lines[k][1].run(script(rng, idle))
        fault = broken(samples, lines[k][1].constants)
        assert not fault, f"{fault}: seed {seed}, day {days}, line {k}"
        last = samples[-1]
        key = (int(last["safety_state"]), int(last["phase"]), int(samples["phase"].max()))
        tally[key] = tally.get(key, 0) + 1
        recovered += recoveries(samples)
        done, days = done + len(samples), days + 1
    return done, days, tally, recovered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=float, default=1e7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    done, days, tally, recovered = campaign(options.ticks, options.seed)
    print(f"{done} ticks in {days} runs with {recovered} recoveries, no violation, {time.perf_counter() - began:.0f} s")
    for (state, phase, furthest), count in sorted(tally.items(), key=lambda item: -item[1]):
        print(f"  {count:6d} ended with safety_state {state}, phase {phase}, furthest phase {furthest}")


if __name__ == "__main__":
    main()
