"""A log as ASAM MDF 4: channel groups by stage, units, meanings, the words of codes; for tools of the measurement trade.

One group for each stage of the tick and one for the auxiliary channels, each with the run time as its master channel. A channel of several
numbers is one signal for each, `F_T[0]`. Of a code (phase, motion, ...) the words stand beside the numbers as a conversion, which tools
show.
"""

from pathlib import Path

from hil_server.config.files import Done, no_progress
from hil_server.errors import UsageError
from hil_server.exchange.scalars import Column
from hil_server.log.reader import Log
from rt_kernels.layout import CODES, FIELDS, WORDS

STAGES = {name: stage for name, _, _, _, _, stage, *_ in FIELDS}


def write(log: Log, chosen: list[Column], path: Path, done: Done = no_progress) -> None:
    """Writes the columns. Raises UsageError without asammdf, OSError when the file cannot be written."""
    try:
        from asammdf import MDF, Signal
    except ModuleNotFoundError:
        raise UsageError("format mdf needs asammdf: pip install 'hil-server[analyst]'") from None
    groups: dict[str, list[Column]] = {}
    for column in chosen:
        groups.setdefault(STAGES.get(column.channel, "parts"), []).append(column)
    path.open("wb").close()  # so that a folder that is not there is an OSError
    with MDF(version="4.11") as file:
        file.header.comment = f"run {log.header.run_id}, {log.header.mode}"
        file.header.abs_time = round(log.header.created * 1e9)
        for i, (stage, columns) in enumerate(groups.items(), 1):
            signals = [
                Signal(c.values, log.time_s, unit=c.unit, name=c.name, comment=_comment(c), conversion=_words(c.channel)) for c in columns
            ]
            file.append(signals, acq_name=stage, comment=stage, common_timebase=True)
            done(i, len(groups) + 1)  # one more: what packs them at the end
        saved = Path(file.save(path.with_suffix(".mf4"), overwrite=True, compression=2))  # asammdf knows no other suffix
    if saved != path:
        saved.replace(path)


def _comment(c: Column) -> str:
    return f"{c.meaning} [{c.frame}]" if c.frame else c.meaning


def _words(channel: str) -> dict[str, object] | None:
    """The conversion of a code to its word, None for other channels."""
    kind, group = WORDS.get(channel, ("", ""))
    if kind != "code":
        return None
    codes = CODES[group]
    conversion: dict[str, object] = {}
    for i, (word, value) in enumerate(codes.items()):
        conversion |= {f"val_{i}": float(value), f"text_{i}": word.encode()}
    return conversion | {"default": b""}


