"""Every fault that the virtual stand's process can show, over the wire, live: the right bit, how fast, and what the run made of it.

    python tools/live_fault_matrix.py [--recover] [--hydraulic] [--whole] [--profile cia402|cia408] [--sensor PART|all] [NAME ...]
    python tools/live_fault_matrix.py --power [--profile cia402|cia408|ethercat] [NAME ...]

Method: a short live run of the shipped docking for each fault (Axia sensor, strict tolerances), the fault injected by the stand 1.5 s
after the first synchronisation. Printed: fault bit expected, whether it came, with what state of the chain where it is one (there is a
row for each of its inputs), ticks between the first input that shows it and the bit, exit code, largest deceleration of a setpoint,
whether the log is complete. Exit code 1 when a row is not as it should be.

`--hydraulic`: the rows of the hydraulic stand instead, injected while the docking units are in contact, by what the plant truly did (the
stand keeps it at each SYNC). Printed: the faults of the trip and when it came after the injection; when the platform had stopped after it,
its point P slower than 25 mm/s for good (what is left is the platform on its locked oil); its speed 0.2 s after the trip, how far P came
until then and after; how near the legs came to their stroke ends, the largest force of a leg; whether the log is complete and replays
byte for byte. A row is as it should be when its fault is among those of the trip, the platform stopped within 0.2 s, and the rest holds.

`--recover`: the recovery rows: every fault of the matrix that trips. One process is the stand all the while. The fault is injected 1.5 s
after the first synchronisation; when the run has tripped and the setpoints rest, the operator asks over the wire to `recover` with the
cause still there, then takes the cause away and asks again, then says `park`; when that run has ended, the next variant is flown on the
same stand. Printed: the faults until then; the answer to the first request (what stands, or that a drive was simply enabled again); the
time from the request that was granted until motion was let go; the largest step of a setpoint from frame to frame and its largest change,
over the whole run and while it recovered, as shares of what the legs' limits allow in one period; how the second variant ended. A row is
as it should be when the run parked, no setpoint left its limits, its log is complete, replays byte for byte and names who recovered, and
the next variant captured.

`proof_test` is a row of its own: on a stand that asks for the proof test of its chain (`limits.proof_test`) somebody operates emergency
stop and guard, one after the other, and the docking begins by itself when both are closed again. Printed: when the test was asked for and
when it was done, how far a leg came until then, what was operated, exit code. A row is as it should be when the log has the question from
the first tick on and the answer, the safety stage let no setpoint go before it, no fault came, the units captured, and the log replays byte
for byte.

`--power`: the rows of power over the wires, on the docking stand and (CANopen) the hydraulic and the electric one, the cause 1.5 s after
the first synchronisation, in motion: a leg runs away, jams, its drive leaves its state, the emergency stop is operated, the supply is
lost, a hose bursts. Printed: the faults of the trip; from its tick until the drive has reported that it is without power (with the
emergency stop all six); when the legs stood; the greatest way and speed of a leg from the cause on, as the plant truly moved. A row is as
it should be when a fault of the category *off* has taken the power within 50 ms, the log is complete and replays byte for byte.
`ethercat` runs in a network namespace of its own, on a pair of interfaces.

`--sensor`: the rows of a force sensor on its own wire (docs/devices.md), what its emulator can do wrong. Printed: the bits of its status
from then on, the faults of the run, exit code, whether the log replays byte for byte. A row is as it should be when the bit of the table is
among them and the fault came, if it stops a run. Faults of a rate (lost, damaged records) need more of them in a second than a slow sensor
has, a gap must be longer than the safety stage tolerates.

`--whole`: all of them, the hydraulic rows with both profiles.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.simulated.injections import EMULATED, SERVED, wire_fault  # noqa: E402
from drivers.wrench_sensors import rdt_status  # noqa: E402
from hil_server import registry  # noqa: E402
from hil_server.client import Client, NoAnswerError  # noqa: E402
from hil_server.config import load_test  # noqa: E402
from hil_server.errors import HilError  # noqa: E402
from hil_server.host.realtime_host import RealtimeHost  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.log.reader import read_log  # noqa: E402
from hil_server.run import session  # noqa: E402
from hil_server.run.replay import replay  # noqa: E402
from hil_server.run.session import Options, run_live  # noqa: E402
from hil_server.run.stand import virtual_stand  # noqa: E402
from rt_kernels.codes import FAULT_MASKS, fault_names  # noqa: E402
from rt_kernels.layout import BITS, CODES, WORDS  # noqa: E402
from rt_kernels.layout import FAULTS as TABLE  # noqa: E402
from tests.open_stand import opened  # noqa: E402
from tools.ethercat_docking import INSIDE, make_wire, on_ethercat  # noqa: E402

STOP = {name for name, _, severity, *_ in TABLE if severity == "stop"}
# a loop that is held up for hundredths of a second catches up with its motion: not the fault that is looked for
QUICK = ["guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.fault_s=0.3",
         "test.duration_max_s=4.0", "telemetry.publish=tcp://127.0.0.1:*", "telemetry.command=tcp://127.0.0.1:*",
         "telemetry.hand_controller=tcp://127.0.0.1:*", "safety.rate_excess_s=1.0"]  # fmt: skip
# stand files' tables of the sensors that the virtual stand can have; the FT 300 carries a unit that is light enough for it
LINE = "stand.wrench_sensor.device=/dev/ttyUSB0"
RANGES = ["stand.wrench_sensor.force_range_n=[3000.0, 3000.0, 3000.0]", "stand.wrench_sensor.moment_range_n_m=[600.0, 600.0, 600.0]"]
SENSORS = {
    "rdt": ["stand.wrench_sensor.variant=onrobot", "stand.wrench_sensor.address=127.0.0.1", "stand.wrench_sensor.output_rate_hz=1000.0"],
    "bota_serial": [LINE, "stand.wrench_sensor.sinc_length=51", *RANGES],
    # its port judges values that do not move before the wrench stage does
    "robotiq_ft300": [LINE, "stand.mounting.carried_mass_kg=10.0", "stand.wrench_sensor.stale_ms=300.0"],
    "ati_can": ["stand.wrench_sensor.link=can0", *RANGES],
}
# silence is judged at once where silence is the fault; elsewhere a busy machine must not look like one
STRICT = ["safety.sensor_missing_periods=1", "safety.drive_missing_periods=1", "safety.signals_missing_periods=1"]
SILENCES = ("sensor_no_data", "drive_no_data", "signals_no_data")
# a sensor that stays busy counts as stale in the end; an unknown status bit is the device's own fault
ENDS_IN_TRIP = ("sensor_busy", "sensor_status_word")
# faults of a rate or of a time: a sensor that is slow enough stays below the one, a short gap below the other
COUNTED = ("sensor_delay", "sensor_lost", "sensor_corrupt", "sensor_noise", "sensor_checksum")
# a stand whose emergency chain has all its inputs: what chain_state says of each, by the index of the injection
CHAIN = {"emergency_stop": ("emergency_stop",), "guard_open": ("guard_open",),
         "chain_discrepant": ("emergency_stop_differs", "guard_differs"),
         "unit_fault": ("unit_off", "unit_low", "unit_high", "unit_interlock")}  # fmt: skip
WIRED = ["stand.limits.emergency_stop=true", "stand.limits.guard=true", "stand.limits.hydraulic_unit=true"]
AT_S = 1.5


_prediction = {}


def _remembered(config, test, options, make=session._foreseen):
    """The prediction of a run's line; that of the docking stand is the same in every row and made once."""
    stand = config.stand["name"]
    if stand not in _prediction:
        _prediction[stand] = make(config, test, options)
    return _prediction[stand]


