"""The log file: written, read back, read by others, cut, damaged, on a full disk."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
import zstandard
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory

from hil_server.log import reader as log_file
from hil_server.log import writer as log_writer
from hil_server.log.format import CHUNK_SECONDS, LogError
from hil_server.log.header import KINDS, LogHeader, Stored
from hil_server.log.reader import read_log
from hil_server.log.record import LayoutMismatchError, record_dtype, scalar_names
from hil_server.log.writer import LogWriter
from rt_kernels.layout import LAYOUT_HASH


@pytest.fixture(autouse=True)
def full_chunks(monkeypatch):
    """A chunk ends when it is full, not when a tenth of a second is over: however slow the machine is, the tests know where."""
    monkeypatch.setattr(log_writer, "CHUNK_SECONDS", 1e9)


def write_log(path, header, records, step=10, facts=None):
    writer = LogWriter(path, header)
    for start in range(0, len(records), step):
        writer.write(records[start : start + step].tobytes())
    writer.close(facts)
    return path


def ros2_messages(path):
    """(log time, decoded message) of every tick, by a decoder that is not ours."""
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        return [(message.log_time, decoded) for _, _, message, decoded in reader.iter_decoded_messages()]


def without_crc(records):
    plain = records.copy()
    plain["record_crc"] = 0
    return plain.tobytes()


@pytest.mark.parametrize("count, step", [(0, 10), (1, 1), (99, 10), (1003, 10), (1000, 1000)])
def test_what_was_written_is_read(tmp_path, header, make_records, count, step):
    records = make_records(count)
    log = read_log(write_log(tmp_path / "run.mcap", header, records, step, {"end": "captured"}))
    assert without_crc(log.records) == without_crc(records)
    assert log.ticks == count and log.complete and log.damaged() == []
    assert log.end == {"end": "captured", "lost_ticks": 0}


def test_records_beyond_the_memory_lie_in_a_file(tmp_path, header, make_records, monkeypatch):
    records = make_records(1003)
    path = write_log(tmp_path / "run.mcap", header, records)
    monkeypatch.setattr(log_file, "available_memory", lambda: records.nbytes)
    log = read_log(path)
    base = log.records
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert without_crc(log.records) == without_crc(records) and log.complete and log.damaged() == []
    assert os.listdir(tmp_path) == ["run.mcap"]


def test_records_that_find_no_room_are_refused_with_their_size(tmp_path, header, make_records, monkeypatch):
    path = write_log(tmp_path / "run.mcap", header, make_records(10))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_file, "available_memory", lambda: 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(LogError, match=r"need 0\.0 GB, more than 50% of the free memory, and there is no room"):
        read_log(path)


def test_header_comes_back_whole(tmp_path, header, make_records):
    log = read_log(write_log(tmp_path / "run.mcap", header, make_records(5)))
    assert log.header == header
    assert LogHeader.from_json(header.to_json()) == header
    assert log.aux_names == scalar_names("damper_stroke", 3) + ["temperature"]
    assert np.array_equal(log.aux("temperature"), log.records["aux"][:, 3]) and log.aux("damper_stroke").shape == (5, 3)
    with pytest.raises(KeyError, match="temperature"):
        log.aux("temprature")


def test_ros2_reader_sees_the_same_bits(tmp_path, header, make_records):
    records = make_records(250)
    path = write_log(tmp_path / "run.mcap", header, records)
    ours = read_log(path).records
    messages = ros2_messages(path)
    assert len(messages) == 250
    for i in (0, 99, 100, 249):
        for name in ours.dtype.names:
            theirs = np.asarray(getattr(messages[i][1], name.lower()), ours.dtype[name].base)
            assert theirs.tobytes() == np.ascontiguousarray(ours[name][i]).tobytes(), name
        assert messages[i][0] == ours["time_ns"][i]


def test_indexed_reader_of_the_library_finds_everything(tmp_path, header, make_records):
    path = write_log(tmp_path / "run.mcap", header, make_records(1000))
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        statistics = reader.get_summary().statistics
        assert (statistics.message_count, statistics.chunk_count, statistics.message_end_time) == (1000, 10, 999_000_000)
        window = list(reader.iter_messages(topics=["sample"], starting_at=300_000_000, ending_before=400_000_000))
        assert [message.sequence for _, _, message in window] == list(range(300, 400))
        assert {a.name for a in reader.iter_attachments()} >= {"channels.toml", "configuration/stand.toml", "state/dynamics"}
        assert [m.name for m in reader.iter_metadata()] == ["run", "end"]
    with path.open("rb") as file:
        assert sum(1 for _ in StreamReader(file, validate_crcs=True).records) > 1000


def test_mixed_chunks_of_other_tools_are_read(tmp_path, header, make_records):
    """Another tool may rewrite a log: other chunk size, another topic in between, schema and channel inside the chunk."""
    from mcap.writer import CompressionType, Writer

    source = read_log(write_log(tmp_path / "run.mcap", header, make_records(300)))
    with (tmp_path / "run.mcap").open("rb") as original, (tmp_path / "other.mcap").open("wb") as file:
        reader = make_reader(original)
        writer = Writer(file, chunk_size=100_000, compression=CompressionType.NONE)
        writer.start()
        for metadata in reader.iter_metadata():
            writer.add_metadata(metadata.name, metadata.metadata)
        for a in reader.iter_attachments():
            writer.add_attachment(a.create_time, a.log_time, a.name, a.media_type, a.data)
        foreign = writer.register_channel("camera", "json", 0)
        ours = writer.register_channel("sample", "cdr", 0)
        for _, _, message in reader.iter_messages():
            writer.add_message(foreign, message.log_time, b"{}", message.log_time)
            writer.add_message(ours, message.log_time, message.data, message.log_time)
        writer.finish()
    again = read_log(tmp_path / "other.mcap")
    assert again.records.tobytes() == source.records.tobytes() and again.complete


def test_layout_mismatch_shows_both(tmp_path, header, make_records):
    header.layout_hash = "0123456789abcdef"
    path = write_log(tmp_path / "run.mcap", header, make_records(5))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"hil_server/msg/Sample", b"hil_server/msg/Simple"))  # no schema by which it could be read
    with pytest.raises(LayoutMismatchError, match=f"0123456789abcdef.*{LAYOUT_HASH}"):
        read_log(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89MCAP0\r\n", b"\x89MCAP0\r\n" + bytes(100)])
def test_no_log(tmp_path, content):
    (tmp_path / "x.mcap").write_bytes(content)
    with pytest.raises(LogError, match="x.mcap"):
        read_log(tmp_path / "x.mcap")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(LogError, match="nothing.mcap: No such file"):
        read_log(tmp_path / "nothing.mcap")


def test_existing_log_is_never_overwritten(tmp_path, header):
    (tmp_path / "run.mcap").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        LogWriter(tmp_path / "run.mcap", header)


def test_wrong_record_size(tmp_path, header, make_records):
    writer = LogWriter(tmp_path / "run.mcap", header)
    with pytest.raises(ValueError, match="not a whole number of records"):
        writer.write(bytes(17))
    with pytest.raises(ValueError, match="this run has"):
        writer.write(make_records(3, aux=2))
    writer.close()


# ---------------------------------------------------------------------------------------------------------------- damage


def test_cut_anywhere_keeps_every_whole_chunk(tmp_path, header, make_records):
    records = make_records(500)
    data = write_log(tmp_path / "run.mcap", header, records).read_bytes()
    ends = chunk_ends(data)
    assert len(ends) == 5
    rng = np.random.default_rng(3)
    for cut in [*rng.integers(ends[0], len(data), 25), ends[1], len(data) - 1]:
        (tmp_path / "cut.mcap").write_bytes(data[:cut])
        log = read_log(tmp_path / "cut.mcap")
        whole = 100 * sum(end <= cut for end in ends)
        assert log.ticks == whole and not log.complete and "cut" in " ".join(log.incomplete)
        assert without_crc(log.records) == without_crc(records[:whole])


def test_skipped_periods_are_no_missing_ticks(tmp_path, header, make_records):
    records = make_records(20)
    records["periods"] = 1
    records["tick"][10:] += 3
    records["periods"][10] = 4  # the loop was late by three
    records["tick"][15:] += 5
    records["periods"][15] = 2  # of these five one was skipped, four are gone
    log = read_log(write_log(tmp_path / "run.mcap", header, records))
    assert log.missing() == [(18, 21)] and log.ticks == 20


def test_torn_tail_of_zeros(tmp_path, header, make_records):
    data = write_log(tmp_path / "run.mcap", header, make_records(500)).read_bytes()
    (tmp_path / "torn.mcap").write_bytes(data[: chunk_ends(data)[2] + 30] + bytes(5000))
    log = read_log(tmp_path / "torn.mcap")
    assert log.ticks == 300 and not log.complete


def chunk_ends(data):
    ends, at = [], 8
    while at < len(data) - 8:
        opcode, length = data[at], int.from_bytes(data[at + 1 : at + 9], "little")
        at += 9 + length
        if opcode == 6:
            ends.append(at)
    return ends


def rewrite_one_bit(path, tick, channel, bit):
    """Flips one bit of one channel inside the compressed chunk and puts a chunk with correct checksums back."""
    log = read_log(path)
    records = log.records.copy()
    offset = records.dtype.fields[channel][1]
    records[tick : tick + 1].view(np.uint8)[offset + bit // 8] ^= 1 << (bit % 8)
    path.unlink()
    writer = LogWriter(path, log.header)
    writer.copy(records)
    writer.close()


@pytest.mark.parametrize("channel, bit, name", [("wrench_raw", 64 * 4 + 3, "wrench_raw[4]"), ("drive_status", 33, "drive_status[1]")])
def test_one_changed_bit_is_named(tmp_path, header, make_records, channel, bit, name):
    path = write_log(tmp_path / "run.mcap", header, make_records(300))
    rewrite_one_bit(path, 123, channel, bit)
    assert read_log(path).damaged() == [(123, name)]


def test_flipped_bits_of_the_file_never_pass_unseen(tmp_path, header, make_records):
    data = write_log(tmp_path / "run.mcap", header, make_records(300)).read_bytes()
    truth = without_crc(read_log(tmp_path / "run.mcap").records)
    start = data.index(b"zstd")
    rng = np.random.default_rng(4)
    for position in rng.integers(start + 12, chunk_ends(data)[-1], 40):
        broken = bytearray(data)
        broken[position] ^= 1 << int(rng.integers(8))
        (tmp_path / "broken.mcap").write_bytes(broken)
        log = read_log(tmp_path / "broken.mcap")
        if without_crc(log.records) != truth:
            assert not log.complete, position


def test_chunk_altered_inside_its_compression_is_noted_and_located(tmp_path, header, make_records):
    """The chunk decompresses but its contents differ from its checksum: kept, noted, and the record is named."""
    data = write_log(tmp_path / "run.mcap", header, make_records(100)).read_bytes()
    at = data.index(b"zstd") + 4
    size = int.from_bytes(data[at : at + 8], "little")
    raw = bytearray(zstandard.decompress(data[at + 8 : at + 8 + size]))
    message = len(raw) // 100
    raw[42 * message + 35] ^= 1  # lowest bit of the first double of tick 42
    packed = zstandard.compress(bytes(raw))
    chunk = at - 45  # opcode, length, two times, size, checksum, name of the compression
    assert data[chunk] == 0x06
    length = int.from_bytes(data[chunk + 1 : chunk + 9], "little") - size + len(packed)
    broken = data[: chunk + 1] + length.to_bytes(8, "little") + data[chunk + 9 : at] + len(packed).to_bytes(8, "little") + packed
    (tmp_path / "broken.mcap").write_bytes(broken + data[at + 8 + size :])
    log = read_log(tmp_path / "broken.mcap")
    assert log.ticks == 100 and any("altered chunk" in reason for reason in log.incomplete)
    assert log.damaged() == [(42, "wrench_raw[0]")]
    assert zlib.crc32(bytes(raw)) != int.from_bytes(data[chunk + 33 : chunk + 37], "little")


# ------------------------------------------------------------------------------------------------------------- full disk


class FullDisk:
    """A file that takes `room` bytes and then reports a full disk, in the middle of a write as a real one does."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        free = self.room - self.file.tell()
        if free <= 0:
            raise OSError(28, "No space left on device")
        return self.file.write(bytes(data[:free]))

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_full_disk_keeps_the_file_readable_and_the_run_marked(tmp_path, header, make_records):
    records = make_records(1000)
    with (tmp_path / "full.mcap").open("w+b") as file:
        disk = FullDisk(file, 10**9)
        writer = LogWriter(disk, header)
        for start in range(0, 1000, 10):
            disk.room = 10**9 if start < 300 or start >= 700 else 0
            writer.write(records[start : start + 10].tobytes())
        assert writer.close() is False
    log = read_log(tmp_path / "full.mcap")
    assert log.incomplete == ["log: No space left on device"]
    assert log.end["lost_ticks"] == 400
    assert list(log.records["tick"]) == [*range(300), *range(700, 1000)]


