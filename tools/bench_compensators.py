"""What each compensator costs per tick: median of the added time over `none`, in contact.

Use: `python tools/bench_compensators.py`.

Exit code 1 when the recommended one (`RECOMMENDED`) adds more than `MAX_S`.
"""

import argparse
import statistics
import sys

import numpy as np

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.compensation.timing import step_times
from rt_kernels.layout import CODES

RECOMMENDED = "lead_and_pose_force"
MAX_S = 1e-6
KEYS = {
    "pose_referenced_force": {"stiffness_n_per_m": 1e5},
    "lead_and_pose_force": {"stiffness_n_per_m": 1e5},
    "phased": {"contact": {"part": "lead_and_pose_force", "stiffness_n_per_m": 1e5}},
}


def added_cost(repeats=5):
    """Compensator → median added seconds a tick over `none`."""
    test = assembly.simulation(load_test("stand_configs/programmes/elastic_contact.toml"))
    context, sample = test.context, test.line.sample
    sample["periods"], sample["contact"], sample["motion"] = 1, 1, CODES["motion"]["free"]
    sample["F_T"], sample["A_TA"], sample["kinetic_energy"] = 100.0, 0.1, 0.06

    def median(name):
        part = registry.part("compensation", name)
        built = part(**KEYS.get(name, {}), **{wanted: context[wanted] for wanted in part.CONTEXT})
        return min(float(np.median(step_times(built, sample.copy()))) for _ in range(repeats))

    base = median("none")
    return {name: median(name) - base for name in sorted(registry.PARTS["compensation"])}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    costs = added_cost()
    for name, seconds in costs.items():
        print(f"{name:24s} {seconds * 1e9:8.1f} ns")
    print(f"{'median of all':24s} {statistics.median(costs.values()) * 1e9:8.1f} ns")
    sys.exit(costs[RECOMMENDED] > MAX_S)