def shown(records: np.ndarray, fault) -> int | None:
    """First tick whose inputs show the fault."""
    found = []
    for field, name in fault.shows:
        words = records[field].reshape(len(records), -1)
        found.append(np.flatnonzero((words & BITS[WORDS[field][1]][name] != 0).any(axis=1)))
    return min((int(f[0]) for f in found if len(f)), default=None)


def of_sensor(part: str) -> list:
    """The faults that this sensor can show."""
    variant = "onrobot" if part == "rdt" else registry.parts("emulated_sensors")[part]
    found = []
    for fault in EMULATED:
        if fault.at == "sensor":
            with contextlib.suppress(ValueError):
                wire_fault(fault.name, None, variant)
                found.append(fault)
    return found


def meant_by(fault, part: str) -> tuple[list[str], str]:
    """Bits of wrench_status and fault of the table that this sensor should show."""
    bits = [name for field, name in fault.shows if field == "wrench_status"]
    if part == "rdt" and set(bits) & {kind for _, _, kind in rdt_status.NET_FT + rdt_status.AXIA}:
        # OnRobot's status word is not public: whatever it says is a fault of the device
        return ["device_fault"], "sensor_device_fault"
    return bits, fault.fault


def of_wire(fault, part: str) -> tuple[str, bool]:
    """A fault of a sensor's own wire: what came, first bits and faults, how the run ended, and that its log replays."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [*QUICK, "test.duration_max_s=3.0", f"stand.wrench_sensor.part={part}", *SENSORS[part]]
        injected = {"name": fault.name, "index": -1, "at_s": 0.0 if fault.at_start else AT_S}
        stand = {"faults": [injected]}
        summary = run_live(load_test(None, opened(settings)), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log = read_log(summary["log"])
        after = log.records["time_ns"] - log.records["time_ns"][0] > (AT_S - 0.1) * 1e9
        word = int(np.bitwise_or.reduce(log.records["wrench_status"][after])) if after.any() else 0
        bits = [name for name, bit in BITS["sensor_status"].items() if word & bit]
        came, equal = summary["faults"], replay(summary["log"], verify=True)["equal"]
        stops = bool(set(came) & STOP)
        meant, wanted = meant_by(fault, part)
        good = equal and set(meant) <= set(bits) and summary["exit_code"] == (3 if stops else 0) and not log.incomplete
        if wanted in STOP and fault.name not in COUNTED:
            good = good and wanted in came
        return (f"{part:14s} {fault.name:20s} bits {'+'.join(bits) or '-':32s} faults {'+'.join(came) or '-':40s} "
                f"exit {summary['exit_code']}  replay {'equal' if equal else 'DIFFERS'}"), good  # fmt: skip


def one(fault, place: int = 0) -> tuple[str, bool]:
    """A row; place: of an input of the chain."""
    with tempfile.TemporaryDirectory() as folder:
        settings = QUICK + (STRICT if fault.fault in SILENCES else []) + (WIRED if fault.name in CHAIN else [])
        index = place if fault.name in CHAIN else _index(fault)
        injected = {"name": fault.name, "index": index, "at_s": 0.0 if fault.at_start else AT_S}
        stand = {"sensor": {"variant": "axia"}, "faults": [injected]}
        summary = run_live(load_test(None, opened(settings)), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log = read_log(summary["log"])
        records = log.records
        if not fault.fault:
            good = summary["exit_code"] == (3 if fault.name in ENDS_IN_TRIP else 0) and not log.incomplete
            return f"{fault.name:22s} no fault expected: exit {summary['exit_code']}, faults {summary['faults']}", good
        bits = np.flatnonzero(records["faults"] & FAULT_MASKS[fault.fault])
        if not len(bits):
            return f"{fault.name:22s} {fault.fault:20s} DID NOT COME; came: {summary['faults']}", False
        first, seen = int(bits[0]), shown(records, fault)
        # a frame moves by one period's worth, however many the loop was held up for
        period_s = 1e-9 * log.header.period_ns
        braking = np.abs(np.diff(records["leg_setpoint"][first:], n=2, axis=0)).max(initial=0.0) / period_s**2
        stops = fault.fault in STOP or fault.name in ENDS_IN_TRIP
        exit_code = 3 if stops else 0
        good = summary["exit_code"] == exit_code and not log.incomplete and braking <= 10.0 + 1e-6
        state = ""
        if fault.name in CHAIN:
            state = CHAIN[fault.name][place]
            good = good and bool(records["chain_state"][first] & BITS["chain_state"][state])
        late = "-" if seen is None else f"{first - seen}"
        return (f"{fault.name:22s} {fault.fault:20s} {state:22s} ticks {late:>3s}  exit {summary['exit_code']}  "
                f"braking {braking:5.2f} m/s2  "
                f"log {'complete' if not log.incomplete else log.incomplete}"), good  # fmt: skip


PROOF = {"emergency_stop": 0.5, "guard_open": 1.0}  # what is operated, s after the first synchronisation, for so long:
OPERATED_S = 0.2


def proof_test() -> tuple[str, bool]:
    """The proof test of the chain before the first motion."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [*QUICK, *WIRED, "stand.limits.proof_test=true", "test.duration_max_s=10.0", "safety.arming_s=8.0"]
        operated = [{"name": name, "index": -1, "at_s": at_s, "duration_s": OPERATED_S} for name, at_s in PROOF.items()]
        stand = {"sensor": {"variant": "axia"}, "faults": operated}
        summary = run_live(load_test(None, opened(settings)), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log = read_log(summary["log"])
        records, bits = log.records, BITS["chain_state"]
        asked, proven = (records["chain_state"] & bits[name] != 0 for name in ("proof_asked", "proven"))
        done = int(np.argmax(proven)) if proven.any() else len(records) - 1
        time_s = (records["time_ns"] - records["time_ns"][0]) * 1e-9
        still = (records["safety_state"][:done] == CODES["safety_state"]["not_armed"]).all()  # the drives hold where they stand
        way = float(np.ptp(records["measured_leg"][:done], axis=0).max())
        seen = [name for name in ("stop_seen_open", "guard_seen_open") if records["chain_state"][done] & bits[name]]
        equal = replay(summary["log"], verify=True)["equal"]
        good = (asked[:done].all() and proven[done:].all() and still and len(seen) == 2 and not summary["faults"]
                and summary["captured"] and summary["exit_code"] == 0 and equal and not log.incomplete)  # fmt: skip
        return (f"{'proof_test':22s} asked at {time_s[int(np.argmax(asked))]:4.2f} s, {'+'.join(seen) or '-'}, "
                f"{'done' if proven.any() else 'NOT DONE'} at {time_s[done]:4.2f} s, until then {1e3 * way:.3f} mm  "
                f"faults {'+'.join(summary['faults']) or '-'}  exit {summary['exit_code']}  replay {'equal' if equal else 'DIFFERS'}"), good


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
        summary = run_live(load_test(None, opened(settings)), Options(out=folder, quiet=True, report=False, force=True, stand=stand))
        log, truth = read_log(summary["log"]), np.load(truth_file)
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
        platform = load_test(None, opened(settings)).stand["platform"]
        room = min(legs.min() - platform["leg_length_min_m"], platform["leg_length_max_m"] - legs.max())
        equal = replay(summary["log"], verify=True)["equal"]
        good = (row.fault in first and summary["exit_code"] == 3 and in_contact and stop <= STOP_S and room > 0.0 and equal
                and not log.incomplete)  # fmt: skip
        return (f"{title} {'+'.join(sorted(first)):32s} after {1e3 * (trip_s - CONTACT_AT_S):4.0f} ms  stopped in {1e3 * stop:4.0f} ms, "
                f"{1e3 * speed[at_stop]:4.1f} mm/s at 0.2 s, {1e3 * came:4.1f} mm, then {1e3 * after:4.1f} mm  stroke left {room:4.2f} m  "
                f"leg {np.abs(records['leg_force']).max() / 1e3:4.1f} kN  log {log.incomplete or 'complete'}, "
                f"replay {'equal' if equal else 'DIFFERS'}"), good  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------- power
# title, injection, leg (-1: all), its value (None: the table's own)
POWER_ROWS = (
    ("runaway 0.2 m/s", "leg_runaway", 2, 0.2),
    ("runaway -0.2 m/s", "leg_runaway", 2, -0.2),
    ("jam", "leg_stuck", 2, None),
    ("drive leaves its state", "drive_disabled", 2, None),
    ("emergency stop", "emergency_stop", -1, None),
    ("supply lost", "supply_loss", -1, None),
    ("hose burst", "line_burst", 2, None),
)
OFF_MS, STANDS_M_S = 50.0, 1e-3
AT_ONCE = sum(mask for _, mask, *_, power in TABLE if power == "off")


def power(stand: str, wire: str, title: str, injection: str, leg: int, value: float | None) -> tuple[str, bool]:
    """One row: when the drive has no power after its fault, over the wire."""
    with tempfile.TemporaryDirectory() as folder:
        truth_file = str(Path(folder) / "truth.npy")
        injected = {"name": injection, "index": max(leg, 0), "at_s": AT_S} | ({} if value is None else {"value": value})
        settings = [*QUICK, f"test.stand=stands/{stand}_stand.toml", *(WIRED if injection in CHAIN else ()), "test.duration_max_s=6.0",
                    "guidance.fault_s=1.0"]  # fmt: skip
        drives = on_ethercat()["drives"] if wire == "ethercat" else {"profile": wire}
        beside = {"sensor": {"variant": "axia"}, "drives": drives, "truth_file": truth_file, "faults": [injected]}
        summary = run_live(load_test(None, opened(settings)), Options(out=folder, quiet=True, report=False, force=True, stand=beside))
        log, truth = read_log(summary["log"]), np.load(truth_file)
        records, label = log.records, f"{stand} {wire}"
        if records["trip_tick"][-1] < 0:
            return f"{label:18s} {title:22s} DID NOT TRIP; faults {summary['faults']}", False
        trip = int(np.flatnonzero(records["tick"] == records["trip_tick"][-1])[0])
        if (records["time_ns"][trip] - records["time_ns"][0]) * 1e-9 < AT_S - 0.1:
            return f"{label:18s} {title:22s} TRIPPED BEFORE ITS CAUSE; faults {summary['faults']}", False
        faults = set(fault_names(records["faults"][trip])) & STOP
        axes = range(6) if leg < 0 else (leg,)
        on = records["drive_status"][trip:, axes] & BITS["drive_status"]["not_enabled"] == 0
        off = np.flatnonzero(~on.any(axis=1))
        taken_ms = 1e-6 * float(records["time_ns"][trip + off[0]] - records["time_ns"][trip]) if len(off) else np.inf
        over_s = 1e-9 * float(records["time_ns"][records["phase"] == CODES["phase"]["fault"]][-1])  # then all brakes close
        since = (truth[:, 0] >= AT_S) & (truth[:, 0] <= over_s)
        t, legs, rates = truth[since, 0], truth[since, 1:7], np.abs(truth[since, 7:13]).max(axis=1)
        moving = np.flatnonzero(rates > STANDS_M_S)
        stood_ms = 1e3 * max(0.0, float(t[moving[-1]]) - (records["time_ns"][trip] - records["time_ns"][0]) * 1e-9) if len(moving) else 0.0
        equal = replay(summary["log"], verify=True)["equal"]
        at_once = bool(int(records["faults"][trip]) & AT_ONCE)
        good = (taken_ms <= OFF_MS or not at_once) and summary["exit_code"] == 3 and equal and not log.incomplete
        return (f"{label:18s} {title:22s} {'+'.join(sorted(faults)):32s} off after {taken_ms:5.1f} ms"
                f"{'' if at_once else ' (brakes first)'}  legs stand after {stood_ms:4.0f} ms  "
                f"way {1e3 * np.abs(legs - legs[0]).max():3.0f} mm  {1e3 * rates.max():4.0f} mm/s  "
                f"replay {'equal' if equal else 'DIFFERS'}"), good  # fmt: skip


def power_rows(wire: str) -> list:
    """Name and row of each; what only a loaded machine can have on those, which are on CANopen, a hose on the one that has hoses."""
    known = {injection.name: injection.stands for injection in SERVED}
    stands = ("docking",) if wire == "ethercat" else ("docking", "hydraulic", "electric")
    return [(row[1], lambda row=row, stand=stand: power(stand, wire, *row)) for stand in stands for row in POWER_ROWS
            if stand == "hydraulic" or "hydraulic" not in known[row[1]] or (stand == "electric" and row[1] != "line_burst")]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- recovery

# a silence that lasts is the fault; one of a busy machine is none, and neither is a late start
WAITING = ["guidance.recover_s=20", "guidance.after_capture_s=0.5", "guidance.retreat_distance_m=0.05", "test.duration_max_s=60.0",
           "safety.sensor_missing_periods=20", "safety.drive_missing_periods=20", "safety.signals_missing_periods=20",
           "safety.arming_s=5.0"]  # fmt: skip
HELD = (CODES["safety_state"]["held"], CODES["safety_state"]["blocked"])
MOST_TRIES = 5
REST_S = 0.2  # of the setpoints before the operator acts


class Operator:
    """Follows a live run on its bus and acts once it has tripped: asks to recover with the cause there, clears it, asks again, parks."""

    def __init__(self, addresses: dict[str, str], clear) -> None:
        self._addresses, self._clear = addresses, clear
        self.answers: list[str] = []
        self._over = self._recovers = False  # recovers: reported; what the bus shows may be older than the answer
        self._thread = threading.Thread(target=self._act, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The run is over."""
        self._over = True
        self._thread.join()

    def _act(self) -> None:
        with Client(self._addresses["publish"], self._addresses["command"], name="matrix") as client:
            while not self._over:
                try:
                    self._follow(client)
                except NoAnswerError:
                    pass  # the bus is silent: a busy machine, or the end of the run
                except HilError as error:
                    self.answers.append(str(error))

    def _follow(self, client: Client) -> None:
        for batch in client.subscribe(["phase", "safety_state"], timeout_s=1.0):
            phase, state = batch["phase"][-1], batch["safety_state"][-1]
            if self._over:
                return
            if self._recovers and phase == CODES["phase"]["hold"]:
                client.command("park")
                self._recovers = False
            elif not self._recovers and phase == CODES["phase"]["fault"] and state in HELD:
                time.sleep(REST_S)
                self._recovers = self._recover(client)

    def _recover(self, client: Client) -> bool:
        """Asks once, the first time with the cause still there. Whether motion was let go; without hope the run is ended."""
        self.answers.append(self._ask(client))
        if len(self.answers) == 1:
            self._clear()
            time.sleep(REST_S)
        if len(self.answers) == MOST_TRIES:
            client.command("stop")
        return self.answers[-1] == "recovered"

    @staticmethod
    def _ask(client: Client) -> str:
        try:
            client.command("recover")
        except HilError as error:
            return str(error)
        return "recovered"


def steps(records: np.ndarray, platform: dict, period_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Of each record, the step of the setpoints from the frame before it, and the change of that step: the largest of the six legs, as
    shares of what their limits allow. Zero before the setpoints have started."""
    armed = records["safety_state"] != CODES["safety_state"]["not_armed"]
    first = int(np.argmax(armed)) + 1
    step = np.diff(records["leg_setpoint"], axis=0, prepend=records["leg_setpoint"][:1])
    step[:first] = 0.0
    change = np.diff(step, axis=0, prepend=step[:1])
    return (np.abs(step).max(axis=1) / (platform["leg_rate_max_m_s"] * period_s),
            np.abs(change).max(axis=1) / (platform["leg_acceleration_max_m_s2"] * period_s**2))  # fmt: skip


def recover(fault, profile: str = "cia402") -> tuple[str, bool]:
    """One recovery row: what is printed, and whether it is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        addresses = {name: f"ipc://{folder}/{name}" for name in ("publish", "command", "hand_controller")}
        own = [f"telemetry.{name}={address!r}" for name, address in addresses.items()]
        settings = [*QUICK, *own, *WAITING, *(WIRED if fault.name in CHAIN else ())]
        config = load_test(None, opened(settings))
        beside = {"sensor": {"variant": "axia"}, "drives": {"profile": profile}}
        with RealtimeHost() as host:
            pass  # what the runs will have; they take it themselves
        with virtual_stand(config, assembly.base_context(config), host, beside) as stand:
            stand.control.inject(fault.name, _index(fault), at_s=AT_S)
            operator = Operator(addresses, stand.control.clear_all)
            options = Options(out=f"{folder}/first", quiet=True, report=False, force=True, stand={"process": stand})
            summary = run_live(config, options)
            operator.end()
            options = Options(out=f"{folder}/next", quiet=True, report=False, force=True, stand={"process": stand})
            try:
                following = run_live(config, options)
            except HilError as error:
                following = {"captured": False, "end": str(error), "exit_code": error.exit_code, "faults": []}
        log = read_log(summary["log"])
        records = log.records
        asked = summary["recoveries"]
        at = np.flatnonzero(records["tick"] == asked[0]["tick"]) if asked else ()
        tripped = records["faults"][at[0]] if len(at) else 0  # latched until then
        shares = steps(records, config.stand["platform"], 1e-9 * log.header.period_ns)
        within = records["safety_state"] == CODES["safety_state"]["recovering"]
        within[1:] |= within[:-1]  # and the tick that lets motion go
        step, change = (float(share.max()) for share in shares)
        moved = [float(share[within].max(initial=0.0)) for share in shares]
        done = [one for one in summary["recoveries"] if one["outcome"] == "recovered"]
        took = done[0]["ended_s"] - done[0]["time_s"] if done else float("nan")
        again = f", {len(done)} trips" if len(done) > 1 else ""
        equal = replay(summary["log"], verify=True)["equal"]
        parked = bool(summary["recovered"]) and records["phase"][-2] == CODES["phase"]["park"]
        good = (bool(tripped & FAULT_MASKS[fault.fault]) and parked and done[0]["by"].endswith("matrix")
                and step <= 1.0 + 1e-9 and change <= 1.0 + 1e-6 and equal and not log.incomplete
                and summary["end"] == "tripped" and following["exit_code"] == 0 and following["captured"])  # fmt: skip
        first = "at once" if asked and asked[0]["outcome"] == "recovered" else "+".join(asked[0]["standing"]) if asked else "not asked"
        names = "+".join(name for name in fault_names(int(tripped)) if name in STOP)
        return (f"{fault.name:20s} {profile} {names:28s} with the cause: {first:28s} then {took:4.2f} s{again}  "
                f"step {step:4.2f} change {change:4.2f}, recovering {moved[0]:6.4f} {moved[1]:6.4f}  "
                f"{'parked' if parked else 'NOT PARKED ' + str(operator.answers)}  log {log.incomplete or 'complete'}, "
                f"replay {'equal' if equal else 'DIFFERS'}  next: {'captured' if following['captured'] else following['end']}, "
                f"exit {following['exit_code']} {following.get('cause') or ''}"), good  # fmt: skip


def trips(fault) -> bool:
    """Whether a fault ends a run and can be taken away again."""
    return fault.fault in STOP and "hydraulic" not in fault.stands and not fault.at_start


def _index(fault) -> int:
    return 0 if fault.name in CHAIN else {"drive": 2, "plant": 0}.get(fault.at, -1)


def tried(run) -> tuple[str, bool]:
    """A row; a device that did not come up (a machine that is too busy for it) is a row that is not as it should be."""
    try:
        return run()
    except HilError as error:
        return f"{error}", False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of injected faults, or proof_test; default: all")
    parser.add_argument("--hydraulic", action="store_true", help="the rows of the hydraulic stand, during a contact")
    parser.add_argument("--recover", action="store_true", help="the recovery rows: trip, clear, recover, park, next variant")
    parser.add_argument("--power", action="store_true", help="the rows of power over the wires")
    parser.add_argument("--sensor", choices=(*SENSORS, "all"), help="the rows of a sensor on its own wire")
    parser.add_argument("--whole", action="store_true", help="recoveries, faults, sensors, and the hydraulic rows with both profiles")
    parser.add_argument("--profile", default="cia402", choices=("cia402", "cia408", "ethercat"),
                        help="drives of the hydraulic, the recovery and the power rows; ethercat: of the latter alone")  # fmt: skip
    parser.add_argument("--tries", type=int, default=1, help="of a row that is not as it should be; each one is printed")
    args = parser.parse_args()
    if args.profile == "ethercat" and not args.power:
        parser.error("--profile ethercat: has rows of --power alone")
    if args.profile == "ethercat" and INSIDE not in os.environ:
        unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
        return subprocess.call([*unshare, sys.executable, __file__, *sys.argv[1:]], env=os.environ | {INSIDE: "1"})
    if args.profile == "ethercat":
        make_wire()
    session._foreseen = _remembered  # in this process of its own
    faults = [(fault.name, lambda fault=fault, place=place: one(fault, place)) for fault in SERVED if "hydraulic" not in fault.stands
              for place in range(len(CHAIN.get(fault.name, (0,))))]  # fmt: skip
    faults.append(("proof_test", proof_test))
    recoveries = [(fault.name, lambda fault=fault: recover(fault, args.profile)) for fault in SERVED if trips(fault)]
    parts = SENSORS if args.whole or args.sensor == "all" else (args.sensor,) if args.sensor else ()
    own = args.hydraulic or args.sensor or args.power  # rows of another kind
    rows = [*recoveries, *faults] if args.whole else recoveries if args.recover else [] if own else faults
    rows += power_rows(args.profile) if args.power else []
    rows += [(fault.name, lambda fault=fault, part=part: of_wire(fault, part)) for part in parts for fault in of_sensor(part)]
    for profile in ("cia402", "cia408") if args.whole else (args.profile,) if args.hydraulic else ():
        rows += [(row.injection, lambda row=row, profile=profile: hydraulic(row, profile)) for row in HYDRAULIC_ROWS]
    bad = 0
    for name, run in rows:
        if args.names and name not in args.names:
            continue
        for _ in range(args.tries):
            text, good = tried(run)
            if good:
                break
            print(f"{text}   <- not as it should be", flush=True)
        if good:
            print(text, flush=True)
        bad += not good
    print(f"{bad} rows not as they should be")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
