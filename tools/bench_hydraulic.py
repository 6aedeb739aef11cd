"""Time of the hydraulic machine: its step beside a plain C version of the same equations, a docking on it in process, and served.

    python tools/bench_hydraulic.py [--rounds 41] [--no-docking] [--served]

Step: preset with 50 l of gas, drives on a setpoint 10 mm away, 50 us; a round is 20000 steps of ours (called from Python: once for all
of them), then of the peer, which is compiled here with -O3 -march=native (ours is built for every x86-64 machine, and keeps its bits
there). Figures are ns of processor time a step: least and median over the rounds; the ratio is of medians. The peer has a smooth
friction (exp, tanh), no lines, no bristles and no faults. Docking: the shipped docking programme with stand hydraulic_stand, whole line
and plant; simulated time over processor time of the whole process. Served: the same live, the stand a process of its own on the other
core, then with its linear drives: ticks that the loop missed and how late it was; what others do on the machine shows in both.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.simulated.hydraulic_machine import HydraulicMachine
from hil_server.config import SHIPPED, load_test
from hil_server.run.session import Options, run_live
from rt_kernels.stewart.platform import Platform

ROOT = Path(__file__).resolve().parent.parent
PROGRAMME = SHIPPED / "programmes" / "docking.toml"
STAND = f"test.stand={SHIPPED}/stands/hydraulic_stand.toml"
LINEAR = f"test.stand={SHIPPED}/stands/docking_stand.toml"
STEPS, STEP_S = 20000, 5e-5
D = ctypes.c_double
PARAMS = (
    [(n, D) for n in "Aa Ab L Va0 Vb0 beta Ci Ce lmin K ptr wv zv slew overlap sigma Fc Fs vs vr cush kc dc kv kf kp whp Kx".split()]
    + [(n, D) for n in "ps0 pt Vg0 kappa pump_max pump_gain m".split()]
    + [("com", D * 3), ("I", D * 9), ("g", D * 3)]
    + [(n, D) for n in "m1 J1 a1 m2 a2 J2".split()]
    + [("base", D * 18), ("plat", D * 18), ("p0", D * 3)]
)
STATE = (
    [("pos", D * 3), ("q", D * 4), ("v", D * 3), ("w", D * 3)]
    + [(n, D * 6) for n in "pa pb x xd hp".split()]
    + [("ps", D), ("y", D * 6), ("yd", D * 6), ("E", D * 8), ("Fh", D * 6)]
)


class Params(ctypes.Structure):
    """`P` of bench_hydraulic_peer.c."""

    _fields_ = PARAMS


class State(ctypes.Structure):
    """`S` of bench_hydraulic_peer.c."""

    _fields_ = STATE


def peer(folder: str) -> ctypes.CDLL:
    """The peer, compiled."""
    out = f"{folder}/peer.so"
    flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", out, str(ROOT / "tools" / "bench_hydraulic_peer.c"), "-lm"], check=True)
    lib = ctypes.CDLL(out)
    lib.hs_time.restype = D
    return lib


def as_peer(machine: HydraulicMachine, platform: Platform) -> Params:
    """Our keys in the peer's names."""
    k = machine.keys
    gain = k["valve_flow_m3_per_s"] / np.sqrt(0.5 * k["valve_pressure_drop_pa"])
    values = {
        "Aa": k["piston_area_a_m2"], "Ab": k["piston_area_b_m2"], "L": platform.leg_length_max - platform.leg_length_min,
        "Va0": k["dead_volume_a_m3"], "Vb0": k["dead_volume_b_m3"], "beta": k["bulk_modulus_pa"], "Ci": k["leakage_internal_m3_per_s_pa"],
        "Ce": k["leakage_external_m3_per_s_pa"], "lmin": platform.leg_length_min, "K": gain, "ptr": k["valve_laminar_pressure_pa"],
        "wv": 2 * np.pi * k["valve_frequency_hz"], "zv": k["valve_damping"], "slew": k["valve_slew_per_s"], "overlap": k["valve_overlap"],
        "sigma": k["friction_viscous_n_s_per_m"], "Fc": k["friction_coulomb_n"], "Fs": k["friction_static_n"],
        "vs": k["friction_stribeck_m_s"], "vr": 5e-4, "cush": k["cushion_length_m"], "kc": k["cushion_stiffness_n_per_m2"],
        "dc": k["cushion_damping_n_s_per_m2"], "kv": k["position_gain_per_s"], "kf": k["velocity_feedforward"],
        "kp": k["pressure_gain_per_pa"],
        "whp": 2 * np.pi * k["pressure_highpass_hz"], "Kx": gain * np.sqrt(k["supply_pressure_pa"] / 2) / k["piston_area_a_m2"],
        "ps0": k["supply_pressure_pa"], "pt": k["tank_pressure_pa"], "Vg0": k["accumulator_gas_m3"], "kappa": k["gas_exponent"],
        "pump_max": k["pump_flow_m3_per_s"], "pump_gain": k["pump_gain_m3_per_s_pa"],
        "m": k["platform_mass_kg"], "com": k["platform_com_m"],
        "I": np.ravel(k["platform_inertia_kg_m2"]), "g": (-9.80665, 0.0, 0.0), "m1": k["cylinder_mass_kg"],
        "J1": k["cylinder_inertia_kg_m2"], "a1": k["cylinder_com_m"], "m2": k["rod_mass_kg"], "a2": k["rod_com_m"],
        "J2": k["rod_inertia_kg_m2"], "base": np.ravel(platform.base_joints), "plat": np.ravel(platform.platform_joints),
        "p0": platform.neutral_pose[:3],
    }  # fmt: skip
    out = Params()
    for name, value in values.items():
        setattr(out, name, type(getattr(out, name))(*value) if np.ndim(value) else value)
    return out


