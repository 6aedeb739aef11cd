"""Names that come out of files become parts of paths: none leads out of its folder."""

import pytest

from hil_server.run.folder import as_file_name, new_log

HOSTILE = ("../../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\0b", "%s%n%Y", "x" * 5000, "~root", "-rf", "a\nb", "\u202egnp.exe",
           "con: <>|?*")  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_one_part_of_a_path(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = as_file_name(name)
    assert 0 < len(found) <= 100 and "/" not in found and found[0] not in ".-" and found.isprintable()
    log = new_log(None, name)
    assert log.parts[0] == "runs" and len(log.parts) == 3 and ".." not in log.parts and "\0" not in str(log)
    log.parent.mkdir(parents=True)
    assert log.resolve().is_relative_to(tmp_path / "runs")


def test_usual_names_stay():
    for name in ("docking", "probe_cone-2.1", "RT-07", "Ōsaka"):
        assert as_file_name(name) == name
