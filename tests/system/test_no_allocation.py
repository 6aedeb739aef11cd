"""A whole docking asks for no memory: every call of malloc and its kin in the loop's thread is counted while the line runs."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dynamics.test_two_crafts_runs import panels, wings

# in front of the C library: counts per thread, then does what was asked for
COUNTER = r"""
#define _GNU_SOURCE
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static __thread long calls;
long allocator_calls(void) { return calls; }
void *malloc(size_t n) { calls++; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { calls++; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { calls++; return __libc_realloc(p, n); }
void free(void *p) { if (p) calls++; __libc_free(p); }
"""

RUN = """
import ctypes, sys
from hil_server.line import assembly
from hil_server.config import load_test
from rt_kernels.loop import LoopLine

calls = ctypes.CDLL(None).allocator_calls
calls.restype = ctypes.c_long
test = assembly.simulation(load_test(sys.argv[1], ["guidance.contact_max_s=8.0", "test.duration_max_s=16.0", *sys.argv[2:]]))
line = LoopLine(test.line.clock, test.ports, test.line.stages)  # no ring: no one else has to run
before = calls()
ctypes.CDLL(None).malloc(64)
counts = [calls() - before]
for _ in range(2):
    before = calls()
    line.run()
    counts.append(calls() - before)
    test.block.request_stop()  # the second run ends before its first tick
print(*counts, int(line.sample["tick"][0]), float(line.sample["capture_time"][0]), len(line.aux))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the counter stands in front of the GNU C library")
@pytest.mark.parametrize(("programme", "channels"), [("virtual_docking", 300), ("virtual_docking_flexible", 320), ("joints", 400),
                                                     ("wings", 400)])  # fmt: skip
def test_a_docking_asks_for_no_memory(tmp_path, programme, channels):
    overrides = []
    if programme in ("joints", "wings"):
        (tmp_path / "craft.toml").write_text(panels("free") if programme == "joints" else wings())
        overrides = [f'test.active_vehicle="{tmp_path / "craft.toml"}"', 'dynamics.part="two_crafts"']
        programme = "virtual_docking"
    (tmp_path / "count.c").write_text(COUNTER)
    made = subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", "count.so", "count.c"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "count.so")}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))

    command = [sys.executable, "-c", RUN, f"programmes/{programme}.toml", *overrides]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    control, calls, idle, ticks, captured, aux = (float(word) for word in done.stdout.split())
    assert control >= 1, "the counter sees a call of malloc"
    assert ticks > 20_000 and captured > 0.0 and aux > channels
    assert calls <= idle, f"{calls:.0f} calls of the allocator in {ticks:.0f} ticks, {idle:.0f} without any"
