"""Commands to a live run on the virtual stand over the wire: who acts on them, and a fault that is really there."""

import threading

import pytest

from hil_server.client import Client, RefusedError
from hil_server.config import load_test
from hil_server.errors import HilError
from hil_server.log.reader import read_log
from hil_server.run.session import Options, run_live
from rt_kernels.layout import BITS, CODES
from tests.system.line_runs import fault_names

FAULT = 111  # drive_fault of drivers.simulated.virtual_stand


@pytest.fixture
def run(tmp_path):
    """A run that waits in idle for `start`: its client, and its summary once it has ended."""
    addresses = {name: f"ipc://{tmp_path}/{name}" for name in ("publish", "command", "hand_controller")}
    keys = [f"telemetry.{name}={address!r}" for name, address in addresses.items()]
    config = load_test(None, [*keys, "guidance.auto_start=false", "guidance.fault_s=0.2", "test.duration_max_s=60"])
    ended = {}
    thread = threading.Thread(target=lambda: ended.update(run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))))
    thread.start()
    client = Client(addresses["publish"], addresses["command"], timeout_s=30.0)
    try:
        yield client, lambda: (thread.join(60.0), ended)[1]
    finally:
        if thread.is_alive():
            try:
                client.command("stop")
            except HilError:
                pass
        client.close()
        thread.join(60.0)


def test_live_run_takes_what_it_can_act_on_and_a_fault_is_injected_over_the_control_port(run):
    client, summary = run
    takes = client.describe()["commands"]
    assert {"start", "inject_fault", "clear_injection", "abort"} <= set(takes) and "step" not in takes and "set_compensator" not in takes
    for name, arguments, why in (
        ("set_compensator", {"number": 2}, "no part of this run acts on it"),
        # the status word of this sensor has no class "busy"
        ("inject_fault", {"fault": "sensor_busy"}, "fault sensor_busy .* is unknown to this run"),
        ("resume", {}, "no part handles it in phase idle; it acts in hold"),
    ):
        with pytest.raises(RefusedError, match=why) as refusal:
            client.command(name, **arguments)
        assert refusal.value.kind == "unhandled"
    taken = client.command("inject_fault", fault="drive_fault", index=3)
    ended = summary()
    assert ended["end"] == "tripped" and ended["exit_code"] == 3
    records = read_log(ended["log"]).records
    at = records["tick"] == taken.tick  # a missed period has no record
    assert records["command_code"][at].tolist() == [CODES["command"]["inject_fault"]], "the log knows of it"
    assert "drive_device_fault" in fault_names(records["faults"][-1]) and records["trip_tick"][-1] > taken.tick
    assert [int(n != 0) for n in records["drive_status"][-1] & BITS["drive_status"]["device_fault"]] == [0, 0, 0, 1, 0, 0]
