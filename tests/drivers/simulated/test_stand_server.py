"""The stand as a process: its CANopen nodes against the `canopen` library, the ports on it, every fault of its table, its end."""

import contextlib
import json
import os
import queue
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import canopen
import numpy as np
import pytest
from canopen.profiles.p402 import BaseNode402
from canopen.sdo.exceptions import SdoAbortedError

from drivers.drives.cia402 import Cia402Port
from drivers.drives.cia408 import Cia408Port
from drivers.mechanism_signals.cia401 import Cia401Port
from drivers.raw_frames.can_link import FRAME, FrameBus, open_link
from drivers.simulated import stand_server_client
from drivers.simulated.injections import ALL, BY_NAME, SERVED, wire_fault
from drivers.simulated.stand_server import complete
from drivers.simulated.stand_server_client import StandProcess
from drivers.wrench_sensors.rdt import RdtPort
from rt_kernels.layout import BITS, WORDS
from rt_kernels.layout import FAULTS as FAULT_TABLE
from tests.drivers.library_drives import object_dictionary
from tests.drivers.plain_stand import has, stand_config, until

DRIVES = {"cia402": Cia402Port, "cia408": Cia408Port}
SYNC = EMERGENCY = 0x080
# Nothing here is about milliseconds: this test's loop is Python on a busy machine.
PATIENT = {"receive_timeout_periods": 1000, "no_data_periods": 60, "server_timeout_ms": 60000}


class Line:
    """The ports on one stand, run by hand."""

    def __init__(self, one, profile, sample, **keys):
        self.sample, self.control = sample, one.control
        self.drives = DRIVES[profile](**one.ports["drives"], **{**PATIENT, **keys})
        self.module = Cia401Port(**one.ports["mechanism_signals"], no_data_periods=60)
        self.sensor = RdtPort(**one.ports["wrench_sensors"], no_data_ms=200.0)
        self.ports = (self.sensor, self.drives, self.module)
        self.motion = np.zeros(6)

    def __enter__(self):
        for port in self.ports:
            port.open()
        for port in self.ports:
            port.begin()
        self.read()
        self.home = self.sample["measured_leg"][0].copy()
        return self

    def __exit__(self, *_):
        for port in self.ports:
            port.close()

    def read(self):
        self.sample["time_ns"] = time.monotonic_ns()
        for port in self.ports:
            port.read(self.sample)

    def cycle(self):
        self.read()
        self.sample["leg_setpoint"] = self.home + self.motion
        for port in self.ports:
            port.write(self.sample)
        self.control.ping()  # the stand answers its links before its control port

    def until(self, condition):
        self.cycle()
        until(lambda: condition(self.sample[0]), self.cycle)

    def clean(self):
        self.until(lambda s: not s["drive_status"].any() and s["signal_status"] == 0 and s["wrench_status"] == 0)


# --------------------------------------------------------------------------------------------- nodes against the library
@pytest.fixture
def network(stand):
    """A canopen network on the first link of a stand: `network(profile)`."""
    made = []

    def make(profile="cia402", **tables):
        one = stand(drives={"profile": profile, **tables})
        link = open_link(one.ports["drives"]["links"].split()[0])
        net = canopen.Network(FrameBus(link, "stand"))
        net.NOTIFIER_CYCLE = 0.02
        net.connect()
        made.append((net, link))
        return one, net

    yield make
    for net, link in made:
        net.disconnect()
        link.close()


def test_library_state_machine_of_cia402(network):
    """BaseNode402 of the library walks the simulated axis through its states, back, and out of a fault."""
    one, net = network()
    node = BaseNode402(1, object_dictionary(402))
    net.add_node(node)
    node.sdo.RESPONSE_TIMEOUT = 2.0
    for index in (0x6040, 0x6041):
        assert index in node.object_dictionary
    assert node.sdo[0x1000].raw == 402
    node.sdo[0x6060].raw = 8
    for state in ("READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED", "SWITCHED ON", "READY TO SWITCH ON", "SWITCH ON DISABLED"):
        node.state = state
        assert node.state == state
    node.state = "OPERATION ENABLED"  # the library finds the way by itself
    one.control.inject("drive_fault", 0)
    until(lambda: node.state == "FAULT", one.control.ping)
    until(lambda: [e.code for e in node.emcy.active] == [0xFF00], one.control.ping)
    one.control.clear("drive_fault", 0)
    node.state = "SWITCH ON DISABLED"  # by fault reset
    assert node.state == "SWITCH ON DISABLED"
    until(lambda: node.emcy.active == [], one.control.ping)


