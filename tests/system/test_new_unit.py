"""`hil-server new-unit`: from two STL files to a docking that is captured and replays; refusals; a field that is not the unit's."""

import re
import shutil

import pytest

from hil_server import cli
from tests.mechanisms.mesh import drawings

MISS = ("--miss-m", "0.02", "-0.01")


@pytest.fixture(scope="module")
def meshes(tmp_path_factory):
    """Folder with a ball that lies 0.2 mm before the bottom of its socket, and the cone; in mm, docking along -Z of the drawing."""
    folder = tmp_path_factory.mktemp("meshes")
    for name, body in (("probe.stl", drawings.ball(0.04, [0.0398, 0, 0], 3)), ("cone.stl", drawings.cone(sections=64))):
        body.apply_transform(drawings.X_TO_MINUS_Z)
        body.apply_scale(1000.0)
        body.export(folder / name)
    return folder


@pytest.fixture(scope="module")
def project(meshes):
    files = [str(meshes / "probe.stl"), str(meshes / "cone.stl")]
    assert cli.main(["new-unit", *files, "--unit", "mm", "--axis=-z", "--cell-m", "0.008", "--spacing-m", "0.004", *MISS,
                     "--out", str(meshes / "unit")]) == 0  # fmt: skip
    return meshes / "unit"


def test_from_drawings_to_a_docking_that_replays(project, capsys, monkeypatch):
    monkeypatch.chdir(project)
    assert cli.main(["check", "unit.toml"]) == 0 and cli.main(["check", "test.toml"]) == 0
    assert cli.main(["simulate", "test.toml", "--out", "run", "--quiet"]) == 0
    assert "captured" in capsys.readouterr().out and (project / "run/run.html").exists() and (project / "unit.png").exists()
    # the meshes are gone, the field is enough
    assert cli.main(["replay", "run/run.mcap", "--verify"]) == 0
    assert "equal" in capsys.readouterr().out


def test_the_unit_is_drawn_with_its_latch(project):
    from hil_server.config import load_test
    from hil_server.config.checks import check_part
    from rt_kernels.mechanisms.mesh.unit import MeshUnit

    unit = load_test(project / "test.toml").setup.mechanism
    keys = check_part(unit.role, unit.name, unit.keys)
    picture = MeshUnit.PICTURE(keys)
    assert {shape.name for shape in picture.looks.shapes} == {"target", "head", "latch1"}
    values = {"mesh.latched": [1.0] + 11 * [0.0], "mesh.area": 1e-5, "mesh.pressure_point": [0.1, 0.2, 0.3]}
    values["mesh.deflection"] = [-0.01] + 5 * [0.0]
    assert picture.touching(values) == ["latch1", "target"] and picture.contacts(values) == [[0.1, 0.2, 0.3]]
    head = picture.bodies(values, [1.0, 0, 0, 0, 0, 0, 1])[0]["head"]
    assert head == pytest.approx([1.0 + keys["head_m"][0] - 0.01, 0, 0, 0, 0, 0, 1], abs=1e-6)


def test_meshes_that_overlap_as_drawn(meshes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ball = drawings.ball(0.04, [0.0498, 0, 0], 3)
    ball.export("deep.stl")
    drawings.cone(sections=64).export("cone.stl")
    assert cli.main(["new-unit", "deep.stl", "cone.stl", "--cell-m", "0.01"]) == 2
    reported = " ".join(capsys.readouterr().err.split())
    assert re.search("deep.stl: overlaps cone.stl by 8.8.* mm as drawn, limit --depth-m 0.003 m: draw the units docked", reported), reported
    assert not (tmp_path / "unit").exists()


def test_another_field_is_refused(project, tmp_path, capsys):
    copy = shutil.copytree(project, tmp_path / "copy")
    text = (copy / "unit.toml").read_text()
    wrong = text.replace('field_sha256 = "', 'field_sha256 = "0')
    (copy / "unit.toml").write_text(wrong)
    assert cli.main(["check", str(copy / "test.toml")]) == 2
    reported = capsys.readouterr().out
    assert "unit.toml" in reported and "field_sha256: '0" in reported
    assert "take the file that belongs to the unit" in " ".join(reported.split())
    (copy / "unit.toml").write_text(text)
    (copy / "unit.npz").unlink()
    assert cli.main(["check", str(copy / "test.toml")]) == 2
    assert "No such file or directory: put the unit's file there" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--axis", "z", "--start-m", "0.05"], "--start-m 0.05: the meshes overlap there by .* mm, 0.05 m before the docked pose"),
        (["--axis=-z", "--depth-m", "20"], "--depth-m 20: must be within 1e-05 ... 10 m"),
        (["--axis=-z", "--out", "."], "exists and is not empty"),
    ],
)
def test_refusals_leave_nothing_behind(meshes, tmp_path, monkeypatch, capsys, more, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    code = cli.main(["new-unit", str(meshes / "probe.stl"), str(meshes / "cone.stl"), "--unit", "mm", "--cell-m", "0.02", *more])
    reported = " ".join(capsys.readouterr().err.split())
    assert code == 2 and re.search(words, reported), reported
    assert [p.name for p in tmp_path.iterdir()] == ["there"]
