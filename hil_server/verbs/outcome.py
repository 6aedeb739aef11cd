"""What the verbs that run a test have in common: their options, and the summary for people."""

import argparse
from typing import Any


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    parser.add_argument("--no-report", action="store_true", help="no report, only the log")


def print_summary(summary: dict[str, Any]) -> None:
    """End, capture, health of the loop, peaks, faults, files: a line each."""
    captured = f"captured {summary['capture_time_s']:.3f} s" if summary["captured"] else "not captured"
    print(f"end       {summary['end']} ({captured}), {summary['ticks']} ticks, exit code {summary['exit_code']}")
    late, compute = summary["lateness_us"], summary["compute_us"]
    print(f"loop      missed {summary['missed']}, overflow {summary['overflow']}, {summary.get('mode', 'free-running')}")
    if "mode" in summary:
        print(f"          late p50 {late['p50']:.0f} p99 {late['p99']:.0f} max {late['max']:.0f} us, compute p50 {compute['p50']:.1f} us")
    elif "realtime_factor" in summary:
        print(f"          {summary['realtime_factor']:.0f} times real time")
    print("peaks     " + "  ".join(f"{v:.4g}" for v in _flat(summary["peak_wrench"])) + "  (N, N.m)")
    names = [f if isinstance(f, str) else f.get("name", str(f)) for f in summary["faults"]]
    print("faults    " + (", ".join(names) or "none"))
    print(f"log       {summary['log']}")
    if summary.get("report"):
        print(f"report    {summary['report']}")


def _flat(value: Any) -> list[float]:
    return list(value.values()) if isinstance(value, dict) else list(value)
