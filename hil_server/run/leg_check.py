"""Which leg moves? Each leg is moved a little, alone, and it is looked at which measured length has followed.

The run is one in air: the guidance `excitation` stands still in poses that differ from the park pose by one leg each. Its log is evaluated
(`found_in`). Seen are setpoints and lengths that belong to different legs, a leg that does not move, and one that moves by another way. Two
whole drives that are exchanged with their transducers agree with themselves: their identity distinguishes them, and who looks at the stand
while leg after leg moves.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hil_server import registry
from hil_server.config import SHIPPED, TestConfig, load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.overlap import park_pose
from hil_server.log.reader import Log, read_log
from hil_server.run.identification import PROGRAMME, demand_whole, of_stand
from hil_server.run.leg_record import keep
from hil_server.run.session import Options, run_live, simulate
from rt_kernels.algebra.arrays import pose_inverse, pose_multiply, quat_logarithm
from rt_kernels.layout import CODES

WAY_M = 0.002
MOVE_S, STILL_S = 1.0, 0.5
SHARE = 0.2  # of the way: a leg that is further from where it should be is not as it should be


@dataclass(frozen=True)
class LegMove:
    """What the legs did while leg `leg` was to move, from 0. way_m: change of each measured length, (6,)."""

    leg: int
    way_m: tuple[float, ...]

    @property
    def good(self) -> bool:
        """Whether this leg has moved as it was sent, and no other one."""
        return all(abs(way - (WAY_M if i == self.leg else 0.0)) <= SHARE * WAY_M for i, way in enumerate(self.way_m))

    def in_words(self) -> str:
        """One line: what moved, and what that may mean."""
        way = [round(1e3 * x, 2) + 0.0 for x in self.way_m]
        others = [i for i in range(6) if i != self.leg]
        most = max(others, key=lambda i: abs(way[i]))
        own = f"leg {self.leg + 1}: moved by {way[self.leg]:.2f} mm"
        if self.good:
            return f"{own}, the others by at most {abs(way[most]):.2f} mm"
        sent = f", was sent by {1e3 * WAY_M:.2f} mm"
        another = abs(way[most]) > SHARE * 1e3 * WAY_M
        if another and abs(way[most]) > abs(way[self.leg]):
            return f"{own}{sent}; LEG {most + 1} moved, by {way[most]:.2f} mm: are their cables exchanged?"
        other = f", leg {most + 1} by {way[most]:.2f} mm" if another else ""
        return f"{own}{sent}{other}: NOT AS SENT; look at its scale, its valve or brake, its transducer"


def poses(config: TestConfig) -> list[list[float]]:
    """Displacements of the moving port in which one leg after the other is longer by WAY_M, and the way back between them."""
    context = assembly.base_context(config)
    platform, mounting = context["platform"], context["mounting"]
    legs = platform.leg_lengths(platform.neutral_pose) if context["limits"].start_leg_m is None else np.array(context["limits"].start_leg_m)
    rest = park_pose(mounting, platform.forward(legs))
    found: list[list[float]] = []
    for leg in range(6):
        moved = park_pose(mounting, platform.forward(legs + WAY_M * np.eye(6)[leg]))
        turned = quat_logarithm(pose_multiply(moved, pose_inverse(rest))[3:])
        found += [[*map(float, moved[:3] - rest[:3]), *map(float, turned)], [0.0] * 6]
    return found[:-1]


def found_in(log: Log) -> list[LegMove]:
    """Out of the log of such a run. Raises ConfigurationError for another log, or one that was stopped."""
    from hil_server.line.run_header import configuration

    stage = configuration(log).setup.stages["guidance"]
    period_s = 1e-9 * log.header.period_ns
    in_air = getattr(registry.part(stage.role, stage.name), "IN_AIR", False)
    guidance = assembly.build_part(*stage, {"period_s": period_s}) if in_air else None
    if guidance is None or list(guidance.schedule) != ["poses"]:
        raise ConfigurationError(f"{log.path}: not a run that moves each leg alone (hil-server legs)")
    moving = log.records[log.records["phase"] == CODES["phase"]["approach"]]
    begin, length = guidance.schedule["poses"]
    if len(moving) * period_s < begin + length:
        moved = len(moving) * period_s
        raise ConfigurationError(f"{log.path}: {moved:.1f} s of motion, {begin + length:.1f} s are needed: it was stopped or tripped")

    def mean(start: float, end: float) -> np.ndarray:
        return np.asarray(moving["measured_leg"][round(start / period_s) : round(end / period_s)].mean(axis=0))

    rest, each = mean(0.0, begin), guidance.move_s + guidance.still_s
    ends = [begin + 2 * leg * each + each for leg in range(6)]
    return [LegMove(leg, tuple(map(float, mean(end - 0.5 * guidance.still_s, end) - rest))) for leg, end in enumerate(ends)]


def run_on(stand: str | Path, overrides: tuple[str, ...] = (), out: str | None = None, live: bool = False,
           quiet: bool = True) -> tuple[list[LegMove], str]:  # fmt: skip
    """Moves each leg of a stand alone (in process when it has only a virtual stand); returns what followed, and the log. On hardware it is
    kept (`leg_record`). Raises ConfigurationError, DeviceError, KeyboardInterrupt."""
    config = legs_test(stand, overrides)
    hardware = config.setup.stand.hardware
    options = Options(out=out, quiet=quiet, report=False, force=True)
    summary = (run_live if live or hardware else simulate)(config, options)
    demand_whole(summary)
    found = found_in(read_log(summary["log"]))
    if hardware and all(one.good for one in found):
        keep(config.setup.stand.checksum, str(summary["log"]))
    return found, str(summary["log"])


def legs_test(stand: str | Path, overrides: tuple[str, ...] = ()) -> TestConfig:
    """The test that moves each leg of a stand alone. Raises ConfigurationError."""
    still = {"slow_periods": 0, "periods": 0, "chirp_s": 0.0, "move_s": MOVE_S, "still_s": STILL_S}
    given = ('test.name="legs"', of_stand(stand), *(f"guidance.{key}={value}" for key, value in still.items()))
    config = load_test(SHIPPED / PROGRAMME, (*given, *overrides))
    return load_test(SHIPPED / PROGRAMME, (*given, f"guidance.poses={poses(config)}", *overrides))