def test_cia408_states(network):
    """Every state of the diagram by its control word, upwards one at a time, reset by an edge with the matching lower bits."""
    one, net = network("cia408")
    node = net.add_node(2, object_dictionary(408))
    node.sdo.RESPONSE_TIMEOUT = 2.0

    def after(word):
        node.sdo[0x6040].raw = word
        return node.sdo[0x6041].raw & 0xF

    assert [after(w) for w in (0, 7, 3, 1, 7, 3, 7)] == [0x8, 0x8, 0x8, 0x9, 0x9, 0xB, 0xF]
    assert [after(w) for w in (3, 1, 0)] == [0xB, 0x9, 0x8]
    assert [after(w) for w in (1, 3, 7)] == [0x9, 0xB, 0xF]
    one.control.inject("drive_fault", 1)
    until(lambda: node.sdo[0x6041].raw & 0xF == 0x3, one.control.ping)
    assert after(0x0B) == 0x3  # the cause is still there
    one.control.clear("drive_fault", 1)
    assert [after(w) for w in (0x07, 0x09, 0x01, 0x0B)] == [0x3, 0x3, 0x3, 0xB]


def test_sdo_server_refuses_what_a_device_refuses(network):
    _, net = network()
    node = net.add_node(1, object_dictionary(402))
    node.sdo.RESPONSE_TIMEOUT = 2.0

    def abort_of(action, *arguments):
        with pytest.raises(SdoAbortedError) as caught:
            action(*arguments)
        return caught.value.code

    up, down = node.sdo.upload, node.sdo.download
    assert abort_of(up, 0x5555, 0) == 0x06020000
    assert abort_of(up, 0x1018, 9) == 0x06090011
    assert abort_of(down, 0x1000, 0, bytes(4)) == 0x06010002
    assert abort_of(down, 0x6040, 0, bytes(4)) == 0x06070010
    assert abort_of(down, 0x6040, 0, bytes(7)) == 0x05040001  # segmented
    assert abort_of(down, 0x6060, 0, b"\x01") == 0x06090030  # only cyclic synchronous position
    # PDO mapping: only while the PDO is off and the count is zero, only objects that exist, at most eight bytes
    down(0x1600, 0, b"\x01")
    assert abort_of(down, 0x1600, 1, struct.pack("<I", 0x60400010)) == 0x08000022
    down(0x1600, 0, b"\x00")
    assert abort_of(down, 0x1600, 1, struct.pack("<I", 0x12340010)) == 0x06040041
    for place, entry in enumerate((0x607A0020, 0x60B10020, 0x60400010), start=1):
        down(0x1600, place, struct.pack("<I", entry))
    down(0x1600, 0, b"\x03")
    assert abort_of(down, 0x1400, 1, struct.pack("<I", 0x201)) == 0x06040042
    down(0x1600, 0, b"\x02")
    down(0x1400, 1, struct.pack("<I", 0x201))
    assert abort_of(down, 0x1600, 0, b"\x00") == 0x08000022
    assert up(0x1600, 0) == b"\x02"


def test_nmt_heartbeat_and_boot_up(network):
    one, net = network()
    node = net.add_node(3, object_dictionary(402))
    node.sdo.RESPONSE_TIMEOUT = 2.0
    node.sdo[0x1017].raw = 10
    for state in ("OPERATIONAL", "STOPPED", "PRE-OPERATIONAL"):
        node.nmt.state = state
        until(lambda s=state: node.nmt.wait_for_heartbeat(60) == s, one.control.ping)
    node.sdo[0x6060].raw = 8
    heard = []
    net.subscribe(0x703, lambda identifier, data, stamp: heard.append(bytes(data)))
    node.nmt.state = "RESET"
    until(lambda: b"\x00" in heard, one.control.ping)
    until(lambda: node.sdo[0x6060].raw == 0, one.control.ping)  # power-up values again


