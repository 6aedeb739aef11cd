"""Build of the compiled packages: every `.pyx` below `rt_kernels` and `drivers` is one extension module.

House rules that the build itself holds (ARCHITECTURE, `real-time` chapter):

* `-ffp-contract=off`, never `-ffast-math`, never `-march=native`: the same bits on every x86-64 machine.
* A Cython performance hint is an error: such a line takes the interpreter lock inside the loop.
* `HIL_DEBUG_KERNELS=1` turns bounds checks back on (the checked build that the tests run once).
* `HIL_SANITIZE=1` builds with the address and undefined-behaviour sanitizers (`tools/fuzz_sanitized.sh`).
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
CHECKED = os.environ.get("HIL_DEBUG_KERNELS") == "1"
COMPILE_ARGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition", "-std=gnu11", "-g0"]
if os.environ.get("HIL_SANITIZE") == "1":
    COMPILE_ARGS = [a for a in COMPILE_ARGS if a not in ("-O3", "-g0")]
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


def extensions() -> list[Extension]:
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
    return found


def cythonize_without_hints(modules: list[Extension]) -> list[Extension]:
    """`cythonize`, but a performance hint stops the build and the C file it came from is removed."""
    with tempfile.TemporaryFile() as captured:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            built = cythonize(modules, nthreads=os.cpu_count() or 1, compiler_directives=DIRECTIVES, show_all_warnings=False)
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            captured.seek(0)
            text = captured.read().decode(errors="replace")
            sys.stderr.write(text)
    hints = [line for line in text.splitlines() if line.startswith("performance hint:")]
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
