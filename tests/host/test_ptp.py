"""PTP clocks as a log's header keeps them, on a tree of files made for the test."""

import time

from hil_server.host import ptp

# answer of pmc 4.0 as its manual page shows the fields
ANSWER = """sending: GET PORT_DATA_SET
\tb49691.fffe.3f0f1c-1 seq 0 RESPONSE MANAGEMENT PORT_DATA_SET
\t\tportIdentity            b49691.fffe.3f0f1c-1
\t\tportState               SLAVE
\t\tlogMinDelayReqInterval  0
\tb49691.fffe.3f0f1c-0 seq 1 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              -14
\t\tingress_time               1700000000000000000
\t\tgmPresent                  true
\t\tgmIdentity                 001122.fffe.334455
"""


def test_no_clock_is_an_empty_list(tmp_path):
    assert ptp.state(tmp_path, tmp_path, tmp_path / "none") == []


def test_a_clock_has_its_name_and_interfaces_and_an_offset_when_it_can_be_read(tmp_path):
    net = tmp_path / "class" / "ptp0" / "device" / "net"
    (net / "eth1").mkdir(parents=True)
    (net.parent.parent / "clock_name").write_text("igb\n")
    expected = {"clock": "ptp0", "name": "igb", "interfaces": ["eth1"], "offset_ns": None}
    assert ptp.state(tmp_path / "class", tmp_path, tmp_path / "none") == [expected]
    (tmp_path / "ptp0").write_text("")  # a file is no clock: the kernel refuses to read it as one
    assert ptp.state(tmp_path / "class", tmp_path, tmp_path / "none") == [expected]


def test_the_offset_is_the_difference_of_the_two_clocks(tmp_path, monkeypatch):
    (tmp_path / "ptp0").write_text("")
    real = time.clock_gettime_ns

    def both(clock):
        return real(time.CLOCK_REALTIME) + 37_000_000_000 if clock < 0 else real(clock)

    monkeypatch.setattr(ptp.time, "clock_gettime_ns", both)
    offset = ptp._offset_ns(tmp_path / "ptp0")
    assert abs(offset - 37_000_000_000) < 1_000_000_000


def test_what_is_wanted_of_the_answer_of_ptp4l():
    assert ptp.answer_of(ANSWER) == {"portState": "SLAVE", "master_offset": -14, "gmPresent": "true", "gmIdentity": "001122.fffe.334455"}
    assert ptp.answer_of("master_offset nonsense\nportState") == {}


def test_the_daemon_is_asked_where_it_runs(tmp_path, monkeypatch):
    program = tmp_path / "pmc"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{ANSWER}END\n")
    program.chmod(0o755)
    (tmp_path / "server").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (found,) = ptp.state(tmp_path / "none", tmp_path, tmp_path / "server")
    assert found["daemon"] == "ptp4l" and found["portState"] == "SLAVE" and found["master_offset"] == -14
