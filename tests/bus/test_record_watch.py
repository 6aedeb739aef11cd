"""What the server's supervisor sees of a record that goes wrong: telemetry dead, stopped, without disk, left behind by the loop."""

import os
import resource
import signal

import pytest

from hil_server.bus.process import RecordWatch
from hil_server.errors import InternalError
from hil_server.log.reader import read_log


@pytest.fixture
def start(start):
    """start(capacity) -> (loop, process, watch), with a log and no bus."""

    def make(capacity=8192):
        loop, process = start(capacity=capacity, offline=True)
        return loop, process, RecordWatch(process, loop.block)

    return make


def until(loop, watch, per_look=20):
    """The run continues until the watch has something to say."""
    loop.until(watch.look, per_look)
    return watch.reason


def test_nothing_to_say_of_a_good_run(start):
    loop, process, watch = start()
    for _ in range(50):
        loop.publish(20)
        assert watch.look() == ""
        loop.drained()
    assert process.finish()["complete"]


def test_dead_process_is_seen_with_its_signal(start):
    loop, process, watch = start()
    loop.publish(100)
    os.kill(process.pid, signal.SIGKILL)
    assert until(loop, watch) == "the telemetry process has died (signal SIGKILL)"
    with pytest.raises(InternalError, match="without closing"):
        process.finish()


def test_stopped_process_is_seen_before_a_tick_is_lost_and_its_log_is_whole(start):
    loop, process, watch = start(capacity=1000)
    os.kill(process.pid, signal.SIGSTOP)
    reason = until(loop, watch)
    assert "more than half of what there is room for" in reason and loop.block.overflow == 0
    loop.publish(200)  # the way home
    closed = process.finish({"record_lost": reason})  # lets it run again
    assert closed["complete"] and read_log(closed["path"]).ticks == loop.tick
    assert read_log(closed["path"]).end["record_lost"] == reason


def test_first_reason_stays(start):
    loop, process, watch = start(capacity=1000)
    os.kill(process.pid, signal.SIGSTOP)
    reason = until(loop, watch)
    loop.publish(2000)
    assert loop.block.overflow > 0 and watch.look() == reason
    later = RecordWatch(process, loop.block)
    assert later.look() == f"the ring to the log is full, {loop.block.overflow} ticks are lost"


def test_file_that_takes_no_more_is_seen_with_the_system_s_reason(start):
    loop, process, watch = start()
    loop.publish(300)
    unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (500_000, unlimited[1]))
    assert until(loop, watch) == "log: File too large"
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)  # room for the log's end, whatever the last chunk has left
    closed = process.finish()
    log = read_log(closed["path"])
    assert log.incomplete == ["log: File too large"] and log.ticks + log.end["lost_ticks"] == loop.tick


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system of 1 MB needs root")
def test_full_disk_is_seen(start, tmp_path):
    import subprocess

    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mounting is not permitted here: {mounted.stderr.strip()}")
    try:
        loop, process, watch = start()
        assert until(loop, watch) == "log: No space left on device"
        closed = process.finish()
        log = read_log(closed["path"])
        assert log.incomplete == ["log: No space left on device"] and 0 < log.ticks < loop.tick == log.ticks + log.end["lost_ticks"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