def step(rounds: int) -> None:
    """Our step and the peer's, round by round."""
    platform = Platform.from_dict(load_test(PROGRAMME, [STAND]).stand["platform"])
    machine = HydraulicMachine(platform=platform, step_s=STEP_S)
    target = machine.state()["leg"] + 0.01
    with tempfile.TemporaryDirectory() as folder:
        lib = peer(folder)
        params, state = as_peer(machine, platform), State()
        state.pos[:], state.q[3] = list(platform.neutral_pose[:3]), 1.0
        lib.hs_rest(ctypes.byref(params), ctypes.byref(state))
        rods = (D * 6)(*(target - platform.leg_length_min))
        machine.set_legs(target)
        ours, theirs = [], []
        for _ in range(rounds):
            began = time.thread_time_ns()
            machine.advance(STEPS)
            ours.append((time.thread_time_ns() - began) / STEPS)
            theirs.append(lib.hs_time(ctypes.byref(params), ctypes.byref(state), rods, ctypes.c_long(STEPS), D(STEP_S)))
        apart = np.abs(machine.state()["X_WP"][:3] - state.pos[:]).max()
    a, b = float(np.median(ours)), float(np.median(theirs))
    print(f"step: ours {min(ours):.0f} least, {a:.0f} ns median; C peer {min(theirs):.0f}, {b:.0f} ns; ours / peer {a / b:.2f}")
    print(f"      {STEP_S * 1e9 / a:.0f} x real time at {STEP_S * 1e6:g} us, the machine alone; at the end {apart * 1e6:.0f} um apart")


def served(stand: str) -> None:
    """The docking live, the stand in a process of its own."""
    config = load_test(PROGRAMME, (stand,))
    with tempfile.TemporaryDirectory() as folder:
        summary = run_live(config, Options(out=folder, quiet=True, report=False, force=True))
    late = {key: round(value) for key, value in summary["lateness_us"].items()}
    print(f"served, {config.stand['name']}: {summary['ticks']} ticks at 1 kHz, missed {summary['missed']}, late by us {late}")


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--no-docking", action="store_true")
    parser.add_argument("--served", action="store_true")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} (others on this machine are noise)")
    step(given.rounds)
    if not given.no_docking:
        command = [sys.executable, str(ROOT / "tools" / "bench_virtual_docking.py"), str(PROGRAMME), "--set", STAND]
        subprocess.run(command, check=True)
    if given.served:
        served(STAND)
        served(LINEAR)


if __name__ == "__main__":
    main()
