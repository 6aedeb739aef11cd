"""The command line from the outside: exit codes, `--json`, and that no exception gets out."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hil_server import cli
from hil_server.errors import DeviceError, TripError, VerdictError
from hil_server.terminal.help import GROUPS


def raising(error):
    def body(args):
        raise error

    return body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (lambda args: None, 0),
        (lambda args: 1, 1),
        (lambda args: {"exit_code": 3}, 3),
        (lambda args: {"anything": 1}, 0),
        (raising(VerdictError("diverges")), 1),
        (raising(TripError(["force_limit"], 12)), 3),
        (raising(DeviceError("no drive")), 4),
        (raising(KeyboardInterrupt()), 130),
    ],
)
def test_exit_code_follows_the_outcome(verb, body, code, capsys):
    verb(body)
    assert cli.main(["probe"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_unforeseen_exception_is_kept_in_a_file(verb, capsys):
    verb(raising(ZeroDivisionError("why")))
    assert cli.main(["probe"]) == 5
    reported = capsys.readouterr().err
    assert "ZeroDivisionError: why" in reported and "Traceback" not in reported
    file = next(word for word in reported.split() if word.startswith("/") and word.rstrip(";").endswith(".txt")).rstrip(";")
    assert "Traceback" in Path(file).read_text()


def test_json_holds_the_summary_in_plain_values(verb, tmp_path):
    import numpy as np

    verb(lambda args: {"exit_code": 0, "peak": np.float64(2.5), "row": np.arange(3), "none": float("nan"), "log": tmp_path})
    assert cli.main(["probe", "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "exit_code": 0, "peak": 2.5, "row": [0, 1, 2], "none": None, "log": str(tmp_path),
    }  # fmt: skip


@pytest.mark.parametrize("option", [["--json", "{}"], ["--json={}"]])
def test_json_holds_the_error_too(verb, tmp_path, option):
    verb(raising(TripError(["force_limit"], 12)))
    file = tmp_path / "out.json"
    assert cli.main(["probe", *[o.format(file) for o in option]]) == 3
    assert json.loads(file.read_text()) == {"exit_code": 3, "error": "TripError", "faults": ["force_limit"]}


def test_json_that_cannot_be_written(verb, capsys):
    verb(lambda args: {"exit_code": 0})
    assert cli.main(["probe", "--json", "/proc/nowhere/x.json"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["ghost"], ["list", "ghost"], ["list", "drives", "ghost"], ["list", "--ghost"]])
def test_usage_errors(arguments, capsys):
    assert cli.main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_help_and_version(capsys):
    assert cli.main(["--help"]) == 0
    assert "exit codes" in capsys.readouterr().out
    assert cli.main(["--version"]) == 0
    assert "hil-server" in capsys.readouterr().out


def test_help_imports_nothing_heavy():
    code = "import sys; from hil_server.cli import main; main(['--help']); print(sorted(m for m in sys.modules if m.split('.')[0] in %r))"
    # every verb is asked for its line
    heavy = ["numpy", "zmq", "rich", "mcap", "scipy", "matplotlib", "importlib.metadata"]
    out = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


def test_every_offered_verb_has_its_help(capsys):
    for name in cli.offered():
        assert cli.main([name, "--help"]) == 0
        assert "--json" in capsys.readouterr().out


def test_the_help_has_the_verbs_in_groups(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    groups = [{line.split()[0] for line in text.partition(f"\n{group}:\n")[2].partition("\n\n")[0].splitlines()} for group in GROUPS]
    assert [{name for name, module in cli.offered().items() if module.GROUP == group} <= words
            for group, words in zip(GROUPS, groups, strict=True)] == [True] * len(GROUPS)  # fmt: skip


@pytest.mark.parametrize("name", cli.offered())
def test_the_examples_of_a_help_are_command_lines(name, capsys):
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out.partition("\nexamples:\n")[2]
    for command, what in cli.offered()[name].EXAMPLES:
        assert command in text and what in text
        words = shlex.split(command.partition("$(")[2].rstrip(')"') or command)
        assert words[:2] == ["hil-server", name] and cli._parsed(words[1:]).run is cli.offered()[name].run


def test_list_of_roles_is_machine_readable(tmp_path):
    assert cli.main(["list", "--json", str(tmp_path / "roles.json")]) == 0
    roles = json.loads((tmp_path / "roles.json").read_text())["roles"]
    assert "phase_lead" in roles["compensation"]


def test_manual_page_of_a_part(capsys):
    assert cli.main(["list", "compensation", "phase_lead"]) == 0
    page = capsys.readouterr().out
    assert "PhaseLead(" not in page and "lead_factor" in page and "0 ... 2" in page
    assert cli.main(["list", "compensation"]) == 0
    assert "NoCompensator(" not in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_usage_and_no_folder_is_left_behind(tmp_path, capsys):
    """A file where --out wants a folder: no right to write looks the same to root."""
    (tmp_path / "taken").write_text("a file")
    for arguments in (["simulate", "--no-report", "--quiet", "--out", str(tmp_path / "taken" / "run")],
                      ["campaign", "idss_campaign.toml", "--cases", "1", "--out", str(tmp_path / "taken" / "run")]):  # fmt: skip
        if arguments[0] == "campaign":
            arguments[1] = str(Path(cli.__file__).parents[1] / "stand_configs" / "programmes" / arguments[1])
        assert cli.main(arguments) == 2
        assert "taken" in capsys.readouterr().err
    # refused in the assembly, behind the checks of the file
    part = "initial_conditions.lateral_y_m=3.0"  # the two units touch nowhere
    assert cli.main(["simulate", "--quiet", "--out", str(tmp_path / "refused"), "--set", part]) == 2
    assert not (tmp_path / "refused").exists()
    capsys.readouterr()


def test_an_error_of_a_file_is_no_internal_error(verb, capsys):
    verb(raising(PermissionError(13, "Permission denied", "/somewhere/report.html")))
    assert cli.main(["probe"]) == 2
    assert "/somewhere/report.html: Permission denied" in capsys.readouterr().err


def test_a_verb_is_one_file_and_takes_its_place_in_the_help(verb, capsys):
    verb(lambda args: 0)
    assert cli.main(["--help"]) == 0
    named = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ") and line[2] != " "]
    listed = [name for name in cli.offered() if name in named]
    assert listed[0] == "probe" and listed[1:4] == ["run", "fly", "simulate"]
    orders = [module.ORDER for module in cli.offered().values()]
    assert orders == sorted(set(orders)), "two verbs want one place"


def test_every_module_of_the_verbs_has_what_a_verb_has():
    for name, module in cli.offered().items():
        assert isinstance(module.ORDER, int) and module.SUMMARY[0].islower() and not module.SUMMARY.endswith("."), name
        assert module.GROUP in GROUPS and module.EXAMPLES, name
        assert callable(module.add_arguments) and callable(module.run), name


def test_help_of_the_prediction_loads_no_scipy():
    code = "import sys; from hil_server.cli import main; main(['predict', '--help']); print({'scipy', 'numpy'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "set()"
