"""Wrong force sensors in the shipped docking, held against its own prediction: the true load stays within 1.2 of the predicted peak."""

import numpy as np
import pytest

from hil_server.config import SHIPPED, load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.log.format import LogError
from hil_server.predict.course import FORCES, course, held_against, together
from hil_server.predict.prediction import predict
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

KEYS = (*QUICK, "test.duration_max_s=20.0")


@pytest.fixture(scope="module")
def foreseen():
    """(keys of [safety] that the whole run gives, peak of its force in N, time of its first contact in s)."""
    config = load_test(None, list(KEYS))
    records = run_line(config=config)
    assert not fault_names(records[-1]["faults"]) & STOPPING
    context = assembly.base_context(config)
    found = course(records, float(context["start"].X_TA[0]), context["period_s"])
    assert found["predicted_force_n"] == pytest.approx(np.linalg.norm(records["F_T"][records["motion"] == 2, :3], axis=1).max(), abs=1e-2)
    return [f"safety.{key}={value}" for key, value in found.items()], found["predicted_force_n"], float(records["first_contact_time"][-1])


def flown(foreseen, fault, index, value, at_s):
    """Faults of the run with the injected sensor, and its greatest true force until the trip: what the sensor would have shown."""
    injected = f"stand.virtual.faults=[{{fault='{fault}', at_s={at_s}, index={index}, value={value}}}]"
    test = assembly.simulation(load_test(None, [*KEYS, *foreseen[0], injected]))
    plant = next(port for port in test.ports if hasattr(port, "plant")).plant
    rest = plant.state()["F_S"][:3]
    test.line.clock.pause_every(5, test.line.sample)
    greatest, over = 0.0, False
    while not over:
        test.block.heartbeat()
        test.line.run()
        test.block.drain(4096)
        greatest = max(greatest, float(np.linalg.norm(plant.state()["F_S"][:3] - rest)))
        over = not test.line.clock.paused or bool(fault_names(test.line.sample[0]["faults"]) & STOPPING)
    return fault_names(test.line.sample[0]["faults"]) & STOPPING, greatest


def test_the_run_that_was_predicted_is_quiet(foreseen):
    assert not fault_names(run_line((*KEYS, *foreseen[0]))[-1]["faults"]) & STOPPING


def test_the_contact_that_is_played_for_arming_is_not_that_of_the_course(foreseen):
    configs = [load_test(None, [*KEYS, *more]) for more in ((), foreseen[0])]
    told = [predict(config, assembly.simulation(config)).verdict() for config in configs]
    assert told[0] == told[1] and "trips" not in told[0]


@pytest.mark.parametrize(("fault", "index", "value", "after_contact_s", "stop"), [
    ("sensor_frozen", 0, 0.0, None, "sensor_frozen"),
    ("sensor_frozen", 0, 0.0, 0.05, "sensor_frozen"),
    ("sensor_gain", 0, 0.1, None, "contact_without_force"),
    ("sensor_gain", 0, 0.5, None, "contact_without_force"),
    ("sensor_gain", 0, 0.7, None, "contact_without_force"),
    ("sensor_gain", 0, 3.0, None, None),
    ("sensor_gain", 0, 0.1, 0.9, "contact_without_force"),      # captured, before the shock absorber's part of the impact
    ("sensor_gain", 0, 0.1, 1.3, "contact_without_force"),      # behind its peak: only what goes aside shows it
    ("sensor_drift", 0, 20.0, None, "tare_wrong"),
    ("sensor_exchanged", 0, 0.0, None, "tare_wrong"),
    ("transducer_offset", 2, 0.1, None, "leg_jump"),
    ("transducer_offset", 2, 0.02, 0.05, "leg_jump"),
])  # fmt: skip
def test_a_wrong_sensor_trips_before_the_load_does(foreseen, fault, index, value, after_contact_s, stop):
    _, peak, contact_s = foreseen
    at_s = 0.3 if after_contact_s is None else round(contact_s + after_contact_s, 3)
    stops, greatest = flown(foreseen, fault, index, value, at_s)
    assert stops and (stop is None or stop in stops)
    assert greatest <= 1.2 * peak