@pytest.mark.parametrize("room", [1, 1000, 100_000, 200_000, None])
def test_disk_that_stays_full(tmp_path, header, make_records, room):
    with (tmp_path / "full.mcap").open("w+b") as file:
        disk = FullDisk(file, 10**9)
        writer = LogWriter(disk, header)
        disk.room = file.tell() + (room or 10**9)
        for start in range(0, 1000, 10):
            writer.write(make_records(10, start))
            if room is None and start == 500:
                disk.room = file.tell()  # not a byte is left behind the last chunk
        assert writer.close() is False and "No space left" in writer.reasons[0]
        kept = writer.ticks
    log = read_log(tmp_path / "full.mcap")
    assert log.ticks == kept and kept + writer.lost_ticks == 1000
    assert set(log.incomplete) <= {"the file is cut", "log: No space left on device"}, "it ends with a whole record"
    if room not in (1, 1000):  # too little for anything at all
        assert log.incomplete == ["log: No space left on device"] and log.end["lost_ticks"] == writer.lost_ticks


def test_disk_on_which_others_take_what_is_freed(tmp_path, header, make_records):
    """The record stays, whatever its end finds: found by `hil-server world --seed 9`."""
    with (tmp_path / "full.mcap").open("w+b") as file:
        disk = FullDisk(file, 10**9)
        writer = LogWriter(disk, header)
        writer.write(make_records(1000))
        disk.room = 0
        assert writer.close() is False
    log = read_log(tmp_path / "full.mcap")
    assert log.ticks == writer.ticks >= 800 and writer.ticks + writer.lost_ticks == 1000
    assert list(log.records["tick"]) == [*range(log.ticks)] and log.incomplete


