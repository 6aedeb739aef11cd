"""Time of one 0.5 ms step of the whole manipulator: arm, drives, controllers, elastic links, payload, outputs (goal: median 6 us).

    python tools/bench_manipulator.py [--rounds 41] [--arms canadarm2,srms,era] [--no-peer] [--core N] [--json FILE]
    python tools/bench_manipulator.py --soak [--minutes 15]

A sample is 64 steps in a row, called as the line calls them (C to C); figures are per step, under a moving operator's command. `by phase`
is the median of single calls over the sixteen steps of the outer loop, less an empty call: the step with the resolved rates is the
longest. The peer is Pinocchio's articulated-body algorithm of the bare arm, alone (no drives, link, payload), in the fastest build of
`tools/bench_multibody.py`; rounds of ours and of the peer alternate. Every arm's accelerations are compared with the peer's before.

--soak: an operator's session at 0.5 ms, run twice in different portions: finite, quaternions of norm 1, joints inside their stops,
momentum of a free vehicle kept, the same bits both times. Steps over 10 us are counted; on a shared machine they say nothing.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from rt_kernels.context import Start, Vehicle, Vehicles  # noqa: E402
from rt_kernels.dynamics.manipulator.payload import ManipulatorPayload  # noqa: E402
from rt_kernels.layout import CODES  # noqa: E402
from rt_kernels.multibody import Tree  # noqa: E402
from tests.first_sample import closed  # noqa: E402

ARMS = {
    "canadarm2": {"joint_angles_deg": [0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0], "locked_joint": "shoulder_roll"},
    "srms": {"joint_angles_deg": [20.0, -60.0, 80.0, -30.0, 10.0, 0.0]},
    "era": {"joint_angles_deg": [0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0], "locked_joint": "shoulder_roll"},
}
PERIOD_S = 5e-4
OUTER = 16
BUDGET_US = 10.0


def part(arm: str, base: str, kernels: str = "fastest", period_s: float = PERIOD_S) -> ManipulatorPayload:
    """An arm with a module of 8 t on a station of 420 t."""
    port = np.array([3.0, 0, 0, 0, 0, 0, 1.0])
    vehicles = Vehicles(
        active=Vehicle(8015.0, np.diag([5532.85, 26811.43, 26811.43]).tolist(), port),
        target=Vehicle(4.2e5, np.diag([1e7, 3e7, 3e7]).tolist(), -5.0 * port + np.array([0] * 6 + [6.0])),
    )
    start = Start(np.array([-1.0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6))
    return ManipulatorPayload(period_s=period_s, vehicles=vehicles, start=start, model=f"{arm}.toml", base=base, kernels=kernels,
                              grapple_position_m=[-0.5, 1.25, 0.0], grapple_angles_deg=[0.0, -90.0, 0.0], **ARMS[arm])  # fmt: skip


def begin(p: ManipulatorPayload) -> tuple[np.ndarray, np.ndarray]:
    """Sample and auxiliary channels with the loop closed and the operator in charge."""
    sample, aux = closed(p, [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    sample["arm_mode"] = CODES["arm_mode"]["hand"]
    sample["rate_frame"] = CODES["rate_frame"]["interface"]
    return sample, aux


def channel(aux: np.ndarray, name: str) -> np.ndarray:
    first = 0
    for declared in ManipulatorPayload.AUX:
        if declared.name == name:
            return aux[first : first + declared.count]
        first += declared.count
    raise KeyError(name)


# ---- time --------------------------------------------------


def peer_cases(arms: list[str], folder: Path):
    """{arm: function () -> ns of the peer's forward dynamics}, and the peer's name."""
    import bench_multibody as bench

    folder.mkdir(parents=True, exist_ok=True)
    harness = bench.build_harness(folder)
    peer, name = bench.build_peer(folder, "clang")
    functions, keep = {}, []
    for arm in arms:
        # gravity off by hand: the peer has the default field, so both are compared with it
        tree = Tree.from_toml(ROOT / "stand_configs" / "manipulators" / f"{arm}.toml")
        rows = bench.aligned_bodies(tree)
        state = bench.states(tree, np.random.default_rng(5))
        arrays = bench.in_order(state)
        context = bench.peer_context(peer, rows, arrays)
        bench.check(tree, arm, state, peer, context)
        cases = bench.Cases(harness)
        for label in ("forward_local", "forward_world"):
            cases.add(label, getattr(peer, f"peer_{label}"), context)
        keep += [tree, arrays]
        functions[arm] = lambda cases=cases, _keep=keep: float(cases.run(1, 31).min())
    return functions, name + ", aba"


def sample_time(p: ManipulatorPayload, sample: np.ndarray, aux: np.ndarray) -> float:
    """Median over 51 samples of 64 steps [ns per step]."""
    out = np.empty(51)
    for k in range(len(out)):
        t = time.perf_counter_ns()
        p.repeat(sample, 64, aux)
        out[k] = (time.perf_counter_ns() - t) / 64.0
    return float(np.median(out))


def by_phase(p: ManipulatorPayload, sample: np.ndarray, aux: np.ndarray, turns: int = 600) -> np.ndarray:
    """Median of single calls for each step of the outer loop [ns]."""
    out = np.empty((turns, OUTER))
    for k in range(out.size):
        t = time.perf_counter_ns()
        p.repeat(sample, 1, aux)
        out.flat[k] = time.perf_counter_ns() - t
    empty = np.empty(2000)
    for k in range(len(empty)):
        t = time.perf_counter_ns()
        p.repeat(sample, 0, aux)
        empty[k] = time.perf_counter_ns() - t
    return np.median(out, axis=0) - np.median(empty)


def measure(arms: list[str], rounds: int, with_peer: bool, folder: Path) -> dict:
    peers, peer_name = peer_cases(arms, folder) if with_peer else ({}, "none")
    result: dict = {"peer": peer_name, "arms": {}}
    for arm in arms:
        runs = {}
        for base, kernels in (("fixed", "fastest"), ("fixed", "general"), ("free", "fastest")):
            p = part(arm, base, kernels)
            sample, aux = begin(p)
            sample["operator_rate"][0] = [0.01, 0.002, -0.001, 0.0005, 0.001, -0.0005]
            p.repeat(sample, 4000, aux)
            runs[f"{base} base, {'generated' if p.generated else 'general'} kernels"] = (p, sample, aux)
        ours: dict[str, list[float]] = {name: [] for name in runs}
        theirs: list[float] = []
        for _ in range(rounds):
            for name, run in runs.items():
                ours[name].append(sample_time(*run))
            if arm in peers:
                theirs.append(peers[arm]())
        table: dict = {"peer_ns": float(np.median(theirs)) if theirs else None, "rows": {}}
        for name, run in runs.items():
            phases = by_phase(*run)
            table["rows"][name] = {"p50_ns": float(np.median(ours[name])), "min_ns": float(np.min(ours[name])),
                                   "phase_usual_ns": float(np.median(phases)), "phase_longest_ns": float(phases.max())}  # fmt: skip
            if theirs:
                table["rows"][name]["ratio"] = float(np.median(np.array(ours[name]) / np.array(theirs)))
        result["arms"][arm] = table
    return result


def show(result: dict) -> None:
    print(f"peer: {result['peer']}; 1-minute load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; goal 6 us median")
    for arm, table in result["arms"].items():
        peer = f", peer {table['peer_ns'] / 1e3:.2f} us" if table["peer_ns"] else ""
        print(f"{arm}{peer}")
        for name, row in table["rows"].items():
            ratio = f", {row['ratio']:.2f} x peer" if "ratio" in row else ""
            print(f"  {name:34s} median {row['p50_ns'] / 1e3:5.2f} us, least {row['min_ns'] / 1e3:5.2f} us{ratio}; by phase: usual "
                  f"{row['phase_usual_ns'] / 1e3:5.2f} us, longest {row['phase_longest_ns'] / 1e3:5.2f} us")  # fmt: skip


# ---- soak --------------------------------------------------


def session(base: str, minutes: float, portion: int) -> dict:
    """An operator's session with contacts: rates, modes and wrench change every quarter of a second. `portion`: steps per call."""
    p = part("canadarm2", base)
    sample, aux = begin(p)
    rng = np.random.default_rng(9)
    steps, change = round(minutes * 60.0 / PERIOD_S), 500
    before, largest = sample["momentum"][0].copy(), {"energy_j": 0.0, "norm": 0.0, "momentum": 0.0, "q_rad": 0.0}
    rate = np.zeros(6)
    digest = hashlib.sha256()
    slow, stiffness = 0, 0.0
    for k in range(steps // change):
        if k % 16 == 0:
            # towards the middle of the working space, with a hand that wanders
            goal = np.concatenate([[-1.0, 0.0, 0.0] - sample["X_TA"][0, :3], -2.0 * sample["X_TA"][0, 3:6]])
            rate = 0.02 * goal + rng.normal(0.0, 1.0, 6) * [0.02, 0.02, 0.02, 0.003, 0.003, 0.003]
            modes = ["hand"] * 6 + ["hold", "single_joint", "brakes"]
            sample["arm_mode"] = CODES["arm_mode"][modes[rng.integers(len(modes))]]
            sample["rate_frame"], sample["arm_target"] = rng.integers(4), 1 + rng.integers(6)
        sample["operator_rate"][0] = rate
        touching = k % 40 < 4
        sample["F_T_corrected"][0] = rng.normal(0.0, 1.0, 6) * ([150.0] * 3 + [60.0] * 3) if touching else 0.0
        for _ in range(change // portion):
            t = time.perf_counter_ns()
            p.repeat(sample, portion, aux)
            slow += (time.perf_counter_ns() - t) / portion > 1e3 * BUDGET_US
        if not (np.isfinite(aux).all() and np.isfinite(sample["X_TA"]).all()) or sample["dynamics_status"][0] & 1:
            raise SystemExit(f"not finite after {(k + 1) * change} steps")
        digest.update(sample.tobytes() + aux.tobytes())
        largest["energy_j"] = max(largest["energy_j"], float(channel(aux, "arm_energy")[0]))
        largest["q_rad"] = max(largest["q_rad"], float(np.abs(channel(aux, "arm_q")).max()))
        largest["norm"] = max(largest["norm"], *(abs(float(np.linalg.norm(sample[X][0, 3:])) - 1.0) for X in ("X_TA", "X_NC", "X_NV")))
        largest["momentum"] = max(largest["momentum"], float(np.abs(sample["momentum"][0] - before).max()))
        stiffness = float(channel(aux, "arm_stiffness_refreshed")[0])
    return {"steps": steps, "bits": digest.hexdigest()[:16], "slow": int(slow), "refreshed": stiffness, **largest}


def soak(minutes: float) -> int:
    failed = 0
    for base in ("fixed", "free"):
        first, second = session(base, minutes, 1), session(base, minutes, 100)
        same = first["bits"] == second["bits"]
        limits = {"norm": 1e-12, "q_rad": np.radians(270.0), "energy_j": 1e4}
        bad = [name for name, limit in limits.items() if not first[name] <= limit]
        if base == "free" and not first["momentum"] <= 1e-6:
            bad.append("momentum")
        failed += bool(bad) or not same
        bits = f"{'the same bits' if same else 'OTHER BITS'} in other portions ({first['bits']})"
        print(f"{base} base: {first['steps']} steps, {bits}, largest energy {first['energy_j']:.3g} J, "
              f"joint angle {first['q_rad']:.3g} rad, quaternion's norm off by {first['norm']:.1e}, "
              + (f"momentum off by {first['momentum']:.1e} N.s, N.m.s, " if base == "free" else "")
              + f"stiffness followed {first['refreshed']:.0f} times, {first['slow']} single calls over {BUDGET_US:.0f} us"
              + (f"; BEYOND ITS LIMIT: {', '.join(bad)}" if bad else ""))  # fmt: skip
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench_multibody")
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.core})
    if args.soak:
        return soak(args.minutes)
    result = measure(args.arms.split(","), args.rounds, args.peer, args.build)
    show(result)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
