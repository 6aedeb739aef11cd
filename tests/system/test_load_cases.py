"""The shipped load cases of the papers as their user flies them: `hil-server simulate`, then the figures out of the log."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.cli import main
from hil_server.log.reader import read_log
from hil_server.run import replay
from rt_kernels.layout import CODES, SAMPLE_DTYPE

MOTION = CODES["motion"]
CHAIN_PEAKS = (-1.044, 1.056)  # m, y and z: the chain of rigid segments in Pinocchio, docs/papers.md, beside figure 5


def flown(name, folder):
    """(log, records from the closing of the loop on, s since then)."""
    assert main(["simulate", f"load_case_{name}", "--out", str(folder)]) == 0
    log = read_log(folder / "run.mcap")
    flight = np.flatnonzero((log.records["motion"] == MOTION["close_loop"]) | (log.records["motion"] == MOTION["free"]))
    records = log.records[flight]
    assert not log.records["faults"][-1] and not records["contact"].any()
    return log, records, 1e-9 * (records["time_ns"] - records["time_ns"][0])


def test_the_dumbbell_bends_as_the_chain_of_segments(tmp_path):
    """Table 4 of Wang et al. 2020: torques on the main body of the whole craft for 100 s; largest displacements of the truss's end."""
    log, flight, t = flown("dumbbell", tmp_path)
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
    tip = np.array(tip)
    peaks = [tip[np.abs(tip[:, axis]).argmax(), axis] for axis in (1, 2)]
    np.testing.assert_allclose(peaks, CHAIN_PEAKS, rtol=0.02)
    assert np.abs(tip[:, 0]).max() < 0.05


def test_the_gyrostat_nods_as_its_closed_form(tmp_path):
    """Kane 1981, figure 2: the transverse rate keeps its size and turns at ((C + J - A - I) w + J W) / (A + I)."""
    _, r, t = flown("gyrostat", tmp_path)
    rate = Rotation.from_quat(r["X_NC"][:, 3:]).inv().apply(r["V_NC"][:, 3:])
    A, C, transverse, axial, spin = 40.0, 25.0, 0.03, 0.05, 300.0
    assert rate[0, 0] == pytest.approx(0.15, rel=1e-4)
    expected = ((C + axial - A - transverse) * rate[0, 0] + axial * spin) / (A + transverse)
    angle = np.unwrap(np.arctan2(rate[:, 2], rate[:, 1]))
    assert t[-1] > 50.0 and angle[-1] > 15.0
    assert (angle[-1] - angle[0]) / t[-1] == pytest.approx(expected, rel=1e-6)
    size = np.hypot(rate[:, 1], rate[:, 2])
    assert np.ptp(size) < 1e-8 * size[0]