def test_dev_full(header, make_records):
    """The kernel's own full device: the head cannot be written, and that is an error before the run."""
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        LogWriter(file, header)


def test_a_log_can_be_read_by_itself(tmp_path, header, make_records, monkeypatch):
    """However early its writer is stopped: looked at before and after every write and every change of a name."""
    path, seen = tmp_path / "run.mcap", []

    def look():
        seen.append(read_log(path).header.run_id if path.exists() else None)

    def watched(function):
        def act(*arguments, **keys):
            look()
            answer = function(*arguments, **keys)
            look()
            return answer

        return act

    monkeypatch.setattr(LogWriter, "_put", watched(LogWriter._put))
    for name in ("link", "rename", "unlink", "fsync"):
        monkeypatch.setattr(log_writer.os, name, watched(getattr(os, name)))
    write_log(path, header, make_records(250))
    first = seen.index(header.run_id)
    assert first > 20 and set(seen[:first]) == {None} and set(seen[first:]) == {header.run_id} and os.listdir(tmp_path) == [path.name]


def test_a_file_system_without_second_names_has_the_log_too(tmp_path, header, make_records, monkeypatch):
    def no_links(*names):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(log_writer.os, "link", no_links)
    log = read_log(write_log(tmp_path / "run.mcap", header, make_records(100)))
    assert log.complete and log.ticks == 100 and os.listdir(tmp_path) == ["run.mcap"]


