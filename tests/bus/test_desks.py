"""Commands, desks and publisher by themselves: a socket that is a list, a clock that the test sets."""

import math
import re

import msgpack
import numpy as np
import pytest

from hil_server.bus.commands import ARGUMENTS, OWN, CommandError, encode, taken_by, why_not
from hil_server.bus.desk_book import SILENT_AFTER, DeskBook
from hil_server.bus.desks import BUDGET, LONGER, SEEN_WITHIN, CommandDesk, HandDesk
from hil_server.bus.expiry import VALID_S, UntilWhen
from hil_server.bus.publisher import Publisher, TickTime, TokenBucket, Window
from hil_server.config import SHIPPED, load_test
from hil_server.line import assembly
from hil_server.log.header import LogHeader
from hil_server.log.record import aux_channels
from hil_server.log.recoveries import name_as_arguments, name_of_arguments, recoveries_of
from hil_server.run.between import Between
from rt_kernels.layout import BITS, CODES, FAULTS
from rt_kernels.parameters import Command
from tests.bus.list_socket import ListSocket


class Block:
    """Notes what it is given; a lane of four commands."""

    def __init__(self):
        self.commands, self.hands, self.expires, self.states = [], [], [], {}

    def push_command(self, code, arguments, expires_ns=0):
        if len(self.commands) == 4:
            raise BufferError("the loop does not take commands: 4 are waiting")
        self.commands.append((code, arguments))
        self.expires.append(expires_ns)
        return 2 * len(self.commands)

    def command_state(self, sequence):
        return self.states.get(sequence, "waiting")

    def put_hand(self, *values):
        self.hands.append(values)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


# -------------------------------------------------------------------------------------------------------------- commands


def test_every_command_of_the_table_can_be_sent():
    assert set(ARGUMENTS) == set(CODES["command"]) - OWN
    for name, wanted in ARGUMENTS.items():
        assert len(wanted) <= 8
        middle = {a.name: (a.low + a.high) / 2 if not a.whole else int(a.high) for a in wanted}
        code, arguments = encode(name, middle)
        assert code == CODES["command"][name] and len(arguments) == len(wanted)
        assert encode(name, list(middle.values())) == (code, arguments)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_is_checked(name):
    for argument in ARGUMENTS[name]:
        good = {a.name: a.high for a in ARGUMENTS[name]}
        for wrong in (math.nan, math.inf, -math.inf, argument.high * 2 + 1, argument.low - 1, "1", None, [1], {}):
            if argument.of_run and isinstance(wrong, str):
                continue  # a name that only the run knows
            with pytest.raises(CommandError, match=f"command {name}: {argument.name}"):
                encode(name, {**good, argument.name: wrong})
        if argument.whole and argument.high > 1:
            with pytest.raises(CommandError, match="whole number"):
                encode(name, {**good, argument.name: 0.5})


@pytest.mark.parametrize("name", [None, "", "none", "launch", 3, b"hold", ["hold"]])
def test_unknown_commands(name):
    with pytest.raises(CommandError, match="unknown command"):
        encode(name)


def simulated(name=None, *overrides):
    return assembly.simulation(load_test(name and SHIPPED / "programmes" / f"{name}.toml", list(overrides))).commands


def test_a_run_takes_what_its_parts_declare():
    docking, virtual, berthing = simulated(), simulated("virtual_docking"), simulated("berthing_operator")
    assert {"abort", "start", "hold", "resume", "stop", "park"} <= set(docking) & set(virtual) & set(berthing)
    assert "inject_fault" in docking and "inject_fault" not in virtual, "an ideal stand cannot be broken"
    assert "step" in berthing and "step" not in docking and "manual_mode" in docking and "manual_mode" not in berthing
    assert "set_compensator" not in docking
    phased = simulated(None, "compensation.part='phased'", "compensation.contact={part='none'}")
    assert why_not(phased, "set_compensator", (2.0,)) == ""
    assert why_not(phased, "set_compensator", (63.0,)) == "command set_compensator: number 63 is unknown to this run; there are: 0, 1, 2"
    assert "no part of this run acts on it; it takes" in why_not(docking, "set_compensator", (0.0,))
    assert "single_joint" not in simulated("berthing"), "the arm narrows it, but this guidance does not act on it"
    assert berthing["single_joint"].numbers == (1, 2, 3, 4, 5, 6), "joint 0 is locked"
    assert "unknown to this run" in why_not(berthing, "single_joint", (16.0, 0.0))
    assert "there are: none" in why_not(berthing, "auto_sequence", (0.0,)), "no path is stored"


WINGS = "test.active_vehicle=vehicles/craft_two_wings.toml"


