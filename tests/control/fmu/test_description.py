"""An FMU that is not the one meant, or does not fit, is refused before the run: file, key, value, limit."""

import hashlib
import re
import stat
import struct
import tempfile
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil_server import registry
from rt_kernels.control.fmu.description import ACTUATOR, CHANNEL, F8, JOINT, READABLE, described, place
from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.layout import BITS, SAMPLE_DTYPE
from rt_kernels.stages import STAGES
from tests.control.fmu import factory

JOINTS, SENSORS = ("active shoulder", "active spin", "target mast.1"), ("active imu", "target tip")
DYNAMICS = SimpleNamespace(
    AUX=TwoCrafts.AUX, driven=("active shoulder", "target mast.1"),
    named={"joint_position": (JOINTS, 1), "joint_target": (JOINTS, 1), "sensor_rate": (SENSORS, 3), "wheel_torque_A": (("x",), 1),
           "wheel_rate_A": (("x",), 1), "thruster_T": (("aft",), 1)},
    actuators={"wheel_torque_A": (((0.0, 0.0, 0.0, 0.0, -0.6, -0.8), -100.0, 100.0, 2.0, 10.0),),
               "thruster_T": (((0.6, 0.0, 0.8, 0.0, 2.0, 0.0), 0.0, 20.0, 0.0, 0.0),)},
)  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Function (keys changed) → the description."""

    def read(version=2, made=None, dynamics=None, **changed):
        keys = (made or factory.keys(tmp_path, version)) | changed
        tables = (keys[key] for key in ("inputs", "outputs", "start"))
        return described(keys["file"], [tmp_path], keys["sha256"], *tables, 1e-3, dynamics=dynamics)

    return read


@pytest.mark.parametrize("version", [2, 3])
def test_the_description_of_the_fmu(read, version):
    found = read(version)
    assert found.version == version and found.keeps_state
    made = f"FMU controller (version 1.4, factory; FMI {version}.0), sha256 {found.sha256}, {found.path}"
    assert found.note == made
    offset = SAMPLE_DTYPE.fields["V_NC"][1]
    assert [(w.reference, w.place.offset) for w in found.inputs][:3] == [(0, offset + 24), (1, offset + 32), (2, offset + 40)]


def claims(file, size):
    """The archive says of each of its members that it unpacks to this many bytes."""
    data = bytearray(file.read_bytes())
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = data.find(mark)
        while place >= 0:
            struct.pack_into("<I", data, place + at, size)
            place = data.find(mark, place + 4)
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("member", "reported"),
    [("../../out.so", "limit a name below"), ("/out.so", "limit a name below"), ("resources/..\\..\\out", "limit a name below"),
     ("resources/a/../../../out", "limit a name below"), ("LINK", "holds the link"), ("MANY", "files, limit 5000"),
     ("3 GB", "unpacks to ")],  # fmt: skip
)
def test_an_archive_that_leaves_its_folder_or_floods_the_disk_is_refused_unopened(read, tmp_path, monkeypatch, member, reported):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    keys = factory.keys(tmp_path)
    file = Path(keys["file"])
    with zipfile.ZipFile(file, "a") as archive:
        if member == "LINK":
            link = zipfile.ZipInfo("resources/passwd")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, "/etc/passwd")
        elif member == "MANY":
            for k in range(5001):
                archive.writestr(f"resources/{k}", b"")
        else:
            archive.writestr(member if "/" in member else "resources/zeros", bytes(1000), compress_type=zipfile.ZIP_DEFLATED)
    if member == "3 GB":
        claims(file, 3_000_000_000)
    with pytest.raises(ValueError, match=reported):
        read(made=keys | {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
    assert list((tmp_path / "scratch").iterdir()) == [] and not list(tmp_path.rglob("out*"))


def test_an_archive_that_unpacks_to_more_than_it_claims_fills_no_disk(read, tmp_path, monkeypatch):
    """64 MB of zeros that say they are 1000 bytes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    keys = factory.keys(tmp_path)
    file = Path(keys["file"])
    with zipfile.ZipFile(file) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("resources/zeros", bytes(64_000_000))
        for name, data in whole.items():
            archive.writestr(name, data)
    data = bytearray(file.read_bytes())
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):  # of the first member alone
        struct.pack_into("<I", data, data.find(mark) + at, 1000)
    file.write_bytes(data)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        read(made=keys | {"sha256": hashlib.sha256(data).hexdigest()})
    assert sum(one.stat().st_size for one in (tmp_path / "scratch").rglob("*") if one.is_file()) <= 1000