def test_a_log_that_came_in_between_stays(tmp_path, header, monkeypatch):
    real = os.fsync

    def somebody_else(descriptor):
        (tmp_path / "run.mcap").write_bytes(b"precious")
        real(descriptor)

    monkeypatch.setattr(log_writer.os, "fsync", somebody_else)
    with pytest.raises(FileExistsError):
        LogWriter(tmp_path / "run.mcap", header)
    assert (tmp_path / "run.mcap").read_bytes() == b"precious" and os.listdir(tmp_path) == ["run.mcap"]


# ---------------------------------------------------------------------------------------------------------------- SIGKILL

WRITER = """
import sys
import numpy as np
from hil_server.log.header import LogHeader
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter

tick, some = 0, int(sys.argv[2])
writer = LogWriter(sys.argv[1], LogHeader("killed"), lambda: 1e-3 * tick)  # time passes with the ticks
while True:
    records = np.zeros(some, record_dtype(0))
    records["tick"] = np.arange(tick, tick + some)
    records["time_ns"] = records["tick"] * 1_000_000
    tick += some
    writer.write(records)
    print(tick, flush=True)
"""


@pytest.mark.parametrize("some", [10, 77])
def test_killed_writer_loses_at_most_a_quarter_of_a_second(tmp_path, some):
    path = tmp_path / "killed.mcap"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(some)], stdout=subprocess.PIPE, text=True)
    written = 0
    while written < 1200:
        written = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.communicate()[0].splitlines()
    written = int(rest[-1]) if rest else written
    log = read_log(path)
    assert -some <= written - log.ticks <= 250  # the last word may be lost with the process
    assert not log.complete and "cut" in log.incomplete[0] and log.damaged() == []
    assert list(log.records["tick"]) == list(range(log.ticks))


