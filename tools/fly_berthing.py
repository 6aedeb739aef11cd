"""Lets the made-up operator (hil_server.operator_desk.autopilot) fly a berthing and keeps what it did as a recorded operator.

python tools/fly_berthing.py CONFIG --out rt_3.csv        in process, faster than real time; to be played by [commands] part = "script"
python tools/fly_berthing.py PROGRAMME --out FOLDER       every variant, a file each: FOLDER/rt-3.csv
python tools/fly_berthing.py CONFIG --live [--out ...]    beside a run of CONFIG, by its bus, over the wire
"""

import argparse
import time
from pathlib import Path

import numpy as np

from hil_server.client import Client
from hil_server.config import TestConfig, load_test
from hil_server.line import assembly
from hil_server.operator_desk.autopilot import Pilot, pilot_for
from hil_server.operator_desk.script import Row, rows_array, save
from hil_server.operator_desk.sender import HandSender
from hil_server.run.programme import is_programme, load_programme
from rt_kernels.layout import BITS, CODES
from rt_kernels.recorded_operator import ROW_DTYPE, Script

CAPTURED, FREE = BITS["mechanism_signal"]["DSG"], CODES["motion"]["free"]
FINISH, ENDED = CODES["phase"]["finish"], CODES["phase"]["ended"]
MOST_ROWS = 100_000


def fly(config: TestConfig) -> tuple[list[Row], np.ndarray]:
    """One attempt in process. Returns the rows of the record and the last sample."""
    config.document["commands"] = {"part": "latch"}
    test = assembly.simulation(config)
    pilot = pilot_for(config, test.context["start"])
    line, period = test.line, test.period_ns
    stands = [port for port in line.ports[1:]]
    rows, given = pilot.take_over(0.0), np.zeros(MOST_ROWS, ROW_DTYPE)
    given[: len(rows)] = rows_array(rows)
    port = Script(given[: len(rows)])
    s = line.sample
    look_every = round(1e9 / pilot.habits.look_hz / period)
    for tick in range(round(config.test["duration_max_s"] * 1e9 / period)):
        s["tick"], s["time_ns"], s["periods"] = tick, tick * period, 1
        port.read(s)
        for stand in stands:
            stand.read(s, line.aux if len(line.aux) else None)
        line.sample = s
        line.tick_once()
        s = line.sample
        for stand in stands:
            stand.write(s, line.aux if len(line.aux) else None)
        if s["phase"][0] == ENDED:
            break
        if s["motion"][0] == FREE and tick % look_every == 0:
            seen = bool(s["contact"][0]), bool(s["mechanism_state"][0] & CAPTURED)
            new = pilot.look((tick + 1) * period * 1e-9, s["X_TA"][0].copy(), *seen)
            if new:
                given[len(rows) : len(rows) + len(new)] = rows_array(new)
                rows += new
                state = port.snapshot()
                port = Script(given[: len(rows)])
                port.restore(state)
    return rows, s


def fly_live(pilot: Pilot, seconds: float) -> list[Row]:
    """Beside a run: looks at the bus, sends both stations at 100 Hz until the run has ended or captured."""
    rows = pilot.take_over(0.0)
    newest = {int(row.what): row for row in rows}
    senders = {station: HandSender(station) for station in ((0,) if pilot.rotation_from == "left" else (0, 1))}
    began = time.monotonic()
    with Client() as client:
        for batch in client.subscribe(["X_TA", "contact", "mechanism_state", "motion", "phase"], topic="slow", timeout_s=30.0):
            last = batch.last
            if last["motion"] == FREE:
                new = pilot.look(batch.t, np.array(last["X_TA"]), bool(last["contact"]), bool(last["mechanism_state"] & CAPTURED))
                rows += new
                newest |= {int(row.what): row for row in new}
            elif last["phase"] >= FINISH:
                break
            if time.monotonic() - began > seconds:
                break
            for _ in range(4):
                for station, row in newest.items():
                    senders[station].send(row.values, row.buttons)
                time.sleep(0.008)
    for sender in senders.values():
        sender.close()
    return rows


def report(name: str, rows: list[Row], s: np.ndarray) -> None:
    t = {key: float(s[key][0]) for key in ("first_contact_time", "capture_time")}
    print(f"{name}: {len(rows)} rows, contact {t['first_contact_time']:.1f} s, capture {t['capture_time']:.1f} s, "
          f"phase {int(s['phase'][0])}, end {int(s['end_cause'][0])}, faults {int(s['faults'][0]):#x}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out")
    parser.add_argument("--live", action="store_true")
    args = parser.parse_args()
    if args.live:
        config = load_test(args.config, args.set)
        rows = fly_live(pilot_for(config, assembly.base_context(config)["start"]), config.test["duration_max_s"] + 60.0)
        if args.out:
            save(args.out, rows, f"made-up operator, live, {config.test['name']}")
        return
    if is_programme(args.config):
        todo = [(v.number, v.config, Path(args.out) / f"{v.number.lower()}.csv") for v in load_programme(args.config, args.set)[1]]
    else:
        todo = [(args.config, load_test(args.config, args.set), Path(args.out))]
    for name, config, path in todo:
        rows, last = fly(config)
        report(name, rows, last)
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, rows, f"made-up operator (tools/fly_berthing.py), {name}")


if __name__ == "__main__":
    main()
