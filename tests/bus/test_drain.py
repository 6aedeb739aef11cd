"""The telemetry process as it runs: started by a server, fed through the shared block, watched and commanded by clients."""

import asyncio
import contextlib
import os
import re
import signal
import socket as sockets
import subprocess
import sys
import threading
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
import zmq.auth

from hil_server.bus.publisher import MAX_BURST
from hil_server.bus.server import PUBLISH_QUEUE
from hil_server.bus.settings import TelemetrySettings
from hil_server.bus.wire import Curve, make_keys
from hil_server.client import AsyncClient, Client, CommandError, LayoutMismatchError, NoAnswerError, RefusedError
from hil_server.errors import ConfigurationError, DeviceError
from hil_server.log.reader import read_log
from hil_server.log.recoveries import name_of_arguments
from hil_server.operator_desk.sender import HandSender
from rt_kernels.layout import CODES, LAYOUT_HASH
from tests.processes import wait_for_end

ANY = "tcp://127.0.0.1:*"


def client_of(process, **options):
    return Client(process.endpoints["telemetry_address"], process.endpoints["command_address"], **options)


class InBackground:
    """The loop beside the test, until `join`."""

    def __init__(self, loop):
        self._loop = loop
        self._thread = threading.Thread(target=loop.run)
        self._thread.start()

    def join(self):
        self._loop.stop()
        self._thread.join()


@pytest.fixture
def in_background():
    """in_background(loop) -> started InBackground; joined at the end whatever happens."""
    made = []

    def make(loop):
        made.append(InBackground(loop))
        return made[-1]

    yield make
    for one in made:
        one.join()


# ------------------------------------------------------------------------------------------------------------------- log


def test_everything_in_the_ring_is_in_the_log(start):
    loop, process = start()
    loop.until(lambda: loop.tick >= 300)
    loop.publish(3000)  # and far more at once than the process takes in one look
    loop.block.finished = True
    closed = process.finish({"end": "captured", "page_faults": 0})
    log = read_log(closed["path"])
    assert closed["complete"] and closed["ticks"] == log.ticks == loop.tick
    assert list(log.records["tick"]) == list(range(loop.tick))
    assert log.damaged() == [] and log.complete
    assert log.end == {"end": "captured", "page_faults": 0, "overflow": 0, "lost_ticks": 0}


def test_commands_and_sticks_reach_the_loop_while_the_log_stands_still(start, in_background):
    loop, process = start()
    thread = in_background(loop)
    with client_of(process) as client, HandSender(0, process.endpoints["hand_address"]) as stick:
        os.kill(process.pid, signal.SIGSTOP)
        taken = client.command("abort")
        assert stick.wait(100.0) and stick.send([0.5] * 6, 1)
        loop.until(lambda: loop.hand(0)[3] == 1, 0)
        os.kill(process.pid, signal.SIGCONT)
    assert loop.hand(0)[2] == [0.5] * 6
    thread.join()
    process.finish()
    assert read_log(process.closed["path"]).records["command_code"][taken.tick] == CODES["command"]["abort"]


def test_overflow_marks_the_run(start):
    loop, process = start(capacity=64)
    os.kill(process.pid, signal.SIGSTOP)
    loop.publish(100)
    os.kill(process.pid, signal.SIGCONT)
    closed = process.finish()
    assert not closed["complete"] and closed["overflow"] == 36 and "ring overflow" in closed["reasons"][0]
    assert read_log(closed["path"]).incomplete == closed["reasons"]


