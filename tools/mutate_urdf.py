"""Damaged URDF files through the tree kernels under the address sanitizer: each one either works or ends in a ModelError.

    python tools/mutate_urdf.py [--count 10000] [--seed 1]

Compiles the tree extension once more with `-fsanitize=address` into a scratch folder (the package must have been built in place, so that
its C file is there), then runs the mutants of tests/model/test_urdf.py and a fuzz of array shapes and events in one process.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent

WORK = """
import logging, random, sys, time
import numpy as np
from pathlib import Path
logging.disable(logging.CRITICAL)
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import rt_kernels.multibody.tree as tree_module
assert tree_module.__file__.startswith(sys.argv[1]), tree_module.__file__
from rt_kernels.multibody import Tree
import tests.model.test_urdf as t
path, text, rng, used = Path(sys.argv[1]) / "mutant.urdf", t.sample_urdf(), random.Random(int(sys.argv[4])), 0
begin, count = time.monotonic(), int(sys.argv[3])
for i in range(count):
    path.write_text(t.mutant(rng, text), encoding="utf-8")
    used += t.try_model(path)
print(f"{count} mutants: {used} worked, {count - used} refused by name, {time.monotonic() - begin:.0f} s")
path.write_text(text)
tree, g = Tree.from_urdf(path, floating_base=True), np.random.default_rng(int(sys.argv[4]))
refused = 0
for i in range(count):
    n = lambda right: right if g.random() < 0.8 else int(g.integers(0, 2 * right))
    q, v, tau = g.normal(size=n(tree.nq)), g.normal(size=n(tree.nv)), g.normal(size=n(tree.nv))
    f = None if g.random() < 0.5 else g.normal(size=(n(tree.n_bodies), n(6)))
    known = g.random(n(tree.nv)) < 0.5
    for call in (lambda: tree.forward_dynamics(q, v, tau, f), lambda: tree.inverse_dynamics(q, v, tau, f), lambda: tree.mass_matrix(q),
                 lambda: tree.hybrid_dynamics(q, v, tau, tau, known, f), lambda: tree.lock(q, v, "loose", [n(6)]),
                 lambda: tree.unlock("loose"), lambda: tree.joint_reactions(q, v, tau, f),
                 lambda: tree.attach(q, v, "g", str(g.choice(["a", "b", "c", "e", "x"])), known[:6])):
        try:
            call()
        except ValueError:
            refused += 1
print(f"{8 * count} calls with random shapes and events: {refused} refused by name")
"""


def build(folder: Path) -> None:
    source = ROOT / "rt_kernels" / "multibody"
    if not (source / "tree.c").exists():
        raise SystemExit("build the package in place first: python setup.py build_ext --inplace")
    shutil.copytree(ROOT / "rt_kernels", folder / "rt_kernels", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    source = folder / "rt_kernels" / "multibody"
    output = folder / "rt_kernels" / "multibody" / ("tree" + sysconfig.get_config_var("EXT_SUFFIX"))
    include = [f"-I{p}" for p in (folder, sysconfig.get_paths()["include"], numpy.get_include())]
    flags = "-shared -fPIC -g -O1 -std=gnu11 -ffp-contract=off -fsanitize=address -fno-omit-frame-pointer -w"
    defines = "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"
    subprocess.run(
        ["gcc", *flags.split(), defines, *include, str(source / "tree.c"), str(source / "native_tree.c"), "-o", str(output)], check=True
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
        environment = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1"}
        command = [sys.executable, "-c", WORK, scratch, str(ROOT), str(args.count), str(args.seed)]
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
