"""A live docking over EtherCAT: six emulated drives with distributed clocks on one end of a veth pair, the server's own port on the other.

    python tools/ethercat_docking.py [--out DIR] [--drift PPM] [--set KEY=VALUE ...]
    python tools/ethercat_docking.py --faults [NAME ...]

Needs Linux with `ip` and `unshare`, and `pysoem`; no privilege where user namespaces are allowed (the run is then without SCHED_FIFO), and
no interface of this machine: it runs in a network namespace of its own.

The docking is the shipped one on the served virtual stand, whose drives are EtherCAT slaves (CiA 402, CSP, a clock of its own in each, the
first one, the reference, gaining `--drift`, default 50 ppm). Printed: how the run ended and whether it replays byte for byte; time of the
tick's work (read, compute, write); deviation of the grid from the clock of the bus, over the run and in its last half; what the reference
gains on this machine's clock, as the grid has found it; round trip; lost and late frames. Exit code 1 when not captured or not equal.

`--faults`: a short run for every fault of the line and of a drive on it, injected 2.8 s after the loop began, when the stand is at its
start. Printed: the bits of drive_status that it should show and whether it did, ticks until the fault of the table, exit code, log. A run
that a held-up machine ended before the injection shows nothing of the row: that is printed, and it is flown again, three times at most.
Exit code 1 when a row is wrong.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from drivers.simulated.injections import BY_NAME, ETHERCAT  # noqa: E402
from hil_server.config import load_test  # noqa: E402
from hil_server.errors import HilError  # noqa: E402
from hil_server.log.reader import Log, read_log  # noqa: E402
from hil_server.run.replay import replay  # noqa: E402
from hil_server.run.session import Options, run_live  # noqa: E402
from rt_kernels.codes import FAULT_MASKS, bit_names  # noqa: E402
from rt_kernels.layout import BITS, WORDS  # noqa: E402

MASTER, SLAVES = "hil0", "hil1"
INSIDE = "HIL_ETHERCAT_INSIDE"
# slow enough that a loop held up for a tenth of a second catches up with its motion before `rate_excess_s` makes a stop of it
QUICK = ["guidance.speed_max_m_s=0.2", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.fault_s=0.3",
         "test.duration_max_s=6.0"]  # fmt: skip
AT_S = 2.8  # it stands at its start: a measurement that stays where it is shows as that, and not as a following error
ATTEMPTS = 3
# of a drive, as over CANopen; and of the line. None: no fault follows, the run continues
DRIVE_FAULTS = ("drive_fault", "drive_disabled", "drive_local", "drive_following_error", "drive_limit_touched", "drive_not_following")
# what else must be seen: the channel of the port that counts it
COUNTED = {"frames_doubled": "bus_doubled_total", "frames_late": "bus_late_total"}


def in_namespace(arguments: list[str]) -> int:
    """This tool again, in a network namespace of its own with a veth pair; its exit code."""
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    return subprocess.call([*unshare, sys.executable, __file__, *arguments], env=os.environ | {INSIDE: "1"})


def make_wire() -> None:
    """The loopback and the pair of interfaces."""
    for command in ("link set lo up", f"link add {MASTER} type veth peer name {SLAVES}", f"link set {MASTER} up", f"link set {SLAVES} up"):
        subprocess.run(["ip", *command.split()], check=True)


def on_ethercat(drift_ppm: float = 0.0, faults: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Settings of the served stand."""
    drift = [{"name": "clock_drift", "value": drift_ppm}] if drift_ppm else []
    return {"drives": {"wire": "ethercat", "interface": SLAVES, "master_interface": MASTER}, "faults": [*drift, *(faults or [])]}


def figures(name: str, values: np.ndarray, unit: str = "us") -> str:
    found = np.percentile(values, (50, 99, 99.9)) if len(values) else np.zeros(3)
    worst = values.max() if len(values) else 0.0
    return f"{name:44s} p50 {found[0]:8.1f}  p99 {found[1]:8.1f}  p99.9 {found[2]:8.1f}  max {worst:8.1f} {unit}"


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def docking(out: str | None, drift_ppm: float, settings: list[str]) -> int:
    """One docking and what is printed of it; the exit code."""
    options = Options(out=out, force=True, stand=on_ethercat(drift_ppm))
    summary = run_live(load_test(None, settings), options)
    log = read_log(summary["log"])
    equal = bool(replay(summary["log"], verify=True)["equal"])
    print(f"end {summary['end']}, captured {summary['captured']}, exit code {summary['exit_code']}, faults {summary['faults'] or 'none'}, "
          f"log {log.incomplete or 'complete'}, replay {'byte-equal' if equal else 'DIFFERS'}")  # fmt: skip
    print(f"log {summary['log']}   report {summary['report']}   mode {summary['mode']}")
    for line in timing(log, drift_ppm):
        print(line)
    return 0 if summary["captured"] and summary["exit_code"] == 0 and equal else 1


