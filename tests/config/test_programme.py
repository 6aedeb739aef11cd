"""A programme of variants: all checked before the first runs, each judged by what it was expected to do."""

import json
import threading

import pytest

from hil_server.client import Client, RefusedError
from hil_server.errors import ConfigurationError, DeviceError, TripError
from hil_server.run.between import Between
from hil_server.run.programme import PROGRESS, between_of, is_programme, load_programme, run_programme, summary_rows, verdict

HEAD = '[programme]\nname = "three"\ntest = "test.toml"\n'


def variant(number, lines="", expect="captured"):
    """A variant's table; `expect` empty: without one."""
    reported = f'expect = "{expect}"\n' if expect else ""
    return f'\n[[variant]]\nnumber = "{number}"\ndescription = "of the tests"\n{reported}{lines}\n'


@pytest.fixture
def programme(files, tmp_path):
    files()

    def write(text):
        file = tmp_path / "programme.toml"
        file.write_text(text)
        return file

    return write


def test_variants_are_the_test_with_their_overrides(programme):
    text = HEAD + variant("RT-01") + variant("RT-02", 'set = { "initial_conditions.yaw_deg" = 3.0, active_vehicle.mass_kg = 7e3 }')
    name, variants = load_programme(programme(text), ["test.notes=all"])
    assert name == "three" and [v.number for v in variants] == ["RT-01", "RT-02"]
    assert variants[0].config.initial_conditions["yaw_deg"] == 0.0 and variants[1].config.initial_conditions["yaw_deg"] == 3.0
    assert variants[1].config.active_vehicle["mass_kg"] == 7000.0 and variants[0].config.test["notes"] == "all"


def test_all_faults_of_all_variants_come_before_the_first_run(programme):
    text = HEAD + variant("RT-01", 'set = { "initial_conditions.yaw_deg" = 300.0 }') + variant("RT-01", 'set = { "test.rate_hz" = 1e9 }')
    with pytest.raises(ConfigurationError) as caught:
        load_programme(programme(text))
    text = "\n".join(caught.value.faults)
    assert "variant RT-01: --set: initial_conditions.yaw_deg: must be a number within -30 ... 30 deg, got 300.0" in text
    assert "variant RT-01: --set: test.rate_hz: must be a number within 100 ... 4000 Hz, got 1000000000.0" in text
    assert "variant[1].number: used twice, value 'RT-01'" in text


def test_a_fault_of_every_variant_is_one_line(programme):
    text = HEAD + variant("A") + variant("B", 'set = { "initial_conditions.yaw_deg" = 300.0 }')
    with pytest.raises(ConfigurationError) as caught:
        load_programme(programme(text), ["test.rate_hz=99999"])
    of_all, own = sorted(caught.value.faults)
    assert ": every variant: --set: test.rate_hz: must be" in of_all and ": variant B: --set: initial_conditions.yaw_deg: must be" in own


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "programme: must be a table"),
        (HEAD, "at least one [[variant]]"),
        (HEAD + "[[varian]]\n", "did you mean 'variant'"),
        (HEAD.replace("test.toml", "ghost.toml") + variant("a"), "programme.test: no such file, value 'ghost.toml'"),
        (HEAD + variant("a/b"), "no folder name, value 'a/b'"),
        (HEAD + variant("a", expect="docked"), "variant[0].expect: must be one of captured, not_captured, stalled, complete"),
        (HEAD + variant("a", expect="any"), "must be one of captured, not_captured, stalled, complete, not_aligned, separated, tripped"),
        (HEAD + variant("a", expect=""), "programme.toml: variant[0].expect: required key is missing"),
        (HEAD + variant("a", "sett = {}"), "variant[0].sett: unknown key, value {}, did you mean 'set'?"),
        (HEAD + "[variant]\n", "at least one [[variant]]"),
        ("[programme", "not TOML"),
    ],
)
def test_bad_programmes(programme, text, words):
    with pytest.raises(ConfigurationError) as caught:
        load_programme(programme(text))
    assert words in "\n".join(caught.value.faults)


