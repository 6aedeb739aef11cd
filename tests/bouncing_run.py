"""A run with closed-form contents: a mass that bounces on a spring, once with loss, and is then captured."""

import numpy as np
import pytest

from hil_server.log.header import LogHeader
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter
from rt_kernels.layout import BITS, CODES, FAULTS

MASS, SPEED, STIFFNESS, RESTITUTION = 1000.0, 0.2, 4.0e5, 0.9
HALF_PERIOD = np.pi * np.sqrt(MASS / STIFFNESS)  # s, how long a contact lasts
FIRST, END = 1.0, 4.0  # s


def bouncing_run(first=FIRST, force_scale=1.0, seconds=END):
    """Approach at SPEED until `first`, half a sine of force, rebound with RESTITUTION; at `first` + 1 s a contact that ends captured."""
    count = round(1000 * seconds)
    r = np.zeros(count, record_dtype(2))
    t = np.arange(count) * 1e-3
    r["tick"], r["time_ns"] = np.arange(count), np.arange(count) * 1_000_000
    r["lateness_ns"], r["compute_ns"], r["read_ns"], r["write_ns"], r["periods"] = 20_000, 5_000, 8_000, 7_000, 1
    r["realtime_mode"] = 2
    r["X_TA"][:, 6] = r["X_WP"][:, 6] = 1.0
    r["X_TA"][:, 0] = np.maximum(SPEED * (first - t), 0.0)
    touching = (t >= first) & (t < first + HALF_PERIOD)
    again = t >= first + 1.0
    r["contact"] = touching | again
    r["motion"] = CODES["motion"]["free"]
    speed = np.where(t < first, -SPEED, SPEED * RESTITUTION)
    speed = np.where(touching, -SPEED * np.cos(np.pi * (t - first) / HALF_PERIOD), np.where(again, 0.0, speed))
    r["V_TA"][:, 0] = speed
    r["kinetic_energy"] = 0.5 * MASS * speed**2
    # the monitor counts on for a while after the flag, and keeps what it has until the next contact
    r["contact_work"] = np.where(touching, -2.5, np.where((t >= first) & ~again, -3.0, 0.0))
    force = SPEED * np.sqrt(MASS * STIFFNESS) * np.sin(np.pi * (t - first) / HALF_PERIOD)
    r["F_T"][:, 0] = np.where(touching, -force_scale * force, 0.0)
    r["F_T"][:, 4] = 0.1 * r["F_T"][:, 0]
    r["leg_setpoint"] = 1.5 + 0.01 * np.sin(t)[:, None]
    r["measured_leg"] = r["leg_setpoint"] - 0.0005
    r["following_error"], r["stroke_margin"], r["trip_tick"] = 0.0005, 0.4 - 0.05 * t, -1
    phase = CODES["phase"]
    r["phase"] = np.where(t < first, phase["closing"], np.where(again, phase["latched"], phase["contact"]))
    r["first_contact_time"] = np.where(t >= first, first, -1.0)
    r["capture_time"] = np.where(again, first + 1.0, -1.0)
    r["end_cause"][-1] = CODES["end_cause"]["captured"]
    r["loop_delay"] = 0.004
    r["aux"] = np.column_stack([t, -t])
    return r


def tripped_run():
    """As the bouncing run, but the force limit trips it at tick 1020."""
    r = bouncing_run()
    bit = {name: bit for name, bit, *_ in FAULTS}
    r["faults"][1020:] |= bit["force_limit"]
    r["faults"][500:] |= bit["drive_limit_touched"]
    r["trip_tick"][1020:] = 1020
    r["signal_discrete"][900:1010] = BITS["mechanism_signal"]["lever2_contact"]
    r["late_cause"][[100, 200, 300]] = [CODES["late_cause"][name] for name in ("wake_up", "io", "io")]
    r["lateness_ns"][100] = 2_500_000
    r["missed_total"][100:] = 2
    r["setpoint_status"][[1001, 1002, 1003]] = [1 << 16, 1 << 21, 1 << 18 | 1 << 13]
    r["end_cause"][-1] = CODES["end_cause"]["tripped"]
    return r


@pytest.fixture(scope="session")
def write_run(tmp_path_factory):
    """write_run(records, name="run", **header) -> path of a log."""

    def make(records, name="run", facts=None, **header):
        path = tmp_path_factory.mktemp("logs") / f"{name}.mcap"
        about = {"run_id": name, "mode": "simulation", "aux": (("stroke", "m", "damper", 2),), "configuration": {"stand.toml": "<b> = 1\n"}}
        writer = LogWriter(path, LogHeader(**{**about, **header}))
        writer.write(records)
        writer.close(facts)
        return path

    return make


@pytest.fixture(scope="session")
def bounce(write_run):
    return write_run(bouncing_run(), "bounce", delay_ledger={"sensor_filter": 0.001, "ticks": 0.003})


@pytest.fixture(scope="session")
def trip(write_run):
    return write_run(tripped_run(), "trip", synthetic="cone of mechanisms/probe_cone.toml")


@pytest.fixture
def bounce_log(bounce):
    return read_log(bounce)


@pytest.fixture
def trip_log(trip):
    return read_log(trip)


@pytest.fixture(scope="session")
def make_bounce():
    return bouncing_run
