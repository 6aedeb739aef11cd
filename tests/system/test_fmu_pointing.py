"""A craft with wheels, a solar wing and an arm that an FMU steers through a docking: pythonfmu (FMI 2.0), pythonfmu3 (FMI 3.0), C."""

import hashlib
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import load_test
from hil_server.config.loader import DEFAULT_TEST
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.run import branch, replay
from hil_server.run.session import Options, simulate
from rt_kernels.layout import BITS, CODES
from tests.control.fmu import factory, pointing
from tests.system.line_runs import QUICK

CRAFT = """
name = "servicer with a wing and an arm"
control_body = "hull"

[[body]]
name = "hull"
joint = "free"
rigid = { mass_kg = 1200.0, inertia_kg_m2 = [900.0, 780.0, 840.0] }

[[body]]
name = "wing"
parent = "hull"
joint = "continuous"
joint_name = "sun_drive"
axis = [0.0, 1.0, 0.0]
position_m = [-0.4, 0.0, 0.0]
rigid = { mass_kg = 40.0, inertia_kg_m2 = [250.0, 6.0, 250.0] }

[[body]]
name = "arm"
parent = "hull"
joint = "revolute"
joint_name = "shoulder"
axis = [0.0, 1.0, 0.0]
position_m = [0.0, 0.0, 1.0]
rigid = { mass_kg = 15.0, centre_of_mass_m = [0.6, 0.0, 0.0], inertia_kg_m2 = [0.1, 2.0, 2.0] }

[[joint]]
name = "sun_drive"
mode = "driven"
effort_n_m = 20.0

[[joint]]
name = "shoulder"
mode = "driven"
servo_stiffness_n_m_per_rad = 2000.0
servo_damping_n_m_s_per_rad = 200.0
rate_deg_s = 5.0
effort_n_m = 100.0

[[port]]
name = "docking"
body = "hull"
position_m = [0.9, 0.0, 0.0]

[[sensor]]
name = "gyroscope"
kind = "rate"
body = "hull"
position_m = [0.0, 0.0, 0.0]
"""
WHEEL = """
[[body]]
name = "rotor_{name}"
parent = "hull"
joint = "continuous"
joint_name = "spin_{name}"
axis = {axis}
rigid = {{ mass_kg = 5.0, inertia_kg_m2 = {inertia} }}

[[wheel]]
name = "{name}"
joint = "spin_{name}"
torque_n_m = 5.0
momentum_n_m_s = 50.0
"""
SHIP = CRAFT + "".join(WHEEL.format(name=name, axis=np.eye(3)[i].tolist(), inertia=(0.05 + 0.03 * np.eye(3)[i]).tolist())
                       for i, name in enumerate("xyz"))  # fmt: skip
FLIGHT = ("test.stand=stands/ideal_stand.toml", "guidance.close_before_s=3",
          *(f"initial_conditions.{angle}_deg=0" for angle in ("yaw", "pitch", "roll")))
# what the run itself is judged by
LIMITS = """
[[requirement]]
name = "hull at rest"
channel = "norm(V_NC[3:6])"
at = "first_contact"
below_deg_s = 0.02
[[requirement]]
name = "wing to the sun"
channel = "joint_position[0]"
at = "first_contact"
above = 0.2085
below = 0.2103
[[requirement]]
name = "arm at its angle"
channel = "joint_position[1]"
at = "capture"
above = 0.098
below = 0.102
"""
JUDGED = ("hull at rest", "wing to the sun", "arm at its angle")
SUN = np.radians(12.0)  # from the z axis of N towards x
ARM = 0.1
START = {"inertia0": 1150.0, "inertia1": 800.0, "inertia2": 1100.0, "hold_hz": 0.3, "wheel_max": 5.0, "drive_inertia": 6.0,
         "drive_hz": 0.8, "drive_max": 20.0, "sun_x": float(np.sin(SUN)), "sun_z": float(np.cos(SUN)), "arm_angle": ARM,
         "force": 300.0}  # fmt: skip
INPUTS = {**{f"q{i}": f"X_NC[{3 + i}]" for i in range(4)}, **{f"gyro{i}": f"sensor_rate[active gyroscope][{i}]" for i in range(3)},
          "wing": "joint_position[active sun_drive]", "wing_rate": "joint_rate[active sun_drive]", "hold": "control_request.attitude",
          "press": "control_request.press"}  # fmt: skip
OUTPUTS = {"wheel0": "wheel_torque_A[x]", "wheel1": "wheel_torque_A[y]", "wheel2": "wheel_torque_A[z]", "thrust": "control_A[0]",
           "drive": "joint_target[active sun_drive]", "arm": "joint_target[active shoulder]",
           "holding": "control_status.attitude"}  # fmt: skip
