"""The bus under clients that die, stop, flood and lie: the log and the loop do not feel it, and the bus is there again."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zmq

from hil_server.bus.server import Bus
from hil_server.bus.settings import TelemetrySettings
from hil_server.bus.wire import bind
from hil_server.client import Client, NoAnswerError
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES
from tests.processes import wait_for_end

ROOT = Path(__file__).resolve().parents[2]
ANY = "tcp://127.0.0.1:*"


def bus_of(process):
    """Process number of the bus, None while there is none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
            line = (stat.parent / "cmdline").read_text()
        except OSError:
            continue
        if int(words[1]) == process.pid and words[0] != "Z" and "hil_server.bus.server" in line:
            return int(stat.parent.name)
    return None


def answer(process, loop):
    """The bus's status, as soon as it gives one, while the run continues."""
    ends = process.endpoints
    while True:
        loop.publish(10)
        with Client(ends["telemetry_address"], ends["command_address"], timeout_s=0.5) as client, contextlib.suppress(NoAnswerError):
            return client.status()


def told(process, loop, condition):
    """The first message of the bus on its state for which the condition holds, while the run continues."""
    with Client(process.endpoints["telemetry_address"], process.endpoints["command_address"]) as client:
        for batch in client.subscribe(topic="status"):
            if condition(status := batch.head | {"tick": batch.tick}):
                return status
            loop.publish(10)


def test_killed_bus_comes_back_on_its_addresses_and_the_log_misses_nothing(start):
    loop, process = start()
    loop.publish(100)
    assert answer(process, loop)["bus_restarts"] == 0
    os.kill(bus_of(process), signal.SIGKILL)
    # until the new one has heard and seen
    status = told(process, loop, lambda status: status["bus_restarts"] and status["tick"] > 0)
    assert status["bus_restarts"] == 1 and answer(process, loop)["bus_restarts"] == 1 and process.alive
    closed = process.finish()
    log = read_log(closed["path"])
    assert closed["complete"] and closed["bus_restarts"] == 1 == log.end["bus_restarts"]
    assert np.array_equal(log.records["tick"], np.arange(loop.tick))


def test_bus_continues_when_the_log_s_process_dies_and_ends_with_the_run(start):
    """Somebody may want to abort."""
    loop, process = start()
    bus = bus_of(process)
    os.kill(process.pid, signal.SIGKILL)
    assert told(process, loop, lambda status: not status["log_ok"])["log_reasons"] == ["the telemetry process has died"]
    assert answer(process, loop)["log_reasons"] == ["the telemetry process has died"]
    process.kill()  # the server lets go
    wait_for_end(bus)


def test_stopped_bus_does_not_hold_up_the_end(start):
    loop, process = start()
    os.kill(bus_of(process), signal.SIGSTOP)
    loop.publish(3000)
    closed = process.finish()
    assert closed["complete"] and closed["ticks"] == 3000


def test_an_answer_does_not_wait_for_what_is_published(tmp_path, header, loop_stand_in):
    """Publishing, which is polite, stands still on a busy machine (here: no one calls `look`); the loop has taken the command."""
    loop = loop_stand_in()
    settings = TelemetrySettings(log_path=str(tmp_path / "run.mcap"), telemetry_address=ANY, command_address=ANY, hand_address=None)
    bus = Bus(loop.block, settings, header)
    runs = threading.Thread(target=loop.run)
    runs.start()
    try:
        ends = bus.endpoints()
        with Client(ends["telemetry_address"], ends["command_address"], timeout_s=30.0) as client:
            for name in ("hold", "resume", "hold"):
                answer = client.command(name)
                assert loop.taken[-1][1] == CODES["command"][name] and answer.sequence == loop.taken[-1][0]
            assert client.status()["tick"] == -1
    finally:
        loop.stop()
        runs.join()
        bus.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_clients_are_felt_by_no_one(start, seed):
    """The short form; 200 clients on a live run: `python tools/hostile_clients.py`."""
    loop, process = start()
    ends = [process.endpoints[f"{name}_address"] for name in ("telemetry", "command", "hand")]
    argv = [sys.executable, str(ROOT / "tools" / "hostile_clients.py"), "--attack", *ends, "--clients", "16", "--seconds", "2"]
    hostile = subprocess.Popen([*argv, "--seed", str(seed)], stdout=subprocess.PIPE, text=True)
    loop.until(lambda: hostile.poll() is not None)
    assert sum(json.loads(hostile.communicate()[0]).values()) == 16
    status = answer(process, loop)
    assert status["commands_accepted"] == 0 and loop.taken == [] and loop.hand(0)[0] == loop.hand(1)[0] == 0
    closed = process.finish()
    log = read_log(closed["path"])
    assert closed["complete"] and closed["overflow"] == 0 and np.array_equal(log.records["tick"], np.arange(loop.tick))


def test_server_sockets_have_keep_alive_and_no_heartbeat():
    with zmq.Context() as context, bind(context, zmq.PUB, "telemetry_address", ANY, None, 10) as socket:
        assert socket.getsockopt(zmq.HEARTBEAT_IVL) == 0
        assert socket.getsockopt(zmq.TCP_KEEPALIVE) == 1 and socket.getsockopt(zmq.TCP_KEEPALIVE_IDLE) == 10


def test_samples_can_be_looked_at_without_being_taken(loop_stand_in):
    loop = loop_stand_in(aux=4, capacity=16)
    block = loop.block
    loop.publish(10)
    first, data = block.look(0, 4)
    size = block.record_size
    ticks = [struct.unpack_from("<q", data, k * size)[0] for k in range(len(data) // size)]
    assert first == 0 and len(data) == 4 * size and block.tail == 0
    whole = block.drain()
    assert data == whole[: 4 * size] and len(ticks) == 4
    loop.publish(10)  # goes over the end of the ring, and over the oldest
    first, data = block.look(0)
    assert first == 20 - 16 + 1 and data[: 5 * size] == whole[5 * size :] and data[5 * size :] == block.drain()
    assert block.look(20) == (20, b"") and block.look(25)[1] == b""
