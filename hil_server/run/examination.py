"""A file looked at without running it: a test, every variant of a programme; a stand, a craft or a docking unit as the shipped docking
would have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil_server.config import TestConfig, crafts, extends, load_test, named_file, toml_text
from hil_server.config.kinds import kind_of
from hil_server.config.loader import DEFAULT_TEST
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.reach import unreached

# Kind of a file that a test names → the key that names it, and what else the shipped docking needs to have it.
NAMED_BY = {
    "stand": ("test.stand", ()),
    "craft": ("test.active_vehicle", ()),
    # the longest unit is clear of the other there, and the tick the shortest
    "mechanism": ("test.mechanism", ("test.stand=stands/ideal_stand_long_unit.toml", "test.rate_hz=4000.0")),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One test of a file. label: what it is in the file, as a variant's number; R1, R2: criticality of its initial conditions."""

    label: str
    config: TestConfig
    R1: float
    R2: float
    expect: str = ""


@dataclass(frozen=True)
class Examined:
    """A file without faults. kind: of `hil_server.config.kinds`; rows: the tests that it makes; about: what else there is to say."""

    kind: str
    name: str
    rows: tuple[Row, ...]
    about: tuple[str, ...] = ()


def examine(file: str | Path | None, overrides: Sequence[str] = ()) -> Examined:
    """Reads the file (none: the shipped docking) and assembles every test that it makes, without opening a device. Raises
    ConfigurationError with all faults."""
    path = DEFAULT_TEST if file is None else named_file(file)
    kind = kind_of_file(path)
    if kind == "programme":
        return _programme(path, overrides)
    if kind == "craft" and (why := _not_a_vehicle(path)):
        return Examined(kind, path.stem, (), (why,))
    more: Sequence[str] = ()
    if kind in NAMED_BY:
        key, needed = NAMED_BY[kind]
        more = (*needed, f"{key}={toml_text.value(str(path.resolve()))}")
        path, name = DEFAULT_TEST, path.stem
    config = load_test(path, [*more, *overrides])
    build(config)
    row = row_of(config.setup.test.name, config)
    if kind not in NAMED_BY:
        return Examined("test", config.setup.test.name, (row,))
    return Examined(kind, name, (row,), (f"assembled in the shipped test {DEFAULT_TEST.name}",))


def kind_of_file(file: str | Path | None) -> str:
    """Kind of a file as the command line names it; "test" of none and of an unreadable one, whose loader says what is wrong."""
    try:
        return kind_of(extends.tables_of(DEFAULT_TEST if file is None else named_file(file))) or "test"
    except ConfigurationError:
        return "test"


def row_of(label: str, config: TestConfig, expect: str = "") -> Row:
    """A test with the criticality of its initial conditions."""
    return Row(label, config, *config.setup.criticality, expect)


def build(config: TestConfig) -> None:
    """Builds every part once: what only its constructor can refuse is refused here, not at the run; then plays park, approach and first
    contact through the kinematics. Raises ConfigurationError."""
    stand = config.setup.stand
    if stand.virtual is not None:
        _ = stand.played_sensor
        context = assembly.simulation(config).context
    else:
        context = assembly.base_context(config)
    guidance = assembly.part_of(config, "guidance", context)
    if lines := unreached(context["platform"], context["mounting"], guidance, context["start"].X_TA):
        raise ConfigurationError(f"{config.paths.get('stand', 'stand')}: mounting: {line}" for line in lines)


def _programme(path: Path, overrides: Sequence[str]) -> Examined:
    from hil_server.run.programme import assemble_all, load_programme

    name, variants = load_programme(path, overrides)
    assemble_all(path, variants, build)
    return Examined("programme", name, tuple(row_of(v.number, v.config, v.expect) for v in variants))


def _not_a_vehicle(path: Path) -> str:
    """Why a sound craft file cannot be flown in a docking, as an arm on a fixed base; empty for one that can, or whose own faults are found
    by the test that names it. Raises ConfigurationError for an arm or a craft with faults."""
    from hil_server.predict.craft_view import read, view

    if "body" not in extends.tables_of(path):
        return ""
    made, dropped, modal = read(path)
    why = [fault.partition(": ")[2] or fault for fault in crafts.unfit(made)]
    if why:
        view(made, dropped, modal)
    return f"not a vehicle of a docking: {'; '.join(why)}" if why else ""
