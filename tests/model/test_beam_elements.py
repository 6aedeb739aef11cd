"""Beam elements and mode sets against closed forms; modal files."""

import numpy as np
import pytest
from scipy.optimize import brentq

from rt_kernels.model.beam_elements import Frame, Section, element_shapes, element_stiffness, straight_beam
from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody, clamped_modes, craig_bampton_modes, free_free_modes, skew
from rt_kernels.multibody.flexible import FlexibleTree

L = 2.0
SLENDER = Section(E=70e9, G=27e9, A=4e-4, Iy=2.0e-8, Iz=0.9e-8, J=1e-8, density=2700.0, gyration_y=1e-3, gyration_z=1e-3)


def bending(section, inertia, root):
    return root**2 / L**2 * np.sqrt(section.E * inertia / (section.density * section.A)) / (2.0 * np.pi)


CLAMPED_FREE = [brentq(lambda b: np.cos(b) * np.cosh(b) + 1.0, *x) for x in ((1.5, 2.2), (4.4, 5.0), (7.6, 8.1))]
FREE_FREE = [brentq(lambda b: np.cos(b) * np.cosh(b) - 1.0, *x) for x in ((4.5, 5.0), (7.6, 8.1), (10.8, 11.2))]


def test_clamped_beam_closed_form():
    frame = straight_beam(L, SLENDER, 20)
    f, _ = clamped_modes(frame, 5, frame.node_dofs(0))
    expected = np.sort([bending(SLENDER, I, b) for I in (SLENDER.Iy, SLENDER.Iz) for b in CLAMPED_FREE])[:5]
    np.testing.assert_allclose(f, expected, rtol=2e-5)


def test_free_free_beam_closed_form():
    frame = straight_beam(L, SLENDER, 24, start=-L / 2)
    f, X = free_free_modes(frame, 5)
    expected = np.sort([bending(SLENDER, I, b) for I in (SLENDER.Iy, SLENDER.Iz) for b in FREE_FREE])[:5]
    np.testing.assert_allclose(f, expected, rtol=5e-5)
    # elastic modes of an unsupported body carry no momentum
    body = frame.modal_body(X)
    M = body.mass_matrix()
    assert np.abs(M[6:, :6]).max() < 1e-8
    np.testing.assert_allclose(body.modal_mass, np.eye(5), atol=1e-9)
    assert body.mass == pytest.approx(SLENDER.density * SLENDER.A * L, rel=1e-12)


def test_the_tree_vibrates_at_the_closed_form():
    """Clamped and free-free beams as bodies of the tree: frequencies from its own mass matrix."""
    frame = straight_beam(L, SLENDER, 20)
    _, X = clamped_modes(frame, 4, frame.node_dofs(0))
    cantilever = FlexibleTree([Link("beam", frame.modal_body(X))])
    expected = np.sort([bending(SLENDER, I, b) for I in (SLENDER.Iy, SLENDER.Iz) for b in CLAMPED_FREE])[:4]
    np.testing.assert_allclose(cantilever.frequencies(), expected, rtol=2e-5)
    # the same clamped modes, but the root is free: the floating frame must give back the free-free beam
    _, X = clamped_modes(frame, 24, frame.node_dofs(0))
    floating = FlexibleTree([Link("beam", frame.modal_body(X), joint="free")])
    expected = np.sort([bending(SLENDER, I, b) for I in (SLENDER.Iy, SLENDER.Iz) for b in FREE_FREE])[:3]
    f = floating.frequencies()
    assert np.abs(f[:6]).max() < 1e-4
    np.testing.assert_allclose(f[6:9], expected, rtol=2e-3)


