"""Kane's equations of small symbolic models, and their C step functions.

For bodies with angular velocity omega and velocity v* of the mass centre, and speeds u_r (Kane 1981, eqs. (1)-(8)):

    partial velocities            omega_r = d omega / d u_r,  v_r = d v* / d u_r
    generalised active forces     F_r  = sum omega_r . T + v_r . R
    generalised inertia forces    F_r* = sum omega_r . T* + v_r . R*,  R* = -m a*,  T* = -alpha . I - omega x I . omega
    equations                     F_r + F_r* = 0, that is X u_dot = Y

A system that rolls or has an edge obeys motion constraints: some speeds are given by the others, u_s = sum A_sr u_r + B_s. With these put
into the velocities, the partial velocities are those of the independent speeds alone, v_r + sum v_s A_sr, and the same equations hold:
no multiplier appears.

A rotor of polar moment J that spins at Omega about an axis c of its carrier (carrier and frozen rotor counted as one body) adds
-d/dt (J Omega c) = J [Omega (c x omega) - Omega_dot c] to T* of the carrier; a rotor whose spin is itself a speed u_n adds
F_n* = -J (omega . c + Omega)_dot.

`KaneModel` derives them with `sympy.physics.mechanics` (vectors and frames only, not its `KanesMethod`), so it is an oracle for the
recursive kernels and shares nothing with them. `emit_c` writes a C file without libm calls, allocation or branches; `compile` builds it
with the system compiler. Names of the quantities are the textbook's. Needs sympy (group `models`).
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Rotor:
    """carrier: index of a body; axis: unit vector fixed in it; inertia J; spin Omega: an expression, or one of the speeds (free rotor)."""

    carrier: int
    axis: Any
    inertia: Any
    spin: Any


@dataclass
class KaneModel:
    """Equations of motion by Kane's method.

    frame: inertial frame; coordinates, speeds: dynamicsymbols; rates: {q_dot: expression in u};
    bodies, particles: `RigidBody`, `Particle` with velocities set in terms of the speeds; forces [(point, vector)],
    torques [(frame, vector)]; parameters, inputs: symbols that the C function takes as arrays p and f; rotors: see `Rotor`;
    dependent: motion constraints {speed that is not in `speeds`: expression in those that are}.
    """

    frame: Any
    coordinates: Sequence[Any]
    speeds: Sequence[Any]
    rates: dict[Any, Any]
    bodies: Sequence[Any] = ()
    particles: Sequence[Any] = ()
    forces: Sequence[tuple[Any, Any]] = ()
    torques: Sequence[tuple[Any, Any]] = ()
    rotors: Sequence[Rotor] = ()
    parameters: Sequence[Any] = ()
    inputs: Sequence[Any] = ()
    dependent: dict[Any, Any] = field(default_factory=dict)
    _cache: dict = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        import sympy

        if len(self.rates) != len(self.coordinates):
            raise ValueError(f"rates: {len(self.rates)} given for {len(self.coordinates)} coordinates")
        t = sympy.Symbol("t")
        for q in self.coordinates:
            if q.diff(t) not in self.rates:
                raise ValueError(f"rates: {q.diff(t)} is missing")
        for speed, value in self.dependent.items():
            if speed in self.speeds or sympy.sympify(value).has(*self.dependent):
                raise ValueError(f"dependent: {speed} must be given by the independent speeds alone")
        self.rates = {q_dot: sympy.sympify(value).subs(self.dependent) for q_dot, value in self.rates.items()}
        known = {*self.coordinates, *self.speeds, *self.parameters, *self.inputs}
        for name, items in (("parameters", self.parameters), ("inputs", self.inputs)):
            if len(set(items)) != len(items):
                raise ValueError(f"{name}: a symbol is there twice")
        if len(known) != len(self.coordinates) + len(self.speeds) + len(self.parameters) + len(self.inputs):
            raise ValueError("coordinates, speeds, parameters, inputs: a symbol has two meanings")

    # --- kinematics

    def _derivative(self, vector):
        """Time derivative in the inertial frame with q_dot replaced; u_dot of the independent speeds stays."""
        return vector.dt(self.frame).subs(self.rates)

    def _velocity(self, point):
        return point.vel(self.frame).subs(self.dependent).subs(self.rates)

    def _turning(self, frame):
        return frame.ang_vel_in(self.frame).subs(self.dependent).subs(self.rates)

    def velocity_rows(self, point, directions) -> Any:
        """(k, n) sympy matrix G: the components of the point's velocity along k vectors are G u (plus what moves by itself).

        `collision.collide` takes the rows of a contact.
        """
        import sympy

        velocity = self._velocity(point)
        return sympy.Matrix([[velocity.diff(u, self.frame, var_in_dcm=False).dot(d) for u in self.speeds] for d in directions])

    def partial_velocities(self) -> list[list[Any]]:
        """[(speed r) -> v_r] of the mass centre of each body, then of each particle."""
        points = [b.masscenter for b in self.bodies] + [p.point for p in self.particles]
        return [[self._velocity(point).diff(u, self.frame, var_in_dcm=False) for u in self.speeds] for point in points]

    def partial_angular_velocities(self) -> list[list[Any]]:
        """[(speed r) -> omega_r] of each body."""
        return [[self._turning(b.frame).diff(u, self.frame, var_in_dcm=False) for u in self.speeds] for b in self.bodies]

    # --- forces

    def generalised_active_forces(self) -> list[Any]:
        """F_r of all forces and torques."""
        import sympy

        result = [sympy.S.Zero] * len(self.speeds)
        loads = [(vector, self._velocity(point)) for point, vector in self.forces]
        loads += [(vector, self._turning(frame)) for frame, vector in self.torques]
        for vector, velocity in loads:
            for r, u in enumerate(self.speeds):
                result[r] += velocity.diff(u, self.frame, var_in_dcm=False).dot(vector)
        return [sympy.expand(x.subs(self.dependent).subs(self.rates)) for x in result]

    def generalised_inertia_forces(self) -> list[Any]:
        """F_r* of all bodies, particles and rotors; linear in the derivatives of the speeds."""
        import sympy

        t = sympy.Symbol("t")
        result = [sympy.S.Zero] * len(self.speeds)
        linear, angular = self.partial_velocities(), self.partial_angular_velocities()
        centres = [(b.mass, b.masscenter) for b in self.bodies] + [(p.mass, p.point) for p in self.particles]
        for (mass, point), partial in zip(centres, linear, strict=True):
            inertia_force = -mass * self._derivative(self._velocity(point))
            for r, v_r in enumerate(partial):
                result[r] += v_r.dot(inertia_force)
        for body, partial in zip(self.bodies, angular, strict=True):
            omega, dyadic = self._turning(body.frame), body.central_inertia
            alpha = self._derivative(omega)
            torque = -dyadic.dot(alpha) - omega.cross(dyadic.dot(omega))
            for r, omega_r in enumerate(partial):
                result[r] += omega_r.dot(torque)
        for rotor in self.rotors:
            omega, partial = self._turning(self.bodies[rotor.carrier].frame), angular[rotor.carrier]
            spin = sympy.sympify(rotor.spin).subs(self.dependent)
            rate = spin.diff(t).subs(self.rates)
            torque = rotor.inertia * (spin * rotor.axis.cross(omega) - rate * rotor.axis)
            for r, omega_r in enumerate(partial):
                result[r] += omega_r.dot(torque)
            if rotor.spin in list(self.speeds):
                n = list(self.speeds).index(rotor.spin)
                result[n] += -rotor.inertia * (self._derivative(omega).dot(rotor.axis) + rate)
        return [x.subs(self.rates) for x in result]

    def equations(self):
        """(X, Y) with X u_dot = Y, X symmetric for speeds of this kind; sympy matrices."""
        import sympy

        if "equations" not in self._cache:
            t = sympy.Symbol("t")
            accelerations = [u.diff(t) for u in self.speeds]
            place = {a: sympy.Symbol(f"a_{r}") for r, a in enumerate(accelerations)}
            active, inertia = self.generalised_active_forces(), [x.subs(place) for x in self.generalised_inertia_forces()]
            symbols = list(place.values())
            X = sympy.Matrix([[-x.diff(a) for a in symbols] for x in inertia])
            Y = sympy.Matrix([f + x.subs(dict.fromkeys(symbols, 0)) for f, x in zip(active, inertia, strict=True)])
            self._cache["equations"] = X, Y
        return self._cache["equations"]

    def kinetic_energy(self):
        """K of bodies and particles (rotors not counted)."""
        import sympy

        total = sympy.S.Zero
        for body in self.bodies:
            v, omega = self._velocity(body.masscenter), self._turning(body.frame)
            total += body.mass * v.dot(v) / 2 + omega.dot(body.central_inertia.dot(omega)) / 2
        for particle in self.particles:
            v = self._velocity(particle.point)
            total += particle.mass * v.dot(v) / 2
        return total

    # --- C

    def emit_c(self, name: str) -> str:
        """C source of two functions.

        void NAME_accelerate(double t, const double *q, const double *u, const double *p, const double *f, double *q_dot, double *u_dot)
        void NAME_step(double t, double h, double *q, double *u, const double *p, const double *f)     classical RK4, f held

        Only + - * / and sqrt at run time; raises ValueError for a function that has no such form.
        """
        import sympy

        if not name.isidentifier():
            raise ValueError(f"name: {name!r} is not an identifier")
        X, Y = self.equations()
        n, m = len(self.speeds), len(self.coordinates)
        t = sympy.Symbol("t")
        arrays = (("q", self.coordinates), ("u", self.speeds), ("p", self.parameters), ("f", self.inputs))
        plain = {s: sympy.Symbol(f"{array}[{k}]") for array, items in arrays for k, s in enumerate(items)}
        lower = [X[i, j] for i in range(n) for j in range(i + 1)]
        rates = [self.rates[q.diff(t)] for q in self.coordinates]
        outputs = [sympy.sympify(e).subs(plain).rewrite(sympy.tan, sympy.sin) for e in (*lower, *Y, *rates)]
        lines, outputs = _turn_trigonometry(outputs)
        temporaries, reduced = sympy.cse(outputs, symbols=sympy.numbered_symbols("x_"), optimizations="basic")
        text = _printer()
        body = [f"    const double {s} = {text(e)};" for s, e in temporaries]
        strays = set().union(*(e.free_symbols for e in outputs)) - set(plain.values()) - {t} - {s for line in lines for s in line[:2]}
        if strays:
            raise ValueError(f"symbols without meaning: {', '.join(sorted(map(str, strays)))} (parameters or inputs?)")
        triangle = [f"    X[{k}] = {text(e)};" for k, e in enumerate(reduced[: len(lower)])]
        right = [f"    u_dot[{k}] = {text(e)};" for k, e in enumerate(reduced[len(lower): len(lower) + n])]
        kinematics = [f"    q_dot[{k}] = {text(e)};" for k, e in enumerate(reduced[len(lower) + n:])]
        turns = [f"    double {s}, {c}; turn({text(a)}, &{s}, &{c});" for s, c, a in lines]
        parts = {"turns": turns, "body": body, "triangle": triangle, "right": right, "kinematics": kinematics}
        return _TEMPLATE.format(name=name, n=n, m=m, size=len(lower), sincos=SINCOS if turns else "",
                                **{key: "\n".join(lines) for key, lines in parts.items()})

    def compile(self, name: str, directory: str | Path | None = None, compiler: str | None = None) -> CompiledModel:
        """Emit, compile with the system compiler and load. Kept in `directory` under a hash of the source (None: a temporary one)."""
        return CompiledModel(self.emit_c(name), name, len(self.coordinates), len(self.speeds), len(self.parameters), len(self.inputs),
                             directory, compiler)


def _turn_trigonometry(expressions):
    """sin and cos of each distinct argument become two symbols: [(sin symbol, cos symbol, argument)], expressions."""
    import sympy

    arguments = sorted({a.args[0] for e in expressions for a in e.atoms(sympy.sin, sympy.cos)}, key=sympy.default_sort_key)
    lines, replace = [], {}
    for k, argument in enumerate(arguments):
        if argument.atoms(sympy.sin, sympy.cos):
            raise ValueError(f"nested trigonometry: {argument}")
        s, c = sympy.symbols(f"s_{k} c_{k}")
        lines.append((s, c, argument))
        replace |= {sympy.sin(argument): s, sympy.cos(argument): c}
    return lines, [e.xreplace(replace) for e in expressions]


def _printer():
    """Expression to C: integer powers as products, square roots as sqrt, nothing else allowed."""
    from sympy.printing.c import C99CodePrinter

    class Printer(C99CodePrinter):
        def _print_Pow(self, e):
            if e.exp.is_Integer:
                base = self.parenthesize(e.base, 1000)
                product = " * ".join([base] * abs(int(e.exp)))
                return f"({product})" if e.exp > 0 else f"(1.0 / ({product}))"
            if e.exp in (_half(), -_half()):
                root = f"sqrt({self._print(e.base)})"
                return root if e.exp > 0 else f"(1.0 / {root})"
            raise ValueError(f"power {e} has no form in + - * / sqrt")

        def _print_Function(self, e):
            raise ValueError(f"function {e} has no form in + - * / sqrt")

        _print_sin = _print_cos = _print_tan = _print_exp = _print_log = _print_Function

    return Printer().doprint


def _half():
    import sympy

    return sympy.Rational(1, 2)


# the same numbers as rt_kernels/algebra/sincos.pxd, in C
SINCOS = """\
static void turn(double x, double *s, double *c)
{
    const double k_real = x * 0.63661977236758134308;
    const long k = k_real >= 0.0 ? (long)(k_real + 0.5) : (long)(k_real - 0.5);
    const double kd = (double)k;
    const double head = x - kd * 1.57079632673412561417e+00;
    double w = kd * 6.07710050630396597660e-11;
    double r = head - w, tail = (head - r) - w, t;
    w = kd * 2.02226624871116645580e-21;
    t = r; r = t - w; tail += (t - r) - w;
    w = kd * 8.47842766036889956997e-32;
    tail -= w;
    t = r; r = t + tail; tail = (t - r) + tail;
    const double z = r * r;
    const double ps = z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0
        + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0))))))));
    const double sine = r + (r * ps + tail * (1.0 - 0.5 * z));
    const double pc = z * z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 + z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0
        + z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0)))))));
    const double hz = 0.5 * z, one = 1.0 - hz;
    const double cosine = one + (((1.0 - one) - hz) + (pc - r * tail));
    const double value[4] = {sine, cosine, -sine, -cosine};
    *s = value[k & 3];
    *c = value[(k + 1) & 3];
}
"""

_TEMPLATE = """\
/* Kane's equations X u_dot = Y of the model "{name}": {m} coordinates, {n} speeds. Generated; parameters p, inputs f, SI units. */
#include <math.h>

