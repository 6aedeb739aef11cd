"""What the safety stage makes of wrong sensors, of right ones, and of drives that do not obey, in process: three tables.

    python tools/trip_tables.py [--sensors] [--power] [--programme NAME ...] [--markdown]
    python tools/trip_tables.py --quiet [--seed 2 --seed 3 ...] [--draws 1]

`--sensors`: each programme is simulated once whole, which is its prediction (course of the force by depth, peak), and again with each wrong
sensor. Printed: when it began, faults of the trip, when it came, the largest true force on the load cell (weight taken off) up to 50 ms
after the trip, as a share of the predicted peak; behind the docking, when springs part the units, of the whole run's where that is more. A
row is as it should be when that share stays within 1.2, or the force within 200 N, or nothing has tripped and both are so to the end. The
whole run first must have no stop.

`--quiet`: each variant of each shipped programme is simulated as it is, and again with other draws of the noise, held against the first as
its prediction; with `--draws` against so many, of other seeds. The closed loop ends after 20 s, an operator may fly no longer. Printed:
each run with a stop by a sensor that was judged wrong (`SENSE`): there is to be none.

`--power`: on each stand in software a leg runs away, jams, the emergency stop is operated, the supply is lost, a hose bursts, while the
platform approaches. Printed: fault, when it came, when the power of the axis was taken after it, when the legs stood, the greatest way and
speed of a leg from the injection on. `--markdown`: as a table in Markdown.
"""

import argparse
import copy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.simulated.injections import HYDRAULIC, IN_PROCESS  # noqa: E402
from hil_server.config import SHIPPED, load_test  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.predict.course import course, together  # noqa: E402
from hil_server.run.programme import is_programme, load_programme  # noqa: E402
from rt_kernels.codes import fault_names  # noqa: E402
from rt_kernels.layout import CODES, FAULTS, RUNS, SAMPLE_DTYPE  # noqa: E402

# programme -> stand in the place of its own, where that has no drives and no sensor
PROGRAMMES = {"docking": "", "docking_tuned": "", "virtual_docking_hydraulic": "", "elastic_contact": "", "rubbing_contacts": "",
              "idss_docking": ""}  # fmt: skip
STOP = sum(mask for _, mask, severity, *_ in FAULTS if severity == "stop")
BLOCKED = RUNS["setpoint_status"]["blocked"]
EARLY_S = 0.3
# a sensor is judged wrong
SENSE = {"sensor_frozen", "tare_wrong", "force_without_contact", "contact_without_force", "force_beyond_prediction", "leg_jump",
         "records_differ", "leg_forces_differ"}  # fmt: skip
FLIGHT_S = 20.0
# name, injection, index, value, when: "early", or s after the first contact
WRONG = [
    ("stuck", "sensor_frozen", 0, 0.0, "early"),
    ("stuck in contact", "sensor_frozen", 0, 0.0, 0.05),
    *((f"gain x {g:g}", "sensor_gain", 0, g, "early") for g in (0.1, 0.3, 0.5, 0.7, 1.5, 3.0)),
    *((f"drift {d:g} N/s", "sensor_drift", 0, d, "early") for d in (0.2, 1.0, 5.0, 20.0, 100.0)),
    ("X and Y exchanged", "sensor_exchanged", 0, 0.0, "early"),
    ("leg jumps 100 mm", "transducer_offset", 2, 0.1, "early"),
    ("leg jumps in contact", "transducer_offset", 2, 0.02, 0.05),
]  # fmt: skip
STANDS = {"docking": "docking_stand", "hydraulic": "hydraulic_stand", "electric": "electric_stand"}
DRIVES = [
    ("runaway 0.2 m/s", "leg_runaway", 2, 0.2),
    ("runaway -0.2 m/s", "leg_runaway", 2, -0.2),
    ("jam", "leg_stuck", 2, 0.0),
    ("drive leaves its state", "drive_disabled", 2, 0.0),
    ("emergency stop", "chain_tripped", 0, 0.0),
    ("supply lost", "supply_loss", 0, 0.05),
    ("hose burst", "line_burst", 2, 2e-4),
]  # fmt: skip


