"""Checkpoints of a simulated line: a line rebuilt and put back continues as the uninterrupted one did, byte by byte."""

import tomllib

import numpy as np
import pytest

from hil_server.config import SHIPPED, load_test
from hil_server.host.build import build_id
from hil_server.line import assembly
from hil_server.line.checkpoints import Keeper, put_back, same_sample, take
from hil_server.line.free_run import blocks
from hil_server.log.checkpoint import Checkpoint

# a stand with drives, delays and noise; an ideal one with a unit of many parts; hydraulic legs; contact that rubs
CASES = {
    "docking": ("docking.toml", ["guidance.contact_max_s=3", "test.duration_max_s=9"], 1.0),
    "probe and cone": ("virtual_docking.toml", ["test.rate_hz=1000", "guidance.contact_max_s=1.5", "guidance.speed_max_m_s=0.4",
                                                "guidance.acceleration_max_m_s2=1.0", "test.duration_max_s=6"], 1.0),
    "hydraulic": ("virtual_docking_hydraulic.toml", ["test.duration_max_s=2.5"], 0.7),
    "rubbing": ("rubbing_contacts.toml", ["test.duration_max_s=4"], 1.0),
}  # fmt: skip


def config_of(name):
    file, settings, every_s = CASES[name]
    return load_test(SHIPPED / "programmes" / file, settings), every_s


def run(test, keeper=None):
    return np.concatenate([part.copy() for part in blocks(test, None if keeper is None else keeper.at_pause)])


