"""The port of a recorded operator: its file (`hil_server.operator_desk.script`) as the commands and hand controllers of a simulation."""

from collections.abc import Sequence
from pathlib import Path

from hil_server.bus.commands import CommandError, encode
from hil_server.errors import ConfigurationError
from hil_server.operator_desk.script import Row, load, parse, rows_array
from hil_server.values import Given, Value
from rt_kernels.parameters import Parameter, TunableEntry, checked
from rt_kernels.recorded_operator import Script
from rt_kernels.ring import SharedBlock

ROW = (
    Parameter("time_s", "float", "s", "run time at which it is given", low=0.0, high=1e5),
    Parameter("command", "str", "-", "name of the command"),
    Parameter("parameter", "str", "-", "of the command tune: what it changes, by name (compensation.lead_factor)", ""),
    Parameter("arguments", "floats", "-", "its arguments, as `hil-server command --help` shows them; of tune: the new value", ()),
)


class ScriptPort(Script):
    """The port of a recorded operator: role `commands`, part `script`; a file, commands in the test file itself, or both."""

    PARAMETERS = (
        Parameter("file", "str", "-", "file of the recorded operator, beside the test file or among the shipped ones", None),
        Parameter("data", "str", "-", "what stands in it: a log has it", ""),
        Parameter("command", "tables", "-", "commands by run time: time_s, command, parameter (of tune), arguments", (), of=ROW),
        *Script.PARAMETERS,
    )
    CONTEXT = ("block", "folders", "tunables")

    def __init__(self, *, block: SharedBlock, folders: Sequence[Path], tunables: Sequence[TunableEntry] = (), **given: Value) -> None:
        keys = checked(ScriptPort.PARAMETERS, given)
        file, rows = keys["file"], [_row(i, table) for i, table in enumerate(keys["command"])]
        if keys["data"]:
            rows += parse(keys["data"], file or "commands.data")
        elif file is not None:
            found = next((folder / file for folder in folders if (folder / file).is_file()), None)
            if found is None:
                below = f"a file below {folders[0]} or {folders[-1]}"
                raise ConfigurationError(f"commands.file: no such file, value {file!r}, limit {below}, unit -")
            rows += load(found)
        rows.sort(key=lambda row: row.time_s)
        super().__init__(rows_array(rows, tunables), block, **{p.key: keys[p.key] for p in Script.PARAMETERS})


def _row(number: int, table: Given) -> Row:
    """One command of the test file. Raises ConfigurationError that names it."""
    name, parameter = table["command"], table["parameter"]
    try:
        values = encode(name, [parameter, *table["arguments"]] if parameter else table["arguments"])[1]
    except CommandError as error:
        raise ConfigurationError(f"commands.command[{number}]: {error}") from None
    return Row(table["time_s"], name, values, parameter=parameter)