def run(config, every=2):
    """The test in process to its end. Returns its records, and of every `every` ticks (tick, true wrench on the cell (6,), legs (6,), their
    rates (6,))."""
    test = assembly.simulation(config)
    plant = next((port.plant for port in test.ports if hasattr(port, "plant")), None)  # an ideal stand has none
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    clock = test.line.clock
    clock.pause_every(every, test.line.sample)
    taken, true = [], []
    while not taken or clock.paused:
        test.block.heartbeat()
        test.line.run()
        if plant is not None:
            state = plant.state()
            true.append((clock.tick, *state["F_S"], *state["leg"], *state["leg_rate"]))
        while records := test.block.drain(4096):
            taken.append(records)
    return np.frombuffer(b"".join(taken), dtype), np.array(true), test


def trip_of(records):
    """Index of the first tick with a stop, None without, and the names of the faults of that tick."""
    found = np.flatnonzero(records["faults"] & STOP)
    return (None, []) if not len(found) else (int(found[0]), fault_names(int(records["faults"][found[0]]) & STOP))


def loads(records, true):
    """Largest true force (weight taken off) until the docking ends, and behind it."""
    force = np.linalg.norm(true[:, 1:4] - true[0, 1:4], axis=1)
    over = records["phase"][np.minimum(np.searchsorted(records["tick"], true[:, 0]), len(records) - 1)] >= CODES["phase"]["finish"]
    return force[~over].max(initial=0.0), force[over].max(initial=0.0)


def injected(name, index, value, at_s):
    return f"stand.virtual.faults=[{{fault='{name}', at_s={at_s}, index={index}, value={value}}}]"


def sensors(programmes):
    good = True
    for programme in programmes:
        stand = PROGRAMMES.get(programme)
        with_stand = [f"test.stand={SHIPPED}/stands/{stand}.toml"] if stand else []
        base, true, test = run(load_test(programme, with_stand))
        found = course(base, float(test.context["start"].X_TA[0]), test.context["period_s"])
        at, faults = trip_of(base)
        peak = found.get("predicted_force_n", 0.0)
        contact = float(base["first_contact_time"][-1])
        print(f"{programme}: whole run {len(base)} ticks, stop {'+'.join(faults) or 'none'}, first contact {contact:.2f} s, "
              f"predicted peak {peak:.0f} N, course of {len(found.get('course_force_n', []))} points")  # fmt: skip
        good = good and at is None
        keys = [*with_stand, *(f"safety.{key}={value}" for key, value in found.items())]
        parting = loads(base, true)[1]
        again, _, _ = run(load_test(programme, keys))
        at, faults = trip_of(again)
        print(f"  {'quiet, with its prediction':26s} stop {'+'.join(faults) or 'none'}")
        good = good and at is None
        for name, fault, index, value, when in WRONG:
            at_s = EARLY_S if when == "early" else contact + when
            records, true, _ = run(load_test(programme, [*keys, injected(fault, index, value, round(at_s, 3))]))
            at, faults = trip_of(records)
            until = len(true) if at is None else int(np.searchsorted(true[:, 0], records["tick"][at] + 50))
            most = loads(records, true[:until])
            share, part = max(zip(np.divide(most, np.maximum((peak, max(peak, parting)), 1e-9)), most, strict=True))
            fine = share <= 1.2 or max(most) <= 200.0
            good = good and fine
            came = "-" if at is None else f"{records['time_ns'][at] * 1e-9 - at_s:7.3f} s"
            print(f"  {name:26s} {'ok ' if fine else 'BAD'} at {at_s:6.2f} s, trip after {came:>10s}, true {part:7.0f} N = "
                  f"{share:5.2f} of the peak  {'+'.join(faults) or 'none'}", flush=True)  # fmt: skip
    return good


def variants():
    """Name and configuration of every variant of every shipped programme that closes the loop."""
    for file in sorted((SHIPPED / "programmes").glob("*.toml")):
        if "campaign" in file.stem:
            continue
        found = load_programme(file)[1] if is_programme(file) else [None]
        for number, one in enumerate(found):
            config = load_test(file) if one is None else one.config
            if "contact_max_s" in config.guidance:
                yield f"{file.stem} {'' if one is None else number}".strip(), config


