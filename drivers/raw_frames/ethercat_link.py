"""A raw Ethernet socket for EtherCAT frames of our own, beside another master's that sets the bus up on the same interface."""

import ctypes
import errno
import fcntl
import struct

from rt_kernels.doors import socket

ETHERTYPE = 0x88A4
FIRST_INDEX = 0x80  # of our frames; masters for set-up use low ones
_SOL_PACKET, _PACKET_QDISC_BYPASS, _SO_ATTACH_FILTER, _SO_TIMESTAMPNS = 263, 20, 26, 35
_SIOCGIFFLAGS, _IFF_RUNNING = 0x8913, 0x40
_INDEX_AT = 17  # of the first datagram: behind Ethernet (14) and EtherCAT (2) header, after the command

# Classic BPF: load the index, greater or equal FIRST_INDEX, take all of the frame, take nothing.
_FILTER = ((0x30, 0, 0, _INDEX_AT), (0x35, 0, 1, FIRST_INDEX), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0))


def open_ethercat(interface: str) -> tuple[socket.socket, bytes]:
    """A socket bound to the interface that takes only frames with index 0x80 and above, and the address of the interface, six bytes.

    Raises ConnectionError when there is no such interface, it is down, or the right to raw sockets (CAP_NET_RAW) is missing.
    """
    try:
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    except PermissionError as error:
        raise ConnectionError(f"EtherCAT on {interface}: no right to raw sockets; setcap cap_net_raw+ep on the interpreter") from error
    try:
        _take_ours(link)
        link.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        link.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        link.bind((interface, ETHERTYPE))
        link.setblocking(False)
        return link, link.getsockname()[4]
    except OSError as error:
        link.close()
        why = "there is no such interface" if error.errno == errno.ENODEV else "it is down" if error.errno == errno.ENETDOWN else error
        raise ConnectionError(f"EtherCAT on {interface}: {why}") from error


def findings(interface: str) -> list[tuple[str, str, str, str]]:
    """(level, item, found, remedy) about interface, link and the right to raw sockets; level: fail, warn, info."""
    item = f"EtherCAT {interface}"
    names = [name for _, name in socket.if_nameindex()]
    if interface not in names:
        there_are = ", ".join(sorted(set(names) - {"lo"})) or "none"
        return [("fail", item, f"there is no such interface; there are: {there_are}", "the stand file's drives.interface")]
    found = []
    if _flags(interface) & _IFF_RUNNING:
        found.append(("info", f"{item} link", "up", ""))
    else:
        found.append(("fail", f"{item} link", "down", f"ip link set {interface} up; the cable to the first slave"))
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
        found.append(("info", f"{item} raw sockets", "allowed", ""))
    except OSError as error:
        remedy = "setcap cap_net_raw+ep on the interpreter, or AmbientCapabilities of the service"
        found.append(("fail", f"{item} raw sockets", error.strerror or str(error), remedy))
    return found


def _flags(interface: str) -> int:
    """Flags of the interface (netdevice(7)), of the network that this process sees."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", interface.encode(), 0))
    flags: int = struct.unpack_from("H", request, 16)[0]
    return flags


def _take_ours(link: socket.socket) -> None:
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _FILTER)
    buffer = ctypes.create_string_buffer(program)
    link.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(_FILTER), ctypes.addressof(buffer)))