def test_another_file_is_refused_with_both_sums(read, tmp_path):
    other = "0" * 64
    true = factory.keys(tmp_path)["sha256"]
    with pytest.raises(ValueError, match=f"^sha256: .*value '{other}', limit '{true}'"):
        read(sha256=other)


@pytest.mark.parametrize(
    ("version", "change", "reported"),
    [
        (2, {"fmi_version": "1.0"}, "file: .*"),
        (2, {"fmi_version": "2.1"}, "file: .*2.0 or 3.0"),
        (3, {"fmi_version": "4.0"}, "file: .*2.0 or 3.0"),
        (2, {"interface": "ModelExchange"}, "file: .*no interface for co-simulation: value model exchange, limit co-simulation"),
        (2, {"binaries": "win64"}, "file: .*no binary for this platform: value .*, limit binaries/linux64/controller.so"),
        (3, {"binaries": "aarch64-darwin"}, "file: .*no binary for this platform: .*limit binaries/x86_64-linux/controller.so"),
        (3, {"fixed_step": 0.003}, "step_ticks: communication step 0.001 s, limit a whole multiple of .* 0.003 s"),
    ],
)
def test_an_fmu_that_cannot_run_here(read, tmp_path, version, change, reported):
    with pytest.raises(ValueError, match=f"^{reported}"):
        read(made=factory.keys(tmp_path, version, **change))
    assert read(made=factory.keys(tmp_path, 3, fixed_step=0.0005)).version == 3


def test_what_is_no_fmu(read, tmp_path):
    import hashlib

    for content in (b"not a ZIP file", b""):
        path = tmp_path / "other.fmu"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="^file: cannot be read as an FMU: value '.*other.fmu', limit an FMU"):
            read(file=str(path), sha256=hashlib.sha256(content).hexdigest())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", "<fmiModelDescription")
    with pytest.raises(ValueError, match="^file: cannot be read as an FMU"):
        read(file=str(path), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match="^file: no such file: value 'nowhere.fmu', limit"):
        read(file="nowhere.fmu")


