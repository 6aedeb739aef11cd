"""Time of the platform kinematics, with the roll-pitch-yaw scheme of LinuxCNC's genhexkins (our rewrite, C) in the same run.

    python tools/bench_stewart.py [--stand docking_stand] [--rounds 201] [--json FILE]

Method: 256 random poses inside all strokes; warm seeds are the poses of 1 ms ago at the greatest leg rate, cold seeds are the neutral
pose. A sample is one pass over all cases, C to C, independent calls one after another; cases are interleaved: every round takes every
row once. Figures are ns per call: least and median over the rounds; ratios are of medians. The peer is compiled here with the flags of
the kernels, iterates to 1e-9 (sum of the length errors) and at most 120 times.
"""

import argparse
import ctypes
import json
import platform as host
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from rt_kernels.extends import read_tables
from rt_kernels.stewart.platform import (
    Platform,
    chord_batch,
    forward_batch,
    inverse_batch,
    place_batch,
    twist_batch,
)

STANDS = Path(__file__).resolve().parents[1] / "stand_configs" / "stands"
CASES = 256
FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared"]
TARGETS_NS = {"inverse with rates": 60.0, "forward, 3 warm steps": 800.0}


def shipped(name: str) -> Platform:
    return Platform.from_dict(read_tables(STANDS / f"{name}.toml")["platform"], name)