def test_a_joint_that_no_craft_has_is_refused_and_a_name_is_understood():
    run = simulated(None, WINGS)
    names = run["joint"].names
    own = [name.partition(" ")[2] for name in names]
    assert len(own) == 2 and all(name.startswith("active ") for name in names)
    for number, name in enumerate(own):
        assert encode("joint", {"craft": "active", "joint": name, "mode": "free"}, None, run)[1][:3] == (0.0, float(number), 1.0)
        assert why_not(run, "joint", (0.0, float(number), 1.0)) == ""
    listed = ", ".join(f"{name} ({number})" for number, name in enumerate(own))
    assert why_not(run, "joint", (0.0, 7.0, 1.0)) == f"command joint: the active craft of this run has no joint 7; there are: {listed}"
    assert why_not(run, "joint", (1.0, 0.0, 1.0)) == "command joint: the target craft of this run has no joint 0; there are: none"
    with pytest.raises(CommandError, match=f"joint 'x' is unknown to this run; the active craft has: {', '.join(own)}"):
        encode("joint", ["active", "x", "free"], None, run)
    with pytest.raises(CommandError, match="the target craft has: none"):
        encode("joint", ["target", own[0], "free"], None, run)
    assert encode("joint", ["active", own[1], "free"])[1][:3] == (0.0, 0.0, 1.0), "the sender leaves names to the run"
    assert "no part of this run acts on it" in why_not(simulated(), "joint", (0.0, 0.0, 1.0))


def test_a_joint_is_not_commanded_past_its_stop_or_beyond_its_effort(tmp_path):
    craft = tmp_path / "probe.toml"
    stops = "lower_deg = -60.0\nupper_deg = 60.0\neffort_n_m = 30.0\n"  # of the last joint, yaw
    craft.write_text((SHIPPED / "manipulators/transport_ship_probe.toml").read_text() + stops)
    run = simulated(None, f'test.active_vehicle="{craft}"')
    mode = CODES["joint_mode"]
    assert why_not(run, "joint", (0.0, 1.0, float(mode["given"]), 1.0, 3.0)) == ""
    assert why_not(run, "joint", (0.0, 0.0, float(mode["given"]), 2.0, 3.0)) == "", "the other one has no stops"
    refused = why_not(run, "joint", (0.0, 1.0, float(mode["given"]), 2.0, 3.0))
    assert refused == "command joint: target 2 rad of joint active yaw is not within -1.0472 ... 1.0472 rad (its stops)"
    refused = why_not(run, "joint", (0.0, 1.0, float(mode["driven"]), -31.0, 0.0))
    assert refused == "command joint: target -31 N.m of joint active yaw is not within -30 ... 30 N.m (its effort)"


def test_two_parts_that_declare_one_command_must_both_be_able_to():
    class One:
        COMMANDS = (Command("step", ("contact", "hold")), Command("brakes"))

    class Other:
        COMMANDS = (Command("step", ("contact", "idle"), (1, 2)), Command("brakes", ("hold",), (0,)))

    assert taken_by([One, Other]) == {"step": Command("step", ("contact",), (1, 2)), "brakes": Command("brakes", ("hold",), (0,))}
    assert taken_by([Other, One]) == taken_by([One, Other])


def test_a_fault_has_the_same_name_and_number_on_both_virtual_stands():
    from drivers.simulated.injections import IN_PROCESS, SERVED, served_by

    for variant in ("net_ft", "axia", "onrobot"):
        both = served_by(variant)
        assert set(both) < set(IN_PROCESS.values()) and set(both.values()) <= {fault.name for fault in SERVED} and 0 not in both
    assert served_by("axia").keys() - served_by("net_ft").keys() == {IN_PROCESS["sensor_busy"]}
    assert served_by("net_ft")[IN_PROCESS["drive_silent"]] == "drive_silent"


@pytest.fixture
def desk(request):
    made = CommandDesk(ListSocket(), Block(), dict, dict, clock=Clock(), **getattr(request, "param", {}))
    made.ask = lambda who, topic, **body: (made.socket.incoming.append([who, topic, msgpack.packb(body)]), made.serve())
    return made


TAKES = {"commands": {"resume": Command("resume", ("hold",)), "set_compensator": Command("set_compensator", (), (0, 1, 2))}}


@pytest.mark.parametrize("name", [["abort"], {"abort": 1}, None, 7, True, b"abort"])
def test_a_command_whose_name_is_no_text_is_an_answer(desk, name):
    desk.ask(b"a", b"command", command=name, id=1)
    (answer,) = desk.socket.answers()
    assert answer["kind"] == "arguments" and "unknown command" in answer["error"] and not desk._block.commands


@pytest.mark.parametrize("desk", [TAKES], indirect=True)
def test_what_no_one_acts_on_is_refused_and_abort_never_is(desk):
    desk.ask(b"a", b"command", command="inject_fault", args={"fault": 1}, id=1)
    desk.ask(b"a", b"command", command="set_compensator", args={"number": 63}, id=2)
    answers = desk.socket.answers()
    assert [a["kind"] for a in answers] == ["unhandled", "unhandled"] and not desk._block.commands
    assert "no part of this run acts on it; it takes resume, set_compensator" in answers[0]["error"] and "number 63" in answers[1]["error"]
    desk.ask(b"a", b"command", command="abort", id=3)
    desk.ask(b"a", b"command", command="set_compensator", args={"number": 2}, id=4)
    assert [code for code, _ in desk._block.commands] == [CODES["command"][name] for name in ("abort", "set_compensator")]


