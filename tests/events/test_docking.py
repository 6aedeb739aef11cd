"""Events: every rule of the event detector with its threshold just below and just above, and in its order."""

import numpy as np
import pytest

from rt_kernels.codes import bit_names
from rt_kernels.events.docking import DockingEvents
from rt_kernels.layout import BITS, CODES
from tests.first_sample import first_sample

EVENT, SIGNAL, PHASE, MOTION = BITS["event"], BITS["mechanism_signal"], CODES["phase"], CODES["motion"]
PERIOD = 1e-3


class Run:
    """A detector and its sample, tick by tick."""

    def __init__(self, **keys):
        self.part = DockingEvents(period_s=PERIOD, **{"contact_on_n": 20.0, "contact_off_n": 10.0, "contact_hold_s": 0.0045} | keys)
        self.s = first_sample(phase=PHASE["contact"])

    def tick(self, force=(0.0, 0.0, 0.0), signals=(), moment=(1e3, 1e3, 1e3), **fields):
        self.s["F_T"][0] = [*force, *moment]  # a moment is no contact force
        self.s["signal_discrete"] = sum(SIGNAL[name] for name in signals)
        self.s["time_ns"] += 1_000_000
        for name, value in fields.items():
            self.s[name] = value
        self.part.step(self.s)
        return set(bit_names("event", self.s["events"][0]))

    def state(self):
        return set(bit_names("mechanism_signal", self.s["mechanism_state"][0]))


@pytest.mark.parametrize("direction", [(1, 0, 0), (0, -1, 0), (0, 0, 1), (0.6, 0.8, 0), (2 / 3, -2 / 3, 1 / 3)])
def test_contact_opens_at_its_force_in_any_direction(direction):
    run, n = Run(), np.array(direction)
    assert run.tick(19.999 * n) == set() and run.s["contact"][0] == 0
    assert run.tick(20.001 * n) == {"contact_begin", "first_contact"} and run.s["contact"][0] == 1
    assert run.s["first_contact_time"][0] == pytest.approx(0.002)
    assert run.tick(20.001 * n) == set()


def test_contact_ends_below_its_force_and_after_its_time():
    run = Run()
    run.tick((30, 0, 0))
    for _ in range(20):
        assert run.tick((10.001, 0, 0)) == set()  # not below contact_off_n: it continues
    for _ in range(4):
        assert run.tick((9.999, 0, 0)) == set()
    run.tick((10.001, 0, 0))  # the time starts again
    for _ in range(4):
        assert run.tick((9.999, 0, 0)) == set() and run.s["contact"][0] == 1
    assert run.tick((9.999, 0, 0)) == {"contact_end"} and run.s["contact"][0] == 0
    assert run.tick((25, 0, 0)) == {"contact_begin"}  # a second contact is not a first one
    assert run.s["first_contact_time"][0] == pytest.approx(0.001)


def test_time_in_contact_and_periods_that_were_missed():
    run = Run()
    run.tick((30, 0, 0))
    assert run.s["contact_time"][0] == pytest.approx(1e-3)
    run.tick((30, 0, 0), periods=3)
    assert run.s["contact_time"][0] == pytest.approx(4e-3)
    assert run.tick((1, 0, 0), periods=5) == {"contact_end"}  # 5 ms below at once
    assert run.s["contact_time"][0] == 0.0


def test_signals_are_latched_and_each_is_an_event_once():
    run = Run()
    for signals, events in (((), set()), (("DK1",), {"first_contact"}), ((), set()), (("DK1",), set()), (("latch2",), {"latch_fired"}),
                            (("latch2",), set()), (("latch1", "latch4"), {"latch_fired"}), (("latch3",), {"latch_fired"}),
                            (("DSG",), {"capture"}), (("DSG",), set()), (("DK2",), {"bottom", "start_of_docking"}), (("DK2",), set()),
                            (("pushers",), set()), (("planes_together",), {"complete"}),
                            (("planes_together",), set())):  # fmt: skip
        assert run.tick(signals=signals) == events
    assert run.state() == {"DK1", "DSG", "DK2", "latch1", "latch2", "latch3", "latch4", "pushers", "planes_together"}
    assert run.s["capture_time"][0] == pytest.approx(0.009) and run.s["first_contact_time"][0] == pytest.approx(0.002)
    assert run.s["contact"][0] == 0


