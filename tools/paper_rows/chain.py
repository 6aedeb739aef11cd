"""Tian et al. 2010: the six-link flexible chain with active and passive joints, figures 3 to 8, timing of the two-step method."""

import ctypes
import platform
import time
from dataclasses import replace
from functools import cache

import numpy as np

from rt_kernels.model.craft_file import assumed_beam
from rt_kernels.model.tree_generator import OPTIMISE
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.flexible_code import FlexibleCode
from rt_kernels.offline.integrators import Motion, step_limit
from rt_kernels.offline.kane import compiled_library
from tools.paper_rows import errata, flown
from tools.paper_rows.page import BLUE, ORANGE, ROOT, Block, Context, compared, panels, prose, table, thin

SOFT, STEEL = 20.0, 1136.0                  # N.m2: a section for which 5 ms is a step; a square steel bar of 2 kg/m
ACTIVE = np.isin(np.arange(24), (1, 3, 4))  # joints 2, 4, 5: acceleration given (zero), torque wanted
START = np.concatenate([[0.0, 0.4, -0.8, 0.3, 0.6, 0.2], np.zeros(18)])
FIGURES = ((3, "joint 1, acceleration", 0), (4, "joint 2, torque", 1), (5, "joint 3, acceleration", 2), (6, "joint 4, torque", 3),
           (7, "joint 5, torque", 4), (8, "joint 6, acceleration", 5))
SECONDS = 6.0


def torques(t: float) -> np.ndarray:
    """Table 1: of joints 1, 3 and 6, N.m."""
    tau = np.zeros(24)
    tau[0], tau[2], tau[5] = -3.0 * np.sin(np.pi * t / 3.0), 0.3 * np.cos(np.pi * t / 6.0), 0.3 * np.cos(np.pi * t / 6.0)
    return tau


# --- the chain: the calls of the library


@cache
def chain(stiffness: float) -> FlexibleTree:
    """The shipped six-link chain with another bending stiffness, port rates as in the paper."""
    links = FlexibleTree.from_toml(ROOT / "stand_configs" / "manipulators" / "flexible_six_link.toml").links
    return FlexibleTree([replace(link, body=assumed_beam(1.0, 2.0, stiffness)) for link in links], rates="first_order")


def answer(stiffness: float, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(6,) what figures 3 to 8 show: acceleration of a passive joint, torque of an active one."""
    tau, a = chain(stiffness).hybrid_dynamics(q, v, torques(t), np.zeros(24), ACTIVE)
    return np.where(ACTIVE[:6], tau[:6], a[:6])


def run(stiffness: float, method: str, step: float, seconds: float, every: float):
    """Times and states (n, 24) at rest of START, every so many seconds."""
    motion = Motion(chain(stiffness), method, step)
    motion.apply(lambda t, q, v: torques(t), known=ACTIVE)
    return motion.run(START, np.zeros(24), round(seconds / step), every=round(every / step))


def rate(stiffness: float):
    """y' = f(t, y) of the passive joints and the modes, for a solver of scipy; counts its calls in `rate.calls`."""
    tree = chain(stiffness)

    def f(t, y):
        f.calls += 1
        return np.concatenate([y[24:], tree.hybrid_dynamics(y[:24], y[24:], torques(t), np.zeros(24), ACTIVE)[1]])

    f.calls = 0
    return f


# --- the recursion


def _apart(a, b) -> float:
    """Largest difference, relative."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def start(context: Context) -> list[str]:
    tree, rows = chain(STEEL), []
    tau, a = tree.hybrid_dynamics(START, np.zeros(24), torques(0.0), np.zeros(24), ACTIVE)
    # dense, at rest and without gravity: unknown accelerations first, then the torques of the active joints
    M, free = tree.mass_matrix(START), ~ACTIVE
    dense = np.zeros(24)
    passive, given_torques = M[np.ix_(free, free)], torques(0.0)[free]
    dense[free] = np.linalg.solve(passive, given_torques)
    # condition 5e6: refined once, joint 1 is good to 1e-9 with any library of linear algebra
    rest = given_torques - passive.astype(np.longdouble) @ dense[free]
    dense[free] += np.linalg.solve(passive, rest.astype(float))
    wanted = M @ dense
    for k, name in ((0, "acceleration of joint 1, rad/s²"), (2, "joint 3"), (5, "joint 6")):
        rows.append(context.compare(name, dense[k], a[k], 1e-9, ".8f"))
    for k in (1, 3, 4):
        rows.append(context.compare(f"joint {k + 1}" if k > 1 else f"torque of joint {k + 1}, N·m", wanted[k], tau[k], 1e-9, ".8f"))
    rng = np.random.default_rng(4)
    q, v, T, given = START + 0.01 * rng.normal(size=24), 0.3 * rng.normal(size=24), np.zeros(24), np.zeros(24)
    T[:6], given[:6] = rng.normal(size=6), rng.normal(size=6)
    joints = np.arange(24) < 6
    all_passive = tree.hybrid_dynamics(q, v, T, given, np.zeros(24, dtype=bool))[1]
    forward = np.linalg.solve(tree.mass_matrix(q), T - tree.inverse_dynamics(q, v, np.zeros(24)))
    t_active, a_active = tree.hybrid_dynamics(q, v, T, given, joints)
    inverse = tree.inverse_dynamics(q, v, a_active)
    t_mixed, a_mixed = tree.hybrid_dynamics(q, v, T, given, ACTIVE)
    swapped = joints & ~ACTIVE
    t_back, a_back = tree.hybrid_dynamics(q, v, t_mixed, a_mixed, swapped)
    checks = [
        context.zero("all passive: forward dynamics", _apart(all_passive, forward), 1e-9),
        context.zero("all active: inverse dynamics", _apart(t_active, inverse), 1e-9),
        context.zero("active and passive exchanged: motion", _apart(a_back, a_mixed), 1e-9),
        context.zero("torques", _apart(t_back[:6], t_mixed[:6]), 1e-9),
    ]
    return [
        *prose("""
            **Table 1, (5) to (7)**, recursion at the first instant against dense equations of all 24 coordinates: six links of 1 m, 2 kg,
            three modes, torques of joints 1, 3, 6; 2, 4, 5 at zero acceleration. Axes (z, y, y, x, y, z), start (q = 0, 0.4, -0.8, 0.3,
            0.6, 0.2), section and shape functions are not printed; chosen in `stand_configs/manipulators/flexible_six_link.toml`."""),
        *compared(rows),
        *prose("""
            **Section 4.3**, the paper's checks of its algorithm, at a random state."""),
        *compared(checks),
    ]


