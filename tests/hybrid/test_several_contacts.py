"""Several contacts at once: springs in parallel, Coulomb's cone, sticking, and the balance of energy, against closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.linear.bumper import Bumper
from rt_kernels.mechanisms.linear.several_contacts import SeveralContacts
from rt_kernels.offline.two_craft import TwoCraft

HERE = [0.0, 0, 0, 0, 0, 0, 1]
K, ARM = 2e5, 0.3


def contact(y=0.0, **keys):
    return {"stiffness_n_per_m": K, "contact_point_m": [0.0, y, 0.0], **keys}


def pose(p=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    return [*p, *Rotation.from_rotvec(turn).as_quat()]


def test_two_springs_at_an_offset_are_a_spring_along_and_one_about():
    """2 K along, 2 K a^2 about the axis across; both points stay pressed in."""
    unit = SeveralContacts(contacts=[contact(ARM), contact(-ARM)])
    depth, angle = 1e-3, 1e-4
    F = unit.advance(pose([depth, 0, 0], [0, 0, angle]), np.zeros(6), 1e-3)["F_T"]
    assert F[0] == pytest.approx(2 * K * depth, rel=1e-9)
    # a turn about z moves the point at +y out by a sin: the moment on the target turns it along
    assert F[5] == pytest.approx(2 * K * ARM**2 * angle, rel=1e-6)
    assert F[1] == F[2] == F[3] == F[4] == 0.0
    # one point lifted: half of the spring, and a moment of its own
    F = unit.advance(pose([1e-5, 0, 0], [0, 0, angle]), np.zeros(6), 1e-3)["F_T"]
    f = K * (1e-5 + ARM * angle)
    assert F[0] == pytest.approx(f, rel=1e-6) and F[5] == pytest.approx(ARM * f, rel=1e-6)


def test_one_of_them_is_the_bumper():
    keys = {"damping_n_s_per_m": 300.0, "normal": [1.0, 0.2, -0.1], "plane_point_m": [0.04, 0.0, 0.02], "contact_point_m": [0.02, 0.1, 0.0]}
    one, other = Bumper(stiffness_n_per_m=K, **keys), SeveralContacts(contacts=[{"stiffness_n_per_m": K, **keys}])
    rng = np.random.default_rng(1)
    pressed = 0
    for _ in range(200):
        X, V = pose(rng.normal(0, 0.02, 3), rng.normal(0, 0.1, 3)), rng.normal(0, 0.2, 6)
        a, b = one.advance(X, V, 1e-3), other.advance(X, V, 1e-3)
        assert np.array_equal(a["F_T"], b["F_T"]) and np.array_equal(a["F_A"], b["F_A"])
        assert one.max_penetration(X) == other.max_penetration(X)
        pressed += a["F_T"].any()
    assert 40 < pressed < 160


@pytest.mark.parametrize("normal", [[1.0, 0.0, 0.0], [1.0, -0.4, 0.3]])
def test_friction_sticks_inside_the_cone_and_slips_on_it(normal):
    """Pressed in by a known depth and drawn across: K_t s up to mu N, then mu N against the slip; back again by the whole cone."""
    n = np.array(normal) / np.linalg.norm(normal)
    t = np.cross(n, [0.0, 0.0, 1.0])
    t /= np.linalg.norm(t)
    mu, across, depth = 0.1, 5e4, 1e-3
    unit = SeveralContacts(contacts=[contact(normal=normal, friction=mu, bristle_stiffness_n_per_m=across)])
    limit = mu * K * depth / across
    way, forces = np.concatenate([np.linspace(0, 3, 301), np.linspace(3, -1, 401)]) * limit, []
    for s in way:
        F = unit.advance(pose(depth * n + s * t), np.zeros(6), 1e-3)["F_T"]
        assert F[:3] @ n == pytest.approx(K * depth, rel=1e-9)
        forces.append(F[:3] @ t)
    expected = across * np.concatenate([np.minimum(way[:301], limit), np.maximum(limit - (3 * limit - way[301:]), -limit)])
    np.testing.assert_allclose(forces, expected, rtol=1e-9, atol=1e-6 * mu * K * depth)


def test_a_sticking_contact_does_not_creep():
    """A sideways pull below mu N moves the point by pull / K_t and holds it there; the force of a regularised law would need slip."""
    mu, depth = 0.3, 1e-3
    unit = SeveralContacts(contacts=[contact(friction=mu)])
    unit.advance(pose([depth, 0, 0]), np.zeros(6), 1e-3)
    s = 0.5 * mu * depth
    forces = [unit.advance(pose([depth, s, 0]), np.zeros(6), 1e-3)["F_T"][1] for _ in range(1000)]
    assert np.ptp(forces) == 0.0 and forces[-1] == pytest.approx(K * s, rel=1e-12)


def test_friction_on_a_slope_is_that_of_the_textbook():
    """A body pressed by its spring and drawn at constant speed: the work over a long way is mu N s, and all of it is lost."""
    mu, depth, way, dt = 0.1, 1e-3, 0.2, 1e-3
    unit = SeveralContacts(contacts=[contact(friction=mu, bristle_damping_n_s_per_m=50.0)])
    _, rows = unit.glide([depth, 0, 0, *HERE[3:]], [0, 0.1, 0, 0, 0, 0], dt, round(way / 0.1 / dt))
    work = float(rows[:, 1].sum() * 0.1 * dt)
    assert work == pytest.approx(mu * K * depth * way, rel=0.01)


def craft(X, v=(0.0, 0, 0), w=(0.0, 0, 0), mass=600.0, inertia=(80.0, 300.0, 300.0)):
    return dict(mass=mass, inertia=np.diag(inertia), X_port=HERE, X=X, v=list(v), w=list(w))


def bounce(contacts, v, w=(0.0, 0, 0), dt=1e-5, duration=0.6):
    """A free body meets another; energies before and after, momentum's error, rows."""
    unit = SeveralContacts(contacts=contacts)
    pair = TwoCraft(unit, craft([-1e-3, 0, 0, *HERE[3:]], v, w), craft(HERE))
    before, P = pair.kinetic_energy(), pair.momentum()
    rows = pair.run(duration, dt)
    return before, pair.kinetic_energy(), np.abs(pair.momentum() - P).max(), rows, unit


