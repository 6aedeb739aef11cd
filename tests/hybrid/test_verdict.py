"""The verdict is the line: what `predict` says before a run against the restitution that a run of the same test has."""

from dataclasses import replace

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import checks, load_test
from hil_server.predict.prediction import predict
from rt_kernels.compensation.smith import SmithPredictor
from rt_kernels.parameters import Parameter
from tests.hybrid.bounce import PROGRAMME, overrides, rebound_of, run, settings, stiffness

NAMES = sorted(registry.PARTS["compensation"])
THRESHOLDS = {"events.contact_on_n": 12.0, "events.contact_off_n": 8.0}


class ShareOfAPredictor(SmithPredictor):
    """A compensator that this project does not know: another name, other keys."""

    PARAMETERS = (Parameter("share", "float", "-", "of the delay that is predicted over", low=0.0, high=1.0),)

    def __init__(self, *, share, **context):
        super().__init__(lead_factor=share, **context)


@pytest.fixture
def outside(monkeypatch):
    """The part above, registered as the entry point of another distribution would."""
    monkeypatch.setattr(registry, "parts_from_outside", lambda: {"compensation": {"somebody.share": f"{__name__}:ShareOfAPredictor"}})
    checks.part_table.cache_clear()
    yield "somebody.share"
    checks.part_table.cache_clear()


def table(name, f, drive="spec", **keys):
    out = settings(f, drive, name, **THRESHOLDS, **keys)
    if name == "phased":
        out |= {"compensation.free.part": "phase_lead", "compensation.contact.part": "lead_and_pose_force",
                "compensation.contact.stiffness_n_per_m": float(stiffness(f))}  # fmt: skip
    return out


