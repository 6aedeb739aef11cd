"""Manipulator with payload as a stage: rest, statics, operator's rates, brakes, limits, momentum, replay bits."""

import numpy as np
import pytest

from hil_server import assembly
from hil_server.config import load_test
from rt_kernels.dynamics.manipulator_payload import ManipulatorPayload
from rt_kernels.layout import CODES, SAMPLE_DTYPE

MODES, MOTIONS, FRAMES = CODES["arm_mode"], CODES["motion"], CODES["rate_frame"]
PROGRAMME = "stand_configs/programmes/berthing.toml"
AUX = {}
for channel in ManipulatorPayload.AUX:
    first = sum(c.count for c in ManipulatorPayload.AUX[: ManipulatorPayload.AUX.index(channel)])
    AUX[channel.name] = slice(first, first + channel.count)


@pytest.fixture(scope="module")
def shipped():
    """(keys of the part, context) of the shipped programme."""
    config = load_test(PROGRAMME)
    return dict(config.part("dynamics")[1]), assembly.simulation(config).context


@pytest.fixture
def build(shipped):
    keys, context = shipped
    return lambda **other: ManipulatorPayload(**{k: context[k] for k in ManipulatorPayload.CONTEXT}, **(keys | other))


class Run:
    """A part with its sample; X_TA at rest one metre away, loop closed."""

    def __init__(self, part, X=(-1.0, 0, 0, 0, 0, 0, 1), V=(0,) * 6):
        self.part, self.sample = part, np.zeros(1, SAMPLE_DTYPE)
        for name in SAMPLE_DTYPE.names:
            if name.startswith(("X_", "profile_X")):
                self.sample[name][0, 6] = 1.0
        self.sample["periods"] = 1
        self.sample["X_TA_measured"], self.sample["V_TA_measured"] = X, V
        self.set(motion="close_loop")
        self.aux = part.step(self.sample)
        self.set(motion="free")

    def set(self, motion=None, mode=None, frame=None, rate=None, target=None, F_T=None):
        if motion is not None:
            self.sample["motion"] = MOTIONS[motion]
        if mode is not None:
            self.sample["arm_mode"] = MODES[mode]
        if frame is not None:
            self.sample["rate_frame"] = FRAMES[frame]
        if rate is not None:
            self.sample["operator_rate"][0] = np.resize(rate, 6) if np.size(rate) == 6 else [rate, 0, 0, 0, 0, 0]
        if target is not None:
            self.sample["arm_target"] = target
        if F_T is not None:
            self.sample["F_T_corrected"][0] = F_T

    def steps(self, count):
        self.part.repeat(self.sample, count, self.aux)

    def __getitem__(self, name):
        if name in AUX:
            value = self.aux[AUX[name]]
            return value.copy() if len(value) > 1 else float(value[0])
        value = self.sample[name][0]
        return value.copy() if np.ndim(value) else value.item()


def test_at_rest_it_stays(build):
    run = Run(build())
    before = run["X_TA"]
    run.steps(20_000)
    np.testing.assert_allclose(run["X_TA"], before, rtol=0.0, atol=1e-12)
    assert run["arm_energy"] < 1e-18
    assert run["dynamics_status"] == 0


def test_the_commanded_point_moves_as_commanded(build):
    """After the transient the port has the commanded rate: the booms' oscillation dies away within half a minute."""
    run = Run(build())
    run.set(mode="hand", frame="interface", rate=[0.01, 0.004, -0.002, 0.0, 0.0, 0.0])
    run.steps(60_000)
    X = run["X_TA"]
    run.steps(20_000)
    np.testing.assert_allclose((run["X_TA"][:3] - X[:3]) / 10.0, [0.01, 0.004, -0.002], rtol=0.0, atol=5e-4)


def test_replay_bits(build):
    """From a snapshot in the middle of everything the same bits follow, in another part too."""
    run = Run(build(), V=(0.01, 0, 0, 0, 0, 0))
    run.set(mode="hand", frame="camera", rate=[0.02, 0.01, -0.01, 0.001, 0.003, -0.002], F_T=[300.0, -40.0, 20.0, 10.0, 5.0, -30.0])
    run.steps(5_003)
    snapshot, sample = run.part.snapshot(), run.sample.copy()
    run.steps(2_000)
    other = Run(build())
    other.part.restore(snapshot)
    other.sample[:] = sample
    other.steps(2_000)
    assert other.part.snapshot() == run.part.snapshot()
    assert other.sample.tobytes() == run.sample.tobytes()
    assert other.aux.tobytes() == run.aux.tobytes()
