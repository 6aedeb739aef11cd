"""Records to log, with every field filled, as a loop would fill them; a header."""

import numpy as np
import pytest

from hil_server.log.header import LogHeader
from hil_server.log.record import record_dtype
from rt_kernels.layout import CODES

AUX = (("damper_stroke", "m", "strokes of the dampers", 3), ("temperature", "K", "oil", 1))


@pytest.fixture(scope="session")
def make_records():
    """make_records(count, first=0, aux=4, seed=1) -> (count,) records from tick `first`."""
    return _make_records


def _make_records(count, first=0, aux=4, seed=1):
    """`count` records from tick `first`; smooth signals with noise in the last bits, so that they compress like a real run."""
    rng = np.random.default_rng(seed)
    records = np.zeros(count, record_dtype(aux))
    time_s = (first + np.arange(count)) * 1e-3
    for name in records.dtype.names:
        field = records[name]
        if field.dtype.kind == "f" and field.size:
            wave = np.sin(3.0 * time_s + len(name)).reshape((count,) + (1,) * (field.ndim - 1))
            field[...] = wave + 1e-9 * rng.standard_normal(field.shape)
        elif field.dtype.kind in "iu":
            field[...] = rng.integers(0, 100, field.shape)
    records["tick"] = first + np.arange(count)
    records["time_ns"] = records["tick"] * 1_000_000
    records["lateness_ns"] = rng.integers(1_000, 60_000, count)
    records["periods"], records["missed_total"], records["overflow_total"] = 1, 0, 0
    records["command_sequence"], records["faults"], records["trip_tick"], records["events"] = 0, 0, -1, 0
    records["first_contact_time"] = records["capture_time"] = -1.0
    records["contact"], records["phase"], records["end_cause"], records["late_cause"] = 0, CODES["phase"]["approach"], 0, 0
    return records


@pytest.fixture
def header():
    return LogHeader(
        run_id="RT-07",
        build_id="abc123",
        mode="live",
        configuration={"stand.toml": "leg_stroke_max_m = 1.0\n", "vehicles.toml": "mass_kg = 7000.0\n"},
        aux=AUX,
        host={"kernel": "6.18", "isolated": []},
        delay_ledger={"sensor_filter": 0.0011, "ticks": 0.001},
        calibration={"bias": [1.0, 2.0]},
        notes=["operator A"],
        initial_record=bytes(range(256)),
        states={"dynamics": b"\x00\x01\xff", "compensation": b""},
    )
