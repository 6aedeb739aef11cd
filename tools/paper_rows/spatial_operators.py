"""Meng and Han 2007: the recursion on a free tree with joints whose torque or whose acceleration is known. The paper prints no numbers."""

import numpy as np

from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody
from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import Motion
from tools.paper_rows import errata
from tools.paper_rows.page import BLUE, GREEN, INK, ORANGE, Block, Context, compared, panels, prose, thin

# --- one instant: a base with two links, one joint of each kind


def _about_centre(mass, centre, about_origin):
    c = np.array(centre)
    return np.array(about_origin) - mass * (c @ c * np.eye(3) - np.outer(c, c))


TWO_LINKS = [
    Body("base", None, "free", mass=10.0, inertia=np.diag([2.0, 3.0, 4.0])),
    Body("link 1", "base", "revolute", p_PJ_P=[0.5, 0, 0], mass=2.0, com=[0.5, 0, 0],
         inertia=_about_centre(2.0, [0.5, 0, 0], np.diag([0.01, 0.7, 0.7]))),
    Body("link 2", "link 1", "revolute", p_PJ_P=[1.0, 0, 0], axis=[0, 1, 0], mass=1.0, com=[0.4, 0, 0.1],
         inertia=_about_centre(1.0, [0.4, 0, 0.1], [[0.03, 0, -0.04], [0, 0.25, 0], [-0.04, 0, 0.24]])),
]  # fmt: skip


def instant(context: Context) -> list[str]:
    tree = Tree(TWO_LINKS, gravity=(0, 0, 0))
    q = np.array([0, 0, 0, 0, 0, 0, 1, 0.3, -0.5])
    v = np.array([0.5, 0, -0.2, 0.1, 0.2, -0.1, 0.4, -0.6])
    tau, a = np.zeros(8), np.zeros(8)
    tau[6], a[7] = 0.7, 1.2
    known = np.arange(8) == 7
    torque, motion = tree.hybrid_dynamics(q, v, tau, a, known)
    # the same from the whole mass matrix: unknown accelerations first, the torque of the given joint afterwards
    M, bias = tree.mass_matrix(q), tree.inverse_dynamics(q, v, np.zeros(8))
    dense = a.copy()
    dense[:7] = np.linalg.solve(M[:7, :7], tau[:7] - bias[:7] - M[:7, 7] * 1.2)
    wanted = M[7] @ dense + bias[7]
    # the base's acceleration on inertial axes: here the attitude is zero
    linear = motion[:3] + np.cross(v[3:6], v[:3])
    rows = [[name, f"{there:.10f}", f"{here:.10f}", "agrees" if abs(there - here) < 1e-11 else "NOT EXPLAINED"] for name, there, here in (
        *((f"base, angular {axis}", x, y) for axis, x, y in zip("xyz", dense[3:6], motion[3:6], strict=True)),
        *((f"base, linear {axis}", x, y)
          for axis, x, y in zip("xyz", dense[:3] + np.cross(v[3:6], v[:3]), linear, strict=True)),
        ("joint 1 under 0.7 N·m", dense[6], motion[6]),
        ("torque of joint 2 at 1.2 rad/s²", wanted, torque[7]),
    )]
    context.unexplained += [row[0] for row in rows if row[3] != "agrees"]
    return [
        *prose("""
            The paper prints no example. Accelerations (rad/s², m/s²) and torque (N·m) by its recursion against dense equations: free base
            of 10 kg, joint 1 about z with known torque, joint 2 about y with known acceleration. Random trees agree with Pinocchio to
            1e-12 (`tests/multibody/test_tree.py`)."""),
        *compared(rows),
    ]


# --- a motion: two arms, one moved by a given acceleration


def two_arms() -> FlexibleTree:
    """A base with an arm that is moved as given (joints g1, g2) and an antenna on sprung joints (hinge p1, ball p2)."""
    bar = ModalBody.rigid(40.0, (1.0, 0.0, 0.0), (0.6, 14.0, 14.0))
    dish = ModalBody.rigid(15.0, (0.4, 0.0, 0.0), (1.5, 1.0, 1.0))
    return FlexibleTree([
        Link("base", ModalBody.rigid(900.0, (0.05, 0.0, -0.02), (300.0, 420.0, 380.0)), joint="free"),
        Link("g1", bar, "base", joint="revolute", axis=(0.0, 0.0, 1.0), position=(0.0, 0.8, 0.0)),
        Link("g2", bar, "g1", joint="revolute", axis=(0.0, 1.0, 0.0), position=(2.0, 0.0, 0.0)),
        Link("p1", bar, "base", joint="revolute", axis=(0.0, 1.0, 0.0), position=(0.0, -0.8, 0.0), stiffness=150.0),
        Link("p2", dish, "p1", joint="spherical", position=(2.0, 0.0, 0.0)),
    ])


