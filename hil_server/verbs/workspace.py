"""`hil-server workspace [STAND]`: travel, speed and load of the platform of a stand (`hil_server.predict.workspace`)."""

import argparse

from hil_server.errors import UsageError
from hil_server.values import Document

GROUP = "stand and host"
ORDER = 130
SUMMARY = "shows what the platform of a stand can reach"
EXAMPLES = (
    ("hil-server workspace docking_stand --picture reach.png", "travel, speed and load of each axis"),
    ("hil-server workspace stand.toml --position 0 0 3.2 --angles 5 0 0", "from another pose"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server workspace`."""
    parser.add_argument(
        "stand", nargs="?", default="docking_stand", metavar="STAND", help="stand file, or name of a shipped stand (default: docking_stand)"
    )
    parser.add_argument(
        "--position", nargs=3, type=float, metavar=("X", "Y", "Z"), help="position of the platform in W, m (default: neutral)"
    )
    parser.add_argument(
        "--angles", nargs=3, type=float, metavar=("YAW", "PITCH", "ROLL"), help="angles of the platform, deg (default: neutral)"
    )
    parser.add_argument("--picture", metavar="FILE", help="writes a picture (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> Document:
    """Prints and returns reach, speeds and loads; exit code 1 if the pose itself is out of reach."""
    import math

    import numpy as np

    from hil_server.predict.workspace import draw, load_platform, summary
    from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll

    platform = load_platform(args.stand)
    X = platform.neutral_pose
    numbers = [*(args.position or []), *(args.angles or [])]
    if not all(math.isfinite(n) for n in numbers):
        raise UsageError(f"--position and --angles need finite numbers, given {numbers}")
    if args.position:
        X[:3] = args.position
    if args.angles:
        X[3:] = quat_from_yaw_pitch_roll(*np.radians(args.angles))
    try:
        result = summary(platform, X)
    except ValueError as error:
        print(f"{platform.name}: {error}")
        return {"stand": platform.name, "X_WP": X.tolist(), "error": str(error), "exit_code": 1}
    _print(result)
    if args.picture:
        try:
            draw(platform, args.picture, X)
        except (OSError, ValueError) as error:
            raise UsageError(f"--picture {args.picture}: cannot be written: {error}") from error
        result["picture"] = args.picture
        print(f"picture: {args.picture}")
    return result | {"exit_code": 0}


def _print(result: Document) -> None:
    print(f"{result['stand']}: position {', '.join(f'{p:.4g}' for p in result['X_WP'][:3])} m, "
          f"legs {', '.join(f'{l:.4g}' for l in result['leg_lengths_m'])} m")  # fmt: skip
    print(f"stroke margin {result['stroke_margin_m']:.4g} m; condition {result['condition']:.4g} (6 is perfect), by singular values "
          f"{result['condition_2']:.4g}, least singular value {result['singular_value_min']:.3g}")  # fmt: skip
    print(f"\n{'axis':6s}{'from':>10s}{'to':>10s} {'unit':5s}{'ended by':24s}{'speed':>10s} {'load':>12s}")
    for r in result["axes"]:
        load = f"{r['load_max'] / 1e3:.4g} {'kN' if r['unit'] == 'm' else 'kN.m'}"
        ends = f"{r['low_end']}, {r['high_end']}"
        print(f"{r['axis']:6s}{r['low']:10.3f}{r['high']:10.3f} {r['unit']:5s}{ends:24s}{r['speed_max']:10.3g} {load:>12s}")
    print(f"\nall six together: +-{result['combined_half_m']:.3f} m with +-{result['combined_half_deg']:.2f} deg")
