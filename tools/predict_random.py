"""Prediction against the run on random hydraulic stands and contacts.

Use: `python tools/predict_random.py [--cases 200] [--processes 2] [--out FILE.jsonl]`.

Each case draws a stand (mass, supply, friction, overlap, oil, delay of the preset), what an identification would say of it (the same
parameters, each wrong by its standard deviation), and a contact of the programme elastic_contact: frequency, speed, direction, offset,
place of the unit, method, wrong stiffness, noise of the sensors. `predict` is asked with the identified stand; then the programme runs on
the true one, with noise, limits and monitors. Printed: how near e was foreseen, and whether a run that trips had been called good.
"""

import argparse
import json
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hil_server.config import load_test  # noqa: E402
from hil_server.config.checks import check_part, part_table  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.predict.contact_line import mode_at  # noqa: E402
from hil_server.predict.prediction import predict  # noqa: E402
from tools.contact_map import measured  # noqa: E402

STAND = "stand_configs/stands/hydraulic_stand.toml"
PROGRAMME = "stand_configs/programmes/elastic_contact.toml"
METHODS = ("none", "phase_lead", "polynomial", "pose_referenced_force", "smith", "energy_cap", "lead_and_pose_force")
# key → how far the true stands are spread about the preset: factors between 1/x and x
SPREAD = {
    "platform_mass_kg": 1.3, "supply_pressure_pa": 1.2, "friction_coulomb_n": 2.0, "valve_overlap": 1.5, "bulk_modulus_pa": 1.3,
    "friction_viscous_n_s_per_m": 1.5, "valve_frequency_hz": 1.2, "drive_delay_s": 1.5, "position_gain_per_s": 1.1,
}  # fmt: skip
# key → relative standard deviation of its identification
SIGMA = {
    "platform_mass_kg": 0.005, "supply_pressure_pa": 0.005, "friction_coulomb_n": 0.05, "friction_static_n": 0.1, "valve_overlap": 0.05,
    "bulk_modulus_pa": 0.01, "friction_viscous_n_s_per_m": 0.1, "valve_frequency_hz": 0.03, "drive_delay_s": 0.02,
    "position_gain_per_s": 0.005, "velocity_feedforward": 0.02, "pressure_gain_per_pa": 0.01,
}  # fmt: skip
BAND = 0.02


def drawn(number, seed=1):
    """The case: overrides of the programme, true and identified tables of the stand."""
    random = np.random.default_rng([seed, number])
    config = load_test(PROGRAMME, [f"test.stand={Path(STAND).resolve()}"])
    part = config.stand["virtual"]["part"]
    preset = check_part("simulated", part, {k: v for k, v in config.stand["virtual"].items() if k != "part"})
    true = {k: v for k, v in preset.items() if v is not None}
    for key, factor in SPREAD.items():
        share = math.exp(random.uniform(-1.0, 1.0) * math.log(factor))
        true[key] = true[key] * share
        if key == "platform_mass_kg":
            true["platform_inertia_kg_m2"] = (np.asarray(true["platform_inertia_kg_m2"]) * share).tolist()
        if key == "friction_coulomb_n":
            true["friction_static_n"] = true["friction_static_n"] * share
    true |= {
        "force_noise_n": 0.5 * 2.0 ** random.uniform(-1.0, 1.0),
        "leg_noise_m": 2e-6 * 2.0 ** random.uniform(-1.0, 1.0),
        "seed": int(random.integers(1, 2**31 - 1)),
    }
    known = {k: v * (1.0 + SIGMA[k] * random.standard_normal()) if k in SIGMA else v for k, v in true.items()}
    f, speed = math.exp(random.uniform(0.0, math.log(10.0))), math.exp(random.uniform(math.log(0.01), math.log(0.1)))
    n = random.standard_normal(3)
    n[0] = abs(n[0]) + 0.1
    n /= np.linalg.norm(n)
    point = random.uniform(-0.3, 0.3, 3) * (0.0, 1.0, 1.0) * random.integers(0, 2)
    method = METHODS[random.integers(len(METHODS))]
    sets = {
        "stand.mounting.load_cell_position_m": [float(random.uniform(4.0, 4.5)), 0.0, 0.0],
        "mechanism.normal": n.tolist(), "mechanism.contact_point_m": point.tolist(), "mechanism.plane_point_m": point.tolist(),
        **{f"initial_conditions.velocity_{axis}_m_s": float(speed * n[i]) for i, axis in enumerate("xyz")},
        "compensation.part": method, "guidance.contact_max_s": 0.4 + 1.0 / f + 0.4,
    }  # fmt: skip
    return f, speed, method, random.uniform(0.8, 1.2), sets, {"part": part, **true}, known


