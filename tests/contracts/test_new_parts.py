"""Adding a part is one file and one line: the files of docs/new-part.md, as a package outside of the tree, are built, counted, run, and
held to what every part promises. Nothing of the tree knows them."""

import importlib
import json
import socket
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from hil_server import cli, registry, verbs
from hil_server.config import SHIPPED, load_test, toml_text
from hil_server.console.picture import Picture, picture_of
from hil_server.line import assembly
from hil_server.line.run_header import configuration, header
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter
from hil_server.run.replay import replay
from hil_server.run.session import Options, run_live
from hil_server.run.stand import opened_in_order
from rt_kernels.layout import CODES
from tests.contracts import devices, guide, test_mechanisms, test_ports, test_registry_lines, test_stages
from tests.contracts.test_ports import made, opened  # noqa: F401
from tests.open_stand import opened as allowed
from tests.system.line_runs import QUICK, fault_names
from tools import live_fault_matrix

# kind → (role, name) of the line, or None where a folder is looked through; its one file
KINDS = {
    "wrench sensor": (("wrench_sensors", "wrist"), "wrist.pyx"),
    "emulated device": (("emulated_sensors", "wrist"), "emulated_wrist.pyx"),
    "drive": (("drives", "valve_box"), "valve_box.pyx"),
    "mechanism": (("mechanisms", "pad"), "pad.pyx"),
    "dynamics": (("dynamics", "eddy_brake"), "eddy_brake.pyx"),
    "compensator": (("compensation", "my_scaled"), "scaled.pyx"),
    "view": (None, "lateness.py"),
    "verb": (None, "duration.py"),
}
PARTS = [line for line, _ in KINDS.values() if line]
CONTACT = "programmes/elastic_contact.toml"
PAD = ("mechanism.part=pad", "mechanism.stiffness_n_per_m=106590.0", "test.stand=stands/ideal_stand.toml", "compensation.part=none")


# ------------------------------------------------------------------------------------------------------------------ devices on the wire


class Box(devices.UdpDevice):
    """A device on UDP. RECORD: struct of what it sends."""

    RECORD = ""

    def __init__(self):
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind(("127.0.0.1", 0))
        super().__init__(own)
        self.keys = {"address": "127.0.0.1", "port": own.getsockname()[1], "no_data_ms": 10000.0}

    def absent(self):
        return [{"address": "127.0.0.1", "timeout_s": 0.05, "port": devices.QUIET_PORT}]

    def say(self, *words):
        self.socket.sendto(struct.pack(self.RECORD, *words), self.client)


class Wrist(Box):
    RECORD = "<I6i"

    def first(self, request):
        self.say(1, *[0] * 6)

    def tick(self, k):
        self.say(k + 2, *(k % 50 + n for n in range(6)))


class ValveBox(Box):
    """`follow` answers with the newest set-points, at first with the platform's neutral legs."""

    RECORD = "<6i"
    legs = (0, 0, 0, 0, 0, 0)

    def first(self, request):
        self.say(*self.legs)

    def tick(self, k):
        self.say(*(10 * k + n for n in range(6)))

    def follow(self, k):
        for words in self.take():
            self.legs = words
        self.say(*self.legs)

    def take(self):
        try:
            while True:
                datagram = self.socket.recv(64)
                if len(datagram) == 24:
                    yield struct.unpack("<6i", datagram)
        except BlockingIOError:
            return


class HealthyChain(devices.InputModule):
    """Its inputs never move: nothing touches, the emergency chain is whole."""

    def tick(self, k):
        self.send(0x180 + self.NODE, struct.pack("<I", 1 << 24))
        for group in (0x280, 0x380):
            self.send(group + self.NODE, bytes(8))


# ------------------------------------------------------------------------------------------------------------------ the parts


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory):
    """The parts are there as those of an installed package are, by their entry points; afterwards they are gone."""
    folder = guide.write_package(tmp_path_factory.mktemp("outside"))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    registry.parts_from_outside.cache_clear()
    yield folder / guide.PACKAGE
    sys.path.remove(str(folder))
    registry.parts_from_outside.cache_clear()


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_and_one_line(package, kind):
    line, file = KINDS[kind]
    module = file.partition(".")[0]
    assert [name for name in guide.blocks() if name.partition(".")[0] == module] == [file]
    lines = [key for key, where in guide.lines().items() if where.startswith(f"{guide.PACKAGE}.{module}:")]
    assert lines == ([line] if line else [])
    if line:
        where = guide.lines()[line]
        assert registry.part(*line).__name__ == where.partition(":")[2]
        assert line[1] not in registry.PARTS[line[0]] and not any(where in parts.values() for parts in registry.PARTS.values())
    tree = [f for place in ("hil_server", "rt_kernels", "drivers", "stand_configs") for f in guide.ROOT.joinpath(place).rglob("*")]
    assert [str(f) for f in tree if f.suffix in (".py", ".pyx", ".pxd", ".toml") and guide.PACKAGE in f.read_text()] == []


