"""The workspace query: its ends are real ends, its box is inside, its figures follow from the Jacobian, its errors name what is wrong."""

import json
import math
import re

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.errors import ConfigurationError, UsageError
from hil_server.predict import workspace
from rt_kernels.stewart.platform import Platform


@pytest.fixture(scope="module", params=["docking_stand", "msfc_6dof"])
def platform(request) -> Platform:
    return workspace.load_platform(request.param)


def one(axis: str, value: float) -> np.ndarray:
    displacement = np.zeros((1, 6))
    displacement[0, workspace.AXES.index(axis)] = value
    return displacement


def test_axis_ends_are_where_reach_ends(platform):
    X = platform.neutral_pose
    for r in workspace.axis_ranges(platform):
        for end, why, sign in ((r.low, r.low_end, -1.0), (r.high, r.high_end, 1.0)):
            assert why in ("stroke", "condition")
            assert not workspace.reachable(platform, X, one(r.axis, end)).any()
            just_beyond = workspace.displaced(X, one(r.axis, end + sign * 1e-5))[0]
            if why == "stroke":
                assert platform.margins(just_beyond).min() < 0.0
                assert abs(platform.margins(workspace.displaced(X, one(r.axis, end))[0]).min()) < 1e-5
            else:
                assert platform.condition(just_beyond) > platform.condition_max
            # everything on the way is reachable
            way = np.vstack([one(r.axis, t * end) for t in np.linspace(0.0, 1.0, 50)])
            assert not workspace.reachable(platform, X, way).any()


def test_condition_ends_the_range_where_strokes_do_not():
    """With legs as long as one likes the platform turns until the singularity at 90 deg about its normal is near."""
    table = workspace.load_platform("msfc_6dof").to_dict() | {"leg_length_min_m": 0.1, "leg_length_max_m": 20.0}
    platform = Platform.from_dict(table)
    roll = next(r for r in workspace.axis_ranges(platform) if r.axis == "roll")
    assert (roll.low_end, roll.high_end) == ("condition", "condition")
    assert 80.0 < roll.high < 90.0 and roll.low == pytest.approx(-roll.high, abs=0.01)


def test_range_along_the_normal_by_hand():
    """Along X the legs of a symmetric stand have length sqrt(d^2 + x^2): the ends are where this meets the stroke ends."""
    platform = workspace.load_platform("docking_stand")
    across = np.linalg.norm((platform.platform_joints - platform.base_joints)[:, 1:], axis=1)
    x = next(r for r in workspace.axis_ranges(platform) if r.axis == "x")
    height = platform.neutral_pose[0]
    assert x.high == pytest.approx(math.sqrt(5.0**2 - across.max() ** 2) - height, abs=2e-6)
    assert x.low == pytest.approx(math.sqrt(3.0**2 - across.min() ** 2) - height, abs=2e-6)
    # straight up all legs share the rate: dl/dt = v x / l
    assert x.speed_max == pytest.approx(0.5 * 4.0 / height, rel=1e-3)
    # and the load: six legs of 125 kN, inclined
    assert x.load_max == pytest.approx(6 * 125e3 * height / 4.0, rel=1e-2)


def test_speeds_and_loads_use_the_limits_up(platform):
    X = platform.neutral_pose
    J = platform.jacobian(X)
    for i, r in enumerate(workspace.axis_ranges(platform)):
        speed = r.speed_max if r.unit == "m" else math.radians(r.speed_max)
        assert np.abs(platform.leg_rates(X, speed * np.eye(6)[i])[1]).max() == pytest.approx(platform.leg_rate_max)
        assert np.abs(np.linalg.solve(J.T, r.load_max * np.eye(6)[i])).max() == pytest.approx(platform.leg_force_max)


