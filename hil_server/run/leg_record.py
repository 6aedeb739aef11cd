"""That the legs of a stand were moved one by one and were the right ones (`hil_server.run.leg_check`): kept in the user's state folder, for
the signature of the stand file, as long as the machine runs, a day at most. A run on hardware asks for it."""

import json
from pathlib import Path

from hil_server.config import files
from hil_server.errors import ConfigurationError
from hil_server.log.header import FORCED
from rt_kernels.doors import time

LASTS_S = 24 * 3600.0


def keep(checksum: str, log: str) -> None:
    """Notes that each leg of the stand with this checksum is the right one, as `log` shows. Raises OSError."""
    place = _place(checksum)
    place.parent.mkdir(parents=True, exist_ok=True)
    with files.whole(place) as unfinished:
        unfinished.write_text(json.dumps({"boot": _boot(), "time": time.time(), "log": log}))


def demand(checksum: str, file: str, forced: bool) -> list[str]:
    """Notes for the log of a run on hardware. Raises ConfigurationError where nothing is kept for this stand, unless forced."""
    try:
        kept = json.loads(_place(checksum).read_text())
        if kept["boot"] == _boot() and 0.0 <= time.time() - float(kept["time"]) <= LASTS_S:
            return [f"each leg was moved alone and was the right one: {kept['log']}"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing kept, or nothing that can be read
    words = "that each leg is the right one has not been looked at since this machine was started, a day ago at most"
    if not forced:
        raise ConfigurationError(f"{file}: {words}: hil-server legs {file} (--force runs anyway)")
    return [f"{FORCED}: {words}"]


def _place(checksum: str) -> Path:
    folder = Path.home() / ".local" / "state" / "hil-server"
    return folder / f"legs-{checksum.rpartition(':')[2][:32]}.json"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