def overrides(sets):
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in sets.items()]


def run_case(number, seed=1):
    """One case: what was predicted, what came."""
    begin = time.process_time()
    f, speed, method, share, sets, true, known = drawn(number, seed)

    def test(stiffness):
        sets["mechanism.stiffness_n_per_m"] = stiffness
        if "stiffness_n_per_m" in part_table("compensation", method).parameters:
            sets["compensation.stiffness_n_per_m"] = share * stiffness
        config = load_test(PROGRAMME, [f"test.stand={Path(STAND).resolve()}", *overrides(sets)])
        stand = {k: v for k, v in config.stand.items() if k != "drive_model"} | {"virtual": true, "stand_model": known}
        return replace(config, document={**config.document, "stand": stand})

    config = test(_stiffness(f, sets))
    foreseen = predict(config)
    mode = foreseen.modes[-1]
    found = measured(assembly.simulation(config), mode.screw)
    prediction = {"predicted": _finite(mode.restitution), "within": foreseen.within, "verdict": foreseen.verdict()}
    contact = {"normal": sets["mechanism.normal"], "point": sets["mechanism.contact_point_m"], "stiffness": share}
    own = {"case": number, "frequency_hz": mode.frequency_hz, "speed_m_s": speed, "method": method}
    return own | contact | prediction | found | {"processor_s": round(time.process_time() - begin, 2)}


def _finite(x):
    return x if math.isfinite(x) else None


def _stiffness(f, sets):
    """Of the contact of f Hz along its normal, from the vehicles' inertia."""
    test = assembly.simulation(load_test(PROGRAMME))
    n, p = np.asarray(sets["mechanism.normal"]), np.asarray(sets["mechanism.contact_point_m"])
    return mode_at(test, f, 0.0, np.concatenate([n, np.cross(p, n)])).stiffness


def report(rows):
    """The two figures of the prediction, and the worst cases."""
    ran = [r for r in rows if r["e"] is not None]
    gaps = [math.inf if r["predicted"] is None else abs(r["predicted"] - r["e"]) for r in ran]
    trips = [r for r in rows if "trips" in r["why"]]
    good = [r for r in trips if r["within"]]
    near = sum(gap <= BAND for gap in gaps)
    share = near / max(1, len(ran))
    print(f"{len(rows)} cases: {len(ran)} rebounds, {len(trips)} trips, {len(rows) - len(ran) - len(trips)} without a measurable e")
    print(f"e within {BAND} of the prediction: {near} of {len(ran)} ({share:.1%}); trips that were predicted good: {len(good)}")
    for _, r in sorted(zip(gaps, ran, strict=True), key=lambda pair: -pair[0])[:12]:
        what = f"{r['method']} {r['frequency_hz']:.2f} Hz {r['speed_m_s']:.3f} m/s"
        print(f"  case {r['case']}: {what}: predicted {r['predicted']}, run {r['e']:.4f}")
    for r in good:
        print(f"  case {r['case']}: predicted good, ended in {r['why']}")
    return share, len(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="a line of JSON a case")
    args = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(args.processes) as pool:
        jobs = [pool.submit(run_case, number, args.seed) for number in range(args.first, args.first + args.cases)]
        begin = time.monotonic()
        for i, job in enumerate(as_completed(jobs), 1):
            rows.append(job.result())
            if i % 20 == 0:
                print(f"{i} of {args.cases}, {(time.monotonic() - begin) / i * (args.cases - i):.0f} s left", file=sys.stderr, flush=True)
    rows.sort(key=lambda row: row["case"])
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report(rows)


if __name__ == "__main__":
    main()