@pytest.mark.parametrize("name", CASES)
def test_restored_is_uninterrupted(name):
    config, every_s = config_of(name)
    test = assembly.simulation(config)
    keeper = Keeper(test, build_id(), every_s)
    whole = run(test, keeper)
    plain = run(assembly.simulation(config))
    assert whole.tobytes() == plain.tobytes()  # pauses change nothing
    kept = [Checkpoint.unpacked(one.packed()) for one in keeper.waiting]
    assert [c.tick for c in kept] == sorted({c.tick for c in kept}) and len(kept) >= 3
    for checkpoint in (kept[1], kept[len(kept) // 2], kept[-1]):
        again = assembly.simulation(config)
        put_back(checkpoint, again)
        assert same_sample(again, whole[checkpoint.tick - 1])
        later = Keeper(again, build_id(), every_s)
        assert run(again, later).tobytes() == whole[checkpoint.tick :].tobytes()
        # the same checkpoints come, too: every part's state is the same
        assert [c.packed() for c in later.waiting] == [c.packed() for c in kept if c.tick > checkpoint.tick]


def test_every_part_of_a_checkpoint_is_needed():
    """What a checkpoint holds of stage, stand, plant, unit and clock is put back: without any of these the run goes another way."""
    config, _ = config_of("docking")
    test = assembly.simulation(config)
    test.line.clock.extend(7000)  # the units are in contact
    whole = run(test)
    kept = take(test, build_id(), "test")
    test.block.finished = False
    for name in ("sample", "stage.dynamics", "stage.guidance", "stage.safety", "port.1", "port.1.plant", "port.1.mechanism"):
        again, fresh = assembly.simulation(config), assembly.simulation(config).line.snapshot()
        put_back(Checkpoint(kept.tick, 0, "", build_id(), kept.parts | {name: fresh[name]}), again)
        again.line.clock.extend(20)
        right = assembly.simulation(config)
        put_back(kept, right)
        right.line.clock.extend(20)
        assert run(again).tobytes() != run(right).tobytes(), name
    assert len(whole) == 7000


def test_events_have_their_checkpoints():
    config, _ = config_of("docking")
    test = assembly.simulation(config)
    keeper = Keeper(test, build_id(), 1e4)
    records = run(test, keeper)
    causes = [c.cause for c in keeper.waiting]
    assert any("first contact" in c for c in causes) and any("capture" in c for c in causes) and any("phase contact" in c for c in causes)
    contact = next(c for c in keeper.waiting if "first contact" in c.cause)
    assert records["first_contact_time"][contact.tick - 1] >= 0.0 > records["first_contact_time"][contact.tick - 2]
    changes = np.flatnonzero(np.diff(records["phase"])) + 2  # the tick after the change
    assert set(changes.tolist()) - {len(records)} <= {c.tick for c in keeper.waiting}


def test_none_without_an_interval_and_none_of_another_line():
    config, _ = config_of("docking")
    test = assembly.simulation(config)
    keeper = Keeper(test, build_id(), 0.0)
    test.line.clock.extend(100)
    run(test, keeper)
    assert not keeper.waiting and not test.line.clock.paused and test.block.finished
    kept = take(test, build_id(), "test")
    other = assembly.simulation(config_of("hydraulic")[0])
    with pytest.raises(ValueError, match=r"not the parts of this line: port\.1\.machine"):
        put_back(kept, other)
    with pytest.raises(ValueError, match=r"stage\.dynamics has 8 bytes"):
        put_back(Checkpoint(1, 0, "", build_id(), kept.parts | {"stage.dynamics": bytes(8)}), assembly.simulation(config))


# ------------------------------------------------------------------------------------------------- a checkpoint of somebody else
def single_tests():
    files = sorted((SHIPPED / "programmes").glob("*.toml"))
    return [file for file in files if not {"programme", "campaign"} & set(tomllib.loads(file.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("file", single_tests(), ids=lambda file: file.stem)
def test_every_shipped_test_takes_its_own_checkpoint(file):
    """A whole number without declared bounds would be refused: none is forgotten, and none is too narrow."""
    test = assembly.simulation(load_test(file))
    for ticks in (0, 60):
        test.line.clock.extend(ticks)
        if ticks:
            run(test)
        before = test.line.snapshot()
        put_back(take(test, build_id(), "test"), test)
        assert test.line.snapshot() == before


def changed(parts, name, offset, word):
    block = bytearray(parts[name])
    block[offset : offset + len(word)] = word
    return parts | {name: bytes(block)}


def test_a_state_that_no_run_can_have_is_refused_by_name_and_nothing_is_changed():
    config = load_test(SHIPPED / "programmes" / "virtual_docking_thrusters.toml")
    test = assembly.simulation(config)
    test.line.clock.extend(40)
    run(test)
    kept = take(test, build_id(), "test")
    head = 64 * 32 + 512 * 8  # behind the valves and the queue: the place in it
    finite = len(kept.parts["stage.dynamics"]) // 2 // 8 * 8
    for number in (2**31 - 1, -1, 512):
        word = number.to_bytes(4, "little", signed=True)
        with pytest.raises(ValueError, match=rf"stage\.control: craft\.valves\.head is {number}, limit 0 \.\.\. 511"):
            put_back(Checkpoint(kept.tick, 0, "", build_id(), changed(kept.parts, "stage.control", head, word)), test)
    for parts, reported in (
        (changed(kept.parts, "stage.dynamics", finite, np.float64("nan").tobytes()), r"stage\.dynamics: .* is nan, limit a finite number"),
        (kept.parts | {"stage.control": kept.parts["stage.control"][:-8]}, r"stage\.control: snapshot has"),
        (kept.parts | {"sample": kept.parts["sample"][:-8]}, "sample"),
    ):
        with pytest.raises(ValueError, match=reported):
            put_back(Checkpoint(kept.tick, 0, "", build_id(), parts), test)
    for bad, reported in ((Checkpoint(kept.tick, 0, "", "another", kept.parts), "it is of build 'another', limit this build"),
                      (Checkpoint(-1, 0, "", build_id(), kept.parts), "tick -1, limit"),
                      (Checkpoint(2**70, 0, "", build_id(), kept.parts), "limit")):  # fmt: skip
        with pytest.raises(ValueError, match=reported):
            put_back(bad, test)
    put_back(kept, test)
    assert take(test, build_id(), "test").parts == kept.parts
