"""A trip in the middle of a docking, its cause cleared, and the run led home: in process for many faults, over the wire for one. The
whole matrix, live: `tools/live_fault_matrix.py --recover`."""

import logging
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from drivers.simulated.injections import BY_NAME, IN_PROCESS
from hil_server.config import load_test
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.recoveries import name_as_arguments, recovered, recoveries_of
from hil_server.run import recovery
from hil_server.run.recovery import LOOK_AT_ONCE, Recoverer
from hil_server.world.events import Event
from hil_server.world.flight import fly
from hil_server.world.hunter import NO_BUS
from hil_server.world.oracles import violations
from rt_kernels.codes import FAULT_MASKS
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, phases, run_line

COMMAND, STATE = CODES["command"], CODES["safety_state"]
WAITING = ("guidance.fault_s=0.1", "guidance.recover_s=20.0", "safety.recover_fresh_s=0.2", "safety.recover_limit_s=0.5",
           "guidance.finish_at_region_end=false")  # fmt: skip

# what these trip needs of the stand, and of the injection: a zero that is wrong trips before the loop is closed
CHAIN = {"emergency_stop": "emergency_stop", "guard_open": "guard", "chain_discrepant": "emergency_stop", "unit_fault": "hydraulic_unit"}
BEFORE_CLOSING = {"sensor_bias": 50.0, "sensor_drift": 500.0}  # N, N/s
# shows only while the platform moves, or before the loop is closed: the first recovery does not find it and takes the run home
NOT_AT_REST = {"leg_stuck", "leg_slow", *BEFORE_CLOSING}


def actions(fault, index, at_s):
    """(time, action): the fault, a recovery with it, one without it, and home."""
    injected = (float(BY_NAME[fault].number), float(index), BEFORE_CLOSING.get(fault, float(BY_NAME[fault].value or 0.0)))
    return [
        (at_s, lambda b: b.push_command(COMMAND["inject_fault"], injected)),
        (at_s + 1.0, lambda b: b.push_command(COMMAND["recover"], name_as_arguments("first"))),
        (at_s + 2.0, lambda b: b.push_command(COMMAND["clear_injection"])),
        (at_s + 2.5, lambda b: b.push_command(COMMAND["recover"], name_as_arguments("second"))),
        (at_s + 3.5, lambda b: b.push_command(COMMAND["park"])),
    ]


def inside_the_limits(records):
    """No frame beyond the limits of the legs."""
    rate = np.diff(records["leg_setpoint"], axis=0) / 1e-3
    assert np.abs(rate).max() <= 0.5 + 1e-9 and np.abs(np.diff(rate, axis=0)).max() / 1e-3 <= 10.0 + 1e-6


@pytest.mark.parametrize(("fault", "index", "at_s", "by"), [
    ("drive_disabled", 2, 0.6, "park"),         # on the way to the start pose: straight home
    ("sensor_silent", 0, 2.2, "retreat"),       # on the approach: away from the target first
    ("chain_tripped", 0, 3.6, "retreat"),       # in the closed loop, in contact
])  # fmt: skip
def test_run_that_tripped_goes_home_when_its_cause_is_cleared(fault, index, at_s, by):
    records = run_line((*QUICK, *WAITING), at=actions(fault, index, at_s))
    refused, done = recoveries_of(records)
    assert refused["outcome"] == "given_up" and BY_NAME[fault].fault in refused["standing"] and refused["by"] == "first"
    assert done["outcome"] == "recovered" and BY_NAME[fault].fault in done["cleared"] and done["by"] == "second"
    order = phases(records)
    assert order[order.index("fault") :] == ["fault", "hold", by, *(["park"] if by == "retreat" else []), "ended"]
    # the trip stays the verdict; nothing stands; it parked where it began
    last = records[-1]
    assert recovered(records) and last["end_cause"] == CODES["end_cause"]["tripped"]
    assert BY_NAME[fault].fault not in fault_names(last["faults"])
    np.testing.assert_allclose(last["X_TA_measured"][:3], records["X_TA_measured"][0][:3], atol=1e-3)
    inside_the_limits(records)
    # and none that moves before it is let go
    waits = (records["safety_state"] == STATE["recovering"]) | (records["safety_state"] == STATE["held"])
    achieved = records["measured_leg"][waits]
    assert np.abs(records["leg_setpoint"][waits] - achieved).max() < 0.02


TRIPS = [name for name in IN_PROCESS if BY_NAME[name].fault in STOPPING and "hydraulic" not in BY_NAME[name].stands]


@pytest.mark.parametrize("fault", TRIPS)
def test_every_fault_of_the_stand_in_process_that_trips_is_recovered_from(fault):
    chain = [f"stand.limits.{CHAIN[fault]}=true"] if fault in CHAIN else []
    at_s = 1.2 if fault in BEFORE_CLOSING else 2.2
    records = run_line((*QUICK, *WAITING, *chain), at=actions(fault, 2 if BY_NAME[fault].at == "drive" else 0, at_s))
    (done,) = (one for one in recoveries_of(records) if one["outcome"] == "recovered")
    assert BY_NAME[fault].fault in done["cleared"] and done["by"] == ("first" if fault in NOT_AT_REST else "second")
    assert recovered(records) and phases(records)[-4:] == ["hold", "retreat", "park", "ended"]
    inside_the_limits(records)


