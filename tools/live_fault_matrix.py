"""Every fault that the virtual stand's process can show, over the wire, live: the right bit, how fast, and what the run made of it.

    python tools/live_fault_matrix.py [--hydraulic] [--profile cia402|cia408] [NAME ...]

Method: a short live run of the shipped docking for each fault (Axia sensor, strict tolerances), the fault injected by the stand 1.5 s
after the first synchronisation. Printed: fault bit expected, whether it came, ticks between the first input that shows it and the bit,
exit code, largest deceleration of a setpoint, whether the log is complete. Exit code 1 when a row is not as it should be.

`--hydraulic`: the rows of the hydraulic stand instead, injected while the docking units are in contact, by what the plant truly did (the
stand keeps it at each SYNC). Printed: the faults of the trip and when it came after the injection; when the platform had stopped after it,
its point P slower than 25 mm/s for good (what is left is the platform on its locked oil); its speed 0.2 s after the trip, how far P came
until then and after; how near the legs came to their stroke ends, the largest force of a leg; whether the log is complete and replays
byte for byte. A row is as it should be when its fault is among those of the trip, the platform stopped within 0.2 s, and the rest holds.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.simulated.injections import SERVED  # noqa: E402
from hil_server.config import load_test  # noqa: E402
from hil_server.run.replay import replay  # noqa: E402
from hil_server.run.session import Options, run_live  # noqa: E402
from hil_server.telemetry.log_file import open_log  # noqa: E402
from rt_kernels.codes import FAULT_MASKS, fault_names  # noqa: E402
from rt_kernels.layout import BITS, WORDS  # noqa: E402
from rt_kernels.layout import FAULTS as TABLE  # noqa: E402

STOP = {name for name, _, severity, *_ in TABLE if severity == "stop"}
QUICK = ["guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.fault_s=0.3",
         "test.duration_max_s=4.0", "telemetry.publish=tcp://127.0.0.1:*", "telemetry.command=tcp://127.0.0.1:*",
         "telemetry.hand_controller=tcp://127.0.0.1:*"]  # fmt: skip
# silence is judged at once where silence is the fault; elsewhere a busy machine must not look like one
STRICT = ["safety.sensor_missing_periods=1", "safety.drive_missing_periods=1", "safety.signals_missing_periods=1"]
SILENCES = ("sensor_no_data", "drive_no_data", "signals_no_data")
# a sensor that stays busy counts as stale in the end; an unknown status bit is the device's own fault
ENDS_IN_TRIP = ("sensor_busy", "sensor_status_word")
AT_S = 1.5


def shown(records: np.ndarray, fault) -> int | None:
    """First tick whose inputs show the fault."""
    found = []
    for field, name in fault.shows:
        words = records[field].reshape(len(records), -1)
        found.append(np.flatnonzero((words & BITS[WORDS[field][1]][name] != 0).any(axis=1)))
    return min((int(f[0]) for f in found if len(f)), default=None)


def one(fault) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory() as folder:
        settings = QUICK + (STRICT if fault.fault in SILENCES else [])
        injected = {"name": fault.name, "index": _index(fault), "at_s": 0.0 if fault.at_start else AT_S}
        stand = {"sensor": {"variant": "axia"}, "faults": [injected]}
        summary = run_live(load_test(None, settings), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log = open_log(summary["log"])
        records = log.records
        if not fault.fault:
            good = summary["exit_code"] == (3 if fault.name in ENDS_IN_TRIP else 0) and not log.incomplete
            return f"{fault.name:22s} no fault expected: exit {summary['exit_code']}, faults {summary['faults']}", good
        bits = np.flatnonzero(records["faults"] & FAULT_MASKS[fault.fault])
        if not len(bits):
            return f"{fault.name:22s} {fault.fault:20s} DID NOT COME; came: {summary['faults']}", False
        first, seen = int(bits[0]), shown(records, fault)
        dt = np.diff(records["time_ns"])[:, None] * 1e-9
        rate = np.diff(records["leg_setpoint"], axis=0) / dt
        braking = np.abs(np.diff(rate[first:], axis=0) / dt[first + 1 :]).max() if len(rate) > first + 1 else 0.0
        stops = fault.fault in STOP or fault.name in ENDS_IN_TRIP
        exit_code = 3 if stops else 0
        good = summary["exit_code"] == exit_code and not log.incomplete and braking <= 10.0 + 1e-6
        late = "-" if seen is None else f"{first - seen}"
        return (f"{fault.name:22s} {fault.fault:20s} ticks {late:>3s}  exit {summary['exit_code']}  braking {braking:5.2f} m/s2  "
                f"log {'complete' if not log.incomplete else log.incomplete}"), good  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One fault of the hydraulic stand during a contact. value None: the table's own."""

    title: str
    injection: str
    fault: str
    leg: int = 0
    value: float | None = None
    settings: tuple[str, ...] = ()


