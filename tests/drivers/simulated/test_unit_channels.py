"""Channels of a docking unit in software: from the stand's process into the log of the server, whole or not at all."""

import os
import struct

import numpy as np
import pytest

from drivers.simulated.stand_server_client import StandProcess
from drivers.simulated.unit_channels import NOT_MEASURED, UnitChannelsPort, UnitMemory
from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.line.free_run import blocks
from rt_kernels.mechanisms.ring.unit import Ring
from tests.drivers.plain_stand import stand_config, until

RING = load_test("programmes/virtual_docking_ring.toml").setup.mechanism.keys


@pytest.fixture
def ring():
    return Ring(**RING)


def count_of(mechanism):
    return sum(channel.count for channel in mechanism.AUX)


def test_the_port_has_the_newest_values(ring, sample):
    memory = UnitMemory.create(count_of(ring))
    port, stand = UnitChannelsPort(memory, ring), UnitMemory.attach(memory.fd, count_of(ring))
    assert [(one.name, one.unit, one.count) for one in port.AUX] == [(one.name, one.unit, one.count) for one in ring.AUX]
    assert all(one.meaning.startswith(NOT_MEASURED) for one in port.AUX)
    values, before = np.arange(1.0, count_of(ring) + 1.0), sample.copy()
    stand.put(values)
    np.testing.assert_array_equal(port.read(sample), values)
    assert sample.tobytes() == before.tobytes()


def test_values_that_are_being_written_are_not_taken(ring, sample):
    memory = UnitMemory.create(count_of(ring))
    port = UnitChannelsPort(memory, ring)
    aux = np.full(count_of(ring), 7.0)
    (version,) = struct.unpack("<q", os.pread(memory.fd, 8, 0))
    os.pwrite(memory.fd, struct.pack("<q", version + 1), 0)
    assert (port.read(sample, aux) == 7.0).all()
    os.pwrite(memory.fd, struct.pack("<q", version + 2), 0)
    assert (port.read(sample, aux) == 0.0).all()


def test_another_unit_is_refused(ring):
    with pytest.raises(ValueError, match="limit 1 or more"):
        UnitMemory.create(0)
    memory = UnitMemory.create(5)
    with pytest.raises(ValueError, match="a unit with 5 channels, not that of the test"):
        UnitChannelsPort(memory, ring)
    with pytest.raises(ValueError, match="is for 5 channels of the unit, its mechanism has 4"):
        UnitMemory.attach(memory.fd, 4)
    with pytest.raises(ValueError, match="holds no channels of the unit"):
        UnitMemory.attach(memory.fd, 10_000)
    with pytest.raises(ValueError, match="6 values for 5 channels"):
        memory.put(np.zeros(6))


def test_the_process_of_a_stand_hands_them_over(ring, sample):
    """Of a ring that nothing touches the pose is that of the same unit in this process."""
    memory = UnitMemory.create(count_of(ring))
    port = UnitChannelsPort(memory, ring)
    plant = {"mechanism": {"part": "rt_kernels.mechanisms.ring.unit:Ring", **RING}}
    alone, pose = np.zeros(count_of(ring)), slice(0, 7)
    assert sum(channel.count for channel in ring.AUX[:2]) == 7
    with StandProcess(stand_config(plant), memory) as stand:
        until(lambda: port.read(sample).any(), stand.control.ping)
        found = port.read(sample)
    ring.advance([-2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.0] * 6, 5e-5, aux=alone)
    assert alone[0] > 0.1
    np.testing.assert_allclose(found[pose], alone[pose], atol=1e-9)


def test_in_process_they_are_those_of_the_plant():
    test = assembly.simulation(load_test("programmes/idss_docking.toml", ["test.duration_max_s=2.0"]))
    port = test.ports[-1]
    for _ in blocks(test):
        pass
    found = test.line.aux[: count_of(port.plant.mechanism)]  # those of the ports come first
    np.testing.assert_array_equal(found, port.plant.mechanism_aux)
    assert np.count_nonzero(found) > 10 and all(one.meaning.startswith(NOT_MEASURED) for one in port.AUX)
