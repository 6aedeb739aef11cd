"""What every port and clock in the registry promises. A new line in the registry is tested the moment it is there; a port that talks to
hardware needs a device here that answers it (tests/contracts/devices.py)."""

import os
import time

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.layout import BITS, CODES, FIELDS, SAMPLE_DTYPE
from rt_kernels.loop import LoopLine
from rt_kernels.parameters import REQUIRED
from rt_kernels.ring import SharedBlock
from tests.contracts import devices
from tests.contracts.allocator import in_use, needs_mallinfo2

PORTS = [(role, name) for role in registry.PORT_FIELDS for name in registry.PARTS[role]]
CLOCKS = list(registry.PARTS["clocks"])
DEVICES = {
    ("wrench_sensors", "rdt"): devices.Sensor,
    ("wrench_sensors", "bota_serial"): devices.BotaSensor,
    ("wrench_sensors", "robotiq_ft300"): devices.RobotiqSensor,
    ("wrench_sensors", "ati_can"): devices.AtiCanSensor,
    ("drives", "cia402"): devices.Drives,
    ("drives", "cia408"): devices.ValveDrives,
    ("drives", "cia402_ethercat"): devices.EthercatDrives,
    ("mechanism_signals", "cia401"): devices.InputModule,
    ("commands", "latch"): devices.Desk,
}
# status word of a device's role, and what keeps its last value while there is no data
HARDWARE = {
    "wrench_sensors": ("wrench_status", "sensor_status", ("wrench_raw", "wrench_sequence")),
    "drives": ("drive_status", "drive_status", ("measured_leg",)),
    "mechanism_signals": ("signal_status", "sensor_status", ("signal_discrete", "signal_analog", "analogue_chain")),
}
TALKING = [(role, name) for role, name in PORTS if role in HARDWARE]
# what a port forms with the machine's clock: the only fields in which two runs on the same bytes differ
TIMED = {"wrench_age_ns", "hand_age_ns", "measured_leg_rate"}
ROLE_FIELDS = {role: sorted(registry.port_fields(role)) for role in registry.PORT_FIELDS}
PERIOD = 1_000_000

all_ports = pytest.mark.parametrize(("role", "name"), PORTS)
talking_ports = pytest.mark.parametrize(("role", "name"), TALKING)
all_clocks = pytest.mark.parametrize("name", CLOCKS)


@pytest.fixture
def made(simulated, tmp_path):
    """Function (role, name, **keys) → a port that is not open yet, and its device. All are closed at the end."""
    kept = []

    def make(role, name, **keys):
        if role == "simulated":
            device = devices.StandInSoftware(assembly.build_part(*simulated.config.setup.mechanism, simulated.context))
        elif (role, name) == ("commands", "script"):
            device = devices.ScriptFile(tmp_path)
        else:
            assert (role, name) in DEVICES, f"no device answers {role}.{name}: give it one in tests/contracts/devices.py and DEVICES"
            device = DEVICES[role, name]()
        port = assembly.build_part(role, name, device.keys | keys, {**simulated.context, **device.context})
        device.wired(port)
        kept.append((port, device))
        return port, device

    yield make
    for port, device in kept:
        device.gone()
        port.close()
        device.close()


@pytest.fixture
def opened(made):
    """The same, open and begun, with the wire in the test's hands."""

    def make(role, name, **keys):
        port, device = made(role, name, **keys)
        port.open()
        device.begun(port)
        device.heard()
        return port, device

    return make


def run(port, device, samples, damaged=(), write=True):
    """The samples after `read`, tick by tick; the port's own fields of one tick continue into the next, as in the loop."""
    aux, out = port.read(samples[0].copy()), []
    own = [field for field, *rest in FIELDS if rest[4] == "ports"]
    for k, given in enumerate(samples):
        sample = given.copy()
        for field in own:
            sample[field] = out[-1][field] if out else 0
        device.tick(k)
        if k in damaged:
            device.damage(k)
        port.read(sample, aux)
        if write:
            port.write(sample, aux)
        out.append(sample)
    return out


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


# ------------------------------------------------------------------------------------------------------------------ roles and parameters


def test_every_input_of_the_ports_belongs_to_one_role():
    assert set(registry.PORT_FIELDS) == {role for role, does in registry.ROLES.items() if does.startswith("port:")}
    inputs = [field for field, *rest in FIELDS if rest[4] == "ports"]
    roles = [role for role in registry.PORT_FIELDS if role != "simulated"]
    assert all(sum(field in registry.port_fields(role) for role in roles) == 1 for field in inputs)
    assert registry.port_fields("simulated") == set().union(*(registry.port_fields(role) for role in HARDWARE))


