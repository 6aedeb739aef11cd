"""Input module: everything that comes between two ticks is judged. Set up against a module made of the `canopen` library, then frame by
frame over a socket pair."""

import socket
import struct

import canopen
import pytest

from drivers.mechanism_signals.cia401 import Cia401Port
from drivers.raw_frames.can_link import FRAME
from hil_server import registry
from rt_kernels.compensation.none import NoCompensator
from rt_kernels.layout import BITS
from rt_kernels.safety.limits import SafetyLimits
from tests.drivers.library_drives import network_on, object_dictionary
from tests.drivers.peers.stand import LockstepStand
from tests.drivers.plain_stand import has

NODE = 10
HEALTHY, TRIPPED, BLOCKED = (1 << k for k in (24, 25, 26))  # inputs of the emergency chain


class Ticks:
    """A port and the far end of its link; `tick` answers to the last SYNC and reads."""

    def __init__(self, sample, **keys):
        self.sample = sample
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.port = Cia401Port(link=f"fd:{self.near.fileno()}", heartbeat_ms=20, timeout_s=2.0, **keys)
        network = network_on(self.far)
        node = canopen.LocalNode(NODE, object_dictionary(401))
        network.add_node(node)
        for k in range(1, 5):
            node.data_store.setdefault(0x6000, {})[k] = bytes([HEALTHY >> 8 * (k - 1) & 0xFF])
        node.nmt.state = "PRE-OPERATIONAL"
        self.port.open()
        network.disconnect()
        self.tick()

    def send(self, identifier, data):
        self.far.send(FRAME.pack(identifier, len(data), bytes(data)))

    def tick(self, *inputs, groups=(1, 2, 3), between=lambda: None):
        """inputs: one record of digital inputs for each; returns the names of the status bits."""
        between()
        if 1 in groups:
            for word in inputs or (HEALTHY,):
                self.send(0x180 + NODE, struct.pack("<I", word))
        for group in set(groups) - {1}:
            self.send(0x080 + 0x100 * group + NODE, bytes(8))
        self.port.read(self.sample)
        self.sample["time_ns"] += 1_000_000
        while True:
            try:
                self.far.recv(100)
            except BlockingIOError:
                break
        return {name for name in BITS["sensor_status"] if has(self.sample["signal_status"][0], "sensor_status", name)}

    @property
    def chain(self):
        return int(self.sample["analogue_chain"][0])

    def close(self):
        self.far.close()
        self.port.close()
        self.near.close()


@pytest.fixture
def ticks(sample):
    made = []

    def make(**keys):
        made.append(Ticks(sample, **keys))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_worst_of_the_emergency_chain_counts(ticks, sample):
    line = ticks()
    assert line.tick() == set() and line.chain == 1
    line.tick(HEALTHY, TRIPPED, HEALTHY | BLOCKED, HEALTHY | 5)
    assert line.chain == 0b110 and sample["signal_discrete"][0] == 5  # signals are the newest
    line.tick(0, HEALTHY)
    assert line.chain == 0
    line.tick()
    assert line.chain == 1
    line.tick(TRIPPED)
    line.tick(groups=())
    assert line.chain == 2  # without a record the newest stands
    line.tick(HEALTHY)
    assert line.chain == 1


WIRED = {"emergency_stop_inputs": [16, 17], "guard_inputs": [18, 19], "unit_inputs": [20, 21, 22, 23], "signal_bits": []}
CLOSED = HEALTHY | 0b11111 << 16  # all contacts closed, the unit on


def chain(*names):
    return sum(BITS["analogue_chain"][name] for name in names)


def test_two_channels_and_the_unit_are_read_and_the_worst_of_a_tick_counts(ticks):
    line = ticks(**WIRED)
    line.tick(CLOSED)
    whole = line.chain
    assert whole == chain("healthy", "emergency_stop_a", "emergency_stop_b", "guard_a", "guard_b", "unit_on")
    for number, name in enumerate(("emergency_stop_a", "emergency_stop_b", "guard_a", "guard_b", "unit_on")):
        line.tick(CLOSED, CLOSED & ~(1 << 16 + number), CLOSED)
        assert line.chain == whole & ~chain(name)
    for number, name in enumerate(("unit_low", "unit_high", "unit_interlock")):
        line.tick(CLOSED, CLOSED | 1 << 21 + number, CLOSED)
        assert line.chain == whole | chain(name)
    line.tick(CLOSED)
    assert line.chain == whole


def outputs(line, sample, watchdogs):
    """What the port sends for these values of the watchdog, one a tick: the bytes of RPDO1."""
    found = []
    for watchdog in watchdogs:
        sample["watchdog"] = watchdog
        line.tick()
        line.port.write(sample)
        identifier, length, data = FRAME.unpack(line.far.recv(100))
        assert identifier == 0x200 + NODE
        found.append(tuple(data[:length]))
    return found