# a leg that lags by less than the spool's way needs (23 mm) trips by its lag: where the spool is to trip the lag may be larger
HYDRAULIC_ROWS = (
    Row("valve saturation", "leg_slow", "valve_saturated", 2, 0.002, ("safety.following_max_m=0.06",)),
    Row("supply loss", "supply_loss", "supply_pressure"),
    Row("slow supply loss", "supply_loss", "supply_pressure", 0, 0.5),
    Row("blocked leg", "leg_stuck", "following_error", 2),
    Row("stuck valve", "valve_stuck", "following_error", 2),
    Row("burst line", "line_burst", "following_error", 0),
)
CONTACT_AT_S = 3.4  # 0.1 s after first contact with QUICK
STOPPED_M_S, STOP_S = 0.025, 0.2


def hydraulic(row: Row, profile: str = "cia402") -> tuple[str, bool]:
    """One row of the hydraulic stand: what is printed, and whether it is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        truth_file = str(Path(folder) / "truth.npy")
        injected = {"name": row.injection, "index": row.leg, "at_s": CONTACT_AT_S}
        if row.value is not None:
            injected["value"] = row.value
        settings = [*QUICK, "test.stand=stands/hydraulic_stand.toml", "test.duration_max_s=8.0", "guidance.fault_s=1.0", *row.settings]
        stand = {"sensor": {"variant": "axia"}, "drives": {"profile": profile}, "truth_file": truth_file, "faults": [injected]}
        summary = run_live(load_test(None, settings), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log, truth = open_log(summary["log"]), np.load(truth_file)
        records, title = log.records, f"{row.title:17s} {profile}"
        if records["trip_tick"][-1] < 0:
            return f"{title} DID NOT TRIP; faults {summary['faults']}", False
        trip = int(np.flatnonzero(records["tick"] == records["trip_tick"][-1])[0])
        trip_s = (records["time_ns"][trip] - records["time_ns"][0]) * 1e-9
        first = set(fault_names(records["faults"][trip])) & STOP
        in_contact = bool(records["contact"][np.searchsorted(records["time_ns"] * 1e-9, CONTACT_AT_S)])
        t, legs, twist = truth[:, 0] - trip_s, truth[:, 1:7], truth[:, 13:19]
        speed = np.linalg.norm(twist[:, :3], axis=1)
        way = np.cumsum(twist[1:, :3] * np.diff(t)[:, None], axis=0)
        moving = t[speed > STOPPED_M_S]
        stop = max(0.0, float(moving[-1])) if len(moving) else 0.0
        at_trip, at_stop = (min(int(np.searchsorted(t, s)), len(way) - 1) for s in (0.0, STOP_S))
        came = np.linalg.norm(way[at_stop] - way[at_trip])
        after = np.linalg.norm(way[at_stop:] - way[at_stop], axis=1).max()
        platform = load_test(None, settings).stand["platform"]
        room = min(legs.min() - platform["leg_length_min_m"], platform["leg_length_max_m"] - legs.max())
        equal = replay(summary["log"], verify=True)["equal"]
        good = (row.fault in first and summary["exit_code"] == 3 and in_contact and stop <= STOP_S and room > 0.0 and equal
                and not log.incomplete)  # fmt: skip
        return (f"{title} {'+'.join(sorted(first)):32s} after {1e3 * (trip_s - CONTACT_AT_S):4.0f} ms  stopped in {1e3 * stop:4.0f} ms, "
                f"{1e3 * speed[at_stop]:4.1f} mm/s at 0.2 s, {1e3 * came:4.1f} mm, then {1e3 * after:4.1f} mm  stroke left {room:4.2f} m  "
                f"leg {np.abs(records['leg_force']).max() / 1e3:4.1f} kN  log {log.incomplete or 'complete'}, "
                f"replay {'equal' if equal else 'DIFFERS'}"), good  # fmt: skip


def _index(fault) -> int:
    return {"drive": 2, "plant": 0}.get(fault.at, -1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of injected faults; default: all")
    parser.add_argument("--hydraulic", action="store_true", help="the rows of the hydraulic stand, during a contact")
    parser.add_argument("--profile", default="cia402", choices=("cia402", "cia408"), help="of the drives, of the hydraulic rows")
    args = parser.parse_args()
    rows = [(row.injection, lambda row=row: hydraulic(row, args.profile)) for row in HYDRAULIC_ROWS]
    if not args.hydraulic:
        rows = [(fault.name, lambda fault=fault: one(fault)) for fault in SERVED if "hydraulic" not in fault.stands]
    bad = 0
    for name, run in rows:
        if args.names and name not in args.names:
            continue
        text, good = run()
        print(text + ("" if good else "   <- NOT AS IT SHOULD BE"), flush=True)
        bad += not good
    print(f"{bad} rows not as they should be")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
