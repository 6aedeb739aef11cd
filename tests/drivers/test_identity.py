"""Who a device is: what it says of itself against the stand file, for each kind of device; and the lines for the stand file."""

import copy
import tomllib
from dataclasses import replace

import pytest

from drivers.drives.cia402 import Cia402Port
from drivers.identity import WrongDeviceError, alike, as_toml, compare, identity_of
from drivers.mechanism_signals.cia401 import Cia401Port
from drivers.simulated.stand_server_client import StandProcess
from drivers.wrench_sensors.ati_can import AtiCanPort
from drivers.wrench_sensors.bota_serial import BotaSerialPort
from drivers.wrench_sensors.rdt import RdtPort
from drivers.wrench_sensors.robotiq_ft300 import RobotiqFt300Port
from hil_server.config import load_test, narrowing
from hil_server.config.loader import SHIPPED
from hil_server.errors import ConfigurationError, DeviceError
from hil_server.judge.interventions import done_to_the_run
from hil_server.judge.run import Run
from hil_server.line import assembly
from hil_server.log.reader import read_log
from hil_server.run import leg_record
from hil_server.run.session import Options, run_live
from tests.drivers.peers.ati_can import AtiCanPeer
from tests.drivers.peers.serial_sensors import RobotiqPeer

DRIVES = [{"vendor": 7, "product": 402, "revision": 1, "serial": serial, "alias": 0} for serial in range(6)]
OF_PORT = {  # a sensor's port: its peer, keys of the port, what the peer says of itself
    "robotiq": (RobotiqFt300Port, RobotiqPeer, "device", {"stream_rate_hz": 0.0, "stale_ms": 0.0, "no_data_ms": 1e4},
                {"serial": "FTS-0042"}),
    "ati_can": (AtiCanPort, AtiCanPeer, "link", {"force_range_n": [1e5] * 3, "moment_range_n_m": [1e4] * 3, "no_data_ms": 1e4},
                {"serial": "FT012345", "calibration": None}),
}  # fmt: skip


@pytest.mark.parametrize("key", ["vendor", "product", "revision", "serial", "alias"])
def test_every_part_of_an_identity_counts(key):
    compare("drive", 3, DRIVES[3], DRIVES)
    with pytest.raises(WrongDeviceError, match=rf"identity\[3\]\.{key} is 99 at the device, \d+ in the stand file; mend"):
        compare("drive", 3, DRIVES[3] | {key: 99}, DRIVES)


def test_a_key_that_a_device_does_not_say_is_none():
    reported = {key: value for key, value in DRIVES[0].items() if key != "alias"}
    compare("node 1", 0, reported, DRIVES)
    with pytest.raises(WrongDeviceError, match="alias is 0 at the device, 5"):
        compare("node 1", 0, reported, [DRIVES[0] | {"alias": 5}])


def test_a_part_that_a_device_does_not_have_is_none():
    class Node:
        def read(self, index, sub, size, meaning):
            if sub > 2:
                raise ConnectionError("no object")
            return 10 * sub

    assert identity_of(Node()) == {"vendor": 10, "product": 20, "revision": 0, "serial": 0}


def test_drives_that_say_the_same_are_named():
    assert alike(DRIVES) == []
    (line,) = alike([*DRIVES[:4], DRIVES[1], DRIVES[5]])
    assert "axes 1, 4 have" in line


@pytest.mark.parametrize(
    ("cls", "keys"),
    [(Cia402Port, {"links": "fd:1", "identity": DRIVES[:5]}), (Cia401Port, {"link": "fd:1", "identity": DRIVES[:2]}),
     (RdtPort, {"address": "none", "identity": [{"serial": "a", "calibration": "b"}] * 2})],
)  # fmt: skip
def test_a_list_of_another_length_is_refused(cls, keys):
    with pytest.raises(ValueError, match=rf"identity has {len(keys['identity'])} tables"):
        cls(**keys)


@pytest.mark.parametrize(
    ("cls", "keys"),
    [(RdtPort, {"address": "none", "scaling": "tcp", "identity": [{"serial": "a", "calibration": "b"}]}),
     (RobotiqFt300Port, {"device": "none", "configure": False, "identity": [{"serial": "a"}]})],
)  # fmt: skip
def test_an_identity_that_cannot_be_asked_is_refused(cls, keys):
    with pytest.raises(ValueError, match="identity: .*(scaling|configure)"):
        cls(**keys)


def test_a_sensor_without_a_question_says_why():
    assert "serial number" in BotaSerialPort.not_asked