def test_server_that_dies_leaves_a_finished_log(tmp_path, header):
    script = f"""
import os, sys, time
from hil_server.bus.process import TelemetryProcess
from hil_server.bus.settings import TelemetrySettings
from hil_server.bus.wire import Curve, make_keys
from hil_server.log.header import LogHeader
from rt_kernels.ring import SharedBlock
from tests.bus.conftest import LoopStandIn
from tests.log.conftest import _make_records
loop = LoopStandIn(SharedBlock.create(4096, 0), _make_records)
process = TelemetryProcess.start(loop.block.fd, TelemetrySettings.offline({str(tmp_path / "run.mcap")!r}), LogHeader("dies"))
loop.publish(777)
print(process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert answer.returncode == -signal.SIGKILL, answer.stderr
    wait_for_end(int(answer.stdout))
    log = read_log(tmp_path / "run.mcap")
    assert log.ticks == 777 and log.incomplete == ["the server ended without closing the run"]


def test_sigterm_drains_and_closes_and_ctrl_c_is_not_for_it(start):
    loop, process = start()
    os.kill(process.pid, signal.SIGINT)
    loop.publish(500).drained()
    assert process.alive
    os.kill(process.pid, signal.SIGTERM)
    wait_for_end(process.pid)
    closed = process.finish()
    assert closed["ticks"] == 500 and "SIGTERM" in closed["reasons"][0]


def test_killed_process_leaves_all_but_a_quarter_of_a_second(start, tmp_path):
    loop, process = start()
    for _ in range(10):
        loop.publish(100).drained()  # what was taken before is written
    process.kill()
    log = read_log(tmp_path / "run.mcap")
    assert loop.tick == 1000 and loop.tick - log.ticks <= 250 and not log.complete


def test_existing_log_is_refused_at_the_start(start, tmp_path):
    (tmp_path / "run.mcap").write_bytes(b"precious")
    with pytest.raises(Exception, match="File exists"):
        start()
    assert (tmp_path / "run.mcap").read_bytes() == b"precious"


# ------------------------------------------------------------------------------------------------------------- telemetry


def test_subscriber_sees_every_sample_of_the_channels_it_asked_for(start, in_background):
    loop, process = start()
    client = client_of(process)
    batches = client.subscribe(["F_T", "tick", "damper_stroke"], timeout_s=5.0)
    thread = in_background(loop)
    got = [next(batches) for _ in range(15)]
    thread.join()
    batches.close()
    ticks = np.concatenate([batch["tick"] for batch in got])
    assert list(ticks) == list(range(ticks[0], ticks[0] + 300))
    first = got[0]
    assert set(first.channels) == {"F_T", "tick", "damper_stroke"} and first["F_T"].shape == (20, 6)
    assert first["damper_stroke"].shape == (20, 3)
    assert first.tick == first["tick"][-1] and first.t == pytest.approx(first.tick * 1e-3) and first.t_ns == first.tick * 1_000_000
    assert first.run == "RT-07" and first.dropped == 0 and all(batch.lost == 0 for batch in got)
    process.finish()
    log = read_log(process.closed["path"])
    for batch in got:
        assert np.array_equal(batch["F_T"], log.records["F_T"][batch["tick"]])


def test_message_form_for_plotjuggler(start, in_background):
    """Exactly two parts; a map with string keys; `t` a number in seconds at the top level of every message."""
    loop, process = start(plotjuggler_address=ANY)
    context = zmq.Context.instance()
    with context.socket(zmq.SUB) as plot, context.socket(zmq.SUB) as all_topics:
        plot.connect(process.endpoints["plotjuggler_address"])
        all_topics.connect(process.endpoints["telemetry_address"])
        for socket in (plot, all_topics):
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        thread = in_background(loop)
        seen = {}
        for socket in [plot] * 5 + [all_topics] * 60:
            assert socket.poll(3000)
            parts = socket.recv_multipart()
            assert len(parts) == 2
            message = msgpack.unpackb(parts[1])
            assert all(isinstance(key, str) for key in message)
            assert type(message["t"]) is float and type(message["t_ns"]) is int and message["layout"] == LAYOUT_HASH
            assert {"tick", "run", "dropped"} <= set(message)
            seen[parts[0]] = message
            if set(seen) == {b"full", b"slow", b"status"}:
                break
        thread.join()
    assert set(seen) == {b"full", b"slow", b"status"}
    assert len(seen[b"slow"]["last"]["F_T"]) == 6 and "record_crc" not in seen[b"full"]["channels"]
    process.finish()


class Witness:
    """Counts what goes out to a subscriber that reads: messages, bytes, the longest message, the number of the newest."""

    def __init__(self, address):
        self.messages = self.bytes = self.longest = self.sequence = 0
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"full")
        self.socket.connect(address)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close(0)

    def read(self):
        while self.socket.poll(0):
            message = self.socket.recv_multipart()
            length, self.sequence = sum(map(len, message)), msgpack.unpackb(message[1])["sequence"]
            self.messages, self.bytes, self.longest = self.messages + 1, self.bytes + length, max(self.longest, length)
        return self.messages


def buffers():
    """Bytes that a connection holds at most: the sender's largest buffer, and the receiver's of 64 KiB, which Linux doubles."""
    return int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2]) + 2 * 65536


READER = """
import select, sys, zmq, msgpack
s = zmq.Context().socket(zmq.SUB); s.setsockopt(zmq.RCVHWM, 50); s.setsockopt(zmq.RCVBUF, 65536); s.setsockopt(zmq.SUBSCRIBE, b"full")
s.connect(sys.argv[1])
expected, gaps, count, last = None, 0, 0, None
while True:
    m = msgpack.unpackb(s.recv_multipart()[1])
    gaps += 0 if expected in (None, m["sequence"]) else m["sequence"] - expected
    expected = m["sequence"] + 1; count += 1
    print(m["sequence"], flush=True)
    if last is None and select.select([sys.stdin], [], [], 0)[0]: last = int(sys.stdin.readline())
    if last is not None and m["tick"] >= last: break
