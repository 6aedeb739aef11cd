"""The identification programme on a stand: the run in air whose log `hil_server.analysis.identify` evaluates."""

from pathlib import Path

from hil_server.analysis.identify import Identification, identify_log
from hil_server.config.loader import SHIPPED, load_test
from hil_server.run.session import Options, run_live, simulate

PROGRAMME = "programmes/identify.toml"


def run_on(stand: str | Path, overrides: tuple[str, ...] = (), out: str | None = None, live: bool = False) -> tuple[Identification, str]:
    """Runs the identification programme on a stand file (in process when it has only a virtual stand), and evaluates its log.

    Returns the result and the log. Raises ConfigurationError, DeviceError, TripError through the session."""
    path = Path(stand)
    config = load_test(SHIPPED / PROGRAMME, (f'test.stand="{path.resolve() if path.exists() else stand}"', *overrides))
    options = Options(out=out, quiet=True, report=False, force=True)
    summary = (run_live if live or "drives" in config.stand else simulate)(config, options)
    return identify_log(summary["log"]), str(summary["log"])
