"""The shipped load cases of the papers, simulated; their figures out of the log, and those that docs/papers.md shows."""

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, load_test
from hil_server.log.reader import read_log
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.layout import CODES, SAMPLE_DTYPE

MOTION = CODES["motion"]
PAGE = SHIPPED.parent / "docs" / "papers.md"
CHAIN_PEAKS = (-1.044, 1.056)  # m, y and z: the chain of rigid segments in Pinocchio, docs/papers.md, beside figure 5


def on_page(block):
    """The numbers in brackets of the block of docs/papers.md that shows these flights."""
    text = PAGE.read_text()
    shown = text[text.index(f"<!-- {block} -->") : text.index(f"<!-- /{block} -->")]
    return [float(number) for number in re.findall(r"\((-?[\d.]+)", shown)]


def flown(name, folder):
    """(log, records from the closing of the loop on, s since then)."""
    summary = simulate(load_test(SHIPPED / "programmes" / f"load_case_{name}.toml"), Options(out=str(folder), quiet=True, report=False))
    log = read_log(summary["log"])
    flight = np.flatnonzero((log.records["motion"] == MOTION["close_loop"]) | (log.records["motion"] == MOTION["free"]))
    records = log.records[flight]
    assert summary["exit_code"] == 0 and not summary["faults"] and not records["contact"].any() and not summary["prediction"]
    return log, records, 1e-9 * (records["time_ns"] - records["time_ns"][0])


def dumbbell(folder):
    """Displacement of the truss's end seen from the main body, axes of that, (n, 3) m, over 100 s."""
    log, flight, t = flown("dumbbell", folder)
    assert t[-1] >= 99.99
    # the bending is in no channel: the part once more, on the inputs of the log
    part = replay.build(log)[0].stages["dynamics"]
    tree, tip, sample = part.trees[0], [], np.zeros(1, SAMPLE_DTYPE)
    for name in SAMPLE_DTYPE.names:
        sample[name] = flight[:1][name]
    main_body, reactor = tree.index("main_body"), tree.index("reactor")
    for k in range(len(flight)):
        sample["time_ns"], sample["motion"] = flight["time_ns"][k], flight["motion"][k]
        part.step(sample)
        if k % 25 == 0:
            R, p = tree.poses(part.coordinates(0)[0])
            tip.append(R[main_body].T @ (p[reactor] - p[main_body]) - [30.0, 0.0, 0.0])
    np.testing.assert_array_equal(sample["X_NC"][0], flight["X_NC"][-1])
    return np.array(tip)


def gyrostat(folder):
    """Mean rate at which the transverse rate turns, rad/s: found, and that of the closed form; change of the transverse rate's size."""
    _, r, t = flown("gyrostat", folder)
    rate = Rotation.from_quat(r["X_NC"][:, 3:]).inv().apply(r["V_NC"][:, 3:])
    A, C, transverse, axial, spin = 40.0, 25.0, 0.03, 0.05, 300.0
    assert rate[0, 0] == pytest.approx(0.15, rel=1e-4) and t[-1] > 25.0
    angle = np.unwrap(np.arctan2(rate[:, 2], rate[:, 1]))
    expected = ((C + axial - A - transverse) * rate[0, 0] + axial * spin) / (A + transverse)
    return (angle[-1] - angle[0]) / t[-1], expected, np.ptp(np.hypot(rate[:, 1], rate[:, 2])) / np.hypot(*rate[0, 1:])


def test_the_dumbbell_bends_as_the_chain_of_segments(tmp_path):
    """Table 4 of Wang et al. 2020: torques on the main body of the whole craft for 100 s; largest displacements of the truss's end."""
    tip = dumbbell(tmp_path)
    peaks = [tip[np.abs(tip[:, axis]).argmax(), axis] for axis in (1, 2)]
    np.testing.assert_allclose(peaks, CHAIN_PEAKS, rtol=0.02)
    assert np.abs(tip[:, 0]).max() < 0.05
    np.testing.assert_allclose(peaks, on_page("003.flown"), atol=6e-4)


def test_the_gyrostat_nods_as_its_closed_form(tmp_path):
    """Kane 1981, figure 2: the transverse rate keeps its size and turns at ((C + J - A - I) w + J W) / (A + I)."""
    found, expected, change = gyrostat(tmp_path)
    assert found == pytest.approx(expected, rel=1e-6)
    assert change < 1e-8
    np.testing.assert_allclose(found, on_page("002.flown"), rtol=1e-6)


# ------------------------------------------------------------------------------------------------- chain of six flexible links


