"""The safety stage alone: built for a stand, and the sample of a tick in which all is well."""

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.codes import fault_names
from rt_kernels.context import Delays, Limits
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.safety.limits import SafetyLimits

PERIOD = 1e-3
LIMITS = {"force_limit_n": [100.0, 200.0, 300.0], "moment_limit_n_m": [10.0, 20.0, 30.0], "start_tolerance_m": 0.02}
DELAYS = Delays(
    total_s=0.03, transport_s=0.012, sensor_delay_s=0.0, drive_lag_s=0.018, drive_frequency_hz=13.0, drive_damping=0.75,
    measured_leg_delay_s=0.001,
)  # fmt: skip


@pytest.fixture(scope="session")
def platform():
    """The docking stand's: legs of 3 to 5 m, 0.5 m/s, 10 m/s2."""
    return assembly.simulation(load_test()).context["platform"]


@pytest.fixture
def stage(platform):
    """Function (**keys) → a safety stage; `limits` are merged with those above."""

    def make(period_s=PERIOD, limits=None, **keys):
        return SafetyLimits(period_s=period_s, platform=platform, delays=DELAYS, limits=Limits(**(LIMITS | (limits or {}))), **keys)

    return make


@pytest.fixture
def quiet(platform):
    """Function (n, **fields) → n samples in which nothing happens: at rest in the neutral pose, closed loop, no contact."""
    legs = platform.leg_lengths(np.asarray(platform.neutral_pose))

    def make(n, **fields):
        s = np.zeros(n, SAMPLE_DTYPE)
        s["tick"], s["periods"], s["analogue_chain"], s["trip_tick"] = np.arange(n), 1, 1, -1
        s["measured_leg"] = s["leg_demand"] = legs
        s["X_TA"][:, 6] = 1.0
        s["phase"], s["motion"] = CODES["phase"]["contact"], CODES["motion"]["free"]
        s["condition"] = 2.0
        for name, value in fields.items():
            s[name] = value
        return s

    return make


def names(word):
    """Names of the fault bits in a word."""
    return set(fault_names(word))


def through(stage, samples):
    """The samples after the stage; energy fields carried from tick to tick as in the working sample."""
    one = samples[:1].copy()
    out = samples.copy()
    carried = ("contact_work", "contact_energy_ratio", "unit_energy_ratio", "following_error")
    for k in range(len(samples)):
        for name in carried:
            if k:
                samples[name][k] = one[name][0]
        one[:] = samples[k : k + 1]
        stage.step(one)
        out[k] = one[0]
    return out
