"""A log as CCSDS space packets (CCSDS 133.0-B-2), and the XTCE 1.2 document (CCSDS 660.0-B-2) that describes them, made from the table.

One packet for each stage of the tick and tick (APID 1, 2, ... in the order of the stages, then the auxiliary channels), in the order of
time. Primary header; secondary header: time as CUC (CCSDS 301.0-B-4) of four octets of seconds and three of fraction since 1970; then the
stage's numbers, big-endian, as they are in the log: IEEE doubles and integers. Names are those of data frames (`F_T_x`). A code of the
table is an enumerated parameter.
"""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from hil_server.config.files import Done, no_progress
from hil_server.errors import UsageError
from hil_server.exchange.mdf import STAGES
from hil_server.exchange.plain_names import identifier
from hil_server.exchange.scalars import Column, plain_names
from hil_server.log.reader import Log
from rt_kernels.layout import CODES, WORDS

NAMESPACE = "http://www.omg.org/spec/XTCE/20180204"
PART = 4000  # auxiliary scalars a packet: it holds at most 65,536 octets
HEAD = (("VERSION", 3), ("TYPE", 1), ("SEC_HDR_FLG", 1), ("PKT_APID", 11), ("SEQ_FLGS", 2), ("SRC_SEQ_CTR", 14), ("PKT_LEN", 16))
TIME = (("TIME_SECONDS", 32), ("TIME_FRACTION", 24))
TIME_OCTETS = 7


class Packet:
    """A stage's packet. dtype: of the whole packet, packed; names: plain name of each column, in order."""

    def __init__(self, name: str, apid: int, columns: list[Column], names: dict[str, str]) -> None:
        self.name, self.apid, self.columns = name, apid, columns
        self.names = [names[column.name] for column in columns]
        values = [(plain, f">{c.values.dtype.str[1:]}") for plain, c in zip(self.names, columns, strict=True)]
        head = [("head id", ">u2"), ("head sequence", ">u2"), ("head length", ">u2"), ("head time", "u1", (TIME_OCTETS,))]
        self.dtype = np.dtype([*head, *values])


