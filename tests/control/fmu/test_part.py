"""The part that runs an FMU: what the controller computes is what acts, and nothing that it does wrong ends the server."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import fmpy
import numpy as np
import pytest

from hil_server import registry
from rt_kernels.layout import BITS, SAMPLE_DTYPE
from tests.control.fmu import factory, test_description
from tests.processes import children, wait_for_end

PERIOD = 1e-3
GAIN, FORCE, LAG = 300.0, 250.0, 0.02
NONE, BAD_STATUS, CRASHED, LATE, NOT_FINITE, ENDED = range(6)
PRESS = BITS["control_request"]["press"]
FIRING, FAILED = BITS["control_status"]["firing"], BITS["control_status"]["failed"]
versions = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def build(tmp_path):
    """Function (version, start, keys) → the part on a fresh FMU."""

    def make(version=2, start=None, live=False, made=None, period=PERIOD, **keys):
        begun = {"gain": GAIN, "force": FORCE, "lag": LAG} | (start or {})
        own = made or factory.keys(tmp_path, version, begun)
        return registry.part("control", "fmu")(period_s=period, folders=[tmp_path], live=live, **{**own, **keys})

    return make


def flown(part, rates, pressed, periods=None):
    """The records after one step each. rates: (n, 3) of the active craft; pressed: n times true or false."""
    samples = np.zeros(len(rates), SAMPLE_DTYPE)
    samples["periods"] = 1 if periods is None else periods
    samples["V_NC"][:, 3:] = rates
    samples["control_request"] = np.where(pressed, PRESS, 0)
    samples["control_A"], samples["thruster_T"] = 9.0, 9.0  # of the tick before
    rows = []
    for i in range(len(samples)):
        rows.append(part.step(samples[i : i + 1]).copy())
    return samples, np.array(rows)


def course(n, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 0.02, (n, 3)), rng.random(n) < 0.5


def law(rates, pressed, steps=None, h=PERIOD):
    """controller.c once more: wrench (n, 6) for rates held over steps[i] communication steps of h."""
    x, wrench = np.zeros(3), np.zeros((len(rates), 6))
    for i, w in enumerate(rates):
        for _ in range(1 if steps is None else steps[i]):
            x = x + h / LAG * (w - x)
        wrench[i] = [FORCE * pressed[i], 0.0, 0.0, *(-GAIN * x)]
    return wrench


# ----------------------------------------------------------------------------------------------------------- what it computes
@versions
def test_the_law_of_the_controller_acts(build, version):
    rates, pressed = course(50)
    samples, aux = flown(build(version), rates, pressed)
    assert samples["control_A"] == pytest.approx(law(rates, pressed), rel=1e-14, abs=1e-300)
    assert (samples["control_status"] == np.where(pressed, FIRING, 0)).all()
    assert not samples["thruster_T"].any() and not samples["control_T"].any()
    assert not aux[:, 0].any() and aux[:, 2] == pytest.approx(PERIOD * np.arange(1, 51))


@versions
def test_fmpy_computes_the_same_bits(build, tmp_path, version):
    """The same file, stepped by fmpy's own master. It interpolates inputs in time: a period without rounding gives those of the table."""
    period = 2.0**-10
    rates, pressed = course(200)
    samples, _ = flown(build(version, period=period), rates, pressed)
    n = len(rates)
    given = np.zeros(n, [("time", "f8"), *((f"w[{i}]", "f8") for i in range(3)), ("press", "?")])
    given["time"] = period * np.arange(n)
    for i in range(3):
        given[f"w[{i}]"] = rates[:, i]
    given["press"] = pressed
    names = [f"torque[{i}]" for i in range(3)] + ["thrust"]
    result = fmpy.simulate_fmu(
        str(tmp_path / f"controller{version}.fmu"), validate=False, start_time=0.0, stop_time=n * period, step_size=period,
        output_interval=period, input=given, output=names, start_values={"gain": GAIN, "force": FORCE, "lag": LAG}, fmi_type="CoSimulation",
    )  # fmt: skip
    assert len(result) == n + 1
    ours = np.column_stack([samples["control_A"][:, 3:], samples["control_A"][:, 0]])
    theirs = np.column_stack([result[name] for name in names])[1:]
    assert np.abs(ours).max(axis=0).min() > 0.1
    assert ours.tobytes() == theirs.tobytes()


def test_a_communication_step_of_several_periods(build):
    rates, pressed = course(21)
    samples, aux = flown(build(step_ticks=4), rates, pressed)
    at = np.arange(0, 21, 4)
    held = np.repeat(law(rates[at], pressed[at], h=4 * PERIOD), 4, axis=0)[:21]
    assert samples["control_A"] == pytest.approx(held, rel=1e-14, abs=1e-300)
    assert aux[-1, 2] == pytest.approx(6 * 4 * PERIOD)