def test_the_watchdog_changes_with_a_healthy_tick_alone(ticks, sample):
    line = ticks(command_output=1, watchdog_outputs=[9, 8])
    sample["mechanism_command"] = 5
    assert outputs(line, sample, (1, 2, 3, 4)) == [(5, 0b11), (5, 0b01), (5, 0b11), (5, 0b01)]
    assert outputs(line, sample, (4, 4, 4)) == [(5, 0)] * 3  # a loop whose safety stage says nothing more
    assert outputs(line, sample, (5, 7)) == [(5, 0b11), (5, 0b11)]
    sample["watchdog"] = 8
    line.tick()
    with pytest.raises(BlockingIOError):
        line.far.recv(100)  # nothing by itself: without the loop the output stands still


def test_a_watchdog_that_shares_its_outputs_is_refused():
    with pytest.raises(ValueError, match=r"watchdog_outputs = \[7, 8\]: must be of one group"):
        Cia401Port(link="can0", watchdog_outputs=[7, 8])
    with pytest.raises(ValueError, match="are in group 1, which carries mechanism_command"):
        Cia401Port(link="can0", watchdog_outputs=[6, 7], command_output=1)


class NoSafety(NoCompensator):
    """A line that lives while its safety stage does nothing."""

    PARAMETERS = SafetyLimits.PARAMETERS

    def __init__(self, *, delays, **_):
        super().__init__(delays=delays)


@pytest.mark.parametrize("of_a_drive", [False, True])
@pytest.mark.parametrize("sane", [True, False])
def test_the_watchdog_of_a_line_and_of_one_without_its_safety_stage(tmp_path, monkeypatch, sane, of_a_drive):
    if not sane:
        monkeypatch.setitem(registry.PARTS["safety"], "limits", f"{__name__}:NoSafety")
    stand = LockstepStand(tmp_path)
    stand.config.stand["mechanism_signals"]["watchdog_outputs"] = [8, 9]
    stand.config.stand["drives"] |= {"watchdog_axis": 4, "watchdog_outputs": [0, 1]}
    device, output = (stand.buses[1].nodes[1], (0x60FE, 1)) if of_a_drive else (stand.buses[2].nodes[0], (0x6200, 2))
    with stand:
        seen = []
        for _ in range(20):
            stand.step()
            seen.append(device[output])
    assert seen[3:] == ([0b10, 0b11] * 10)[seen[3] & 1:][:17] if sane else seen == [0] * 20


def test_emergency_taken_back_in_the_same_tick_shows(ticks):
    line = ticks()
    error, none = (struct.pack("<HB5x", code, register) for code, register in ((0x5000, 1), (0, 0)))
    assert line.tick(between=lambda: [line.send(0x080 + NODE, data) for data in (error, none)]) == {"device_fault"}
    assert line.tick() == set()
    still = struct.pack("<HB5x", 0, 0x10)  # one error went, others stand
    assert line.tick(between=lambda: [line.send(0x080 + NODE, data) for data in (error, still)]) == {"device_fault"}
    assert line.tick() == {"device_fault"}
    line.tick(between=lambda: line.send(0x080 + NODE, none))
    assert line.tick() == set()


def test_restart_shows_until_the_module_is_operational(ticks):
    line = ticks()
    assert line.tick(between=lambda: [line.send(0x700 + NODE, [state]) for state in (0, 5)]) == {"device_fault"}
    assert line.tick() == set()
    line.tick(between=lambda: line.send(0x700 + NODE, [0x7F]))
    assert line.tick() == {"device_fault"}


def test_heartbeat_that_stops_is_a_fault(ticks):
    line = ticks(heartbeat_timeout_ms=30)
    line.tick(between=lambda: line.send(0x700 + NODE, [5]))
    assert [line.tick() for _ in range(32)] == [set()] * 30 + [{"device_fault"}] * 2
    assert line.tick(between=lambda: line.send(0x700 + NODE, [5])) == set()
    with pytest.raises(ValueError, match="heartbeat_timeout_ms = 20"):
        Cia401Port(link="can0", heartbeat_ms=20, heartbeat_timeout_ms=20)


def test_most_records_missing_is_no_data(ticks):
    """Two of three records of one group missing for good; one of three is only lost."""
    line = ticks(no_data_periods=3)
    for k in range(12):
        assert "no_data" not in line.tick(groups=(1, 2) if k % 3 == 0 else (1, 2, 3))
    seen = [line.tick(groups=(1, 2, 3) if k % 3 == 2 else (1, 3)) for k in range(12)]
    assert seen[3] == {"lost"} and all("no_data" in bits for k, bits in enumerate(seen[4:], start=4) if k % 3 != 2)
    assert line.port.counters()["lost"] == 4 + 8


def test_silence_and_its_end(ticks):
    line = ticks(no_data_periods=3)
    assert [line.tick(groups=()) for _ in range(40)] == [{"lost"}] * 2 + [{"lost", "no_data"}] * 38
    assert line.tick() == set()


