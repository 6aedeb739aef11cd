"""The verbs that read a log, as they are typed."""

import json

import pyarrow.parquet as pq

from hil_server.cli import main


def test_report(trip, tmp_path, capsys):
    assert main(["report", str(trip), "--out", str(tmp_path), "--json", str(tmp_path / "r.json")]) == 0
    figures = json.loads((tmp_path / "r.json").read_text())
    assert figures["report"] == str(tmp_path / "trip.html") and figures["run_exit_code"] == 3
    assert "force_limit" in capsys.readouterr().out and (tmp_path / "trip.html").exists()


def test_export(bounce, tmp_path, capsys):
    target = tmp_path / "run.parquet"
    assert main(["export", str(bounce), "--format", "parquet", "--out", str(target), "--channels", "F_T,phase"]) == 0
    assert pq.read_table(target).num_columns == 10 and str(target) in capsys.readouterr().out


def test_wrong_requests(bounce, tmp_path, capsys):
    assert main(["export", str(bounce), "--format", "xlsx"]) == 2
    assert main(["export", str(tmp_path / "none.mcap")]) == 2
    assert main(["report", str(tmp_path / "none.mcap")]) == 2
    errors = capsys.readouterr().err
    assert (
        "--format/--to: invalid choice: 'xlsx'" in errors
        and errors.count("none.mcap: cannot be read: No such file") == 2
        and "Traceback" not in errors
    )