print(count, gaps, flush=True)
"""


class Reader:
    """A subscriber in its own process: reports the number of each message, and at its end how many it had and how many it missed."""

    def __init__(self, address):
        self.process = subprocess.Popen([sys.executable, "-c", READER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.output = b""
        os.set_blocking(self.process.stdout.fileno(), False)

    def words(self):
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.process.stdout.fileno(), 65536):
                self.output += chunk
        return [int(word) for word in self.output.split()]

    def has(self, sequence):
        return self.ended or self.words()[-1] >= sequence

    @property
    def ended(self):
        return self.process.poll() is not None

    def end_at(self, tick):
        self.process.stdin.write(b"%d\n" % tick)
        self.process.stdin.flush()


def test_four_subscribers_one_stopped_one_sending_garbage(start, tmp_path):
    """Gaps only at the stopped one; nothing of the garbage is accepted; the log is whole. The others are waited for: how fast a process
    is that reads is the machine's."""
    loop, process = start()
    readers = [Reader(process.endpoints["telemetry_address"]) for _ in range(3)]
    try:
        for reader in readers:  # each with its first message
            loop.until(reader.words, 20)
        with Witness(process.endpoints["telemetry_address"]) as witness:

            def followed():
                witness.read()
                return all(reader.has(witness.sequence) for reader in readers[1:])

            loop.until(lambda: witness.read() > 0, 20)
            readers[0].process.send_signal(signal.SIGSTOP)
            size = witness.bytes
            garbage = Garbage(process.endpoints)
            # more than both queues and both buffers of the connection of the stopped one take
            while witness.bytes - size <= (PUBLISH_QUEUE + 50 + 1) * witness.longest + buffers():
                loop.publish(60).drained()
                garbage.send()
                loop.until(followed, 1)
            readers[0].process.send_signal(signal.SIGCONT)
            last = loop.tick + 1000
            for reader in readers:
                reader.end_at(last)
            while not all(reader.ended for reader in readers):
                readers[0].words()
                loop.publish(20).drained().until(followed, 1)
        counts = [reader.words()[-2:] for reader in readers]
    finally:
        for reader in readers:
            reader.process.kill()
            reader.process.communicate()
    with client_of(process) as client:
        accepted = client.status()
    garbage.close()
    closed = process.finish()
    assert counts[1][1] == 0 and counts[2][1] == 0 and counts[1][0] >= MAX_BURST, counts
    assert counts[0][1] > 0 or counts[0][0] < counts[1][0], counts
    assert accepted["commands_accepted"] == 0 and accepted["hand_accepted"] == 0 and loop.taken == []
    assert accepted["requests_malformed"] > 100 and garbage.sent > 500
    assert closed["complete"] and closed["ticks"] == loop.tick and closed["overflow"] == 0


