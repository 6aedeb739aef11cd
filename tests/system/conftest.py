"""A verb that only the tests have."""

import sys

import pytest

from hil_server import cli, verbs


@pytest.fixture
def verb(monkeypatch, tmp_path):
    """A verb `probe`, one file, whose body is the given function."""
    (tmp_path / "probe.py").write_text(
        'GROUP, ORDER, SUMMARY, REMAINS = "run a test", 5, "a verb of the tests", "all of it"\n'
        'EXAMPLES = (("hil-server probe one two", "two words"),)\n\n\n'
        'def add_arguments(parser):\n    parser.add_argument("words", nargs="*")\n\n\n'
        "def run(args):\n    return body(args)\n"
    )
    monkeypatch.setattr(verbs, "__path__", [*verbs.__path__, str(tmp_path)])

    def register(body):
        cli.offered()["probe"].body = body

    yield register
    sys.modules.pop("hil_server.verbs.probe", None)
