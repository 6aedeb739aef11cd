"""A run out of its log: what more than one figure or page takes from it, each worked out once, at its first use."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.config import TestConfig
from hil_server.errors import HilError
from hil_server.judge.contacts import Contact, contacts_of
from hil_server.judge.faults import Fault, faults_of
from hil_server.line.run_header import CONFIGURATION, configuration
from hil_server.log.moments import Moments, Peaks, peaks_of
from hil_server.log.reader import Log
from hil_server.requirements import Result, of_log
from rt_kernels.context import Vehicles


@dataclass(frozen=True, eq=False)
class Run:
    """A run by its log: whole, thinned, cut, branched or imported."""

    log: Log

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole configuration as plain tables; empty when the log has none that can be read."""
        try:
            return tomllib.loads(self.log.header.configuration.get(CONFIGURATION, ""))
        except tomllib.TOMLDecodeError:
            return {}  # what cannot be read says nothing

    @cached_property
    def configuration(self) -> TestConfig:
        """The configuration, checked. Raises ConfigurationError when the log has none, or one that is not valid today."""
        return configuration(self.log)

    @cached_property
    def config(self) -> TestConfig | None:
        """The same; None in place of the error."""
        try:
            return self.configuration
        except HilError:
            return None

    @cached_property
    def left_out(self) -> np.ndarray:
        """Whether the log leaves out ticks between a record and the next one, (n - 1,) bool."""
        r = self.log.records
        found: np.ndarray = np.diff(r["tick"]) > np.maximum(r["periods"][1:], 1)
        return found

    @cached_property
    def thinning(self) -> int:
        """1 where the log holds every tick that was run, n of a thinned one that holds one tick in n (and those in which something
        changes)."""
        every, gaps = self.document.get("telemetry", {}).get("log_every", 1), self.left_out
        if not isinstance(every, int) or every <= 1 or not gaps.any():
            # a log that somebody else has thinned: most of its steps leave something out
            every = int(np.median(np.diff(self.log.records["tick"]))) if len(gaps) and gaps.mean() > 0.5 else 1
        return every

    @cached_property
    def moments(self) -> np.ndarray:
        """Moment of the docking of each record, places in `hil_server.log.moments.MOMENTS`, (n,)."""
        return Moments().of(self.log.records)

    @cached_property
    def peaks(self) -> Peaks:
        """Largest loads by moment of the docking."""
        return peaks_of(self.log.records)

    @cached_property
    def faults(self) -> list[Fault]:
        """Faults and notes, first cause first."""
        return faults_of(self.log)

    @cached_property
    def contacts(self) -> list[Contact]:
        """Every contact, in the order of time."""
        r = self.log.records
        controlled = r["contact"].any() and (r["control_A"].any() or r["control_T"].any())
        return contacts_of(self.log, self.left_out, self.moments, self._vehicles() if controlled else None)

    def _vehicles(self) -> Vehicles | None:
        """The vehicles where they fly free; None where that is not known."""
        if self.config is None:
            return None
        dynamics = registry.part("dynamics", self.config.part("dynamics")[0])
        return self.config.setup.vehicles if getattr(dynamics, "FREE_VEHICLES", False) else None

    @cached_property
    def requirements(self) -> list[Result]:
        """Verdicts on the requirements of the test, in the order of its file. Raises ConfigurationError for a channel that the log does not
        have."""
        return of_log(self.log)
