"""The virtual stand in process: delays of setpoints and legs by tick, every injected fault in its status word, faults by schedule."""

import numpy as np
import pytest

from drivers.simulated.injections import IN_PROCESS
from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE

PERIOD = 1_000_000
FOLLOWING = CODES["safety_state"]["following"]
DRIVE, SENSOR = BITS["drive_status"], BITS["sensor_status"]


@pytest.fixture(scope="module")
def shipped():
    return assembly.simulation(load_test())


class Ticks:
    def __init__(self, shipped, **keys):
        context = shipped.context | {"mechanism": assembly.build_part(*shipped.config.setup.mechanism, shipped.context)}
        quiet = {"leg_noise_m": 0.0, "leg_resolution_m": 0.0, "force_noise_n": 0.0, "moment_noise_n_m": 0.0}
        self.port = assembly.build_part("simulated", "virtual_stand", quiet | keys, context)
        self.neutral = context["platform"].leg_lengths(context["platform"].neutral_pose)
        self.sample = np.zeros(1, SAMPLE_DTYPE)
        self.sample["safety_state"], self.sample["periods"], self.sample["leg_setpoint"] = FOLLOWING, 1, self.neutral
        self.sample["X_TA"][0, 6] = 1.0

    def tick(self, command="none", *arguments):
        s = self.sample
        self.port.read(s)
        s["command_code"], s["command_arg"] = CODES["command"][command], 0.0
        s["command_arg"][0, : len(arguments)] = arguments
        self.port.write(s)
        s["tick"] += 1
        s["time_ns"] += PERIOD
        return s[0]


def first_motion(shipped, **keys):
    """Ticks from the setpoint of a step to the first measured length that has moved."""
    line = Ticks(shipped, drive_delay_s=0.0, **keys)
    for _ in range(5):
        line.tick()
    line.sample["leg_setpoint"] = line.neutral + 0.01
    for k in range(20):
        if np.any(np.abs(line.tick()["measured_leg"] - line.neutral) > 1e-9):
            return k
    raise AssertionError("the legs never move")


@pytest.mark.parametrize("setpoint_delay", [0, 1])
@pytest.mark.parametrize("leg_delay", [0, 1])
def test_delays_are_whole_ticks(shipped, setpoint_delay, leg_delay):
    """Without any the plant has moved by the next tick; a setpoint that waits for its synchronisation costs one, old legs another."""
    undelayed = first_motion(shipped, setpoint_delay_ticks=0, measured_leg_delay_ticks=0)
    delayed = first_motion(shipped, setpoint_delay_ticks=setpoint_delay, measured_leg_delay_ticks=leg_delay)
    assert undelayed == 1 and delayed == 1 + setpoint_delay + leg_delay
    port = Ticks(shipped, setpoint_delay_ticks=setpoint_delay, measured_leg_delay_ticks=leg_delay).port
    assert port.delays["setpoint_ticks"] == setpoint_delay
    assert port.delays["measured_leg_delay_s"] == pytest.approx(1e-9 * PERIOD * leg_delay)


def test_rate_is_the_difference_of_the_measured_lengths(shipped):
    line = Ticks(shipped, measured_leg_delay_ticks=0)
    line.sample["leg_setpoint"] = line.neutral + 0.01
    before = line.tick()["measured_leg"].copy()
    for periods in (1, 1, 3, 1):
        line.sample["periods"] = periods
        now = line.tick()
        rate = (now["measured_leg"] - before) / (1e-9 * PERIOD * periods)
        np.testing.assert_allclose(now["measured_leg_rate"], rate, rtol=1e-12, atol=1e-12)
        before = now["measured_leg"].copy()


def test_nothing_moves_before_the_legs_are_armed(shipped):
    line = Ticks(shipped)
    line.sample["safety_state"], line.sample["leg_setpoint"] = CODES["safety_state"]["not_armed"], 0.0
    for _ in range(20):
        assert np.abs(line.tick()["measured_leg"] - line.neutral).max() < 1e-6


BY_STATUS = {
    "drive_silent": "no_data", "drive_fault": "device_fault", "drive_disabled": "not_enabled", "drive_following_error": "following_error",
    "drive_limit_touched": "limit_touched", "drive_local": "local_control", "drive_emergency": "emergency", "bus_fault": "bus_fault",
    "drive_lost": "lost", "drive_corrupt": "corrupt", "drive_not_following": "not_following", "drive_heartbeat_lost": "heartbeat_lost",
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 3, 5])
@pytest.mark.parametrize("fault", BY_STATUS)
def test_fault_of_a_drive_is_on_its_axis_and_goes_when_cleared(shipped, fault, axis):
    line = Ticks(shipped)
    assert not line.tick("inject_fault", IN_PROCESS[fault], axis)["drive_status"].any()
    seen = line.tick()["drive_status"]
    assert seen[axis] == DRIVE[BY_STATUS[fault]] and np.count_nonzero(seen) == 1
    line.tick("clear_injection")
    assert not line.tick()["drive_status"].any()