def test_a_programme_differs_from_a_test(programme, tmp_path):
    assert is_programme(programme(HEAD)) and not is_programme(tmp_path / "test.toml") and not is_programme(tmp_path / "ghost")
    assert not is_programme(None)


def outcomes(*rows):
    """A `run_one` that gives these summaries (or raises these errors) in turn."""
    left = list(rows)
    folders = []

    def run_one(config, folder):
        folders.append(folder.name)
        row = left.pop(0)
        if isinstance(row, Exception):
            raise row
        return row

    run_one.folders = folders
    return run_one


def quiet(text):
    pass


CAPTURED = {"end": "captured", "captured": True, "capture_time_s": 4.0, "impact_force_n": 20.4, "impact_moment_n_m": 3.3}
MISSED = {"end": "time", "captured": False}
TRIPPED = {"end": "tripped", "captured": False, "faults": ["force_limit"]}


def three(programme, *expect):
    return load_programme(programme(HEAD + "".join(variant(f"RT-{i}", expect=e) for i, e in enumerate(expect))))[1]


def test_verdicts(programme, tmp_path):
    run_one = outcomes(CAPTURED, MISSED, TRIPPED)
    summary = run_programme("three", three(programme, "captured", "not_captured", "tripped"), run_one, tmp_path, True, quiet)
    assert summary["exit_code"] == 0 and summary["passed"] == 3 and run_one.folders == ["RT-0", "RT-1", "RT-2"]
    assert [verdict(r) for r in summary["variants"]] == ["captured", "not_captured", "tripped"]
    assert summary_rows(summary)[0] == ("RT-0", "0.20", "captured", "4.000", "20", "3", "-", "-", "passed")


COMPLETE = CAPTURED | {"end": "complete"}
APART = CAPTURED | {"end": "not_aligned", "exit_code": 1}
STALLED = MISSED | {"arm": {"outcome": "stalled", "margin": 0.31}}


@pytest.mark.parametrize(
    ("expect", "passing"),
    [
        ("captured", (CAPTURED, COMPLETE)),
        ("complete", (COMPLETE,)),
        ("not_aligned", (APART,)),
        ("not_captured", (MISSED, STALLED)),
        ("stalled", (STALLED,)),
        ("tripped", (TRIPPED,)),
    ],
)
def test_every_expectation_against_every_outcome(programme, tmp_path, expect, passing):
    """A completed docking has captured too; a docking that is not complete, or whose units do not lie together, passes for neither. An arm
    that stalled has not captured; one that missed has not stalled."""
    for outcome in (CAPTURED, COMPLETE, APART, MISSED, STALLED, TRIPPED):
        summary = run_programme("one", three(programme, expect), outcomes(outcome), tmp_path, False, quiet)
        assert (summary["passed"] == 1) == (outcome in passing) == (summary["exit_code"] == 0), outcome["end"]
        assert (summary_rows(summary)[0][-3] == "0.31") is (outcome is STALLED)


def test_progress_can_be_read_all_the_while(programme, tmp_path):
    seen, left = [], outcomes(CAPTURED, MISSED, DeviceError("gone"))

    def run_one(config, folder):
        seen.append(json.loads((tmp_path / PROGRESS).read_text()))
        return left(config, folder)

    with pytest.raises(DeviceError):
        run_programme("three", three(programme, "captured", "captured", "captured"), run_one, tmp_path, True, quiet)
    assert [[row["state"] for row in at["variants"]] for at in seen] == [
        ["running", "waiting", "waiting"],
        ["done", "running", "waiting"],
        ["done", "done", "running"],
    ]
    last = json.loads((tmp_path / PROGRESS).read_text())
    assert last["ended"] and not seen[2]["ended"] and [row["state"] for row in last["variants"]] == ["done", "done", "waiting"]
    assert last["variants"][0]["capture s"] == 4.0 and last["units"]["capture s"] == "s"
    assert last["variants"][1]["result"] == "FAILED (expected captured)"


