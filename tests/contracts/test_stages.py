"""What every stage in the registry promises, whatever it computes. A new line in the registry is tested the moment it is there."""

import ctypes

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import check_part
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from rt_kernels.layout import FIELDS, SAMPLE_DTYPE
from rt_kernels.stages import STAGE_ROLES
from tests.contracts.allocator import in_use, needs_mallinfo2

STAGES = [(role, name) for role in STAGE_ROLES for name in registry.PARTS[role]]
ALL_PARTS = [(role, name) for role, names in registry.PARTS.items() for name in names]
all_stages = pytest.mark.parametrize(("role", "name"), STAGES)


def run(part, stream):
    """The bytes of all samples and auxiliary channels after the part has been through them."""
    aux = part.step(stream[0])
    out = [stream[0].tobytes() + aux.tobytes()]
    for sample in stream[1:]:
        part.step(sample, aux)
        out.append(sample.tobytes() + aux.tobytes())
    return out


@all_stages
def test_deterministic(build, stream, role, name):
    first, second = build(role, name), build(role, name)
    assert run(first, stream(60)) == run(second, stream(60))
    assert first.snapshot() == second.snapshot()


@all_stages
def test_depends_on_its_inputs(build, stream, role, name):
    """The test above must be able to fail: other samples give other bytes."""
    assert run(build(role, name), stream(60, seed=1)) != run(build(role, name), stream(60, seed=2))


@all_stages
def test_writes_only_its_own_fields(build, stream, role, name):
    part = build(role, name)
    own = {field for field, *rest in FIELDS if rest[4] == role}
    written = set()
    for sample in stream(60):
        before = sample.copy()
        part.step(sample)
        for field in SAMPLE_DTYPE.names:
            if sample[field].tobytes() != before[field].tobytes():
                written.add(field)
        assert written <= own, f"{role}.{name} writes {sorted(written - own)}"
    assert written, f"{role}.{name} writes nothing"


@all_stages
def test_snapshot_and_restore_give_the_same_bits(build, stream, role, name):
    part = build(role, name)
    run(part, stream(40, seed=3))
    snapshot = part.snapshot()
    once = run(part, stream(40, seed=4))
    part.restore(snapshot)
    assert run(part, stream(40, seed=4)) == once
    # the snapshot is the whole state: another instance continues from it
    other = build(role, name)
    other.restore(snapshot)
    assert run(other, stream(40, seed=4)) == once


@all_stages
def test_zero_input_gives_finite_output(build, simulated, role, name):
    """The sample before the first tick: zeros, identity poses, no device has answered yet."""
    part, sample = build(role, name), simulated.line.sample
    for _ in range(3):
        aux = part.step(sample)
        assert np.isfinite(aux).all()
        for field in SAMPLE_DTYPE.names:
            assert np.isfinite(sample[field]).all(), field


@needs_mallinfo2
def test_in_use_sees_an_allocation():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    before = in_use()
    blocks = [libc.malloc(40) for _ in range(1000)]
    assert in_use() - before >= 40_000
    for block in blocks:
        libc.free(block)


@needs_mallinfo2
@all_stages
def test_keeps_no_memory(build, stream, role, name):
    """Ten thousand steps; the smallest block that malloc gives is 32 bytes, so one in ten steps would show."""
    part = build(role, name)
    sample = stream(1)[0]
    aux = part.step(sample)
    for _ in range(200):
        part.step(sample, aux)
    before = in_use()
    for _ in range(10_000):
        part.step(sample, aux)
    assert in_use() - before < 32_000