def cases(platform: Platform) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Poses (n, 7), twists (n, 6) at the greatest leg rate, lengths (n, 6), warm seeds (n, 7)."""
    rng = np.random.default_rng(1)
    poses = []
    while len(poses) < CASES:
        n = 4 * CASES
        turn = Rotation.from_rotvec(rng.uniform(-0.6, 0.6, (n, 3))) * Rotation.from_quat(platform.neutral_pose[3:])
        tried = np.column_stack([platform.neutral_pose[:3] + rng.uniform(-1.0, 1.0, (n, 3)), turn.as_quat()])
        poses += list(tried[place_batch(platform, tried)[0] == 0])
    X = np.array(poses[:CASES])
    V = rng.normal(size=(CASES, 6))
    lengths, rates = inverse_batch(platform, X, V)
    V *= (platform.leg_rate_max / np.abs(rates).max(axis=1))[:, None]
    seeds = np.column_stack([X[:, :3] - 1e-3 * V[:, :3], (Rotation.from_rotvec(-1e-3 * V[:, 3:]) * Rotation.from_quat(X[:, 3:])).as_quat()])
    return X, V, lengths, seeds


def compile_peer(folder: Path) -> ctypes.CDLL:
    library = folder / "peer.so"
    source = Path(__file__).with_name("bench_stewart_peer.c")
    subprocess.run(["cc", *FLAGS, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


class Peer:
    """The roll-pitch-yaw scheme on the same cases."""

    def __init__(self, library: ctypes.CDLL, platform: Platform) -> None:
        self.call = library.forward_many
        self.call.restype = ctypes.c_long
        self.base, self.joints = (np.ascontiguousarray(a) for a in (platform.base_joints, platform.platform_joints))

    def forward(self, lengths: np.ndarray, poses: np.ndarray) -> int:
        """Replaces the poses (n, 6) by the result; returns the sum of the steps."""
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (self.base, self.joints, lengths, poses)]
        return self.call(ctypes.c_int(len(lengths)), *pointers, ctypes.c_double(1e-9), ctypes.c_int(120))


def as_angles(X: np.ndarray) -> np.ndarray:
    """Poses (n, 7) as x, y, z, roll, pitch, yaw."""
    return np.column_stack([X[:, :3], Rotation.from_quat(X[:, 3:]).as_euler("xyz")])


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return host.machine()


def measure(platform: Platform, rounds: int) -> dict:
    X, V, lengths, warm = cases(platform)
    cold = np.tile(platform.neutral_pose, (CASES, 1))
    rates = inverse_batch(platform, X, V)[1]
    J = np.array([platform.inverse_jacobian(x) for x in warm])
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(compile_peer(Path(folder)), platform)
        warm6, cold6, spare = as_angles(warm), as_angles(cold), np.empty((CASES, 6))

        def run_peer(seeds: np.ndarray) -> int:
            spare[:] = seeds
            return peer.forward(lengths, spare)

        # correct before fast: both give the pose
        for seeds, steps in ((warm, 3), (cold, 10)):
            status, found = forward_batch(platform, lengths, seeds, steps)
            error = np.abs(found[:, :3] - X[:, :3]).max()
            if status.any() or not error <= 1e-10:
                raise SystemExit(f"forward kinematics is wrong: {np.count_nonzero(status)} without a pose, error {error:.1e} m")
        steps_warm, peer_error = run_peer(warm6) / CASES, np.abs(spare[:, :3] - X[:, :3]).max()
        steps_cold = run_peer(cold6) / CASES
        if min(steps_warm, steps_cold) < 0:
            raise SystemExit("the peer finds no pose in one of the cases")
        rows = {
            "inverse with rates": lambda: inverse_batch(platform, X, V),
            "inverse with rates, margin, condition": lambda: place_batch(platform, X),
            "forward, 3 warm steps": lambda: forward_batch(platform, lengths, warm, 3),
            "forward, 2 warm steps": lambda: forward_batch(platform, lengths, warm, 2),
            "forward, 6 cold steps": lambda: forward_batch(platform, lengths, cold, 6),
            "forward, one chord step": lambda: chord_batch(platform, lengths, J, warm),
            "twist from leg rates": lambda: twist_batch(platform, X, rates),
            "roll-pitch-yaw scheme, warm": lambda: run_peer(warm6),
            "roll-pitch-yaw scheme, cold": lambda: run_peer(cold6),
        }
        times: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(rounds):
            for name, call in rows.items():
                begin = time.perf_counter_ns()
                call()
                times[name].append((time.perf_counter_ns() - begin) / CASES)
    medians = {name: float(np.median(t)) for name, t in times.items()}
    ours = forward_batch(platform, lengths, warm, 3)[1]
    return {
        "stand": platform.name,
        "machine": processor(),
        "cases": CASES,
        "rounds": rounds,
        "median_ns": medians,
        "least_ns": {name: float(min(t)) for name, t in times.items()},
        "peer_steps": {"warm": steps_warm, "cold": steps_cold},
        "position_error_m": {"ours": float(np.abs(ours[:, :3] - X[:, :3]).max()), "peer": float(peer_error)},
        "ratio_to_peer_warm": medians["forward, 3 warm steps"] / medians["roll-pitch-yaw scheme, warm"],
        "ratio_to_peer_cold": medians["forward, 6 cold steps"] / medians["roll-pitch-yaw scheme, cold"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stand", default="docking_stand", help="name of a shipped stand")
    parser.add_argument("--rounds", type=int, default=201)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    result = measure(shipped(args.stand), args.rounds)
    print(f"{result['stand']} on {result['machine']}; {CASES} cases, {args.rounds} rounds; kernels and peer: {' '.join(FLAGS[:4])}")
    print(f"{'':40s}{'median ns':>10s}{'least ns':>10s}{'target':>8s}")
    for name, median in result["median_ns"].items():
        print(f"{name:40s}{median:10.1f}{result['least_ns'][name]:10.1f}{TARGETS_NS.get(name, ''):>8}")
    error, steps = result["position_error_m"], result["peer_steps"]
    print(f"ratio to the roll-pitch-yaw scheme: warm {result['ratio_to_peer_warm']:.2f}, cold {result['ratio_to_peer_cold']:.2f} "
          f"(it takes {steps['warm']:.1f} and {steps['cold']:.1f} steps)")  # fmt: skip
    print(f"greatest position error: {error['ours']:.1e} m, the scheme's {error['peer']:.1e} m")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
