"""Causes of late ticks: each rule by what would have been counted, the watch on tables of the kernel's that are written here, the trace of
context switches against the kernel itself, and a loop that is stopped for real."""

import os
import threading
import time

import numpy as np
import pytest

from hil_server.bus.drain import Recorder
from hil_server.host import kernel_files, late_watch, switch_trace
from hil_server.host.late_causes import CAUSES, REMEDIES, Around, Late, cause_of, summed_up
from hil_server.host.late_watch import LateWatch
from hil_server.host.switch_trace import NONE, SoftirqTrace, SwitchTrace
from rt_kernels.late_ticks import LATE_TICK, LateTicks
from rt_kernels.layout import CODES
from tools import late_causes as tool

MS = 1_000_000
WAKE_UP, COMPUTE, IO = (CODES["late_cause"][name] for name in ("wake_up", "compute", "io"))
SOFTIRQS = """                    CPU0       CPU1
      NET_RX:         {0}         {1}
       TIMER:         {1}         {2}
"""


def late(where=WAKE_UP, late_ns=2 * MS, run_ns=20_000, delay_ns=0, minor=0, major=0, voluntary=1, at=1000 * MS):
    return Late(7, at, late_ns, where, 3 * MS, run_ns, delay_ns, minor, major, voluntary, 0)