def test_the_guide_shows_these_and_no_others():
    assert sorted(guide.blocks()) == sorted(file for _, file in KINDS.values())
    assert sorted(guide.lines()) == sorted(PARTS)


# ------------------------------------------------------------------------------------------------------------------ what they promise


def contracts(role):
    """Every test of the contracts that runs over parts of this role, by a name of its own."""
    for module in (test_registry_lines, test_stages, test_ports, test_mechanisms):
        for name, test in vars(module).items():
            for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
                if mark.name != "parametrize":
                    continue
                argument, values = mark.args
                roles = {"mechanisms"} if values is test_mechanisms.MECHANISMS else {v[0] for v in values if len(argument) == 2}
                if role in roles:
                    yield f"{module.__name__.rpartition('.')[2]}.{name}", test


PROMISES = {f"{name} {test}": ((role, name), promise) for role, name in PARTS for test, promise in contracts(role)}


def test_the_contracts_are_found():
    assert {role: sum(1 for _ in contracts(role)) >= 4 for role, _ in PARTS} == {role: True for role, _ in PARTS}
    assert "my_scaled test_stages.test_a_log_brings_numbers_but_never_steers" in PROMISES
    assert "wrist test_ports.test_silence_is_reported_and_leaves_the_last_values" in PROMISES
    assert "pad test_mechanisms.test_deterministic" in PROMISES


@pytest.mark.parametrize("promise", PROMISES)
def test_promise(request, monkeypatch, promise):
    (role, name), test = PROMISES[promise]
    monkeypatch.setitem(test_ports.DEVICES, ("wrench_sensors", "wrist"), Wrist)
    monkeypatch.setitem(test_ports.DEVICES, ("drives", "valve_box"), ValveBox)
    given = {"role": role, "name": name}
    wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
    test(**{argument: given[argument] if argument in given else request.getfixturevalue(argument) for argument in wanted})


# ------------------------------------------------------------------------------------------------------------------ sensor and drive


@pytest.fixture(scope="module")
def stand_run(package, tmp_path_factory):
    """A log of a stand whose sensor and drives are those of the guide, on the wire, the devices acting between two ticks."""
    folder = tmp_path_factory.mktemp("stand")
    boxes = {"wrench_sensor": ("wrist", Wrist()), "drives": ("valve_box", ValveBox()), "mechanism_signals": ("cia401", HealthyChain())}
    shipped = (SHIPPED / "stands" / "docking_stand.toml").read_text()
    stand = toml_text.dumps({
        **{table: {"part": name, **box.keys} for table, (name, box) in boxes.items()},
        "drive_model": {"frequency_hz": 200.0, "damping": 0.8, "delay_s": 0.0},
    })  # fmt: skip
    (folder / "stand.toml").write_text(shipped[: shipped.index("[virtual]")] + stand)
    config = load_test(None, [f'test.stand="{folder / "stand.toml"}"', "stand.mounting.carried_mass_kg=0", *QUICK])
    context = assembly.base_context(config)
    box = boxes["drives"][1]
    box.legs = tuple(round(1e6 * x) for x in config.stand["limits"]["start_leg_m"])
    box.tick = box.follow
    ports = list(assembly.devices(context, config.setup.stand.devices).values())
    try:
        with opened_in_order(ports):
            for _, box in boxes.values():
                box.opened()
            boxes["wrench_sensor"][1].say(50, *[9] * 6)  # comes before the loop begins: no one is to see it, nor miss those before it
            context["sensor_scale"] = next(port.sensor_scale for port in ports if hasattr(port, "sensor_scale"))
            test = assembly.finish(config, context, ports)
            writer = LogWriter(folder / "run.mcap", header(test, "stand", "live", {}))
            for port in ports:
                port.begin()
            for k in range(1200):
                if k == 50:  # a stand of hardware waits for it
                    test.block.push_command(CODES["command"]["start"])
                for _, box in boxes.values():
                    box.tick(k)
                test.line.clock.extend(1)
                test.line.run()
                writer.write(np.frombuffer(test.block.drain(16), record_dtype(test.block.aux_count)))
            writer.close({})
    finally:
        for _, box in boxes.values():
            box.gone()
            box.close()
    return read_log(folder / "run.mcap"), {term.name: term.seconds for term in test.ledger.terms}, test.ledger.measured_leg_delay_s


