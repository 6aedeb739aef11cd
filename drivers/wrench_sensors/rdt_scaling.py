"""Scaling and identity of an RDT sensor, read from the device before the run.

Sources: ATI 9620-05-NET FT (XML page, TCP interface), ATI
9610-05-Ethernet Axia; OptoForce/OnRobot: the page `/netftcalapi.xml` as the published `etherdaq_ros` driver reads it.
"""

import http.client
import math
import socket
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

XML_PAGE = {"net_ft": "/netftapi2.xml", "axia": "/netftapi2.xml", "onrobot": "/netftcalapi.xml"}

# Unit words as the devices print them → SI. A word that is not in here is refused, never guessed.
_FORCE_UNITS = {"lbf": 4.4482216152605, "n": 1.0, "klbf": 4448.2216152605, "kn": 1000.0, "kgf": 9.80665, "gf": 0.00980665}
_POUND_INCH = 0.1129848290276167
_TORQUE_UNITS = {
    "lbfin": _POUND_INCH, "inlbf": _POUND_INCH, "lbfft": 12 * _POUND_INCH, "ftlbf": 12 * _POUND_INCH,
    "nm": 1.0, "nmm": 0.001, "kgfcm": 0.0980665, "kgcm": 0.0980665, "knm": 1000.0,
}  # fmt: skip

# Codes of the TCP interface, and of ATI's sensors on CAN.
FORCE_CODES = {1: "lbf", 2: "N", 3: "klbf", 4: "kN", 5: "kgf", 6: "gf"}
TORQUE_CODES = {1: "lbf-in", 2: "lbf-ft", 3: "Nm", 4: "Nmm", 5: "kgf-cm", 6: "kNm"}

TCP_HEADER = 0x1234
TCP_READ_CALIBRATION = 1
_CALIBRATION_REPLY = struct.Struct(">HBBII6H")


@dataclass(frozen=True)
class Scaling:
    """Counts per newton and per newton metre, the rate of the stream if the device tells it (else 0), and who it is."""

    counts_per_newton: float
    counts_per_newton_metre: float
    force_unit: str
    torque_unit: str
    rate_hz: float = 0.0
    serial: str = ""
    calibration: str = ""


def newtons_per_unit(word: str) -> float:
    """Newtons per unit of a force unit word (`N`, `kN`, `lbf` ...). Raises ValueError for an unknown word."""
    key = word.strip().lower()
    if key not in _FORCE_UNITS:
        raise ValueError(f"force unit {word!r} is unknown; known: {', '.join(_FORCE_UNITS)}")
    return _FORCE_UNITS[key]


def newton_metres_per_unit(word: str) -> float:
    """Newton metres per unit of a torque unit word (`Nm`, `N-m`, `lbf-in` ...). Raises ValueError for an unknown word."""
    key = word.strip().lower()
    for separator in ("-", " ", ".", "·", "*"):
        key = key.replace(separator, "")
    if key not in _TORQUE_UNITS:
        raise ValueError(f"torque unit {word!r} is unknown; known: {', '.join(_TORQUE_UNITS)}")
    return _TORQUE_UNITS[key]


def scaling_from(counts_per_force: float, counts_per_torque: float, force_unit: str, torque_unit: str, **identity) -> Scaling:
    """Scaling in SI from what the device states in its own units. Raises ValueError when a number cannot be a scale."""
    for name, value in (("counts per force", counts_per_force), ("counts per torque", counts_per_torque)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value}: must be a number above zero")
    return Scaling(
        counts_per_force / newtons_per_unit(force_unit),
        counts_per_torque / newton_metres_per_unit(torque_unit),
        force_unit,
        torque_unit,
        **identity,
    )


def scaling_of_page(page: bytes, variant: str) -> Scaling:
    """Scaling out of the device's XML page. Raises ValueError naming the element that is missing or not a number."""
    try:
        root = ElementTree.fromstring(page)
    except ElementTree.ParseError as error:
        raise ValueError(f"the page is not XML: {error}") from error

    def text(*names: str) -> str:
        for name in names:
            found = root.find(f".//{name}")
            if found is not None and found.text and found.text.strip():
                return found.text.strip()
        return ""

    def number(*names: str, optional: bool = False) -> float:
        word = text(*names)
        if not word and optional:
            return 0.0
        try:
            return float(word)
        except ValueError:
            raise ValueError(f"element {' or '.join(names)} is {word!r}, not a number") from None

    prefix = "cal" if variant == "onrobot" else "cfg"
    units = ("calfu", "caltu") if variant == "onrobot" else ("scfgfu", "scfgtu")
    return scaling_from(
        number(f"{prefix}cpf"),
        number(f"{prefix}cpt"),
        text(units[0]),
        text(units[1]),
        rate_hz=number("comrdtrate", "rdtRate", optional=True),
        serial=text("calsn", "setserial", "prodsn"),
        calibration=text("calpn", "cfgcalsn", "setactivecfg"),
    )


def read_page(address: str, port: int, variant: str, timeout_s: float) -> Scaling:
    """Scaling by HTTP from the device's XML page. Raises ConnectionError when it is not there, ValueError when the page is wrong."""
    path = XML_PAGE[variant]
    connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        if reply.status != 200:
            raise ConnectionError(f"http://{address}:{port}{path} answered {reply.status} {reply.reason}")
        page = reply.read(1 << 20)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"no force sensor page at http://{address}:{port}{path}: {error}") from error
    finally:
        connection.close()
    return scaling_of_page(page, variant)


def read_calibration(address: str, port: int, timeout_s: float) -> Scaling:
    """Scaling by the TCP interface (command 1, calibration info). Raises ConnectionError, or ValueError for a malformed reply."""
    try:
        with socket.create_connection((address, port), timeout=timeout_s) as connection:
            connection.sendall(struct.pack(">B19x", TCP_READ_CALIBRATION))
            reply = b""
            while len(reply) < _CALIBRATION_REPLY.size:
                part = connection.recv(_CALIBRATION_REPLY.size - len(reply))
                if not part:
                    raise ConnectionError("closed before the reply was complete")
                reply += part
    except OSError as error:
        raise ConnectionError(f"no calibration info from the force sensor at tcp {address}:{port}: {error}") from error
    header, force_code, torque_code, counts_per_force, counts_per_torque, *_ = _CALIBRATION_REPLY.unpack(reply)
    if header != TCP_HEADER:
        raise ValueError(f"calibration info begins with 0x{header:04X} instead of 0x{TCP_HEADER:04X}")
    if force_code not in FORCE_CODES or torque_code not in TORQUE_CODES:
        raise ValueError(f"calibration info has the unit codes {force_code} (force) and {torque_code} (torque): unknown")
    return scaling_from(counts_per_force, counts_per_torque, FORCE_CODES[force_code], TORQUE_CODES[torque_code])
