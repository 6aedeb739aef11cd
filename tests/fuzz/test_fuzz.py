"""The short form of the fuzzing: a few hundred inputs of every target. `python -m tests.fuzz --count 1000000` is the long one."""

import random
import signal

import pytest

from tests.fuzz import harness
from tests.fuzz.mutation import mutated_bytes, mutated_tree
from tests.fuzz.targets import SHORT, TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_are_answered_or_refused(name):
    result = harness.run_target(name, SHORT[name], seed=20_000)
    assert result.good, "\n".join(f"{kind}: input {number}\n{text}" for kind, (number, text) in result.findings.items())
    assert result.inputs == SHORT[name] and result.answers + result.refusals == result.inputs
    assert result.refusals or result.inputs < 50, "nothing was refused: the changes reach nothing"


def test_a_crash_a_hang_and_an_error_are_found(monkeypatch):
    """The harness itself: a target that does all three, and continues behind each."""
    monkeypatch.setattr(harness, "STILL_S", 1.0)
    result = harness.run_target("selftest", 40, seed=1)
    kinds = " ".join(result.findings)
    assert signal.SIGSEGV.name in kinds and "hang" in kinds and "ZeroDivisionError" in kinds and "MemoryError" in kinds
    assert result.inputs == 40 and result.answers and result.refusals


def test_inputs_repeat_themselves():
    for n in range(50):
        a, b = (mutated_bytes(random.Random(n), b"length 12345 and more", [b"other"]) for _ in range(2))
        assert a == b
        a, b = (repr(mutated_tree(random.Random(n), {"a": [1, 2.0, {"b": "c"}]})) for _ in range(2))
        assert a == b
