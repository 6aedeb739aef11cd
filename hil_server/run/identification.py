"""The identification programme on a stand: the run in air whose log `hil_server.identify.drives` evaluates, of a stand that feels its
load `hil_server.identify.stand`."""

from collections.abc import Callable
from pathlib import Path

from hil_server.config import SHIPPED, TestConfig, load_test, named_file
from hil_server.config.kinds import misfit
from hil_server.errors import CUT_THE_POWER, ConfigurationError, DeviceError
from hil_server.identify.drives import Identification, identify_log
from hil_server.identify.stand import StandIdentification, identify_stand_log, is_hydraulic
from hil_server.interrupts import INTERRUPTED
from hil_server.line import assembly
from hil_server.run.progress import working
from hil_server.run.session import Options, run_live, simulate
from hil_server.values import Document

PROGRAMME = "programmes/identify.toml"
HYDRAULIC = "programmes/identify_hydraulic.toml"
# the tap of a virtual stand: s after the pause has begun, its length, and N, N.m at the load cell
TAP_AFTER_S, TAP_S, TAP = 0.5, 0.004, (900.0, 700.0, -700.0, 160.0, -160.0, 160.0)


def run_on(stand: str | Path, overrides: tuple[str, ...] = (), out: str | None = None, live: bool = False,
           quiet: bool = True) -> tuple[Identification, str]:  # fmt: skip
    """Runs the identification programme on a stand file (in process when it has only a virtual stand), and evaluates its log.

    Returns the result and the log. Raises ConfigurationError, DeviceError, TripError through the session."""
    config = load_test(SHIPPED / PROGRAMME, (of_stand(stand), *overrides))
    options = Options(out=out, quiet=quiet, report=False, force=True)
    summary = (run_live if live or config.setup.stand.hardware else simulate)(config, options)
    demand_whole(summary)
    with working("fit", quiet):
        return identify_log(summary["log"]), str(summary["log"])


def feels_load(stand: str | Path) -> bool:
    """Whether a stand file is that of a hydraulic stand. Raises ConfigurationError."""
    return is_hydraulic(load_test(SHIPPED / HYDRAULIC, (of_stand(stand),)).stand)


def run_on_hydraulic(stand: str | Path, overrides: tuple[str, ...] = (), out: str | None = None, live: bool = False,
                     say: Callable[[str], None] = lambda _: None, quiet: bool = True) -> tuple[StandIdentification, str]:  # fmt: skip
    """As `run_on`, of a hydraulic stand. The unit of a stand in process is tapped by itself; on others a person taps it in the pause at the
    end of the run."""
    config = load_test(SHIPPED / HYDRAULIC, (of_stand(stand), *overrides))
    live = live or config.setup.stand.hardware
    options = Options(out=out, quiet=quiet, report=False, force=True)
    if live:
        summary = run_live(config, options)
    else:
        summary = simulate(load_test(SHIPPED / HYDRAULIC, (of_stand(stand), *overrides, *tap(config))), options)
    demand_whole(summary)
    with working("fit", quiet):
        return identify_stand_log(summary["log"], say=say), str(summary["log"])


def demand_whole(summary: Document) -> None:
    """A run that was parked, as by Ctrl-C, has not moved the drives through all that is looked at. Raises KeyboardInterrupt; DeviceError
    for drives that are not confirmed off, before anything else is done with the stand."""
    if summary["not_confirmed"]:
        raise DeviceError(f"{'; '.join(summary['not_confirmed'])}: {CUT_THE_POWER}; log {summary['log']}")
    if summary["end"] == "stopped" or summary["exit_code"] == INTERRUPTED:
        raise KeyboardInterrupt


def tap(config: TestConfig) -> tuple[str, ...]:
    """Overrides that tap the unit on the load cell of a stand in process, in the pause that the run makes for it."""
    setup = config.setup
    schedule = assembly.build_part(*setup.stages["guidance"], {"period_s": 1.0 / setup.test.rate_hz}).schedule
    if "tap" not in schedule or (setup.stand.virtual is not None and setup.stand.virtual.keys.get("faults")):
        return ()
    begin = schedule["tap"][0] + TAP_AFTER_S
    faults = [f'{{fault="external_force", at_s={at:.4f}, index={i}, value={force}}}'
              for at, on in ((begin, 1.0), (begin + TAP_S, 0.0)) for i, force in enumerate(on * f for f in TAP)]  # fmt: skip
    return (f"stand.virtual.faults=[{', '.join(faults)}]",)


def of_stand(stand: str | Path) -> str:
    """The override that runs a programme on another stand. Raises ConfigurationError for a file that is not a stand."""
    path = named_file(stand, "stands")
    if why := misfit(path, "stand"):
        raise ConfigurationError(why)
    return f'test.stand="{path.resolve() if path.exists() else stand}"'


def in_six_directions(log: str | Path) -> bool:
    """Whether a log is that of a run in six directions. Raises ConfigurationError."""
    from hil_server.line.run_header import configuration
    from hil_server.log.reader import read_log

    return bool(configuration(read_log(log)).setup.stages["guidance"].keys.get("six_rate_rms_m_s"))