def test_skipped_periods_are_made_up(build):
    """The FMU's time stays that of the loop: the steps that are due are made with the newest inputs."""
    rates, pressed = course(30)
    periods = np.where(np.arange(30) % 7 == 3, 5, 1)
    samples, aux = flown(build(), rates, pressed, periods)
    assert samples["control_A"] == pytest.approx(law(rates, pressed, periods), rel=1e-14, abs=1e-300)
    assert aux[:, 2] == pytest.approx(PERIOD * np.cumsum(periods))


def test_whole_numbers_and_bits_reach_the_fmu_as_numbers(build, tmp_path):
    made = factory.keys(tmp_path)
    made["inputs"] = {"w[0]": "tick", "w[1]": "signal_discrete", "w[2]": "phase", "press": "contact"}
    part = build(made=made | {"start": {"lag": PERIOD, "gain": 1.0}})
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"], sample["tick"], sample["signal_discrete"], sample["phase"], sample["contact"] = 1, 2**40, 2**32 - 1, -3, 1
    part.step(sample)
    assert sample["control_A"][0].tolist() == [100.0, 0.0, 0.0, -(2.0**40), -(2.0**32 - 1), 3.0]


@versions
def test_a_snapshot_holds_the_state_of_the_fmu(build, version):
    rates, pressed = course(40)
    part = build(version)
    flown(part, rates[:20], pressed[:20])
    kept = part.snapshot()
    once = flown(part, rates[20:], pressed[20:])[0].tobytes()
    part.restore(kept)
    assert flown(part, rates[20:], pressed[20:])[0].tobytes() == once
    other = build(version)
    other.restore(kept)
    assert flown(other, rates[20:], pressed[20:])[0].tobytes() == once
    for wrong in (kept[:-1], kept[:20]):
        with pytest.raises(ValueError, match=r"state"):
            build(version).restore(wrong)


def test_an_fmu_that_cannot_give_its_state_says_so(build, tmp_path):
    part = build(made=factory.keys(tmp_path, keeps_state=False))
    with pytest.raises(ValueError, match="canGetAndSetFMUstate.*cannot be put back in the middle of a run"):
        part.snapshot()


# ------------------------------------------------------------------------------------------------ things of the dynamics part
@versions
def test_it_reads_channels_and_writes_joints_and_actuators(build, tmp_path, version):
    """Of the channels that it is shown; a joint with its bit, a wheel and a thruster within their limits with what they do to the craft."""
    dynamics = test_description.DYNAMICS
    at = {}
    for channel in dynamics.AUX:
        at[channel.name] = sum(c.count for c in dynamics.AUX[: len(at)])
    made = factory.keys(tmp_path, version, {"lag": PERIOD, "gain": 1.0, "force": 25.0})
    made["inputs"] = {"w[0]": "joint_position[target mast.1]", "w[1]": "sensor_rate[target tip][0]", "w[2]": "latch_drift[1]",
                      "press": "control_request.press"}  # fmt: skip
    made["outputs"] = {"torque[0]": "wheel_torque_A[x]", "torque[1]": "joint_target[target mast.1]", "torque[2]": "control_A[4]",
                       "thrust": "thruster_T[aft]"}  # fmt: skip
    part = build(version, made=made, dynamics=dynamics)
    channels = np.arange(200.0)
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"] = 1
    part.step(sample)
    assert not sample["wheel_torque_A"].any() and sample["joint_controlled"][0].tolist() == [4, 0]  # in no line
    part.look_at(channels)
    part.step(sample)
    position, rate, drift = at["joint_position"] + 2.0, at["sensor_rate"] + 3.0, at["latch_drift"] + 1.0
    assert sample["wheel_torque_A"][0].tolist() == [-position, *[0.0] * 15] and not sample["control_status"]
    assert sample["joint_target"][0].tolist() == [0.0, 0.0, -rate, *[0.0] * 37] and sample["joint_controlled"][0].tolist() == [4, 0]
    assert sample["control_A"][0] == pytest.approx([0.0, 0.0, 0.0, 0.0, -drift + 0.6 * position, 0.8 * position], rel=1e-14)
    assert not sample["thruster_T"].any() and not sample["control_T"].any()
    channels[:], sample["control_request"] = 1e3, PRESS
    part.step(sample)
    assert sample["wheel_torque_A"][0, 0] == -100.0 and sample["thruster_T"][0, 0] == 20.0
    assert sample["control_A"][0, 4:] == pytest.approx([-1e3 + 60.0, 80.0])
    assert sample["control_T"][0] == pytest.approx([12, 0, 16, 0, 40, 0])
    assert sample["control_status"][0] == BITS["control_status"]["wheel_limited"] | BITS["control_status"]["thrust_limited"]