# in the order of the value references of pointing.h
VARIABLES = (
    *((f"q{i}", "real", "input", float(i == 3)) for i in range(4)), *((f"gyro{i}", "real", "input", 0.0) for i in range(3)),
    ("hold", "Boolean", "input", "false"), ("press", "Boolean", "input", "false"),
    ("wing", "real", "input", 0.0), ("wing_rate", "real", "input", 0.0),
    *((name, "real", "output", None) for name in pointing.OUTPUTS), ("holding", "Boolean", "output", None),
    *((name, "real", "parameter", float(name == "sun_z")) for name in pointing.PARAMETERS),
)  # fmt: skip


def made(folder, kind):
    """An FMU with the controller in `folder`: its file."""
    if kind == "C":
        return factory.write(folder / "pointing.fmu", 2, law="pointing.h", variables=VARIABLES)["file"]
    builder = pytest.importorskip("pythonfmu.builder" if kind == "pythonfmu" else "pythonfmu3.builder")
    source = factory.SOURCE.parent
    script = source / ("pointing2.py" if kind == "pythonfmu" else "pointing3.py")
    sys.path.insert(0, str(source))  # the builder makes an instance to describe it
    try:
        return str(builder.FmuBuilder.build_FMU(script, dest=folder, project_files=[source / "pointing.py"]))
    finally:
        sys.path.remove(str(source))


def test_file(folder, kind, start=None, inputs=None, outputs=None):
    """The shipped docking with that ship and controller. Returns the path of the test."""
    file = made(folder, kind)
    (folder / "ship.toml").write_text(SHIP)
    tables = {"inputs": INPUTS | (inputs or {}), "outputs": OUTPUTS | (outputs or {}), "start": START | (start or {})}
    text = DEFAULT_TEST.read_text().replace("vehicles/transport_ship.toml", "ship.toml")
    with open(file, "rb") as opened:
        text += f'\n[control]\npart = "fmu"\nfile = "{file}"\nsha256 = "{hashlib.file_digest(opened, "sha256").hexdigest()}"\n'
    for name, table in tables.items():
        text += f"[control.{name}]\n" + "".join(f'"{k}" = {v!r}\n' for k, v in table.items())
    text += LIMITS
    path = folder / "pointing.toml"
    path.write_text(text)
    return path


test_file.__test__ = False


def flown(folder, kind, **changes):
    config = load_test(test_file(folder, kind, **changes), [*QUICK, *FLIGHT])
    return simulate(config, Options(out=str(folder / "run"), quiet=True, report=False))


@pytest.fixture(scope="module", params=["C", "pythonfmu", "pythonfmu3"])
def docking(request, tmp_path_factory):
    summary = flown(tmp_path_factory.mktemp(request.param), request.param)
    return summary, read_log(summary["log"])


def pointing_of(log):
    """Degrees by tick from the first one of free motion on: the hull from the attitude that it holds, the wing from the sun, the arm from
    its angle; and the records."""
    r, rows = log.records, log.aux("joint_position")
    flies = np.isin(r["motion"], [CODES["motion"]["free"], CODES["motion"]["joined"]])
    r, rows = r[flies], rows[flies]
    names = dict(zip(joints_of(log), rows.T, strict=False))
    attitude = Rotation.from_quat(r["X_NC"][:, 3:])
    hull = np.degrees((attitude[0].inv() * attitude).magnitude())
    x = names["active sun_drive"]
    normal = attitude.apply(np.column_stack([np.sin(x), np.zeros(len(x)), np.cos(x)]))
    axis = attitude.apply([0.0, 1.0, 0.0])
    sun = np.array([np.sin(SUN), 0.0, np.cos(SUN)])
    across = sun - axis * (axis @ sun)[:, None]  # one drive cannot turn the wing out of its plane
    cosine = np.einsum("ij,ij->i", normal, across) / np.linalg.norm(across, axis=1)
    return hull, np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))), np.degrees(names["active shoulder"] - ARM), r


def joints_of(log):
    (note,) = [note for note in log.header.notes if "joints " in note]
    return note.partition("joints ")[2].split(", ")


def test_it_docks_within_the_limits_of_its_pointing(docking):
    summary, log = docking
    assert summary["captured"] and summary["exit_code"] == 0 and not summary["faults"]
    verdicts = {row["name"]: row["verdict"] for row in summary["requirements"]}
    assert {verdicts[name] for name in JUDGED} == {"met"}
    hull, wing, arm, r = pointing_of(log)
    t = 1e-9 * (r["time_ns"] - r["time_ns"][0])
    touched = r["time_ns"] * 1e-9 >= r["first_contact_time"][-1]
    settled = t > 2.0
    assert t[touched][0] > 2.9 and r["capture_time"][-1] > r["first_contact_time"][-1]
    # the hull until the units touch, and what contact and press thrust make of it
    assert hull[~touched].max() < 0.06 and hull[settled & ~touched].max() < 0.025 and 0.5 < hull[touched].max() < 3.0
    # the wing comes from 11 degrees off, and stays on the sun while the hull is turned under it
    assert wing[0] > 10.0 and wing[settled].max() < 0.01
    # the arm comes from its start as fast as its drive, and stays when the hull is struck
    assert arm[0] == pytest.approx(-np.degrees(ARM), abs=1e-4) and np.abs(arm[settled & ~touched]).max() < 1e-3
    assert np.abs(arm[settled]).max() < 0.2


