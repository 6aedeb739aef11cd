"""The load cases of the papers as whole test files, simulated: `stand_configs/programmes/load_case_*.toml`."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tools.paper_rows.page import Context, compared, prose


def gyrostat(context: Context) -> list[str]:
    from tests.system import test_load_cases

    with TemporaryDirectory() as folder:
        found, expected, _ = test_load_cases.gyrostat(Path(folder))
    row = context.compare("turning of the transverse rate, rad/s", expected, found, 1e-6, ".7f")
    return [*prose("""
            † `load_case_gyrostat.toml`, the spinning gyrostat flown for 30 s:"""), *compared([row])]


def dumbbell(context: Context) -> list[str]:
    from tests.system import test_load_cases

    with TemporaryDirectory() as folder:
        tip = test_load_cases.dumbbell(Path(folder))
    peaks = [float(tip[np.abs(tip[:, axis]).argmax(), axis]) for axis in (1, 2)]
    rows = [context.compare(f"peak of {name}, m", chain, here, 0.02, ".3f")
            for name, chain, here in zip(("y₁", "z₁"), test_load_cases.CHAIN_PEAKS, peaks, strict=True)]
    return [*prose("""
            † `load_case_dumbbell.toml` (step 4 ms) against the chain:"""), *compared(rows)]


def chain(context: Context) -> list[str]:
    from tests.system import test_load_cases

    with TemporaryDirectory() as folder:
        angles, accelerations = 100.0 * test_load_cases.chain(Path(folder)).max(axis=1)
    rows = [context.holds(f"{what} of joints 1, 3, 6, % of the largest", "", bool(apart < 1.0), f"{apart:.4f}")
            for what, apart in (("angles", angles), ("accelerations", accelerations))]
    return [*prose("""
            † `load_case_chain.toml` (second order, 0.5 ms, modes damped 2 %) against points of mass under DOP853 over 1 s, largest
            difference:"""), *compared(rows)]
