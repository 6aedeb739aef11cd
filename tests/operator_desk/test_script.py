"""A recorded operator: its file, and its way into the sample under the same rules as the live hand controllers."""

import numpy as np
import pytest

from hil_server.errors import ConfigurationError
from hil_server.operator_desk.script import Row, load, parse, rows_array, save
from hil_server.operator_desk.script_port import ScriptPort
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.recorded_operator import Script

STALE, HELD = 2, 1
TEXT = """
# an operator
0.100, 0, 0, 0, 0, 0, 0, 0, 1
0.200, 0, 0.5, 0, 0, 0, 0, -0.25, 1     # pushes
0.200, step, 1, 0.02, 0.002
0.200, speed_mode, 0
0.500, 0, silent
0.900, 0, 0.5, 0, 0, 0, 0, 0, 1
1.000, 0, 0, 0, 0, 0, 0, 0, 1
1.100, 0, 1, 0, 0, 0, 0, 0, 1
1.200, 0, 1, 0, 0, 0, 0, 0, 0
"""


def play(rows, seconds=1.5, period=0.001):
    """Axis 0, status of station 0, command of every tick."""
    port, sample, seen = Script(rows_array(rows)), np.zeros(1, SAMPLE_DTYPE), []
    for tick in range(round(seconds / period)):
        sample["time_ns"] = tick * round(period * 1e9)
        port.read(sample)
        s = sample[0]
        seen.append((s["hand_axis"][0], s["hand_status"][0], s["command_code"], s["hand_age_ns"][0], *s["command_arg"][:3]))
    return np.array(seen)


def test_rows_at_their_time_and_the_rules_of_the_latch():
    seen = play(parse(TEXT))
    axis, status = seen[:, 0], seen[:, 1].astype(int)
    assert not status[:100].any(), "nothing reported yet"
    assert not axis[:200].any() and np.all(axis[200:700] == 0.5), "from its row until 0.2 s after silence begins"
    assert not axis[701:1100].any(), "back, but deflected: nothing before it was centred"
    assert np.all(status[701:1000] & STALE) and not np.any(status[1000:] & STALE)
    assert np.all(axis[1100:1200] == 1.0) and not axis[1200:].any(), "the deadman lets go"
    assert seen[100:500, 3].max() < 0.02e9, "a station repeats its last row"


def test_commands_one_a_tick_with_their_arguments():
    seen = play(parse(TEXT))
    at = np.flatnonzero(seen[:, 2])
    assert list(at) == [200, 201]
    assert list(seen[200, [2, 4, 5, 6]]) == [CODES["command"]["step"], 1.0, 0.02, 0.002]
    assert list(seen[201, [2, 4]]) == [CODES["command"]["speed_mode"], 0.0]


def test_file_and_back(tmp_path):
    rows = parse(TEXT)
    save(tmp_path / "operator.csv", rows, "two lines\nof words")
    assert load(tmp_path / "operator.csv") == rows
    np.testing.assert_array_equal(rows_array(load(tmp_path / "operator.csv")), rows_array(rows))


@pytest.mark.parametrize(("line", "says"), [
    ("x, 0, silent", "time, s: 'x' is not a number"),
    ("1.0", "a station"),
    ("1.0, 0, 1, 2", "six axes and the buttons"),
    ("1.0, 0, 0, 0, 1.5, 0, 0, 0, 1", "axis: 1.5 is not within -1...1"),
    ("1.0, 0, 0, 0, nan, 0, 0, 0, 1", "axis: nan is not within -1...1"),
    ("1.0, jump, 3", "unknown command 'jump'"),
    ("1.0, step, 1", "amplitude is missing"),
    ("1.0, step, 9, 1, 1", "coordinate: 9 is not within 0...5"),
    ("2.0, 0, silent\n1.0, 0, silent", "time 1 s comes before 2 s"),
])  # fmt: skip
def test_every_fault_names_its_line(line, says):
    with pytest.raises(ConfigurationError) as caught:
        parse("# head\n" + line, "operator.csv")
    assert says in caught.value.faults[0] and "operator.csv:" in caught.value.faults[0] and "value" in caught.value.faults[0]


def test_port_finds_its_file(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT)
    assert ScriptPort(block=None, folders=[tmp_path], file="a.csv").read(np.zeros(1, SAMPLE_DTYPE)) is not None
    with pytest.raises(ConfigurationError, match=r"commands.file: no such file, value 'b.csv'"):
        ScriptPort(block=None, folders=[tmp_path], file="b.csv")


def test_rows_out_of_order_are_refused():
    with pytest.raises(ValueError, match="in order of time"):
        Script(rows_array([Row(2.0, 0, (0.0,) * 6), Row(1.0, 0, (0.0,) * 6)]))