{sincos}
void {name}_accelerate(double t, const double *q, const double *u, const double *p, const double *f, double *q_dot, double *u_dot)
{{
    double X[{size}];                      /* lower triangle by rows */
    (void)t; (void)q; (void)u; (void)p; (void)f;
{turns}
{body}
{triangle}
{right}
{kinematics}
    /* X = L L^T in place, the diagonal holds 1 / L_ii; then two triangular solutions */
    for (int i = 0; i < {n}; ++i) {{
        double *row = X + i * (i + 1) / 2;
        for (int j = 0; j <= i; ++j) {{
            const double *other = X + j * (j + 1) / 2;
            double sum = row[j];
            for (int k = 0; k < j; ++k) sum -= row[k] * other[k];
            row[j] = j == i ? 1.0 / sqrt(sum) : sum * other[j];
        }}
        for (int k = 0; k < i; ++k) u_dot[i] -= row[k] * u_dot[k];
        u_dot[i] *= row[i];
    }}
    for (int i = {n} - 1; i >= 0; --i) {{
        for (int k = i + 1; k < {n}; ++k) u_dot[i] -= X[k * (k + 1) / 2 + i] * u_dot[k];
        u_dot[i] *= X[i * (i + 1) / 2 + i];
    }}
}}

void {name}_step(double t, double h, double *q, double *u, const double *p, const double *f)
{{
    double qs[{m}], us[{n}], dq[{m}], du[{n}], q_sum[{m}], u_sum[{n}];
    static const double part[4] = {{0.0, 0.5, 0.5, 1.0}}, weight[4] = {{1.0, 2.0, 2.0, 1.0}};
    for (int i = 0; i < {m}; ++i) dq[i] = q_sum[i] = 0.0;
    for (int i = 0; i < {n}; ++i) du[i] = u_sum[i] = 0.0;
    for (int stage = 0; stage < 4; ++stage) {{
        for (int i = 0; i < {m}; ++i) qs[i] = q[i] + part[stage] * h * dq[i];
        for (int i = 0; i < {n}; ++i) us[i] = u[i] + part[stage] * h * du[i];
        {name}_accelerate(t + part[stage] * h, qs, us, p, f, dq, du);
        for (int i = 0; i < {m}; ++i) q_sum[i] += weight[stage] * dq[i];
        for (int i = 0; i < {n}; ++i) u_sum[i] += weight[stage] * du[i];
    }}
    for (int i = 0; i < {m}; ++i) q[i] += h / 6.0 * q_sum[i];
    for (int i = 0; i < {n}; ++i) u[i] += h / 6.0 * u_sum[i];
}}
"""

FLAGS = ["-ffp-contract=off", "-fno-math-errno", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Werror"]


def compiled_library(source: str, name: str, directory: str | Path | None, compiler: str | None,
                     flags: list[str]) -> tuple[ctypes.CDLL, Path]:
    """(loaded library, its file) of a C text, compiled if it is not in `directory` under the hash of text, compiler and flags.

    directory None: nothing stays, the file is gone once it is loaded. Raises RuntimeError without a compiler, and with its message when
    it refuses.
    """
    command = compiler or next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if command is None or shutil.which(command) is None:
        raise RuntimeError(f"no C compiler found ({compiler or 'cc, gcc, clang'})")
    if directory is None:
        with tempfile.TemporaryDirectory() as folder:
            return compiled_library(source, name, folder, compiler, flags)
    place = Path(directory).resolve()
    place.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256("\0".join([source, command, *flags, *FLAGS]).encode()).hexdigest()[:16]
    library = place / f"{name}_{mark}.so"
    if not library.exists():
        code = place / f"{name}_{mark}.c"
        code.write_text(source)
        fresh = place / f"{name}_{mark}.tmp.so"
        done = subprocess.run([command, *flags, *FLAGS, str(code), "-o", str(fresh), "-lm"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command} failed on {code}:\n{done.stderr}")
        fresh.replace(library)
    return ctypes.CDLL(str(library)), library


class CompiledModel:
    """A generated C model, compiled and loaded."""

    def __init__(self, source: str, name: str, n_q: int, n_u: int, n_p: int, n_f: int, directory=None, compiler=None):
        self.source, self.sizes = source, {"q": n_q, "u": n_u, "p": n_p, "f": n_f}
        loaded, self.library = compiled_library(source, name, directory, compiler, ["-O3"])
        pointer = ctypes.POINTER(ctypes.c_double)
        self._accelerate, self._step = loaded[f"{name}_accelerate"], loaded[f"{name}_step"]
        self._accelerate.argtypes, self._accelerate.restype = [ctypes.c_double] + [pointer] * 6, None
        self._step.argtypes, self._step.restype = [ctypes.c_double, ctypes.c_double] + [pointer] * 4, None

    def _array(self, name: str, value) -> np.ndarray:
        array = np.array(value if value is not None else np.zeros(self.sizes[name]), dtype=np.float64)
        if array.shape != (self.sizes[name],):
            raise ValueError(f"{name}: shape {array.shape} given, ({self.sizes[name]},) expected")
        return array

    def accelerate(self, q, u, p=None, f=None, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(q_dot, u_dot)."""
        given = [self._array(k, x) for k, x in (("q", q), ("u", u), ("p", p), ("f", f))]
        out = np.empty(self.sizes["q"]), np.empty(self.sizes["u"])
        self._accelerate(t, *(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in (*given, *out)))
        return out

    def run(self, q, u, h: float, steps: int, p=None, f=None, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(q, u) after `steps` RK4 steps of h seconds."""
        given = [self._array(k, x) for k, x in (("q", q), ("u", u), ("p", p), ("f", f))]
        pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in given]
        for k in range(steps):
            self._step(t + k * h, h, *pointers)
        return given[0], given[1]
