"""MDF 4, read back by asammdf."""

import numpy as np
import pytest

from hil_server.errors import UsageError
from hil_server.exchange.export import export
from hil_server.exchange.scalars import columns

asammdf = pytest.importorskip("asammdf", reason="optional group analyst")


def test_every_channel_reads_back_equal_with_its_unit(bounce, bounce_log, tmp_path):
    path = export(bounce, "mdf", tmp_path / "run.mf4")
    with asammdf.MDF(path) as file:
        names = [group.channel_group.acq_name for group in file.groups]
        assert len(names) == len(set(names)) and {"ports", "wrench", "dynamics", "parts"} <= set(names)
        for c in columns(bounce_log):
            signal = file.get(c.name, raw=True)
            assert signal.samples.dtype == c.values.dtype and signal.samples.tobytes() == c.values.tobytes(), c.name
            assert (signal.unit, signal.comment.startswith(c.meaning)) == (c.unit, True)
        assert np.array_equal(file.get("F_T[0]").timestamps, bounce_log.time_s)
        assert set(file.get("phase").samples[[0, 1500, 3500]]) == {b"closing", b"contact", b"latched"}
        assert abs(file.start_time.timestamp() - bounce_log.header.created) < 1e-5


def test_chosen_channels_under_another_suffix(bounce, tmp_path):
    path = export(bounce, "mdf", tmp_path / "some.mdf", ["F_T"])
    assert path.name == "some.mdf" and [p.name for p in tmp_path.iterdir()] == ["some.mdf"]
    with asammdf.MDF(path) as file:
        assert {"F_T[5]", "tick"} <= set(file.channels_db) and "phase" not in file.channels_db


def test_no_folder(bounce, tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        export(bounce, "mdf", tmp_path / "nowhere" / "run.mf4")
