"""A log in the forms that other tools read: Parquet, CSV, HDF5, MATLAB, MDF 4, CCSDS packets with XTCE.

`operator` is not the channels but what the operators did: a script that `simulate` and `hand-controller --source` play again.

Parquet is the form for analysis (zstd, BYTE_STREAM_SPLIT of the floating-point columns): one column per scalar channel, `name` or
`name[i]`, with unit, frame, role and meaning in the metadata of the column, and the header of the run in the metadata of the file.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hil_server.config import files
from hil_server.config.files import Done, no_progress
from hil_server.errors import UsageError
from hil_server.exchange import ccsds, mdf
from hil_server.exchange.scalars import Column, columns, plain_names
from hil_server.host.installation import with_group
from hil_server.log.header import LogHeader
from hil_server.log.reader import Log, read_log

SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "hdf5": ".h5", "mat": ".mat", "mdf": ".mf4", "ccsds": ".ccsds",
            "operator": ".operator.csv"}  # fmt: skip
ROW_GROUP = 10_000  # ticks that are written at once
TABLES = ("parquet", "csv", "hdf5")
# fields of the header that an exported file has
OF_HEADER = ("run_id", "layout_hash", "build_id", "mode", "period_ns", "created", "synthetic", "delay_ledger", "delay_origins",
             "prediction", "notes")  # fmt: skip


def export(
    log_path: str | os.PathLike[str],
    kind: str,
    target: str | os.PathLike[str] | None = None,
    channels: Sequence[str] | None = None,
    plain: bool = False,
    done: Done = no_progress,
) -> Path:
    """Writes the log as `kind` (parquet, csv, hdf5, mat, mdf, ccsds, operator) beside it or to `target`. Returns the path.

    channels: names of channels (`F_T`) or scalars (`F_T[0]`) to keep, None for all; `tick`, `time_ns` and, in tables, `seconds` always
    stay. plain: columns of a table are named `F_T_x`, which queries take without quotes. done: called with the amount done and the total.
    Raises UsageError for an unknown kind or channel, a missing library, or a target that cannot be written; LogError when the log cannot
    be read.
    """
    if kind not in WRITERS:
        raise UsageError(f"unknown format {kind!r}; there are {', '.join(WRITERS)}")
    log = read_log(log_path)
    path = Path(target) if target is not None else Path(log_path).with_suffix(SUFFIXES[kind])
    try:
        chosen = _chosen(log, channels)
        with files.whole(path) as unfinished:
            WRITERS[kind](log, _table(log, chosen, plain) if kind in TABLES else chosen, unfinished, done)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return path


def _chosen(log: Log, channels: Sequence[str] | None) -> list[Column]:
    every = list(columns(log))
    if channels is None:
        return every
    known = {column.name for column in every} | {column.channel for column in every}
    unknown = [name for name in channels if name not in known]
    if unknown:
        close = get_close_matches(unknown[0], sorted(known), n=1, cutoff=0.4)
        near = f", did you mean {close[0]}?" if close else ""
        raise UsageError(f"{log.path}: no channel {unknown[0]!r}{near}; hil-server list channels lists those of every log")
    wanted = {"tick", "time_ns", *channels}
    return [column for column in every if column.name in wanted or column.channel in wanted]


def _table(log: Log, chosen: list[Column], plain: bool) -> list[Column]:
    """The columns with the run time in seconds behind `time_ns`, under plain names where these are wanted."""
    seconds = Column("seconds", "seconds", "s", "", "input", "run time", log.time_s)
    at = next(i for i, column in enumerate(chosen) if column.name == "time_ns") + 1
    table = [*chosen[:at], seconds, *chosen[at:]]
    names = plain_names(table)
    return [replace(column, name=names[column.name]) for column in table] if plain else table


def run_facts(log: Log) -> dict[str, object]:
    """What a reader of an exported file should know of the run."""
    return run_facts_of(log.header, log.incomplete, log.end)


def run_facts_of(h: LogHeader, incomplete: list[str], end: Mapping[str, object]) -> dict[str, object]:
    """The same of a log's header, of what is missing in it, and of the facts at its end."""
    return {name: getattr(h, name) for name in OF_HEADER} | {"incomplete": incomplete, "end": end}


