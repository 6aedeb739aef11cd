"""Time of a tick of the dynamics part `two_crafts`: `python tools/bench_two_crafts.py [--json FILE]`.

Free flight under a contact wrench, a rigid target craft, one core: a free-flyer with seven joints, a craft with a flexible boom of twelve
modes, both also latched to the target and with the step of second order; two shipped crafts on either side, of 16 joints and 108 modes, and
of 19 joints and 104 modes with a module that the arm of one holds and leads; beside them `two_bodies` with the masses of the first.
`StagePart.repeat` calls the step in C, without the GIL; processor time of the thread, least of the medians of several rounds, cases
interleaved. Printed: microseconds a tick and the ratio to `two_bodies`; exit code 1 where a bound of the table below is missed.
"""

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles  # noqa: E402
from rt_kernels.dynamics.two_bodies import TwoBodies  # noqa: E402
from rt_kernels.dynamics.two_crafts import TwoCrafts  # noqa: E402
from rt_kernels.layout import CODES  # noqa: E402
from rt_kernels.model.beam_elements import Section, straight_beam  # noqa: E402
from rt_kernels.model.craft import Craft, CraftPort, JointSettings, Link, at_rest  # noqa: E402
from rt_kernels.model.craft_file import read_craft  # noqa: E402
from rt_kernels.model.modes import ModalBody, clamped_modes  # noqa: E402
from tests.first_sample import closed  # noqa: E402

BOUNDS_US = {"seven joints": 6.0, "twelve modes": 15.0}
SHIPPED = {"station and ship": ("vehicles/ship_four_drives", "vehicles/station_twelve_joints"),
           "arm on the station": ("vehicles/mim1_module", "manipulators/station_arm")}  # fmt: skip
