"""`hil-server calibrate CSV|LOG`: bias, payload and orientation of the force sensor (`hil_server.identify.calibrate`)."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hil_server.errors import ConfigurationError
from hil_server.values import Document

if TYPE_CHECKING:
    from hil_server.identify.calibrate import Calibration, Motion

GROUP = "stand and host"
ORDER = 136
SUMMARY = "calibrates the force sensor: bias, payload, orientation"
EXAMPLES = (
    ("hil-server calibrate still_poses.csv", "from still poses, columns fx fy fz tx ty tz and r11...r33"),
    ("hil-server calibrate runs/x/run.mcap", "from the still stretches of a log"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server calibrate`."""
    parser.add_argument("source", metavar="CSV|LOG", help="still poses (.csv), or log of a run (.mcap)")
    parser.add_argument("--motion", metavar="CSV", help="wrench of a run without contact, to check the compensation in motion")
    parser.add_argument("--orientation", metavar="CSV", help="orientation during --motion, columns r11...r33")
    parser.add_argument(
        "--accelerometer", metavar="CSV", help="accelerometer during --motion, columns ax ay az, which the still poses need too"
    )


def run(args: argparse.Namespace) -> Document:
    """Calibrates from the poses or the log; returns mass, centre of mass and bias."""
    import numpy as np

    from hil_server.config.kinds import misfit
    from hil_server.exchange.foreign_logs import WRENCH, read_csv
    from hil_server.identify.calibrate import calibrate, calibrate_accelerometer, compensate_motion, gravity_of, still_poses_of_log

    if why := misfit(args.source, "log or CSV file"):
        raise ConfigurationError(why)
    still = None
    if Path(args.source).suffix == ".mcap":
        wrench, gravity = still_poses_of_log(args.source)
    else:
        still = read_csv(args.source)
        wrench, gravity = still.stack(WRENCH), gravity_of(still)
    found = calibrate(wrench[:, :3], wrench[:, 3:], gravity)
    _print(found)
    result: Document = {k: v for k, v in asdict(found).items()} | {"well_posed": found.well_posed, "lacking": found.lacking}
    if args.motion:
        if not args.orientation:
            raise ConfigurationError("--motion needs --orientation CSV: the direction of the weight depends on it")
        sensor = accelerometer = None
        if args.accelerometer:
            if still is None:
                raise ConfigurationError(f"--accelerometer needs still poses as CSV with ax ay az, got {args.source}")
            sensor = calibrate_accelerometer(still.stack(("ax", "ay", "az")), gravity)
            accelerometer = read_csv(args.accelerometer)
        moved = compensate_motion(found, read_csv(args.motion), read_csv(args.orientation), accelerometer, sensor)
        _print_motion(moved)
        result["motion"] = {k: getattr(moved, k) for k in ("mean", "bound", "rms", "rms_gravity_only", "offset_s")}
        result["motion"]["streams"] = {s.name: s.facts for s in moved.streams}
        result["motion"]["within_bound"] = bool(np.all(np.abs(moved.mean) <= moved.bound))
    within = result.get("motion", {}).get("within_bound", True)
    result["exit_code"] = 0 if not found.lacking and within else 1
    return result


def _print(found: "Calibration") -> None:
    def three(v: Iterable[float], digits: int) -> str:
        return ", ".join(f"{x:.{digits}f}" for x in v)

    print(f"poses           {found.poses}")
    print(f"carried mass    {found.mass_kg:.4f} +- {found.mass_sigma_kg:.4f} kg (condition {found.condition_mass:.2f})")
    print(f"centre of mass  {three(found.com_m * 1e3, 2)} +- {1e3 * found.com_sigma_m.max():.2f} mm (condition {found.condition_com:.2f})")
    print(f"bias            {three(found.bias_n, 4)} N; {three(found.bias_n_m, 5)} N.m")
    print(f"orientation     {three(found.rotation_deg, 3)} deg against the assumed frame ({found.residual_turned_n:.4f} N rms with it)")
    print(f"residual        {found.residual_n:.4f} N, {found.residual_n_m:.5f} N.m rms")
    for why in found.lacking:
        print(f"not usable: {why}")


def _print_motion(m: "Motion") -> None:
    from hil_server.exchange.foreign_logs import WRENCH, report

    for line in report(m.streams):
        print(line)
    print(f"accelerometer   {m.offset_s * 1e3:+.2f} ms late against the wrench, compensated")
    for i, (name, unit) in enumerate(zip(WRENCH, ("N",) * 3 + ("N.m",) * 3, strict=True)):
        verdict = "ok" if abs(m.mean[i]) <= m.bound[i] else "BEYOND"
        rms = f"rms {m.rms[i]:.4f}, weight alone {m.rms_gravity_only[i]:.4f}"
        print(f"{name}  mean {m.mean[i]:+.4f} {unit} (bound {m.bound[i]:.4f}) {verdict}; {rms}")
