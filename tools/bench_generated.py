"""Generated kernels beside C generated from Pinocchio's own templates: same models, states, compiler and flags, one core, interleaved.

    python tools/bench_generated.py [--rounds 15] [--samples 31] [--models canadarm2_free_flyer,...] [--compilers gcc,clang]
           [--flags project,native] [--core 1] [--json FILE]

The peer: `aba`, `rnea` and `crba` of Pinocchio's headers (`pin` wheel) run once over `casadi::SX` (headers and library of the `casadi`
wheel, optional group `bench`), written as C by CasADi's code generator: `tools/bench_multibody/peer_casadi.cpp`.  Forward dynamics and
mass matrix in both of Pinocchio's conventions (local, world), each as it comes and after CasADi's `cse`; the fastest counts.  A second
ratio is against the fastest when the peer's text gets the sines of our own kernels too: what our recursions alone gain.
The peer has every advantage that costs it no digit: constants of the model and gravity folded in (ours reads gravity), joints about z,
no tests of absent arguments, restricted pointers.  Both texts write the same answers (the mass matrix with both halves) and are compared
on all 32 states before anything is timed.

Flags: `project` are those that `Tree.generate()` compiles with; `native` is -O3 -march=native with contraction.  Building the peer takes
a few minutes the first time (g++: CasADi's library is built against its C++ library); it is kept in build/bench_generated.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import bench_multibody as bench
import numpy as np
from bench_tick import machine

from rt_kernels.model import tree_generator
from rt_kernels.multibody import Tree

ROOT, HERE = bench.ROOT, bench.HERE
ARMS = ROOT / "stand_configs" / "manipulators"
MODELS = ("canadarm2_free_flyer", "craft_wings_arm", "puma560", "canadarm2", "era", "srms")
GOAL = 0.8
KERNELS = ("forward", "inverse", "mass_matrix")
PEERS = ("forward_local", "forward_world", "inverse", "mass_matrix_local", "mass_matrix_world")
PLAIN = ("", "_shared")  # forms of each: as it comes, after cse
FORMS = (*PLAIN, "_sines")  # after cse, with our sines
COMPILERS = {"gcc": ["gcc"], "clang": [sys.executable, "-m", "ziglang", "cc"]}
# of g++ alone, not of a timed kernel; the limits are those under which the wheel's library was built
PEER_FLAGS = (
    "-std=c++17 -O1 -w -DNDEBUG -DBOOST_MPL_LIMIT_LIST_SIZE=30 -DBOOST_MPL_LIMIT_VECTOR_SIZE=30 "
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS -DBOOST_FUSION_INVOKE_MAX_ARITY=12"
).split()


def flags_of(name: str, compiler: str, instruction_set: str) -> list[str]:
    """Flags of the kernels of both sides; `instruction_set` is the best that this processor has."""
    lanes = f"-DLANES={tree_generator.LANES[instruction_set]}"
    if name == "project":
        optimise = tree_generator.OPTIMISE if compiler == "gcc" else ["-O2"]  # Clang has none of those passes
        return [*optimise, *tree_generator.FLAGS, *tree_generator.SET_FLAGS[instruction_set], lanes]
    native = "-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math -fPIC -shared -w"
    return [*native.split(), lanes]


def peer_generator(folder: Path) -> Path:
    """The program that writes the peer's C for a model."""
    import casadi

    output, source = folder / "peer_casadi", HERE / "peer_casadi.cpp"
    if not output.exists() or output.stat().st_mtime < source.stat().st_mtime:
        print("building peer_casadi (a few minutes) ...", file=sys.stderr)
        headers = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "include"
        wheel = Path(casadi.__file__).parent
        include = [f"-isystem{p}" for p in (headers, headers / "eigen3", wheel / "include")]
        libraries = [str(wheel / "libcasadi.so"), f"-Wl,-rpath,{wheel}"]
        subprocess.run(["g++", *PEER_FLAGS, *include, str(source), *libraries, "-o", str(output)], check=True)
    return output


