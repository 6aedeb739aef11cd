"""Parameters that change while a run continues: the value's way, what is refused, snapshots, and that every declared one is really read."""

import numpy as np
import pytest
from scipy.signal import lfilter

from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.parameters import Parameter, tuned_parameter
from rt_kernels.stages import STAGE_ROLES

TUNE = CODES["command"]["tune"]
ANSWER = CODES["tune_answer"]


@pytest.fixture
def test():
    return assembly.simulation(load_test(None, ["compensation.part='phase_lead'"]))


def number(test, name):
    return [one.name for one in test.tunables].index(name)


def give(line, number, value, phase="contact", periods=1):
    """One tick with the command in its sample; code 0 for number None. Returns the sample after it."""
    sample = line.sample
    sample["command_code"] = 0 if number is None else TUNE
    sample["command_arg"][0, :2] = (0 if number is None else number), value
    sample["phase"], sample["periods"] = CODES["phase"][phase], periods
    line.sample = sample
    line.tick_once()
    return line.sample[0]


def way(line, k, value, ticks, phase="contact"):
    """The value in force from the tick of the command on."""
    found = [give(line, k, value, phase)["tuned"][k]]
    while len(found) < ticks:
        found.append(give(line, None, 0.0, phase)["tuned"][k])
    return np.array(found)


def moving(line, k):
    """Whether a value is on its way, as the snapshot has it behind the five rows of 24 numbers."""
    return np.frombuffer(line.snapshot()["tuning"][5 * 24 * 8 :], np.int32)[k]


def test_a_value_goes_up_as_it_goes_down(test):
    k = number(test, "compensation.lead_factor")
    down, up = way(test.line, k, 0.8, 40), way(assembly.simulation(test.config).line, k, 1.2, 40)
    np.testing.assert_allclose(up - 1.0, 1.0 - down, rtol=0.0, atol=1e-14)


def test_the_first_of_the_list_is_changed_by_its_number(test):
    one = test.tunables[0]
    phase = next(iter(one.phases), "contact")
    assert give(test.line, 0, one.low, phase)["tune_answer"] == ANSWER["taken"]


def test_a_tick_of_several_periods_counts_as_so_many(test):
    k = number(test, "compensation.lead_factor")
    dt = 3e-9 * test.period_ns
    found = give(test.line, k, 0.8, periods=3)["tuned"][k]
    assert found == pytest.approx(1.0 - test.tunables[k].rate_per_s * dt * (dt / (0.02 + dt)) ** 3, abs=1e-14)


def test_a_value_goes_by_a_smoothed_ramp_from_the_tick_of_its_command_on(test):
    k = number(test, "compensation.lead_factor")
    one = test.tunables[k]
    period = 1e-9 * test.period_ns
    assert not moving(test.line, k)
    found = way(test.line, k, 0.8, 30)
    assert moving(test.line, k)
    found = np.append(found, [give(test.line, None, 0.0)["tuned"][k] for _ in range(1470)])
    assert not moving(test.line, k)
    # independently: the ramp through three first-order low-passes of 20 ms, by scipy
    ramp = np.maximum(1.0 - one.rate_per_s * period * np.arange(1, 1501), 0.8)
    keep = period / (0.02 + period)
    expected = ramp - 1.0
    for _ in range(3):
        expected = lfilter([keep], [1.0, keep - 1.0], expected)
    np.testing.assert_allclose(found, 1.0 + expected, rtol=0.0, atol=1e-11)
    assert found[0] < 1.0, "the first tick already has another value"
    assert found[-1] == 0.8 and np.all(np.diff(found) <= 0.0) and found.min() == 0.8, "there, without overshoot"
    assert np.abs(np.diff(found)).max() <= one.rate_per_s * period * (1.0 + 1e-9)
    assert test.line.sample[0]["lead"][1] == 0.8 * way_back(test)


def way_back(test):
    """l1 of the same part as configured."""
    fresh = assembly.simulation(test.config)
    return give(fresh.line, None, 0.0)["lead"][1]


@pytest.mark.parametrize(
    ("name", "value", "phase", "answer"),
    [
        ("compensation.lead_factor", 0.5, "contact", "taken"),
        ("compensation.lead_factor", 2.5, "contact", "out_of_limits"),
        ("compensation.lead_factor", np.nan, "contact", "out_of_limits"),
        ("events.contact_on_n", 25.0, "contact", "not_in_this_phase"),
        ("events.contact_on_n", 25.0, "approach", "taken"),
        (None, 1.0, "contact", "unknown"),
    ],
)
def test_the_loop_itself_refuses(test, name, value, phase, answer):
    k = 23 if name is None else number(test, name)
    configured = [one.value for one in test.tunables]
    after = give(test.line, k, value, phase)
    assert after["tune_answer"] == ANSWER[answer]
    later = give(test.line, None, 0.0, phase)
    assert later["tune_answer"] == ANSWER["none"]
    same = list(later["tuned"][: len(configured)]) == configured
    assert same == (answer != "taken") and not later["tuned"][len(configured) :].any()