@pytest.mark.parametrize(
    ("key", "table", "reported"),
    [
        ("inputs", {"w": "X_TA[0]"}, r"inputs.w: the FMU has no such variable: value 'X_TA\[0\]', limit one of w\[0\], w\[1\]"),
        ("inputs", {"gain": "X_TA[0]"}, r"inputs.gain: its causality is parameter: value 'X_TA\[0\]', limit input"),
        ("inputs", {"torque[0]": "X_TA[0]"}, r"inputs.torque\[0\]: its causality is output"),
        ("inputs", {"press": "X_TA[0]"}, r"inputs.press: is of type Boolean: value 'X_TA\[0\]', limit Real"),
        ("inputs", {"w[0]": "X_TA"}, r"inputs.w\[0\]: no such place in the sample: value 'X_TA', limit one element, X_TA\[0\] ..."),
        ("inputs", {"w[0]": "X_TA[7]"}, r"limit an index 0...6 of X_TA"),
        ("inputs", {"w[0]": "phase[0]"}, r"limit phase, which has no index"),
        ("inputs", {"w[0]": "X_AT[0]"}, r"value 'X_AT\[0\]', limit a field of clock, ports"),
        ("inputs", {"w[0]": "leg_setpoint[0]"}, r"limit which safety writes, a field of clock"),
        ("inputs", {"w[0]": "F_T_corrected[0]"}, r"limit which compensation writes, a field of clock"),
        ("inputs", {"press": "control_request.pres"}, r"limit a bit of control_request: press, retreat, attitude"),
        ("inputs", {"press": "phase.contact"}, r"limit a bit of phase: it has none"),
        ("inputs", {"w[0]": 3}, r"value 3, limit a field of the sample"),
        ("outputs", {}, r"outputs: empty, limit at least one"),
        ("outputs", {"thrust": "X_TA[0]"}, r"limit which dynamics writes, a field of control"),
        ("outputs", {"thrust": "control_status"}, r"outputs.thrust: is a whole word: value 'control_status', limit one of its bits"),
        ("outputs", {"thrust": "control_A[6]"}, r"limit an index 0...5 of control_A"),
        ("outputs", {"w[0]": "control_A[0]"}, r"outputs.w\[0\]: its causality is input: .*limit output"),
        ("outputs", {"pushing": "control_A[0]"}, r"outputs.pushing: is of type Boolean: value 'control_A\[0\]', limit Real"),
        ("outputs", {"thrust": "control_A[0]", "torque[0]": "control_A[0]"}, r"outputs.torque\[0\]: two variables for one place"),
        ("start", {"gian": 1.0}, r"start.gian: the FMU has no such variable: value 1.0, limit one of .*gain"),
        ("start", {"thrust": 1.0}, r"start.thrust: its causality is output: value 1.0, limit parameter or input"),
        ("start", {"gain": "much"}, r"start.gain: is of type Real: value 'much'"),
        ("start", {"gain": True}, r"start.gain: is of type Real: value True"),
        ("start", {"fail": 1.5}, r"start.fail: is of type Integer: value 1.5"),
        ("start", {"press": 1}, r"start.press: is of type Boolean: value 1"),
    ],
)  # fmt: skip
def test_a_variable_that_does_not_fit(read, key, table, reported):
    with pytest.raises(ValueError, match=reported) as caught:
        read(**{key: table})
    assert re.match(rf"{key}[.:]", str(caught.value))


def test_the_example_of_the_guide_is_one():
    guide = Path(__file__).parents[3].joinpath("docs", "control.md").read_text()
    table = tomllib.loads(re.search(r"```toml\n(\[control\]\npart = \"fmu\"\n.*?)```", guide, re.DOTALL)[1])["control"]
    assert set(table) - {"part"} <= {p.key for p in registry.part("control", table["part"]).PARAMETERS}
    for key, writers in (("inputs", READABLE), ("outputs", ("control",))):
        assert all(place(text, writers, DYNAMICS) for text in table[key].values()) and len(table[key]) > 3


def test_all_faults_at_once(read):
    with pytest.raises(ValueError) as caught:
        read(inputs={"w": "X_TA[0]"}, outputs={"thrust": "nowhere"}, start={"gain": "much"})
    assert [re.split("[.:]", part)[0] for part in str(caught.value).split("; ")] == ["inputs", "outputs", "start"]


def test_the_stage_reads_what_the_table_allows():
    ((reads, previous),) = [stage[2:] for stage in STAGES if stage[0] == "control"]
    assert {*READABLE} == {*reads, *previous} and "compensation" not in READABLE and "safety" not in READABLE
    assert place("X_NC[3]", READABLE)[0] == SAMPLE_DTYPE.fields["X_NC"][1] + 24


