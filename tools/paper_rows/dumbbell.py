"""Wang et al. 2020: tables 1, 2, 3 and 5, figures 3 to 6 of the dumbbell spacecraft."""

from dataclasses import replace
from functools import cache

import numpy as np

from rt_kernels.model.beam_elements import Section, square_truss
from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody, free_free_modes
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import Motion
from tools.paper_rows import errata, flown
from tools.paper_rows.page import BLUE, GREEN, GREY, INK, ORANGE, ROOT, Block, Context, compared, panels, prose, table, thin

VEHICLES = ROOT / "stand_configs" / "vehicles"
TABLE_3 = [0.3304, 0.3304, 0.8935, 0.8935, 1.704, 1.704, 1.814, 2.719, 2.719, 3.622, 3.801]
KIND = ["bending"] * 6 + ["torsion", "bending", "bending", "torsion", "axial"]
TABLE_5 = (0.1022, 0.1022, 0.1699, 0.3414, 0.3417, 0.8656, 0.8667)
TORQUE = (50.0, 600.0, 600.0)
STEP, HALF = 0.05, 1000                    # s; steps of 50 s


# --- the craft: the calls of the library


@cache
def craft(name: str) -> FlexibleTree:
    """paper: truss with its eleven free-free modes; point: reactor without inertia; spring: two rigid bodies on an axial spring; rigid:
    the same without the spring; mass_loaded: the shipped craft, whose modes carry the end bodies."""
    if name == "paper":
        return FlexibleTree.from_toml(VEHICLES / "dumbbell_truss_free_free.toml")
    if name == "mass_loaded":
        return FlexibleTree.from_toml(VEHICLES / "dumbbell_truss.toml")
    if name == "point":
        point = ModalBody.rigid(3500.0, (1.5, 0.0, 0.0))
        return FlexibleTree([replace(link, body=point) if link.name == "reactor" else link for link in craft("paper").links])
    main = ModalBody.rigid(7000.0, (-3.0, 0.0, 0.0), (42000.0,) * 3)
    reactor = ModalBody.rigid(3500.0, (1.5, 0.0, 0.0), (5250.0,) * 3)
    joint = {"joint": "prismatic", "axis": (1.0, 0.0, 0.0), "stiffness": 2.629e6 / 30.0} if name == "spring" else {"joint": "fixed"}
    return FlexibleTree([Link("main_body", main, joint="free"),
                         Link("reactor", reactor, "main_body", position=(30.0, 0.0, 0.0), **joint)])


def angles(A: np.ndarray) -> np.ndarray:
    """Roll, yaw, pitch (rad) of direction cosines al_x(roll) al_z(pitch) al_y(yaw) from inertial to body axes."""
    return np.array([np.arctan2(-A[2, 1], A[1, 1]), np.arctan2(-A[0, 2], A[0, 0]), np.arcsin(np.clip(A[0, 1], -1.0, 1.0))])


@cache
def fly(name: str, reverse: bool = False) -> dict[str, np.ndarray]:
    """100 s from rest under TORQUE on the main body (its axes), sign changed at 50 s with `reverse`.

    Arrays over time: t s; tip (n, 3) displacement of the truss's end on axes of the main body, m; attitude (n, 3) roll, yaw, pitch of the
    main body and relative (n, 3) of the reactor seen from it, twist (n,) the truss's own torsion between its ends, degrees; energy,
    work at the end, J.
    """
    tree = craft(name)
    main, reactor = tree.index("main_body"), tree.index("reactor")
    load = np.zeros((len(tree.names), 6))
    load[main, 3:] = TORQUE
    motion = Motion(tree, "rk4", STEP if name != "spring" else STEP / 2)
    q, v = tree.neutral(), np.zeros(tree.nv)
    body = tree.links[0].body
    modes = tree.modal_coordinates(tree.names[0])[0]
    roll = body.ports["tip"].psi[0] - body.ports["root"].psi[0] if body.n_modes else np.zeros(0)
    tip, attitude, relative, twist, power = [], [], [], [], []
    for k in range(2 * HALF + 1):
        R, p = tree.poses(q)
        tip.append(R[main].T @ (p[reactor] - p[main]) - [30.0, 0.0, 0.0])
        attitude.append(angles(R[main].T))
        relative.append(angles(R[reactor].T @ R[main]))
        twist.append(roll @ q[modes])
        power.append(R[main] @ load[main, 3:] @ tree.velocities(q, v)[main, 3:])
        motion.apply(f_ext=-load if reverse and k >= HALF else load)
        if k < 2 * HALF:
            _, q, v = motion.run(q, v, 1 if name != "spring" else 2)
    weights = np.ones(HALF + 1)                # Simpson on each half: the power jumps at 50 s
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    work = STEP / 3.0 * (weights @ power[: HALF + 1] + (-1 if reverse else 1) * weights @ power[HALF:])
    return {"t": STEP * np.arange(2 * HALF + 1), "tip": np.array(tip), "attitude": np.degrees(np.unwrap(attitude, axis=0)),
            "relative": np.degrees(relative), "twist": np.degrees(twist), "work": work,
            "energy": tree.kinetic_energy(q, v) + tree.potential_energy(q)}