def test_loss_of_the_master_stops_the_axes(stand, sample):
    """The receive time-out that the port sets is the drive's own: fault and emergency message when setpoints stop."""
    one = stand()
    with Line(one, "cia402", sample, receive_timeout_periods=100) as line:
        line.clean()
        while not all(has(w, "drive_status", "emergency") for w in sample["drive_status"][0]):
            one.control.ping()
            line.read()  # and sends nothing
        assert sample["drive_device_status"][0, 0] >> 16 == 0x8250
    with Line(one, "cia402", sample) as line:  # the next open resets it
        line.clean()


# ------------------------------------------------------------------------------------------------------- ports on the stand
@pytest.mark.parametrize("profile", ["cia402", "cia408"])
def test_legs_follow_over_the_wire(stand, sample, profile):
    one = stand(drives={"profile": profile, "zero_m": [3.0] * 6, "axis_link": [0, 1, 2, 0, 1, 2]}, plant={"drive_frequency_hz": 13.25})
    with Line(one, profile, sample) as line:
        line.clean()
        line.motion = np.array([0.01, -0.01, 0.02, 0.005, 0.0, -0.02])
        line.until(lambda s: np.abs(s["measured_leg"] - line.home - line.motion).max() < 3e-6)
        counters = line.drives.counters()
        assert counters["link_corrupt"] == [0] * 3 and counters["link_not_sent"] == [0] * 3
    assert line.drives.close_problems == []
    assert one.stop()["malformed"] == 0


def test_module_carries_signals_and_commands(stand, sample):
    one = stand(module={"analog_scale": [0.5] * 8, "analog_offset": [1.0] * 8})
    module = Cia401Port(**one.ports["mechanism_signals"], no_data_periods=60)
    module.read(sample)
    assert sample["analogue_chain"][0] == 0 and has(sample["signal_status"][0], "sensor_status", "no_data")
    module.open()

    def cycle():
        module.read(sample)
        module.write(sample)
        return sample["signal_status"][0] == 0 and sample["analogue_chain"][0] == 1

    until(cycle, one.control.ping)
    # a bumper has no analogue signals: 0 in the plant, through scale and offset of the module and back
    assert np.abs(sample["signal_analog"][0]).max() < 0.5
    module.close()


CHAIN = {"emergency_stop_inputs": [20, 21], "guard_inputs": [22, 23], "unit_inputs": [28, 29, 30, 31]}
WHOLE = {"healthy", "emergency_stop_a", "emergency_stop_b", "guard_a", "guard_b", "unit_on"}


def test_module_carries_the_inputs_of_the_emergency_chain(stand, sample):
    one = stand(module=CHAIN)
    module = Cia401Port(**one.ports["mechanism_signals"], no_data_periods=60)
    module.open()

    def inputs():
        module.read(sample)
        return {name for name, place in BITS["analogue_chain"].items() if sample["analogue_chain"][0] & place}

    for name, index, missing, further in (
        ("emergency_stop", -1, {"emergency_stop_a", "emergency_stop_b"}, set()), ("guard_open", -1, {"guard_a", "guard_b"}, set()),
        ("chain_discrepant", 0, {"emergency_stop_a"}, set()), ("chain_discrepant", 1, {"guard_a"}, set()),
        ("unit_fault", 0, {"unit_on"}, set()), ("unit_fault", 2, set(), {"unit_high"}),
    ):  # fmt: skip
        one.control.inject(name, index)
        until(lambda wanted=WHOLE - missing | further: inputs() == wanted, one.control.ping)
        one.control.clear_all()
        until(lambda: inputs() == WHOLE, one.control.ping)
    module.close()


