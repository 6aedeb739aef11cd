"""From meshes to the file of a unit: what is refused, areas of the samples, the tree, and the file itself."""

import io

import numpy as np
import pytest
import trimesh

from hil_server.config import unit_meshes
from hil_server.errors import UsageError
from rt_kernels.mechanisms.mesh import field_file


@pytest.fixture
def exported(tmp_path):
    """Function (mesh, name) → path of its STL file."""

    def export(mesh, name="body.stl"):
        mesh.export(tmp_path / name)
        return tmp_path / name

    return export


def test_a_mesh_in_other_units_and_inside_out(exported):
    box = trimesh.creation.box((200.0, 100.0, 50.0))
    box.invert()
    mesh = unit_meshes.read_mesh(exported(box), "mm")
    assert mesh.extents == pytest.approx([0.2, 0.1, 0.05]) and mesh.volume == pytest.approx(1e-3)


def test_refusals(exported, tmp_path):
    box = trimesh.creation.box((0.2, 0.1, 0.05))
    open_box = trimesh.Trimesh(box.vertices, box.faces[:-1])
    large = trimesh.creation.box((200.0, 100.0, 50.0))
    (tmp_path / "text.stl").write_text("part = 'no mesh'\n")
    (tmp_path / "none.stl").write_text("solid none\nendsolid none\n")
    for file, unit, words in (
        (tmp_path / "missing.stl", "m", "missing.stl: cannot be read: No such file"),
        (exported(open_box), "m", "body.stl: is not watertight: 3 edges"),
        (exported(large, "large.stl"), "m", "large.stl: is 200 m large when read in m, limit 0.01 ... 10 m: --unit mm"),
        (exported(box, "small.stl"), "mm", r"small.stl: is 0.0002 m large when read in mm, .*: --unit m or inch|--unit m"),
        (tmp_path / "none.stl", "m", "none.stl: "),
        (tmp_path / "text.stl", "m", "text.stl: "),
        (tmp_path, "m", "no regular file|Is a directory"),
    ):
        with pytest.raises(UsageError, match=words):
            unit_meshes.read_mesh(file, unit)
    with pytest.raises(UsageError, match="--cell-m 0.0001: a grid of .* nodes, limit 30000000: take a larger cell"):
        unit_meshes.signed_distance(box, 1e-4, 1e-3)
    with pytest.raises(UsageError, match="--spacing-m 0.0001: about .* samples, limit 1000000"):
        unit_meshes.surface_samples(box, 1e-4)


def test_samples_have_the_area_and_the_moments_of_the_surface():
    """Sum of the areas, centre and second moments of a ball's and a thin plate's surface; both sides of a plate stay apart."""
    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.1)
    s = unit_meshes.surface_samples(ball, 0.01)
    assert s[:, 3].sum() == pytest.approx(ball.area) and len(s) < 2.2 * ball.area / 0.01**2
    assert np.abs(np.linalg.norm(s[:, :3], axis=1) - 0.1).max() < 4e-4  # chords
    assert np.einsum("i,ij,ik->jk", s[:, 3], s[:, :3], s[:, :3]) == pytest.approx(
        np.eye(3) * ball.area * 0.01 / 3, abs=2e-2 * ball.area * 0.01
    )
    plate = trimesh.creation.box((0.001, 0.1, 0.1))
    s = unit_meshes.surface_samples(plate, 0.01)
    faces = np.abs(s[:, 0]) > 4.9e-4
    assert s[faces & (s[:, 0] > 0), 3].sum() == pytest.approx(0.01) == s[faces & (s[:, 0] < 0), 3].sum()


def test_every_sample_lies_in_the_balls_above_it():
    rng = np.random.default_rng(1)
    given = np.column_stack([rng.normal(size=(700, 3)), rng.uniform(0.1, 1.0, 700)])
    found = unit_meshes.tree(given)
    sample, ball, (skip, first, count) = found["sample"], found["ball"], found["link"].T
    assert sorted(map(tuple, sample)) == sorted(map(tuple, given)) and count.sum() == 700
    for i in range(len(ball)):
        below = np.concatenate([np.arange(first[k], first[k] + count[k]) for k in range(i, skip[i])])
        assert (np.linalg.norm(sample[below, :3] - ball[i, :3], axis=1) <= ball[i, 3]).all()


@pytest.fixture(scope="module")
def arrays():
    box = trimesh.creation.box((0.1, 0.1, 0.1))
    return unit_meshes.unit_arrays(box, box, cell=0.02, spacing=0.02, depth=0.003)


def test_the_same_meshes_give_the_same_file(arrays, tmp_path):
    first, second = (field_file.write(tmp_path / name, arrays) for name in ("a.npz", "b.npz"))
    assert first == second
    read = field_file.read(str(tmp_path / "a.npz"), first)
    assert all(np.array_equal(read[name], arrays[name]) for name in field_file.FORM)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("ball"), "ball"),
        (lambda a: a.update(sample=a["sample"][:, :3]), "other shapes"),
        (lambda a: a.update(link=a["link"] + np.array([0, 0, 10000], np.int32)), "link leads outside"),
        (lambda a: a.update(link=a["link"] * np.array([0, 1, 1], np.int32)), "link leads outside"),
        (lambda a: a.update(node=a["node"] * np.float32(np.nan)), "node must be finite"),
        (lambda a: a.update(node=a["node"].astype(float)), "node must be finite, f4"),
        (lambda a: a.update(grid=a["grid"] * [1, 1, 1, 0, 1]), "grid without a cell"),
    ],
)
def test_a_file_of_another_form_is_refused(arrays, change, words):
    changed = dict(arrays)
    change(changed)
    stream = io.BytesIO()
    np.savez(stream, **changed)
    with pytest.raises((ValueError, KeyError), match=words):
        field_file.parsed(stream.getvalue())


def test_bytes_that_are_no_archive(tmp_path):
    import hashlib

    (tmp_path / "unit.npz").write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match="field: .*unit.npz: is no field of a unit"):
        field_file.read(str(tmp_path / "unit.npz"), hashlib.sha256(b"PK no archive").hexdigest())
