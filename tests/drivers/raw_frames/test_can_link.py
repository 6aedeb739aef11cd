"""CAN links by name and the set-up bus over them: frames as they lie on the wire, ends that are gone, names that cannot be."""

import os
import socket
import struct
import subprocess
import sys

import can
import pytest

from drivers.raw_frames.can_link import FRAME, FrameBus, link_names, open_link

EXTENDED, REMOTE, ERROR = 0x80000000, 0x40000000, 0x20000000  # linux/can.h


@pytest.fixture
def ends():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    far.setblocking(False)
    bus = FrameBus(near, "the bus")
    yield bus, near, far
    bus.shutdown()
    near.close()
    far.close()


def test_frame_is_that_of_the_kernel():
    """struct can_frame: identifier, length, three bytes of padding, eight of data; 16 bytes."""
    assert FRAME.pack(0x123, 2, b"\x11\x22") == struct.pack("=IB", 0x123, 2) + bytes(3) + b"\x11\x22" + bytes(6)
    assert FRAME.size == 16


@pytest.mark.parametrize(("extended", "remote", "identifier"), [(False, False, 0x7FF), (True, False, 0x1ABCDEF0), (False, True, 0x701)])
def test_message_goes_out_and_comes_in(ends, extended, remote, identifier):
    bus, _, far = ends
    data = b"" if remote else b"\x01\x02\x03"
    message = can.Message(arbitration_id=identifier, is_extended_id=extended, is_remote_frame=remote, data=None if remote else data, dlc=3)
    bus.send(message)
    raw = far.recv(100)
    assert FRAME.unpack(raw)[:2] == (identifier | EXTENDED * extended | REMOTE * remote, 3)
    far.send(raw)
    got = bus.recv(1.0)
    assert (got.arbitration_id, got.is_extended_id, got.is_remote_frame, got.dlc) == (identifier, extended, remote, 3)
    assert bytes(got.data) == data


def test_what_is_no_data_frame_is_passed_over(ends):
    """Error frames, half frames and lengths beyond eight are no one's message; the next good one is."""
    bus, _, far = ends
    far.send(FRAME.pack(ERROR | 4, 8, b""))
    far.send(b"half")
    far.send(FRAME.pack(0x181, 9, b""))
    far.send(FRAME.pack(0x181, 1, b"\x07"))
    assert bus.recv(1.0).data == b"\x07"
    assert bus.recv(0.0) is None


def test_an_end_that_is_gone_is_an_error_of_the_bus(ends):
    bus, _, far = ends
    far.close()
    with pytest.raises(can.CanOperationError, match="the bus"):
        bus.send(can.Message(arbitration_id=1, is_extended_id=False))
    assert bus.recv(0.0) is None


def test_shutdown_leaves_the_socket_to_the_loop():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    FrameBus(near, "the bus").shutdown()
    near.send(b"still open")
    assert far.recv(100) == b"still open"
    near.close()
    far.close()


def test_links_do_not_block_and_are_descriptors_of_their_own():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with open_link(f"fd:{near.fileno()}") as link:
        assert link.fileno() != near.fileno() and not link.getblocking()
    near.send(b"x")  # closing the link has not closed the end that was given
    assert far.recv(10) == b"x"
    near.close()
    far.close()
    with open_link("udp:127.0.0.1:40001") as link:
        assert link.getpeername() == ("127.0.0.1", 40001) and not link.getblocking()


@pytest.mark.parametrize("name", ["no_such_can", "fd:987654"])
def test_a_link_that_is_not_there_leaves_nothing_open(name):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConnectionError, match=name):
        open_link(name)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "name", ["udp:10.0.0.1:40001", "udp:127.0.0.1:0", "udp:127.0.0.1:99999", "fd:x", "tcp:host", "an_interface_name_too_long"]
)
def test_names_that_cannot_be(name):
    with pytest.raises(ValueError, match=name):
        link_names(f"can0 {name}")
    with pytest.raises(ValueError, match=name):
        open_link(name)


def test_list_of_names():
    assert link_names("  can0 udp:localhost:5000  fd:3 ") == ["can0", "udp:localhost:5000", "fd:3"]
    with pytest.raises(ValueError, match="at least one"):
        link_names("  ")


def test_the_libraries_load_nothing_that_no_driver_needs():
    """With asammdf installed python-can would load pandas and sympy. A user who needs asammdf afterwards has it."""
    pytest.importorskip("asammdf")
    text = "import sys, drivers.raw_frames.can_link; print({'pandas', 'sympy', 'asammdf'} & set(sys.modules)); import asammdf"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
