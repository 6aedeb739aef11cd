"""Space packets and their XTCE document, read by independent readers: `spacepackets` the headers, `space_packet_parser` the contents."""

import numpy as np
import pytest

from hil_server.errors import UsageError
from hil_server.exchange import ccsds
from hil_server.exchange.export import export
from hil_server.exchange.scalars import columns, plain_names
from hil_server.log.reader import read_log

spp = pytest.importorskip("space_packet_parser", reason="the independent reader")
pytest.importorskip("spacepackets", reason="optional group analyst")


@pytest.fixture(scope="module")
def written(bounce, tmp_path_factory):
    path = export(bounce, "ccsds", tmp_path_factory.mktemp("ccsds") / "bounce.ccsds")
    return path, path.with_suffix(".xtce.xml")


def packets(path, every):
    """(number of the tick, packet) of every so-many-th tick, all stages of it."""
    with path.open("rb") as file:
        count = {}
        for packet in spp.ccsds_generator(file):
            apid = packet.apid
            i = count[apid] = count.get(apid, -1) + 1
            if i % every == 0:
                yield i, packet


def test_every_number_is_that_of_the_log(written, bounce_log):
    path, document = written
    definition = spp.load_xtce(document)
    every = list(columns(bounce_log))
    names = plain_names(every)
    expected = {names[c.name]: c for c in every}
    seen = set()
    for i, packet in packets(path, 400):
        found = definition.parse_bytes(packet)
        for name, value in found.items():
            if name in expected:
                raw = getattr(value, "raw_value", value)
                ours = expected[name].values[i]
                assert np.array(raw, ours.dtype).tobytes() == ours.tobytes(), (i, name)
                seen.add(name)
        time = found["TIME_SECONDS"] + found["TIME_FRACTION"] / 2**24
        # cut to its fraction; a double of this size, seconds since 1970, has steps of 2.4e-7 s
        assert -2.4e-7 <= bounce_log.header.created + bounce_log.time_s[i] - time < 2.4e-7 + 2**-24
    assert seen == set(expected)


def test_a_code_has_its_word_and_a_number_its_unit(written, bounce_log):
    path, document = written
    definition = spp.load_xtce(document)
    assert definition.parameters["F_T_rx"].parameter_type.unit == "N.m"
    assert "contact wrench" in definition.parameters["F_T_rx"].long_description
    phases = [found["phase"] for i, packet in packets(path, 1500) if "phase" in (found := definition.parse_bytes(packet))]
    assert phases == ["closing", "contact", "latched"]


def test_headers(written, bounce_log):
    from spacepackets.ccsds import SpacePacketHeader

    data = written[0].read_bytes()
    at, counts, order = 0, {}, []
    while at < len(data):
        header = SpacePacketHeader.unpack(data[at : at + 6])
        assert header.seq_count == counts.get(header.apid, 0) % 2**14 and header.sec_header_flag
        counts[header.apid] = counts.get(header.apid, 0) + 1
        order.append(header.apid)
        at += header.packet_len
    stages = len(set(order))
    assert at == len(data) and set(counts.values()) == {bounce_log.ticks} and order[:stages] == list(range(1, stages + 1))


def test_many_auxiliary_channels_take_several_packets(write_run, make_bounce):
    records = make_bounce(seconds=0.002)
    log = read_log(write_run(records))
    few = list(columns(log))
    many = [*few, *(few[-1].__class__(f"x[{i}]", "x", "m", "", "auxiliary", "", few[-1].values, str(i)) for i in range(9000))]
    made = ccsds.packets_of(many)
    assert [p.name for p in made[-3:]] == ["parts_1", "parts_2", "parts_3"]
    assert all(p.dtype.itemsize - 7 < 65536 for p in made) and len({n for p in made for n in p.names}) == len(many)


def test_it_says_what_is_missing(bounce, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "spacepackets.ccsds", None)
    with pytest.raises(UsageError, match=r"hil-server\[analyst\]"):
        export(bounce, "ccsds", tmp_path / "x.ccsds")