def test_drives_that_say_their_force_show_a_wrong_sensor_without_a_prediction():
    """Electric legs: what a sensor with a tenth of its gain hides exceeds what friction may hide."""
    electric = (*KEYS, f"test.stand={SHIPPED}/stands/electric_stand.toml")
    assert not fault_names(run_line(electric)[-1]["faults"]) & STOPPING
    stops, _ = flown(([*electric[len(KEYS):]], 0.0, 0.0), "sensor_gain", 0, 0.1, 0.3)
    assert stops == {"leg_forces_differ"}


def test_a_run_takes_the_course_of_its_prediction_and_its_own_keys_only_where_they_are_stricter(tmp_path):
    from hil_server.run.session import Options, simulate

    log = simulate(load_test(None, list(KEYS)), Options(out=str(tmp_path), quiet=True, report=False))["log"]
    held = held_against(load_test(None, list(KEYS)), [log]).safety
    assert len(held["course_force_n"]) > 10
    stricter = [f"safety.predicted_force_n={0.5 * held['predicted_force_n']}", f"safety.course_step_m={held['course_step_m']}",
                f"safety.course_aside_m={[0.9 * way for way in held['course_aside_m']]}",
                *(f"safety.{key}={[1.1 * force for force in held[key]]}" for key in FORCES)]  # fmt: skip
    config = load_test(None, [*KEYS, *stricter])
    held = held_against(config, [log])
    assert held.safety == config.safety
    assert assembly.part_of(held, "safety", assembly.simulation(held).context)
    with pytest.raises(LogError):
        held_against(load_test(None), [tmp_path / "none.mcap"])
    for wider in ("predicted_force_n=1e7", "captured_force_n=[0.0]", "course_aside_m=[9.0]", "course_force_n=[0.0]", "course_step_m=1e-5"):
        with pytest.raises(ConfigurationError, match=rf"safety.{wider.split('=')[0]}: wider than the prediction, value .*; omit it"):
            held_against(load_test(None, [*KEYS, f"safety.{wider}"]), [log])


def test_several_predictions_ask_for_the_least_and_allow_the_greatest():
    coarse = {"course_step_m": 0.02, "course_force_n": [10.0, 30.0], "predicted_force_n": 40.0}
    fine = {"course_step_m": 0.01, "course_force_n": [0.0, 20.0, 25.0, 28.0, 50.0, 60.0], "predicted_force_n": 70.0}
    assert together([fine]) == fine and together([]) == {}
    both = {"course_step_m": 0.02, "course_force_n": [0.0, 25.0, 30.0], "predicted_force_n": 70.0}
    assert together([coarse, fine]) == together([fine, coarse]) == both
    # one that has no contact takes nothing from the greatest force, and lets no depth have one
    assert together([fine, {}]) == {"predicted_force_n": 70.0}
    # steps that are no multiples of each other: a place takes every place that it overlaps
    odd = {"course_step_m": 0.015, "course_force_n": [5.0, 6.0, 90.0], "predicted_force_n": 1.0}
    assert together([coarse, odd])["course_force_n"] == [5.0, 6.0, 30.0]
    # of the ways aside the widest, of the pull the least; what one of them lacks is not judged
    coarse |= {"course_aside_m": [0.3, 0.1], "pulled_force_n": [5.0, 50.0], "captured_force_n": [1.0]}
    fine |= {"course_aside_m": [0.1, 0.2, 0.3], "pulled_force_n": [8.0, 6.0, 7.0, 90.0]}
    assert together([coarse, fine]) == both | {"course_aside_m": [0.3, 0.3], "pulled_force_n": [5.0, 7.0]}


def test_a_depth_that_a_thinned_prediction_skips_is_as_wide_as_its_neighbours():
    records = np.zeros(3, SAMPLE_DTYPE)
    records["motion"], records["X_TA_measured"][:, 0], records["F_T"][:, 0] = CODES["motion"]["free"], [0.0, 0.003, 0.0301], 10.0
    records["X_TA_measured"][:, 1] = [0.0, 0.004, 0.002]
    assert set(course(records, -1e-6, 0.01)["course_aside_m"]) == {0.004}
    records["operator_rate"][1, 0] = 0.01
    assert "course_aside_m" not in course(records, -1e-6, 0.01)
