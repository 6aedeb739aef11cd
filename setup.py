"""Build of the compiled packages: every `.pyx` below `rt_kernels` and `drivers` is one extension module.

House rules that the build itself holds (CONTRIBUTING, "Kernels"):

* `-ffp-contract=off`, never `-ffast-math`, never `-march=native`: the same bits on every x86-64 machine.
* A Cython performance hint is an error: such a line takes the interpreter lock inside the loop.
* `HIL_DEBUG_KERNELS=1` turns bounds checks back on (the checked build: `make checked`, in a copy of its own).
* `HIL_SANITIZE=1` builds with the address and undefined-behaviour sanitizers (`tools/fuzz_sanitized.sh`).

What the kernels include out of `rt_kernels/channels.toml`, the records and the declared parameters of the parts is made before anything
else (`tools/generate_channels.py`); a wheel gets type stubs and schemas, too, which `tools/generate.py` reads off what was just built.

What keeps the build short: Cython's own code for memory views is one module (`rt_kernels.cython_shared`) and not a part of each; a file in
which no step of a tick runs says so in its first line (`# distutils: extra_compile_args = -O1`); the largest files come first, so that no
core waits at the end.

What one sees of it: with `HIL_PROGRESS_FD` a line on that file descriptor says how many modules are done and how long the rest will take
(a terminal on standard error gets it as well). `HIL_KERNELS=first` builds only what the first docking needs (`tools/first_docking.txt`),
`HIL_KERNELS=built` nothing: a wheel takes the tree's own kernels along. An editable install leaves these where they are, as long as none of
their sources is newer.
"""

import contextlib
import os
import re
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
CHECKED = os.environ.get("HIL_DEBUG_KERNELS") == "1"
SHARED = "rt_kernels.cython_shared"
# What of -O3 the kernels need: the vectorizer with its full cost model, inlining and peeling. The rest of -O3 only takes time to compile.
OPTIMIZE = ["-O2", "-ftree-loop-vectorize", "-ftree-slp-vectorize", "-fvect-cost-model=dynamic", "-finline-functions", "-fipa-cp-clone"]
OPTIMIZE += ["-fpeel-loops", "-fsplit-loops", "--param=max-inline-insns-single=200"]  # values are passed by inlining
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
    "auto_pickle": False,  # two methods a class that only refuse: without them Python does
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


class Progress:
    """A line about the work: how much is done and how long the rest will take, by the share of the work that is behind."""

    EVERY_S = 10.0  # between two lines in a file; a terminal's line is written over at once

    def __init__(self, fd: int | None) -> None:
        self.fd, self.terminal = fd, fd is not None and os.isatty(fd)
        self.began = time.monotonic()
        self.next = self.began + self.EVERY_S

    def show(self, text: str, share: float) -> None:
        """share: of all the work, 0...1."""
        now = time.monotonic()
        if self.fd is None or (not self.terminal and now < self.next):
            return
        self.next = now + self.EVERY_S
        gone = now - self.began
        left = f", about {gone / share - gone:.0f} s left" if share > 0.05 and gone > 3.0 else ""
        line = f"  {text}{left}"
        os.write(self.fd, (f"\r{line[:110]:<110s}" if self.terminal else f"{line}\n").encode())

    def end(self) -> None:
        """Takes the line of a terminal away."""
        if self.terminal:
            os.write(self.fd, f"\r{'':<110s}\r".encode())


SILENT = Progress(None)


def progress_fd() -> int | None:
    """Where the progress goes, a descriptor of its own: what the build redirects does not concern it. None: nobody looks."""
    if os.environ.get("HIL_PROGRESS_FD", "").isdigit():
        return os.dup(int(os.environ["HIL_PROGRESS_FD"]))
    return os.dup(2) if os.isatty(2) else None


