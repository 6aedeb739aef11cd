"""`hil-server identify STAND|LOG`: response of the drives from a run in air (`hil_server.identify.drives`); of a hydraulic stand
also mass, oil, valves, friction and structure (`hil_server.identify.stand`)."""

import argparse
from dataclasses import asdict
from pathlib import Path

from hil_server.errors import ConfigurationError
from hil_server.values import Document

GROUP = "stand and host"
ORDER = 134
SUMMARY = "identifies the drives of a stand; of a hydraulic stand also mass, oil, valves, friction and structure"
EXAMPLES = (
    ("hil-server identify stand.toml --write stand.toml", "writes [drive_model] into the stand file"),
    ("hil-server identify runs/x/run.mcap", "evaluates the log of an identification run"),
)
REMAINS = "nothing was identified, no stand file was changed; the log of a completed run is kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server identify`."""
    parser.add_argument("stand", metavar="STAND|LOG", help="stand file, or log of an identification run (.mcap)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the programme; may be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help="folder for log and picture")
    parser.add_argument("--write", metavar="TOML", help="writes the stand file with the identified [drive_model] (hydraulic stand: "
                        "[stand_model]); may be the same file")  # fmt: skip
    parser.add_argument("--live", action="store_true", help="over the wire, even if the stand file has only a virtual stand")


def run(args: argparse.Namespace) -> Document:
    """Identifies the drives, or the hydraulic machine, from a run or its log; returns the result."""
    from hil_server.config.kinds import a_log
    from hil_server.run.identification import feels_load, in_six_directions

    of_log = Path(args.stand).suffix == ".mcap"
    if of_log:
        a_log(args.stand)
    if args.write and of_log:
        raise ConfigurationError(
            f"--write: {args.stand} is a log: give the stand file instead, hil-server identify STAND --write {args.write}"
        )
    if in_six_directions(args.stand) if of_log else feels_load(args.stand):
        return _machine(args, of_log)
    return _drives(args, of_log)


def _drives(args: argparse.Namespace, of_log: bool) -> Document:
    from hil_server.identify.drives import identify_log, picture, write_stand
    from hil_server.run.identification import run_on
    from hil_server.run.progress import working

    if of_log:
        with working("fit"):
            found, log = identify_log(args.stand), args.stand
    else:
        found, log = run_on(args.stand, tuple(args.set), args.out, args.live, quiet=False)
    with working("picture"):
        image = picture(found, Path(args.out or Path(log).parent) / "identification.png")
    lacking = found.lacking
    print(f"explained {100.0 * min(leg.confidence for leg in found.legs):.2f} % of the motion of the leg with the poorest fit")
    for why in lacking:
        print(f"NOT EXPLAINED {why}")
    for r in (*found.legs, found.platform):
        db, deg = r.at_spec()
        band = f"dead band {r.dead_band_m * 1e6:.1f} um" if r.dead_band_found else "no dead band"
        print(f"{r.name:9s} {r.frequency_hz:7.3f} +- {r.frequency_sigma:.3f} Hz  zeta {r.damping:.4f} +- {r.damping_sigma:.4f}  delay "
              f"{r.delay_s * 1e3:6.3f} +- {r.delay_sigma * 1e3:.3f} ms  gain {r.gain:.4f}  {band}; "
              f"at 10 Hz {db:+.2f} dB {deg:.1f} deg with delay; chirp explained {100 * r.confidence:.2f} %")  # fmt: skip
    print(f"verdict   {found.verdict()}")
    print(f"picture   {image}\nlog       {log}")
    if args.write and not lacking:
        write_stand(args.stand, args.write, found.model)
        print(f"written   {args.write}")
    elif args.write:
        print(f"nothing written: the model does not explain the run ({len(lacking)} reasons above)")
    legs = [{k: v for k, v in asdict(r).items() if k not in ("lines_hz", "response", "noise")} for r in found.legs]
    return {"legs": legs, "model": None if lacking else found.model, "not_explained": lacking, "within_spec": found.within_spec, "log": log,
            "exit_code": 1 if lacking or not found.within_spec else 0}  # fmt: skip


def _machine(args: argparse.Namespace, of_log: bool) -> Document:
    from hil_server.identify.drives import write_stand
    from hil_server.identify.stand import identify_stand_log, picture
    from hil_server.run.identification import run_on_hydraulic
    from hil_server.run.progress import working

    def say(text: str) -> None:
        print(f"fit       {text}", flush=True)

    if of_log:
        with working("fit"):
            found, log = identify_stand_log(args.stand, say=say), args.stand
    else:
        found, log = run_on_hydraulic(args.stand, tuple(args.set), args.out, args.live, say, quiet=False)
    image = picture(found, Path(args.out or Path(log).parent) / "identification.png")
    print("\n".join(found.report()))
    print(f"picture   {image}\nlog       {log}")
    within, lacking = found.within_spec, found.lacking
    if args.write and not lacking:
        write_stand(args.stand, args.write, found.model, "stand_model")
        print(f"written   {args.write}")
    elif args.write:
        print(f"nothing written: the model does not explain the run ({len(lacking)} reasons above)")
    model = None if lacking else found.model
    return {"model": model, "not_explained": lacking, "within_spec": within, "log": log, "exit_code": 1 if lacking or not within else 0}