def test_one_failed_verdict_makes_the_programme_negative(programme, tmp_path):
    run_one = outcomes(CAPTURED, MISSED, CAPTURED)
    summary = run_programme("three", three(programme, "captured", "captured", "captured"), run_one, tmp_path, True, quiet)
    assert summary["exit_code"] == 1 and [r["passed"] for r in summary["variants"]] == [True, False, True]
    assert "FAILED (expected captured)" in summary_rows(summary)[1]


@pytest.mark.parametrize("trip", [TRIPPED, TripError(["force_limit"], 100)])
def test_unexpected_trip_ends_a_live_programme(programme, tmp_path, trip):
    run_one = outcomes(CAPTURED, trip, CAPTURED)
    summary = run_programme("three", three(programme, "captured", "captured", "captured"), run_one, tmp_path, True, quiet)
    assert summary["exit_code"] == 3 and summary["not_run"] == ["RT-2"] and len(summary["variants"]) == 2
    run_one = outcomes(CAPTURED, trip, CAPTURED)
    summary = run_programme("three", three(programme, "captured", "captured", "captured"), run_one, tmp_path, False, quiet)
    assert summary["exit_code"] == 1 and summary["not_run"] == [] and summary["passed"] == 2


def test_a_stop_by_the_operator_ends_the_programme(programme, tmp_path):
    run_one = outcomes(CAPTURED, {"end": "stopped", "captured": False}, CAPTURED)
    summary = run_programme("three", three(programme, "captured", "captured", "captured"), run_one, tmp_path, False, quiet)
    assert summary["exit_code"] == 1 and summary["not_run"] == ["RT-2"]


@pytest.mark.parametrize("code, end", [(130, "stopped"), (3, "tripped")])
def test_a_press_during_a_variant_ends_the_programme(programme, tmp_path, code, end):
    """Also where the run has tripped by itself before the press could stop it, and is expected to."""
    pressed = {"end": end, "captured": False, "faults": ["force_limit"], "interrupted": True, "exit_code": code}
    variants = three(programme, "captured", "tripped", "captured")
    summary = run_programme("three", variants, outcomes(CAPTURED, pressed, CAPTURED), tmp_path, False, quiet)
    assert summary["exit_code"] == code and summary["not_run"] == [variants[2].number]


@pytest.mark.parametrize("more", [{}, {"interrupted": True, "exit_code": 4}])
def test_drives_that_are_not_confirmed_off_end_the_programme(programme, tmp_path, more):
    variants, printed = three(programme, "captured", "captured", "captured"), []
    run_one = outcomes(CAPTURED, {**CAPTURED, "not_confirmed": ["leg 2: does not say that it is off"], **more}, CAPTURED)
    summary = run_programme("three", variants, run_one, tmp_path, False, printed.append)
    assert summary["exit_code"] == 4 and summary["not_run"] == [variants[2].number]
    assert printed[-1].endswith("cut the power of the stand before you go near")


def test_a_lost_device_ends_the_programme(programme, tmp_path):
    with pytest.raises(DeviceError):
        run_programme("three", three(programme, "captured", "captured", "captured"), outcomes(DeviceError("gone")), tmp_path, True, quiet)


class Asked:
    """An operator at the desk: answers each wait with the next commands, over the wire, as a client does."""

    def __init__(self, *commands):
        self.commands, self.answers, self.seen = list(commands), [], []

    def desk(self, folder, **more):
        asked = self

        class Desk(Between):
            def wait(self, following, told, hold=False):
                commands = asked.commands.pop(0)
                threads = []

                def tell(waits):
                    told(waits)
                    asked.seen.append((following, waits, json.loads((folder / PROGRESS).read_text())))
                    if not threads:
                        threads.append(threading.Thread(target=asked.speak, args=(self.address, commands)))
                        threads[0].start()

                goes_on = super().wait(following, tell, hold)
                for thread in threads:
                    thread.join()
                return goes_on

        return Desk({"command": "tcp://127.0.0.1:*", "keys": ""}, **more)

    def speak(self, address, commands):
        with Client(command=address) as client:
            for command in commands:
                if command == "status":
                    self.answers.append(client.status()["next"])
                    continue
                try:
                    self.answers.append(client.command(command).command)
                except RefusedError as error:
                    self.answers.append(str(error))


