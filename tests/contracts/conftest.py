"""What every part in the registry is built from: the shipped docking, assembled in process."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.extends import read_tables
from rt_kernels.layout import BITS, CODES, FIELDS
from tests.control.fmu import factory
from tests.first_sample import first_sample
from tests.mechanisms.mesh import drawings

SHIP = "test.active_vehicle=vehicles/transport_ship_thrusters.toml"

# Keys for parts whose keys must agree with each other.
EXAMPLES: dict[tuple[str, str], dict] = {
    ("compensation", "pose_referenced_force"): {"stiffness_n_per_m": 1e5},
    ("compensation", "lead_and_pose_force"): {"stiffness_n_per_m": 1e5},
    ("dynamics", "manipulator_payload"): {"model": "canadarm2.toml", "joint_angles_deg": [0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0]},
    ("compensation", "phased"): {"contact": {"part": "pose_referenced_force", "stiffness_n_per_m": 1e5}},
}
# a file has to be there
MADE = {("control", "fmu"): lru_cache(lambda: factory.keys(factory.folder())), ("mechanisms", "mesh_unit"): lru_cache(drawings.example)}


@pytest.fixture(scope="session")
def simulated():
    """The shipped docking as an assembly, with a ship that has thrusters."""
    return assembly.simulation(load_test(None, [SHIP]))


@pytest.fixture
def build(simulated):
    """Function (role, name) → a new part, with keys that are at least valid."""
    return lambda role, name: assembly.build_part(role, name, valid_keys(role, name), simulated.context)


@pytest.fixture
def keys():
    """Function (role, name) → keys that the part's declaration allows."""
    return valid_keys


def shipped_mechanism(name):
    """Keys of the first shipped file of a mechanism, or nothing: a geometry has to fit together, limits alone do not make one."""
    for path in sorted(Path(__file__).parents[2].joinpath("stand_configs", "mechanisms").glob("*.toml")):
        table = read_tables(path)
        if table.get("part") == name:
            own = {p.key for p in registry.part("mechanisms", name).PARAMETERS}
            return {key: value for key, value in table.items() if key in own}
    return None


def valid_keys(role, name):
    if (role, name) in EXAMPLES:
        return dict(EXAMPLES[role, name])
    if (role, name) in MADE:
        return dict(MADE[role, name]())
    if role == "mechanisms" and (shipped := shipped_mechanism(name)):
        return shipped
    return {p.key: valid_value(p) for p in registry.part(role, name).PARAMETERS if p.required}


def valid_value(p):
    """Some value that the declaration allows."""
    if p.choices:
        return p.choices[0]
    low, high = (p.low if p.low is not None else -1.0), (p.high if p.high is not None else 1.0)
    number = low if p.high is None else high if p.low is None else 0.5 * (low + high)
    if p.kind == "floats":
        return [number] * (p.shape or 1)
    if p.kind == "rows":
        rows, columns = p.shape or (1, 1)
        rows = rows or 2
        return [[number] * columns for _ in range(rows)]
    return {"float": number, "int": round(number), "bool": True, "str": "text", "table": {}, "tables": []}[p.kind]


def samples(first, count, seed=1):
    """`count` samples in which every input and every field of another stage moves by a little: a plausible run through a contact."""
    rng = np.random.default_rng(seed)
    out = []
    for k in range(count):
        s = first.copy()
        s["tick"], s["time_ns"], s["periods"] = k, k * 1_000_000, 1
        for name, kind, shape, *_ in FIELDS:
            if kind != "f8":
                continue
            if name.startswith(("X_", "profile_X")):
                s[name][0, :3] += rng.normal(0.0, 1e-3, 3)
                q = s[name][0, 3:] + rng.normal(0.0, 1e-3, 4)
                s[name][0, 3:] = q / np.linalg.norm(q)
            elif name.startswith("F_"):
                s[name][0] = rng.normal(0.0, 100.0, shape)
            elif name == "wrench_raw":
                s[name][0] = np.round(rng.normal(0.0, 1e6, shape))
            elif name.startswith(("V_", "profile_V", "measured_leg_rate", "leg_rate")):
                s[name][0] = rng.normal(0.0, 0.01, shape)
            elif name in ("measured_leg", "leg_demand", "leg_setpoint"):
                s[name][0] += rng.normal(0.0, 1e-4, shape)
        s["signal_discrete"] = 3 if k > count // 2 else 0
        s["contact"] = int(k > count // 4)
        s["control_request"] = (BITS["control_request"]["press"] if k > count // 4 else 0) | BITS["control_request"]["attitude"]
        if s["contact"][0]:
            s["motion"] = CODES["motion"]["free"]
        s["wrench_sequence"] = k + 1
        s["analogue_chain"] = 1
        out.append(s)
    return out


@pytest.fixture
def stream(simulated):
    """Function (count, seed) → samples around the neutral pose of the stand."""
    platform = simulated.context["platform"]
    first = first_sample(safety_state=CODES["safety_state"]["following"])
    neutral = np.asarray(platform.neutral_pose)
    lengths = platform.leg_lengths(neutral)
    first["X_WP"] = first["X_WP_measured"] = neutral
    for name in ("measured_leg", "leg_demand", "leg_setpoint"):
        first[name] = lengths
    for name in ("X_TA", "X_TA_measured", "profile_X_TA"):
        first[name] = simulated.context["start"].X_TA
    return lambda count, seed=1: samples(first, count, seed)