def both(keys):
    """(predicted, run): restitution that the prediction has for the only mode of the contact, and that of the run."""
    (mode,) = predict(load_test(PROGRAMME, overrides(keys))).modes
    assert mode.refused == ""
    return mode.restitution, rebound_of(run(keys)[1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("f", [1, 3, 10])
def test_prediction_is_what_the_line_does(name, f):
    predicted, found = both(table(name, f))
    assert predicted == pytest.approx(found, abs=0.01)


@pytest.mark.parametrize("f", [1, 3, 10])
def test_prediction_of_a_compensator_from_outside(f, outside):
    """Half of the delay: nothing in the analysis knows it, and it is not taken for `none`."""
    predicted, found = both(table(outside, f) | {"compensation.share": 0.5})
    assert predicted == pytest.approx(found, abs=0.01)
    assert abs(predicted - both(table("none", f))[0]) > 0.05


@pytest.mark.parametrize(("name", "keys"), [
    ("none", {"zeta": 0.1}), ("energy_cap", {"zeta": 0.1}), ("phase_lead", {"compensation.lead_factor": 0.9}),
    ("lead_and_pose_force", {"compensation.stiffness_factor": 0.8}), ("none", {"stand.virtual.measured_leg_delay_ticks": 1}),
    ("phase_lead", {"stand.virtual.setpoint_delay_ticks": 1, "stand.virtual.sensor_delay_s": 0.0031}),
    ("polynomial", {"wrench.filter_order": 2, "wrench.filter_corner_hz": 80.0}), ("smith", {"test.rate_hz": 2000.0}),
    ("phase_lead", {"dynamics.integrator": "constant_acceleration"}),
])  # fmt: skip
def test_prediction_of_what_else_a_line_may_have(name, keys):
    """Damping, wrong parameters, late bus, sensor delay, filter, another rate, another integrator."""
    predicted, found = both(table(name, 3, **keys))
    assert predicted == pytest.approx(found, abs=0.01)


def test_energy_cap_is_played_and_not_taken_for_none():
    predicted, found = both(table("energy_cap", 3))
    assert predicted == pytest.approx(1.0, abs=0.01) and found == pytest.approx(1.0, abs=0.01)


def test_oblique_mode_is_played_in_its_own_direction():
    """A compensator with a stiffness matrix is right for the direction that it was given, and only for that."""
    normal, point = [1.0, 0.25, -0.15], [0.0, 0.08, 0.05]
    n = np.array(normal) / np.linalg.norm(normal)
    u = np.concatenate([n, np.cross(point, n)])
    keys = table("pose_referenced_force", 3, "ideal") | {"mechanism.normal": normal, "mechanism.contact_point_m": point}
    es = []
    for screw in (u, np.array([1.0, 0, 0, 0, 0, 0])):
        rows = [[float(x) for x in row] for row in stiffness(3) * np.outer(screw, screw)]
        es.append(predict(load_test(PROGRAMME, overrides(keys | {"compensation.stiffness_rows": rows}))).modes[-1].restitution)
    assert es[0] == pytest.approx(1.0, abs=0.01) and abs(es[1] - es[0]) > 0.015


def test_what_cannot_be_played_is_refused_with_the_reason(monkeypatch):
    """A line that trips on the way says so; no figure, no `none`, outside of the band."""
    found = predict(load_test(PROGRAMME, overrides(table("phase_lead", 3) | {"safety.condition_max": 1.5})))
    assert not found.within and "near_singular" in found.modes[0].refused and found.as_dict()["modes"][0]["restitution"] is None
    assert "cannot be predicted" in found.verdict()


def test_the_verdict_says_of_how_many_modes_it_names_the_worst():
    found = predict(load_test(PROGRAMME, overrides(table("none", 3))))
    (bad,) = found.modes
    assert not found.within and "the worst of" not in found.verdict()
    assert replace(found, modes=(bad, bad)).verdict().endswith(", the worst of 2 such modes")


@pytest.mark.parametrize("programme", ["docking", "berthing_pins"])
def test_every_mode_of_a_shipped_contact_is_played(programme):
    found = predict(load_test(f"stand_configs/programmes/{programme}.toml"))
    assert found.modes and all(np.isfinite(m.restitution) for m in found.modes if m.judged)


def test_stand_without_a_virtual_one_is_predicted_from_its_drive_model():
    """Hardware: nothing to simulate, but identified drives. The same figure as from a virtual stand of these drives."""
    from hil_server.config import TestConfig
    from hil_server.errors import ConfigurationError

    config = load_test(PROGRAMME, ["compensation.part=phase_lead", "stand.virtual.drive_frequency_hz=9.0"])
    keys = config.stand["virtual"]
    stand = {key: value for key, value in config.stand.items() if key != "virtual"}
    with pytest.raises(ConfigurationError, match="identify"):
        predict(TestConfig({**config.document, "stand": stand}))
    stand["drive_model"] = {"frequency_hz": 9.0, "damping": keys["drive_damping"], "delay_s": keys["drive_delay_s"]}
    (bare,) = predict(TestConfig({**config.document, "stand": stand})).modes
    assert bare.restitution == pytest.approx(predict(config).modes[0].restitution, abs=1e-6) and not bare.refused


@pytest.mark.parametrize(("compensator", "keys", "name", "fault"), [
    ("phase_lead", {"stand.limits.force_limit_n": [90.0] * 3}, "force on the load cell", "force_limit"),
    ("none", {"safety.energy_trip": 0.2}, "energy gain", "energy_gain"),
])  # fmt: skip
def test_contact_that_would_trip_is_refused_before_it_does(compensator, keys, name, fault):
    """113 N at 3 Hz and 20 mm/s: prediction and run find the same limit; a little further away the prediction only says how near it is."""
    from rt_kernels.layout import FAULTS

    found = predict(load_test(PROGRAMME, overrides(table(compensator, 3, **keys))))
    assert not found.within and "would reach a limit" in found.verdict() and name in found.verdict()
    bit = next(bit for fault_name, bit, *_ in FAULTS if fault_name == fault)
    assert run(table(compensator, 3, **keys))[1]["faults"][-1] & bit
    wider = predict(load_test(PROGRAMME, overrides(table("phase_lead", 3, **{"stand.limits.force_limit_n": [130.0] * 3}))))
    nearest = wider.margins[0]
    assert wider.within and nearest.name == "force on the load cell" and nearest.share == pytest.approx(113.0 / 130.0, rel=0.01)
    assert wider.as_dict()["margins"][0]["name"] == "force on the load cell"