@pytest.mark.parametrize(("role", "name"), [*PORTS, *(("clocks", name) for name in CLOCKS)])
def test_parameters_have_unit_meaning_and_limits(role, name):
    for p in registry.part(role, name).PARAMETERS:
        assert p.unit and p.meaning, p.key
        if p.kind in ("float", "int", "floats"):
            assert p.low is not None or p.high is not None, p.key
            assert (
                p.default is REQUIRED
                or p.default is None
                or all((p.low is None or p.low <= x) and (p.high is None or x <= p.high) for x in np.ravel(p.default))
            ), p.key


@all_ports
def test_unknown_parameter_is_refused_by_its_name(made, simulated, role, name):
    _, device = made(role, name)
    cls = registry.part(role, name)
    needs = {wanted: (simulated.context | device.context)[wanted] for wanted in getattr(cls, "CONTEXT", ())}
    with pytest.raises((TypeError, ValueError), match="no_such_key"):
        cls(**device.keys, **needs, no_such_key=1)


# ------------------------------------------------------------------------------------------------------------------ open and close


@all_ports
def test_close_without_open_and_close_twice(made, role, name):
    port, device = made(role, name)
    before = descriptors()
    port.close()
    port.close()
    assert descriptors() == before and device.heard() == 0


@talking_ports
def test_open_and_close_leave_nothing_open(made, role, name):
    port, device = made(role, name)
    before = None
    for _ in range(2):  # what the library keeps for itself at its first use is there before the second
        port.open()
        port.close()
        port.close()
        before, last = descriptors(), before
    assert len(before) <= len(last)


@all_ports
def test_nothing_is_reported_before_open(made, stream, role, name):
    """Before `open` a port of hardware sends nothing, has no data and moves no value."""
    port, device = made(role, name)
    samples = stream(3)
    if role not in HARDWARE:
        assert device.heard() == 0
        return
    status, bits, values = HARDWARE[role]
    for sample in samples:
        before = sample.copy()
        port.read(sample)
        port.write(sample)
        assert np.all(sample[status] & BITS[bits]["no_data"])
        moved = {field for field in SAMPLE_DTYPE.names if sample[field].tobytes() != before[field].tobytes()}
        assert moved <= registry.port_fields(role)
    assert device.heard() == 0


@talking_ports
def test_an_absent_device_is_a_connection_error_and_leaves_nothing_open(made, simulated, role, name):
    _, device = made(role, name)
    cases = device.absent()
    assert cases
    for keys in cases:
        counts = []
        for _ in range(2):
            port = assembly.build_part(role, name, keys, simulated.context)
            with pytest.raises(ConnectionError):
                port.open()
            counts.append(len(descriptors()))
            port.close()
            assert len(descriptors()) == counts[-1], "close after a failed open found something to close"
        assert counts[0] == counts[1]


# ------------------------------------------------------------------------------------------------------------------ reading


@all_ports
def test_writes_only_the_fields_of_its_role(opened, stream, role, name):
    port, device = opened(role, name)
    allowed, written = registry.port_fields(role), set()
    samples = stream(60)
    aux = port.read(samples[0].copy())
    for k, sample in enumerate(samples):
        before = sample.copy()
        device.tick(k)
        if k % 20 == 19:
            device.damage(k)
        port.read(sample, aux)
        written |= {field for field in SAMPLE_DTYPE.names if sample[field].tobytes() != before[field].tobytes()}
        after = sample.tobytes()
        port.write(sample, aux)
        assert sample.tobytes() == after, "write changed the sample"
    assert written and written <= allowed, f"{role}.{name} writes {sorted(written - allowed)}"


@all_ports
def test_deterministic_on_the_same_bytes(opened, stream, role, name):
    """Two ports, the same bytes from the wire or the same samples: the same fields, but for those made with the machine's clock."""
    runs = []
    for seed in (1, 1, 2):
        port, device = opened(role, name)
        device.tick = lambda k, say=device.tick, later=3 * (seed - 1): say(k + later)  # another seed: other bytes from the wire too
        samples = run(port, device, stream(40, seed=seed), damaged=(17,))
        before = samples[0]["drive_lost_total"].copy()  # a machine that is held up loses more on the way up
        for sample in samples:
            sample["drive_lost_total"] -= before
        runs.append([b"".join(s[f].tobytes() for f in ROLE_FIELDS[role] if f not in TIMED) for s in samples])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2] or (role, name) == ("commands", "script")  # a script says the same whatever the samples are