CASES = {
    "a second sleep within one": (late(voluntary=2), Around(), "stopped"),
    "stopped in its step": (late(COMPUTE, voluntary=1), Around(stopped=True), "stopped"),
    "pages from the disk": (late(COMPUTE, major=1), Around(), "page_fault"),
    "many pages": (late(COMPUTE, run_ns=3 * MS, minor=200), Around(), "page_fault"),
    "one page is no excuse for two milliseconds": (late(COMPUTE, run_ns=3 * MS, minor=1), Around(), "own_work"),
    "another one ran": (late(delay_ns=2 * MS), Around(ran=[("stress", 0.9), ("loop", 0.1)]), "other_thread"),
    "no one saw who ran": (late(delay_ns=2 * MS), Around(busy=[("stress", 5 * MS)]), "other_thread"),
    "kernel thread of softirqs": (late(delay_ns=2 * MS), Around(ran=[("ksoftirqd/1", 0.9)], softirqs={"NET_RX": 9}), "softirq"),
    "thread of an interrupt": (late(delay_ns=2 * MS), Around(ran=[("irq/24-eth0", 0.9)]), "interrupt"),
    "ready, and the core not free": (late(delay_ns=2 * MS), Around(ran=[("idle", 1.0)], softirqs={"NET_RX": 3}), "softirq"),
    "softirqs upon another thread": (
        late(delay_ns=2 * MS), Around(ran=[("python", 1.0)], softirqs={"NET_RX": 99}, softirq_share=0.4), "softirq",
    ),
    "a thread above the loop, whatever softirqs": (
        late(delay_ns=2 * MS), Around(ran=[("spin", 1.0)], above=True, softirqs={"NET_RX": 99}, softirq_share=0.4), "other_thread",
    ),
    "softirqs on record": (late(delay_ns=2 * MS), Around(ran=[("python", 1.0)], softirq_time={"NET_RX": 0.8, "RCU": 0.1}), "softirq"),
    "no softirqs on record, whatever was counted": (
        late(delay_ns=2 * MS), Around(ran=[("python", 1.0)], softirq_time={"RCU": 0.1}, softirqs={"NET_RX": 9}, softirq_share=0.4),
        "other_thread",
    ),
    "ready, interrupts on a real machine": (late(delay_ns=2 * MS), Around(ran=[("idle", 1.0)], interrupts={"eth0": 900}), "interrupt"),
    "not woken, interrupts off in another one": (late(), Around(ran=[("python", 1.0)]), "other_thread"),
    "not woken, the machine below is busy": (late(), Around(ran=[("python", 1.0)], steal_s=0.2, steal_share=0.4), "steal"),
    "not woken, idle, time was stolen": (late(), Around(ran=[("idle", 1.0)], steal_s=0.01), "steal"),
    "not woken, nothing at all": (late(), Around(ran=[("idle", 1.0)]), "core_stalled"),
    "not woken, idle, softirqs that the record left out": (
        late(), Around(ran=[("idle", 1.0)], softirq_time={}, softirqs={"NET_RX": 3}, softirq_unseen={"NET_RX": 3}), "softirq",
    ),
    "the step waited": (late(IO, voluntary=3), Around(), "blocked"),
    "the step was not on the core, nor off it": (late(COMPUTE, voluntary=0), Around(steal_s=0.02), "steal"),
    "hot": (late(COMPUTE, run_ns=3 * MS, voluntary=0), Around(throttled=2), "throttled"),
    "slow": (late(COMPUTE, run_ns=3 * MS, voluntary=0), Around(frequency=0.5), "frequency"),
    "its own work": (late(COMPUTE, run_ns=3 * MS, voluntary=0), Around(frequency=1.0), "own_work"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_cause_is_named_from_what_was_counted(case):
    tick, around, expected = case
    assert cause_of(tick, around)[0] == expected


def test_without_the_kernels_account_a_long_step_has_no_cause():
    assert cause_of(late(COMPUTE, run_ns=0), Around(), accounted=False) == ("unknown", "")


def test_every_cause_has_a_remedy_and_the_sum_is_ordered():
    seen = (("steal", ""), ("softirq", "NET_RX"), ("softirq", "BLOCK"), ("softirq", "NET_RX"))
    named = [{"tick": k, "late_us": 100 * k, "where": "wake_up", "cause": cause, "who": who} for k, (cause, who) in enumerate(seen)]
    rows = summed_up(named, {"steal": 1, "own_work": 7})
    assert [(row["cause"], row["ticks"], row["worst_us"], row["who"]) for row in rows] == [
        ("own_work", 7, 0, ""), ("softirq", 3, 300, "NET_RX"), ("steal", 2, 0, "")]  # fmt: skip
    assert set(CAUSES) == set(REMEDIES) and all(REMEDIES.values())


def test_the_watch_names_from_the_looks_before_and_after(monkeypatch):
    """Looks 20 ms apart at tables that are written here: packets came, 30 ms of the core's time went into softirqs."""
    now = [1000 * MS]
    tables = {"/proc/stat": "cpu1 0 0 0 100 0 0 {s} 0 0 0\n", "/proc/softirqs": SOFTIRQS}
    counts = {"s": 5, 0: 10, 1: 20, 2: 30}

    def read(path):
        text = tables.get(path, "")
        return text.format(counts[0], counts[1], counts[2], s=counts["s"])

    monkeypatch.setattr(kernel_files, "read", read)
    monkeypatch.setattr(late_watch.time, "monotonic_ns", lambda: now[0])
    ticks = LateTicks.create(8)
    watch = LateWatch(LateTicks.attach(ticks.fd), os.getpid(), 1, trace=False)
    for step in range(12):
        if step == 6:
            counts["s"] += 3
            counts[1] += 500
            ticks.put(np.array(tuple(late(delay_ns=2 * MS, at=now[0] - 10 * MS)), LATE_TICK))
        watch.look(last=True)
        now[0] += 20 * MS
    assert [(one["tick"], one["cause"], one["who"]) for one in watch.named] == [(7, "softirq", "NET_RX")]
    assert watch.facts()["late_sources"] == "run times of threads"


def test_columns_of_the_kernels_tables(monkeypatch):
    text = "     CPU0  CPU1\n 24:  5  7  PCI-MSIX-0000:00:01.0  1-edge  eth0-rx\nLOC:  11  13  Local timer interrupts\nERR:  0\n"
    monkeypatch.setattr(kernel_files, "read", lambda path: text)
    assert late_watch._column("/proc/interrupts", 1) == {"eth0-rx": 7, "LOC": 13}
    assert late_watch._column("/proc/interrupts", 0) == {"eth0-rx": 5, "LOC": 11} and late_watch._column("/proc/interrupts", 9) == {}


def test_late_ticks_pass_between_two_mappings_and_the_oldest_are_written_over():
    ticks = LateTicks.create(8)
    reader = LateTicks.attach(ticks.fd)
    assert len(reader.take()) == 0
    for k in range(3):
        ticks.put(np.array((k,) + tuple(range(1, 11)), LATE_TICK))
    got = reader.take()
    assert got["tick"].tolist() == [0, 1, 2] and got["switches_involuntary"].tolist() == [10, 10, 10]
    for k in range(20):
        ticks.put(np.array((100 + k,) + (0,) * 10, LATE_TICK))
    # the slot that would be filled next is not trusted
    assert reader.take()["tick"].tolist() == list(range(113, 120)) and len(reader.take()) == 0 and reader.recorded == 23
    with pytest.raises(ValueError, match="no late ticks"):
        LateTicks.attach(os.memfd_create("other"))


def test_softirqs_that_were_counted_and_are_not_on_record():
    """Ten records of NET_RX in 100 ms, and what the kernel counted."""
    trace = SoftirqTrace.__new__(SoftirqTrace)
    times = np.arange(0, 100 * MS, 5 * MS)
    states = np.where(np.arange(20) % 2, NONE, switch_trace.SOFTIRQS.index("NET_RX"))
    trace._joined, trace._chunks = (times, states), []
    assert trace.left_out({"NET_RX": 10}, 0, 100 * MS) == {}
    assert trace.left_out({"NET_RX": 30, "BLOCK": 1}, 0, 100 * MS) == {"NET_RX": 20, "BLOCK": 1}
    assert trace.left_out({"NET_RX": 3}, 0, 20 * MS) == {}
    assert trace.left_out({"NET_RX": 30}, -1, 100 * MS) == {}  # the record does not reach back so far


def test_a_core_on_which_nothing_happened_has_no_shares():
    trace = SwitchTrace.open(max(os.sched_getaffinity(0)))
    if trace is None:
        pytest.skip("the kernel gives no record of context switches (perf_event_paranoid, or none in this kernel)")
    trace._new = lambda: b""
    trace.read()
    assert trace.shares(0, 1) is None
    trace.close()


@pytest.mark.alone
def test_the_trace_sees_who_has_the_core():
    """A thread that spins on a core has it, as far as the machine lets it: the trace tells as much of it as the thread's own clock."""
    core = max(os.sched_getaffinity(0))
    trace = SwitchTrace.open(core)
    if trace is None:
        pytest.skip("no record of context switches: needs CAP_PERFMON or kernel.perf_event_paranoid of 0")
    seen = {}

    def spin():
        os.sched_setaffinity(0, {core})
        seen["thread"], begin, used = threading.get_native_id(), time.monotonic_ns(), time.thread_time_ns()
        while time.monotonic_ns() - begin < 100 * MS:
            pass
        seen["span"], seen["used"] = (begin, time.monotonic_ns()), time.thread_time_ns() - used

    thread = threading.Thread(target=spin)
    thread.start()
    thread.join()
    trace.read()
    shares = dict(trace.shares(*seen["span"]))
    trace.close()
    length = seen["span"][1] - seen["span"][0]
    # stolen time is the thread's for the trace, and not for its clock: never less
    assert sum(shares.values()) == pytest.approx(1.0) and shares[seen["thread"]] >= seen["used"] / length - 0.05


@pytest.mark.alone
def test_a_loop_that_is_stopped_is_named_so_in_the_log(tmp_path):
    """Product and tool together, for real: the process of the loop is stopped for 3 ms, some dozen times. How many of its ticks are late
    for other reasons is the machine's affair; those in which the thread slept twice are not."""
    core = max(os.sched_getaffinity(0))

    def act(loop, telemetry):
        return {"stop": tool.inject("stop", 0.4, core, loop, telemetry)}

    injected, named, log = tool.run_loop(core, 20.0, MS, str(tmp_path), act)
    found = tool.labelled(named, injected)["stop"]
    assert log.complete and found["stopped"] >= 1
    twice = [
        one for one in named if one["bursts"] and one["where"] == WAKE_UP and one["switches_voluntary"] == 2 and not one["faults_major"]
    ]
    assert {one["cause"] for one in twice if one["delay_ns"] < 0.5 * one["late_ns"]} == {"stopped"}
    assert all(one["late_ns"] > 100_000 and one["cause"] in CAUSES for one in named)


def test_a_watch_that_fails_costs_the_names_and_not_the_record():
    class Broken:
        sources = "context switches"

        def look(self):
            raise ValueError("no such column")

        def facts(self):
            return {"late": [{"tick": 7}]}

    recorder = Recorder.__new__(Recorder)
    recorder.late, recorder._late_facts = Broken(), {}
    assert "no such column" in recorder.name_late_ticks()["late_sources"] and recorder.late is None
    assert recorder.name_late_ticks() == recorder.name_late_ticks(last=True) == {}
    assert recorder._late_facts["late"] == [{"tick": 7}]
