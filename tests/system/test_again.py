"""A rehearsal flown again from a time of itself, over the command socket; the new flight continues where the first one was."""

import contextlib
import threading

import numpy as np
import pytest
import zmq

from hil_server.bus.wire import STATUS, connect, unpack
from hil_server.cli import main
from hil_server.client import Client, RefusedError
from hil_server.config import SHIPPED, load_test
from hil_server.errors import HilError
from hil_server.line.free_run import blocks
from hil_server.log.reader import read_log
from hil_server.log.writer import LogWriter
from hil_server.operator_desk.sender import HandSender
from hil_server.run import branch, replay
from hil_server.run.again import tick_asked_for
from hil_server.run.session import Options, run_live, simulate
from rt_kernels.layout import CODES, FIELDS, SAMPLE_DTYPE

KEPT = [name for name, *_ in FIELDS if name.startswith(("X_", "V_", "joint_", "leg_demand", "phase"))]


@pytest.fixture
def fly(tmp_path):
    """Simulates the first seconds of a test, then flies on from 1 s of it, live; gives client, hand controller, summary."""
    addresses = {name: f"ipc://{tmp_path}/{name}" for name in ("publish", "command", "hand_controller")}
    keys = [f"telemetry.{name}={address!r}" for name, address in addresses.items()]
    things = []

    def start(file, *overrides):
        config = load_test(SHIPPED / "programmes" / file, [*keys, *overrides, "test.duration_max_s=2.5"])
        simulated = simulate(config, Options(out=str(tmp_path / "simulated"), quiet=True, report=False))["log"]
        begin = branch.resumed(f"{simulated}@1.0", ("test.duration_max_s=120",))
        options = Options(out=str(tmp_path / "run"), quiet=True, report=False)
        client, hand = Client(addresses["publish"], addresses["command"], timeout_s=10.0), HandSender(0, addresses["hand_controller"])
        things.extend([client, hand, Flying(addresses["publish"], lambda: run_live(begin.test.config, options, begin))])
        return things

    yield start
    client, hand, flying = things
    flying.land(client)
    client.close()
    hand.close()


class Flying:
    """`run_live` beside the test, and what its bus says of its state.

    ended: its summary, once it has ended; failed: what it has raised; aborted: the answer to its abort, after which no desk answers."""

    def __init__(self, bus, run):
        self.ended, self.failed, self.aborted, self._run = {}, [], None, run
        self._bus = connect(zmq.Context.instance(), zmq.SUB, bus, 1000)
        self._bus.subscribe(STATUS)
        self.thread = threading.Thread(target=self._fly)
        self.thread.start()

    def _fly(self):
        try:
            self.ended.update(self._run())
        except Exception as error:
            self.failed.append(error)

    def wait(self, condition, meanwhile=lambda: None):
        """The first status for which the condition holds. meanwhile: called fifty times a second."""
        while True:
            meanwhile()
            if self._bus.poll(20) and condition(status := unpack(self._bus.recv_multipart()[1])):
                return status
            assert self.thread.is_alive(), f"it has ended: {self.failed or self.ended}"

    def land(self, client):
        """Ends it, if it has not ended, and returns its summary."""
        while self.thread.is_alive():
            with contextlib.suppress(HilError):
                self.aborted = self.aborted or client.command("abort")
            self.thread.join(0.5)
        self._bus.close()
        assert not self.failed
        return self.ended


def again(client, **when):
    """The command, whose answer a busy machine may hold up; the log says when it was taken."""
    with contextlib.suppress(HilError):
        assert client.again(**when).command == "again"