@pytest.mark.parametrize("desk", [TAKES], indirect=True)
@pytest.mark.parametrize(("before", "good"), [("contact", False), ("hold", True)])
def test_a_command_that_met_the_wrong_phase_says_so(desk, make_records, before, good):
    desk.ask(b"a", b"command", command="resume", id=1)
    stream = make_records(3, 50)
    stream["command_sequence"] = [0, 2, 2]
    stream["phase"] = [CODES["phase"][before], CODES["phase"]["retreat"], CODES["phase"]["retreat"]]
    desk.acknowledge(stream)
    (answer,) = desk.socket.answers()
    assert answer["ok"] is good
    if not good:
        assert answer["kind"] == "unhandled"
        assert "at tick 51, accepted, but no part handles it in phase contact; it acts in hold" in answer["error"]


def test_a_stand_of_its_own_process_is_asked_and_answers(make_records):
    asked = []

    def injector(command, arguments):
        asked.append((command, arguments))
        if arguments and arguments[0] == 5.0:
            raise ConnectionError("the stand does not answer")

    takes = {"inject_fault": Command("inject_fault", (), (1, 5)), "clear_injection": Command("clear_injection")}
    desk = CommandDesk(ListSocket(), Block(), dict, dict, clock=Clock(), commands=takes, injector=injector)
    given = ("inject_fault", {"fault": 1, "index": 2}), ("inject_fault", {"fault": "gauge_saturated"}), ("clear_injection", {})
    for number, (name, arguments) in enumerate(given):
        desk.socket.incoming.append([b"a", b"command", msgpack.packb({"command": name, "args": arguments, "id": number})])
    desk.serve()
    assert asked == [], "the log knows of it first"
    for number in range(3):
        desk.acknowledge(sample(20 + number, 2 * number + 2, make_records))
    answers = desk.socket.answers()
    assert [a["ok"] for a in answers] == [True, False, True] and "the stand does not answer" in answers[1]["error"]
    assert asked == [("inject_fault", (1.0, 2.0, 0.0)), ("inject_fault", (5.0, 0.0, 0.0)), ("clear_injection", ())]


def sample(tick, sequence, make_records):
    record = make_records(1, tick)
    record["command_sequence"] = sequence
    return record


def test_acknowledged_by_the_first_sample_that_shows_it(desk, make_records):
    desk.ask(b"a", b"command", command="hold", id=5)
    desk.acknowledge(sample(10, 0, make_records))
    assert desk.socket.answers() == []
    stream = make_records(5, 11)
    stream["command_sequence"] = [0, 0, 2, 2, 2]
    desk.acknowledge(stream)
    (answer,) = desk.socket.answers()
    assert answer["ok"] and answer["tick"] == 13 and answer["sequence"] == 2 and answer["id"] == 5
    desk.acknowledge(sample(16, 2, make_records))
    assert desk.socket.answers() == []


def test_a_later_command_of_the_lane_acknowledges_an_earlier_one_whose_sample_was_lost(desk, make_records):
    desk.ask(b"a", b"command", command="hold", id=1)
    desk.ask(b"a", b"command", command="resume", id=2)
    desk.acknowledge(sample(20, 7, make_records))  # a command of the server's own lane says nothing about ours
    assert desk.socket.answers() == []
    desk.acknowledge(sample(21, 4, make_records))
    assert [(a["id"], a["tick"]) for a in desk.socket.answers()] == [(1, 21), (2, 21)]


def test_not_taken_in_time(desk):
    desk.ask(b"a", b"command", command="hold", id=5)
    desk._clock.now += VALID_S - 0.1
    desk.expire()
    assert desk.socket.answers() == []
    desk._clock.now += 0.2
    desk.expire()
    (answer,) = desk.socket.answers()
    assert answer["kind"] == "not_taken" and "will not act on it" in answer["error"]
    assert desk._block.expires == [int((1000.0 + VALID_S) * 1e9)], "and the loop knows: it drops it"


def test_an_answer_says_not_taken_only_of_what_never_acts(desk, make_records):
    """The loop took it in time, and its sample comes late: no word until it is seen; then, that it was taken."""
    desk.ask(b"a", b"command", command="hold", id=5)
    desk._block.states[2] = "taken"
    desk._clock.now += VALID_S + 0.5 * SEEN_WITHIN
    desk.expire()
    assert desk.socket.answers() == []
    desk.acknowledge(sample(40, 2, make_records))
    assert desk.socket.answers()[0]["ok"]
    desk.ask(b"a", b"command", command="hold", id=6)
    desk._block.states[4] = "taken"
    desk._clock.now += VALID_S + SEEN_WITHIN + 0.1
    desk.expire()
    assert desk.socket.answers()[0]["kind"] == "taken_unseen"