class Garbage:
    """A client that subscribes, and sends rubbish to every address there is."""

    def __init__(self, endpoints):
        self.context = zmq.Context()
        self.dealers = []
        for key in ("command_address", "hand_address", "telemetry_address"):
            kind = zmq.XSUB if key == "telemetry_address" else zmq.DEALER
            dealer = self.context.socket(kind)
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.connect(endpoints[key])
            self.dealers.append(dealer)
        self.endpoints = endpoints
        self.rng = np.random.default_rng(5)
        self.sent = 0

    def send(self):
        rubbish = [
            [self.rng.bytes(int(self.rng.integers(0, 300)))],
            [b"command", self.rng.bytes(50)],
            [b"command", msgpack.packb({"command": "launch", "id": 1})],
            [b"command", msgpack.packb({"command": "insert", "args": {"stroke_m": float("nan"), "rate_m_s": 0.1}})],
            [b"command", msgpack.packb({"command": "brakes", "args": [1, 2, 3, 4, 5, 6, 7, 8, 9]})],
            [b"command", msgpack.packb([1, 2])],
            [b"command", msgpack.packb({1: 2})],
            [b"hand", msgpack.packb({"seq": 1, "t": 1.0, "id": 9, "axes": [0] * 6, "buttons": 0})],
            [b"hand", msgpack.packb({"seq": 1, "t": 1.0, "id": 0, "axes": [9.0] * 6, "buttons": 0})],
            [b"", b"", b"", b"", b""],
            [b"command", b"\x93" * 200],
        ]
        for dealer in self.dealers:
            for message in rubbish:
                try:
                    dealer.send_multipart(message, zmq.NOBLOCK)
                    self.sent += 1
                except zmq.ZMQError:
                    pass
        for endpoint in self.endpoints.values():  # and bytes that are no ZeroMQ at all
            host, port = endpoint.removeprefix("tcp://").split(":")
            with sockets.create_connection((host, int(port)), timeout=2) as raw:
                try:
                    raw.sendall(self.rng.bytes(200))
                except OSError:
                    pass

    def close(self):
        for dealer in self.dealers:
            dealer.close()
        self.context.term()


# -------------------------------------------------------------------------------------------------------------- commands


def test_command_is_acknowledged_with_the_tick_that_took_it(start, in_background):
    loop, process = start()
    loop.publish(10)  # so that there is a tick before the one that takes the command
    thread = in_background(loop)
    with client_of(process, name="test") as client:
        first, second = client.command("hold"), client.command("inject_fault", fault="transducer_offset", index=2, value=-1.5)
        client.leave_desk()
    thread.join()
    process.finish()
    records = read_log(process.closed["path"]).records
    for acknowledgement, code in ((first, "hold"), (second, "inject_fault")):
        assert records["command_code"][acknowledgement.tick] == CODES["command"][code]
        assert records["command_sequence"][acknowledgement.tick] == acknowledgement.sequence
        assert records["command_sequence"][acknowledgement.tick - 1] < acknowledgement.sequence
    assert loop.taken[1][3][:3] == [3.0, 2.0, -1.5] and name_of_arguments(loop.taken[1][3][3:]).endswith(": test")


def test_req_socket_of_another_language_works(start, in_background):
    loop, process = start()
    thread = in_background(loop)
    with zmq.Context.instance().socket(zmq.REQ) as req:
        req.setsockopt(zmq.LINGER, 0)
        req.connect(process.endpoints["command_address"])
        req.send_multipart([b"command", msgpack.packb({"command": "hold", "id": "a"})])
        assert req.poll(3000)
        topic, data = req.recv_multipart()
    thread.join()
    answer = msgpack.unpackb(data)
    assert topic == b"reply" and answer["ok"] and answer["id"] == "a" and answer["tick"] >= 0
    process.finish()


def test_loop_that_takes_nothing(start):
    loop, process = start()
    with client_of(process, timeout_s=2.0) as client, pytest.raises(RefusedError, match="in its time, and will not act") as refusal:
        client.command("hold")
    assert refusal.value.kind == "not_taken"
    process.finish()


def test_no_reader():
    with Client("tcp://127.0.0.1:9", "tcp://127.0.0.1:9", timeout_s=0.2) as client:
        with pytest.raises(NoAnswerError, match="no answer from tcp://127.0.0.1:9 within 0.2 s"):
            client.status()
        with pytest.raises(NoAnswerError, match="no telemetry"):
            next(client.subscribe(timeout_s=0.1))