def test_flown_again_from_where_it_was(fly):
    client, _, flying = fly("docking.toml")
    first = flying.wait(lambda s: s["tick"] > 1500)
    again(client, time_s=1.2)
    flying.wait(lambda s: s["run"] != first["run"] and s["tick"] > 1400)
    ended = flying.land(client)
    logs = [read_log(path) for path in ended["flights"]]
    assert len(logs) == 2 and ended["log"] == ended["flights"][-1] and ended["end"] == "tripped"
    one, two = logs
    assert one.end["end"] == "again" and one.complete and two.complete
    assert (one.records["command_code"] == CODES["command"]["again"]).sum() == 1
    # the second begins with the tick asked for, or the first that the loop did not skip, in the state in which the one before was
    at = np.searchsorted(one.records["tick"], 1200)
    assert int(two.records["tick"][0]) == one.records["tick"][at] == two.header.branch["tick"]
    before = one.records[at - 1]
    initial = np.frombuffer(two.header.initial_record, SAMPLE_DTYPE)[0]
    for name in KEPT:
        assert initial[name].tobytes() == before[name].tobytes(), name
    assert two.header.branch["run"] == one.header.run_id and two.header.branch["lost"] == []
    for log in logs:
        result = replay.replay(log.path, verify=True)
        assert result["equal"] and not log.missing(), (log.path, result["first_difference"])
    # the stand of such a flight can be put back to any of its ticks
    assert branch.at_tick(two, int(two.records["tick"][len(two.records) // 2])).lost == []


def test_operator_is_waited_for(fly):
    client, hand, flying = fly("berthing_operator.toml")
    # the picture stands: the sample of the tick before, none of the loop
    flying.wait(lambda s: s["tick"] == 999)

    def not_ready():
        hand.send([0.5, 0, 0, 0, 0, 0], 1)  # not centred
        hand.send([0.0] * 6, 0)  # no deadman

    held = flying.wait(lambda s: s["hand_accepted"] >= 20, not_ready)
    assert held["tick"] == 999 and held["log_ticks"] == 0
    flying.wait(lambda s: s["tick"] >= 1100, lambda: hand.send([0.0] * 6, 1))
    log = read_log(flying.land(client)["log"])
    assert log.records["tick"][0] == 1000 and not log.missing() and replay.replay(log.path, verify=True)["equal"]


def tuned(log, name):
    return log.records["tuned"][:, [t["name"] for t in log.header.tunables].index(name)]


def taken(ask):
    """The acknowledgement of a command, asked again as often as the loop came to it after its time."""
    while True:
        try:
            return ask()
        except RefusedError as error:
            if error.kind != "not_taken":
                raise


def test_a_rehearsal_over_the_wires_is_tuned_and_flown_again(tmp_path, capsys):
    """As its operator has it: the virtual stand served by a process of its own, one flight, again, hold, stick centred, another flight."""
    addresses = {name: f"ipc://{tmp_path}/{name}" for name in ("publish", "command", "hand_controller")}
    config = load_test(SHIPPED / "programmes/berthing_operator.toml", [f"telemetry.{name}={a!r}" for name, a in addresses.items()])
    options = Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True)  # a busy machine's wires may delay the force
    client, hand = Client(addresses["publish"], addresses["command"], timeout_s=10.0), HandSender(0, addresses["hand_controller"])
    flying = Flying(addresses["publish"], lambda: run_live(config, options))

    def flown(axes, condition):
        """The stick held so, deadman too, until the status is such."""
        return flying.wait(condition, lambda: hand.send(axes, 1))

    try:
        first = flown([0.0] * 6, lambda s: s["tick"] > 100)
        # before the flight that is asked for again: what continues has it too
        taken(lambda: client.tune("guidance.coarse_m_s", 0.02))
        client.leave_desk()
        assert main(["tune", "guidance.vernier_deg_s", "0.05", "--address", addresses["command"]]) == 0
        assert "guidance.vernier_deg_s: changes to 0.05 from tick" in capsys.readouterr().out
        assert main(["tune", "--address", addresses["command"]]) == 0
        assert "guidance.coarse_m_s" in capsys.readouterr().out
        with pytest.raises(RefusedError, match="guidance.coarse_m_s: 9 is not within"):
            client.tune("guidance.coarse_m_s", 9.0)
        assert main(["tune", "guidance.coarse_m", "1", "--address", addresses["command"]]) != 0
        assert "did you mean 'guidance.coarse_m_s'" in capsys.readouterr().err
        since = flown([0.4, 0, 0, 0, 0, 0], lambda s: True)["tick"]  # behind both changes
        flown([0.4, 0, 0, 0, 0, 0], lambda s: s["tick"] > since + 2500)
        at_s = 1e-3 * (since + 2000)
        asked = taken(lambda: client.again(time_s=at_s))
        assert asked.command == "again" and asked.tick > since + 2500
        flying.wait(lambda s: s["run"] != first["run"])
        one = read_log(first["log_path"])
        before = one.records["tick"] < tick_asked_for(one, 30.0, at_s)
        standing = int(one.records["tick"][before][-1])
        flying.wait(lambda s: s["tick"] == standing)
        not_centred = flying.wait(lambda s: s["hand_accepted"] >= 5, lambda: hand.send([0.5, 0, 0, 0, 0, 0], 1))
        assert not_centred["tick"] == standing
        flown([0.0] * 6, lambda s: s["tick"] > standing + 50)
        later = taken(lambda: client.tune("guidance.coarse_m_s", 0.01))
        assert {t["name"]: t["value"] for t in client.describe()["tunables"]}["guidance.vernier_deg_s"] == 0.05
        flown([0.4, 0, 0, 0, 0, 0], lambda s: s["tick"] > later.tick + 500)
        flying.aborted = client.command("abort")
        assert flying.aborted.tick > later.tick
    finally:
        ended = flying.land(client)
        client.close()
        hand.close()
    one, two = (read_log(path) for path in ended["flights"])
    assert one.header.mode == two.header.mode == "live" and two.header.branch["lost"] == [branch.LOST_OF_A_LIVE_RUN]
    assert one.records["command_code"][np.searchsorted(one.records["tick"], asked.tick)] == CODES["command"]["again"]
    assert tuned(two, "guidance.coarse_m_s")[0] == 0.02 and tuned(two, "guidance.coarse_m_s")[-1] == 0.01
    assert (tuned(two, "guidance.vernier_deg_s") == 0.05).all()
    # constants that were made of the measured delays of the wires are those of the second flight too
    assert one.header.calibration["context"]["delays"] == two.header.calibration["context"]["delays"]
    for log in (one, two):
        result = replay.replay(log.path, verify=True)
        assert result["equal"], (log.path, result["first_difference"])
    # either continues as a simulation, which replays
    for log, lost in ((one, [branch.LOST_OF_A_LIVE_RUN]), (two, [])):
        begin = branch.at_tick(log, int(log.records["tick"][-200]), ("test.duration_max_s=20", "compensation.lead_factor=0.5"))
        assert begin.lost == lost
        goes_on = simulate(begin.test.config, Options(out=str(tmp_path / f"on-{begin.tick}"), quiet=True, report=False), begin)
        result = replay.replay(goes_on["log"], verify=True)
        assert result["equal"] and result["ticks"] >= 200, result["first_difference"]


def test_live_run_over_a_wire_continues_with_a_stand_in_software(tmp_path):
    """The stages are as they were; the stand in software has followed the recorded set points and is where the recorded one is."""
    config = load_test(SHIPPED / "programmes" / "docking.toml", ["test.duration_max_s=5"])
    log = read_log(simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"])
    log.header.mode = "live"  # as one whose stand no one can put back
    writer = LogWriter(tmp_path / "live.mcap", log.header)
    writer.write(log.records)
    writer.close({})
    live = read_log(tmp_path / "live.mcap")
    begin = branch.at_tick(live, 4000)
    assert begin.lost == [branch.LOST_OF_A_LIVE_RUN]
    sample = begin.test.line.sample[0]
    for name in SAMPLE_DTYPE.names:
        if name != "record_crc":
            assert sample[name].tobytes() == live.records[name][3999].tobytes(), name
    follows = np.concatenate([part.copy() for part in blocks(begin.test)])
    assert np.abs(follows["measured_leg"][:200] - log.records["measured_leg"][4000:4200]).max() < 1e-6
    assert np.abs(follows["X_TA"][:200] - log.records["X_TA"][4000:4200]).max() < 1e-6


def test_time_asked_for(tmp_path):
    class Flown:
        ticks = 5000
        time_s = np.arange(5000) * 1e-3

    records = np.zeros(5000, [("tick", "<i8"), ("time_ns", "<i8"), ("first_contact_time", "<f8")])
    records["tick"], records["time_ns"], records["first_contact_time"] = np.arange(5000), np.arange(5000) * 1_000_000, -1.0
    log = Flown()
    log.records = records
    assert tick_asked_for(log, 30.0, 2.0) == 2000
    assert tick_asked_for(log, 1.0, -1.0) == 3999  # no contact: before the end
    records["first_contact_time"][-1] = 3.0
    assert tick_asked_for(log, 1.0, -1.0) == 2000
    assert tick_asked_for(log, 30.0, -1.0) == 1 and tick_asked_for(log, 0.0, 99.0) == 4999


def test_hardware_is_never_put_back():
    from hil_server.bus.commands import encode, why_not

    assert encode("again") == (CODES["command"]["again"], (30.0, -1.0))
    assert "no part of this run acts on it" in why_not({}, "again", (30.0, -1.0))