def test_the_channels_that_it_reads_are_those_of_the_tick_before(docking):
    """The controller once more on the records of the log: the outputs of every tick, to the bit."""
    _, log = docking
    r, names = log.records, joints_of(log)
    position, rate, gyro = (log.aux(name) for name in ("joint_position", "joint_rate", "sensor_rate"))
    m = SimpleNamespace()
    pointing.start(m)
    for name, value in START.items():
        setattr(m, name, value)
    drive, arm = names.index("active sun_drive"), names.index("active shoulder")
    asked = r["control_request"]
    for k in range(1, len(r)):
        m.q0, m.q1, m.q2, m.q3 = r["X_NC"][k - 1, 3:].tolist()
        m.gyro0, m.gyro1, m.gyro2 = gyro[k - 1, :3].tolist()
        m.wing, m.wing_rate = float(position[k - 1, drive]), float(rate[k - 1, drive])
        m.hold, m.press = bool(asked[k] & BITS["control_request"]["attitude"]), bool(asked[k] & BITS["control_request"]["press"])
        pointing.advance(m)
        assert r["wheel_torque_A"][k, :3].tolist() == [m.wheel0, m.wheel1, m.wheel2]
        assert r["joint_target"][k, [drive, arm]].tolist() == [m.drive, m.arm]
        # the reaction of the wheels
        assert r["control_A"][k].tolist() == [m.thrust, 0.0, 0.0, -m.wheel0, -m.wheel1, -m.wheel2]
    assert np.unique(r["joint_controlled"], axis=0).tolist() == [[1 << drive | 1 << arm, 0]]


def test_the_replay_is_equal_by_bytes(docking):
    summary, _ = docking
    result = replay.replay(summary["log"], verify=True)
    assert result["equal"] and result["ticks"] == summary["ticks_run"], result["first_difference"]


def test_without_control_each_is_off(tmp_path):
    """What the limits are worth: the same docking without gains."""
    summary = flown(tmp_path, "C", start={"drive_hz": 0.0, "hold_hz": 0.0, "arm_angle": 0.0})
    verdicts = {row["name"]: row["verdict"] for row in summary["requirements"]}
    assert {verdicts[name] for name in JUDGED} == {"violated"}
    hull, wing, arm, r = pointing_of(read_log(summary["log"]))
    touched = r["time_ns"] * 1e-9 >= r["first_contact_time"][-1]
    assert hull[~touched].max() > 0.15 and wing[~touched].min() > 10.0 and np.abs(arm).min() > 5.0


def test_it_continues_from_a_checkpoint(tmp_path):
    """Amid the contact, with the state of the FMU: the same bytes."""
    path = test_file(tmp_path, "C")
    config = load_test(path, [*QUICK, *FLIGHT, "telemetry.checkpoint_every_s=1"])
    options = {"quiet": True, "report": False}
    log = read_log(simulate(config, Options(out=str(tmp_path / "run"), **options))["log"])
    begin = branch.at_tick(log, branch.moment(log, "contact+0.3"), ())
    new = read_log(simulate(begin.test.config, Options(out=str(tmp_path / "on"), **options), begin)["log"])
    rest = log.records[int(new.records["tick"][0]):].copy()
    rest["record_crc"] = new.records["record_crc"]
    assert 0 < new.ticks < log.ticks and rest.tobytes() == new.records.tobytes()
    assert replay.replay(new.path, verify=True)["equal"]


@pytest.mark.parametrize(
    ("table", "variable", "text", "reported"),
    [
        ("inputs", "wing", "joint_position[active sun_drv]", "one of joint_position[active sun_drive], joint_position[active shoulder], "),
        ("inputs", "gyro0", "sensor_rate[active gyro][0]", "one of sensor_rate[active gyroscope][0...2]"),
        ("outputs", "drive", "joint_target[active spin_x]", "one of joint_target[active sun_drive], joint_target[active shoulder]"),
        ("outputs", "wheel0", "wheel_torque_A[w]", "one of wheel_torque_A[x], wheel_torque_A[y], wheel_torque_A[z]"),
    ],
)
def test_a_name_that_no_craft_has_is_refused_before_the_run(tmp_path, table, variable, text, reported):
    """File, key, value, and what there is."""
    path = test_file(tmp_path, "C", **{table: {variable: text}})
    words = f"{path}: control.fmu: {table}.{variable}: no such place in the sample: value {text!r}, limit {reported}"
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        simulate(load_test(path), Options(out=str(tmp_path / "run"), quiet=True, report=False))
    assert not (tmp_path / "run").exists()
