"""Makes a whole log of one that was cut."""

import os

from hil_server.log.format import LogError
from hil_server.log.reader import Log, read_log
from hil_server.log.writer import LogWriter


def recover(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Log:
    """Writes what can be read of `source` to a new, whole file `target`, marked as incomplete. Returns what was read.

    Checksums of records are carried over as they were, so that damage stays visible. Raises LogError.
    """
    log = read_log(source)
    try:
        writer = LogWriter(target, log.header)
        writer.reasons = [*log.incomplete, "recovered from a damaged file"] if log.incomplete else []
        writer.copy(log.records)
        writer.lost_ticks = int(log.end.get("lost_ticks", 0))
        writer.close({key: value for key, value in log.end.items() if key != "lost_ticks"})
    except OSError as error:
        raise LogError(f"{target}: {error.strerror or error}") from error
    return log
