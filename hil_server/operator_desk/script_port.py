"""The port of a recorded operator: its file (`hil_server.operator_desk.script`) as the commands and hand controllers of a simulation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hil_server.errors import ConfigurationError
from hil_server.operator_desk.script import load, rows_array
from rt_kernels.parameters import Parameter, checked
from rt_kernels.recorded_operator import Script


class ScriptPort(Script):
    """The port of a recorded operator: role `commands`, part `script`."""

    PARAMETERS = (
        Parameter("file", "str", "-", "file of the recorded operator, beside the test file or among the shipped ones"),
        *Script.PARAMETERS,
    )
    CONTEXT = ("block", "folders")

    def __init__(self, *, block: Any, folders: Sequence[Path], **given: Any) -> None:
        keys = checked(ScriptPort.PARAMETERS, given)
        file = keys["file"]
        found = next((folder / file for folder in folders if (folder / file).is_file()), None)
        if found is None:
            below = f"a file below {folders[0]} or {folders[-1]}"
            raise ConfigurationError(f"commands.file: no such file, value {file!r}, limit {below}, unit -")
        super().__init__(rows_array(load(found)), block, **{p.key: keys[p.key] for p in Script.PARAMETERS})
