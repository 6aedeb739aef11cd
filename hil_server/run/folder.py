"""Where a run's log goes: a folder of its own, made late and taken away again when the run does not begin."""

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from hil_server.errors import ConfigurationError
from rt_kernels.doors import time

logger = logging.getLogger(__name__)


NAME_MAX = 100  # characters of a name in a path


def as_file_name(name: str) -> str:
    """The name as one part of a path: a log, and with it the name in it, may be somebody else's, and no name leads out of its folder."""
    return re.sub(r"[^\w.+=-]+", "-", name)[:NAME_MAX].strip(".-") or "unnamed"


def new_log(out: str | None, name: str) -> Path:
    """Where the run's log goes, in a folder of its own. A folder that has a log already gets a number behind its name, which
    is reported where the folder was given.

    Nothing is made here: what is refused before the run leaves nothing behind."""
    wanted = Path(out) if out else Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{as_file_name(name)}"
    folder, number = wanted, 1
    while (folder / "run.mcap").exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    if out and folder != wanted:
        logger.warning("%s has the log of another run: log and report of this one go to %s", wanted, folder)
    return folder / "run.mcap"


@contextlib.contextmanager
def unless_begun(log: Path) -> Iterator[None]:
    """The way from a run's log to its first tick: when that is not reached, the log, which has nothing in it, is taken away again, and the
    folders that were made for it as far as they are empty."""
    made = [folder for folder in log.absolute().parents if not folder.exists()]
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            log.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()
        raise


@contextlib.contextmanager
def folder_of(log: Path) -> Iterator[None]:
    """Makes the log's folder; when the arming fails after all, what was made is taken away again. Raises ConfigurationError."""
    with unless_begun(log):
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise ConfigurationError(f"--out {log.parent}: {error.strerror or error}: choose a folder that can be written to") from error
