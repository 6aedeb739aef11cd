"""A logged run again: equal to the bit; what was changed is found and named."""

import numpy as np
import pytest

from hil_server import replay
from hil_server.config import load_test
from hil_server.session import Options, simulate
from hil_server.telemetry.log_file import LogWriter, open_log
from tests.system.line_runs import QUICK


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    summary = simulate(load_test(None, list(QUICK)), Options(out=str(folder), quiet=True, report=False))
    assert summary["captured"] and summary["exit_code"] == 0
    return summary["log"]


def rewrite(source, target, change):
    """The same log with `change(records)` done to its records; checksums stay as they were."""
    log = open_log(source)
    records = log.records.copy()
    change(records)
    writer = LogWriter(target, log.header)
    writer.copy(records)
    writer.close({})
    return target


def test_replay_is_equal_by_bytes(logged):
    result = replay.replay(logged, verify=True)
    assert result["equal"] and result["first_difference"] is None and result["exit_code"] == 0
    assert result["realtime_factor"] > 20  # the figure of 100 belongs to the benchmark


@pytest.mark.parametrize("field, index", [("wrench_raw", 2), ("lateness_ns", None), ("measured_leg", 0)])
def test_one_bit_of_an_input_is_found_and_named(logged, tmp_path, field, index):
    def flip(records):
        column = records[field] if index is None else records[field][:, index]
        raw = column.copy().view(np.uint64)
        raw[1234] ^= np.uint64(1)
        if index is None:
            records[field] = raw.view(column.dtype)
        else:
            records[field][:, index] = raw.view(column.dtype)

    path = rewrite(logged, tmp_path / "flipped.mcap", flip)
    result = replay.replay(path, verify=True)
    assert not result["equal"] and result["exit_code"] == 1
    assert result["first_difference"]["tick"] == 1234
    assert result["first_difference"]["channel"] == (field if index is None else f"{field}[{index}]")


def test_a_gain_changed_in_its_tenth_digit_is_found(logged):
    result = replay.replay(logged, verify=True, overrides=("compensators.lead_factor=1.0000000001",))
    assert not result["equal"] and result["first_difference"]["channel"].startswith("lead[1]")
    assert "original motion" in result["note"] and result["changes"]


def test_a_window_is_compared_alone(logged):
    result = replay.replay(logged, verify=True, start_s=1.0, stop_s=1.999)
    assert result["ticks"] == 1000 and result["equal"]


def test_what_if_with_the_same_value_is_equal(logged):
    assert replay.replay(logged, verify=True, overrides=("compensators.lead_factor=1.0",))["equal"]