def test_combined_box_is_reachable_and_the_largest(platform):
    half = workspace.combined_reach(platform)
    assert half[3] == pytest.approx(30.0 * half[0])
    rng = np.random.default_rng(4)
    inside = rng.uniform(-1.0, 1.0, (3000, 6)) * half
    assert not workspace.reachable(platform, platform.neutral_pose, inside).any()
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T
    assert workspace.reachable(platform, platform.neutral_pose, 1.001 * half * corners).any()
    flat = workspace.combined_reach(platform, half_box=np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
    assert flat[0] > half[0] and not flat[3:].any()


def test_map(platform):
    found = workspace.plane_map(platform, "y", "roll", points=21)
    assert found.condition.shape == found.margin_m.shape == (21, 21)
    i, j = 7, 12
    displacement = one("y", found.first_values[i]) + one("roll", found.second_values[j])
    X = workspace.displaced(platform.neutral_pose, displacement)[0]
    assert found.margin_m[i, j] == pytest.approx(platform.margins(X).min(), abs=1e-12)
    assert found.condition[i, j] == pytest.approx(platform.condition(X)) or math.isnan(found.condition[i, j]) and found.margin_m[i, j] < 0
    assert np.array_equal(np.isnan(found.condition), found.margin_m < 0.0) and np.isnan(found.condition).any()
    with pytest.raises(ValueError, match="axis 'w' is not one of x, y, z, roll, yaw, pitch"):
        workspace.plane_map(platform, "w", "y")
    with pytest.raises(ValueError, match="two different axes"):
        workspace.plane_map(platform, "y", "y")
    with pytest.raises(ValueError, match="half_box"):
        workspace.combined_reach(platform, half_box=np.zeros(6))


def test_verb_prints_and_draws(tmp_path, capsys):
    picture = tmp_path / "reach.png"
    assert main(["workspace", "docking_stand", "--position", "3.4", "0.1", "0", "--angles", "1", "2", "3", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    for axis in workspace.AXES:
        assert re.search(rf"^{axis}\s+-\d", text, re.M)
    result = workspace.summary(workspace.load_platform("docking_stand"))
    assert json.loads(json.dumps(result)) == result


def test_verb_says_when_the_pose_cannot_be_taken(capsys):
    assert main(["workspace", "msfc_6dof", "--angles", "0", "0", "90"]) == 1
    assert "the pose itself cannot be taken: stroke margin -0.9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "not TOML"),
        ("name = 'x'", r"platform: the table \[platform\] is required"),
        ("[platform]\nbase_joint_m = 1", r"platform\.base_joint_m: unknown key, value 1, did you mean 'base_joints_m'"),
        ("[platform]\nleg_rate_max_m_s = -1.0", r"platform\.leg_rate_max_m_s: must be a number within .* m/s, got -1.0"),
    ],
)
def test_bad_files_are_named(tmp_path, capsys, text, words):
    file = tmp_path / "stand.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        workspace.load_platform(file)
    assert main(["workspace", str(file)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_geometry_that_only_the_platform_can_judge(tmp_path):
    file = tmp_path / "stand.toml"
    shipped = (workspace.SHIPPED / "docking_stand.toml").read_text()
    file.write_text(shipped.replace("neutral_position_m = [3.395, 0.0, 0.0]", "neutral_position_m = [9.0, 0.0, 0.0]"))
    with pytest.raises(ConfigurationError, match=r"stand.toml: platform.neutral_position_m: leg 0 is 9\.\d+ m long"):
        workspace.load_platform(file)


def test_no_such_stand(capsys):
    with pytest.raises(UsageError, match="nowhere: no such stand file.*docking_stand, .*msfc_6dof"):
        workspace.load_platform("nowhere")
    assert main(["workspace", "nowhere"]) == 2
    assert main(["workspace", "docking_stand", "--position", "nan", "0", "0"]) == 2
    assert main(["workspace", "docking_stand", "--picture", "/nowhere/x.png"]) == 2
    assert main(["workspace", "docking_stand", "--picture", "x.nonsense"]) == 2
    assert "cannot be written" in capsys.readouterr().err
