"""Build of the compiled packages: every `.pyx` below `rt_kernels` and `drivers` is one extension module.

House rules that the build itself holds (CONTRIBUTING, "Kernels"):

* `-ffp-contract=off`, never `-ffast-math`, never `-march=native`: the same bits on every x86-64 machine.
* A Cython performance hint is an error: such a line takes the interpreter lock inside the loop.
* `HIL_DEBUG_KERNELS=1` turns bounds checks back on (the checked build: `make checked`, in a copy of its own).
* `HIL_SANITIZE=1` builds with the address and undefined-behaviour sanitizers (`tools/fuzz_sanitized.sh`).

What keeps the build short: Cython's own code for memory views is one module (`rt_kernels.cython_shared`) and not a part of each; a file in
which no step of a tick runs says so in its first line (`# distutils: extra_compile_args = -O1`); the largest files come first, so that no
core waits at the end.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

ROOT = Path(__file__).parent
CHECKED = os.environ.get("HIL_DEBUG_KERNELS") == "1"
SHARED = "rt_kernels.cython_shared"
# What of -O3 the kernels need: the vectorizer with its full cost model, inlining and peeling. The rest of -O3 only takes time to compile.
OPTIMIZE = ["-O2", "-ftree-loop-vectorize", "-ftree-slp-vectorize", "-fvect-cost-model=dynamic", "-finline-functions", "-fipa-cp-clone"]
OPTIMIZE += ["-fpeel-loops", "-fsplit-loops"]
COMPILE_ARGS = [*OPTIMIZE, "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition", "-std=gnu11", "-g0"]
if CHECKED:
    COMPILE_ARGS += ["-O1"]  # it is built to be tried, not to be fast
if os.environ.get("HIL_SANITIZE") == "1":
    COMPILE_ARGS = [a for a in COMPILE_ARGS if a not in (*OPTIMIZE, "-g0")]
    COMPILE_ARGS += ["-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": CHECKED,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": False,
}


Options.emit_code_comments = False  # half of the generated text otherwise; nobody reads it


def extensions() -> list[Extension]:
    """One extension for each `.pyx`, the largest first, and the module that holds what Cython's memory views share."""
    found = []
    for package in ("rt_kernels", "drivers"):
        for source in sorted(ROOT.joinpath(package).rglob("*.pyx")):
            relative = source.relative_to(ROOT)
            native = sorted(str(c.relative_to(ROOT)) for c in source.parent.glob(f"native_{source.stem}.c"))
            headers = [str(h.relative_to(ROOT)) for h in sorted(source.parent.glob("*.h")) + sorted(source.parent.glob("*.inc"))]
            found.append(
                Extension(
                    ".".join(relative.with_suffix("").parts),
                    [str(relative), *native],
                    depends=headers,
                    include_dirs=[numpy.get_include(), "."],
                    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
                    extra_compile_args=COMPILE_ARGS,
                    libraries=["m"],
                )
            )
    found.sort(key=lambda extension: -ROOT.joinpath(extension.sources[0]).stat().st_size)
    shared = Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"], extra_compile_args=[*COMPILE_ARGS, "-O1"])
    return [shared, *found]


def cythonize_without_hints(modules: list[Extension]) -> list[Extension]:
    """`cythonize`, but a performance hint stops the build and the C file it came from is removed."""
    with tempfile.TemporaryFile() as captured:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            built = cythonize(
                modules,
                nthreads=os.cpu_count() or 1,
                compiler_directives=DIRECTIVES,
                shared_utility_qualified_name=SHARED,
                show_all_warnings=False,
            )
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            captured.seek(0)
            text = captured.read().decode(errors="replace")
            sys.stderr.write(text)
    hints = [line for line in text.splitlines() if line.startswith("performance hint:") and not (CHECKED and "boundscheck" in line)]
    if hints:
        for line in hints:
            ROOT.joinpath(line.split(":")[1].strip()).with_suffix(".c").unlink(missing_ok=True)
        sys.exit("build stopped: a Cython performance hint is an error here (mark the function noexcept or check why it needs Python)")
    return built


if __name__ == "__main__":
    os.chdir(ROOT)
    # HIL_KERNELS_IN_PLACE=1: the kernels are already built in place (tools/environment.sh), an editable install need not build them again
    in_place = os.environ.get("HIL_KERNELS_IN_PLACE") == "1"
    setup(ext_modules=[] if in_place else cythonize_without_hints(extensions()))