def test_backlog_before_the_loop_is_taken_and_judged(ticks):
    line = ticks()
    for _ in range(150):
        line.send(0x333, bytes(8))
    line.send(0x180 + NODE, bytes(3))
    line.send(0x080 + NODE, struct.pack("<HB5x", 0x5000, 1))
    line.send(0x080 + NODE, bytes(8))
    line.port.begin()
    assert line.tick() == {"device_fault"} and line.tick() == set() and line.port.counters() == {"lost": 0, "corrupt": 0}


def test_flood_is_taken_in_portions_and_too_much_of_it_is_no_data(ticks):
    line = ticks(no_data_periods=2)
    assert line.tick(between=lambda: [line.send(0x333, bytes(8)) for _ in range(100)]) == set()

    def flood():
        for _ in range(150):
            line.send(0x333, bytes(8))

    assert line.tick(between=flood) == {"lost", "stale"}
    assert "no_data" in line.tick(between=flood)
    for _ in range(4):
        line.tick()
    assert line.tick() == set()


def test_inputs_and_analogue_values_are_what_the_keys_say(ticks, sample):
    """Signals from inputs, some of them active low, unused ones left out; value = offset + scale * counts, both groups of four."""
    bits = [2, -1, 0, 18]
    scale, offset = [0.5, 2.0, -1.0, 1e-3, 3.0, 1.0, 1e3, 0.25], [1.0, 0.0, -7.0, 0.5, 0.0, 2.0, 0.0, -1.0]
    line = ticks(signal_bits=bits, active_low_inputs=[2], range_input=5, analog_scale=scale, analog_offset=offset)
    counts = [100, -200, 32767, -32768, 5, 0, -1, 1234]

    def analogue():
        line.send(0x280 + NODE, struct.pack("<4h", *counts[:4]))
        line.send(0x380 + NODE, struct.pack("<4h", *counts[4:]))

    for word, signals in ((0b0000, 0b1), (0b0001, 0b101), (0b0110, 0b0), (0b1100, 1 << 18), (0b1111, 1 << 18 | 0b100)):
        assert line.tick(HEALTHY | word, groups=(1,), between=analogue) == set()
        assert sample["signal_discrete"][0] == signals
    for value, o, k, n in zip(sample["signal_analog"][0], offset, scale, counts, strict=True):
        assert value == pytest.approx(o + k * n, rel=1e-15)
    assert line.tick(HEALTHY | 1 << 5) == {"out_of_range"} and line.tick(HEALTHY) == set()


@pytest.mark.parametrize("chain", [[0, 1, 2], [2, -1, 0], [-1, -1, -1]])
def test_chain_is_read_from_the_inputs_that_are_wired(ticks, chain):
    line = ticks(chain_inputs=chain)
    for word in range(8):
        line.tick(word)
        assert line.chain == sum(1 << k for k, wired in enumerate(chain) if wired >= 0 and word >> wired & 1)


@pytest.mark.parametrize("base", [0x180, 0x280, 0x380, 0x080, 0x700])
@pytest.mark.parametrize("length", [2, 7])
def test_frames_of_the_wrong_length_are_damaged_and_say_nothing(ticks, sample, base, length):
    line = ticks()
    line.tick()
    assert line.tick(groups=(1, 2, 3), between=lambda: line.send(base + NODE, b"\xff" * length)) == {"corrupt"}
    assert line.chain == 1 and not sample["signal_analog"].any() and line.port.counters() == {"lost": 0, "corrupt": 1}
    assert line.tick() == set()


def test_frames_of_others_are_no_one_s(ticks):
    line = ticks()

    def foreign():
        for identifier in (0x181 + NODE, 0x480 + NODE, 0x180 + NODE | 0x40000000, 0x080 + NODE | 0x80000000):
            line.send(identifier, b"\xff" * 8)

    assert line.tick(between=foreign) == set() and line.port.counters() == {"lost": 0, "corrupt": 0}
    line.far.send(b"no frame")
    assert line.tick() == {"corrupt"} and line.port.counters() == {"lost": 0, "corrupt": 1}


def test_error_frames_are_reported_and_bus_off_lasts_until_the_controller_restarted(ticks):
    line = ticks()
    error, prot, bus_off, restarted, control = 0x20000000, 0x08, 0x40, 0x100, 0x04
    assert line.tick(between=lambda: line.send(error | prot, bytes(8))) == {"corrupt"}
    assert line.tick(between=lambda: line.send(error | control, bytes([0, 0x10, 0, 0, 0, 0, 0, 0]))) == {"warning"}
    assert line.port.counters()["corrupt"] == 1
    assert line.tick(between=lambda: line.send(error | bus_off, bytes(8))) == {"no_data"}
    assert line.tick() == {"no_data"}
    assert line.tick(between=lambda: line.send(error | restarted, bytes(8))) == set()
    assert line.tick(between=lambda: [line.send(error | kind, bytes(8)) for kind in (bus_off, restarted)]) == {"no_data"}
    assert line.tick() == set()