def _write_parquet(log: Log, chosen: list[Column], path: Path, done: Done) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([_arrow_field(pa, c) for c in chosen], metadata={"hil_server": json.dumps(run_facts(log), default=str)})
    table = pa.table([pa.array(c.values) for c in chosen], schema=schema)
    floating = [c.name for c in chosen if c.values.dtype.kind == "f"]
    whole = [c.name for c in chosen if c.values.dtype.kind != "f"]
    form = {"compression": "zstd", "use_dictionary": whole or False, "use_byte_stream_split": floating or False}
    with pq.ParquetWriter(path, schema, **form) as writer:
        for first in range(0, log.ticks, ROW_GROUP):
            writer.write_table(table.slice(first, ROW_GROUP), ROW_GROUP)
            done(first + ROW_GROUP, log.ticks)


def _arrow_field(pa: Any, c: Column) -> Any:
    about = {"unit": c.unit, "frame": c.frame, "role": c.role, "meaning": c.meaning}
    return pa.field(c.name, pa.from_numpy_dtype(c.values.dtype), nullable=False, metadata=about)


def _write_csv(log: Log, chosen: list[Column], path: Path, done: Done) -> None:
    """One line of names, then numbers that read back to the same bits; units and meanings go to `<name>.channels.csv` beside it."""
    import csv

    import pyarrow as pa
    import pyarrow.csv

    table = pa.table({c.name: c.values for c in chosen})
    with pyarrow.csv.CSVWriter(path, table.schema, write_options=pyarrow.csv.WriteOptions(quoting_style="none")) as rows:
        for first in range(0, log.ticks, ROW_GROUP):
            rows.write_table(table.slice(first, ROW_GROUP))
            done(first + ROW_GROUP, log.ticks)
    with path.with_suffix(".channels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "unit", "frame", "role", "meaning"])
        writer.writerows([c.name, c.unit, c.frame, c.role, c.meaning] for c in chosen)


def _write_hdf5(log: Log, chosen: list[Column], path: Path, done: Done) -> None:
    try:
        import h5py
    except ImportError:
        raise UsageError(f"format hdf5 needs h5py: {with_group('hdf5')}") from None
    with h5py.File(path, "w") as file:
        file.attrs["hil_server"] = json.dumps(run_facts(log), default=str)
        for i, c in enumerate(chosen, 1):
            data = file.create_dataset(c.name, data=c.values, compression="gzip", compression_opts=1, shuffle=True)
            data.attrs.update({"unit": c.unit, "frame": c.frame, "role": c.role, "meaning": c.meaning})
            done(i, len(chosen))


def _write_mat(log: Log, chosen: list[Column], path: Path, done: Done) -> None:
    """MATLAB 5: one matrix (ticks by components) per channel; names that MATLAB does not allow are changed to the next it does."""
    import numpy as np
    from scipy.io import savemat

    channels: dict[str, list[Column]] = {}
    for c in chosen:
        channels.setdefault(c.channel, []).append(c)
    data = {_matlab_name(name): np.column_stack([c.values for c in parts]) for name, parts in channels.items()}
    units = {_matlab_name(name): ",".join(c.unit for c in parts) for name, parts in channels.items()}
    savemat(path, {**data, "units": units, "run": json.dumps(run_facts(log), default=str)}, long_field_names=True, do_compression=True)


def _write_operator(log: Log, chosen: list[Column], path: Path, done: Done) -> None:
    from hil_server.operator_desk.script import rows_of_log, save

    save(path, rows_of_log(log), f"hand controllers and commands of run {log.header.run_id}")


def _matlab_name(name: str) -> str:
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)
    return plain if plain[:1].isalpha() else f"x{plain}"


WRITERS: dict[str, Callable[[Log, list[Column], Path, Done], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "hdf5": _write_hdf5,
    "mat": _write_mat,
    "mdf": mdf.write,
    "ccsds": ccsds.write,
    "operator": _write_operator,
}
