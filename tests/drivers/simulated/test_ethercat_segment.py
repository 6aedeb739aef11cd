"""The emulated EtherCAT line against hand-made frames: addresses, working counters, states, mailbox, clocks, and what no master sends."""

import random
import struct

import pytest

from drivers.simulated.ethercat_segment import EtherCatSegment

T0 = 1_000_000_000


def frame(*datagrams: tuple[int, int, int, bytes]) -> bytes:
    """A frame of (command, ADP, ADO, data), padded to 60 bytes."""
    body = b""
    for k, (command, adp, ado, data) in enumerate(datagrams):
        more = 0x8000 if k + 1 < len(datagrams) else 0
        body += struct.pack("<BBHHHH", command, k, adp & 0xFFFF, ado, len(data) | more, 0) + data + b"\0\0"
    return (b"\xff" * 6 + bytes(6) + b"\x88\xa4" + struct.pack("<H", len(body) | 0x1000) + body).ljust(60, b"\0")


def ask(line: EtherCatSegment, command: int, adp: int, ado: int, data: bytes, now: int = T0) -> tuple[bytes, int]:
    """Data and working counter of one datagram."""
    reply = line.exchange(frame((command, adp, ado, data)), now)
    assert reply is not None
    return reply[26 : 26 + len(data)], struct.unpack_from("<H", reply, 26 + len(data))[0]


def state(line: EtherCatSegment, position: int, wanted: int) -> tuple[int, int]:
    """AL status and code after a request."""
    ask(line, 2, -position, 0x120, struct.pack("<H", wanted))
    return struct.unpack("<HxxH", ask(line, 1, -position, 0x130, bytes(6))[0])


def manager(line: EtherCatSegment, position: int, k: int, start: int, length: int, control: int) -> None:
    ask(line, 2, -position, 0x800 + 8 * k, struct.pack("<HHBBBB", start, length, control, 0, 1, 0))


def to_preop(line: EtherCatSegment, position: int = 0) -> None:
    manager(line, position, 0, 0x1000, 128, 0x26)
    manager(line, position, 1, 0x1080, 128, 0x22)
    assert state(line, position, 2) == (2, 0)


def to_op(line: EtherCatSegment, position: int = 0) -> None:
    to_preop(line, position)
    manager(line, position, 2, 0x1100, 7, 0x64)
    manager(line, position, 3, 0x1400, 13, 0x20)
    for k, (logical, length, start, kind) in enumerate(((7 * position, 7, 0x1100, 2), (100 + 13 * position, 13, 0x1400, 1))):
        ask(line, 2, -position, 0x600 + 16 * k, struct.pack("<IHBBHBBB3x", logical, length, 0, 7, start, 0, kind, 1))
    assert state(line, position, 4) == (4, 0)
    assert state(line, position, 8) == (8, 0)


def sdo(line: EtherCatSegment, request: bytes) -> bytes:
    """Answer of slave 0 from its SDO command byte on."""
    box = struct.pack("<HHBBH", len(request) + 2, 0, 0, 0x13, 0x2000) + request
    assert ask(line, 2, 0, 0x1000, box.ljust(128, b"\0"))[1] == 1
    assert ask(line, 1, 0, 0x80D, b"\0")[0][0] & 8
    reply, count = ask(line, 1, 0, 0x1080, bytes(128))
    assert count == 1
    return reply[8 : 6 + struct.unpack_from("<H", reply)[0]]


def test_addresses_and_working_counters() -> None:
    line = EtherCatSegment(3)
    assert ask(line, 7, 0, 0x000, bytes(1)) == (b"\x11", 3)
    for k in range(3):
        assert ask(line, 2, -k, 0x010, struct.pack("<H", 0x1001 + k))[1] == 1
        assert ask(line, 4, 0x1001 + k, 0x010, bytes(2)) == (struct.pack("<H", 0x1001 + k), 1)
    assert ask(line, 6, 0x1002, 0x420, b"\x07\0")[1] == 3  # read 1, write 2
    assert ask(line, 8, 0, 0x420, b"\x05\0")[1] == 3
    assert ask(line, 9, 0, 0x420, b"\x05\0")[1] == 9
    assert ask(line, 4, 0x1009, 0x010, bytes(2))[1] == 0
    assert ask(line, 1, -3, 0x010, bytes(2))[1] == 0
    assert ask(line, 0, 0, 0x010, bytes(2))[1] == 0
    assert ask(line, 1, 0, 0x2FFF, bytes(2))[1] == 0  # beyond the memory
    assert ask(line, 7, 0, 0x110, bytes(2))[0] == struct.pack("<H", 0x5611 | 0x5A31)
    line.exchange(frame((1, 0, 0, bytes(4)), (7, 0, 0x130, bytes(2))), T0)
    assert line.exchange(frame((1, 0, 0, bytes(4)), (7, 0, 0x130, bytes(2))), T0)[6] & 2
    local = bytearray(frame((7, 0, 0x130, bytes(1))))
    local[6:12] = b"\x02\xca\xde\xca\xde\0"  # a locally administered source address, such as kickcat sends from
    assert struct.unpack_from("<H", line.exchange(bytes(local), T0), 27)[0] == 3