def test_a_bounce_on_two_springs_keeps_energy_and_momentum():
    """0.3 m off the axis, one spring stiffer: translation and rotation exchange what they have, and nothing is lost."""
    pairs = [contact(ARM), contact(-ARM, stiffness_n_per_m=0.6 * K)]
    before, after, error, rows, _ = bounce(pairs, [0.05, 0, 0], [0.0, 0.0, 0.02])
    assert rows["signals"].any() and not rows["signals"][-1]
    assert abs(rows["V_TA"][-1, 5]) > 1e-3 and error < 1e-10
    assert after == pytest.approx(before, rel=2e-3)


@pytest.mark.parametrize("across", [{}, {"bristle_stiffness_n_per_m": 3e4}])
@pytest.mark.parametrize("damping", [0.0, 100.0])
def test_friction_never_gives_energy(across, damping):
    """Random bounces with slip: kinetic energy and what springs and bristles hold only falls, up to the error of the step."""
    rng = np.random.default_rng(3)
    lost = []
    for _ in range(6):
        several = [contact(y, friction=0.1, **across, bristle_damping_n_s_per_m=damping) for y in (ARM, -ARM)]
        unit = SeveralContacts(contacts=several)
        pair = TwoCraft(unit, craft([-1e-4, 0, 0, *HERE[3:]], [0.05, *rng.normal(0, 0.03, 2)], rng.normal(0, 0.05, 3)), craft(HERE))
        energy = [pair.kinetic_energy()]
        for _ in range(100):
            pair.run(4e-3, 1e-5, every=400)
            energy.append(pair.kinetic_energy() + unit.stored_energy(pair.relative_pose()))
        assert np.diff(energy).max() < 2e-3 * energy[0]
        lost.append(1.0 - energy[-1] / energy[0])
    assert max(lost) > 0.02 and min(lost) > -1e-3


def test_a_snapshot_brings_the_bristles_back():
    unit = SeveralContacts(contacts=[contact(friction=0.2)])
    unit.advance(pose([1e-3, 0, 0]), np.zeros(6), 1e-3)
    kept = unit.snapshot()
    first = unit.advance(pose([1e-3, 5e-5, 0]), np.zeros(6), 1e-3)["F_T"]
    unit.restore(kept)
    assert np.array_equal(unit.advance(pose([1e-3, 5e-5, 0]), np.zeros(6), 1e-3)["F_T"], first) and first[1] > 0.0


@pytest.mark.parametrize(("tables", "words"), [
    ([], "must be 1 ... 16 tables, got 0"),
    ([contact()] * 17, "got 17"),
    ([contact(), contact(normal=[0.0, 0, 0])], "contacts[1].normal must not be zero"),
    ([contact(friction=-0.1)], "contacts[0].friction"),
    ([contact(fricton=0.1)], "did you mean 'friction'"),
])  # fmt: skip
def test_what_is_wrong_is_named(tables, words):
    with pytest.raises(ValueError, match=words.replace("[", r"\[").replace("]", r"\]")):
        SeveralContacts(contacts=tables)