def test_server_refuses_what_the_client_did_not_check(start):
    loop, process = start()
    cases = [
        ({"command": "launch"}, "arguments", "unknown command 'launch'"),
        ({"command": "insert", "args": {"stroke_m": 5.0, "rate_m_s": 0.1}}, "arguments", "stroke_m: 5 is not within -1...1 m"),
        ({"command": "insert", "args": {"stroke_m": 0.5}}, "arguments", "rate_m_s is missing"),
        ({"command": "hold", "args": {"force": 1}}, "arguments", "unknown argument 'force'"),
        ({"command": "hold", "sudo": 1}, "malformed", "unknown key 'sudo'"),
        ({"command": "hold", "layout": "0123"}, "layout", f"0123.*{LAYOUT_HASH}"),
    ]
    with zmq.Context.instance().socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(process.endpoints["command_address"])
        for request, kind, text in cases:
            dealer.send_multipart([b"command", msgpack.packb({**request, "id": 1})])
            assert dealer.poll(3000)
            answer = msgpack.unpackb(dealer.recv_multipart()[1])
            assert not answer["ok"] and answer["kind"] == kind and re.search(text, answer["error"]), answer
        dealer.send_multipart([b"command", b"x" * 100_000])  # beyond the size limit: the connection is closed, nothing is read
        dealer.send_multipart([b"status", msgpack.packb({"id": 7})])
        dealer.poll(500)
    with client_of(process) as client:
        assert client.status()["commands_accepted"] == 0
        with pytest.raises(CommandError, match="unknown command"):
            client.command("launch")
    assert loop.taken == []
    process.finish()


def test_one_commanding_client_at_a_time(start, in_background):
    loop, process = start()
    thread = in_background(loop)
    with client_of(process, name="desk A") as a, client_of(process, name="desk B") as b:
        a.command("start")
        with pytest.raises(RefusedError, match="held by .*desk A") as refusal:
            b.command("resume")
        assert refusal.value.kind == "held" and b.status()["desk_holder"].endswith("desk A")
        assert b.command("abort").command == "abort"  # stopping is everybody's right
        a.leave_desk()
        b.take_desk()
        with pytest.raises(RefusedError, match="held by .*desk B"):
            a.command("start")
        b.command("start")
        b.leave_desk()
        with a.visit():
            a.command("hold")
        assert b.status()["desk_holder"] == ""
        b.command("resume")
    thread.join()
    process.finish()


def test_too_many_requests(start):
    loop, process = start()
    with client_of(process) as client, pytest.raises(RefusedError, match="requests a second") as refusal:
        for _ in range(500):
            client.status()
    assert refusal.value.kind == "rate"
    process.finish()


def test_describe(start):
    _, process = start()
    with client_of(process) as client:
        about = client.describe()
    assert about["run"] == "RT-07" and about["delay_ledger"]["ticks"] == 0.001 and about["aux"][0][0] == "damper_stroke"
    assert ["F_T", "f8", 6, "N,N.m", "T"] == next(f for f in about["fields"] if f[0] == "F_T")[:5]
    process.finish()


def test_asyncio_client(start, in_background):
    loop, process = start()
    thread = in_background(loop)

    async def work():
        async with AsyncClient(process.endpoints["telemetry_address"], process.endpoints["command_address"]) as client:
            batches = client.subscribe(["phase"], timeout_s=3.0)
            batch = await anext(batches)
            acknowledged, status = await asyncio.gather(client.command("hold"), client.status())
            await batches.aclose()
            with pytest.raises(CommandError):
                await client.command("hold", now=1)
            return batch, acknowledged, status

    batch, acknowledged, status = asyncio.run(work())
    thread.join()
    process.finish()
    assert batch["phase"].shape == (20,) and acknowledged.command == "hold" and acknowledged.tick >= 0 and status["running"]


def test_other_layout_is_shown_with_ours(start, monkeypatch):
    import hil_server.client as client_module

    loop, process = start()
    monkeypatch.setattr(client_module, "LAYOUT_HASH", "feedfacefeedface")
    with client_of(process) as client, pytest.raises(LayoutMismatchError, match=LAYOUT_HASH):
        client.status()
    process.finish()


# ------------------------------------------------------------------------------------------------------ hand controllers