def test_a_relay_behind_the_watchdog_is_on_while_its_output_changes(stand, sample, tmp_path):
    file = tmp_path / "states.npy"
    one = stand(module={"watchdog_outputs": [8, 9], "relay_input": 19, "signal_bits": [-1] * 19 + [0]}, states_file=str(file))
    module = Cia401Port(**one.ports["mechanism_signals"], no_data_periods=60)
    module.open()

    def relay(healthy):
        sample["watchdog"] += healthy
        module.read(sample)
        module.write(sample)
        return sample["signal_discrete"][0] & 1

    for healthy in (True, False, True, False):  # its log is of all changes, whatever else a busy machine makes it do
        until(lambda healthy=healthy: relay(healthy) == healthy, one.control.ping)
    module.close()
    one.stop()
    states = np.load(file)
    log = states[states[:, 1] == 6]
    assert len(log) >= 4 and list(log[:, 2]) == [1, 0] * (len(log) // 2)
    assert (log[1::2, 4] > 10e6).all() and (log[::2, 4] == 0).all()


def test_module_says_that_the_mechanism_has_left_its_valid_range(stand, sample):
    """A head 5 mm deep in the bottom of its socket, a law valid to 2 mm: an input of the module; not wired, nothing."""
    pressed = {"part": "rt_kernels.mechanisms.probe_cone.simple:ProbeConeSimple", "probe_m": [0.65, 0.0, 0.0], "penetration_max_m": 0.002}
    one = stand(plant={"mechanism": pressed})
    module = Cia401Port(**one.ports["mechanism_signals"], no_data_periods=60)
    module.open()

    def cycle(port):
        port.read(sample)
        port.write(sample)
        return sample["analogue_chain"][0] & 1 and sample["signal_status"][0]

    until(lambda: cycle(module) == BITS["sensor_status"]["out_of_range"], one.control.ping)
    module.close()
    unwired = Cia401Port(**{**one.ports["mechanism_signals"], "range_input": -1}, no_data_periods=60)
    unwired.open()
    until(lambda: sample["analogue_chain"][0] & 1 and cycle(unwired) == 0, one.control.ping)
    unwired.close()


def test_module_sends_commands_when_they_change_and_now_and_then(stand, sample):
    """Frame by frame on a socket pair, set up by the stand's own answers: `relay` stands between the port and the stand."""
    one = stand()
    keys = one.ports["mechanism_signals"]
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire = open_link(keys["link"])
    seen = queue.SimpleQueue()
    commands = []
    with Relay(far, wire, seen):
        module = Cia401Port(**{**keys, "link": f"fd:{near.fileno()}", "no_data_periods": 60})
        module.open()
        for k in range(130):
            sample["mechanism_command"] = 5 if k >= 100 else 0
            module.read(sample)
            module.write(sample)
            while (frame := seen.get())[0] != SYNC:  # it has passed the relay
                commands += [frame[1][0]] if frame[0] == 0x20A else []
        module.close()
    while not seen.empty():
        frame = seen.get()
        commands += [frame[1][0]] if frame[0] == 0x20A else []
    assert commands == [0, 0, 5, 5]  # at ticks 0 and 64, at the change, at 128
    for end in (near, far, wire):
        end.close()


class Relay(threading.Thread):
    """Passes frames both ways and keeps what went to the stand."""

    def __init__(self, far, wire, seen):
        super().__init__()
        self.far, self.wire, self.seen = far, wire, seen
        self.over, self.end = socket.socketpair()

    def run(self):
        while True:
            ready, _, _ = select.select([self.far, self.wire, self.over], [], [])
            if self.over in ready:
                return
            for end in ready:
                data = end.recv(100)
                with contextlib.suppress(BlockingIOError):  # the port takes no more: a bus drops such a frame
                    (self.wire if end is self.far else self.far).send(data, socket.MSG_DONTWAIT)
                if end is self.far:
                    identifier, length, payload = FRAME.unpack(data)
                    self.seen.put((identifier, payload[:length]))

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.end.close()
        self.join()
        self.over.close()


DRIVE_FAULTS = [fault for fault in SERVED if fault.at in ("drive", "link", "signals") and fault.shows]


@pytest.fixture(scope="module", params=["cia402", "cia408"])
def lasting(request):
    """One stand for many faults: after each it must come back without a restart."""
    with StandProcess(stand_config(drives={"profile": request.param})) as one:
        yield one, request.param


@pytest.mark.parametrize("fault", DRIVE_FAULTS, ids=lambda fault: fault.name)
def test_faults_of_the_wire_show_their_bit(lasting, sample, fault):
    one, profile = lasting
    one.control.clear_all()
    if fault.profile not in ("", profile):
        with pytest.raises(ValueError, match="unknown fault or index"):
            one.control.inject(fault.name, 3)
        return
    with Line(one, profile, sample) as line:
        line.clean()
        index = {"drive": 3, "link": 1, "signals": -1}[fault.at]
        one.control.inject(fault.name, index)
        for field, name in fault.shows:

            def shown(s, field=field, name=name):
                words = s[field] if s[field].ndim else [s[field]]
                return has(words[3 if len(words) == 6 else 0], WORDS[field][1], name)

            line.until(shown), (field, name)
        if fault.at == "drive":  # the others know nothing of it
            line.until(lambda s: not s["drive_status"][[0, 1, 2, 4, 5]].any())
        one.control.clear_all()


def test_axis_that_ignores_its_set_points_stands_still(stand, sample):
    one = stand()
    with Line(one, "cia402", sample) as line:
        line.clean()
        one.control.inject("drive_not_following", 2)
        line.until(lambda s: has(s["drive_status"][2], "drive_status", "not_following"))
        line.motion = np.full(6, 0.01)
        line.until(lambda s: abs(s["measured_leg"][0] - line.home[0] - 0.01) < 1e-5)
        assert abs(sample["measured_leg"][0, 2] - line.home[2]) < 1e-5
        one.control.clear("drive_not_following", 2)
        line.until(lambda s: abs(s["measured_leg"][2] - line.home[2] - 0.01) < 1e-5 and not s["drive_status"].any())


def test_faults_of_the_plant(lasting, sample):
    one, profile = lasting
    one.control.clear_all()
    with Line(one, profile, sample) as line:
        line.clean()
        assert sample["analogue_chain"][0] == 1
        one.control.inject("transducer_offset", 2, 0.05)
        line.until(lambda s: abs(s["measured_leg"][2] - line.home[2] - 0.05) < 1e-5)
        one.control.clear("transducer_offset", 2)
        one.control.inject("external_force", 1, 250.0)
        line.until(lambda s: abs(s["wrench_raw"][1] - 250e5) < 1)
        one.control.inject("leg_stuck", 4)
        line.motion = np.full(6, 0.01)
        line.until(lambda s: abs(s["measured_leg"][0] - line.home[0] - 0.01) < 1e-4)
        assert abs(sample["measured_leg"][0, 4] - line.home[4]) < 1e-5
        one.control.clear_all()
        line.until(lambda s: abs(s["measured_leg"][4] - line.home[4] - 0.01) < 1e-4)
        for name in ("chain_tripped", "chain_unhealthy"):
            one.control.inject(name, 0)
            line.until(lambda s: s["analogue_chain"] != 1)
            one.control.clear_all()
            line.until(lambda s: s["analogue_chain"] == 1)


def test_faults_at_a_time(stand):
    """Emergency messages wait in the link until they are read. A lower bound of the time since the first SYNC holds on every machine."""
    one = stand(faults=[{"name": "drive_emergency", "index": 0, "at_s": 0.1, "duration_s": 0.1}])
    with open_link(one.ports["drives"]["links"].split()[0]) as link:
        link.setblocking(True)
        began = time.monotonic()
        link.send(FRAME.pack(SYNC, 0, b""))
        for code, earliest in ((0x8301, 0.1), (0x0000, 0.2)):
            while (frame := FRAME.unpack(link.recv(FRAME.size)))[0] != EMERGENCY + 1:
                pass
            assert struct.unpack_from("<H", frame[2]) == (code,) and time.monotonic() - began >= earliest


def test_fault_table_is_sound():
    names = {fault[0] for fault in FAULT_TABLE}
    for fault in ALL:
        assert not fault.fault or fault.fault in names, fault
        assert all(name in BITS[WORDS[field][1]] for field, name in fault.shows)
    assert len({fault.number for fault in ALL}) == len(ALL) == len(BY_NAME)
    with pytest.raises(ValueError, match="unknown"):
        wire_fault("sensor_melts", None, "axia")
    with pytest.raises(ValueError, match="onrobot has no such class"):
        wire_fault("sensor_busy", None, "onrobot")


# --------------------------------------------------------------------------------------------------------- bad input, end
def test_random_datagrams_do_no_harm(lasting, sample):
    """Random bytes to every socket of the stand: it continues, counts what is malformed, and still works."""
    one, profile = lasting
    one.control.clear_all()
    source = random.Random(5)
    links = [int(name.rpartition(":")[2]) for name in one.ports["drives"]["links"].split()]
    ports = [*links, one.ports["wrench_sensors"]["stream_port"], one.control._socket.getpeername()[1]]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
        for _ in range(1500):
            size = source.choice((0, 3, 8, 8, 15, 16, 16, 17, 40, 41, 1400))
            data = bytearray(source.randbytes(size))
            if size == 16 and source.random() < 0.7:  # frames to nodes that are there, of all lengths
                identifier = source.choice((0x000, 0x080, 0x200, 0x300, 0x600)) + source.randrange(7)
                data[:8] = struct.pack("<IBxxx", identifier, source.randrange(10))
            noise.sendto(data, ("127.0.0.1", source.choice(ports)))
    one.control.ping()
    one.control.clear_all()
    with Line(one, profile, sample) as line:
        line.clean()


def test_control_port_refuses_nonsense(lasting):
    one, _ = lasting
    with pytest.raises(ValueError, match="index 6"):
        one.control.inject("drive_silent", 6)
    absent = stand_server_client.StandControl(1, timeout_s=0.2)
    with pytest.raises(ConnectionError, match="does not answer"):
        absent.ping()
    absent.close()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (dict(sensr={}), "sensr: no such key"),
        (dict(sensor={"rate_hz": 0}), "sensor.rate_hz: must be a number within 1 ... 8000 Hz, got 0"),
        (dict(sensor={"variant": "x"}), "sensor.variant"),
        (dict(sensor=3), "sensor = 3: must be a table"),
        (dict(drives={"profile": "cia999"}), "drives.profile"),
        (dict(drives={"axis_link": [0]}), "six entries"),
        (dict(drives={"axis_node": [1, 2, 3, 4, 5, 500]}), "drives.axis_node = 500"),
        (dict(priority=True), "priority = True"),
        (dict(faults=[{"name": "x"}]), "'x' is unknown"),
        (dict(faults=[{"name": "drive_fault", "when": 1}]), "'when'"),
    ],
)
def test_wrong_configurations_are_named(config, says):
    with pytest.raises(ValueError, match=says):
        complete(config)