@pytest.mark.parametrize(
    ("fault", "bit", "held"),
    [("sensor_silent", "no_data", True), ("sensor_stale", "stale", True), ("sensor_busy", "busy", True), ("sensor_lost", "lost", False),
     ("sensor_corrupt", "corrupt", False), ("sensor_device_fault", "device_fault", False)],
)  # fmt: skip
def test_fault_of_the_sensor(shipped, fault, bit, held):
    """A sensor without new data holds its value and sequence and grows older; one that only complains continues."""
    line = Ticks(shipped)
    line.tick("inject_fault", IN_PROCESS[fault], 0)
    before = line.tick().copy()
    assert before["wrench_status"] == SENSOR[bit]
    for k in range(1, 4):
        after = line.tick()
        assert after["wrench_sequence"] == before["wrench_sequence"] + (0 if held else k)
        assert after["wrench_age_ns"] == (before["wrench_age_ns"] + k * PERIOD if held else 0)
        assert after["wrench_lost_total"] - before["wrench_lost_total"] == k * (bit == "lost")
        assert after["wrench_corrupt_total"] - before["wrench_corrupt_total"] == k * (bit == "corrupt")


def test_lost_and_damaged_answers_are_counted_by_axis(shipped):
    line = Ticks(shipped)
    line.tick("inject_fault", IN_PROCESS["drive_lost"], 2)
    line.tick("inject_fault", IN_PROCESS["drive_corrupt"], 4)
    for _ in range(5):
        now = line.tick()
    assert list(now["drive_lost_total"]) == [0, 0, 6, 0, 0, 0] and list(now["drive_corrupt_total"]) == [0, 0, 0, 0, 5, 0]


def test_silent_legs_and_signals_keep_their_last_value(shipped):
    line = Ticks(shipped, measured_leg_delay_ticks=0)
    line.sample["leg_setpoint"] = line.neutral + 0.02
    line.tick("inject_fault", IN_PROCESS["drive_silent"], 1)
    line.tick("inject_fault", IN_PROCESS["signals_silent"], 0)
    before = line.tick().copy()
    for _ in range(10):
        now = line.tick()
    assert now["signal_status"] == SENSOR["no_data"]
    moved = now["measured_leg"] != before["measured_leg"]
    assert list(moved) == [True, False, True, True, True, True]


def test_scheduled_faults_come_at_their_time_in_any_order(shipped):
    line = Ticks(shipped, faults=[{"fault": "sensor_lost", "at_s": 0.004}, {"fault": "drive_lost", "at_s": 0.002, "index": 3}])
    lost = [(bool(s["drive_status"][3]), bool(s["wrench_status"])) for s in (line.tick().copy() for _ in range(6))]
    assert lost == [(k >= 2, k >= 4) for k in range(6)]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"fault": "drive_melts", "at_s": 0.0}, r"faults\[0\]\.fault: must be one of clear, leg_stuck"),
        ({"fault": "drive_lost", "at_s": 0.0, "index": 6}, r"faults\[0\]\.index: must be a whole number within 0 ... 5, got 6"),
        ({"fault": "drive_lost"}, r"faults\[0\]\.at_s: required key is missing"),
        ({"fault": "drive_lost", "at_s": 0.0, "when": 1}, r"faults\[0\]\.when: unknown key"),
        ([0.0, 110, 0, 0.0], "faults: must be a list of tables"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(shipped, fault, words):
    with pytest.raises(ConfigurationError, match=words):
        Ticks(shipped, faults=[fault])


def test_step_of_the_plant_divides_the_period(shipped):
    with pytest.raises(ConfigurationError, match="does not divide"):
        Ticks(shipped, plant_step_s=3e-4)


@pytest.mark.parametrize("index", [-1, 6, 1000])
def test_fault_of_an_axis_that_is_not_there_does_nothing(shipped, index):
    """A command may carry any number: it reaches no axis, and nothing beside them."""
    lines = Ticks(shipped), Ticks(shipped)
    for fault in ("drive_lost", "drive_silent", "bus_fault", "sensor_lost"):
        lines[0].tick("inject_fault", IN_PROCESS[fault], index)
        lines[1].tick()
    runs = [b"".join(line.tick().tobytes() for _ in range(5)) for line in lines]
    assert runs[0] == runs[1] and lines[0].port.snapshot() == lines[1].port.snapshot()
