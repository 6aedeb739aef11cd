"""Preparing the host, with and without the privilege; nothing of it outlives the run. Runs in processes of its own: it locks memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hil_server
from hil_server.host import kernel_files, preflight
from hil_server.host.realtime_host import RealtimeHost, choose_core, parse_cores

HOME = Path(hil_server.__file__).parent.parent
PROBE = """
import json, os, resource
{before}
from hil_server.host.realtime_host import RealtimeHost
locked = lambda: int(next(l for l in open("/proc/self/status") if l.startswith("VmLck")).split()[1])
before = os.sched_getaffinity(0)
with RealtimeHost() as host:
    inside = dict(host.facts(), locked_kb=locked(), cores=sorted(os.sched_getaffinity(0)))
print(json.dumps(inside | {{"locked_after_kb": locked(), "same_cores": os.sched_getaffinity(0) == before}}))
"""


def probe(before=""):
    out = subprocess.run([sys.executable, "-c", PROBE.format(before=before)], capture_output=True, text=True, cwd=HOME, check=True)
    return json.loads(out.stdout)


def test_everything_is_given_back():
    facts = probe()
    assert facts["locked_after_kb"] == 0 and facts["same_cores"]
    assert (facts["locked_kb"] > 0) == facts["memory_locked"]
    if facts["core"] >= 0:
        assert facts["core"] not in facts["cores"]
    assert facts["mode"] == ("realtime" if facts["priority"] and facts["memory_locked"] else "soft")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can drop to a user without the privilege")
def test_without_the_privilege_the_run_is_declared_soft():
    limits = "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)); resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))"
    facts = probe(before=f"{limits}; import threading, hil_server.host.realtime_host; os.setuid(65534)")
    assert facts["mode"] == "soft" and facts["priority"] == 0 and not facts["memory_locked"] and facts["locked_kb"] == 0
    text = "\n".join(facts["missing"])
    assert "SCHED_FIFO: Operation not permitted" in text and "memory lock: limit of 64 KiB" in text and "limits.d" in text


def test_one_core_is_declared(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr(kernel_files, "read", lambda path: "")
    assert choose_core() == -1
    host = RealtimeHost(core=-1)
    host._clear_core()
    assert "a core of its own" in host.missing[0]


def test_isolated_core_is_preferred(monkeypatch):
    monkeypatch.setattr(kernel_files, "read", lambda path: "1-2\n" if path.endswith("isolated") else "")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert choose_core() == 2


@pytest.mark.parametrize(("text", "cores"), [("", set()), ("3\n", {3}), ("0,2-4", {0, 2, 3, 4})])
def test_core_lists(text, cores):
    assert parse_cores(text) == cores


def test_preflight_levels_and_remedies():
    findings = preflight.examine(seconds=0.05)
    assert {f.level for f in findings} <= {"fail", "warn", "info"}
    assert all(f.remedy for f in findings if f.level != "info")
    items = [f.item for f in findings]
    assert "SCHED_FIFO" in items and "memory lock" in items and "wake-ups, 0.05 s at 1 kHz" in items


def test_preflight_fails_without_the_privilege(monkeypatch):
    monkeypatch.setattr(preflight, "fifo_refusal", lambda: "Operation not permitted")
    first = preflight.examine(seconds=0)[0]
    assert first.level == "fail" and first.item == "SCHED_FIFO" and "limits.d" in first.remedy


def test_quantiles_of_a_known_series():
    assert preflight.quantiles([k * 1000 for k in range(1001)]) == {"p50": 500.0, "p99": 990.0, "p999": 999.0, "max": 1000.0}