def test_an_abort_does_not_expire_and_is_not_answered_before_it_is_taken(desk, make_records):
    desk.ask(b"a", b"command", command="abort", id=1)
    desk._clock.now += 60.0
    desk.expire()
    assert desk.socket.answers() == [] and desk._block.expires == [0]
    desk.acknowledge(sample(70, 2, make_records))
    assert desk.socket.answers()[0]["ok"]


@pytest.mark.parametrize("state", ["expired", "void"])
def test_what_the_loop_dropped_is_refused_also_when_a_later_one_is_seen(desk, make_records, state):
    desk.ask(b"a", b"command", command="recover", id=1)
    desk.ask(b"a", b"command", command="abort", id=2)
    desk._block.states[2] = state
    desk.acknowledge(sample(20, 4, make_records))
    first, second = desk.socket.answers()
    assert first["id"] == 1 and first["kind"] == "not_taken" and "did not act" in first["error"] and second["ok"]


HERE = {"boot": UntilWhen(lambda: 0.0)._boot}


@pytest.mark.parametrize(("stall_s", "valid_s", "taken"), [
    (0.1, 0.5, True), (0.4, 0.5, True), (0.6, 0.5, False), (5.0, 0.5, False), (5.0, 6.0, True)])  # fmt: skip
def test_a_request_that_lay_on_the_way_is_as_old_as_its_sender_says(desk, stall_s, valid_s, taken):
    """The bus was stopped, or its queue long: the time runs from when the client sent it."""
    sent = int((desk._clock.now - stall_s) * 1e9)
    desk.ask(b"a", b"command", command="resume", id=1, valid_s=valid_s, sent_ns=sent, **HERE)
    assert len(desk._block.commands) == taken
    if taken:
        assert desk._block.expires == [pytest.approx(sent + valid_s * 1e9, abs=2)]
    else:
        assert desk.socket.answers()[0]["kind"] == "not_taken"


def test_another_machine_s_clock_says_nothing_and_no_clock_lengthens(desk):
    desk.ask(b"a", b"command", command="resume", id=1, sent_ns=5, boot="other")
    desk.ask(b"a", b"command", command="resume", id=2, sent_ns=int(9e12), **HERE)
    assert desk._block.expires == [int((1000.0 + VALID_S) * 1e9)] * 2


@pytest.mark.parametrize("wrong", [{"valid_s": 0.0}, {"valid_s": 1e9}, {"valid_s": "1"}, {"valid_s": True}, {"valid_s": math.nan},
                                   {"sent_ns": 1.5}, {"sent_ns": "now"}])  # fmt: skip
def test_a_time_that_is_none_is_refused(desk, wrong):
    desk.ask(b"a", b"command", command="resume", id=1, **wrong)
    assert desk.socket.answers()[0]["kind"] == "malformed" and not desk._block.commands


SESSION, OTHER = "a" * 32, "b" * 32


def test_a_replayed_request_is_refused_from_whatever_connection(desk):
    desk.ask(b"a", b"command", command="resume", id=7, session=SESSION)
    for identity, number in ((b"a", 7), (b"x", 7), (b"x", 3), (b"x", None)):
        desk.ask(identity, b"command", command="resume", id=number, session=SESSION)
    assert len(desk._block.commands) == 1
    assert [a["kind"] for a in desk.socket.answers()] == ["repeated"] * 4
    desk.ask(b"x", b"command", command="resume", id=8, session=SESSION)
    assert len(desk._block.commands) == 2, "the session continues over a new connection, and holds the desk there"


def test_full_lane_is_an_answer(desk):
    for i in range(5):
        desk.ask(b"a", b"command", command="hold", id=i)
    assert [a["kind"] for a in desk.socket.answers()] == ["full"]


def test_a_silent_holder_keeps_the_desk_until_somebody_takes_it_over(desk):
    noted = []
    desk._book._note = noted.append
    desk.ask(b"a", b"command", command="start", client="A", session=SESSION, id=1)
    for seconds in (1.0, 2.0, 3.0):  # alive
        desk._clock.now += seconds
        desk.ask(b"k", b"desk", keep=True, session=SESSION, id=0)
        desk.expire()
        assert desk.holder == "A"
    desk.ask(b"b", b"desk", take=True, over=True, client="B", session=OTHER, id=1)
    assert desk.socket.answers()[-1]["kind"] == "held", "no one takes it from one who is there"
    for silence in (SILENT_AFTER + 0.1, 10.1, 3600.0):
        desk._clock.now += silence
        desk.expire()
        assert desk.holder.startswith("A (silent for")
        desk.ask(b"b", b"command", command="start", client="B", session=OTHER, id=int(silence) + 2)
        desk.ask(b"b", b"desk", take=True, client="B", session=OTHER, id=0)
        assert [a["kind"] for a in desk.socket.answers()[-2:]] == ["held", "held"] and len(desk._block.commands) == 1
    desk.ask(b"b", b"desk", take=True, over=True, client="B", session=OTHER, id=0)
    desk.ask(b"b", b"command", command="start", client="B", session=OTHER, id=9999)
    assert desk.holder == "B" and len(desk._block.commands) == 2
    desk.ask(b"a", b"command", command="start", client="A", session=SESSION, id=2)
    assert desk.socket.answers()[-1]["kind"] == "held", "who comes back learns it"
    assert [(one["desk"], one["name"]) for one in noted] == [("taken", "A"), ("silent", "A"), ("taken over", "B")]
    assert noted[-1]["after"] == "A"