def test_torsion_and_axial_closed_form():
    thick = Section(E=70e9, G=27e9, A=4e-4, Iy=8e-6, Iz=8e-6, J=1e-8, density=2700.0, gyration_y=0.06, gyration_z=0.06)
    frame = straight_beam(L, thick, 40)
    f, X = clamped_modes(frame, 30, frame.node_dofs(0))
    twist = np.abs(X[frame.node_dofs(40)[3]]) > 10.0 * np.abs(X[frame.node_dofs(40)[0]])
    speed = np.sqrt(thick.G * thick.J / (thick.density * thick.A * (0.06**2 + 0.06**2)))
    assert f[twist][0] == pytest.approx(speed / (4.0 * L), rel=1e-4)
    stretch = np.abs(X[frame.node_dofs(40)[0]]) > 10.0 * np.abs(X[frame.node_dofs(40)[1:4]]).max(axis=0)
    assert f[stretch][0] == pytest.approx(np.sqrt(thick.E / thick.density) / (4.0 * L), rel=1e-3)


def test_timoshenko_tip_deflection():
    s = Section(E=70e9, G=27e9, A=4e-4, Iy=2.0e-8, Iz=0.9e-8, J=1e-8, density=2700.0, shear_y=2e-7, shear_z=3e-7)
    frame = straight_beam(L, s, 3)
    K = frame.stiffness().toarray()[6:, 6:]
    load = np.zeros(18)
    load[13], load[14] = 1.0, 1.0
    u = np.linalg.solve(K, load)
    assert u[13] == pytest.approx(L**3 / (3 * s.E * s.Iz) + L / (s.G * s.shear_y), rel=1e-10)
    assert u[14] == pytest.approx(L**3 / (3 * s.E * s.Iy) + L / (s.G * s.shear_z), rel=1e-10)


def test_shapes_follow_from_statics():
    """Shape functions with shear are the exact solution of the unloaded element: K from two half elements condenses to K of one."""
    s = Section(E=70e9, G=27e9, A=4e-4, Iy=2.0e-8, Iz=0.9e-8, J=1e-8, density=2700.0, shear_y=2e-6, shear_z=3e-6)
    half = element_stiffness(s, 0.5)
    K = np.zeros((18, 18))
    K[:12, :12] += half
    K[6:, 6:] += half
    outer, middle = [*range(6), *range(12, 18)], [*range(6, 12)]
    recover = -np.linalg.solve(K[np.ix_(middle, middle)], K[np.ix_(middle, outer)])
    whole = K[np.ix_(outer, outer)] + K[np.ix_(outer, middle)] @ recover
    np.testing.assert_allclose(whole, element_stiffness(s, 1.0), rtol=0, atol=1e-9 * np.abs(whole).max())
    N, T = element_shapes(s, 1.0, 0.5)
    np.testing.assert_allclose(np.vstack([N, T]), recover, rtol=0, atol=1e-12)


def test_rigid_motion_of_the_points():
    """A skew frame moved rigidly strains nothing and has the momentum of its points."""
    rng = np.random.default_rng(3)
    frame = Frame(rng.normal(size=(4, 3)))
    for a, b in ((0, 1), (1, 2), (2, 3)):
        frame.beam(a, b, SLENDER, up=rng.normal(size=3))
    translation, rotation = rng.normal(size=3), rng.normal(size=3)
    u = np.concatenate([np.concatenate([translation + np.cross(rotation, x), rotation]) for x in frame.nodes])
    assert np.abs(frame.stiffness() @ u).max() < 1e-6 * np.abs(frame.stiffness()).max()
    m, x, B = frame.point_operator()
    np.testing.assert_allclose((B @ u).reshape(-1, 3), translation + np.cross(rotation, x), rtol=0, atol=1e-12)


