"""Two contacts that rub, off the axis, on a stand whose structure rings: settings, one run, its e and that of the same contact in orbit."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from hil_server.judge.contact_energy import energy_restitution, free_energy, meeting_energy
from rt_kernels.compensation.effective_mass import relative_inverse_inertia, rotation
from rt_kernels.context import IDENTITY, Vehicle, Vehicles
from rt_kernels.mechanisms.linear.several_contacts import SeveralContacts
from rt_kernels.offline.two_craft import TwoCraft
from tests.hybrid.bounce import closed_loop, run

PROGRAMME = "stand_configs/programmes/rubbing_contacts.toml"
# of the free bodies of the programme, ports at the same place and parallel: what the contacts' frequency is reckoned with
MASS, INERTIA, PORT = 600.0, 150.0, 0.5


def free_bodies():
    """The two vehicles of the programme."""
    port = np.array(IDENTITY)
    port[0] = PORT
    return Vehicles(Vehicle(MASS, INERTIA * np.eye(3), tuple(port)), Vehicle(MASS, INERTIA * np.eye(3), (-PORT, *IDENTITY[1:])))


def contact_tables(frequency_hz, points=((0.0, 0.3, 0.15), (0.0, 0.3, -0.15)), friction=0.1, zeta=0.0, shares=None, vehicles=None,
                   normal=(1.0, 0.0, 0.0)):  # fmt: skip
    """Tables [[contacts]] of contacts at `points` of A (planes through the same points of T), whose stiffest mode together has this
    frequency with the vehicles (as they touch, without friction) and damping ratio. shares: of the whole stiffness, default equal."""
    shares = np.full(len(points), 1.0 / len(points)) if shares is None else np.asarray(shares, float) / np.sum(shares)
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    U = np.array([np.r_[n, np.cross(p, n)] for p in points]).T
    inverse = relative_inverse_inertia(vehicles or free_bodies(), [0.0, 0, 0, 0, 0, 0, 1])
    w2 = np.linalg.eigvals(np.diag(shares) @ U.T @ inverse @ U).real.max()
    w = 2.0 * np.pi * frequency_hz
    K = w**2 / w2
    return [{"contact_point_m": list(map(float, p)), "plane_point_m": list(map(float, p)), "normal": list(map(float, normal)),
             "stiffness_n_per_m": float(share * K), "damping_n_s_per_m": float(2.0 * zeta / w * share * K), "clamp": zeta > 0.0,
             "friction": float(friction)} for p, share in zip(points, shares, strict=True)]  # fmt: skip


# monitors that would end a bad contact before its end is seen
OPEN = {"safety.energy_trip": 1e5, "safety.energy_warn": 9.0, "safety.following_max_m": 0.9, "guidance.finish_at_region_end": False}


def settings(frequency_hz, speed=0.05, slide=0.4, compensator=None, quiet=True, **keys):
    """Overrides of the programme: contacts of this frequency met at this speed, m/s, and across at `slide` of it, so that they rub. keys of
    `contact_tables` are taken out of keys; monitors are open."""
    own = {k: keys.pop(k) for k in ("points", "friction", "zeta", "shares", "normal") if k in keys}
    out = OPEN | {
        "mechanism.contacts": contact_tables(frequency_hz, **own),
        "initial_conditions.velocity_x_m_s": speed,
        "initial_conditions.velocity_y_m_s": slide * speed,
        "guidance.contact_max_s": 0.4 + 1.5 / frequency_hz + 0.3,
    }
    if compensator is not None:
        out["compensation.part"] = compensator
    if quiet:
        out |= {"stand.virtual.leg_noise_m": 0.0, "stand.virtual.force_noise_n": 0.0, "stand.virtual.moment_noise_n_m": 0.0,
                "stand.virtual.leg_resolution_m": 0.0}  # fmt: skip
    return out | keys


def in_orbit(vehicles, mechanism, record, duration_s, dt=1e-5):
    """Energies (before, after), J, of the same two vehicles from the state of `record` on, without a stand: the mechanism between them, in
    steps of `dt`. Its state is changed."""
    sides = ((vehicles.active, "C"), (vehicles.target, "V"))
    pair = TwoCraft(mechanism, *(craft(vehicle, record[f"X_N{name}"], record[f"V_N{name}"]) for vehicle, name in sides))
    whole = float(np.sum(pair.momentum()[:3] ** 2)) / (2.0 * sum(vehicle.mass_kg for vehicle, _ in sides))
    before = pair.kinetic_energy() - whole
    pair.run(duration_s, dt, every=1000)
    return before, pair.kinetic_energy() - whole


def craft(vehicle, X, V):
    """As TwoCraft takes it; V: velocity of the centre of mass and angular velocity, N axes."""
    return {"mass": vehicle.mass_kg, "inertia": vehicle.inertia_kg_m2, "X_port": vehicle.X_port, "X": X, "v": V[:3],
            "w": rotation(X[3:]).T @ V[3:]}  # fmt: skip


@dataclass(frozen=True)
class Rubbed:
    """e of the run, e of the same contact in orbit from the state in which the loop was closed, their ratio; records of the closed loop."""

    e: float
    truth: float
    ratio: float
    records: np.ndarray


def rub(table, programme=PROGRAMME):
    """One run with these overrides. Raises AssertionError where the loop does not end by itself or the bodies do not part."""
    test, records = run(table, programme)
    free = closed_loop(records)
    assert len(free), "the loop was never closed"
    vehicles, contacts = test.context["vehicles"], deepcopy(table["mechanism.contacts"])
    lines = SeveralContacts(contacts=contacts).lines(free["X_TA"][0])
    met = meeting_energy(vehicles, free["X_TA"][0], free["V_TA"][0], lines)
    felt = np.linalg.norm(free["F_T"][:, :3], axis=1)
    assert felt[-1] < 0.02 * felt.max(), "the bodies have not parted"
    e = energy_restitution(free_energy(free[[0, -1]], vehicles), met)
    truth = energy_restitution(in_orbit(vehicles, SeveralContacts(contacts=contacts), free[0], 1e-3 * len(free)), met)
    return Rubbed(e, truth, e / truth, free)