def test_the_desk_lasts_over_a_new_process_and_its_file_holds_no_secret(tmp_path):
    file, clock = tmp_path / "desk.json", Clock()

    def started():
        made = CommandDesk(ListSocket(), Block(), dict, dict, clock=clock, book=DeskBook(clock, file))
        made.ask = lambda who, topic, **body: (made.socket.incoming.append([who, topic, msgpack.packb(body)]), made.serve())
        return made

    started().ask(b"a", b"command", command="start", client="A", session=SESSION, id=1)
    assert SESSION not in file.read_text()
    after = started()
    after.ask(b"b", b"command", command="start", client="B", session=OTHER, id=1)
    assert after.holder == "A" and not after._block.commands
    after.ask(b"c", b"command", command="start", client="A", session=SESSION, id=2)
    assert len(after._block.commands) == 1
    after.ask(b"c", b"desk", leave=True, session=SESSION, id=3)
    assert not file.exists() and started().holder == ""


def test_every_command_is_noted_with_its_sender(desk):
    noted = []
    desk._note = noted.append
    desk.socket.name = "anna"
    desk.ask(b"a", b"command", command="hold", client="panel", id=1)
    desk._clock.now += 2.0
    desk.expire()
    desk.socket.refusal = "user boris may not command this run"
    desk.ask(b"a", b"command", command="abort", client="panel", id=2)
    assert [{k: v for k, v in one.items() if k in ("command", "name", "not_taken", "refused")} for one in noted] == [
        {"command": "hold", "name": "anna: panel"}, {"not_taken": "hold", "name": "anna: panel"}, {"refused": "abort"}]
    assert desk.socket.answers()[-1]["kind"] == "who" and len(desk._block.commands) == 1


def test_a_flood_is_served_in_portions_and_urgent_commands_pass(desk):
    flood = [[b"a", b"command", msgpack.packb({"command": "resume"})]] * 1000
    desk.socket.incoming.extend(flood)
    assert desk.serve() == BUDGET and len(desk.socket.incoming) == 1000 - BUDGET
    while desk.serve() == BUDGET:
        pass
    desk._block.commands.clear()
    desk.ask(b"a", b"command", command="resume")
    desk.ask(b"a", b"command", command="abort")
    assert [code for code, _ in desk._block.commands] == [CODES["command"]["abort"]]


def test_many_identities_do_not_fill_the_memory(desk):
    for i in range(2000):
        desk._clock.now += 0.1
        desk.ask(str(i).encode(), b"status", id=i)
    assert len(desk._clients) <= 256


# ------------------------------------------------------------------------------------------------------ hand controllers


@pytest.fixture
def hands():
    made = HandDesk(ListSocket(), Block(), clock=Clock())

    def send(sender=b"a", seq=0, t=None, station=0, axes=(0.1,) * 6, **more):
        time_s = made._clock.now - 500.0 if t is None else t
        record = {"seq": seq, "t": time_s, "id": station, "axes": list(axes), "buttons": 1, **more}
        made.socket.incoming.append([sender, b"hand", msgpack.packb(record)])
        made.serve()
        return made.accepted

    made.send = send
    return made


def test_records_in_order_are_taken(hands):
    for i in range(5):
        hands._clock.now += 0.02
        assert hands.send(seq=i) == i + 1
    now = hands._clock.now
    assert hands._block.hands[-1] == (0, 4, int((now - 500.0) * 1e9), [0.1] * 6, 1, 1, int(now * 1e9)) and hands.rejected == {}


def test_out_of_order_repeated_and_frozen_records_are_not(hands):
    hands.send(seq=10)
    hands._clock.now += 0.02
    hands.send(seq=10)
    hands.send(seq=9)
    hands.send(seq=11, t=400.0)
    assert hands.accepted == 1 and hands.rejected == {"out_of_order": 3}
    hands._clock.now += 0.02
    hands.send(seq=12)
    assert hands._block.hands[-1][5] == 1 | 4, "the next good record says that some were rejected"
    hands._clock.now += 0.02
    hands.send(seq=13)
    assert hands._block.hands[-1][5] == 1