def write(log: Log, chosen: list[Column], path: Path, done: Done = no_progress) -> None:
    """Writes the packets to `path` and the document beside it (`<name>.xtce.xml`). Raises UsageError without spacepackets."""
    packets = packets_of(chosen)
    path.with_suffix(".xtce.xml").write_text(document(log.header.run_id, packets), encoding="utf-8")
    heads = _heads(packets)
    whole = np.dtype([(packet.name, packet.dtype) for packet in packets])
    start = round(log.header.created * 1e9)
    block = max(1, (1 << 25) // whole.itemsize)
    with path.open("wb") as file:
        for first in range(0, log.ticks, block):
            part = slice(first, min(first + block, log.ticks))
            rows = np.zeros(part.stop - part.start, whole)
            time = _cuc(start + log.records["time_ns"][part])
            for packet, (identification, length) in zip(packets, heads, strict=True):
                into = rows[packet.name]
                into["head id"], into["head length"], into["head time"] = identification, length, time
                into["head sequence"] = 0b11 << 14 | np.arange(part.start, part.stop) & 0x3FFF  # not segmented
                for plain, column in zip(packet.names, packet.columns, strict=True):
                    into[plain] = column.values[part]
            file.write(rows.tobytes())
            done(part.stop, log.ticks)


def packets_of(chosen: list[Column]) -> list[Packet]:
    """The packets that these columns make."""
    groups: dict[str, list[Column]] = {}
    parts = 0
    for column in chosen:
        stage = STAGES.get(column.channel)
        if stage is None:
            stage, parts = f"parts_{parts // PART + 1}", parts + 1
        groups.setdefault(stage, []).append(column)
    names = plain_names(chosen)
    return [Packet(name, apid, columns, names) for apid, (name, columns) in enumerate(groups.items(), 1)]


def _heads(packets: list[Packet]) -> list[tuple[int, int]]:
    """Identification word and length field of each packet's primary header."""
    try:
        from spacepackets.ccsds import PacketType, SpacePacketHeader
    except ModuleNotFoundError:
        raise UsageError("format ccsds needs spacepackets: pip install 'hil-server[analyst]'") from None
    heads = []
    for packet in packets:
        header = SpacePacketHeader(
            packet_type=PacketType.TM, apid=packet.apid, seq_count=0, data_len=packet.dtype.itemsize - 7, sec_header_flag=True
        ).pack()
        heads.append((int.from_bytes(header[:2], "big"), int.from_bytes(header[4:6], "big")))
    return heads


def _cuc(ns: np.ndarray) -> np.ndarray:
    """Nanoseconds since 1970 as (n, 7) octets: seconds, and the fraction in 2^-24 s, cut."""
    fraction = (ns % 10**9 << 24) // 10**9
    both = (ns // 10**9 << 24 | fraction).astype(">u8")
    octets: np.ndarray = both.view(np.uint8).reshape(-1, 8)[:, 1:]
    return octets


# ---------------------------------------------------------------------------------------------------------------------- XTCE
def document(run: str, packets: list[Packet]) -> str:
    """The XTCE document of these packets."""
    ET.register_namespace("xtce", NAMESPACE)
    system = _element(None, "SpaceSystem", name=identifier(f"run_{run}"), shortDescription=f"hil-server run {run}")
    telemetry = _element(system, "TelemetryMetaData")
    types, parameters, containers = (_element(telemetry, f"{kind}Set") for kind in ("ParameterType", "Parameter", "Container"))
    for bits in sorted({bits for _, bits in (*HEAD, *TIME)}):
        _integer(types, f"unsigned_{bits}", bits, False, "")
    head = _element(containers, "SequenceContainer", name="CCSDSPacket", abstract="true")
    _entries(parameters, head, [(name, f"unsigned_{bits}", "") for name, bits in HEAD])
    timed = _element(containers, "SequenceContainer", name="TimedPacket", abstract="true")
    _entries(parameters, timed, [(name, f"unsigned_{bits}", "") for name, bits in TIME])
    _base(timed, "CCSDSPacket", "SEC_HDR_FLG", 1)
    made: set[str] = set()
    for packet in packets:
        entries = []
        for plain, column in zip(packet.names, packet.columns, strict=True):
            kind = _type(types, column, made)
            entries.append((plain, kind, f"{column.meaning} [{column.frame}]" if column.frame else column.meaning))
        container = _element(containers, "SequenceContainer", name=packet.name)
        _entries(parameters, container, entries)
        _base(container, "TimedPacket", "PKT_APID", packet.apid)
    ET.indent(system)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(system, encoding="unicode") + "\n"


def _type(types: ET.Element, column: Column, made: set[str]) -> str:
    """The parameter type of a column, made where it is new."""
    kind, size = column.values.dtype.kind, 8 * column.values.dtype.itemsize
    word, group = WORDS.get(column.channel, ("", ""))
    unit = "" if column.unit == "-" else column.unit
    coded = word == "code" and kind == "i"
    base = f"{group}_code" if coded else {"f": "float", "i": "integer", "u": "unsigned_integer"}[kind]
    name = identifier(f"{base}_{size}_{unit.replace('/', '_per_').replace('.', '_')}")
    if name in made:
        return name
    made.add(name)
    if coded:
        entry = _element(types, "EnumeratedParameterType", name=name)
        _element(entry, "UnitSet")
        _element(entry, "IntegerDataEncoding", sizeInBits=str(size), encoding="twosComplement")
        listed = _element(entry, "EnumerationList")
        for label, value in CODES[group].items():
            _element(listed, "Enumeration", value=str(value), label=label)
    elif kind == "f":
        entry = _element(types, "FloatParameterType", name=name, sizeInBits=str(size))
        _units(entry, unit)
        _element(entry, "FloatDataEncoding", sizeInBits=str(size), encoding="IEEE754_1985")
    else:
        _integer(types, name, size, kind == "i", unit)
    return name


def _integer(types: ET.Element, name: str, bits: int, signed: bool, unit: str) -> None:
    entry = _element(types, "IntegerParameterType", name=name, signed=str(signed).lower(), sizeInBits=str(bits))
    _units(entry, unit)
    _element(entry, "IntegerDataEncoding", sizeInBits=str(bits), encoding="twosComplement" if signed else "unsigned")


def _units(entry: ET.Element, unit: str) -> None:
    units = _element(entry, "UnitSet")
    if unit:
        _element(units, "Unit", description=unit).text = unit


def _entries(parameters: ET.Element, container: ET.Element, entries: list[tuple[str, str, str]]) -> None:
    listed = _element(container, "EntryList")
    for name, kind, meaning in entries:
        parameter = _element(parameters, "Parameter", name=name, parameterTypeRef=kind)
        if meaning:
            _element(parameter, "LongDescription").text = meaning
        _element(listed, "ParameterRefEntry", parameterRef=name)


def _base(container: ET.Element, name: str, parameter: str, value: int) -> None:
    base = _element(container, "BaseContainer", containerRef=name)
    _element(_element(base, "RestrictionCriteria"), "Comparison", parameterRef=parameter, value=str(value), useCalibratedValue="false")


def _element(parent: ET.Element | None, tag: str, **attributes: str) -> ET.Element:
    name = f"{{{NAMESPACE}}}{tag}"
    return ET.Element(name, attributes) if parent is None else ET.SubElement(parent, name, attributes)