@contextlib.contextmanager
def output_read(look: Callable[[str], None]) -> Iterator[None]:
    """Standard output and error of this process and of those it starts, line by line through `look`, and on to where they went."""
    read, write = os.pipe()
    kept = [os.dup(fd) for fd in (1, 2)]

    def pass_on() -> None:
        with open(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                look(line)
                os.write(kept[1], line.encode())

    reader = threading.Thread(target=pass_on)
    reader.start()
    sys.stdout.flush()
    sys.stderr.flush()
    for fd in (1, 2):
        os.dup2(write, fd)
    os.close(write)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, former in zip((1, 2), kept, strict=True):
            os.dup2(former, fd)
        reader.join()
        for former in kept:
            os.close(former)


CYTHON_SHARE = 0.25  # of the whole work: the rest is the C compiler's


def cythonize_without_hints(modules: list[Extension], progress: Progress = SILENT) -> list[Extension]:
    """`cythonize`, but a performance hint stops the build and the C file it came from is removed."""
    hints = []

    def look(line: str) -> None:
        if line.startswith("performance hint:") and not (CHECKED and "boundscheck" in line):
            hints.append(line)
        if found := re.match(r"\[ *(\d+)/ *(\d+)\] Cythonizing (\S+)", line):
            number, of = int(found[1]), int(found[2])
            progress.show(f"to C: {number} of {of} modules", CYTHON_SHARE * (number - 1) / of)

    with output_read(look):
        built = cythonize(
            modules,
            nthreads=os.cpu_count() or 1,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            show_all_warnings=False,
        )
    if hints:
        for line in hints:
            ROOT.joinpath(line.split(":")[1].strip()).with_suffix(".c").unlink(missing_ok=True)
        sys.exit("build stopped: a Cython performance hint is an error here (mark the function noexcept or check why it needs Python)")
    return list(built)


class BuildKernels(build_ext):
    """`build_ext` that translates only when it builds (an sdist and the metadata of a package need no C), and says how far it is."""

    def run(self) -> None:
        """Translates, compiles; or takes what the tree has (`HIL_KERNELS=built`)."""
        if getattr(self, "editable_mode", False) and (WHICH == "built" or self._tree_is_built()):
            return
        if WHICH == "built":
            self._take_built()
            return
        self.progress, self.lock = Progress(progress_fd()), threading.Lock()
        for extension, translated in zip(self.extensions, cythonize_without_hints(self.extensions, self.progress), strict=True):
            # the object stays (setuptools has marked it), the translation and the options of the file's first line are taken over
            for name in ("sources", "depends"):
                setattr(extension, name, getattr(translated, name))
            # the compiler takes the last -O: that of the file's first line
            own = [option for option in translated.extra_compile_args if option not in COMPILE_ARGS]
            extension.extra_compile_args = [*COMPILE_ARGS, *own]
        self.todo, self.done = [e for e in self.extensions if self._is_due(e)], 0.0
        self.number = 0
        super().run()
        self.progress.end()
        whole = not WHICH and Path(self.build_lib, "hil_server").is_dir()  # all packages lie there: a wheel
        if whole and not (self.inplace or getattr(self, "editable_mode", False)):
            # stubs and schemas; the packages, and those that they need, are imported for it (pyproject.toml, build-system)
            subprocess.run([sys.executable, ROOT / "tools" / "generate.py", "--into", self.build_lib], check=True)

    def build_extension(self, ext: Extension) -> None:
        """One module; on several threads at once."""
        super().build_extension(ext)
        with self.lock:
            if ext in self.todo:
                self.number += 1
                self.done += weight(ext) / max(1.0, sum(map(weight, self.todo)))
                self.progress.show(f"compiled: {self.number} of {len(self.todo)} modules",
                                   CYTHON_SHARE + (1.0 - CYTHON_SHARE) * self.done)  # fmt: skip

    def _is_due(self, ext: Extension) -> bool:
        """Whether it will be compiled: the rule of distutils, a source newer than the module in the build folder."""
        built = Path(self.build_lib, self.get_ext_filename(ext.name))
        sources = [Path(s) for s in (*ext.sources, *ext.depends)]
        return bool(self.force) or not built.exists() or any(s.exists() and s.stat().st_mtime > built.stat().st_mtime for s in sources)

    def _tree_is_built(self) -> bool:
        """Whether every module lies in the tree and is newer than every source, whoever includes it."""
        built = [Path(self.get_ext_filename(ext.name)) for ext in self.extensions]
        kinds = ("*.pyx", "*.pxd", "*.pxi", "*.h", "*.inc", "native_*.c")
        sources = [source for package in ("rt_kernels", "drivers") for kind in kinds for source in Path(package).rglob(kind)]
        newest = max(source.stat().st_mtime for source in sources)
        return all(file.exists() and file.stat().st_mtime >= newest for file in built)

    def _take_built(self) -> None:
        """The kernels as they lie in the tree, into the package."""
        for ext in self.extensions:
            file = Path(self.get_ext_filename(ext.name))
            if not file.exists():
                sys.exit(f"HIL_KERNELS=built, but {file} is not there: build first (python setup.py build_ext --inplace)")
            if not Path(ext.sources[0]).with_suffix(".pyi").exists() and ext.name != SHARED:
                sys.exit(f"HIL_KERNELS=built, but {file} has no stub: python tools/generate.py")
            self.mkpath(str(Path(self.build_lib, file).parent))
            self.copy_file(str(file), str(Path(self.build_lib, file)))


def weight(ext: Extension) -> float:
    """How long a module takes to compile, in proportion: the size of its C, less where it is compiled with -O1."""
    size = sum(Path(s).stat().st_size for s in ext.sources if Path(s).exists())
    return size * (0.4 if ext.extra_compile_args[-1] == "-O1" else 1.0)


WHICH = os.environ.get("HIL_KERNELS", "")

if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    runpy.run_path(str(ROOT / "tools" / "generate_channels.py"))["write"]()
    modules = extensions()
    if WHICH == "first":
        wanted = ROOT.joinpath("tools", "first_docking.txt").read_text().split()
        modules = [extension for extension in modules if extension.name in wanted]
    setup(ext_modules=modules, cmdclass={"build_ext": BuildKernels})