def test_start_of_docking_wants_capture_and_bottom_in_either_order():
    run = Run()
    assert run.tick(signals=("DK2",)) == {"bottom"}
    assert run.tick(signals=("DSG",)) == {"capture", "start_of_docking"}


def test_first_contact_by_force_sets_the_sensor_that_is_not_there():
    run = Run()
    run.tick((30, 0, 0))
    assert run.state() == {"DK1"}
    run = Run()
    run.tick(signals=("drive_running",))
    assert run.state() == {"drive_running"} and run.s["first_contact_time"][0] == -1.0


@pytest.mark.parametrize("phase", sorted(PHASE))
def test_without_every_phase_only_the_closed_loop_has_contacts(phase):
    """Outside it the wrench is recorded, but no contact of the test; a hold counts while the model moves freely."""
    for motion in ("follow_profile", "free"):
        run = Run(every_phase=False)
        events = run.tick((30, 0, 0), ("DSG",), phase=PHASE[phase], motion=MOTION[motion])
        inside = phase in ("closing", "contact", "latched") or (phase == "hold" and motion == "free")
        assert events == ({"contact_begin", "first_contact", "capture"} if inside else set())
        assert run.s["contact"][0] == inside and run.state() == ({"DSG", "DK1"} if inside else set())


@pytest.mark.parametrize("phase", sorted(PHASE))
def test_a_loaded_interface_is_reported_in_every_phase(phase):
    """Before the test it is no first contact of it; signals of the mechanism count in the loop only."""
    for motion in ("follow_profile", "free", "freeze"):
        run = Run()
        events = run.tick((30, 0, 0), ("DSG",), phase=PHASE[phase], motion=MOTION[motion])
        inside = phase in ("closing", "contact", "latched") or (phase == "hold" and motion == "free")
        before = phase in ("idle", "position", "approach")
        assert events == {"contact_begin"} | (set() if before else {"first_contact"}) | ({"capture"} if inside else set())
        assert run.s["contact"][0] == 1 and run.s["contact_time"][0] == PERIOD
        assert run.s["first_contact_time"][0] == (-1.0 if before else pytest.approx(0.001))


def test_a_contact_continues_into_the_retreat():
    run = Run()
    run.tick((30, 0, 0))
    assert run.tick((30, 0, 0), phase=PHASE["retreat"]) == set() and run.s["contact"][0] == 1
    assert run.s["contact_time"][0] == pytest.approx(2 * PERIOD)
    for _ in range(5):
        events = run.tick((5, 0, 0))
    assert events == {"contact_end"} and run.s["contact"][0] == 0


def test_leaving_the_loop_ends_the_contact_without_every_phase():
    run = Run(every_phase=False)
    run.tick((30, 0, 0))
    assert run.tick((30, 0, 0), phase=PHASE["retreat"]) == set() and run.s["contact"][0] == 0 and run.s["contact_time"][0] == 0.0
    assert run.state() == {"DK1"}


def test_commands_and_silent_hand_controllers_are_events():
    run = Run()
    assert run.tick(command_code=3) == {"command"}
    assert run.tick(command_code=0, hand_status=[0, 2]) == {"hand_controller_stale"}
    assert run.tick(hand_status=[2, 0]) == {"hand_controller_stale"}
    assert run.tick(hand_status=[1, 4]) == set()


def test_thresholds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match=r"contact_off_n: 30.0 N must not be above contact_on_n, 20.0 N"):
        DockingEvents(period_s=PERIOD, contact_on_n=20.0, contact_off_n=30.0)
