"""Time and size of a report: `python tools/bench_report.py [LOG ...] [--repeat N]`.

Without a LOG, the demo's test is simulated with a longer time after the capture, so that its log holds 60 s of every tick. Printed for each
log: wall and processor time of `make_report` from the file to the page (reading, judging, drawing, writing), the best of N in one process,
and the share of it that reading the log takes; the size of the page; and the same of the first report of a new process, with its imports.
The peer is the time that matplotlib takes to draw three of the report's figures as PNG, which is how reports were drawn before.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WANTED = {"seconds": 1.5, "bytes": 1_000_000}
COLD = (
    "import sys, time; t = time.perf_counter(); from hil_server.report.run_page import make_report; make_report(sys.argv[1], sys.argv[2]); "
    "print(time.perf_counter() - t, time.process_time())"
)


def simulated(folder: Path) -> Path:
    from hil_server.config import load_test
    from hil_server.run.session import Options, simulate

    config = load_test(None, ["guidance.after_capture_s=38.3", "guidance.contact_max_s=60", "test.duration_max_s=120"])
    return Path(simulate(config, Options(out=str(folder), quiet=True, report=False))["log"])


def best(what, repeat: int) -> tuple[float, float]:
    """Smallest wall and processor time, s."""
    found = []
    for _ in range(repeat):
        wall, busy = time.perf_counter(), time.process_time()
        what()
        found.append((time.perf_counter() - wall, time.process_time() - busy))
    return min(w for w, _ in found), min(b for _, b in found)


def peer(log) -> None:
    from io import BytesIO

    from matplotlib.figure import Figure

    for field in ("F_T", "X_TA", "V_TA"):
        drawn = Figure(figsize=(10.0, 5.2))
        for axes, part in zip(drawn.subplots(2, 1), (slice(0, 3), slice(3, 6)), strict=True):
            axes.plot(log.time_s, log.records[field][:, part])
        drawn.savefig(BytesIO(), format="png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", metavar="LOG")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    args = parser.parse_args()
    from hil_server.log.reader import read_log
    from hil_server.report.run_page import make_report

    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, best of {args.repeat}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for path in [Path(one) for one in args.logs] or [simulated(folder / "demo")]:
            log = read_log(path)
            wall, busy = best(lambda path=path: make_report(path, folder), args.repeat)
            read, _ = best(lambda path=path: read_log(path), args.repeat)
            drawn, _ = best(lambda log=log: peer(log), 2)
            cold = subprocess.run([sys.executable, "-c", COLD, path, folder], capture_output=True, text=True, check=True).stdout.split()
            size = (folder / f"{path.stem}.html").stat().st_size
            print(f"{path}: {log.time_s[-1] - log.time_s[0]:.1f} s of run, {log.ticks} ticks")
            print(f"  report      {wall:.2f} s, {busy:.2f} s of processor (wanted {WANTED['seconds']} s); reading the log is {read:.2f} s")
            print(f"  first one   {float(cold[0]):.2f} s, {float(cold[1]):.2f} s of processor, with all imports")
            print(f"  size        {size} bytes (wanted {WANTED['bytes']})")
            print(f"  peer        {drawn:.2f} s for three of its figures by matplotlib: the whole report takes {wall / drawn:.2f} of that")


if __name__ == "__main__":
    main()