def test_records_that_were_held_up_are_stale(hands):
    hands.send(seq=0)
    for i in range(1, 4):
        hands._clock.now += 0.5
        hands.send(seq=i, t=hands._clock.now - 500.0 - 0.15)
    assert hands.accepted == 1 and hands.rejected == {"stale": 3}
    hands._clock.now += 0.5
    hands.send(seq=9, t=hands._clock.now - 500.0 - 0.05)
    assert hands.accepted == 2


def test_second_sender_has_to_wait_for_silence(hands):
    hands.send(b"a", seq=5)
    hands._clock.now += 0.5
    hands.send(b"b", seq=0)
    assert hands.rejected == {"second_sender": 1}
    hands.send(b"b", seq=0, station=1)
    assert hands.accepted == 2
    hands._clock.now += 1.1
    hands.send(b"b", seq=1)
    assert hands.accepted == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"seq": -1},
        {"seq": 1.0},
        {"seq": True},
        {"t": math.nan},
        {"t": "now"},
        {"station": 2},
        {"axes": [0.0] * 5},
        {"axes": [1.01] + [0.0] * 5},
        {"axes": [math.nan] + [0.0] * 5},
        {"axes": ["0"] * 6},
        {"buttons": -1},
        {"buttons": 2**32},
        {"extra": 1},
    ],
)
def test_malformed_records(hands, wrong):
    assert hands.send(**wrong) == 0 and hands.rejected == {"malformed": 1} and hands._block.hands == []


# ------------------------------------------------------------------------------------------------------------- publisher


def test_window_cuts_exactly(make_records):
    window, stream, got = Window(20), make_records(1000), []
    for start, stop in ((0, 7), (7, 19), (19, 60), (60, 61), (61, 990), (990, 1000)):
        got += window.cut(stream[start:stop])
    assert all(len(batch) == 20 for batch in got) and len(got) == 50
    assert np.concatenate(got).tobytes() == stream.tobytes()


def publisher_for(make_records, records, **options):
    socket = ListSocket()
    settings = {"batch_ticks": 20, "slow_ticks": 40, "dropped": lambda: 3, "clock": Clock(), **options}
    header = LogHeader("run", aux=(("stroke", "m", "x", 3), ("one", "-", "x", 1)))
    publisher = Publisher(header, socket, None, **settings)
    publisher.publish(records)
    return publisher, socket


def test_thinned_telemetry_keeps_every_extreme(make_records):
    records = make_records(400)
    rng = np.random.default_rng(7)
    spikes = rng.integers(0, 400, 6)
    records["F_T"][spikes, np.arange(6)] = 1e4 * (-1.0) ** np.arange(6)
    records["events"][123] = BITS["event"]["capture"]
    records["faults"][200] = FAULTS[9][1]
    _, socket = publisher_for(make_records, records)
    slow = [msgpack.unpackb(frames[1]) for frames in socket.outgoing if frames[0] == b"slow"]
    assert len(slow) == 10
    for i, message in enumerate(slow):
        window = records[40 * i : 40 * i + 40]
        assert message["min"]["F_T"] == window["F_T"].min(axis=0).tolist()
        assert message["max"]["F_T"] == window["F_T"].max(axis=0).tolist()
        assert message["last"]["X_TA"] == window["X_TA"][-1].tolist()
        assert message["max"]["stroke"] == window["aux"][:, :3].max(axis=0).tolist()
        assert message["last"]["stroke"] == window["aux"][-1, :3].tolist() and message["last"]["one"] == window["aux"][-1, 3]
        assert message["dropped"] == 3 and message["tick"] == 40 * i + 39
    assert slow[3]["any"]["events"] == BITS["event"]["capture"] and slow[4]["any"]["events"] == 0
    assert slow[5]["any"]["faults"] == FAULTS[9][1]


def test_batches_hold_the_auxiliary_channels_by_name(make_records):
    records = make_records(20)
    _, socket = publisher_for(make_records, records)
    (full,) = [msgpack.unpackb(frames[1]) for frames in socket.outgoing if frames[0] == b"full"]
    assert full["channels"]["stroke"] == records["aux"][:, :3].tolist() and full["channels"]["one"] == records["aux"][:, 3].tolist()


def test_a_run_faster_than_real_time_is_thinned_and_says_so(make_records):
    publisher, socket = publisher_for(make_records, make_records(6000))
    full = [msgpack.unpackb(frames[1]) for frames in socket.outgoing if frames[0] == b"full"]
    assert [m["sequence"] for m in full] == list(range(1, 201))
    publisher._bucket[b"full"]._clock.now += 1.0
    publisher.publish(make_records(20, 6000))
    last = msgpack.unpackb([f for f in socket.outgoing if f[0] == b"full"][-1][1])
    assert last["thinned"] == 100 and last["tick"] == 6019 and last["sequence"] == 201


def test_wall_time_of_a_tick_is_that_of_the_quickest_look_at_it():
    clock, late = TickTime(), [0.008, 0.003, 0.0002, 0.010, 0.006]
    for i, delay in enumerate(late):
        clock.see(0.01 * i, 1000.0 + 0.01 * i + delay)
    assert clock.wall(0.0) == pytest.approx(1000.0002, abs=1e-5)