def test_a_drive_that_restarts_is_set_up_again_over_its_wire_and_the_run_parks(tmp_path):
    """It has lost its set-up: it gets it again beside the loop, is enabled, and the log replays."""
    config = load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=20"])
    events = [Event("inject", "drive_restart:2", 2.2), Event("command", "recover", 3.5), Event("command", "park", 5.5)]
    flight = fly(config, 1, tmp_path / "run", events)
    assert violations(flight, config) == [] and flight.summary["end"] == "tripped" and flight.summary["recovered"]
    records = read_log(flight.log).records
    assert phases(records)[-4:] == ["hold", "retreat", "park", "ended"] and "drive_not_enabled" in flight.summary["faults"]
    inside_the_limits(records)


# ----------------------------------------------------------------------------------------------- the devices' part beside the loop


class Records:
    """A run's records as its supervisor sees them: (safety state, command, faults) of each."""

    aux_count = 0

    def __init__(self):
        self._rows = np.zeros(0, record_dtype(0))

    @property
    def head(self):
        return len(self._rows)

    def add(self, *rows):
        new = np.zeros(len(rows), record_dtype(0))
        new["safety_state"], new["command_code"] = ([STATE[row[0]] for row in rows], [COMMAND[row[1]] for row in rows])
        new["faults"] = [FAULT_MASKS[row[2]] if row[2] else 0 for row in rows]
        new["command_arg"] = name_as_arguments("Ada")
        self._rows = np.concatenate([self._rows, new])

    def look(self, first, most):
        return first, self._rows[first : first + most].tobytes()


class Device:
    """One that is set up again: `recover` waits until it may continue. left_s: its time, of each recovery."""

    def __init__(self, error=None):
        self.recovered, self.may_end, self._error, self.left_s = 0, threading.Event(), error, []
        self.may_end.set()

    def recover(self, left_s):
        self.recovered += 1
        self.left_s.append(left_s)
        self.may_end.wait()
        if self._error:
            raise self._error


@pytest.fixture
def supervised(caplog):
    """Function (devices) → records, recoverer, and what was reported since the last call of the third."""
    caplog.set_level(logging.INFO)

    def make(*devices):
        records = Records()

        def reported():
            lines = [line.getMessage().strip() for line in caplog.records]
            caplog.clear()
            return lines

        return records, Recoverer(records, devices, 2.0), reported

    return make


HELD = ("held", "none", "force_limit")


def test_a_recovery_has_the_devices_set_up_once_and_is_told(supervised):
    device = Device()
    records, recoverer, reported = supervised(object(), device)
    records.add(("following", "none", ""), HELD)
    recoverer.look()
    assert reported() == [] and device.recovered == 0
    records.add(("recovering", "recover", "force_limit"), ("recovering", "none", "force_limit"))
    recoverer.look()
    recoverer.end()
    assert reported() == ["recovery asked for by Ada: force_limit"] and device.recovered == 1
    records.add(("recovering", "none", "force_limit"))
    recoverer.look()
    assert reported() == []
    records.add(("following", "none", ""), ("following", "none", ""))
    recoverer.look()
    assert reported() == ["recovered: the run is held; park returns the platform to its home position"] and device.recovered == 1


def test_a_recovery_that_is_given_up_says_what_stands_and_a_later_one_is_another(supervised):
    device = Device(OSError("no answer"))
    records, recoverer, reported = supervised(device)
    records.add(HELD, ("recovering", "recover", "force_limit"), ("recovering", "none", "force_limit"), HELD)
    recoverer.look()
    recoverer.end()
    assert sorted(line.partition(":")[0] for line in reported()) == ["Device", "not recovered", "recovery asked for by Ada"]
    records.add(("recovering", "recover", "force_limit"))
    recoverer.look()
    recoverer.end()
    assert device.recovered == 2


def test_a_recovery_that_begins_nothing_says_why(supervised):
    records, recoverer, reported = supervised(Device())
    records.add(("following", "none", ""), ("following", "recover", ""), ("decelerating", "recover", "force_limit"))
    recoverer.look()
    assert reported() == ["not recovered: nothing has tripped", "not recovered: the setpoints do not rest yet: ask again in a moment"]


def test_a_recovery_that_was_given_up_has_no_time_left_and_the_next_sets_all_devices_up_after_it(supervised):
    first, second = Device(ValueError("refused")), Device()
    first.may_end.clear()
    records, recoverer, reported = supervised(first, second)
    records.add(HELD, ("recovering", "recover", "force_limit"))
    recoverer.look()
    records.add(HELD, ("recovering", "recover", "force_limit"))
    recoverer.look()
    assert first.recovered == 1 and first.left_s[0]() <= 0.0
    first.may_end.set()
    recoverer.end()
    assert (first.recovered, second.recovered) == (2, 2) and reported().count("Device: refused") == 2
    other = Recoverer(records, [object()], 2.0)
    other.look()
    other.end()


def test_a_set_up_may_take_what_its_recovery_may_and_nothing_after_the_end(supervised, monkeypatch):
    now, seen, over = [100.0], [], threading.Event()
    monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def set_up(left_s):
        seen.append(left_s())
        now[0] += 1.5
        seen.append(left_s())
        over.set()
        seen.append(left_s)

    records, recoverer, _ = supervised(SimpleNamespace(recover=set_up))
    records.add(HELD, ("recovering", "recover", "force_limit"))
    recoverer.look()
    over.wait()
    recoverer.end()
    assert seen[:2] == [2.0, 0.5] and seen[2]() <= 0.0


def test_no_record_is_missed_however_many_came_and_none_is_seen_twice(supervised):
    records, recoverer, reported = supervised()
    records.add(*[("following", "none", "")] * (LOOK_AT_ONCE - 1), HELD, ("recovering", "recover", "force_limit"))
    recoverer.look()
    assert reported() == ["recovery asked for by Ada: force_limit"]
    recoverer.look()
    assert reported() == []
