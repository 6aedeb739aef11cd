"""A simulation's log with every n-th tick: it says the same of the run, and it still replays to the last bit."""

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED, TestConfig, load_test
from hil_server.errors import ConfigurationError
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.line import assembly
from hil_server.line.free_run import STATES
from hil_server.log.reader import read_log
from hil_server.log.record import aux_channels, record_dtype
from hil_server.log.writer import LogWriter
from hil_server.run import branch, replay
from hil_server.run.progress import Stopper
from hil_server.run.session import Options, run_live, simulate
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.parameters import Aux
from tests.system.test_replay import rewrite

PROGRAMME = SHIPPED / "programmes" / "virtual_docking.toml"
SHORT = ("guidance.contact_max_s=2.0", "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0")


def run(folder, every):
    config = load_test(PROGRAMME, [*SHORT, f"telemetry.log_every={every}"])
    return simulate(config, Options(out=str(folder), quiet=True, report=False))["log"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinned")
    return run(folder / "whole", 1), run(folder / "thin", 50)


def test_thinned_log_holds_what_counts(logs):
    whole, thin = (read_log(path) for path in logs)
    assert thin.ticks < 0.2 * whole.ticks and thin.complete
    assert "one tick in 50" in thin.header.notes[-1] and not any("thinned" in note for note in whole.header.notes)
    # its records are those of the whole log, byte by byte
    picked = whole.records[thin.records["tick"]].copy()
    same = thin.records.copy()
    picked["record_crc"] = same["record_crc"] = 0
    assert picked.tobytes() == same.tobytes()
    # n-th ticks, every change of a state, first and last
    kept = set(thin.records["tick"].tolist())
    assert set(range(0, whole.ticks, 50)) <= kept and whole.ticks - 1 in kept
    for name in STATES:
        assert set(np.flatnonzero(np.diff(whole.records[name], axis=0)) + 1) <= kept, name
    a, b = (summarise(Run(log)).as_json() for log in (whole, thin))
    assert a["peak_wrench"] == b["peak_wrench"] and a["peak_wrench_time_s"] == b["peak_wrench_time_s"]
    assert [a[k] for k in ("end", "first_contact_time_s", "faults", "duration_s")] == [
        b[k] for k in ("end", "first_contact_time_s", "faults", "duration_s")
    ]
    assert [c["begin_s"] for c in a["contacts"]] == [c["begin_s"] for c in b["contacts"]] and a["contacts"]


def test_thinned_log_replays_to_the_last_bit(logs, tmp_path):
    result = replay.replay(logs[1], verify=True)
    assert result["equal"] and result["ticks"] == read_log(logs[1]).ticks and result["exit_code"] == 0
    # cut off by a crash: what is there is compared
    data = Path(logs[1]).read_bytes()
    (tmp_path / "cut.mcap").write_bytes(data[: 2 * len(data) // 3])
    cut = replay.replay(tmp_path / "cut.mcap", verify=True)
    assert cut["equal"] and 0 < cut["ticks"] < result["ticks"] and cut["incomplete"]


def test_a_recorded_operator_is_in_the_log(tmp_path):
    """Its file is no longer there; a log from before, which names the file alone, finds a shipped one."""
    pins = SHIPPED / "programmes/berthing_pins.toml"
    (tmp_path / "test.toml").write_text(f'extends = "{pins}"\n[commands]\npart = "script"\nfile = "one.csv"\n')
    (tmp_path / "one.csv").write_text((SHIPPED / "programmes/operators/pins_aligned.csv").read_text())
    config = load_test(tmp_path / "test.toml", ["telemetry.log_every=20", "test.duration_max_s=3"])
    log = simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"]
    (tmp_path / "one.csv").unlink()
    assert replay.replay(log, verify=True)["equal"]
    former = {**config.document["commands"], "file": "operators/pins_aligned.csv", "data": ""}
    config = TestConfig({**config.document, "commands": former})
    assert assembly.simulation(config).line is not None


def test_thinned_log_of_a_unit_with_fewer_channels_replays(logs, tmp_path):
    """A docking unit has appended channels since; one that it has no more cannot be compared."""
    log = read_log(logs[1])
    without = log.header.aux[3]
    kept = [i for i in range(log.header.aux_count) if not without.offset <= i < without.offset + without.count]

    def rewritten(name, aux, columns):
        header = replace(log.header, aux=aux)
        records = np.zeros(log.ticks, record_dtype(len(columns)))
        for field in SAMPLE_DTYPE.names:
            records[field] = log.records[field]
        records["aux"] = log.records["aux"][:, columns]
        writer = LogWriter(tmp_path / name, header)
        writer.write(records)
        writer.close({})
        return tmp_path / name

    declared = [Aux(c.name, c.unit, c.meaning, c.count) for c in log.header.aux]
    fewer = rewritten("fewer.mcap", aux_channels(c for c in declared if c.name != without.name), kept)
    assert read_log(fewer).header.aux_count < log.header.aux_count
    assert replay.replay(fewer, verify=True)["equal"]
    more = rewritten("more.mcap", aux_channels([*declared, Aux("torn", "-", "gone", 1)]), [*range(log.header.aux_count), 0])
    with pytest.raises(ConfigurationError, match="no auxiliary channel torn"):
        replay.replay(more, verify=True)


def test_thinned_log_of_an_interrupted_simulation_replays(tmp_path, monkeypatch):
    """The commands that Ctrl-C gave are in the log alone, and the run is resumed behind them, too."""
    look, pressed = Stopper.look, []

    def press(stopper):
        if not pressed:
            pressed.append(signal.raise_signal(signal.SIGINT))
        return look(stopper)

    monkeypatch.setattr(Stopper, "look", press)
    log = read_log(path := run(tmp_path, 50))
    given = log.records[log.records["command_code"] != 0]
    assert len(given) and set(given["command_code"]) <= {CODES["command"][name] for name in ("park", "abort")}
    assert replay.replay(path, verify=True)["equal"]
    behind = int(log.records["tick"][-1])
    assert behind > given["tick"][-1] and branch.at_tick(log, behind).test.line.clock.tick == behind  # held against the log


def test_one_changed_bit_of_a_thinned_log_is_found(logs, tmp_path):
    index = 123

    def flip(records):
        raw = records["aux"][:, 7].copy().view(np.uint64)
        raw[index] ^= np.uint64(1)
        records["aux"][:, 7] = raw.view(np.float64)

    result = replay.replay(rewrite(logs[1], tmp_path / "flipped.mcap", flip), verify=True)
    log = read_log(logs[1])
    assert not result["equal"] and result["differing"] == 1 and result["exit_code"] == 1
    assert result["first_difference"]["tick"] == log.records["tick"][index] and result["first_difference"]["channel"] == log.aux_names[7]


def test_what_a_thinned_log_cannot_do(logs, capsys, tmp_path):
    assert main(["replay", logs[1], "--set", "compensation.part=phase_lead"]) == 2
    assert "telemetry.log_every" in capsys.readouterr().err
    addresses = [f"telemetry.{key}=ipc://{tmp_path}/{key}" for key in ("publish", "command", "hand_controller")]
    with pytest.raises(ConfigurationError, match=r"telemetry\.log_every: 5, a live run logs every tick"):
        run_live(load_test(None, [*addresses, "telemetry.log_every=5"]), Options(quiet=True))
