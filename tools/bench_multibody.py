"""Speed of the tree kernels against Pinocchio's C++ and MuJoCo's step: same models, same states, one core, interleaved.

    python tools/bench_multibody.py [--rounds 15] [--models free_flyer,...] [--compiler clang|g++] [--core 1] [--json FILE]
           [--linear] [--sets] [--no-generated]

Builds the peer from the headers of the `pin` wheel (optional group `test`) with Clang from the `ziglang` wheel (optional group `bench`),
`-O3 -march=native -ffp-contract=fast`, header-only: Pinocchio's fastest build; g++ 12 and the wheel's own library take about 1.8 times as
long.  Our kernels are those of the installed extension (the project's flags: no contraction, no -march), called through the same pointers
as a stage calls them.  Every answer is compared with the peer's before anything is timed.  Needs a few minutes for the first build.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rt_kernels.multibody import Body, Tree  # noqa: E402
from rt_kernels.multibody.tree import aligned_axes  # noqa: E402

HERE = Path(__file__).resolve().parent / "bench_multibody"
STATES = 32
MODELS = ("free_flyer", "wings_arm", "puma", "chain50")
GOALS = {"forward": (0.40, 0.33), "inverse": (0.60, 0.40), "mass matrix": (0.75, 0.50), "step": (0.40, 0.40)}


class BenchBody(ctypes.Structure):
    _fields_ = [
        ("parent", ctypes.c_int),
        ("free_base", ctypes.c_int),
        ("R", ctypes.c_double * 9),
        ("p", ctypes.c_double * 3),
        ("mass", ctypes.c_double),
        ("com", ctypes.c_double * 3),
        ("inertia", ctypes.c_double * 6),
    ]


# ---- models --------------------------------------------------


def chain(n: int = 50) -> list[Body]:
    """Fixed chain of n short rods, axes turned by right angles."""
    c = {
        "x+": [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
        "x-": [[1, 0, 0], [0, 0, 1], [0, -1, 0]],
        "y+": [[0, 0, 1], [0, 1, 0], [-1, 0, 0]],
        "0": np.eye(3),
        "y-": [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
    }
    turns = [np.array(m, dtype=float) for m in c.values()]
    rod = np.diag([0.0016, 0.0158, 0.0158]) + 1e-4 * np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    return [
        Body(
            f"b{i}",
            f"b{i - 1}" if i else None,
            "revolute",
            "",
            turns[i % 5],
            [0.3, 0.02, 0.05] if i else [0, 0, 0],
            mass=2.0 + 0.01 * i,
            com=[0.15, 0.01, 0.0],
            inertia=rod,
        )
        for i in range(n)
    ]


def tree_of(name: str) -> Tree:
    folder = ROOT / "stand_configs" / "manipulators"
    if name == "free_flyer":
        return Tree.from_toml(folder / "canadarm2_free_flyer.toml")
    if name == "wings_arm":
        return Tree.from_toml(folder / "craft_wings_arm.toml")
    if name == "puma":
        return Tree.from_toml(folder / "puma560.toml")
    if name.startswith("chain"):
        return Tree(chain(int(name[5:])))
    raise SystemExit(f"unknown model '{name}', one of {', '.join(MODELS)} is needed")


def aligned_bodies(tree: Tree) -> list[dict]:
    """The tree with every joint about z of its own frame, which is what the peers are fastest with."""
    number = {b.name: i for i, b in enumerate(tree.bodies)}
    align = [np.eye(3) if b.joint == "free" else aligned_axes(b.axis) for b in tree.bodies]
    rows = []
    for i, b in enumerate(tree.bodies):
        up = np.eye(3) if b.parent is None else align[number[b.parent]]
        rows.append(
            {
                "parent": -1 if b.parent is None else number[b.parent],
                "free": b.joint == "free",
                "R": up.T @ b.R_PJ @ align[i],
                "p": up.T @ b.p_PJ_P,
                "mass": b.mass,
                "com": align[i].T @ b.com,
                "inertia": align[i].T @ b.inertia @ align[i],
            }
        )
    return rows


def states(tree: Tree, rng: np.random.Generator) -> dict[str, np.ndarray]:
    q = rng.uniform(-3.0, 3.0, (STATES, tree.nq))
    if tree.nq > tree.nv:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    v, a = rng.uniform(-1.0, 1.0, (2, STATES, tree.nv))
    return {"q": q, "v": v, "a": a, "tau": 10.0 * rng.uniform(-1.0, 1.0, (STATES, tree.nv))}


def in_order(state: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays of `states` as the libraries take them."""
    return [np.ascontiguousarray(state[k]) for k in ("q", "v", "tau", "a")]