def peer_text(program: Path, name: str, rows: list[dict], folder: Path) -> tuple[Path, dict[str, int]]:
    """The peer's C for the model, and the number of operations of each function."""
    lines = [str(len(rows))]
    for b in rows:
        I = b["inertia"]
        numbers = [b["parent"], int(b["free"]), *b["R"].ravel(), *b["p"], b["mass"], *b["com"]]
        numbers += [I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
        lines.append(" ".join(f"{x:.17g}" for x in numbers))
    file = f"peer_{name}.c"
    done = subprocess.run([str(program), f"{folder}/", file], input="\n".join(lines), capture_output=True, text=True, check=True)
    return folder / file, {word: int(count) for word, count in (line.split() for line in done.stdout.splitlines())}


def compiled(output: Path, command: list[str], flags: list[str], source: Path, *more: str) -> ctypes.CDLL:
    """The library of one side; made again every time, since texts and flags change."""
    output.unlink(missing_ok=True)
    include = [f"-I{p}" for p in (HERE, ROOT, tree_generator.HEADERS)]
    subprocess.run([*command, *flags, *include, *more, str(source), "-o", str(output), "-lm"], check=True)
    return ctypes.CDLL(str(output))


class Side:
    """Ours and the peer's cases of one model under one compiler and one set of flags."""

    def __init__(self, tree: Tree, ours: Path, theirs: Path, command: list[str], flags: list[str], label: str, state: list[np.ndarray]):
        folder = ours.parent
        self.tree = tree
        self.library = compiled(folder / f"{ours.stem}_{label}.so", command, flags, ours)
        self.library.use(ctypes.c_void_p(tree.model_address[0]))
        base = tree.nq - tree.nv and 7  # a free base brings seven positions for six velocities
        given = [f'-DPEER_TEXT="{theirs}"', f"-DBASE={base}", f"-DTURNING={tree.nq - base}"]
        self.peer = compiled(folder / f"{theirs.stem}_{label}.so", command, flags, HERE / "generated_peer.c", *given)
        self.peer.generated_context.restype = ctypes.c_void_p
        self.context = self.peer.generated_context(tree.nq, tree.nv, *map(bench.pointer, state))

    def check(self, state: dict[str, np.ndarray]) -> None:
        """Every answer of the peer against ours."""
        for s in range(bench.STATES):
            q, v, tau, a = (state[k][s] for k in ("q", "v", "tau", "a"))
            ours = {"forward": self.tree.forward_dynamics(q, v, tau), "inverse": self.tree.inverse_dynamics(q, v, a)}
            ours["mass_matrix"] = self.tree.mass_matrix(q)
            for name in (p + form for p in PEERS for form in FORMS):
                expected = next(ours[k] for k in KERNELS if name.startswith(k))
                got = np.zeros_like(expected)
                getattr(self.peer, f"answer_{name}")(ctypes.c_void_p(self.context), s, bench.pointer(got))
                error = np.linalg.norm(expected - got) / np.linalg.norm(expected)
                if not error < 1e-10:
                    raise SystemExit(f"{name}: differs from ours by {error:.1e}: nothing is timed")


def measure(name: str, args, harness, program: Path) -> dict:
    """Times (ns) and ratios of one model, every compiler and set of flags in the same rounds."""
    plain = Tree.from_toml(ARMS / f"{name}.toml")
    text = tree_generator.source(plain.constants(), plain.nv)
    ours = args.build / f"own_{name}.c"
    ours.write_text(text + "\nvoid use(TreeModel *model) { generated_kernels(&model->kernels); }\n")
    theirs, operations = peer_text(program, name, bench.aligned_bodies(plain), args.build)
    state = bench.states(plain, np.random.default_rng(5))
    keep = bench.in_order(state)
    cases, sides = bench.Cases(harness), {}
    for compiler in args.compilers.split(","):
        for flags in args.flags.split(","):
            label = f"{compiler}_{flags}"
            tree = Tree(plain.bodies, plain.gravity, plain.instruction_set)
            side = Side(tree, ours, theirs, COMPILERS[compiler], flags_of(flags, compiler, plain.instruction_set), label, keep)
            side.check(state)
            sides[label] = side
            own = harness.own_context(*(ctypes.c_void_p(x) for x in tree.model_address), *map(bench.pointer, keep))
            for kernel in KERNELS:
                cases.add(f"{label} own {kernel}", getattr(harness, f"own_{kernel}"), own)
            for peer in (p + form for p in PEERS for form in FORMS):
                cases.add(f"{label} peer {peer}", getattr(side.peer, f"time_{peer}"), side.context)
    rounds = cases.run(args.rounds, args.samples)
    column = {n: rounds[:, i] for i, n in enumerate(cases.names)}
    out: dict = {"operations": operations, "ns": {n: round(float(x.min()), 1) for n, x in column.items()}, "ratio": {}}
    for label in sides:
        for kernel in KERNELS:
            own = column[f"{label} own {kernel}"]
            for what, forms in (("plain", PLAIN), ("same sines", FORMS)):
                names = [f"{label} peer {p}{form}" for p in PEERS if p.startswith(kernel) for form in forms]
                fastest = min(names, key=lambda n: np.median(column[n]))
                ratio = own / column[fastest]
                out["ratio"][f"{kernel}, {label}, {what}"] = {
                    "own_ns": float(np.median(own)),
                    "peer_ns": float(np.median(column[fastest])),
                    "peer": fastest.split()[-1],
                    "median": float(np.median(ratio)),
                    "least": float(ratio.min()),
                    "greatest": float(ratio.max()),
                }
    return out


def show(name: str, result: dict) -> bool:
    """Print a model's rows; False when a ratio is above the goal."""
    met = True
    print(f"\n{name}  (median ns of the rounds; ratio: median [least-greatest] of the rounds' ratios)")
    for case, r in result["ratio"].items():
        kernel, label, what = case.split(", ")
        met &= r["median"] <= GOAL
        print(
            f"  {kernel:12s} {label:14s} {what:11s} {r['own_ns']:7.1f} ns   peer {r['peer_ns']:7.1f} ns ({r['peer']})   "
            f"ratio {r['median']:.3f} [{r['least']:.3f}-{r['greatest']:.3f}]   {'met' if r['median'] <= GOAL else 'NOT MET'}"
        )
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--compilers", default="gcc,clang")
    parser.add_argument("--flags", default="project,native")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench_generated")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    harness = bench.build_harness(args.build)
    program = peer_generator(args.build)
    os.sched_setaffinity(0, {args.core})
    print(f"{machine()}, core {args.core}; {args.rounds} interleaved rounds, each the median of {args.samples} runs of 20 us; goal {GOAL}")
    results, met = {}, True
    for name in args.models.split(","):
        results[name] = measure(name, args, harness, program)
        met &= show(name, results[name])
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), "models": results}, indent=1))
    print("\nevery ratio meets the goal" if met else "\nsome ratio does NOT meet the goal")


if __name__ == "__main__":
    main()