STEP, SECONDS, MOVE = 0.02, 40.0, 20.0
ANGLE = np.array([1.2, -0.9])


def profile(t):
    """Acceleration and rate of the given joints: rest to rest over MOVE seconds by a cycloid, ANGLE rad in all."""
    x = 2.0 * np.pi * min(t, MOVE) / MOVE
    return ANGLE * 2.0 * np.pi / MOVE**2 * np.sin(x), ANGLE / MOVE * (1.0 - np.cos(x))


def fly():
    """Times, given joints' torques, sprung joint, attitude quaternion, momenta, energy and work of the given joints."""
    tree = two_arms()
    given = np.zeros(tree.nv, dtype=bool)
    places = [tree.coordinates(name)[1].start for name in ("g1", "g2")]
    given[places] = True
    motion = Motion(tree, "rk4", STEP)
    q, v = tree.neutral(), np.zeros(tree.nv)
    v[tree.coordinates("p2")[1]] = 0.0, 0.02, 0.0
    out, work, before = [], 0.0, None
    for k in range(round(SECONDS / STEP) + 1):
        t = k * STEP
        a = np.zeros(tree.nv)
        a[places] = profile(t)[0]
        torque, _ = tree.hybrid_dynamics(q, v, np.zeros(tree.nv), a, given)
        power = torque[places] @ v[places]
        work += 0.0 if before is None else 0.5 * STEP * (power + before)
        before = power
        energy = tree.kinetic_energy(q, v) + tree.potential_energy(q)
        out.append([t, *torque[places], q[tree.coordinates("p1")[0].start], *q[3:7], *tree.momentum(q, v, (0.0, 0.0, 0.0)), energy, work,
                    *q[[tree.coordinates(name)[0].start for name in ("g1", "g2")]]])
        # the acceleration is held over the step: its mean, so that the rate is the profile's
        a[places] = (profile(t + STEP)[1] - profile(t)[1]) / STEP
        motion.apply(known=given, a=a)
        _, q, v = motion.run(q, v, 1)
    return np.array(out)


def motion(context: Context) -> list[str]:
    data = fly()
    t, torques, hinge, attitude = data[:, 0], data[:, 1:3], data[:, 3], data[:, 4:8]
    turned = np.degrees(2.0 * np.arccos(np.clip(np.abs(attitude[:, 3]), 0.0, 1.0)))
    energy, work = data[:, 14], data[:, 15]
    swing = np.ptp(energy)
    rows = [
        context.zero("change of linear momentum over 40 s, N·s", np.ptp(data[:, 8:11], axis=0).max(), 1e-9),
        context.zero("of angular momentum, N·m·s", np.ptp(data[:, 11:14], axis=0).max(), 1e-8),
        context.zero("energy less work, share of its swing", np.abs(energy - energy[0] - work).max() / swing, 1e-3),
        context.zero("given joints at the end, rad", np.abs(data[-1, 16:] - ANGLE).max(), 1e-5),
    ]

    def figure():
        drawn, axes = panels(3)
        x, T, h, angle = thin(t, torques, hinge, turned)
        axes[0].plot(x, T[:, 0], color=BLUE, label="joint g1, about z")
        axes[0].plot(x, T[:, 1], color=ORANGE, label="joint g2, about y")
        axes[0].set_ylabel("torque, N·m", fontsize=8)
        axes[0].legend(fontsize=7)
        axes[1].plot(x, np.degrees(h), color=GREEN)
        axes[1].set_ylabel("sprung hinge, °", fontsize=8)
        axes[2].plot(x, angle, color=INK)
        axes[2].set_ylabel("base turned, °", fontsize=8)
        axes[2].set_xlabel("time, s", fontsize=8)
        return drawn

    return [
        *prose(f"""
            In motion: a free base (turns by up to {turned.max():.1f}°), an arm with two given joints (cycloid of 20 s, rest to rest),
            an antenna on a sprung hinge and a free ball joint."""),
        *compared(rows),
        *context.picture("000_mixed_joints", "Torques of the given joints, sprung hinge and attitude of the base over 40 s", figure),
    ]


BLOCKS = [Block("000.instant", instant), Block("000.motion", motion),
          errata.block("000")]
