"""A short docking that was simulated, and its file for viewers."""

import pytest

from hil_server.config import load_test
from hil_server.run.session import Options, simulate


@pytest.fixture(scope="session")
def docking(tmp_path_factory):
    """The log of a docking from shortly before its first contact."""
    folder = tmp_path_factory.mktemp("docking")
    short = ("guidance.settle_s=0.05", "test.duration_max_s=7.0", "telemetry.log_every=5")
    return simulate(load_test(None, short), Options(out=str(folder / "run"), quiet=True, report=False))["log"]


@pytest.fixture(scope="session")
def shown(docking, tmp_path_factory):
    """The same for viewers."""
    pytest.importorskip("foxglove", reason="optional group foxglove")
    from hil_server.viewers.foxglove_file import write

    return write(docking, tmp_path_factory.mktemp("shown") / "run.foxglove.mcap", scene_hz=10.0)