@pytest.mark.parametrize(("role", "name"), ALL_PARTS)
def test_every_wrong_parameter_is_named(keys, role, name):
    good = keys(role, name)
    for p in registry.part(role, name).PARAMETERS:
        wrong = {"str": 3, "bool": "yes", "table": 3}.get(p.kind, "three")
        for value in [wrong, *_numbers_beyond(p)]:
            with pytest.raises(ConfigurationError) as caught:
                check_part(role, name, good | {p.key: value}, "file.toml")
            unit = "" if p.unit == "-" or p.kind in ("str", "bool", "table") else p.unit
            reported = [line for line in caught.value.faults if f"{name}.{p.key}" in line and "must be" in line and unit in line]
            assert reported, (p.key, value, caught.value.faults)
        if p.required:
            with pytest.raises(ConfigurationError, match=f"{p.key}: required key is missing"):
                check_part(role, name, {k: v for k, v in good.items() if k != p.key})
    with pytest.raises(ConfigurationError, match="no_such_key: unknown key"):
        check_part(role, name, good | {"no_such_key": 1})


def _numbers_beyond(p):
    """Values that the declaration forbids."""

    def shaped(number):
        if p.kind == "floats":
            return [number] * (p.shape or 3)
        if p.kind == "rows":
            rows, columns = p.shape or (2, 2)
            return [[number] * columns for _ in range(rows or 2)]
        return number

    if p.kind in ("float", "int", "floats", "rows"):
        yield from (shaped(float("nan")), shaped(float("inf")))
        step = 1 if p.kind == "int" else 1e-3
        if p.low is not None:
            yield shaped(p.low - step - abs(p.low))
        if p.high is not None:
            yield shaped(p.high + step + abs(p.high))
    if p.kind == "floats" and p.shape:
        yield [0.5 * ((p.low or 0.0) + (p.high or 0.0))] * (p.shape + 1)
    if p.choices:
        yield "no such choice"


@pytest.mark.parametrize(("role", "name"), ALL_PARTS)
def test_context_is_known_to_the_assembly(simulated, role, name):
    """What a part asks for beside its own keys must be what the assembly can give."""
    wanted = set(getattr(registry.part(role, name), "CONTEXT", ()))
    assert wanted <= set(simulated.context), f"{role}.{name} wants {sorted(wanted - set(simulated.context))}"


def test_a_constructor_that_refuses_is_a_configuration_error(simulated, monkeypatch):
    class Refusing:
        PARAMETERS = ()

        def __init__(self):
            raise ValueError("gain contradicts order")

    monkeypatch.setattr(registry, "part", lambda role, name: Refusing)
    with pytest.raises(ConfigurationError, match="gain contradicts order"):
        assembly.build_part("compensation", "refusing_part_of_tests", {}, simulated.context)


def whole_numbers(value, path=""):
    """{path: number} of everything in a part's fields that is no floating-point number."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, item in items for k, v in whole_numbers(item, f"{path}.{key}").items()}
    return {} if isinstance(value, float) else {path: value}


@all_stages
def test_a_log_brings_numbers_but_never_steers(build, role, name):
    """Words of the logged block are replaced: the part refuses, and is as it was, or every whole number in it is the one it had."""
    part = build(role, name)
    block, built = part.dump(), whole_numbers(part.fields())
    assert part.fields() is not None
    part.load(block)
    assert part.dump() == block
    last = len(block) // 4
    places = {*np.random.default_rng(5).permutation(last)[:24], *range(min(last, 12)), *range(max(0, last - 12), last)}
    for place in sorted(places):
        for word in (1, 0x7FFFFFF0):
            altered = bytearray(block)
            altered[4 * place : 4 * place + 4] = word.to_bytes(4, "little")
            try:
                part.load(bytes(altered))
            except ValueError:
                assert part.dump() == block
                continue
            assert whole_numbers(part.fields()) == built, f"{role}.{name}: word {place}"
            part.load(block)
    with pytest.raises(ValueError, match="bytes"):
        part.load(block + bytes(8))


def test_a_part_that_does_not_say_what_its_block_holds_takes_only_its_own(build):
    from rt_kernels.block_check import first_difference

    block = build("compensation", "none").dump()
    assert first_difference(block, block) == ""
    assert "not the one" in first_difference(block, block[:-1] + b"\x01")