def with_noise(config, seed=None, safety=()):
    """The configuration with this draw of the stand's noise (none: its own), a loop closed for FLIGHT_S at most, these keys of [safety]."""
    document = copy.deepcopy(config.document)
    document["guidance"]["contact_max_s"] = min(FLIGHT_S, document["guidance"]["contact_max_s"])
    document["safety"] |= dict(safety)
    if seed is not None and "seed" in document["stand"]["virtual"]:
        document["stand"]["virtual"]["seed"] = seed
    return replace(config, document=document)


def quiet(seeds, programmes, draws):
    runs, alarms, stopped = 0, 0, 0
    for name, config in variants():
        if programmes and name.split()[0] not in programmes:
            continue
        found = []
        for seed in (None, *range(101, 100 + draws)):
            base, _, test = run(with_noise(config, seed), every=100)
            found.append(course(base, float(test.context["start"].X_TA[0]), test.context["period_s"]))
        found = together(found)
        for seed in seeds:
            records, _, _ = run(with_noise(config, seed, found), every=100)
            at, faults = trip_of(records)
            runs, stopped = runs + 1, stopped + (at is not None)
            if wrong := SENSE & set(faults):
                alarms += 1
                print(f"{name}, seed {seed}: {'+'.join(sorted(wrong))} at {records['time_ns'][at] * 1e-9:.3f} s", flush=True)
            elif at is not None:
                print(f"{name}, seed {seed}: stop {'+'.join(faults)} at {records['time_ns'][at] * 1e-9:.3f} s, no sensor's", flush=True)
    print(f"{runs} runs, {alarms} false alarms; {stopped} with a stop of any kind")
    return not alarms


def power(markdown):
    good = True
    if markdown:
        print("| stand | what | fault | power off after it | legs stand after it | greatest way | greatest speed |")
        print("|---|---|---|---|---|---|---|")
    for label, stand in STANDS.items():
        for name, fault, index, value in DRIVES:
            if fault not in (IN_PROCESS if label == "docking" else HYDRAULIC) or (fault == "line_burst" and label == "electric"):
                continue
            config = load_test("docking", [f"test.stand={SHIPPED}/stands/{stand}.toml", injected(fault, index, value, 3.0)])
            records, true, _ = run(config, every=1)
            at, faults = trip_of(records)
            if at is None:
                print(f"{label} {name}: no stop")
                good = False
                continue
            off = np.flatnonzero(records["setpoint_status"] & BLOCKED)
            period_s = 1e-9 * float(records["time_ns"][1] - records["time_ns"][0])
            since = true[:, 0] >= 3.0 / period_s
            rate = np.abs(true[since, 13:19]).max(axis=1)
            tick = true[since, 0]
            moving = np.flatnonzero(rate > 1e-3)
            stood = (tick[moving[-1]] - records["tick"][at]) * period_s if len(moving) else 0.0
            way = np.abs(true[since, 7:13] - true[since, 7:13][0]).max()
            taken = None if not len(off) else (records["tick"][off[0]] - records["tick"][at]) * period_s
            cells = [label, name, "+".join(faults), "kept" if taken is None else f"{1e3 * taken:.0f} ms", f"{1e3 * max(stood, 0):.0f} ms",
                     f"{1e3 * way:.0f} mm", f"{1e3 * rate.max():.0f} mm/s"]  # fmt: skip
            print("| " + " | ".join(cells) + " |" if markdown else "  ".join(f"{cell:24s}" for cell in cells), flush=True)
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sensors", action="store_true")
    p.add_argument("--power", action="store_true")
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--seed", type=int, action="append", help="of --quiet (default: 2)")
    p.add_argument("--draws", type=int, default=1, help="of --quiet: simulations that make a prediction")
    p.add_argument("--programme", action="append", help=f"of --sensors one of {', '.join(PROGRAMMES)}; of --quiet any shipped one")
    p.add_argument("--markdown", action="store_true")
    options = p.parse_args()
    good = True
    if options.quiet:
        good = quiet(options.seed or [2], options.programme, options.draws)
    if options.sensors or not (options.power or options.quiet):
        good = sensors(options.programme or PROGRAMMES)
    if options.power:
        good = power(options.markdown) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