@pytest.mark.parametrize(
    ("rate", "turning", "torque", "given"),
    [(6.0, 0.0, 3.0, 0.0), (6.0, 0.0, -3.0, -3.0), (-6.0, 0.0, -3.0, 0.0), (4.0, 0.0, 3.0, 3.0), (4.0, 2.0, 3.0, 0.0),
     (6.0, -2.0, 3.0, 3.0)],
)  # fmt: skip
def test_a_full_wheel_takes_no_more(build, tmp_path, rate, turning, torque, given):
    """Momentum about its axis, of its own rate and the craft's, which is turned by a quarter about z."""
    made = factory.keys(tmp_path, 2, {"lag": PERIOD, "gain": 1.0})
    made["inputs"], made["outputs"] = {"w[0]": "signal_analog[0]"}, {"torque[0]": "wheel_torque_A[x]"}
    part = build(2, made=made, dynamics=test_description.DYNAMICS)
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"], sample["X_NC"][0, 3:], sample["signal_analog"][0, 0] = 1, [0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)], -torque
    sample["wheel_rate_A"][0, 0], sample["V_NC"][0, 3:] = rate, np.array([-0.6, 0.0, 0.8]) * turning
    part.step(sample)
    assert sample["wheel_torque_A"][0, 0] == given
    assert sample["control_status"][0] == (0 if given else BITS["control_status"]["wheel_limited"])


def test_joints_are_left_alone_after_a_failure(build, tmp_path):
    made = factory.keys(tmp_path, 2, {"fail": 3, "fail_time": 2 * PERIOD})
    made["outputs"] = {"torque[0]": "joint_target[active shoulder]"}
    samples, _ = flown(build(made=made, dynamics=test_description.DYNAMICS), *course(4))
    assert samples["joint_controlled"].tolist() == [[1, 0], [1, 0], [0, 0], [0, 0]] and not samples["joint_target"][2:].any()


# ----------------------------------------------------------------------------------------------------------------- how it fails
FAILURES = {"nan": (1, NOT_FINITE, None), "segfault": (2, CRASHED, signal.SIGSEGV), "error": (3, BAD_STATUS, 3),
            "abort": (5, CRASHED, signal.SIGABRT), "exit": (6, CRASHED, 0), "end": (7, ENDED, None)}  # fmt: skip


@versions
@pytest.mark.parametrize("how", FAILURES)
def test_a_failure_is_reported_and_nothing_acts(build, version, how):
    number, failure, detail = FAILURES[how]
    rates, pressed = course(12)
    part = build(version, {"fail": number, "fail_time": 5 * PERIOD})
    samples, aux = flown(part, rates, np.ones(12, bool))
    assert samples["control_A"][:5] == pytest.approx(law(rates[:5], np.ones(5)), rel=1e-14, abs=1e-300)
    assert (samples["control_status"] == np.where(np.arange(12) < 5, FIRING, FAILED)).all()
    assert not any(samples[name][5:].any() for name in ("control_A", "control_T", "thruster_A", "thruster_T"))
    assert (aux[5:, 0] == failure).all() and not aux[:5, 0].any()
    assert detail is None or (aux[5:, 1] == detail).all()


@pytest.mark.parametrize("live", [False, True])
def test_an_fmu_that_never_returns_is_left_behind(build, live):
    part = build(2, {"fail": 4, "fail_time": 3 * PERIOD}, live=live, patience_s=1.0, deadline_ms=1000.0 if live else 0.05)
    samples, aux = flown(part, *course(6))
    assert aux[:, 0].tolist() == [0, 0, 0, LATE, LATE, LATE] and samples["control_status"][3:].tolist() == [FAILED] * 3


@pytest.mark.parametrize(("number", "reported"), [(2, "SIGSEGV"), (3, "initialisation fails"), (6, "exit")])
def test_an_fmu_that_fails_before_the_run_is_refused(build, number, reported):
    with pytest.raises(ValueError, match=f"^file: .*{reported}.*controller2.fmu.*limit"):
        build(2, {"fail": number, "fail_time": -1.0})


def test_its_process_ends_with_the_part(build):
    before = set(children(os.getpid()))
    part = build()
    (keeper,) = set(children(os.getpid())) - before
    (pid,) = children(keeper)
    folders = set(Path("/proc", str(pid), "maps").read_text().split())
    (library,) = [Path(word) for word in folders if word.endswith("controller.so")]
    flown(part, *course(3))
    del part
    wait_for_end(keeper)
    wait_for_end(pid)
    assert not library.exists()


def test_its_process_ends_with_a_server_that_is_killed(tmp_path):
    """Even one that hangs in the FMU."""
    made = factory.keys(tmp_path, 2, {"fail": 4, "fail_time": 0.0})
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
import numpy as np
from rt_kernels.control.fmu.part import Fmu
from rt_kernels.layout import SAMPLE_DTYPE
part = Fmu(period_s=1e-3, folders=[], live=False, patience_s=600.0, **{made!r})
sample = np.zeros(1, SAMPLE_DTYPE)
sample["periods"] = 1
print("ready", flush=True)
part.step(sample)
"""
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        (keeper,) = children(server.pid)
        (pid,) = children(keeper)
        assert Path(f"/proc/{pid}").exists()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    wait_for_end(keeper)
    wait_for_end(pid)