def test_an_output_terminal_shows_its_outputs_in_operational_alone() -> None:
    line = EtherCatSegment(2, terminal=1)
    to_preop(line, 1)
    manager(line, 1, 2, 0x1100, 7, 0x64)
    assert state(line, 1, 4) == (0x12, 0x1D)  # it has one byte
    assert state(line, 1, 0x12) == (2, 0)
    manager(line, 1, 2, 0x1100, 1, 0x64)
    ask(line, 2, -1, 0x600, struct.pack("<IHBBHBBB3x", 200, 1, 0, 7, 0x1100, 0, 2, 1))
    assert state(line, 1, 4) == (4, 0)
    assert ask(line, 12, 200, 0, b"\x05") == (b"\x05", 2) and line.outputs(1) == 0
    assert state(line, 1, 8) == (8, 0)
    assert ask(line, 12, 200, 0, b"\x06")[1] == 2 and line.outputs(1) == 6
    ask(line, 7, 0, 0x130, bytes(2), T0 + 99_000_000)
    assert line.outputs(1) == 6
    ask(line, 7, 0, 0x130, bytes(2), T0 + 101_000_000)  # its watchdog: 1000 steps of 100 us
    assert line.outputs(1) == 0 and line.drive(1)["al_state"] == 4


def test_a_step_that_the_set_up_does_not_allow_is_refused() -> None:
    line = EtherCatSegment(1)
    assert state(line, 0, 4) == (0x11, 0x11)
    assert state(line, 0, 0x11) == (1, 0)
    assert state(line, 0, 2) == (0x11, 0x16)  # no mailbox
    assert state(line, 0, 0x11) == (1, 0)
    to_preop(line)
    manager(line, 0, 2, 0x1100, 6, 0x64)
    assert state(line, 0, 4) == (0x12, 0x1D)
    assert state(line, 0, 0x12) == (2, 0)
    manager(line, 0, 2, 0x1100, 7, 0x64)
    manager(line, 0, 3, 0x1400, 12, 0x20)
    assert state(line, 0, 4) == (0x12, 0x1E)
    manager(line, 0, 3, 0x1400, 13, 0x20)
    assert state(line, 0, 4) == (0x12, 0x1E)  # not before it was acknowledged
    assert state(line, 0, 0x12) == (2, 0)
    for cycle, code in ((0, 0x30), (49_999, 0x35)):  # SYNC0 without a cycle, with one that no drive has
        ask(line, 2, 0, 0x9A0, struct.pack("<I", cycle))
        ask(line, 2, 0, 0x981, b"\x03")
        assert state(line, 0, 4) == (0x12, code)
        assert state(line, 0, 0x12) == (2, 0)
    ask(line, 2, 0, 0x9A0, struct.pack("<I", 1_000_000))
    assert state(line, 0, 4) == (4, 0)


def test_sdo_upload_download_and_abort() -> None:
    line = EtherCatSegment(1)
    to_preop(line)
    assert sdo(line, bytes.fromhex("4018100100000000")) == bytes.fromhex("43181001ac0d0000")
    assert sdo(line, bytes.fromhex("4008100000000000"))[:8] == bytes.fromhex("4108100018000000")
    assert sdo(line, bytes.fromhex("2f60600008000000")) == bytes.fromhex("6060600000000000")
    assert sdo(line, bytes.fromhex("2165600004000000") + bytes.fromhex("44332211")) == bytes.fromhex("6065600000000000")
    assert sdo(line, bytes.fromhex("4065600000000000"))[4:] == bytes.fromhex("44332211")
    for request, code in (
        ("4000200000000000", 0x06020000),
        ("4018100900000000", 0x06090011),
        ("2f41600000000000", 0x06010002),
        ("2f65600001000000", 0x06070010),
        ("5018100000000000", 0x06010000),  # complete access
        ("2f60600001000000", 0x06090030),  # a mode that it has not
    ):
        answer = sdo(line, bytes.fromhex(request))
        assert answer[0] == 0x80 and struct.unpack_from("<I", answer, 4)[0] == code, request