# --- tables 1 to 3, figure 3


def table_1(context: Context) -> list[str]:
    body = craft("paper").links[0].body
    roll, pitch = body.inertia[0, 0], body.inertia[1, 1]
    lumped = "mass lumped at the nodes (29); spread along the members: 325.5"
    rows = [
        context.compare("B1, m a²/6, kg·m²", 42000.0, 7000.0 * 6.0**2 / 6.0, 1e-12, ".0f"),
        context.compare("B3, m a²/6", 5250.0, 3500.0 * 3.0**2 / 6.0, 1e-12, ".0f"),
        context.compare("B2, kg", 1505.0, body.mass, 1e-9, ".0f"),
        context.compare("B2 about x, kg·m²", 325.0, roll, 1e-3, ".1f", lumped),
        context.compare("B2 about y, kg·m²", 114762.0, pitch, 5e-4, ".0f"),
    ]
    return [*prose("""
            **Table 1**, masses and inertias. Reconstructed truss: 40 square bays of 0.75 m, four longerons, four battens a frame, one
            diagonal per face and bay."""), *compared(rows)]


def truss(E: float = 1.0079e9):
    """Finite elements of the truss, as `dumbbell_truss_free_free.toml` has it; rigidities in proportion to E."""
    section = Section(E, E, 6.24e-4, 4.685e-7, 4.685e-7, 2.37e-7, 1505.0 / (412.70562748 * 6.24e-4))
    return square_truss(40, 0.75, section)


@cache
def free_free():
    """(frequencies Hz, shapes, frame) of the eleven modes."""
    frame, _, _ = truss()
    hz, shapes = free_free_modes(frame, 11)
    return hz, frame.transform() @ shapes, frame


def table_2(context: Context) -> list[str]:
    hz, _, frame = free_free()
    elements = len(frame._stiffness)
    first = [hz[0] * np.sqrt(E / 1.0079e9) for E in (5e8, 5e-8)]
    rows = [
        context.compare("nodes", 1292.0, float(len(frame.nodes)), 0.0, ".0f"),
        context.compare("elements", 1612.0, float(elements), 0.0, ".0f"),
        context.compare("area of a member, m²", 6.24e-4, 0.08**2 - 0.076**2, 1e-9, ".3e"),
        context.holds("Young's modulus, Pa", "5.0e-8", False, "1.008e+09, from table 3",
                      f"E3.10: first mode {first[1]:.1e} Hz with 5e-8, {first[0]:.4f} Hz with 5e8"),
    ]
    return [*prose("""
            **Table 2**, section 2, finite elements."""), *compared(rows)]


def table_3(context: Context) -> list[str]:
    body = craft("paper").links[0].body
    hz = np.sqrt(np.diag(body.stiffness)) / 2.0 / np.pi
    rows = [context.compare(f"{k + 1}, {kind}", printed, float(f), 5e-4, ".4g" if printed > 1 else ".4f")
            for k, (printed, f, kind) in enumerate(zip(TABLE_3, hz, KIND, strict=True))]
    return [*prose("""
            **Table 3**, free-free frequencies of the truss, Hz; one modulus fitted to the first."""),
            *compared(rows)]


