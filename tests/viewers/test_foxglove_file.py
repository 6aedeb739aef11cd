"""The file for viewers, read by the readers that they use: mcap with protobuf and ROS 2 decoders, and rerun's own where it is installed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory as RosDecoder

from hil_server import open_log
from hil_server.cli import main
from hil_server.errors import UsageError
from hil_server.viewers import foxglove_file
from rt_kernels.layout import FIELDS

protobuf = pytest.importorskip("mcap_protobuf.decoder", reason="the independent reader")


@pytest.fixture(scope="module")
def log(docking):
    return open_log(docking)


def messages(path, *topics):
    """(topic, time in ns, decoded message)."""
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[protobuf.DecoderFactory(), RosDecoder()])
        for _, channel, message, decoded in reader.iter_decoded_messages(topics=list(topics)):
            yield channel.topic, message.log_time, decoded


def test_topics_have_the_schemas_that_viewers_know(shown):
    with shown.open("rb") as file:
        summary = make_reader(file).get_summary()
    kinds = {c.topic: (summary.schemas[c.schema_id].name, c.message_encoding) for c in summary.channels.values()}
    assert kinds["/tf"] == ("foxglove.FrameTransforms", "protobuf")
    assert {kinds[f"/scene/{name}"][0] for name in ("stand", "unit", "crafts", "contact")} == {"foxglove.SceneUpdate"}
    assert kinds["/joint_states"] == ("sensor_msgs/msg/JointState", "cdr")
    assert kinds["/wrench/contact"] == ("geometry_msgs/msg/WrenchStamped", "cdr")
    assert kinds["/robot_description"] == ("std_msgs/msg/String", "cdr") and kinds["/events"] == ("foxglove.Log", "protobuf")
    assert summary.statistics.attachment_count >= 2 and summary.statistics.metadata_count == 1


def test_every_channel_is_there_with_the_same_bits(shown, log):
    """By their true names and upper case, at their true time since 1970."""
    start, read = round(log.header.created * 1e9), log.read(list(log.channels))
    time_ns = read["time_ns"].values
    stages = sorted({field[5] for field in FIELDS})
    seen = {}
    for topic, at, message in messages(shown, *(f"/channels/{stage}" for stage in stages)):
        i = seen[topic] = seen.get(topic, -1) + 1
        assert at == start + time_ns[i]
        if i % 200:
            continue
        for name, _, _, _, _, stage, *_ in FIELDS:
            if f"/channels/{stage}" == topic:
                value = getattr(message, name)
                ours = read[name].values[i]
                assert np.array(value, ours.dtype).tobytes() == ours.tobytes(), name
        assert message.seconds == log.seconds[i]
    assert {topic: n + 1 for topic, n in seen.items()} == {f"/channels/{stage}": len(time_ns) for stage in stages}


def test_a_code_has_its_word(shown, log):
    *_, (_, _, message) = messages(shown, "/channels/guidance")
    field = message.DESCRIPTOR.fields_by_name["phase"]
    assert field.enum_type.values_by_number[message.phase].name == f"phase_{log['phase'].words()[-1]}" != "phase_idle"


def test_frames_joints_and_wrenches_continue_together(shown, log):
    found = {topic: [] for topic in ("/tf", "/joint_states", "/wrench/contact")}
    for topic, at, message in messages(shown, *found):
        found[topic].append((at, message))
    assert len({len(rows) for rows in found.values()}) == 1 and 69 <= len(found["/tf"]) <= 72
    at, last = found["/tf"][-1]
    frames = {t.child_frame_id: t for t in last.transforms}
    assert frames["active_port"].parent_frame_id == "target_port" and last.transforms[0].timestamp.seconds == at // 10**9
    i = int(np.flatnonzero(log["time_ns"].values + round(log.header.created * 1e9) == at)[0])
    X = log["X_TA_measured"].values[i]
    place = frames["active_port"].translation
    assert (place.x, place.y, place.z) == tuple(X[:3])
    wrench = found["/wrench/contact"][-1][1]
    assert [wrench.wrench.force.x, wrench.wrench.torque.z] == [log["F_T"].values[i, k] for k in (0, 5)]
    assert wrench.header.frame_id == "target_port" and wrench.header.stamp.sec == at // 10**9
    state = found["/joint_states"][-1][1]
    legs = dict(zip(state.name, state.position, strict=True))
    assert abs(legs["leg_3"] - log["measured_leg"].values[i, 2]) < 1e-6 and len(state.effort) == len(state.name)


def test_the_scene_is_drawn_on_frames_that_are_there(shown):
    frames = {"W"}
    for _, _, message in messages(shown, "/tf"):
        frames |= {t.child_frame_id for t in message.transforms}
    kinds = {"stand": 0, "unit": 0, "crafts": 0}
    for topic, _, message in messages(shown, *(f"/scene/{name}" for name in kinds)):
        for entity in message.entities:
            assert entity.frame_id in frames, entity.id
            kinds[topic.rpartition("/")[2]] += len(entity.lines) + len(entity.cylinders) + len(entity.cubes) + len(entity.triangles)
    assert kinds["stand"] >= 15 and kinds["unit"] > 5 and kinds["crafts"] == 2


def test_the_force_is_an_arrow_in_contact_alone(shown, log):
    start = log.header.created
    contact = log.time_of("first_contact")
    for _, at, message in messages(shown, "/scene/contact"):
        (entity,) = message.entities
        t = at * 1e-9 - start
        if t < contact - 0.1:
            assert not entity.arrows and not entity.spheres
    arrow = entity.arrows[0]
    F = log.between(t - 1e-4, t + 1e-4)["F_T"].values[0, :3]
    assert np.isclose(arrow.shaft_length + arrow.head_length, np.linalg.norm(F) * 2e-4) and entity.spheres


def test_events_are_lines_of_a_log(shown):
    lines = [message.message for _, _, message in messages(shown, "/events")]
    assert "first_contact" in lines and "phase contact" in lines


def test_the_same_by_the_command_line(docking, tmp_path):
    out = tmp_path / "scene.mcap"
    assert main(["export", docking, "--to", "foxglove", "--out", str(out), "--scene-hz", "1", "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["bytes"] == out.stat().st_size > 10_000
    with open_log(docking) as log, pytest.raises(UsageError, match="the log itself"):
        foxglove_file.write(docking, log._source.path)
    with pytest.raises(UsageError, match="nowhere"):
        foxglove_file.write(docking, tmp_path / "nowhere" / "run.mcap")


def test_rerun_reads_scene_and_curves_from_the_file_alone(shown, tmp_path):
    """rerun's own converter: shapes of the URDF on the frames of /tf, curves of the joints, the list of events."""
    pytest.importorskip("rerun", reason="optional group bench")
    rerun = shutil.which("rerun") or str(Path(sys.executable).parent / "rerun")
    target = tmp_path / "run.rrd"
    subprocess.run([rerun, "mcap", "convert", str(shown), "-o", str(target)], check=True, capture_output=True, timeout=100)
    told = subprocess.run([rerun, "rrd", "print", "-vv", str(target)], check=True, capture_output=True, text=True, timeout=100).stdout
    for what in ("Transform3D:translation", "Cylinders3D", "Boxes3D", "Scalars:scalars", "TextLog", "hil_server.Dynamics",
                 "visual_geometries/leg_1_rod", "visual_geometries/head", "visual_geometries/active_craft"):  # fmt: skip
        assert what in told, what