# ----------------------------------------------------------------------------------------------- names of the dynamics part
def test_where_things_of_the_crafts_stand():
    """Channels by their number among those of the part, a joint with its bit, an actuator with its wrench and limits."""
    before = {}
    for channel in TwoCrafts.AUX:
        before[channel.name] = sum(c.count for c in TwoCrafts.AUX[: len(before)])
    reads = {"joint_position[target mast.1]": ("joint_position", 2), "joint_position[11]": ("joint_position", 11),
             "sensor_rate[target tip][2]": ("sensor_rate", 5), "sensor_rate[0]": ("sensor_rate", 0), "joint_rate[3]": ("joint_rate", 3),
             "latch_drift[1]": ("latch_drift", 1)}  # fmt: skip
    for text, (channel, number) in reads.items():
        assert place(text, READABLE, DYNAMICS)[:3] == (before[channel] + number, CHANNEL, 0)
    at = {name: SAMPLE_DTYPE.fields[name][1] for name in ("joint_target", "wheel_torque_A", "wheel_rate_A")}
    assert place("joint_target[target mast.1]", ("control",), DYNAMICS)[:3] == (at["joint_target"] + 16, JOINT, 4)
    bits = BITS["control_status"]
    assert place("wheel_torque_A[x]", ("control",), DYNAMICS) == (
        at["wheel_torque_A"], ACTUATOR, bits["wheel_limited"], 0, (0.0, 0.0, 0.0, 0.0, -0.6, -0.8), -100.0, 100.0, 2.0, 10.0)  # fmt: skip
    assert place("thruster_T[aft]", ("control",), DYNAMICS)[1:4] == (ACTUATOR, bits["thrust_limited"], 1)
    assert place("wheel_torque_A[0]", ("control",), DYNAMICS)[:2] == (at["wheel_torque_A"], F8)
    assert place("wheel_rate_A[x]", READABLE, DYNAMICS)[:2] == (at["wheel_rate_A"], F8)


@pytest.mark.parametrize(
    ("key", "text", "reported"),
    [
        ("inputs", "joint_position[active elbow]", "limit one of joint_position[active shoulder], joint_position[active spin], joint_pos"),
        ("inputs", "joint_position", "limit one of joint_position[active shoulder]"),
        ("inputs", "joint_position[12]", "limit one of joint_position[active shoulder]"),
        ("inputs", "joint_position[active shoulder][0]", "limit one of joint_position[active shoulder]"),
        ("inputs", "sensor_rate[active imu]", "limit one of sensor_rate[active imu][0...2], sensor_rate[target tip][0...2]"),
        ("inputs", "sensor_rate[active imu][3]", "limit one of sensor_rate[active imu][0...2]"),
        ("inputs", "joint_speed[active spin]", "or a channel of the dynamics part: joint_position, joint_rate, joint_torque, joint_mode"),
        ("inputs", "joint_target[active shoulder]", "limit which control writes, a field of clock"),
        ("inputs", "interface_wrench[24]", "limit an index 0...23 of interface_wrench"),
        ("inputs", "joint_position[active shoulder].on", "or a channel of the dynamics part"),
        ("outputs", "joint_target[active spin]", "limit one of joint_target[active shoulder], joint_target[target mast.1]"),
        ("outputs", "joint_target[0]", "limit one of joint_target[active shoulder]"),
        ("outputs", "joint_controlled.joint1", "limit one of joint_target[active shoulder]"),
        ("outputs", "wheel_torque_A[y]", "limit one of wheel_torque_A[x]"),
        ("outputs", "wheel_torque_T[x]", "limit an index 0...15 of wheel_torque_T"),
        ("outputs", "joint_position[active shoulder]", "limit a field of control (the table"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_with_what_is(read, key, text, reported):
    variable = "w[0]" if key == "inputs" else "thrust"
    with pytest.raises(ValueError, match=re.escape(f"{key}.{variable}: no such place in the sample: value {text!r}, ")) as caught:
        read(dynamics=DYNAMICS, **{key: {variable: text}})
    assert reported in str(caught.value)


def test_without_such_crafts_nothing_has_a_name(read):
    with pytest.raises(ValueError, match=r"inputs.w\[0\]: .*value 'joint_position\[active shoulder\]', limit a field of clock.*md\)$"):
        read(inputs={"w[0]": "joint_position[active shoulder]"})
    with pytest.raises(ValueError, match="outputs.thrust: .*limit a driven joint: there is none"):
        read(outputs={"thrust": "joint_target[active shoulder]"})
    with pytest.raises(ValueError, match=r"outputs.torque\[0\]: two variables for one place"):
        read(dynamics=DYNAMICS, outputs={"thrust": "wheel_torque_A[0]", "torque[0]": "wheel_torque_A[x]"})