def test_a_value_on_its_way_stands_outside_of_its_phases(test):
    k = number(test, "events.contact_on_n")
    way(test.line, k, 30.0, 50, "approach")
    before = test.line.sample[0]["tuned"][k]
    assert 20.0 < before < 30.0
    for _ in range(20):
        assert give(test.line, None, 0.0, "contact")["tuned"][k] == before
    assert give(test.line, None, 0.0, "approach")["tuned"][k] > before


def test_a_restored_line_continues_as_the_uninterrupted_one(test):
    k = number(test, "compensation.lead_factor")
    way(test.line, k, 0.7, 60)
    kept = test.line.snapshot()
    on = [give(test.line, None, 0.0).tobytes() for _ in range(40)]
    other = assembly.simulation(test.config)
    other.line.restore(kept)
    assert [give(other.line, None, 0.0).tobytes() for _ in range(40)] == on
    spoilt = np.frombuffer(kept["tuning"]).copy()
    spoilt[k] = 3.0
    with pytest.raises(ValueError, match="compensation.lead_factor: 3 is not within 0 ... 2"):
        other.line.restore(kept | {"tuning": spoilt.tobytes()})


def test_hysteresis_is_kept_whatever_is_changed(test):
    entries = {one.name: one for one in test.tunables}
    assert entries["events.contact_off_n"].high <= entries["events.contact_on_n"].low


def test_supervision_only_becomes_stricter(test):
    for one in test.tunables:
        if one.name.startswith("safety."):
            assert one.high == one.value


# the spacing of the polynomial's poses is a constant, made of the horizon where it is not given
@pytest.mark.parametrize("inner", ["part='phase_lead'", "part='polynomial', spacing_ticks=10"])
def test_a_part_inside_another_is_reached_by_name(inner):
    keys = ["compensation.part='phased'", f"compensation.free={{{inner}}}",
            "compensation.contact={part='lead_and_pose_force', stiffness_n_per_m=1e5}"]  # fmt: skip
    test = assembly.simulation(load_test(None, keys))
    k = number(test, "compensation.free.lead_factor")
    plain = assembly.simulation(load_test(None, [*keys[:1], f"compensation.free={{{inner}, lead_factor=0.6}}", keys[2]]))
    way(test.line, k, 0.6, 3000, "approach")
    assert test.line.sample[0]["tuned"][k] == 0.6
    part, other = (t.line.stages["compensation"].fields()["free"] for t in (test, plain))
    wanted = ("lead",) if "phase_lead" in inner else ("keys", "c")
    assert {key: part[key] for key in wanted} == {key: other[key] for key in wanted}, "as if it had been configured so"
    assert {f"compensation.{x}" for x in ("blend_s", "hold_s", "contact.lead_factor", "contact.stiffness_factor")} <= {
        one.name for one in test.tunables
    }


def test_every_shipped_part_has_a_place_for_what_it_declares_tunable():
    """A declaration without a place would be a promise that no loop keeps."""
    sources = {}
    for role in STAGE_ROLES:
        for name in registry.parts(role):
            part = registry.part(role, name)
            for p in part.PARAMETERS:
                if p.tunable is not None:
                    sources.setdefault(f"{role}.{name}", []).append(p.key)
    built = {}
    for keys in (
        ["compensation.part='phase_lead'"],
        ["compensation.part='polynomial'"],
        ["compensation.part='energy_cap'"],
        ["compensation.part='adaptive_time_series'"],
        ["compensation.part='pose_referenced_force'", "compensation.stiffness_n_per_m=1e5"],
        ["compensation.part='lead_and_pose_force'", "compensation.stiffness_n_per_m=1e5"],
        ["compensation.part='phased'", "compensation.contact={part='none'}"],
        ["guidance.part='berthing'"],
    ):
        try:
            config = load_test(None, keys)
        except Exception:  # keys of the other guidance do not fit: built by itself below
            continue
        test = assembly.simulation(config)
        for role, part in test.line.stages.items():
            built.setdefault(f"{role}.{config.part(role)[0]}", set()).update(one.name for one in part.tunables)
    only_hydraulic = {"leg_offset_max_m", "leg_offset_factor"}
    for part, keys in sources.items():
        if part in built:
            assert set(keys) - only_hydraulic <= built[part], part
    assert {"compensation.phased", "events.docking", "safety.limits", "guidance.docking"} <= set(built)


def test_a_declaration_is_checked():
    p = Parameter("x", "float", "-", "", 1.0, low=0.0, high=2.0)
    with pytest.raises(ValueError, match="x: not declared"):
        tuned_parameter((p,), "x", 1.0, 0, None, None, 1.0)
    assert SAMPLE_DTYPE["tuned"].shape == (24,)
