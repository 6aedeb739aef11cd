"""`hil-server compare LOG OTHER`: two runs side by side, or a run and its prediction; a recording against one run or several."""

import argparse
from pathlib import Path

from hil_server.values import Document

GROUP = "look at results"
ORDER = 44
SUMMARY = "compares two runs, a run and its prediction, or a recording and several runs"
EXAMPLES = (
    ("hil-server compare runs/first/run.mcap runs/heavier/run.mcap", "forces first, as a table and a page"),
    ("hil-server compare a.mcap b.mcap --tolerance force=5%", "exit code 1 if the forces differ by more than 5 % of the peak"),
    ("hil-server compare recording.toml runs/a/run.mcap runs/b/run.mcap", "which run a recording from elsewhere matches"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server compare`."""
    parser.add_argument("log", metavar="LOG|RECORDING", help="log of the run, or recording.toml (sensors of another stand or of a flight)")
    parser.add_argument(
        "other", metavar="OTHER", nargs="+", help="log of the prediction or of another run; for a recording: logs of all candidates"
    )
    parser.add_argument(
        "--channel",
        action="append",
        default=[],
        metavar="NAME",
        help="also compares this auxiliary channel, e.g. probe.stroke; may be repeated",
    )
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="SHARE",
        help="largest difference allowed, 5%% or 0.05 of the group's largest peak in LOG; force=5%% or Fx=2%%: for one group or channel; "
        "may be repeated; exit code 1 if exceeded",
    )
    parser.add_argument(
        "--measure", choices=("peak", "rms"), default="peak", help="judges the peak or the rms of the difference (default: peak)"
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the page with pictures (default: beside LOG)")


def run(args: argparse.Namespace) -> Document:
    """Compares the logs, forces first, or a recording with runs; returns the differences."""
    from hil_server.config.kinds import a_log, misfit
    from hil_server.errors import UsageError

    for other in args.other:
        a_log(other)
    if why := misfit(args.log, "log or recording"):
        raise UsageError(why)
    if Path(args.log).suffix == ".toml":
        if args.tolerance:
            raise UsageError("--tolerance: for two runs only; a recording is judged by its correlation")
        return _recording(args)
    if len(args.other) > 1:
        raise UsageError(f"compare: {1 + len(args.other)} logs; give two, or a recording.toml and several logs")
    return _runs(args)


def _runs(args: argparse.Namespace) -> Document:
    from hil_server.report.comparison import compare, in_percent

    log, other = Path(args.log), Path(args.other[0])
    # logs are all named run.mcap: use the names of their folders
    names = [path.parent.name if path.stem == "run" and path.parent.name else path.stem for path in (log, other)]
    figures = compare(log, other, Path(args.out or log.parent) / f"{names[0]}_and_{names[1]}.html", args.channel, args.tolerance,
                      args.measure)  # fmt: skip
    begin, end = figures["window_s"]
    print(f"{figures['a']} and {figures['b']}, aligned at {figures['aligned']}, {begin:.3f}...{end:.3f} s from there")
    print(f"{'':16} {'unit':6} {'peak':>11} {'peak other':>11} {'rms diff.':>11} {'peak diff.':>11} {'of its own':>10} {'of group':>10}")
    for c in figures["channels"]:
        shares = " ".join(f"{in_percent(c[key]):>10}" for key in ("relative", "share"))
        numbers = " ".join(f"{c[key]:11.4g}" for key in ("peak_a", "peak_b", "rms_difference", "peak_difference"))
        print(f"{c['name']:16} {c['unit']:6} {numbers} {shares}")
    print(f"{'capture':16} {'s':6} " + " ".join(f"{'-' if t is None else format(t, '.4f'):>11}" for t in figures["capture_s"]))
    print(f"{'energy absorbed':16} {'J':6} " + " ".join(f"{energy:11.5g}" for energy in figures["absorbed_j"]))
    for moment, force_a, force_b, *_ in figures["moments"]:
        if moment != "stand":
            forces = ("-" if force is None else format(force, ".5g") for force in (force_a, force_b))
            print(f"{moment:16} {'N':6} " + " ".join(f"{words:>11}" for words in forces))
    for name, one, two in figures["signals"]:
        times = " ".join(f"{'-' if t is None else format(t, '.3f'):>11}" for t in (one, two))
        print(f"{name:16} {'s':6} {times}")
    for line in figures["cautions"]:
        print(line)
    for line in figures["variant"]:
        print(f"not the same variant: {line}")
    print(f"page: {figures['page']}")
    print(figures["text"])
    return {**figures, "exit_code": int(figures["verdict"] == "beyond")}


def _recording(args: argparse.Namespace) -> Document:
    from dataclasses import asdict

    from hil_server.exchange import recordings
    from hil_server.judge.run import Run
    from hil_server.log.reader import read_log

    recording = recordings.load(args.log)
    runs = [Run(read_log(path)) for path in args.other]
    ranked = recordings.best_run(recording, runs)
    best = ranked[0]
    chosen = next(one for one in runs if recordings.run_name(one.log) == best.run)
    print(f"{recording.name}: correlation with {len(ranked)} run{'s' if len(ranked) > 1 else ''}")
    columns = list(best.correlation)
    for i, name in enumerate(columns):
        print(f"  {i + 1:2d}  {name}")
    print(f"{'run':24} {'expl.':>7} {'mean':>7} " + " ".join(f"{i + 1:7d}" for i in range(len(columns))))
    for m in ranked:
        print(f"{m.run:24} {m.score:7.4f} {m.mean:7.4f} " + " ".join(f"{m.correlation[c]:7.4f}" for c in columns))
    if best.matches:
        print(f"\nagainst {best.run}")
    else:
        print(f"\nmatches none: the best of them, {best.run}, explains {100 * best.score:.0f} % of the recording, "
              f"mean correlation {best.mean:.2f}")  # fmt: skip
    for sensor, offset in best.offset_s.items():
        print(f"clock of {sensor}: {offset:+.4f} s ahead of the run's, set at the {best.at}")
    for name in columns:
        if lags := ", ".join(f"{event} {1e3 * lag:+.1f}" for event, lag in best.left[name].items()):
            print(f"left of {name}, ms later than the run: {lags}")
    for name in columns:
        phases = ", ".join(f"{phase} {value:.3g}" for phase, value in best.phases[name].items())
        print(f"rms difference of {name}: {best.rms[name]:.4g} ({phases})")
    loads = recordings.reconstructed(recording, chosen, best) if best.matches else {}
    for craft, one in loads.items():
        impulse = ", ".join(f"{v:+.2f} ± {s:.2f}" for v, s in zip(one["impulse_n_s"], one["sigma_n_s"], strict=True))
        felt = ", ".join(f"{v:+.2f}" for v in one["run_n_s"])
        print(f"impulse of the contact on the {craft} craft, its axes, N.s: {impulse} (run: {felt})")
    folder = Path(args.out or Path(args.log).parent)
    page = recordings.write_page(recording, chosen, ranked, loads, folder / f"{Path(args.log).stem}_and_runs.html")
    print(f"page: {page}")
    return {"recorded": recording.name, "best": best.run, "matches": [asdict(m) | {"mean": m.mean, "score": m.score} for m in ranked],
            "found": best.matches, "loads": loads,
            "page": str(page), "exit_code": 0}  # fmt: skip