KEYS = {"arm on the station": {"grasp_port": "grapple"}}
BOUNDS_US |= dict.fromkeys([*SHIPPED, *(f"{name}, latched" for name in SHIPPED)], 120.0)
SECOND = ", second order"
BOUND_SECOND = 2.2  # times the first order
ROOT = ModalBody.rigid(6000.0, (0.1, 0.0, 0.0), (5000.0, 20000.0, 21000.0))
STATION = Vehicle(420000.0, np.diag([1e7, 3e7, 3e7]).tolist(), [-15.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def free_flyer() -> Craft:
    """A craft with an arm of seven joints: revolute, with springs, dampers and friction; the port on the last link."""
    links, parent = [Link("craft", ROOT, joint="free")], "craft"
    for k in range(7):
        body = ModalBody.rigid(80.0, (0.5, 0.0, 0.0), (2.0, 8.0, 8.0))
        links.append(Link(f"link{k}", body, parent, None, "revolute", np.eye(3)[k % 3], (1.0, 0.0, 0.0)))
        parent = f"link{k}"
    joints = tuple(JointSettings(f"link{k}", angle=0.1, stiffness=1e4, damping=100.0, friction=1.0) for k in range(7))
    return Craft("free-flyer", tuple(links), (CraftPort("docking", parent, np.array([0.8, 0.0, 0.0])),), joints)


def boom() -> Craft:
    """A rigid craft with a boom of twelve modes, the port at its tip."""
    section = Section(7e10, 2.7e10, 1e-3, 1e-6, 1e-6, 2e-6, 2700.0)
    frame = straight_beam(10.0, section, 20)
    _, X = clamped_modes(frame, 12, frame.node_dofs(0))
    body = frame.modal_body(X, {"tip": frame.port(frame.node_dofs(20), (10.0, 0.0, 0.0), X)})
    links = (Link("craft", ROOT, joint="free"), Link("boom", body, "craft", None, "fixed", position=(1.5, 0.0, 0.0)))
    return Craft("boom", links, (CraftPort("docking", "boom", node="tip"),))


def case(part_class: type, craft: Craft | None, motion: str) -> tuple:
    """(part, sample, aux) in the middle of a flight."""
    mass = ROOT.mass if craft is None else sum(link.body.mass for link in craft.links)
    active = Vehicle(mass, np.diag([5000.0, 20000.0, 21000.0]).tolist(), [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], craft=craft)
    return flown(part_class, Vehicles(active, STATION), motion)


def shipped(name: str) -> Vehicle:
    """A shipped craft."""
    craft = read_craft(Path(__file__).parents[1] / "stand_configs" / f"{name}.toml")
    rest = at_rest(craft)
    return Vehicle(rest.mass, rest.inertia.tolist(), craft=craft)


def flown(part_class: type, vehicles: Vehicles, motion: str, **keys: object) -> tuple:
    """(part, sample, aux) of two vehicles in the middle of a flight; an arm is led by hand."""
    part = part_class(period_s=5e-4, vehicles=vehicles, start=Start(IDENTITY, np.zeros(6)), range_max_m=1000.0, **keys)
    sample, aux = closed(part, IDENTITY, [0.01, 0.002, 0.0, 1e-3, -1e-3, 2e-3])
    sample["motion"], sample["F_T_corrected"] = CODES["motion"][motion], [0.5, 0.2, -0.1, 0.1, 0.05, -0.02]
    sample["arm_mode"], sample["operator_rate"] = CODES["arm_mode"]["hand"], [1e-3, 2e-4, 0.0, 1e-4, 0.0, 0.0]
    part.repeat(sample, 200, aux)
    return part, sample, aux


def measure(cases: dict[str, tuple], rounds: int = 12, samples: int = 9, ticks: int = 300) -> dict[str, float]:
    """Microseconds a tick of each case."""
    best = dict.fromkeys(cases, np.inf)
    for _ in range(rounds):
        for name, (part, sample, aux) in cases.items():
            times = []
            for _ in range(samples):
                before = time.thread_time_ns()
                part.repeat(sample, ticks, aux)
                times.append((time.thread_time_ns() - before) / ticks / 1000.0)
            best[name] = min(best[name], float(np.median(times)))
    return best


def drift(ticks: int) -> int:
    """Prints how far linear and angular momentum of the craft are from where they were, relative; 1 where that is above 1e-12."""
    worst = 0.0
    for name, craft in (("seven joints", free_flyer()), ("twelve modes", boom())):
        for motion in ("free", "joined"):
            part, sample, aux = case(TwoCrafts, craft, motion)
            sample["F_T_corrected"] = 0.0
            part.repeat(sample, 1, aux)
            before = sample["momentum"][0].copy()
            part.repeat(sample, ticks, aux)
            far = [float(np.linalg.norm((sample["momentum"][0] - before)[half]) / np.linalg.norm(before[half]))
                   for half in (slice(0, 3), slice(3, 6))]  # fmt: skip
            worst = max(worst, *far)
            print(f"  {name}, {motion}: {ticks} ticks, linear {far[0]:.2g}, angular {far[1]:.2g} of what there was")
    return 1 if worst > 1e-12 else 0


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--momentum", type=int, metavar="TICKS", help="instead: how far momentum drifts over so many ticks without a load")
    options = parser.parse_args()
    if options.momentum:
        return drift(options.momentum)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    cases = {"two_bodies": case(TwoBodies, None, "free"), "one body": case(TwoCrafts, None, "free"),
             "seven joints": case(TwoCrafts, free_flyer(), "free"), "twelve modes": case(TwoCrafts, boom(), "free"),
             "seven joints, latched": case(TwoCrafts, free_flyer(), "joined"), "twelve modes, latched": case(TwoCrafts, boom(), "joined")}
    cases |= {f"{name}{SECOND}": case(TwoCrafts, replace(craft, step="second_order"), "free")
              for name, craft in (("seven joints", free_flyer()), ("twelve modes", boom()))}  # fmt: skip
    cases |= {f"{name}{end}": flown(TwoCrafts, Vehicles(*map(shipped, pair)), motion, **KEYS.get(name, {}))
              for name, pair in SHIPPED.items() for end, motion in (("", "free"), (", latched", "joined"))}  # fmt: skip
    us = measure(cases)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; least of the medians of processor time, us a tick")
    missed = []
    for name, value in us.items():
        bound = BOUNDS_US.get(name) or (BOUND_SECOND * us[name.removesuffix(SECOND)] if name.endswith(SECOND) else None)
        missed += [name] if bound and value > bound else []
        print(f"  {name:26s} {value:7.2f}  {value / us['two_bodies']:6.1f} x two_bodies{f'  (bound {bound:.3g})' if bound else ''}")
    if options.json:
        Path(options.json).write_text(json.dumps(us, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
