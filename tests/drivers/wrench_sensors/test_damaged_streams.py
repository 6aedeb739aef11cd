"""Damaged streams of every sensor with a protocol of its own: a cut of `tools/fuzz_sensors.py`, and the judge judged."""

import random

import pytest

from tests.fuzz import sensor_streams
from tests.fuzz.sensor_streams import BACK_IN_STEP, CHECKED_HERE, SENSORS, port_of

STREAMS = 1000


@pytest.mark.parametrize("name", SENSORS)
def test_no_wrong_wrench_without_its_fault_and_back_in_step(name):
    sensor, port = port_of(name)
    for kind, found in sensor_streams.tally(sensor, port, "suite", STREAMS).items():
        assert found["wrong_unsaid"] == 0, kind
        assert found["late"] <= BACK_IN_STEP, kind
        # a record destroyed where it stood, and whole where a piece of the stream came twice: without stamps no one can tell
        assert found["out_of_order"] <= (0 if sensor.STAMPED or kind != "mixed" else 0.01 * STREAMS), kind
        assert found["silent"] == 0 or not sensor.STAMPED, kind


@pytest.mark.parametrize("name", CHECKED_HERE)
def test_a_damaged_record_with_a_right_checksum_seldom_passes_unreported(name):
    """What the checksum lets through meets stamp, range and jump; what these let through too is off by less than a jump."""
    sensor, port = port_of(name)
    found = sensor_streams.collisions(sensor, port, "suite", 500)
    assert found["streams"] > 400
    assert found["believed, unreported"] < 0.35 * found["streams"]
    assert found["largest error, 1e-3 of range"] <= 300  # jump_share, and what the wrench itself had moved
    assert found["not believed and unreported"] == 0


@pytest.mark.parametrize("name", CHECKED_HERE)
def test_the_judge_sees_a_port_that_believes_everything(name):
    """A jump limit so wide that it stops nothing: the judge must find more, and larger errors."""
    sensor, port = port_of(name)
    _, wide = port_of(name, jump_share=2.0)
    tight, loose = (sensor_streams.collisions(sensor, p, "suite", 500) for p in (port, wide))
    assert loose["believed, unreported"] > 1.2 * tight["believed, unreported"]
    assert loose["largest error, 1e-3 of range"] > 600


def test_streams_are_the_same_for_the_same_seed():
    sensor = SENSORS["bota_serial"]()
    made = [sensor_streams.damaged_stream(sensor, random.Random("a"), "mixed") for _ in range(2)]
    assert made[0] == made[1]
