"""The plant of the virtual stand and its mechanism: room for its channels, and a model that leaves its valid range."""

import numpy as np
import pytest

from drivers.simulated.plant import PlantPart
from hil_server import registry
from hil_server.config import SHIPPED, load_test
from hil_server.line import assembly
from rt_kernels.layout import BITS, CODES
from rt_kernels.parameters import Aux
from tests.system.line_runs import QUICK, fault_names, run_line

OUT_OF_RANGE = BITS["sensor_status"]["out_of_range"]


def plant_of(mechanism):
    config = load_test(None, [])
    context = assembly.base_context(config)
    return PlantPart(platform=context["platform"], mounting=context["mounting"], mechanism=mechanism)


def test_every_channel_that_a_mechanism_declares_has_its_place():
    """The room is made from the declaration, whatever its length."""
    probe_cone = registry.part("mechanisms", "probe_cone")

    class Talkative(probe_cone):
        AUX = (*probe_cone.AUX, Aux("more", "1", "of a unit with many channels", 5000))

    plant = plant_of(Talkative())
    assert plant.mechanism_aux.shape == (5000 + len(probe_cone.AUX),)
    plant.advance(20)
    kept, alone = plant.mechanism_aux.copy(), np.zeros(len(probe_cone.AUX))
    unit = probe_cone()
    place = [a.name for a in probe_cone.AUX].index("probe.time")
    unit.advance(plant.state()["X_TA"], np.zeros(6), plant.step_s, aux=alone)
    assert kept[place] == pytest.approx(20 * alone[place]) and not kept[len(alone) :].any()


def test_a_mechanism_without_channels():
    assert plant_of(registry.part("mechanisms", "bumper")(stiffness_n_per_m=1e4)).mechanism_aux.shape == (1,)


@pytest.mark.parametrize("stand", ["docking_stand", "ideal_stand"])
def test_a_mechanism_out_of_its_range_trips_by_name(stand):
    """A contact law declared valid to 0.2 mm, in a docking that presses 0.7 mm deep: named, and the platform stopped."""
    records = run_line((*QUICK, f"test.stand={SHIPPED}/stands/{stand}.toml", "mechanism.penetration_max_m=0.0002"))
    last = records[-1]
    assert "mechanism_invalid" in fault_names(last["faults"]) and last["end_cause"] == CODES["end_cause"]["tripped"]
    first = int(np.argmax((records["signal_status"] & OUT_OF_RANGE) != 0))
    assert records["trip_tick"][-1] == records["tick"][first]
    # as shipped it stays inside
    assert not (run_line((*QUICK, f"test.stand={SHIPPED}/stands/{stand}.toml"))["signal_status"] & OUT_OF_RANGE).any()


def test_one_bad_step_between_two_ticks_is_not_lost():
    """The range is left in the first of twenty steps that the plant makes until the server looks again."""
    unit = registry.part("mechanisms", "probe_cone")()
    plant = plant_of(unit)
    state = unit.coordinates
    state[4] = 0.21  # torsion: its table ends at 0.2 rad, and the spring turns it back at once
    unit.set_state(state, np.r_[np.zeros(4), -100.0, 0.0, 0.0])
    plant.advance(20)
    assert plant.state()["status"] & 4
    assert not unit.advance(plant.state()["X_TA"], np.zeros(6), 1e-7)["status"]