def test_hand_controller_reaches_the_block(start):
    loop, process = start()
    axes = [0.1, -0.2, 0.3, 0.0, 1.0, -1.0]
    with HandSender(1, process.endpoints["hand_address"]) as sender:
        assert sender.wait(100.0)
        for _ in range(5):
            assert sender.send(axes, 1)
        loop.until(lambda: loop.hand(1)[0] >= 4, 0)
        with pytest.raises(ValueError, match="axes"):
            sender.send([2.0] * 6, 0)
    sequence, _, got, buttons, status = loop.hand(1)
    assert (sequence, got, buttons, status) == (4, axes, 1, 1) and loop.hand(0)[0] == 0
    process.finish()


# ------------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:9870", "tcp://*:9870", "tcp://192.168.1.5:9870", "tcp://eth0:9870", "tcp://[::]:9870"])
def test_other_addresses_need_keys(address):
    with pytest.raises(ConfigurationError, match="telemetry.command: other machines can reach .*keys"):
        TelemetrySettings(command_address=address)


@pytest.mark.parametrize("address", ["9870", "udp://127.0.0.1:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://:1"])
def test_malformed_addresses(address):
    with pytest.raises(ConfigurationError, match="telemetry.hand_controller: .*is not an address"):
        TelemetrySettings(hand_address=address)


def test_settings_name_their_faults():
    with pytest.raises(ConfigurationError, match="telemetry.nice: 99 is not a whole number within 0...19"):
        TelemetrySettings(nice=99)
    with pytest.raises(ConfigurationError, match="telemetry.portt: unknown key"):
        TelemetrySettings.from_dict({"portt": 1})
    with pytest.raises(ConfigurationError, match="curve.public_key: not a CURVE key"):
        TelemetrySettings(curve={"public_key": "abc", "secret_key": "abc", "allowed": []})
    public, secret = (key.decode() for key in zmq.curve_keypair())
    with pytest.raises(ConfigurationError, match="curve.allowed: empty"):
        TelemetrySettings(curve={"public_key": public, "secret_key": secret, "allowed": []})


def test_key_folder_names_what_is_missing(tmp_path):
    with pytest.raises(ConfigurationError, match="telemetry.keys: .*server.key_secret"):
        Curve.from_folder(tmp_path)
    make_keys(tmp_path, ())
    with pytest.raises(ConfigurationError, match="curve.allowed: empty"):
        Curve.from_folder(tmp_path)


def test_taken_address_is_named(start):
    _, process = start()
    with pytest.raises(DeviceError, match="telemetry.command: cannot bind"):
        start(log_path="", command_address=process.endpoints["command_address"])
    process.finish()


def test_curve_lets_in_the_listed_key_only(start, tmp_path, in_background):
    make_keys(tmp_path / "keys", ("friend",))
    table = {"publish": "tcp://0.0.0.0:*", "command": "tcp://0.0.0.0:*", "hand_controller": "", "samples_per_message": 20}
    settings = TelemetrySettings.from_table({**table, "keys": str(tmp_path / "keys")}, str(tmp_path / "run.mcap"))
    loop, process = start(**settings.to_dict())
    server = [settings.curve.public_key]
    friend = [key.decode() for key in zmq.auth.load_certificate(tmp_path / "keys" / "clients" / "friend.key_secret")]
    stranger = [key.decode() for key in zmq.curve_keypair()]
    ends = {key: end.replace("0.0.0.0", "127.0.0.1") for key, end in process.endpoints.items()}
    thread = in_background(loop)
    with Client(ends["telemetry_address"], ends["command_address"], server_key=server[0], keys=tuple(friend)) as client:
        assert client.command("hold").tick >= 0
        batches = client.subscribe(["tick"], timeout_s=3.0)
        next(batches)
        batches.close()
    for keys in (tuple(stranger), None):
        options = {"server_key": server[0], "keys": keys} if keys else {}
        with Client(ends["telemetry_address"], ends["command_address"], timeout_s=0.4, **options) as client:
            with pytest.raises(NoAnswerError):
                client.status()
            with pytest.raises(NoAnswerError):
                next(client.subscribe(timeout_s=0.4))
    thread.join()
    assert len(loop.taken) == 1
    process.finish()
