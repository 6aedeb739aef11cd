"""Every fault that the virtual stand's process can show, over the wire, live: the right bit, how fast, and what the run made of it.

    python tools/live_fault_matrix.py [NAME ...]

Method: a short live run of the shipped docking for each fault (Axia sensor, strict tolerances), the fault injected by the stand 1.5 s
after the first synchronisation. Printed: fault bit expected, whether it came, ticks between the first input that shows it and the bit,
exit code, largest deceleration of a setpoint, whether the log is complete. Exit code 1 when a row is not as it should be.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.simulated.injections import SERVED  # noqa: E402
from hil_server.config import load_test  # noqa: E402
from hil_server.run.session import Options, run_live  # noqa: E402
from hil_server.telemetry.log_file import open_log  # noqa: E402
from rt_kernels.codes import FAULT_MASKS  # noqa: E402
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


def _index(fault) -> int:
    return {"drive": 2, "plant": 0}.get(fault.at, -1)


def main() -> int:
    wanted = set(sys.argv[1:])
    bad = 0
    for fault in SERVED:
        if wanted and fault.name not in wanted:
            continue
        text, good = one(fault)
        print(text + ("" if good else "   <- NOT AS IT SHOULD BE"), flush=True)
        bad += not good
    print(f"{bad} rows not as they should be")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