def test_enabled_drive_in_the_cycle_and_its_faults() -> None:
    line = EtherCatSegment(2)
    for k in range(2):
        to_op(line, k)
        line.set_actual(k, 1000 * (k + 1))
    inputs = b""
    for word in (0x80, 0x06, 0x07, 0x0F, 0x0F):
        out = b"".join(struct.pack("<HiB", word, 1000 * (k + 1) + 5, 8) for k in range(2))
        inputs, count = ask(line, 12, 0, 0, out.ljust(126, b"\0"))
        assert count == 6
    for k in range(2):
        status, actual = struct.unpack_from("<Hi", inputs, 100 + 13 * k)
        assert (status, actual) == (0x1237, 1000 * (k + 1))
        assert line.drive(k)["target"] == 1000 * (k + 1) + 5
    line.inject("wkc_short", 1)
    assert ask(line, 12, 0, 0, out.ljust(126, b"\0"))[1] == 3
    line.inject("wkc_short", 1, 0)
    line.inject("not_following", 0)
    inputs, count = ask(line, 12, 0, 0, out.ljust(126, b"\0"))
    assert count == 6 and not struct.unpack_from("<H", inputs, 100)[0] & 0x1000
    line.inject("lost", 1)
    assert ask(line, 12, 0, 0, out.ljust(126, b"\0"))[1] == 3
    line.inject("lost", 1, 0)
    line.inject("al_error", 0, 0x1A)
    assert line.drive(0)["al_code"] == 0x1A and line.drive(0)["al_state"] == 4
    assert not line.drive(0)["status"] & 0x04
    ask(line, 7, 0, 0x130, bytes(2), T0 + 200_000_000)  # no outputs for 200 ms
    assert (line.drive(1)["al_state"], line.drive(1)["al_code"]) == (4, 0x1B)


def test_clocks_follow_the_reference() -> None:
    line = EtherCatSegment(2)
    line.set_clock(0, 0.0, 12345, 400)
    line.set_clock(1, 50e-6, 777, 700)
    ask(line, 8, 0, 0x900, bytes(4))
    out, back = struct.unpack("<II", ask(line, 1, 0, 0x900, bytes(8))[0])
    assert (back - out) // 2 == 700
    ask(line, 2, -1, 0x928, struct.pack("<I", 700))
    for k in range(2):
        local = struct.unpack("<q", ask(line, 1, -k, 0x918, bytes(8))[0])[0]
        ask(line, 2, -k, 0x920, struct.pack("<q", -local + 700 * k))
    differences = []
    for k in range(3000):
        ask(line, 13, 0, 0x910, bytes(8), T0 + 1_000_000 * k)
        word = struct.unpack("<I", ask(line, 1, -1, 0x92C, bytes(4), T0 + 1_000_000 * k)[0])[0]
        differences.append(word & 0x7FFFFFFF)
    assert max(differences[:20]) > 20  # 50 ppm are 50 ns in a cycle
    assert max(differences[1000:]) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_hostile_frames_do_no_harm(seed: int) -> None:
    line, generator = EtherCatSegment(3), random.Random(seed)
    to_op(line)
    good = frame((12, 0, 0, bytes(126)), (13, 0, 0x910, bytes(8)), (2, 0, 0x1000, bytes(128)), (7, 0, 0x130, bytes(2)))
    for k in range(3000):
        data = bytearray(good if k % 2 else generator.randbytes(generator.randrange(0, 1600)))
        for _ in range(generator.randrange(1, 12)):
            if data:
                data[generator.randrange(len(data))] = generator.randrange(256)
        if k % 3 == 0 and len(data) > 16:
            data[6], data[12:14] = 0, b"\x88\xa4"
            data[14:16] = struct.pack("<H", 0x1000 | min(0x7FF, len(data) - 16))
        reply = line.exchange(bytes(data), T0 + k)
        assert reply is None or len(reply) == len(data)
    assert line.counters()["frames"] > 100 and line.counters()["refused"] > 100
    assert state(line, 0, 0x11) == (1, 0)
    to_op(line)