def test_token_bucket():
    clock = Clock()
    bucket = TokenBucket(10.0, 5.0, clock)
    assert [bucket.take() for _ in range(6)] == [True] * 5 + [False]
    clock.now += 0.25
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_auxiliary_names_are_made_unique():
    names = [channel.name for channel in aux_channels([("a", "m", "", 2), ("a", "m", "", 1), ("F_T", "N", "", 1)])]
    assert names == ["a", "a#2", "F_T#2"]
    assert [channel.offset for channel in aux_channels([("a", "m", "", 2), ("b", "m", "", 1), ("c", "m", "", 1)])] == [0, 2, 3]


# ---------------------------------------------------------------------------------------------------------------- recovery

STATE, STOPPED = CODES["safety_state"], {name: mask for name, mask, *_ in FAULTS}
RECOVERS = {"commands": {"recover": Command("recover", ("fault",))}}


def recovering(make_records, states, faults, first=50):
    """Records in the fault phase; the command is taken at the second one."""
    stream = make_records(len(states), first)
    stream["command_sequence"] = [0] + [2] * (len(states) - 1)
    stream["phase"], stream["phase_time"] = CODES["phase"]["fault"], 1.0
    stream["safety_state"], stream["faults"] = [STATE[name] for name in states], faults
    return stream


@pytest.mark.parametrize("desk", [RECOVERS], indirect=True)
def test_recovery_is_answered_when_it_has_ended_with_what_it_cleared(desk, make_records):
    desk.ask(b"a", b"command", command="recover", id=1, client="Maja at the stand")
    ((code, arguments),) = desk._block.commands
    assert code == CODES["command"]["recover"] and name_of_arguments(arguments) == "Maja at the stand"
    stop = STOPPED["drive_not_enabled"] | STOPPED["acceleration_limit"]
    desk.acknowledge(recovering(make_records, ["held", "recovering", "recovering"], stop))
    assert desk.socket.answers() == [] and desk.waiting
    desk.acknowledge(recovering(make_records, ["recovering", "following"], [stop, STOPPED["acceleration_limit"]], 53))
    (answer,) = desk.socket.answers()
    assert answer["ok"] and answer["tick"] == 51 and answer["cleared"] == ["drive_not_enabled"] and not desk.waiting


@pytest.mark.parametrize("desk", [RECOVERS], indirect=True)
def test_recovery_that_is_given_up_names_what_stands(desk, make_records):
    desk.ask(b"a", b"command", command="recover", id=1)
    faults = [STOPPED["operator_stop"]] * 3 + [STOPPED["analogue_chain"]]
    desk.acknowledge(recovering(make_records, ["held", "recovering", "recovering", "held"], faults))
    (answer,) = desk.socket.answers()
    assert answer["kind"] == "unhandled" and "not recovered: analogue_chain (the independent emergency chain" in answer["error"]
    assert "operator_stop" not in answer["error"]


@pytest.mark.parametrize("desk", [RECOVERS], indirect=True)
@pytest.mark.parametrize(("state", "fault", "why"), [
    ("decelerating", "force_limit", "the setpoints do not rest yet"),
    ("not_armed", "start_legs_unknown", "the setpoints had not started"),
    ("held", "record_required", "record_required: .* without a record nothing moves"),
])  # fmt: skip
def test_recovery_that_cannot_begin_says_why(desk, make_records, state, fault, why):
    desk.ask(b"a", b"command", command="recover", id=1)
    desk.acknowledge(recovering(make_records, [state] * 3, STOPPED[fault]))
    (answer,) = desk.socket.answers()
    assert answer["kind"] == "unhandled" and re.search(why, answer["error"])


@pytest.mark.parametrize("desk", [RECOVERS], indirect=True)
def test_recovery_that_takes_long_is_still_an_answer(desk, make_records):
    desk.ask(b"a", b"command", command="recover", id=1)
    desk.acknowledge(recovering(make_records, ["held", "recovering", "recovering"], STOPPED["operator_stop"]))
    desk._clock.now += VALID_S + LONGER + 0.1
    desk.expire()
    (answer,) = desk.socket.answers()
    assert answer["kind"] == "under_way" and "still under way" in answer["error"]


@pytest.mark.parametrize("name", ["", "a", "Ω-desk", "x" * 60])
def test_name_travels_in_the_arguments_of_a_command(name):
    arguments = name_as_arguments(name)
    assert len(arguments) == 8 and all(0.0 <= value < 2.0**48 for value in arguments)
    assert name_of_arguments(np.array(arguments)) == name[:48]


