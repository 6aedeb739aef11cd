"""Checkpoints as bytes, and as messages of a log."""

import io

import numpy as np
import pytest
import zstandard
from mcap.stream_reader import StreamReader

from hil_server.log.checkpoint import MAX_BYTES, Checkpoint, places
from hil_server.log.format import LogError
from hil_server.log.header import LogHeader
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter

ONE = Checkpoint(1234, 1_234_000_000, "first contact", "build", {"sample": bytes(range(256)) * 9, "stage.safety": b"", "aux": b"12345678"})


def log_with(path, *checkpoints, ticks=300):
    writer = LogWriter(path, LogHeader(run_id="r"))
    records = np.zeros(ticks, record_dtype(0))
    records["tick"], records["time_ns"], records["periods"] = np.arange(ticks), np.arange(ticks) * 1_000_000, 1
    half = ticks // 2
    writer.write(records[:half])
    for checkpoint in checkpoints:
        writer.checkpoint(checkpoint)
    writer.write(records[half:])
    assert writer.close({})
    return path


def test_what_is_packed_is_unpacked():
    assert Checkpoint.unpacked(ONE.packed()) == ONE


def test_damage_is_found():
    data = ONE.packed()
    raw = zstandard.ZstdDecompressor().decompress(data)
    pack = zstandard.ZstdCompressor().compress
    for wrong in (data[:-3], b"", b"abc", pack(raw[:-1]), pack(raw[:40] + bytes([raw[40] ^ 1]) + raw[41:]), pack(b"\0" * 6)):
        with pytest.raises(ValueError):
            Checkpoint.unpacked(wrong)
    with pytest.raises(ValueError, match="longer than"):
        Checkpoint.unpacked(pack(bytes(MAX_BYTES + 1)))


def test_log_with_checkpoints_is_the_same_log(tmp_path):
    other = Checkpoint(7, 7_000_000, "interval", "build", {"a": b"b"})
    log = read_log(log_with(tmp_path / "with.mcap", ONE, other))
    plain = read_log(log_with(tmp_path / "without.mcap"))
    assert log.complete and log.records.tobytes() == plain.records.tobytes()
    found = places(log.path)
    assert [p.time_ns for p in found] == [7_000_000, 1_234_000_000] and [p.read() for p in found] == [other, ONE]
    assert places(plain.path) == []
    # as the library of the format reads it
    records = list(StreamReader(io.BytesIO(log.path.read_bytes()), emit_chunks=False).records)
    statistics = next(r for r in records if type(r).__name__ == "Statistics")
    assert statistics.channel_message_counts == {1: 300, 2: 2} and statistics.message_count == 302
    messages = [r for r in records if type(r).__name__ == "Message" and r.channel_id == 2]
    assert [Checkpoint.unpacked(m.data) for m in messages] == [ONE, other]


def test_damaged_checkpoint_is_named_and_a_cut_log_keeps_the_others(tmp_path):
    path = log_with(tmp_path / "a.mcap", ONE)
    place = places(path)[0]
    data = bytearray(path.read_bytes())
    data[place.offset + place.length // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(LogError, match=r"checkpoint at 1\.234 s is damaged"):
        places(path)[0].read()
    assert read_log(path).ticks == 300
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(log_with(tmp_path / "b.mcap", ONE).read_bytes()[: place.offset + place.length + 100])
    assert [p.read() for p in places(cut)] == [ONE]
    for content, reported in ((b"", "empty|cannot"), (b"x" * 100, "not an MCAP")):
        cut.write_bytes(content)
        with pytest.raises(LogError, match=reported):
            places(cut)
    with pytest.raises(LogError, match="No such file"):
        places(tmp_path / "none.mcap")