def test_wrench_sensor_runs_a_test_and_its_wrench_is_in_the_log(stand_run):
    log, terms, _ = stand_run
    sent = 1.0 * (np.arange(log.ticks) % 50)[:, None] + np.arange(6)
    np.testing.assert_array_equal(log.records["wrench_raw"], sent)
    np.testing.assert_allclose(log.records["F_S"], sent / 1000.0, rtol=1e-12)
    assert log.records["wrench_lost_total"][-1] == 0 and terms["sensor"] == 0.0
    found = replay(log.path, verify=True)
    assert found["equal"], found


def test_drive_runs_a_test_and_follows_its_setpoints(stand_run):
    log, _, old = stand_run
    records = log.records
    driven = np.flatnonzero(records["safety_state"] != CODES["safety_state"]["not_armed"])
    assert len(driven) > 1000 and old == pytest.approx(1e-3) and not fault_names(records["faults"][-1])
    told, came = records["leg_setpoint"][driven[:-1]], records["measured_leg"][driven[1:]]
    assert np.abs(came - told).max() <= 0.51e-6
    assert np.ptp(came, axis=0).min() > 1e-3  # on the way to where the approach begins


# ------------------------------------------------------------------------------------------------------------------ emulated device


def test_emulated_device_says_the_simulated_wrench_to_its_port(package, tmp_path, monkeypatch):
    """A live run of 0.8 s: the wrist's port reads its emulator on the virtual stand, whose load cell carries the unit."""
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    wrist = [f"stand.wrench_sensor.{word}" for word in ("part=wrist", "address=127.0.0.1", "port=1", "no_data_ms=100.0")]
    config = load_test(None, allowed([*live_fault_matrix.QUICK, "test.duration_max_s=0.8", *wrist]))
    summary = run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True))
    log = read_log(summary["log"])
    force = log.records["wrench_raw"][log.ticks // 2 :, :3] / 1000.0
    weight = [config.stand["mounting"]["carried_mass_kg"] * 9.80665, 0.0, 0.0]
    np.testing.assert_allclose(np.abs(force.mean(axis=0)), weight, atol=1.5)  # three times the load cell's noise
    moved, lost = np.diff(log.records["wrench_sequence"]), np.diff(log.records["wrench_lost_total"])
    assert moved.max() >= 1 and (lost < np.maximum(moved, 1)).all()  # the socket of a server that stands still overflows; that is counted
    assert replay(log.path, verify=True)["equal"]


# ------------------------------------------------------------------------------------------------------------------ mechanism and dynamics


def simulated_run(out, *overrides):
    """Log of the shipped contact test with these overrides, as the command line does it."""
    settings = [word for item in overrides for word in ("--set", item)]
    assert cli.main(["simulate", CONTACT, *settings, "--out", str(out)]) == 0
    return read_log(next(Path(out).glob("*.mcap")))


def values_at(log, tick):
    """Values of one tick by name, auxiliary channels too, as the console has them."""
    record, found, first = log.records[tick], {}, 0
    for name in record.dtype.names:
        if name != "aux":
            found[name] = record[name].tolist()
    for channel in log.header.aux:
        found[channel.name] = float(record["aux"][first]) if channel.count == 1 else record["aux"][first : first + channel.count].tolist()
        first += channel.count
    return found


@pytest.fixture(scope="module")
def pad_run(package, tmp_path_factory):
    return simulated_run(tmp_path_factory.mktemp("pad"), *PAD)


def test_mechanism_is_simulated_to_contact(pad_run):
    depth = np.array([values_at(pad_run, k)["pad.depth"] for k in range(0, pad_run.ticks, 5)])
    touched = pad_run.records["contact"] != 0
    assert touched.any() and 0.0 < depth.max() < 0.01
    assert pad_run.records["F_T"][:, 0].max() == pytest.approx(106590.0 * depth.max(), rel=0.1)
    assert replay(pad_run.path, verify=True)["equal"]


def test_mechanism_is_drawn_from_its_declaration(pad_run):
    pytest.importorskip("nicegui", reason="optional group console")
    from nicegui import Client, ui
    from nicegui.page import page

    from hil_server.console.views.mimic import MimicView

    picture = Picture({"configuration.toml": configuration(pad_run).as_toml()})
    things = picture.things()
    assert things["extent"] == 0.4 and [shape["name"] for shape in things["shapes"]] == ["pad", "nose"]
    deepest = int(np.argmax(pad_run.records["F_T"][:, 0]))
    frame = picture.frame(values_at(pad_run, deepest))
    assert frame["on"] == ["pad"] and 0.0 < frame["bars"][0]["value"] < 0.01 and set(frame["bodies"]) == {"T", "A"}
    assert picture.frame(values_at(pad_run, 0))["on"] == []

    # the windows of the mimic display: one wire-frame, as declared, and the bar
    def windows(unit):
        with Client(page("/")) as client, ui.column() as room:
            view = object.__new__(MimicView)
            view._build(unit.MIMIC)
            kinds = [e._props["kind"] for e in room.descendants() if "kind" in e._props]
            client.delete()
        return kinds

    declared = windows(picture_of({"part": "pad", "stiffness_n_per_m": 1.0}))
    assert declared.count("wires") == 1 and declared.count("bars") == 1
    assert windows(picture_of({"part": "unknown"})) != declared


def test_dynamics_are_simulated_and_replayed(package, tmp_path):
    braked = simulated_run(tmp_path / "braked", *PAD, "dynamics.part=eddy_brake", "dynamics.damping_n_s_per_m=200.0")
    rebound = braked.records[braked.records["motion"] == CODES["motion"]["free"]]
    speed, force = rebound["V_TA"][:, 0], rebound["aux"][:, -1]
    # the brake alone after the contact: d|v|/dt = -c |v| / m of the two bodies of 600 kg
    parted = np.flatnonzero(speed < -1e-3)
    first, last = parted[len(parted) // 4], parted[-1]
    seconds = 1e-9 * (rebound["time_ns"][last] - rebound["time_ns"][first])
    assert np.log(speed[first] / speed[last]) == pytest.approx(200.0 / 300.0 * seconds, rel=0.05)
    np.testing.assert_allclose(force[1:], 200.0 * speed[:-1], atol=1e-9)
    assert cli.main(["replay", str(braked.path), "--verify"]) == 0


# ------------------------------------------------------------------------------------------------------------------ compensator


def test_prediction_knows_the_compensator_by_its_line(package, tmp_path):
    def predicted(*keys):
        settings = [word for key in keys for word in ("--set", f"compensation.{key}")]
        assert cli.main(["predict", CONTACT, *settings, "--json", str(tmp_path / "reported.json")]) in (0, 1)
        reported = json.loads((tmp_path / "reported.json").read_text())
        return [mode["restitution"] for mode in reported["modes"] if mode["judged"]]

    bare, same, less = predicted("part=none"), predicted("part=my_scaled"), predicted("part=my_scaled", "scale=0.5")
    assert bare and same == bare
    assert all(abs(a - b) > 1e-3 for a, b in zip(less, bare, strict=True))


def test_the_picture_of_predictions_shows_it_beside_the_others(package):
    from hil_server.predict.prediction import assembled, curves, predict

    config = load_test(CONTACT)
    test = assembled(config)
    found = curves(test, predict(config, test), frequencies=(3.0,))
    assert {"my_scaled", "none"} <= set(found) and found["my_scaled"] == pytest.approx(found["none"])


# ------------------------------------------------------------------------------------------------------------------ view and verb


def test_view_is_found_in_its_folder(tmp_path, monkeypatch):
    pytest.importorskip("nicegui", reason="optional group console")
    from types import SimpleNamespace

    from nicegui import Client, ui
    from nicegui.page import page

    from hil_server.console import views
    from hil_server.console.view import views as found

    before = {view.NAME for view in found()}
    (tmp_path / "lateness.py").write_text(guide.blocks()["lateness.py"])
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    try:
        (new,) = [view for view in found() if view.NAME not in before]
        newest = SimpleNamespace(maximum={"lateness_ns": 42000})
        with Client(page("/")) as client, ui.column() as room:
            new.build(SimpleNamespace(feed=SimpleNamespace(newest=newest)), tmp_path, "", "")
            (timer,) = [e for e in room.descendants() if isinstance(e, ui.timer)]
            timer.callback()
            (number,) = [e for e in room.descendants() if isinstance(e, ui.label)]
            assert (new.PATH, number.text) == ("/lateness", "42 µs")
            client.delete()
    finally:
        sys.modules.pop("hil_server.console.views.lateness", None)


def test_verb_is_found_in_its_folder(pad_run, tmp_path, monkeypatch, capsys):
    (tmp_path / "duration.py").write_text(guide.blocks()["duration.py"])
    monkeypatch.setattr(verbs, "__path__", [*verbs.__path__, str(tmp_path)])
    try:
        assert cli.main(["--help"]) == 0 and "length of a run" in capsys.readouterr().out
        assert cli.main(["duration", str(pad_run.path), "--json", str(tmp_path / "reported.json")]) == 0
        assert f"{pad_run.ticks} ticks" in capsys.readouterr().out
        assert json.loads((tmp_path / "reported.json").read_text())["ticks"] == pad_run.ticks
    finally:
        sys.modules.pop("hil_server.verbs.duration", None)