def timing(log: Log, drift_ppm: float) -> list[str]:
    """The figures of a run, a line each."""
    r, deviation, own = log.records, 1e-3 * log.aux("bus_deviation_ns"), 1e-3 * log.aux("bus_grid_error_ns")
    half = len(r) // 2
    work = 1e-3 * (r["read_ns"] + r["compute_ns"] + r["write_ns"])[1:]
    grid, devices = log.end["grid"], log.end.get("devices", {}).get("Cia402EthercatPort", {})
    return [
        figures("work of a tick: read + compute + write", work),
        figures("lateness", 1e-3 * r["lateness_ns"]),
        figures("deviation from the clock of the bus", np.abs(deviation)),
        figures("  of it the grid's, last half of the run", np.abs(own[half:])),
        f"{'  mean and rms of the last half':44s} {deviation[half:].mean():.1f}, {rms(deviation[half:]):.1f} us; "
        f"of the grid {own[half:].mean():.1f}, {rms(own[half:]):.1f} us",
        f"{'the grid followed the reference by':44s} {1e-3 * grid['moved_ns']:.1f} us: {grid['reference_gains_ppm']:.2f} ppm; "
        f"given {drift_ppm:.2f} ppm",
        figures("round trip of a frame", 1e-3 * log.aux("bus_round_trip_ns")),
        f"frames: {devices}",
    ]


class EndedBeforeError(HilError):
    """A run of the table was over before its fault came."""


def fault_row(name: str) -> tuple[str, bool]:
    """One row of the table: what is printed, and whether it is as it should be. Raises EndedBeforeError."""
    injection, index = BY_NAME[name], 2
    with tempfile.TemporaryDirectory() as folder:
        stand = on_ethercat(faults=[{"name": name, "index": index if name != "clock_drift" else -1, "at_s": AT_S}])
        settings = [*QUICK, *(f"telemetry.{key}=tcp://127.0.0.1:*" for key in ("publish", "command", "hand_controller"))]
        summary = run_live(load_test(None, settings), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log = read_log(summary["log"])
        equal = bool(replay(summary["log"], verify=True)["equal"])
        r = log.records
        if log.time_s[-1] < AT_S:
            late, faults = 1e-6 * r["lateness_ns"].max(), "+".join(summary["faults"]) or "no fault"
            raise EndedBeforeError(f"it ended after {log.time_s[-1]:.2f} s, before the injection: {faults}, latest tick {late:.1f} ms late")
        seen, wanted, ticks = [], [bit for _, bit in injection.shows], "-"
        for field, bit in injection.shows:
            words = r[field].reshape(len(r), -1) & BITS[WORDS[field][1]][bit]
            seen += [int(k) for k in np.flatnonzero(words.any(axis=1) & (log.time_s >= AT_S - 0.1))[:1]]
        good = len(seen) == len(wanted) and not log.incomplete and equal
        if injection.fault:
            came = np.flatnonzero(r["faults"] & FAULT_MASKS[injection.fault])
            good = good and bool(len(came))
            ticks = str(int(came[0]) - min(seen)) if len(came) and seen else "NOT"
        if name in COUNTED:
            good = good and log.aux(COUNTED[name])[-1] > 0
        if not injection.shows and name != "frames_doubled":
            good = good and not summary["faults"]
        status = int(np.bitwise_or.reduce(r["drive_status"][log.time_s >= AT_S].ravel())) if len(r) else 0
        return (f"{name:22s} {'+'.join(wanted) or 'counted':14s} {injection.fault or '-':19s} ticks {ticks:>4s}  "
                f"exit {summary['exit_code']}  faults {'+'.join(summary['faults']) or 'none':40s} "
                f"all bits seen: {', '.join(bit_names('drive_status', status))}  "
                f"replay {'equal' if equal else 'DIFFERS'}"), good  # fmt: skip


def row_of(name: str) -> tuple[str, bool]:
    """`fault_row`, flown again where the machine ended it first."""
    for _ in range(ATTEMPTS):
        try:
            return fault_row(name)
        except EndedBeforeError as error:
            print(f"again {name}: {error}", flush=True)
        except HilError as error:  # a busy machine may not bring a process up in time
            return f"{name:22s} no run: {error}", False
    return f"{name:22s} no run in {ATTEMPTS} attempts", False


def main(arguments: list[str]) -> int:
    """Runs what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="folder of log and report (default: runs/ and the time)")
    parser.add_argument("--drift", type=float, default=50.0, metavar="PPM", help="what the reference clock gains (default 50)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the test")
    parser.add_argument("--faults", nargs="*", metavar="NAME", help="the table of faults instead, or these rows of it")
    given = parser.parse_args(arguments)
    if os.environ.get(INSIDE) != "1":
        return in_namespace(arguments)
    make_wire()
    if given.faults is None:
        return docking(given.out, given.drift, given.set)
    bad = 0
    for name in given.faults or [*(fault.name for fault in ETHERCAT), *DRIVE_FAULTS]:
        text, good = row_of(name)
        print(f"{'ok ' if good else 'BAD'} {text}", flush=True)
        bad += not good
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