def test_recoveries_of_a_run(make_records):
    """Refused, given up, recovered, and one that the log cuts off."""
    states = ["decelerating", "held", "recovering", "recovering", "held", "recovering", "following", "held", "recovering"]
    r = recovering(make_records, states, STOPPED["drive_lost"])
    r["faults"][6] = 0
    for i in (0, 2, 5, 8):
        r["command_code"][i], r["command_arg"][i] = CODES["command"]["recover"], name_as_arguments("me")
    found = recoveries_of(r)
    assert [one["outcome"] for one in found] == ["refused", "given_up", "recovered", "under_way"]
    assert [one["cleared"] for one in found] == [[], [], ["drive_lost"], []] and {one["by"] for one in found} == {"me"}
    assert found[1]["standing"] == ["drive_lost"] and found[2]["ended_s"] > found[2]["time_s"]


# ------------------------------------------------------------------------------------------------------- between two variants


class Pause:
    """The desk between two variants, at its socket; clock, file: those of the desk of the variants before and after."""

    def __init__(self, clock, file):
        self.socket, self.clock = ListSocket(), clock
        self.socket.name, self.socket.refusal = "ada", ""
        self.between = Between({"command": "ipc://nowhere", "keys": ""}, True, clock=clock, desk=file)
        self.between._book = DeskBook(clock, file)

    def ask(self, who, topic, **body):
        """What the message means for the programme ("" nothing), and the kind of refusal ("" none)."""
        self.socket.incoming.append([who, topic, msgpack.packb(body)])
        means = self.between._answer(self.socket, "RT-2")
        (answer,) = self.socket.answers()
        return means, "" if answer["ok"] else answer["kind"]


@pytest.fixture
def pause(tmp_path):
    """The desk of a variant was taken by A, whose client is alive; now the pause."""
    clock, file = Clock(), tmp_path / "desk.json"
    variant = CommandDesk(ListSocket(), Block(), dict, dict, clock=clock, book=DeskBook(clock, file))
    variant.socket.incoming.append([b"a", b"command", msgpack.packb({"command": "start", "client": "A", "session": SESSION, "id": 1})])
    variant.serve()
    return Pause(clock, file)


def test_the_desk_of_a_variant_is_that_of_the_pause_behind_it(pause):
    assert pause.ask(b"b", b"command", command="start", client="B", session=OTHER, id=1) == ("", "held")
    assert pause.ask(b"b", b"desk", take=True, over=True, client="B", session=OTHER, id=2) == ("", "held"), "A is there"
    assert pause.ask(b"b", b"command", command="hold", client="B", session=OTHER, id=3) == ("hold", "")
    assert pause.ask(b"b", b"command", command="abort", client="B", session=OTHER, id=4) == ("stop", "")
    assert pause.ask(b"x", b"command", command="start", client="A", session=SESSION, id=2) == ("start", ""), "over a new connection"


def test_a_silent_holder_is_taken_over_in_the_pause_and_the_next_variant_knows(pause):
    pause.clock.now += SILENT_AFTER + 0.1
    assert pause.ask(b"b", b"command", command="start", client="B", session=OTHER, id=1) == ("", "held"), "silence alone gives nothing"
    assert pause.ask(b"b", b"desk", take=True, over=True, client="B", session=OTHER, id=2) == ("", "")
    assert pause.ask(b"a", b"command", command="start", client="A", session=SESSION, id=2) == ("", "held"), "who comes back learns it"
    assert pause.ask(b"b", b"command", command="start", client="B", session=OTHER, id=3) == ("start", "")
    following = CommandDesk(ListSocket(), Block(), dict, dict, clock=pause.clock, book=DeskBook(pause.clock, pause.between._desk))
    assert following.holder == "B"


def test_another_user_moves_nothing_in_the_pause(pause):
    pause.socket.refusal = "user eve may not command this run"
    for command in ("start", "resume", "hold", "stop", "abort"):
        assert pause.ask(b"e", b"command", command=command, client="A", session=SESSION, id=50) == ("", "who")
    assert pause.ask(b"e", b"desk", leave=True, session=SESSION, id=51) == ("", "who")
    pause.socket.refusal = ""
    assert pause.ask(b"b", b"command", command="start", client="B", session=OTHER, id=1) == ("", "held"), "A has it still"


@pytest.mark.parametrize("stall_s", [0.1, 0.5, 0.9, 1.1, 2.0, 5.0])
def test_stale_and_repeated_commands_move_nothing_in_the_pause(pause, stall_s):
    sent = int((pause.clock.now - stall_s) * 1e9)
    asked = {"command": "start", "client": "A", "session": SESSION, "id": 7, "sent_ns": sent, **HERE}
    fresh = stall_s < VALID_S
    assert pause.ask(b"a", b"command", **asked) == (("start", "") if fresh else ("", "not_taken"))
    for identity in (b"a", b"x"):  # the same frame again
        assert pause.ask(identity, b"command", **asked) == ("", "not_taken")
    if fresh:
        assert pause.ask(b"x", b"command", **asked | {"id": 3, "sent_ns": int(pause.clock.now * 1e9)}) == ("", "not_taken"), "an older one"
