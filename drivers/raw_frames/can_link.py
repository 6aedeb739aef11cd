"""CAN links by name, and the python-can bus over one of them for the set-up phase.

A link carries whole `struct can_frame` records of 16 bytes on a file descriptor:

* `can0` (any other name): the SocketCAN interface of that name, raw frames, error frames switched on;
* `udp:127.0.0.1:PORT`: one frame per datagram to a stand in software on this machine (another machine is refused: nothing protects
  such a bus);
* `fd:N`: a descriptor that is already open, for instance one end of a socket pair.

Before the loop and after it `canopen` talks through a `FrameBus`; during the loop the same descriptor is read and written in C.
"""

import errno
import os
import struct
from typing import Protocol

from drivers.raw_frames.can_library import can
from rt_kernels.doors import select, socket, time

FRAME = struct.Struct("=IB3x8s")  # can_id, length, data: struct can_frame of linux/can.h
_EXTENDED, _REMOTE, _ERROR = 0x80000000, 0x40000000, 0x20000000
_RECEIVE_BUFFER = 1 << 20
_CAN_RAW_ERR_FILTER = 2  # linux/can/raw.h


def link_names(text: str) -> list[str]:
    """The names in a list separated by blanks. Raises ValueError for an empty list or a name that cannot be one."""
    names = text.split()
    if not names:
        raise ValueError(f"links = {text!r}: name at least one CAN link (an interface such as can0, udp:127.0.0.1:PORT or fd:N)")
    for name in names:
        _check(name)
    return names


def _check(name: str) -> None:
    kind, _, rest = name.partition(":")
    if kind == "udp":
        host, _, port = rest.rpartition(":")
        if not port.isdigit() or not 1 <= int(port) <= 65535:
            raise ValueError(f"link {name!r}: the port must be 1...65535, as in udp:127.0.0.1:40001")
        if not (host == "localhost" or host.startswith("127.")):
            raise ValueError(f"link {name!r}: CAN frames over UDP are for the loopback only (127.0.0.1), {host!r} is not")
    elif kind == "fd":
        if not rest.isdigit():
            raise ValueError(f"link {name!r}: a descriptor number must follow, as in fd:7")
    elif ":" in name or not 1 <= len(name) <= 15:
        raise ValueError(f"link {name!r}: neither the name of an interface (1...15 characters) nor udp:HOST:PORT nor fd:N")


def open_link(name: str) -> socket.socket:
    """A non-blocking socket that carries the frames of link `name`.

    Raises ValueError for an impossible name, ConnectionError when the link is not there.
    """
    _check(name)
    kind, _, rest = name.partition(":")
    try:
        if kind == "fd":
            link = socket.socket(fileno=os.dup(int(rest)))
        elif kind == "udp":
            host, _, port = rest.rpartition(":")
            link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            link.connect((host, int(port)))
        else:
            link = _open_interface(name)
    except OSError as error:
        raise ConnectionError(f"CAN link {name!r} cannot be opened: {_reason(error)}") from error
    link.setblocking(False)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    return link


def _open_interface(name: str) -> socket.socket:
    if not hasattr(socket, "AF_CAN"):
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    link = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
    try:
        link.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_RECV_OWN_MSGS, 0)
        link.setsockopt(socket.SOL_CAN_RAW, _CAN_RAW_ERR_FILTER, 0x1FFFFFFF)
        link.bind((name,))
    except OSError:
        link.close()
        raise
    return link


def _reason(error: OSError) -> str:
    known = {
        errno.EAFNOSUPPORT: "this kernel has no CAN (AF_CAN); load the modules can and can_raw",
        errno.ENODEV: "there is no such interface (ip -details link)",
        errno.EBADF: "this descriptor is not open",
        errno.ENOTSOCK: "this descriptor is not a socket",
        errno.ENETDOWN: "the interface is down (ip link set NAME up type can bitrate 1000000)",
    }
    return known.get(error.errno or 0, str(error))


class FrameLink(Protocol):
    """What a `FrameBus` needs of a link: a socket, or what stands for one."""

    def fileno(self) -> int:
        """Descriptor to wait on until a frame has come."""

    def recv(self, size: int, /) -> bytes:
        """The next frame."""

    def send(self, data: bytes, /) -> int:
        """Sends one frame now."""


class FrameBus(can.BusABC):
    """python-can's interface on an open link; leaves the socket open when it is shut down, because the loop takes it over."""

    def __init__(self, link: FrameLink, name: str):
        self._link = link
        self.channel_info = f"frames on {name}"
        self._can_protocol = can.CanProtocol.CAN_20
        super().__init__(channel=name)

    def fileno(self) -> int:
        """Descriptor to wait on until a frame has come."""
        return self._link.fileno()

    def _recv_internal(self, timeout: float | None):
        ready, _, _ = select.select([self._link], [], [], timeout)
        if not ready:
            return None, False
        try:
            data = self._link.recv(72)
        except BlockingIOError:
            return None, False
        except OSError:
            data = b""
        if not data:
            time.sleep(0.005)  # the other end is gone: a wait for an answer ends by its time-out; no busy loop
        if len(data) != FRAME.size:
            return None, False
        identifier, length, payload = FRAME.unpack(data)
        if length > 8 or identifier & _ERROR:
            return None, False
        extended = bool(identifier & _EXTENDED)
        message = can.Message(
            timestamp=time.time(),
            arbitration_id=identifier & (0x1FFFFFFF if extended else 0x7FF),
            is_extended_id=extended,
            is_remote_frame=bool(identifier & _REMOTE),
            dlc=length,
            data=None if identifier & _REMOTE else payload[:length],
        )
        return message, False

    def send(self, msg: can.Message, timeout: float | None = None) -> None:
        """Sends one frame now (`timeout` is not used); raises can.CanOperationError when the link does not take it."""
        identifier = msg.arbitration_id | (_EXTENDED if msg.is_extended_id else 0) | (_REMOTE if msg.is_remote_frame else 0)
        try:
            self._link.send(FRAME.pack(identifier, msg.dlc, bytes(msg.data)))
        except OSError as error:
            raise can.CanOperationError(f"{self.channel_info}: {error}") from error

    def shutdown(self) -> None:
        """Ends the bus; its socket stays open."""
        super().shutdown()