class Chain:
    """Six links of Tian et al. 2010 as thirty points of mass: places as functions of three joints and eighteen modal coordinates, their
    derivatives by complex steps, M = J^T m J. Nothing of the library's."""

    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    rest = np.array([0.0, 0.4, -0.8, 0.3, 0.6, 0.2])
    free = [0, 2, 5]
    powers = ((1, 2), (1, 3), (2, 2))  # axis, power of xi of each shape

    def __init__(self):
        xi, stiffness, ratio = np.linspace(0.0, 1.0, 5), 20.0, 0.02
        self.mass = np.tile([0.25, 0.5, 0.5, 0.5, 0.25], 6)
        self.phi, self.psi, self.K = np.zeros((5, 3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
        for a, (axis, n) in enumerate(self.powers):
            self.phi[:, axis, a] = xi**n
            self.psi[3 - axis, a] = n if axis == 1 else -n
            for b, (other, k) in enumerate(self.powers):
                if axis == other:
                    self.K[a, b] = stiffness * n * (n - 1) * k * (k - 1) / (n + k - 3)
        M = np.einsum("p,pxa,pxb->ab", self.mass[:5], self.phi, self.phi)
        squares, shapes = eigh(self.K, M)
        self.C = M @ shapes @ np.diag(2.0 * ratio * np.sqrt(squares)) @ shapes.T @ M
        self.xi = np.stack([xi, 0 * xi, 0 * xi], -1)

    @staticmethod
    def turned(theta):
        """Rotation matrices of rotation vectors, analytic in complex numbers."""
        x = (theta**2).sum(-1)[..., None, None] + 1e-12
        p = np.sqrt(x)
        S = np.zeros((*theta.shape, 3), theta.dtype)
        S[..., 2, 1], S[..., 0, 2], S[..., 1, 0] = theta[..., 0], theta[..., 1], theta[..., 2]
        S -= np.swapaxes(S, -1, -2)
        return np.eye(3) + np.sin(p) / p * S + (1.0 - np.cos(p)) / x * (S @ S)

    def places(self, y):
        """(n, 21) -> (n, 30, 3)."""
        q = np.broadcast_to(self.rest.astype(y.dtype), (len(y), 6)).copy()
        q[:, self.free] = y[:, :3]
        eta = y[:, 3:].reshape(len(y), 6, 3)
        joint, tip = self.turned(q[..., None] * self.axes), self.turned(eta @ self.psi.T)
        bent = np.einsum("pxa,nka->nkpx", self.phi, eta) + self.xi
        R, p, found = np.eye(3), np.zeros((len(y), 1, 3)), []
        for k in range(6):
            R = R @ joint[:, k]
            found.append(p + bent[:, k] @ np.swapaxes(R, -1, -2))
            p, R = found[-1][:, -1:], R @ tip[:, k]
        return np.concatenate(found, 1)

    def rate(self, t, y):
        q, v, small, d = y[:21], y[21:], 1e-30, 1e-4
        steps = np.concatenate([q + 1j * small * np.eye(21), [q + d * v + 1j * small * v, q - d * v + 1j * small * v]])
        moved = self.places(steps).imag / small
        J, bias = moved[:21].reshape(21, -1).T, ((moved[21] - moved[22]) / (2 * d)).ravel()
        mJ = np.repeat(self.mass, 3)[:, None] * J
        force = -mJ.T @ bias
        force[:3] += [-3.0 * np.sin(np.pi * t / 3.0), 0.3 * np.cos(np.pi * t / 6.0), 0.3 * np.cos(np.pi * t / 6.0)]
        force[3:] -= (q[3:].reshape(6, 3) @ self.K + v[3:].reshape(6, 3) @ self.C).ravel()
        return np.concatenate([v, np.linalg.solve(J.T @ mJ, force)])


def chain(folder):
    """Joints 1, 3 and 6 over a second: largest differences from the points of mass, of the angles over the largest way, of the
    accelerations over the largest one; (2, 3)."""
    log, records, t = flown("chain", folder)
    first, model, h, last = int(np.flatnonzero(log.records["tick"] == records["tick"][0])[0]), Chain(), t[1], 2000
    rates, angles = (log.aux(f"joint_{what}")[first : first + last + 1, Chain.free] for what in ("rate", "position"))
    start = np.concatenate([Chain.rest[Chain.free], np.zeros(39)])
    # the first accelerations of docs/papers.md
    np.testing.assert_allclose(model.rate(0.0, start)[21:24], [0.22293717, 5.10680410, 139.95167426], rtol=1e-7)
    middle = t[:last:20] + 0.5 * h
    times = np.unique(np.concatenate([middle, t[: last + 1 : 20]]))
    solved = solve_ivp(model.rate, (0.0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-6, atol=1e-8).y
    wanted = solved[:3, np.isin(times, t[: last + 1 : 20])].T
    moved = np.abs(wanted - wanted[0]).max(axis=0)
    assert (moved > 0.05).all()
    apart = np.abs(angles[::20] - wanted).max(axis=0) / moved
    # a step's change of the rate is the acceleration in its middle
    wanted = np.array([model.rate(time, solved[:, times == time][:, 0])[21:24] for time in middle])
    found = np.diff(rates, axis=0)[::20] / h
    return np.array([apart, np.abs(found - wanted).max(axis=0) / np.abs(wanted).max(axis=0)])


def test_the_chain_moves_as_its_points_of_mass(tmp_path):
    """Table 1 of Tian et al. 2010 with a step of 0.5 ms and 2 % of damping in the links' modes: angles and accelerations of joints 1, 3 and
    6 over a second within 1 %. The torques' sines begin with the closing of the loop."""
    apart = chain(tmp_path)
    assert (apart < 0.01).all()
    assert apart.max(axis=1) * 100.0 == pytest.approx(on_page("004.flown"), rel=0.3)
