"""What a stranger's log says is text at the terminal, too: it cannot steer it."""

import pytest

from hil_server import cli
from hil_server.terminal.outcome import print_requirements
from hil_server.terminal.plain import plain

STEERS = "\x1b]0;another title\x07\x1b[2J\u202e\x9b31m"


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_a_log_cannot_steer_the_terminal(make_bounce, write_run, capsys, verb):
    path = write_run(make_bounce(), run_id=STEERS, notes=[STEERS], synthetic=STEERS, host={STEERS: STEERS}, devices={STEERS: STEERS})
    assert cli.main([verb, *[str(path)] * (1 + (verb == "compare"))]) == 0
    shown = "".join(capsys.readouterr())
    assert "another title" in shown and not set(shown) & set(STEERS) - set(plain(STEERS))


def test_a_requirement_has_colours_of_ours_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    row = {"name": STEERS, "verdict": "met", "value": 1.0, "limit": 2.0, "margin": 1.0, "unit": STEERS, "time_s": 1.0, "phase": "contact"}
    print_requirements([row])
    shown = capsys.readouterr().out
    assert "\x1b[32mmet" in shown and "\x07" not in shown and "\x1b]" not in shown and "\x1b[2J" not in shown


def test_lines_stay():
    assert plain("a\tb\r\nsize é 力") == "a\tb\r\nsize é 力"
