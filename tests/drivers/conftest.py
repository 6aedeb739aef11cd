"""Fixtures: stands in software, an empty sample."""

import numpy as np
import pytest

from drivers.simulated.stand_server_client import StandProcess
from rt_kernels.layout import SAMPLE_DTYPE
from tests.drivers.plain_stand import stand_config


@pytest.fixture
def stand():
    """Starts stands: `stand(sensor={...}, drives={...})`; all are stopped at the end."""
    running = []

    def start(plant=None, **tables):
        running.append(StandProcess(stand_config(plant, **tables)))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def sample():
    return np.zeros(1, SAMPLE_DTYPE)