def test_craig_bampton_modes_carry_end_loads_exactly():
    """Static deflection under an end force with the fewest modes possible equals the finite elements; free-free modes do not."""
    frame = straight_beam(L, SLENDER, 12, start=-L / 2)
    ends = np.concatenate([frame.node_dofs(0), frame.node_dofs(12)])
    loads = np.kron(np.eye(2), np.diag([50.0, 50.0, 50.0, 4.0, 4.0, 4.0]))
    _, X = craig_bampton_modes(frame, 6, ends, loads)

    def tip(X):
        body = frame.modal_body(X, {"a": frame.port(ends[:6], (-L / 2, 0, 0), X), "b": frame.port(ends[6:], (L / 2, 0, 0), X)})
        held = body.clamped_at("a")
        port = held.ports["b"]
        return port.phi @ np.linalg.solve(held.stiffness, port.phi.T @ [0.0, 1.0, 1.0])

    expected = [0.0, L**3 / (3 * SLENDER.E * SLENDER.Iz), L**3 / (3 * SLENDER.E * SLENDER.Iy)]
    np.testing.assert_allclose(tip(X), expected, rtol=1e-9, atol=1e-12)
    _, X = free_free_modes(frame, 6)
    assert np.all(tip(X)[1:] < 0.99 * np.array(expected[1:]))


def test_modal_files(tmp_path):
    frame = straight_beam(L, SLENDER, 6)
    f, X = clamped_modes(frame, 3, frame.node_dofs(0))
    body = frame.modal_body(X, {"tip": frame.port(frame.node_dofs(6), (L, 0, 0), X)}).with_damping_ratio(0.01)
    body.save(tmp_path / "wing.npz")
    again = ModalBody.load(tmp_path / "wing.npz")
    for name in ("first_moment", "second_moment", "P", "N", "Q", "stiffness", "damping"):
        np.testing.assert_array_equal(getattr(again, name), getattr(body, name))
    np.testing.assert_array_equal(again.ports["tip"].psi, body.ports["tip"].psi)
    # points as CSV beside a TOML
    m, x, B = frame.point_operator()
    shapes = (B @ X).reshape(-1, 3, 3)
    header = "mass_kg,x_m,y_m,z_m," + ",".join(f"u{k}{a}" for k in (1, 2, 3) for a in "xyz")
    table = np.column_stack([m, x, shapes.transpose(0, 2, 1).reshape(-1, 9)])
    np.savetxt(tmp_path / "points.csv", table, "%.17g", ",", header=header, comments="")
    rows = lambda A: "[" + ", ".join(str(list(map(float, row))) for row in A) + "]"  # noqa: E731
    port = body.ports["tip"]
    toml = (f'points_csv = "points.csv"\nfrequencies_hz = {list(map(float, f))}\ndamping_ratio = 0.01\n'
            f"[port.tip]\nposition_m = [{L}, 0, 0]\nphi = {rows(port.phi)}\npsi = {rows(port.psi)}\n")
    (tmp_path / "wing.toml").write_text(toml)
    read = ModalBody.load(tmp_path / "wing.toml")
    np.testing.assert_allclose(read.N, body.N, rtol=0, atol=1e-13)
    np.testing.assert_allclose(read.stiffness, body.stiffness, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(read.damping, body.damping, rtol=1e-6, atol=1e-6)
    (tmp_path / "bad.toml").write_text(toml.replace("damping_ratio", "damping"))
    with pytest.raises(ValueError, match="damping: unknown key.* did you mean .damping_ratio"):
        ModalBody.load(tmp_path / "bad.toml")
    (tmp_path / "points.csv").write_text(header.replace("x_m", "x") + "\n")
    with pytest.raises(ValueError, match="header"):
        ModalBody.load(tmp_path / "wing.toml")


def test_wrong_sections_and_frames_are_named():
    with pytest.raises(ValueError, match="section: E = -1.0"):
        Section(-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="length 0.0 m"):
        Frame(np.zeros((2, 3))).beam(0, 1, SLENDER)
    frame = straight_beam(L, SLENDER, 2)
    with pytest.raises(ValueError, match="13 wanted|wanted, the structure"):
        clamped_modes(frame, 13, frame.node_dofs(0))
    with pytest.raises(ValueError, match="six rigid-body modes"):
        held = straight_beam(L, SLENDER, 2)
        held._stiffness.append((np.arange(6), 1e9 * np.eye(6)))
        free_free_modes(held, 2)
    assert np.allclose(skew(np.array([1.0, 2.0, 3.0])) @ [4.0, 5.0, 6.0], np.cross([1, 2, 3], [4, 5, 6]))
