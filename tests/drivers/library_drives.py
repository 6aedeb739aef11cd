"""Six drives made of `canopen.LocalNode`: object dictionary, SDO server, NMT and heartbeat are the library's, states a few lines.

The test holds the other end of the link: after the set-up the library lets go of it and the test sends and takes single frames.
"""

import contextlib
import socket
import struct

import can
import canopen
from canopen import objectdictionary as dictionary

from drivers.raw_frames.can_link import FRAME, FrameBus

_TYPES = {
    1: dictionary.UNSIGNED8, -1: dictionary.INTEGER8, 2: dictionary.UNSIGNED16, -2: dictionary.INTEGER16,
    4: dictionary.UNSIGNED32, -4: dictionary.INTEGER32,
}  # fmt: skip
_FORMATS = {1: "<B", -1: "<b", 2: "<H", -2: "<h", 4: "<I", -4: "<i"}

OBJECTS_402 = {
    (0x6040, 0): 2, (0x6041, 0): 2, (0x6060, 0): -1, (0x6061, 0): -1, (0x607A, 0): -4, (0x6064, 0): -4, (0x60B1, 0): -4,
    (0x60FE, 1): 4, (0x60FE, 2): 4, (0x60C2, 1): 1, (0x60C2, 2): -1, (0x6076, 0): 4, (0x6077, 0): -2, (0x6078, 0): -2,
}  # fmt: skip
# a manufacturer's own record: force, pressures A and B, spool, supply pressure; a word of bits
OBJECTS_OF_HYDRAULICS = {(0x2600, sub): -2 for sub in range(1, 6)} | {(0x2600, 6): 2}
OBJECTS_401 = {(0x6000, k): 1 for k in range(1, 5)} | {(0x6200, k): 1 for k in range(1, 5)} | {(0x6401, k): -2 for k in range(1, 9)}
OBJECTS_408 = {(0x6040, 0): 2, (0x6041, 0): 2, (0x6042, 0): -1, (0x6043, 0): -1, (0x6600, 1): -4, (0x6601, 1): -4,
               (0x6301, 1): -2, (0x6381, 1): -2}  # fmt: skip


def object_dictionary(kind):
    """Objects of a device of type `kind` (drives 402 and 408, input module 401), with RPDO 1 and 2, TPDO 1 to 4."""
    own = {401: OBJECTS_401, 402: OBJECTS_402, 408: OBJECTS_408}[kind]
    objects = {(0x1000, 0): 4, (0x1001, 0): 1, (0x1006, 0): 4, (0x1017, 0): 2, **own, **(OBJECTS_OF_HYDRAULICS if kind != 401 else {})}
    for base in (0x1400, 0x1401, 0x1800, 0x1801, 0x1802, 0x1803):
        objects |= {(base, 1): 4, (base, 2): 1, (base, 5): 2, (base + 0x200, 0): 1}
        objects |= {(base + 0x200, place): 4 for place in range(1, 9)}
    od = dictionary.ObjectDictionary()
    for (index, sub), size in sorted(objects.items()):
        several = any(i == index and s for i, s in objects)
        variable = dictionary.ODVariable(f"{index:04X}:{sub}", index, sub)
        variable.data_type, variable.access_type, variable.default = _TYPES[size], "rw", kind if index == 0x1000 else 0
        if not several:
            od.add_object(variable)
            continue
        if index not in od:
            od.add_object(dictionary.ODRecord(f"{index:04X}", index))
        od[index].add_member(variable)
    return od


class FarBus(FrameBus):
    """The bus of a library's devices on the far end of a socket pair: a frame that no one takes is lost, and no heartbeat outlives it."""

    def __init__(self, far):
        far.setblocking(False)  # a heartbeat that waits in `send` for a port that does not read would find the link closed
        self.senders = []
        super().__init__(far, "far end")

    def send(self, msg, timeout=None):
        try:
            super().send(msg, timeout)
        except can.CanOperationError as error:
            if not isinstance(error.__cause__, BlockingIOError):
                raise

    def _send_periodic_internal(self, *args, **keys):
        task = super()._send_periodic_internal(*args, **keys)
        self.senders.append(task.thread)
        return task

    def shutdown(self):
        super().shutdown()
        for thread in self.senders:
            thread.join()


def network_on(far):
    """A library's network on the far end of a socket pair."""
    network = canopen.Network(FarBus(far))
    network.NOTIFIER_CYCLE = 0.02
    network.connect()
    return network


