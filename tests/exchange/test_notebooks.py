"""The notebooks of the guide run from their first cell to the last, on logs made here, and find what is in them."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from hil_server import open_log

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient", reason="runs the notebooks")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas", reason="optional group analyst")
pytest.importorskip("xarray", reason="optional group analyst")

from hil_server.campaign import execution  # noqa: E402
from hil_server.campaign.plan import load_plan  # noqa: E402
from hil_server.campaign.worst import rerun  # noqa: E402
from hil_server.config import load_test  # noqa: E402
from hil_server.run.session import Options, simulate  # noqa: E402

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
CAMPAIGN = """
[campaign]
name = "small"
test = "docking.toml"
cases = 6
seed = 7
sampling = "latin_hypercube"
chunk = 6
worst = 1
[campaign.set]
guidance = { speed_max_m_s = 0.4, acceleration_max_m_s2 = 1.0, contact_max_s = 2.0 }
"test.duration_max_s" = 6.0
"initial_conditions.velocity_z_m_s" = 0.0
[box]
lateral_y_m = [-0.05, 0.05]
lateral_z_m = [-0.05, 0.05]
velocity_x_m_s = [0.08, 0.12]
"""
OPERATOR = """0, 0, 0, 0, 0, 0, 0, 0, 1
0.005, 0, 1, 0, 0, 0, 0, 0, 1
"""
QUICK = ("guidance.speed_max_m_s=0.5", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05",
         "guidance.start_distance_m=0.08", "guidance.after_capture_s=1.0", "commands.part=script")  # fmt: skip


def test_outputs_are_stripped():
    found = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert [file.stem for file in found] == ["campaign", "docking", "rehearsal"]
    for file in found:
        for cell in nbformat.read(file, 4).cells:
            assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None), file.name


def executed(name, folder, **parameters):
    """Runs a notebook with these parameters; returns what it printed and the texts of its results."""
    book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    (cell,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
    cell.source = "\n".join(f"{key} = {value!r}" for key, value in parameters.items())
    nbclient.NotebookClient(book, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2, "pictures are drawn"
    return "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


def simulated(folder, *settings, base=None):
    return simulate(load_test(base, settings), Options(out=str(folder), quiet=True, report=False))["log"]


@pytest.mark.filterwarnings("ignore")  # of the libraries that run a notebook
def test_docking(tmp_path):
    log = simulated(tmp_path / "run", "guidance.settle_s=0.05", "test.duration_max_s=8.0")
    reported = executed("docking", tmp_path, LOG=log)
    assert "the log is whole" in reported and "contact" in reported
    share = float(reported.partition("largest difference ")[2].partition(" %")[0])
    assert share < 2.0, "the force does not explain the motion"
    (text,) = re.findall(r"```python\n(.*?)```", (NOTEBOOKS.parent / "results.md").read_text(), re.DOTALL)
    printed, named = io.StringIO(), '"runs/try/run.mcap"'
    assert named in text
    with contextlib.redirect_stdout(printed):
        exec(compile(text.replace(named, repr(log)), "docs/results.md", "exec"), {})
    assert "first_contact" in printed.getvalue() and printed.getvalue().endswith("N.m\nwhole\n")


@pytest.mark.filterwarnings("ignore")
def test_rehearsal(tmp_path):
    (tmp_path / "operator.csv").write_text(OPERATOR)
    still = [f"initial_conditions.{key}=0.0" for key in ("lateral_z_m", "yaw_deg", "pitch_deg", "roll_deg")]
    logs = [
        simulated(tmp_path / name, *QUICK, *still, f"commands.file={tmp_path / 'operator.csv'}", f"initial_conditions.lateral_y_m={miss}",
                  f"test.operator={name}", base="programmes/berthing_operator.toml")
        for name, miss in (("ada", 0.02), ("blind", 0.04))
    ]  # fmt: skip
    reported = executed("rehearsal", tmp_path, LOGS=logs)
    peaks = {Path(log).parent.name: np.linalg.norm(open_log(log).phase("contact")["F_T"].values[:, :3], axis=1).max() for log in logs}
    assert f"the gentler attempt: {min(peaks, key=peaks.get)}" in reported and "overshoots" in reported


@pytest.mark.filterwarnings("ignore")
def test_campaign(tmp_path):
    (tmp_path / "small_campaign.toml").write_text(CAMPAIGN)
    plan, folder = load_plan(tmp_path / "small_campaign.toml"), tmp_path / "out"
    execution.run(plan, folder, workers=1)
    results = execution.read_results(folder).to_pandas()
    worst = int(results.number[results.peak_fx_n.argmax()])
    rerun(plan, [worst], plan.conditions(), folder)
    reported = executed("campaign", folder.parent, FOLDER=str(folder))
    captured = int(results.captured.sum())
    peak = f"{results.peak_fx_n.max():.0f} N"
    assert f"{captured} of 6 captured" in reported and f"case {worst}: {peak}" in reported and f"table: {peak}" in reported