@all_ports
def test_counters_never_fall(opened, stream, role, name):
    port, device = opened(role, name)
    samples = run(port, device, stream(50), damaged=range(10, 50, 7))
    counters = [f for f in ROLE_FIELDS[role] if f.endswith("_total") or f in ("wrench_sequence", "command_sequence", "hand_sequence")]
    seen = {f: np.array([s[f][0] for s in samples]) for f in counters}
    for f, values in seen.items():
        assert np.all(np.diff(values, axis=0) >= 0), f
    if role in HARDWARE and role != "mechanism_signals":  # whose counters are not in the sample
        assert any(values[-1].max() > values[0].max() for f, values in seen.items() if f.endswith("corrupt_total"))


@talking_ports
def test_silence_is_reported_and_leaves_the_last_values(opened, stream, role, name):
    port, device = opened(role, name, **DEVICES[role, name].QUICK)
    status, bits, values = HARDWARE[role]
    last = run(port, device, stream(5))[-1]
    kept, end = {field: last[field].tobytes() for field in values}, time.monotonic() + 10.0
    while not np.all(last[status] & BITS[bits]["no_data"]):
        assert time.monotonic() < end, "silence is never reported"
        last["time_ns"] += PERIOD
        port.read(last)
        assert {field: last[field].tobytes() for field in values} == kept


@all_ports
def test_snapshot_and_restore_give_the_same_bytes(opened, stream, role, name):
    port, device = opened(role, name)
    run(port, device, stream(20))
    snapshot = port.snapshot()
    run(port, device, stream(25, seed=2)[20:])
    assert port.snapshot() != snapshot or not snapshot
    port.restore(snapshot)
    assert port.snapshot() == snapshot
    with pytest.raises(ValueError, match="bytes"):
        port.restore(snapshot + b"\0")
    assert port.snapshot() == snapshot


@needs_mallinfo2
@all_ports
def test_keeps_no_memory(opened, stream, role, name):
    """Two thousand ticks, one in ten with something new; the smallest block that malloc gives is 32 bytes, so one in ten would show, each
    time: what other threads of the process take once is not the port's."""
    port, device = opened(role, name)
    sample = stream(1)[0]
    aux = port.read(sample)

    def ticks(count):
        for k in range(count):
            if k % 10 == 0:
                device.tick(k)
            port.read(sample, aux)
            port.write(sample, aux)
            if k % 10 == 9:
                device.heard()

    def taken():
        before = in_use()
        ticks(2000)
        return in_use() - before

    ticks(300)
    assert any(taken() < 6400 for _ in range(3))


# ------------------------------------------------------------------------------------------------------------------ clocks


def timed_line(name, ticks, **keys):
    """A line without ports on this clock; everything it makes goes into the block."""
    test = assembly.simulation(load_test())
    stages = test.line.stages
    block = SharedBlock.create(1000, sum(channel.count for stage in stages.values() for channel in stage.AUX))
    clock = registry.part("clocks", name)(period_ns=PERIOD, duration_ns=ticks * PERIOD, block=block, **keys)
    line = LoopLine(clock, [], stages, block)
    return line, block


def drained(block):
    return np.frombuffer(block.drain(10_000), np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (block.aux_count,))]))


SOFT = {"wall": {"priority": 0}}


@all_clocks
def test_clock_ticks_on_its_grid_and_ends(name):
    line, block = timed_line(name, 60, **SOFT.get(name, {}))
    line.run()
    got = drained(block)
    due = got["tick"] - (got["periods"] - 1)  # a tick that came whole periods late has skipped them
    assert got["tick"][0] == 0 and np.all(due < 60) and len(got) > 1 and block.finished
    np.testing.assert_array_equal(got["time_ns"], got["tick"] * PERIOD)
    np.testing.assert_array_equal(np.diff(got["tick"]), got["periods"][1:])
    assert np.all(np.diff(got["missed_total"]) == got["periods"][1:] - 1) and np.all(got["lateness_ns"] >= 0)
    assert set(got["realtime_mode"]) == {CODES["realtime_mode"]["soft" if name in SOFT else "free_running"]}


@all_clocks
def test_clock_writes_only_its_fields(name):
    """No one else writes here but the stages: the inputs of the ports stay as they were."""
    line, block = timed_line(name, 20, **SOFT.get(name, {}))
    before = line.sample
    line.run()
    for field, *rest in FIELDS:
        if rest[4] == "ports":
            assert line.sample[field].tobytes() == before[field].tobytes(), field
    assert line.sample["tick"][0] > before["tick"][0]


@all_clocks
def test_clock_obeys_the_stop_word(name):
    line, block = timed_line(name, 1000, **SOFT.get(name, {}))
    block.request_stop()
    line.run()
    assert line.sample["tick"][0] == 0 and len(drained(block)) == 0 and block.finished


@all_clocks
def test_clock_refuses_unknown_keys_by_name(name):
    with pytest.raises(ValueError, match="no_such_key"):
        registry.part("clocks", name)(period_ns=PERIOD, duration_ns=0, no_such_key=1)