# --- figures 3 to 8


@cache
def histories(method: str, step: float):
    """(times, q (n, 24), figures' values (n, 6)) of the soft chain, every 5 ms over SECONDS."""
    t, q, v = run(SOFT, method, step, SECONDS, 5e-3)
    return t, q, np.array([answer(SOFT, *state) for state in zip(t, q, v, strict=True)])


def figures(context: Context) -> list[str]:
    t, q, ours = histories("two_step", 5e-3)
    _, _, small = histories("two_step", 2.5e-4)
    _, q_fine, fine = histories("rk4", 2.5e-4)

    def figure():
        drawn, axes = panels(6, 2, 1.7)
        for (number, what, k), one in zip(FIGURES, axes, strict=True):
            x, y, z = thin(t, ours[:, k], fine[:, k], most=300)
            one.plot(x, z, color=ORANGE, linewidth=1.2, label="fourth order, 0.25 ms")
            one.plot(x, y, color=BLUE, linewidth=0.6, label="two-step, 5 ms")
            one.set_title(f"figure {number}: {what}, {'N·m' if ACTIVE[k] else 'rad/s²'}", fontsize=7)
            # the first instants, where the resting modes are loaded at once, would hide the rest
            one.set_ylim(*(1.15 * np.array([-1.0, 1.0]) * np.quantile(np.abs(fine[:, k]), 0.995)))
        axes[0].legend(fontsize=6)
        for one in axes[-2:]:
            one.set_xlabel("time, s", fontsize=8)
        return drawn

    apart = np.abs(q - q_fine)[:, [0, 2, 5]].max(axis=0)
    rms = lambda x: np.sqrt(np.mean(x**2, axis=0))  # noqa: E731
    far, near = (100.0 * rms(x - fine) / rms(fine) for x in (ours, small))
    rows = [[f"{number}: {what}, {'N·m' if ACTIVE[k] else 'rad/s²'}", f"{fine[:, k].min():.3g} ... {fine[:, k].max():.3g}",
             f"{far[k]:.0f} %, {near[k]:.1f} %"] for number, what, k in FIGURES]
    errors = []
    for steps in (200, 400, 800, 1600):
        end = run(SOFT, "two_step", 1.0 / steps, 1.0, 1.0)[1][-1]
        errors.append(np.abs(end - reference(1.0))[[0, 2, 5]].max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    verdicts = [
        context.holds("4.2: two-step method and other solver: angles", "yes", bool(apart.max() < 0.05),
                      f"joints 1, 3, 6 within {apart[0]:.3f}, {apart[1]:.3f}, {apart[2]:.3f} rad over 6 s"),
        context.holds("accelerations (figures 3, 5, 8)", "yes", bool(far[[0, 2, 5]].max() < 5.0), f"{far[[0, 2, 5]].max():.0f} %",
                      f"partly; {near[[0, 2, 5]].max():.0f} % with 0.25 ms"),
        context.holds("order 2 of the method (Zhai 1996)", "2", bool(np.all(np.abs(orders - 2.0) < 0.3)),
                      "errors at 1 s with 5, 2.5, 1.25, 0.625 ms: " + ", ".join(f"{e:.1e}" for e in errors)),
    ]
    return [
        *prose("""
            **Figures 3 to 8**, six histories (text and captions name them differently, E4.10): step 5 ms, ψ = φ = 1/2, bending stiffness
            20 N·m² to suit this step, against fourth order with a twentieth of the step. Accelerations contain undamped vibrations of
            the links up to 31 Hz, whose phase a step of 5 ms loses within seconds."""),
        *compared(verdicts),
        *table(["figure", "range", "rms difference with 5 ms, 0.25 ms"], rows),
        *context.picture("004_figures_3_to_8", "Accelerations of joints 1, 3, 6, torques of joints 2, 4, 5", figure),
    ]


@cache
def reference(seconds: float) -> np.ndarray:
    """q of the soft chain, RK4 at 0.25 ms."""
    return run(SOFT, "rk4", 2.5e-4, seconds, seconds)[1][-1]


def stiffness(context: Context) -> list[str]:
    locked = [1, 3, 4]
    limits = {EI: 1e3 * step_limit(chain(EI), "two_step", START, locked) for EI in (SOFT, 85.0, STEEL)}
    highest = {EI: chain(EI).frequencies(START, locked)[-1] for EI in limits}
    with np.errstate(all="ignore"):
        end = run(STEEL, "two_step", 5e-3, 0.025, 5e-3)[1]
    largest = np.abs(end[:, 6:]).max(axis=1)
    broken = next((k for k, x in enumerate(largest) if not x < 1.0), None)
    rows = [
        context.holds("4.2: Δt = 5 ms with E = 210 GPa", "used", False, f"limit {limits[STEEL]:.3f} ms",
                      f"E4.12: stable for ω Δt < 2; coordinates pass 1 m at step {broken}"),
    ]
    return [*prose(f"""
            **Section 4.2**. A square steel bar of 2 kg/m and 210 GPa has E I = 1136 N·m². Largest step (highest frequency) at 1136, 85 and
            20 N·m²: {limits[STEEL]:.3f} ms ({highest[STEEL]:.1f} Hz), {limits[85.0]:.2f} ms ({highest[85.0]:.1f} Hz), {limits[SOFT]:.1f} ms
            ({highest[SOFT]:.1f} Hz)."""),
            *compared(rows)]


# --- the timing


def _timed(call) -> tuple[float, object]:
    begun = time.process_time()
    result = call()
    return time.process_time() - begun, result


def timing(context: Context) -> list[str]:
    from scipy.integrate import solve_ivp

    columns: list[list[tuple[str, str]]] = []
    for EI, step in ((SOFT, 5e-3), (STEEL, 1.25e-3)):
        tree = chain(EI)
        fine = run(EI, "rk4", 2.5e-4 if EI == SOFT else 3.125e-5, SECONDS, SECONDS)[1][-1]
        y0 = np.concatenate([START, np.zeros(24)])
        error = lambda q: np.abs(q[:6] - fine[:6]).max()  # noqa: E731, B023
        # the two-step method called the same way as the solvers: one Python call an evaluation
        motion = Motion(lambda t, q, v: tree.hybrid_dynamics(q, v, torques(t), np.zeros(24), ACTIVE)[1], "two_step", step, nv=24)  # noqa: B023
        steps = round(SECONDS / step)
        base, state = _timed(lambda: motion.run(START, np.zeros(24), steps))  # noqa: B023
        first = error(state[1])
        rows = [("two-step", f"{steps}, {base:.3f} s, {first:.1e} rad, 1")]
        spent, state = _timed(lambda: run(EI, "two_step", step, SECONDS, SECONDS))  # noqa: B023
        rows.append(("the same, compiled", f"{steps}, {spent:.3f} s, {error(state[1][-1]):.1e} rad, {spent / base:.2f}"))
        for method, tolerance in (("BDF", 1e-3), ("BDF", 1e-6), ("Radau", 1e-3), ("Radau", 1e-6), ("LSODA", 1e-6), ("DOP853", 1e-6)):
            f = rate(EI)
            try:
                spent, solution = _timed(lambda: solve_ivp(f, (0.0, SECONDS), y0, method, rtol=tolerance, atol=1e-3 * tolerance))  # noqa: B023
            except ValueError:          # the recursion's word for a state beyond all bounds
                rows.append((f"{method}, rtol {tolerance:.0e}", f"{f.calls}, unbounded"))
                continue
            reached = error(solution.y[:24, -1])
            rows.append((f"{method}, rtol {tolerance:.0e}",
                         f"{f.calls}, {spent:.3f} s, {reached:.1e} rad, {spent / base * np.sqrt(reached / first):.2g}"))
        columns.append(rows)
    machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    return [
        *prose(f"""
            † **Timing.** Printed: NDSolve 11 min 32 s, two-step method 6 min 28 s, ratio 1.78. Here ({machine}, shared): the two-step
            method and solvers of scipy on the same compiled recursion, called from Python, over 6 s: evaluations, processor time, error of
            a joint, time relative to the first line at equal error."""),
        *table(["method", "20 N·m², step 5 ms", "1136 N·m² (steel bar), step 1.25 ms"],
               [[name, soft, steel] for (name, soft), (_, steel) in zip(*columns, strict=True)]),
    ]


LOOP = """
#include <time.h>
double NAME_time(int n, const double *q, const double *v, const double *x, double *a, double *tau)
{
    /* by a pointer that may change: nothing of one call is kept for the next */
    void (*volatile call)(const double *, const double *, const double *, double *, double *) = NAME_dynamics;
    struct timespec first, last;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &first);
    for (int i = 0; i < n; ++i) call(q, v, x, a, tau);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &last);
    return ((last.tv_sec - first.tv_sec) * 1e9 + (last.tv_nsec - first.tv_nsec)) / n;
}
"""


def code(context: Context) -> list[str]:
    """The package of symbolic code, and what its code costs beside the general recursion."""
    rows = []
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 6):
        links = chain(SOFT).links[:n]
        names = [link.name for k, link in enumerate(links) if ACTIVE[k]]
        spent, made = _timed(lambda: FlexibleCode(links, rates="first_order", given=names))  # noqa: B023
        tree, given = made.tree, ACTIVE[:n]
        begun = time.monotonic()
        loaded, _ = compiled_library(made.emit_c("chain") + LOOP.replace("NAME", "chain"), "chain", None, None, OPTIMISE)
        compiling = time.monotonic() - begun
        compiled = made.compile("chain")
        mask = np.zeros(tree.nv, dtype=bool)
        mask[:n] = given
        q, v, x = 0.3 + 0.02 * rng.normal(size=tree.nq), 0.3 * rng.normal(size=tree.nv), rng.normal(size=tree.nv)
        wanted = np.concatenate(tree.hybrid_dynamics(q, v, np.where(mask, 0.0, x), np.where(mask, x, 0.0), mask))
        apart = _apart(np.concatenate(compiled.dynamics(q, v, x)), wanted)
        pointer = ctypes.POINTER(ctypes.c_double)
        arrays = [np.ascontiguousarray(y).ctypes.data_as(pointer) for y in (q, v, x.copy(), np.zeros(tree.nv), np.zeros(tree.nv))]
        loaded.chain_time.restype = ctypes.c_double
        motion = Motion(tree, "symplectic_euler", 1e-12)
        motion.apply(known=mask)
        ours, general = [], []
        for _ in range(15):                       # interleaved: both see the same machine
            ours.append(loaded.chain_time(2000, *arrays))
            begun = time.thread_time_ns()
            motion.run(q, v, 2000)
            general.append((time.thread_time_ns() - begun) / 2000)
        if not apart < 1e-10:
            context.unexplained.append(f"code of {n} links")
        rows.append([f"{n}", f"{made.operations}", f"{1e3 * spent:.0f} ms, {compiling:.1f} s", f"{min(ours) / 1e3:.2f}",
                     f"{min(general) / 1e3:.2f}"])
    return [
        *prose("""
            † **Section 4.1**, symbolic code: `rt_kernels.offline.flexible_code` runs the recursion once on symbols and writes C, for
            the first n links of the chain; results equal those of the general recursion (one evaluation beside it) within 1e-10."""),
        *table(["links", "operations", "derived, compiled in", "code, µs", "general recursion, µs"], rows),
    ]


BLOCKS = [Block("004.start", start), Block("004.figures", figures),
          Block("004.flown", flown.chain, live=True), Block("004.step", stiffness), Block("004.timing", timing, live=True),
          Block("004.code", code, live=True),
          errata.block("004")]