def figure_3(context: Context) -> list[str]:
    hz, shapes, frame = free_free()

    def figure():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(7.6, 5.4), layout="constrained")
        axes = drawn.subplots(4, 3).ravel()
        corners = np.arange(4 * 41).reshape(41, 4)
        rest = frame.nodes[corners]
        diagonal = np.array([1.0, -1.0]) / np.sqrt(2.0), np.array([1.0, 1.0]) / np.sqrt(2.0)
        for k, one in enumerate(axes[:11]):
            u = np.stack([shapes[6 * corners + i, k] for i in range(3)], axis=-1)
            moved = rest + 1.6 * u / np.abs(u).max()
            # bending in the plane in which it happens, torsion and stretching seen from the side
            lateral = [np.abs(u[..., 1:].mean(axis=1) @ d).max() for d in diagonal]
            d = diagonal[int(lateral[1] > lateral[0])] if KIND[k] == "bending" else np.array([1.0, 0.0])
            for x, colour in ((rest, GREY), (moved, BLUE)):
                rings = [np.vstack([ring[[0, 1, 2, 3, 0]], np.full((1, 3), np.nan)]) for ring in x[::4]]
                bars = [np.vstack([x[::2, c], np.full((1, 3), np.nan)]) for c in range(4)]
                line = np.vstack([*bars, *rings])
                one.plot(line[:, 0], line[:, 1:] @ d, color=colour, linewidth=0.6)
            one.set_title(f"{k + 1}: {KIND[k]}, {hz[k]:.4g} Hz", fontsize=7)
            one.set_ylim(-2.6, 2.6)
            one.axis("off")
        axes[11].remove()
        return drawn

    twist = [np.abs(shapes[6 * np.arange(164) + 3, k]).max() for k in range(11)]
    bend = [np.abs(np.stack([shapes[6 * np.arange(164) + i, k] for i in (1, 2)])).max() for k in range(11)]
    arm = 0.375
    stretch = [np.abs(shapes[6 * np.arange(164), k]).max() for k in range(11)]
    kinds = ["torsion" if twist[k] * arm > 0.5 * bend[k] else "axial" if stretch[k] > bend[k] else "bending" for k in range(11)]
    listed = "; ".join(f"{kind} {', '.join(str(k + 1) for k in range(11) if kinds[k] == kind)}" for kind in ("bending", "torsion", "axial"))
    rows = [context.holds("kinds of modes 1 to 11", "bending 1-6, 8, 9; torsion 7, 10; axial 11", kinds == KIND, listed)]
    return [*prose("""
            **Figure 3**, mode shapes (caption and text)."""), *compared(rows),
            *context.picture("003_figure_3", "Mode shapes 1 to 11 of the free truss", figure)]


# --- table 5


def _without_second_torsion(tree: FlexibleTree) -> FlexibleTree:
    body = craft("paper").links[0].body
    keep = np.delete(np.arange(11), 9)
    ports = {k: replace(p, phi=p.phi[:, keep], psi=p.psi[:, keep]) for k, p in body.ports.items()}
    less = replace(body, P=body.P[keep], N=body.N[keep], Q=body.Q[np.ix_(keep, keep)], stiffening=None,
                   stiffness=body.stiffness[np.ix_(keep, keep)], damping=None, ports=ports)
    return FlexibleTree([replace(link, body=less) if link.name == "truss" else link for link in tree.links])


def table_5(context: Context) -> list[str]:
    rigid, point = craft("paper").frequencies()[6:], craft("point").frequencies()[6:]
    rows = [context.compare(f"rigid {k + 1}" + (", torsion" if k == 2 else ""), printed, float(f),
                            5e-3 if k == 2 else 6e-4, ".5f" if k == 2 else ".4f")
            for k, (printed, f) in enumerate(zip(TABLE_5, rigid[:7], strict=True))]
    rows += [context.compare(f"point {k + 1}", printed, float(f), 6e-4, ".4f")
             for k, (printed, f) in enumerate(zip((0.1041, 0.1041, 0.3637, 0.3640, 0.9428, 0.9438), point[:6], strict=True))]
    one = _without_second_torsion(craft("point")).frequencies()[6:]
    single = float(one[np.abs(one - 1.053).argmin()])
    rows.append(context.compare("point 7, torsion", 1.053, float(point[6]), 6e-4, ".4f",
                                f"E3.11: {single:.4f} Hz without the second torsion mode"))
    rows.append(["rigid and point, axial", "not listed", f"{rigid[7]:.4f}, {point[7]:.4f}", "missing (E3.11)"])
    errors = 100.0 * (point[[0, 2, 4]] / rigid[[0, 3, 5]] - 1.0)
    rows.append(context.holds("2.2: error of point, bending", "about 2 %", bool(np.all(np.abs(errors - 2.0) < 0.5)),
                              ", ".join(f"{x:.1f} %" for x in errors), "E3.12: first pair only"))
    twisting = 100.0 * (point[6] / rigid[2] - 1.0)
    rows.append(context.compare("2.2: torsion, %", 519.0, twisting, 0.01, ".0f",
                                f"E3.11; with one torsion mode {100.0 * (single / rigid[2] - 1.0):.0f} %"))
    loaded = craft("mass_loaded").frequencies()[6:13]
    real = ", ".join(f"{f:.4f} (print {100.0 * (p / f - 1.0):+.0f} %)" for p, f in zip(TABLE_5, loaded, strict=True))
    return [
        *prose("""
            **Table 5**, frequencies with eleven free-free modes of the truss, Hz; the reactor is a rigid body (*rigid*) or a point mass
            (*point*). The closed form of a shaft between discs gives the torsion within 0.5 % (`tests/offline/test_dumbbell_chain.py`,
            `test_flexible_motion.py`)."""),
        *compared(rows),
        *prose(f"""
            Free-free modes do not carry the loads of heavy end bodies (E3.13). The same truss with modes that do (shipped
            `dumbbell_truss.toml`; finite elements and a chain of rigid segments agree with it within 0.5 %), Hz: {real}."""),
        "",
    ]