def peer_context(peer: ctypes.CDLL, rows: list[dict], arrays: list[np.ndarray]) -> int:
    """The tree for Pinocchio, with its states; it keeps pointers to the arrays."""
    bodies = (BenchBody * len(rows))()
    for at, b in zip(bodies, rows, strict=True):
        at.parent, at.free_base, at.mass = b["parent"], int(b["free"]), b["mass"]
        at.R[:], at.p[:], at.com[:], at.inertia[:] = b["R"].ravel(), b["p"], b["com"], b["inertia"][np.triu_indices(3)]
    return peer.peer_context(len(rows), bodies, *map(pointer, arrays))


def mjcf(rows: list[dict]) -> str:
    """The same tree for MuJoCo."""

    def text(values) -> str:
        return " ".join(f"{x:.17g}" for x in values)

    def quaternion(R) -> list[float]:
        from scipy.spatial.transform import Rotation

        return list(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])

    def emit(i: int) -> str:
        b = rows[i]
        joint = "<freejoint/>" if b["free"] else '<joint type="hinge" axis="0 0 1"/>'
        I = b["inertia"]
        inside = "".join(emit(k) for k in range(len(rows)) if rows[k]["parent"] == i)
        full = text([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        return (
            f'<body pos="{text(b["p"])}" quat="{text(quaternion(b["R"]))}">{joint}'
            f'<inertial pos="{text(b["com"])}" mass="{b["mass"]:.17g}" fullinertia="{full}"/>{inside}</body>'
        )

    roots = "".join(emit(k) for k in range(len(rows)) if rows[k]["parent"] < 0)
    return (
        '<mujoco><compiler angle="radian" boundmass="0" balanceinertia="false"/><option timestep="0.001" gravity="0 0 -9.81" '
        f'integrator="Euler"><flag contact="disable"/></option><worldbody>{roots}</worldbody></mujoco>'
    )


# ---- libraries --------------------------------------------------


def build(output: Path, sources: list[Path], command: list[str], libraries: list[str] | None = None) -> ctypes.CDLL:
    depends = [*sources, HERE / "bench_case.h"]
    if output.stem == "harness":
        depends.append(ROOT / "rt_kernels" / "multibody" / "tree_kernel.h")
    if not output.exists() or output.stat().st_mtime < max(p.stat().st_mtime for p in depends):
        print(f"building {output.name} ...", file=sys.stderr)
        subprocess.run(
            [*command, "-shared", "-fPIC", f"-I{HERE}", f"-I{ROOT}", *map(str, sources), *(libraries or []), "-o", str(output)], check=True
        )
    return ctypes.CDLL(str(output))


def build_peer(folder: Path, compiler: str) -> tuple[ctypes.CDLL, str]:
    prefix = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "include"
    command = [sys.executable, "-m", "ziglang", "c++"] if compiler == "clang" else ["g++"]
    flags = "-std=c++17 -O3 -march=native -ffp-contract=fast -w -DNDEBUG -DBOOST_MPL_LIMIT_LIST_SIZE=30 -DBOOST_MPL_LIMIT_VECTOR_SIZE=30 "
    flags += "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS -DBOOST_FUSION_INVOKE_MAX_ARITY=12"
    include = ["-isystem", str(prefix), "-isystem", str(prefix / "eigen3")]
    library = build(folder / f"peer_{compiler.replace('+', 'p')}.so", [HERE / "peer_pinocchio.cpp"], [*command, *flags.split(), *include])
    library.peer_version.restype = ctypes.c_char_p
    library.peer_context.restype = ctypes.c_void_p
    return library, f"Pinocchio {library.peer_version().decode()} ({compiler}, -O3 -march=native, header-only)"


def build_mujoco(folder: Path):
    try:
        import mujoco
    except ImportError:
        return None
    at = Path(mujoco.__file__).parent
    shared = sorted(at.glob("libmujoco.so*"))[0]
    command = ["gcc", "-std=gnu11", "-O3", "-march=native", f"-I{at / 'include'}"]
    library = build(folder / "peer_mujoco.so", [HERE / "peer_mujoco.c"], command, [str(shared), f"-Wl,-rpath,{at}"])
    library.mujoco_context.restype = ctypes.c_void_p
    return library, f"MuJoCo {mujoco.__version__}"


def build_harness(folder: Path) -> ctypes.CDLL:
    harness = build(folder / "harness.so", [HERE / "harness.c"], ["gcc", "-std=gnu11", "-O2"])
    harness.own_context.restype = ctypes.c_void_p
    return harness


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


# ---- one model --------------------------------------------------


class Cases:
    def __init__(self, harness: ctypes.CDLL):
        self.harness, self.names, self.functions, self.contexts = harness, [], [], []

    def add(self, name: str, function, context: int) -> None:
        self.names.append(name)
        self.functions.append(ctypes.cast(function, ctypes.c_void_p))
        self.contexts.append(ctypes.c_void_p(context))

    def run(self, rounds: int, samples: int) -> np.ndarray:
        out = np.zeros((rounds, len(self.names)))
        kinds = ctypes.c_void_p * len(self.names)
        self.harness.bench_interleaved(
            len(self.names), kinds(*self.functions), kinds(*self.contexts), rounds, samples, ctypes.c_double(20000.0), pointer(out)
        )
        return out


def check(tree: Tree, name: str, state: dict, peer: ctypes.CDLL, context: int) -> None:
    for s in range(STATES):
        q, v, tau, a = (state[k][s] for k in ("q", "v", "tau", "a"))
        for what, ours in enumerate((tree.forward_dynamics(q, v, tau), tree.inverse_dynamics(q, v, a), tree.mass_matrix(q))):
            theirs = np.empty_like(ours)
            peer.peer_answer(ctypes.c_void_p(context), what, s, pointer(theirs))
            error = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            if not error < 1e-10:
                raise SystemExit(f"{name}: answer {what} differs from the peer's by {error:.1e}: nothing is timed")


def measure(name: str, args, harness, peer, mujoco, folder: Path) -> dict:
    tree = tree_of(name)
    variants = {"general": tree}
    if args.generated:
        variants["generated"] = tree_of(name).generate()
    if args.sets:
        for s in ("sse2", "avx2"):
            variants[f"general {s}"] = tree_of(name)
            variants[f"general {s}"].use_instruction_set(s)
    rows = aligned_bodies(tree)
    state = states(tree, np.random.default_rng(5))
    keep = in_order(state)
    context = peer_context(peer, rows, keep)
    cases = Cases(harness)
    for label in ("forward_local", "forward_world", "inverse", "mass_matrix_local", "mass_matrix_world"):
        cases.add(f"pinocchio {label}", getattr(peer, f"peer_{label}"), context)
    for variant, t in variants.items():
        check(t, f"{name} {variant}", state, peer, context)
        own = harness.own_context(*(ctypes.c_void_p(x) for x in t.model_address), *map(pointer, keep))
        for label in ("forward", "inverse", "mass_matrix", "step"):
            cases.add(f"{variant} {label}", getattr(harness, f"own_{label}"), own)
    if mujoco:
        file = folder / f"{name}.xml"
        file.write_text(mjcf(rows))
        q_mujoco = keep[0].copy()
        if tree.nq > tree.nv:
            q_mujoco[:, 3:7] = keep[0][:, [6, 3, 4, 5]]
            v_mujoco = keep[1].copy()  # MuJoCo: linear velocity on world axes
            for s in range(STATES):
                R, _ = tree.pose(keep[0][s], tree.bodies[0].name)
                v_mujoco[s, :3] = R @ keep[1][s, :3]
        else:
            v_mujoco = keep[1]
        keep += [q_mujoco, v_mujoco]
        error = ctypes.create_string_buffer(1000)
        m = mujoco[0].mujoco_context(str(file).encode(), pointer(q_mujoco), pointer(v_mujoco), pointer(keep[2]), error, 1000)
        if not m:
            raise SystemExit(f"MuJoCo: {error.value.decode()}")
        cases.add("mujoco step", mujoco[0].mujoco_step, m)
    medians = cases.run(args.rounds, args.samples)
    ns = dict(zip(cases.names, medians.min(axis=0), strict=True))
    column = {n: medians[:, i] for i, n in enumerate(cases.names)}
    fastest = {
        "forward": min(("pinocchio forward_local", "pinocchio forward_world"), key=ns.get),
        "inverse": "pinocchio inverse",
        "mass_matrix": min(("pinocchio mass_matrix_local", "pinocchio mass_matrix_world"), key=ns.get),
        "step": "mujoco step",
    }
    ratios = {}
    for variant in variants:
        for label, other in fastest.items():
            if other in column:
                r = column[f"{variant} {label}"] / column[other]
                ratios[f"{variant} {label}"] = [float(np.median(r)), float(r.min()), float(r.max())]
    return {"ns": {k: round(float(x), 1) for k, x in ns.items()}, "ratio": ratios, "set": tree.instruction_set}


def show(name: str, result: dict) -> None:
    ns, ratio = result["ns"], result["ratio"]
    print(f"\n{name}  (instruction set {result['set']}; ns: least of the round medians; ratio: median [least-greatest] of the rounds)")
    theirs = {
        "forward": min(ns["pinocchio forward_local"], ns["pinocchio forward_world"]),
        "inverse": ns["pinocchio inverse"],
        "mass_matrix": min(ns["pinocchio mass_matrix_local"], ns["pinocchio mass_matrix_world"]),
        "step": ns.get("mujoco step"),
    }
    for label, peer_ns in theirs.items():
        for key in (k for k in ns if k.endswith(f" {label}") and not k.startswith(("pinocchio", "mujoco"))):
            variant = key[: -len(label) - 1]
            line = f"  {label:12s} {variant:14s} {ns[key]:8.1f} ns"
            if key in ratio:
                goal = GOALS[label.replace("_", " ")][variant == "generated"]
                m, low, high = ratio[key]
                line += f"   peer {peer_ns:8.1f} ns   ratio {m:.3f} [{low:.3f}-{high:.3f}]   goal {goal:.2f} "
                line += "met" if m <= goal else "NOT MET"
            print(line)
        if label != "step" and f"generated {label}" in ns:
            gain = 1.0 - ns[f"generated {label}"] / ns[f"general {label}"]
            verdict = "default" if gain >= 0.15 else "not the default (under 15 %)"
            print(f"  {label:12s} generated saves {100 * gain:.0f} % of the general kernel: {verdict}")


def linear(args, harness) -> dict:
    """Forward dynamics of chains of 5 to 100 bodies: straight line through the times, largest residual relative to the time."""
    sizes = (5, 10, 20, 35, 50, 75, 100)
    cases, keep = Cases(harness), []
    for n in sizes:
        tree = tree_of(f"chain{n}")
        arrays = in_order(states(tree, np.random.default_rng(5)))
        own = harness.own_context(*(ctypes.c_void_p(x) for x in tree.model_address), *map(pointer, arrays))
        keep += [tree, arrays]
        cases.add(f"chain{n}", harness.own_forward, own)
    ns = cases.run(args.rounds, args.samples).min(axis=0)
    # weighted by 1/ns: every size counts alike, relative to its own time
    slope, offset = np.polyfit(sizes, ns, 1, w=1.0 / ns)
    residual = np.abs(slope * np.array(sizes) + offset - ns) / ns
    print(f"\nlinear cost: {slope:.1f} ns a body + {offset:.0f} ns; largest residual {100 * residual.max():.1f} % (goal 5 %)")
    print("  " + ", ".join(f"{n}: {t:.0f}" for n, t in zip(sizes, ns, strict=True)) + " ns")
    return {"slope_ns": float(slope), "offset_ns": float(offset), "residual": float(residual.max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--compiler", choices=("clang", "g++"), default="clang")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench_multibody")
    parser.add_argument("--no-generated", dest="generated", action="store_false")
    parser.add_argument("--sets", action="store_true", help="time the SSE2 and AVX2 copies too")
    parser.add_argument("--linear", action="store_true", help="only the cost over the number of bodies")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    harness = build_harness(args.build)
    if args.linear:
        os.sched_setaffinity(0, {args.core})
        linear(args, harness)
        return
    peer, peer_name = build_peer(args.build, args.compiler)
    mujoco = build_mujoco(args.build)
    os.sched_setaffinity(0, {args.core})
    step_peer = mujoco[1] + ", mj_step Euler, no contact" if mujoco else "MuJoCo is not installed"
    print(f"peer: {peer_name}; step: {step_peer}; core {args.core}")
    results = {}
    for name in args.models.split(","):
        results[name] = measure(name, args, harness, peer, mujoco, args.build)
        show(name, results[name])
    if args.json:
        args.json.write_text(json.dumps({"peer": peer_name, "models": results}, indent=1))


if __name__ == "__main__":
    main()
