"""What a log knows of its run before the first tick: made from the line, and read again as its configuration.

A field of the header is declared, stored and read in `hil_server.log.header`; `header` is where it gets its value.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Protocol

from hil_server.config import TestConfig, test_from_toml
from hil_server.errors import ConfigurationError
from hil_server.host.build import build_id
from hil_server.line.assembly import Assembly
from hil_server.log.header import LogHeader
from hil_server.log.reader import Log
from hil_server.log.record import aux_channels

CONFIGURATION = "configuration.toml"
WATCHDOG = "watchdog"  # a field that logs have since power is taken off drives


class Foreseen(Protocol):
    """A prediction (`hil_server.predict.prediction.Prediction`)."""

    def as_dict(self) -> dict[str, object]:
        """As the log keeps it."""


def header(test: Assembly, run_id: str, mode: str, host: Mapping[str, object], foreseen: Foreseen | None = None) -> LogHeader:
    """Everything that a log must know of a run before its first tick. foreseen: its prediction."""
    config = test.config
    return LogHeader(
        run_id=run_id,
        build_id=build_id(),
        mode=mode,
        period_ns=test.period_ns,
        configuration={CONFIGURATION: config.as_toml(), **config.sources},
        aux=aux_channels(test.aux),
        tunables=[one.entry() for one in test.tunables],
        host=dict(host),
        delay_ledger=test.ledger.as_dict(),
        delay_origins=test.ledger.origins(),
        prediction=foreseen.as_dict() if foreseen is not None else {},
        calibration={"context": {"delays": asdict(test.context["delays"]), "sensor_scale": test.context["sensor_scale"]}},
        notes=[
            *([config.setup.test.notes] if config.setup.test.notes else []),
            *([words] if (words := test.ledger.lead_in_words()) else []),
            *(f"{role}: {note}" for role, part in test.line.stages.items() for note in getattr(part, "notes", ())),
        ],
        synthetic=config.setup.synthetic,
        initial_record=test.line.sample.tobytes(),
        states={role: part.dump() for role, part in test.line.stages.items()},
    )


def configuration(log: Log, overrides: tuple[str, ...] = ()) -> TestConfig:
    """The logged configuration with overrides. Raises ConfigurationError when the log has none."""
    text = log.header.configuration.get(CONFIGURATION)
    if text is None:
        raise ConfigurationError(f"{log.path}: the log holds no configuration: it cannot be replayed")
    former = WATCHDOG in (log.absent or ())
    return replace(test_from_toml(text, overrides, label=log.path.name, former=former), of_log=True)