def test_a_programme_that_holds_waits_for_start_between_its_variants(programme, tmp_path):
    variants = three(programme, "captured", "captured", "captured")
    asked = Asked(["status", "park", "hold", "start"], ["stop"])
    reported = []
    run_one = outcomes(CAPTURED, CAPTURED, CAPTURED)
    summary = run_programme("three", variants, run_one, tmp_path, True, reported.append, asked.desk(tmp_path, hold=True))
    assert run_one.folders == ["RT-0", "RT-1"] and summary["not_run"] == ["RT-2"] and summary["exit_code"] == 1
    assert asked.answers == ["RT-1", "the programme is between two variants, RT-1 is next: start, hold or stop", "hold", "start", "stop"]
    assert [(number, waits) for number, waits, _ in asked.seen] == [("RT-1", True), ("RT-2", True)]
    at = asked.seen[0][2]
    assert at["held"] and not at["ended"] and [row["state"] for row in at["variants"]] == ["done", "next", "waiting"]
    assert "RT-1 is next: `hil-server command start --address tcp://127.0.0.1:" in "\n".join(reported)
    assert reported[-1].endswith("before RT-2")


def test_a_pause_continues_by_itself_unless_hold_comes(programme, tmp_path):
    variants = three(programme, "captured", "captured", "captured")
    asked = Asked([], ["hold", "status", "start"])
    run_one = outcomes(CAPTURED, CAPTURED, CAPTURED)
    summary = run_programme("three", variants, run_one, tmp_path, True, quiet, asked.desk(tmp_path, hold=False, pause_s=0.8))
    assert summary["passed"] == 3 and asked.answers == ["hold", "RT-2", "start"]
    assert [(number, waits) for number, waits, _ in asked.seen] == [("RT-1", False), ("RT-2", False), ("RT-2", True)]


def test_a_variant_that_tripped_and_was_recovered_from_does_not_end_the_programme_but_it_waits(programme, tmp_path):
    """No hold, no pause: the operator's word is asked for after the recovery alone, and the trip stays the verdict."""
    variants = three(programme, "captured", "captured", "captured")
    asked = Asked([], ["start"])
    run_one = outcomes(CAPTURED, TRIPPED | {"recovered": True}, CAPTURED)
    summary = run_programme("three", variants, run_one, tmp_path, True, quiet, asked.desk(tmp_path, hold=False))
    assert run_one.folders == ["RT-0", "RT-1", "RT-2"] and asked.answers == ["start"]
    assert [(number, waits) for number, waits, _ in asked.seen] == [("RT-2", True)]
    assert summary["exit_code"] == 1 and [verdict(row) for row in summary["variants"]] == ["captured", "tripped", "captured"]
    # no one who could answer: as every trip
    run_one = outcomes(CAPTURED, TRIPPED | {"recovered": True}, CAPTURED)
    assert run_programme("three", variants, run_one, tmp_path, True, quiet)["not_run"] == ["RT-2"]


def test_hold_and_pause_are_keys_of_the_programme(programme):
    file = programme(HEAD.replace("[programme]", "[programme]\nhold = true") + variant("RT-0"))
    telemetry = load_programme(file)[1][0].config.telemetry
    assert between_of(file, telemetry)._hold
    assert not between_of(programme(HEAD + variant("RT-0")), telemetry)._hold and between_of(file, telemetry, hold=True)._hold
