"""An independent master against the emulated line, in a network namespace of its own: `unshare -rn python ethercat_masters.py pysoem`.

It makes a veth pair, serves two drives on one end and lets the master (`pysoem` or `kickcat`) bring them to Operation Enabled from the
other. One line of JSON says what the master saw.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from drivers.simulated.ethercat_segment import EtherCatSegment

ENABLE = ((0x80, 0x40), (0x06, 0x21), (0x07, 0x23), (0x0F, 0x27))  # control word, state that it leads to
STATE, FOLLOWS = 0x6F, 0x1237  # bits of the state in the status word; enabled, and it follows
TARGET = 100


def enable(cycle: Callable[[int], list[tuple[int, int]]]) -> None:
    """Cycles until each control word has led all drives to its state, then until they stand at the target. `cycle(control word)` gives
    status word and position of each."""
    for word, state in ENABLE:
        while any(status & STATE != state for status, _ in cycle(word)):
            pass
    while cycle(ENABLE[-1][0]) != [(FOLLOWS, TARGET)] * 2:
        pass


def by_pysoem() -> dict[str, Any]:
    """Scan, other PDOs than the drives had, clocks, refused steps, OP with distributed clocks, a cycle of one LRW, SDOs."""
    import pysoem

    def map_more(position: int) -> None:
        slave = master.slaves[position]
        for assignment, mapping, entry, number in ((0x1C12, 0x1600, 0x60B20010, 4), (0x1C13, 0x1A00, 0x60F40020, 6)):
            slave.sdo_write(assignment, 0, b"\0")
            slave.sdo_write(mapping, 0, b"\0")
            slave.sdo_write(mapping, number, struct.pack("<I", entry))
            slave.sdo_write(mapping, 0, bytes([number]))
            slave.sdo_write(assignment, 0, b"\1")
        slave.dc_sync(True, 1_000_000)

    def refused(state: int) -> tuple[int, int]:
        slave = master.slaves[0]
        slave.state = state
        slave.write_state()
        slave.state_check(state, 20_000)
        master.read_state()
        seen = (slave.state, slave.al_status)
        slave.state = pysoem.PREOP_STATE | pysoem.STATE_ACK
        slave.write_state()
        assert slave.state_check(pysoem.PREOP_STATE, 100_000) == pysoem.PREOP_STATE
        return seen

    master = pysoem.Master()
    master.open("ec0")
    result: dict[str, Any] = {"found": master.config_init(), "dc": master.config_dc()}
    slave = master.slaves[0]
    result["identity"] = [slave.man, slave.id, slave.rev]
    result["op from preop"] = refused(pysoem.OP_STATE)
    slave._fpwr(0x810, struct.pack("<HHBBBB", 0x1100, 6, 0x64, 0, 1, 0))  # outputs one byte too short
    result["short outputs"] = refused(pysoem.SAFEOP_STATE)
    for s in master.slaves:
        s.config_func = map_more
    master.config_map()
    result["safeop"] = master.state_check(pysoem.SAFEOP_STATE, 100_000)
    result["bytes"] = [[len(s.output), len(s.input)] for s in master.slaves]
    master.send_processdata()
    master.receive_processdata(100_000)
    for s in master.slaves:
        s.output = struct.pack("<HiBh", 0, 0, 8, 0)
    master.state = pysoem.OP_STATE
    master.write_state()

    def cycle(word: int) -> list[tuple[int, int]]:
        for s in master.slaves:
            s.output = struct.pack("<HiBh", word, TARGET, 8, 0)
        master.send_processdata()
        result["wkc"] = master.receive_processdata(100_000)
        return [struct.unpack_from("<Hi", s.input) for s in master.slaves]

    enable(cycle)
    master.read_state()
    result["states"] = [s.state for s in master.slaves]
    result["status"] = [struct.unpack_from("<H", s.input)[0] for s in master.slaves]
    result["position"] = [struct.unpack_from("<i", s.input, 2)[0] for s in master.slaves]
    result["delay_ns"] = [struct.unpack("<I", s._fprd(0x928, 4))[0] for s in master.slaves]
    result["sync0_ns"] = [struct.unpack("<I", s._fprd(0x9A0, 4))[0] for s in master.slaves]
    result["name"] = slave.sdo_read(0x1008, 0).decode()
    slave.sdo_write(0x6065, 0, struct.pack("<I", 4321))
    result["window"] = struct.unpack("<I", slave.sdo_read(0x6065, 0))[0]
    result["aborts"] = []
    for index, sub, data in ((0x2000, 0, None), (0x1018, 9, None), (0x6041, 0, b"\0\0"), (0x6060, 0, b"\1"), (0x1A00, 0, b"\0")):
        try:
            slave.sdo_read(index, sub) if data is None else slave.sdo_write(index, sub, data)
        except pysoem.SdoError as error:
            result["aborts"].append(error.abort_code)
    master.close()
    return result


def by_kickcat() -> dict[str, Any]:
    """Scan, mapping as the drives have it, OP without distributed clocks, a cycle of LRD and LWR, SDOs (2.5 overlooks their aborts)."""
    import kickcat
    from kickcat.mailbox.request import MessageStatus

    def done(message: Any) -> int:
        while message.status() == MessageStatus.RUNNING:
            bus.process_mailboxes()
        return message.status()

    def cycle(word: int) -> list[tuple[int, int]]:
        for s in slaves:
            s.set_output_bytes(struct.pack("<HiB", word, TARGET, 8))
        bus.process_data()  # raises an error for a working counter that is not as expected
        return [struct.unpack_from("<Hi", s.input_data) for s in slaves]

    link = kickcat.create_link("ec0", "")
    link.set_timeout(0.05)  # of a frame; its own 2 ms are not enough on a loaded machine
    bus = kickcat.Bus(link)
    bus.init(2.0)  # of the drives' watchdogs; s
    slaves = bus.slaves()
    result: dict[str, Any] = {"found": len(slaves)}
    bus.create_mapping()
    result["bytes"] = [[s.output_size, s.input_size] for s in slaves]
    bus.request_state(kickcat.State.SAFE_OP)
    bus.wait_for_state(kickcat.State.SAFE_OP, 1.0)
    cycle(0)
    bus.request_state(kickcat.State.OPERATIONAL)
    bus.wait_for_state(kickcat.State.OPERATIONAL, 1.0, lambda: cycle(0))
    enable(cycle)
    result["states"] = [int(bus.get_state(s).value) for s in slaves]
    result["status"] = [struct.unpack_from("<H", s.input_data)[0] for s in slaves]
    result["position"] = [struct.unpack_from("<i", s.input_data, 2)[0] for s in slaves]
    mailbox = slaves[1].mailbox
    message = mailbox.read_sdo(0x1018, 4, timeout=2.0)
    result["serial"] = [done(message), int.from_bytes(message.data[: message.size], "little")]
    message = mailbox.read_sdo(0x1008, 0, timeout=2.0)
    result["name"] = [done(message), bytes(message.data[: message.size]).decode()]
    result["write"] = done(mailbox.write_sdo(0x6065, 0, data=struct.pack("<I", 4321), timeout=2.0))
    message = mailbox.read_sdo(0x6065, 0, timeout=2.0)
    result["window"] = [done(message), int.from_bytes(message.data[: message.size], "little")]
    return result


def main(library: str) -> None:
    """Makes the cable, serves the line, prints what the master saw."""
    subprocess.run(["ip", "link", "add", "ec0", "type", "veth", "peer", "name", "ec1"], check=True)
    for name in ("ec0", "ec1"):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(0x88A4))
    s.bind(("ec1", 0))
    line = EtherCatSegment(2)
    line.set_clock(0, -20e-6, 5_000_000, 300)
    line.set_clock(1, 50e-6, 12_345, 700)
    thread = threading.Thread(target=line.serve, args=(s.fileno(),))
    thread.start()
    try:
        result = {"pysoem": by_pysoem, "kickcat": by_kickcat}[library]()
        result["drives"] = [line.drive(k) for k in range(2)]
    finally:
        line.stop()
        thread.join()
    print(json.dumps(result))


main(sys.argv[1])
