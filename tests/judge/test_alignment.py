"""How the units stood to each other at the end of a retraction: exit code, summary, and the words for people."""

import json

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.judge.alignment import alignment_of
from hil_server.judge.rehearsal import is_rehearsal
from hil_server.judge.run import Run
from hil_server.log.reader import read_log

RING = str(SHIPPED / "programmes" / "virtual_docking_ring.toml")


def simulate(tmp_path, capsys, *settings):
    options = [word for setting in settings for word in ("--set", setting)]
    code = main(["simulate", RING, "--quiet", "--out", str(tmp_path / "run"), "--json", str(tmp_path / "reported.json"), *options])
    page = (tmp_path / "run" / "run.html").read_text()
    return code, json.loads((tmp_path / "reported.json").read_text()), capsys.readouterr().out, page


def test_a_retraction_without_its_end_is_a_negative_verdict(tmp_path, capsys):
    """The time is up ten seconds after the drive has started: 14 cm are left. A configuration that cannot be read says nothing of it."""
    code, reported, text, page = simulate(tmp_path, capsys, "guidance.contact_max_s=50.0")
    assert code == reported["exit_code"] == 1 and reported["end"] == "not_aligned" and reported["captured"]
    found = reported["alignment"]
    assert found["missing"][0] == "planes_together" and not found["aligned"]
    assert "NOT ALIGNED: planes_together" in text and f"tilt {found['tilt_deg']:.2f} deg" in text
    assert "not aligned: planes_together" in page
    log = read_log(tmp_path / "run" / "run.mcap")
    for text in ("[guidance", "guidance = 3", '[guidance]\npart = "unknown"'):
        log.header.configuration["configuration.toml"] = text
        assert alignment_of(Run(log)) is None and not is_rehearsal(Run(log))


def test_planes_together_but_beyond_stated_tolerances(tmp_path, capsys):
    """Of a ring unit that is given without planes and pins: what holds it are the springs of its legs."""
    shipped = SHIPPED / "mechanisms" / "ring.toml"
    planes = [line.split()[0] for line in shipped.read_text().split("# interface:")[1].splitlines() if " = " in line]
    without = ", ".join(f'"{key}"' for key in planes)
    unit = tmp_path / "ring_without_planes.toml"
    unit.write_text(f'extends = "{shipped}"\nwithout = [{without}]\n')
    limits = ("guidance.complete_tilt_deg=0.01", "guidance.complete_offset_m=0.0001", f"test.mechanism={unit}")
    code, reported, text, _ = simulate(tmp_path, capsys, "guidance.contact_max_s=95.0", *limits)
    missing = ["tilt_deg above 0.01", "offset_m above 0.0001"]
    assert code == 1 and reported["end"] == "not_aligned" and reported["alignment"]["missing"] == missing
    assert f"NOT ALIGNED: {', '.join(missing)}" in text


def test_a_completed_docking_says_how_well(tmp_path, capsys):
    code, reported, text, page = simulate(tmp_path, capsys)
    assert code == 0 and reported["end"] == "complete"
    found = reported["alignment"]
    assert found["aligned"] and found["missing"] == [] and found["limits"] == {"tilt_deg": 0.1, "offset_m": 0.001}
    assert 0.0 < found["tilt_deg"] <= 0.1 and 0.0 < found["offset_m"] <= 0.001 and abs(found["roll_deg"]) < 0.1
    assert "together and aligned" in text and "together and aligned" in page


def test_a_run_without_retraction_has_no_alignment(tmp_path, capsys):
    code, reported, text, _ = simulate(tmp_path, capsys, "guidance.contact_max_s=2.0")
    assert code == 0 and reported["end"] == "time" and reported["alignment"] is None and "units " not in text


def test_what_completes_without_docking_has_no_units_to_align(tmp_path, capsys):
    """The identification's motion ends as `complete`, too."""
    identify = str(SHIPPED / "programmes" / "identify.toml")
    options = ["--quiet", "--no-report", "--out", str(tmp_path / "run"), "--json", str(tmp_path / "reported.json")]
    code = main(["simulate", identify, *options, "--set", "test.rate_hz=500"])
    reported = json.loads((tmp_path / "reported.json").read_text())
    assert code == 0 and reported["end"] == "complete" and reported["alignment"] is None and "ALIGNED" not in capsys.readouterr().out