def test_wrong_configuration_ends_the_process_with_a_reason():
    with pytest.raises(ValueError, match="plant.platform: must be a table"):
        StandProcess({})


def test_stand_ends_with_the_process_that_started_it():
    """A parent that is killed cannot stop anything: the stand finds its standard input closed."""
    script = (
        "import json, signal, sys\nfrom drivers.simulated.stand_server_client import StandProcess\n"
        "one = StandProcess(json.loads(sys.argv[1]))\nprint(one.pid, flush=True)\nsignal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, json.dumps(stand_config())], stdout=subprocess.PIPE)
    stand_pid = int(parent.stdout.readline())
    ended = os.pidfd_open(stand_pid)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    select.select([ended], [], [])
    os.close(ended)


def test_stop_command_and_interrupt(stand):
    one = stand()
    os.kill(one.pid, signal.SIGINT)  # Ctrl-C of the group: the server parks first
    one.control.ping()
    one.control.stop()
    assert one.stop()["malformed"] == 0


def test_a_frame_has_come_when_it_came_however_late_the_stand_takes_it(stand, tmp_path):
    """A stand that was stopped computes its plant up to now before it takes what waits: its drives' log has the frames where they came."""
    file = tmp_path / "states.npy"
    one = stand(states_file=str(file))
    link = open_link(one.ports["drives"]["links"].split()[0])
    net = canopen.Network(FrameBus(link, "stand"))
    net.connect()
    node = net.add_node(1, object_dictionary(402))
    node.sdo.RESPONSE_TIMEOUT = 2.0
    node.sdo[0x6060].raw = 8
    node.sdo[0x1400][1].raw = 0x201
    node.nmt.state = "OPERATIONAL"
    for word in (0x06, 0x07, 0x0F):
        node.sdo[0x6040].raw = word

    def setpoint():
        """Sends one; the readings of the clock between which it came."""
        before = time.monotonic_ns()
        link.send(FRAME.pack(0x201, 6, struct.pack("<Hi", 0x0F, 0)))
        return before, time.monotonic_ns()

    first = setpoint()
    one.control.ping()
    os.kill(one.pid, signal.SIGSTOP)
    time.sleep(0.5)  # late on purpose: so long a way has the plant to make up for
    second = setpoint()
    os.kill(one.pid, signal.SIGCONT)
    one.control.ping()
    net.disconnect()
    link.close()
    one.stop()
    states = np.load(file)
    longest = states[states[:, 1] == 0][-1, 5]
    assert second[0] - first[1] <= longest <= second[1] - first[0]