def test_slow_writer_flushes_by_time(tmp_path, header, make_records, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(log_writer, "CHUNK_SECONDS", CHUNK_SECONDS)  # as it is
    writer = LogWriter(tmp_path / "run.mcap", header, lambda: now[0])
    writer.write(make_records(10))
    assert read_log(tmp_path / "run.mcap").ticks == 0
    now[0] = 0.11
    writer.write(make_records(10, 10))
    assert read_log(tmp_path / "run.mcap").ticks == 20
    writer.close()


def test_end_facts_are_plain_json(tmp_path, header, make_records):
    path = write_log(tmp_path / "run.mcap", header, make_records(3), facts={"faults": ["force_limit"], "n": np.float64(1.5), "p": os})
    assert read_log(path).end["faults"] == ["force_limit"]
    assert json.dumps(read_log(path).end)


def test_every_record_is_sealed_wherever_its_chunk_begins(tmp_path, header, make_records):
    """Blocks of odd sizes, bytes and arrays: the same file content, and the records that were given stay as they are."""
    records = make_records(517)
    given = records.copy()
    writer = LogWriter(tmp_path / "odd.mcap", header)
    at = 0
    for size in (1, 99, 100, 3, 250, 64):
        part = records[at : at + size]
        writer.write(part if size % 2 else part.tobytes())
        at += size
    writer.close()
    log = read_log(tmp_path / "odd.mcap")
    assert log.damaged() == [] and log.ticks == 517
    np.testing.assert_array_equal(records, given)
    whole = log.records.copy()
    whole["record_crc"] = given["record_crc"]
    np.testing.assert_array_equal(whole, given)


# ------------------------------------------------------------------------------------------------------------ hostile files


def first_chunk(data):
    """(place of the chunk's body, place of its compressed bytes, their size)."""
    at = data.index(b"zstd")
    return data.rindex(b"\x06", 0, at - 40) + 9, at + 12, int.from_bytes(data[at + 4 : at + 12], "little")


def with_first_chunk(data, packed, claimed, crc=0):
    """The file with other compressed bytes in its first chunk."""
    body, at, size = first_chunk(data)
    length = int.from_bytes(data[body - 8 : body], "little") - size + len(packed)
    head = data[: body - 8] + length.to_bytes(8, "little") + data[body : body + 16]
    head += claimed.to_bytes(8, "little") + crc.to_bytes(4, "little") + data[body + 28 : at - 8]
    return head + len(packed).to_bytes(8, "little") + packed + data[at + size :]


@pytest.mark.parametrize("claimed", [2**63, 2**40, 300_000, 1, 0])
def test_a_chunk_that_lies_about_its_size_is_left_out_and_named(tmp_path, header, make_records, claimed):
    data = write_log(tmp_path / "run.mcap", header, make_records(300)).read_bytes()
    _, at, size = first_chunk(data)
    (tmp_path / "lie.mcap").write_bytes(with_first_chunk(data, data[at : at + size], claimed))
    log = read_log(tmp_path / "lie.mcap")
    assert list(log.records["tick"]) == list(range(100, 300)) and log.missing() == [(0, 99)]
    assert any("damaged chunk left out" in reason and str(claimed) in reason for reason in log.incomplete)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chunk_that_would_swell_is_left_out_and_named(tmp_path, header, make_records, streamed):
    """64 MB of zeros in 2 kB, with and without their size in the frame's head."""
    data = write_log(tmp_path / "run.mcap", header, make_records(200)).read_bytes()
    packer = zstandard.ZstdCompressor(write_content_size=not streamed)
    swelling = packer.compress(bytes(1 << 26))
    (tmp_path / "bomb.mcap").write_bytes(with_first_chunk(data, swelling, 1 << 26))
    tracemalloc.start()
    log = read_log(tmp_path / "bomb.mcap")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(log.records["tick"]) == list(range(100, 200))
    assert any("would become 67108864" in reason for reason in log.incomplete)
    assert peak < 1 << 25


def test_a_run_in_which_nothing_moves_is_kept_whole(tmp_path):
    """What shrinks by more than a reader would believe is written as it is."""
    header = LogHeader("still", aux=(("still", "-", "never moves", 3000),))
    records = np.zeros(200, record_dtype(3000))
    records["tick"] = np.arange(200)
    records["time_ns"] = records["tick"] * 1_000_000
    log = read_log(write_log(tmp_path / "still.mcap", header, records, 100))
    assert log.complete and log.ticks == 200 and log.damaged() == []


def test_records_out_of_order_are_left_out_and_named(tmp_path, header, make_records):
    records = make_records(300)
    writer = LogWriter(tmp_path / "run.mcap", header)
    writer.write(records[:200])
    writer.write(records[100:300])  # 100 to 199 a second time
    writer.close()
    log = read_log(tmp_path / "run.mcap")
    assert list(log.records["tick"]) == list(range(300)) and not log.missing()
    assert any("100 records out of order left out: tick 100, 101" in reason for reason in log.incomplete)


def test_a_tick_below_all_numbers_is_out_of_order(tmp_path, header, make_records):
    """The difference to the tick before it does not fit into 64 bits."""
    records = make_records(300)
    records["tick"][299] = np.iinfo(np.int64).min
    log = read_log(write_log(tmp_path / "run.mcap", header, records, 100))
    assert list(log.records["tick"]) == list(range(299)) and any("1 records out of order" in reason for reason in log.incomplete)


def test_missing_ticks_are_named(tmp_path, header, make_records):
    records = make_records(500)
    writer = LogWriter(tmp_path / "run.mcap", header)
    writer.write(np.concatenate([records[7:100], records[101:300], records[400:]]))
    writer.close()
    assert read_log(tmp_path / "run.mcap").missing() == [(0, 6), (100, 100), (300, 399)]


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("aux", "[", "not JSON"),
        ("aux", '[["a", "m", "b", 1000000000000]]', "1 ... 100000"),
        ("aux", '[["a", "m", "b", -4]]', "1 ... 100000"),
        ("aux", "[1]", "1 ... 100000"),
        ("aux", "[" * 100_000, "not JSON"),
        ("host", "[]", "must be a table"),
        ("notes", "{}", "must be a list"),
        ("configuration", "[1]", "list of names"),
        ("period_ns", "0", "limit 1"),
        ("period_ns", "1" * 5000, "not a number"),
        ("created", "nan", "limit 0"),
    ],
)
def test_a_header_that_says_nonsense_is_refused_in_words(tmp_path, header, make_records, monkeypatch, key, text, words):
    true = LogHeader.store
    monkeypatch.setattr(LogHeader, "store", lambda h: Stored(run=true(h).run | {key: text}))
    path = write_log(tmp_path / "run.mcap", header, make_records(3))
    with pytest.raises(LogError, match=f"{key}.*{words}"):
        read_log(path)


def test_an_end_that_says_nonsense_is_named(tmp_path, header, make_records):
    path = write_log(tmp_path / "run.mcap", header, make_records(3), facts={"end": "captured"})
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"end": "captured"}', b'{"end": "captured"]'))
    log = read_log(path)
    assert log.ticks == 3 and log.end == {} and any("end of the run is damaged" in reason for reason in log.incomplete)


def test_every_field_of_the_header_is_declared_once_and_comes_back(tmp_path, header, make_records):
    """Through the file, and as text to another process; no field is left at its default here."""
    read = read_log(write_log(tmp_path / "run.mcap", header, make_records(3))).header
    for one in dataclasses.fields(LogHeader):
        assert one.metadata["kind"] is KINDS[one.name]
        assert getattr(read, one.name) == getattr(header, one.name) == getattr(LogHeader.from_json(header.to_json()), one.name), one.name
