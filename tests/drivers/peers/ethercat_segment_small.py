"""The smallest EtherCAT segment that pysoem brings to Operational: for tests of the set-up with the real library on a veth pair.

`python -m tests.drivers.peers.ethercat_segment_small INTERFACE [drives]`: says ready, answers until it is killed. Drives with 7 bytes of
outputs and 13 of inputs, CiA 402 by the control word, position = target; clocks are CLOCK_MONOTONIC. Registers are plain memory but for
states, mailbox, SII, time, and the watchdog of the process data (0x400, 0x420): without outputs for so long in Operational a drive is
in Safe-Operational with error 0x1B, and in fault.
"""

import contextlib
import select
import socket
import struct
import sys
import time

ETHERTYPE = 0x88A4
MAILBOX, OUT_BOX, IN_BOX, OUTPUTS, INPUTS = 128, 0x1000, 0x1080, 0x1100, 0x1400


class Slave:
    def __init__(self):
        self.mem = bytearray(0x2000)
        self.mem[0:10] = bytes([4, 1, 1, 0, 4, 4, 8, 0x0F, 0x0C, 0])
        self.mem[0x110] = 0x01
        struct.pack_into("<H", self.mem, 0x400, 2498)
        self.mem[0x130] = 1
        self.objects = {(0x1000, 0): struct.pack("<I", 402), (0x1C00, 0): b"\x04"}
        self.objects |= {(0x1C00, k): bytes([k]) for k in (1, 2, 3, 4)}
        self.objects |= {(0x1018, k): struct.pack("<I", value) for k, value in enumerate((0x9A, 0x924, 0, 0), 1)}
        inputs = (0x60410010, 0x60640020, 0x606C0020, 0x60770010, 0x60610008)
        for n, entries in ((0x1600, (0x60400010, 0x607A0020, 0x60600008)), (0x1A00, inputs)):
            self.objects[n, 0] = bytes([len(entries)])
            self.objects |= {(n, k): struct.pack("<I", e) for k, e in enumerate(entries, 1)}
        self.objects |= {(0x1C12, 0): b"\1", (0x1C12, 1): b"\0\x16", (0x1C13, 0): b"\1", (0x1C13, 1): b"\0\x1a"}
        words = [0] * 64
        words[8], words[10] = 0x9A, 0x924
        words[24:28] = [OUT_BOX, MAILBOX, IN_BOX, MAILBOX]
        words[28] = 4
        managers = b""
        boxes = ((OUT_BOX, MAILBOX, 0x26, 1), (IN_BOX, MAILBOX, 0x22, 2), (OUTPUTS, 7, 0x64, 3), (INPUTS, 13, 0x20, 4))
        for start, size, control, kind in boxes:
            managers += struct.pack("<HHBBBB", start, size, control, 0, 1, kind)
        self.sii = struct.pack("<64H", *words) + struct.pack("<HH", 41, len(managers) // 2) + managers + b"\xff" * 64
        self.offset, self.word, self.position, self.counter = 0, 0x0250, 1000, 0
        self.frame_ns = 0  # newest outputs in Operational

    def time(self):
        return time.monotonic_ns() + self.offset

    def read(self, at, size):
        if at <= 0x910 < at + size:
            struct.pack_into("<Q", self.mem, 0x910, self.time() & 0xFFFFFFFFFFFFFFFF)
        data = bytes(self.mem[at : at + size])
        if at <= IN_BOX + MAILBOX - 1 < at + size:
            if not self.mem[0x80D] & 8:
                return None
            self.mem[0x80D] &= ~8
        return data

    def write(self, at, data):
        if at == OUT_BOX:
            self.mem[at : at + len(data)] = data
            self.mailbox(data)
            return
        if at in (0x910,):
            return
        self.mem[at : at + len(data)] = data
        if at <= 0x900 < at + len(data):
            now = time.monotonic_ns()
            struct.pack_into("<IIII", self.mem, 0x900, *[now & 0xFFFFFFFF] * 4)
            struct.pack_into("<Q", self.mem, 0x918, now)
        if at <= 0x920 < at + len(data):
            self.offset = struct.unpack_from("<q", self.mem, 0x920)[0]
        if at <= 0x120 < at + len(data):
            self.mem[0x130] = data[0x120 - at] & 0x0F
            self.mem[0x134:0x136] = b"\0\0"
            self.frame_ns = time.monotonic_ns()
            if self.mem[0x130] != 8 and self.word & 0x6F == 0x27:
                self.word = 0x0250
        if at <= 0x502 < at + len(data) and self.mem[0x503] & 1:
            word = struct.unpack_from("<I", self.mem, 0x504)[0]
            self.mem[0x508:0x510] = self.sii[2 * word : 2 * word + 8].ljust(8, b"\xff")
            self.mem[0x502], self.mem[0x503] = 0x40, 0

    def mailbox(self, data):
        length, address, channel, kind = struct.unpack_from("<HHBB", data)
        if kind & 0x0F != 3 or struct.unpack_from("<H", data, 6)[0] >> 12 != 2:
            return
        command, index, sub = struct.unpack_from("<BHB", data, 8)
        if command & 0xE0 == 0x40:
            value = self.objects.get((index, sub))
            if value is None or command & 0x10:
                answer = struct.pack("<BHBI", 0x80, index, sub, 0x06020000 if value is None else 0x06010000)
            else:
                answer = struct.pack("<BHB", 0x43 | (4 - len(value)) << 2, index, sub) + value.ljust(4, b"\0")
        else:
            self.objects[index, sub] = bytes(data[12 : 12 + 4 - (command >> 2 & 3)])
            answer = struct.pack("<BHBI", 0x60, index, sub, 0)
        self.counter = self.counter % 7 + 1
        box = struct.pack("<HHBBH", 2 + len(answer), 0, 0, 3 | self.counter << 4, 3 << 12) + answer
        self.mem[IN_BOX : IN_BOX + MAILBOX] = box.ljust(MAILBOX, b"\0")
        self.mem[0x80D] |= 8

    def fmmu(self, logical, data, write):
        done = 0
        for at in (0x600, 0x610, 0x620, 0x630):
            start, size, _, _, physical, _, kind, active = struct.unpack_from("<IHBBHBBB", self.mem, at)
            if not active or start < logical or start + size > logical + len(data) or physical not in (OUTPUTS, INPUTS):
                continue
            place = start - logical
            if kind == 2 and write:
                self.outputs(bytes(data[place : place + size]))
                done |= 2
            elif kind == 1:
                inputs = struct.pack("<Hiihb", self.word, self.position, 0, 0, 8)
                write_back.append((place, inputs[:size]))
                done |= 1
        return done

    def watch(self, at_ns):
        """The watchdog of the process data, at a time. Returns when it has fallen, or that time."""
        unit_ns = 40 * (2 + struct.unpack_from("<H", self.mem, 0x400)[0])
        limit_ns = unit_ns * struct.unpack_from("<H", self.mem, 0x420)[0]
        if not limit_ns or self.mem[0x130] != 8 or at_ns - self.frame_ns <= limit_ns:
            return at_ns
        self.mem[0x130] = 0x14
        struct.pack_into("<H", self.mem, 0x134, 0x1B)
        self.word = 0x0218
        return self.frame_ns + limit_ns

    def outputs(self, data):
        control, target, _ = struct.unpack("<HiB", data)
        if self.mem[0x130] != 8:
            return
        if self.word & 0x4F == 0x08:  # in fault until it is reset
            self.word = 0x0250 if control & 0x80 else self.word
            return
        self.word = {0x06: 0x0231, 0x07: 0x0233, 0x0F: 0x1237}.get(control, 0x0250)
        if control == 0x0F:
            self.position = target


write_back = []


def answer(slaves, frame):
    """One frame through all slaves in order."""
    f = bytearray(frame)
    f[6] |= 2
    at, more = 16, True
    while more:
        command, _, adp, ado, size = struct.unpack_from("<BBHHH", f, at)
        more, size = bool(size & 0x8000), size & 0x7FF
        data, logical = f[at + 10 : at + 10 + size], adp | ado << 16
        sent = bytes(data)
        (counter,) = struct.unpack_from("<H", f, at + 10 + size)
        for slave in slaves:
            (station,) = struct.unpack_from("<H", slave.mem, 0x010)
            here = adp == 0 if command in (1, 2, 3) else adp == station if command in (4, 5, 6, 14) else True
            if command in (10, 11, 12):
                write_back.clear()
                done = slave.fmmu(logical, sent, command != 10)
                for place, value in write_back:
                    data[place : place + len(value)] = value
                counter += {10: done & 1, 11: done >> 1, 12: done}[command]
            elif command == 14:
                if here:
                    data[:] = slave.read(ado, size)
                counter += 1
            elif here:
                if command in (1, 4, 7, 3, 6, 9):
                    found = slave.read(ado, size)
                    if found is not None:
                        data[:] = bytes(a | b for a, b in zip(data, found, strict=True)) if command in (7, 9) else found
                        counter += 1
                if command in (2, 5, 8, 3, 6, 9):
                    slave.write(ado, sent)
                    counter += 2 if command in (3, 6, 9) else 1
            if command in (1, 2, 3, 7, 8, 9):
                adp = adp + 1 & 0xFFFF
        if command not in (10, 11, 12):
            struct.pack_into("<H", f, at + 2, adp)
        f[at + 10 : at + 10 + size] = data
        struct.pack_into("<H", f, at + 10 + size, counter)
        at += 12 + size
    return bytes(f)


class Segment:
    """Six drives or so on an interface. log: gets every frame with outputs, and the state of each drive, where there is one."""

    def __init__(self, interface, positions, log=None):
        self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self.link.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)  # slaves that are held up lose nothing
        self.link.bind((interface, ETHERTYPE))
        self.link.setblocking(False)
        self.slaves, self.log, self.seen_ns = [Slave() for _ in positions], log, 0
        for n, (slave, position) in enumerate(zip(self.slaves, positions, strict=True)):
            # DL status: signal at port 0, at port 1 but of the last
            struct.pack_into("<H", slave.mem, 0x110, 0x5A31 if n < len(positions) - 1 else 0x5611)
            slave.position, slave.objects[0x1018, 4] = position, struct.pack("<I", n + 1)

    def live(self):
        """Answers what has come; what came late to this process is judged by when it arrived."""
        now_ns = time.monotonic_ns()  # what has come until then is answered before
        offset = now_ns - time.time_ns()
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, stamps, _, _ = self.link.recvmsg(2000, 64)
                seconds, ns = struct.unpack("=qq", stamps[0][2])
                if not frame[6] & 2:
                    self.take(frame, seconds * 1_000_000_000 + ns + offset)
        self.look(max(now_ns, self.seen_ns))

    def take(self, frame, came_ns):
        """One frame of the master."""
        self.seen_ns = came_ns
        self.look(came_ns)
        if carries_outputs(frame):
            for axis, slave in enumerate(self.slaves):
                slave.frame_ns = came_ns
                if self.log is not None:
                    self.log.frame(axis, came_ns)
        self.link.send(answer(self.slaves, frame))
        self.look(came_ns)

    def look(self, at_ns):
        """What each drive is at a time."""
        for axis, slave in enumerate(self.slaves):
            seen_ns = slave.watch(at_ns)
            if self.log is not None:
                self.log.look(axis, slave.word & 0x6F, seen_ns)


def carries_outputs(frame):
    """Whether a datagram of a frame is an LRW or LWR."""
    at, more = 16, True
    while more:
        command, _, _, _, size = struct.unpack_from("<BBHHH", frame, at)
        if command in (11, 12):
            return True
        more, at = bool(size & 0x8000), at + 12 + (size & 0x7FF)
    return False


def main(interface, count=6):
    segment = Segment(interface, [1000] * count)
    print("ready", flush=True)
    while True:
        select.select([segment.link], [], [], 0.001)
        segment.live()


if __name__ == "__main__":
    main(sys.argv[1], *(int(n) for n in sys.argv[2:]))