@pytest.mark.parametrize("name", OF_PORT)
def test_another_sensor_than_the_stand_file_says_is_refused(name):
    cls, peer_of, where, keys, says = OF_PORT[name]

    def opened(identity=()):
        peer = peer_of()
        port = cls(**{where: getattr(peer, where)}, **keys, timeout_s=5.0, identity=identity)
        peer.start()
        try:
            port.open()
            return port.identities[0]
        finally:
            peer.let_go()
            port.close()
            peer.close()

    found = opened()
    assert set(found) == set(says) and all(value in (None, found[key]) for key, value in says.items())
    assert opened([found]) == found
    for key in found:
        with pytest.raises(WrongDeviceError, match=rf"identity\[0\]\.{key} is {found[key]} at the device, other in the stand file"):
            opened([found | {key: "other"}])


@pytest.fixture
def hardware(tmp_path):
    """Function (identity by table) → a signed test on a stand whose devices are those of the stand in software on the wire."""
    config = load_test(None, [])
    keys = assembly.virtual_stand_settings(config, assembly.base_context(config), priority=0, loop_core=-1)
    keys |= {"drives": {"profile": "cia402"}, "lock_memory": False, "core": -1}
    shipped = (SHIPPED / "stands" / "docking_stand.toml").read_text()
    with StandProcess(keys) as stand:
        drives, sensor, module = (stand.ports[role] for role in ("drives", "wrench_sensors", "mechanism_signals"))
        tables = {
            "drives": f'part = "cia402"\nlinks = "{drives["links"]}"\naxis_link = [0, 0, 0, 1, 1, 1]\nno_data_periods = 500\n'
                      f'receive_timeout_periods = 500\nserver_timeout_ms = 1000\nzero_m = {[float(x) for x in drives["zero_m"]]}\n',
            "wrench_sensor": 'part = "rdt"\n' + "".join(f"{key} = {value!r}\n" for key, value in sensor.items()),
            "mechanism_signals": f'part = "cia401"\nlink = "{module["link"]}"\n',
            "drive_model": "frequency_hz = 13.25\ndamping = 0.784\ndelay_s = 0.002\n",
        }  # fmt: skip

        def test_of(found):
            file = tmp_path / "stand.toml"
            lists = {name: ", ".join(map(as_toml, table["identity"])) for name, table in found.items()}
            whole = {name: text + (f"identity = [{lists[name]}]\n" if name in lists else "") for name, text in tables.items()}
            file.write_text(shipped[: shipped.index("[virtual]")] + "".join(f"[{name}]\n{text}" for name, text in whole.items()))
            narrowing.sign(file, "somebody", "2026-11-24")
            free = [f"telemetry.{key}=tcp://127.0.0.1:*" for key in ("publish", "command", "hand_controller")]
            return load_test(None, [f'test.stand="{file}"', *free, "compensation.part=none", "test.duration_max_s=0.05"])

        yield test_of


def test_hardware_without_identity_is_refused_with_the_lines_to_write(hardware, tmp_path, monkeypatch):
    options = Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True, confirmed="a stand in software")
    with pytest.raises(ConfigurationError, match=r"drives.identity: required on hardware.*hil-server sign") as refused:
        run_live(hardware({}), options)
    # the lines are those of the stand file: with them it starts, with two of them exchanged it does not
    found = tomllib.loads(str(refused.value).split("\n", 1)[1])
    assert [one["serial"] for one in found["drives"]["identity"]] == [1, 2, 3, 4, 5, 6]
    assert found["wrench_sensor"]["identity"] == [{"serial": "SIM00001", "calibration": "simulated stand"}]
    exchanged = copy.deepcopy(found)
    exchanged["drives"]["identity"][1], exchanged["drives"]["identity"][3] = (found["drives"]["identity"][i] for i in (3, 1))
    with pytest.raises(DeviceError, match=r"identity\[1\].serial is 2 at the device, 4 .*identity\[3\]: are the two exchanged"):
        run_live(hardware(exchanged), options)
    summary = run_live(hardware(found), options)
    devices = read_log(summary["log"]).header.devices
    assert list(devices) == ["mechanism_signals", "wrench_sensor", *(f"drives[{i}]" for i in range(6))]
    assert "serial = 3" in devices["drives[2]"]
    unknown = "delay not known, counted as 0: wrench_sensor.filter_delay_s (of rdt"
    forced = [row["text"] for row in done_to_the_run(Run(read_log(summary["log"]))) if row["kind"] == "forced"]
    assert any(line.startswith(f"armed by --force, {unknown}") for line in forced)
    # without --force the delay is asked for before a device is opened
    monkeypatch.setenv("HOME", str(tmp_path))
    config = hardware(found)
    leg_record.keep(config.setup.stand.checksum, "runs/legs/run.mcap")
    with pytest.raises(ConfigurationError, match=r"stand.toml: not armed, a delay is not known: wrench_sensor.filter_delay_s \(of rdt"):
        run_live(config, replace(options, force=False))