# --- table 4, figures 4 to 6


MODELS = (("paper", "rigid - truss - rigid", BLUE), ("point", "rigid - truss - point", ORANGE), ("spring", "rigid - spring - rigid", GREEN))


def _histories(context: Context, number: int, title: str, field: str, labels, reverse: bool = False) -> list[str]:
    def figure():
        drawn, axes = panels(3)
        for name, label, colour in MODELS:
            flight = fly(name, reverse)
            t, y = thin(flight["t"], flight[field], most=400)
            for axis, (one, what) in enumerate(zip(axes, labels, strict=True)):
                one.plot(t, y[:, axis], color=colour, linewidth=1.0, label=label)
                one.set_ylabel(what, fontsize=8)
        axes[0].legend(fontsize=7)
        axes[2].set_xlabel("time, s", fontsize=8)
        return drawn

    return context.picture(f"003_figure_{number}" + ("_reversed" if reverse else ""), title, figure)


def _peak(x) -> float:
    return float(np.abs(x).max())


def figure_4(context: Context) -> list[str]:
    paper, point, spring, rigid = (fly(name)["attitude"] for name in ("paper", "point", "spring", "rigid"))
    apart = np.abs(paper - point)
    rows = [
        context.holds("roll of the truss models differs most and increasingly (4a)", "yes",
                      bool(apart[-1, 0] > 5.0 * apart[-1, 1:].max() and apart[-1, 0] > apart[HALF, 0] > apart[HALF // 2, 0]),
                      f"roll {apart[-1, 0]:.1f}°, yaw {apart[-1, 1]:.1f}°, pitch {apart[-1, 2]:.1f}° at 100 s"),
        context.holds("spring model like one rigid body", "yes", _peak(spring - rigid) < 0.1,
                      f"largest difference {_peak(spring - rigid):.3f}° of {_peak(rigid):.0f}°"),
    ]
    ends = "; ".join(f"{label} {', '.join(f'{x:.2f}' for x in fly(name)['attitude'][-1])}" for name, label, _ in MODELS)
    return [
        *prose("""
            **Table 4, figure 4**, attitude of the main body under 50, 600, 600 N·m for 100 s. Profile, damping and start are not printed
            (E3.14); assumed: constant torques in body axes, no damping, from rest. Angles: direction cosines al_x al_z al_y."""),
        *compared(rows),
        *prose(f"Roll, yaw, pitch at 100 s, °: {ends}."),
        *_histories(context, 4, "Attitude of the main body, three models", "attitude", ("roll, °", "yaw, °", "pitch, °")),
    ]


def figure_5(context: Context) -> list[str]:
    rows = []
    for name, label, _ in MODELS:
        tips = [fly(name, reverse)["tip"] for reverse in (False, True)]
        rows.append([label, *(", ".join(f"{_peak(d[:, k]):.5f}" if name == "spring" else f"{_peak(d[:, k]):.3f}" for k in range(3))
                              for d in tips)])
    constant, turned = _peak(fly("paper")["tip"][:, 2]), _peak(fly("paper", True)["tip"][:, 2])
    energy = {name: fly(name) for name in ("paper", "point")}
    books = max(abs(e["energy"] - e["work"]) / e["work"] for e in energy.values())
    paper = fly("paper")["tip"]
    statements = [
        context.compare("5(c): largest deformation (1.20 m), torques reversed at 50 s, m", 1.2, turned, 0.04, ".2f"),
        context.compare("the same, constant torques, m", 1.2, constant, 0.04, ".2f",
                        "E3.14"),
        context.holds("deformation is bending, not stretching", "yes", _peak(paper[:, 0]) < 0.05 * _peak(paper[:, 2]),
                      f"x₁ {_peak(paper[:, 0]):.3f} m, z₁ {_peak(paper[:, 2]):.3f} m"),
        context.zero("energy less work of the torques, share", books, 1e-3),
    ]
    return [
        *prose("""
            **Figure 5**, displacement of the truss's end seen from the main body."""), *compared(statements),
        *table(["largest x₁, y₁, z₁, m", "constant torques", "reversed at 50 s"], rows),
        *_histories(context, 5, "Displacement of the truss's end, constant torques", "tip", ("x₁, m", "y₁, m", "z₁, m")),
        *_histories(context, 5, "The same with torques reversed at 50 s", "tip", ("x₁, m", "y₁, m", "z₁, m"), True),
    ]


def figure_6(context: Context) -> list[str]:
    twists = [fly(name)["twist"] for name in ("paper", "point")]
    early = [x[: round(20.0 / STEP)] for x in (*twists, *(fly(name)["relative"][:, 0] for name in ("paper", "point")))]
    paper, point, spring = (fly(name)["relative"] for name in ("paper", "point", "spring"))
    rows = [
        context.holds("6(a): relative roll of the point model far smaller", "yes", _peak(early[3]) < 0.1 * _peak(early[2]),
                      f"{_peak(early[3]):.3f}° against {_peak(early[2]):.3f}° in 20 s",
                      f"partly; the truss's own twist {_peak(early[1]):.3f}° against {_peak(early[0]):.3f}°"),
        context.holds("6(b), (c): amplitudes differ little", "yes",
                      bool(np.all(np.abs(np.abs(point[:, 1:]).max(axis=0) / np.abs(paper[:, 1:]).max(axis=0) - 1.0) < 0.25)),
                      "; ".join(f"{_peak(point[:, k]):.2f}° against {_peak(paper[:, k]):.2f}°" for k in (1, 2))),
        context.holds("spring model without relative attitude", "yes", _peak(spring) < 1e-9, "0"),
    ]
    return [*prose("""
            **Figure 6**, attitude of the reactor seen from the main body."""), *compared(rows),
            *_histories(context, 6, "Attitude of the reactor, three models", "relative",
                        ("roll, °", "yaw, °", "pitch, °"))]


def segments(context: Context) -> list[str]:
    """The truth beside the paper's modes: a chain of rigid segments, integrated by Pinocchio."""
    from tests.offline.segment_chain import SegmentChain

    t, chain, _, _ = SegmentChain().fly(100.0, 5e-3)
    loaded, paper = fly("mass_loaded")["tip"], fly("paper")["tip"]
    rows = []
    for axis, name in ((1, "y₁"), (2, "z₁")):
        peak = [float(x[np.abs(x).argmax()]) for x in (chain[:, axis], loaded[:, axis], paper[:, axis])]
        row = context.compare(f"peak of {name}, m", peak[0], peak[1], 0.02, ".3f")
        rows.append([*row, f"{peak[2]:.3f} ({100.0 * (peak[2] / peak[0] - 1.0):+.0f} %)"])

    def figure():
        drawn, axes = panels(2)
        for y, label, colour in ((chain, "chain of segments", INK), (loaded, "modes loaded by the end bodies", BLUE),
                                 (paper, "free-free modes", ORANGE)):
            x, d = thin(t, y, most=400)
            for one, axis in zip(axes, (1, 2), strict=True):
                one.plot(x, d[:, axis], color=colour, linewidth=1.0, label=label)
        axes[0].set_ylabel("y₁, m", fontsize=8)
        axes[1].set_ylabel("z₁, m", fontsize=8)
        axes[0].legend(fontsize=7)
        axes[1].set_xlabel("time, s", fontsize=8)
        return drawn

    return [
        *prose("""
            † **Beside figure 5**: the same torques on a chain of 20 whole and two half rigid segments on springs (stiffnesses from tables
            1 and 3) in Pinocchio (`tests/offline/segment_chain.py`). Eleven free-free modes are a quarter short (E3.13)."""),
        *table(["what", "chain", "shipped craft", "verdict", "the paper's modes"], rows),
        *context.picture("003_segments", "Displacement of the truss's end, three models", figure),
    ]


BLOCKS = [Block("003.table1", table_1), Block("003.table2", table_2), Block("003.table3", table_3), Block("003.figure3", figure_3),
          Block("003.table5", table_5), Block("003.figure4", figure_4), Block("003.figure5", figure_5), Block("003.figure6", figure_6),
          Block("003.segments", segments, live=True), Block("003.flown", flown.dumbbell, live=True),
          errata.block("003")]