class LibraryDrives:
    """Six nodes 1...6 on the far end of a socket pair. `link` is the name of the near end."""

    def __init__(self, kind=402, positions=(100, 200, 300, 400, 500, -600), first_status=None):
        self.kind = kind
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link = f"fd:{self.near.fileno()}"
        self.words = {n: [] for n in range(1, 7)}
        self.status = dict.fromkeys(range(1, 7), first_status if first_status is not None else (0x240 if kind == 402 else 0x08))
        self.positions = list(positions)
        self.refuse = {}
        self.ports = []
        self.connect()

    def connect(self):
        self.network = network_on(self.far)
        self.nodes = {}
        self.network.subscribe(0x080, lambda *_: self.sampled())
        for n in range(1, 7):
            self.network.subscribe(0x200 + n, lambda _, data, __, n=n: self.commanded(n, bytes(data)))
            node = self.nodes[n] = canopen.LocalNode(n, object_dictionary(self.kind))
            self.network.add_node(node)
            node.add_write_callback(lambda n=n, **reported: self.written(n, **reported))
            self.put(n, *((0x6064, 0) if self.kind == 402 else (0x6601, 1)), -4, self.positions[n - 1])
            self.show(n, self.status[n])
            self.put(n, 0x1803, 1, 4, 0x480 + n)
            node.nmt.state = "PRE-OPERATIONAL"

    def put(self, n, index, sub, size, value):
        self.nodes[n].data_store.setdefault(index, {})[sub] = struct.pack(_FORMATS[size], value)

    def get(self, n, index, sub, size):
        return struct.unpack(_FORMATS[size], self.nodes[n].data_store[index][sub])[0]

    def show(self, n, status):
        self.status[n] = status
        self.put(n, 0x6041, 0, 2, status)

    def commanded(self, n, data):
        """RPDO1 of node n: the control word acts, the target is kept. Words that repeat are one."""
        if not self.words[n] or data[:2] != struct.pack("<H", self.words[n][-1]):
            self.written(n, 0x6040, 0, None, data[:2])
        self.put(n, *((0x607A, 0) if self.kind == 402 else (0x6600, 1)), -4, struct.unpack("<i", data[2:6])[0])

    def sampled(self):
        """SYNC: what each drive is and where it stands."""
        with contextlib.suppress(OSError):
            for n in range(1, 7):
                self.answer(n, self.status[n], self.positions[n - 1])

    def written(self, n, index, subindex, od, data):
        if index == 0x6060:
            self.put(n, 0x6061, 0, -1, struct.unpack("<b", data)[0])
        if index != 0x6040:
            return
        word = struct.unpack("<H", data)[0]
        self.words[n].append(word)
        if word in self.refuse.get(n, ()):
            return
        if self.kind == 402:
            states = {0x00: 0x40, 0x80: 0x40, 0x06: 0x21, 0x07: 0x23, 0x0F: 0x27}
            self.show(n, self.status[n] if self.status[n] & 0x8 and word != 0x80 else 0x200 | states[word])
        else:
            states = {0x0: 0x8, 0x1: 0x9, 0x3: 0xB, 0x7: 0xF, 0x8: 0x8, 0x9: 0x9, 0xB: 0xB}
            fault = self.status[n] & 0x8 == 0 and not word & 0x8
            self.show(n, self.status[n] if fault else states[word])

    def let_go(self):
        """The library leaves the link to the test; a SYNC that it has not read yet is answered."""
        self.network.disconnect()
        if any(identifier == 0x080 for identifier, _ in self.take()):
            self.sampled()

    def send(self, identifier, data):
        self.far.send(FRAME.pack(identifier, len(data), bytes(data)))

    def answer(self, n, status, position):
        """TPDO1 of node n."""
        self.send(0x180 + n, struct.pack("<Hi", status, position))

    def take(self):
        """All frames that wait: [(identifier, data)]."""
        frames = []
        while True:
            try:
                identifier, length, data = FRAME.unpack(self.far.recv(100))
            except BlockingIOError:
                return frames
            frames.append((identifier, data[:length]))

    def close(self):
        if self.network.bus is not None:
            self.network.disconnect()
        self.far.close()  # first: then a port that is still open finds at once that no one answers
        for port in self.ports:
            port.close()
        self.near.close()
