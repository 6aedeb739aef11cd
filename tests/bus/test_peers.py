"""Who is behind a local connection: the user whose process it is, or the name of its key."""

import os
import subprocess
import sys
import tempfile
import textwrap

import msgpack
import pytest
import zmq

from hil_server.bus import peers
from hil_server.bus.peers import Peers
from hil_server.bus.wire import Curve, DoorKeeper, bind, connect, make_keys
from hil_server.errors import ConfigurationError

ME = peers._name(os.geteuid())
OTHER = 65534
SENDER = """
    import os, sys, zmq
    os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(sys.argv[1])
    socket.send_multipart([b"command", b"x"])
    print("sent", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(request):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        yield {"tcp": "tcp://127.0.0.1:*", "ipc": f"ipc://{folder}/command"}[request.param]


@pytest.fixture
def bound():
    context, made, doors = zmq.Context(), [], []

    def make(address, users=(), curve=None, shared=True):
        door = DoorKeeper(context, curve) if curve is not None else None
        doors.append(door)  # its socket lives until the context closes it
        socket = bind(context, zmq.ROUTER, "command_address", address, curve, 10, shared)
        made.append(Peers(socket, users, curve is not None))
        return made[-1], socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0"), socket, door

    yield make
    context.destroy(linger=0)


def received(peer, socket, door=None):
    while not socket.poll(50):
        if door is not None:
            door.serve()
    return peer.recv_multipart(zmq.NOBLOCK)


@pytest.mark.parametrize("place", ["tcp", "ipc"], indirect=True)
def test_a_message_of_one_s_own_is_let_in_by_name(bound, place):
    peer, address, socket, _ = bound(place)
    client = connect(zmq.Context.instance(), zmq.DEALER, address, 10)
    for _ in range(2):
        client.send_multipart([b"command", b"x"])
        frames = received(peer, socket)
        assert frames[1:] == [b"command", b"x"] and (peer.name, peer.refusal) == (ME, "")
    client.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("place", ["tcp", "ipc"], indirect=True)
def test_another_user_s_process_may_not_unless_it_is_named(bound, place, allowed):
    name = peers._name(OTHER)
    peer, address, socket, _ = bound(place, [name] if allowed else [])
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(SENDER), address, str(OTHER)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:  # fmt: skip
        assert other.stdout.readline() == b"sent\n"
        received(peer, socket)
        assert peer.name == name
        assert (peer.refusal == "") is allowed
        if not allowed:
            assert peer.refusal.startswith(f"user {name} may not command this run: [telemetry] users names who may, beside {ME}")
        other.stdin.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_an_ipc_address_of_one_user_cannot_be_opened_by_another(bound, tmp_path):
    bound(f"ipc://{tmp_path}/command", shared=False)
    assert os.stat(tmp_path / "command").st_mode & 0o777 == 0o600


def test_a_connection_without_an_owner_is_refused(bound, monkeypatch):
    peer, address, socket, _ = bound("tcp://127.0.0.1:*")
    monkeypatch.setattr(peers, "TABLES", dict.fromkeys(peers.TABLES, os.devnull))
    monkeypatch.setattr(peers.Path, "read_text", lambda self: "head\n")
    client = connect(zmq.Context.instance(), zmq.DEALER, address, 10)
    client.send_multipart([b"command", b"x"])
    received(peer, socket)
    assert peer.refusal.startswith("nothing says which user of this machine sends this: use keys")
    client.close()


def test_a_key_gives_its_name(bound, tmp_path):
    make_keys(tmp_path, ("anna", "boris"))
    curve = Curve.from_folder(tmp_path)
    assert curve.names == ("anna", "boris")
    peer, address, socket, door = bound("tcp://127.0.0.1:*", curve=curve)
    public, secret = zmq.auth.load_certificate(tmp_path / "clients" / "boris.key_secret")
    client = connect(zmq.Context.instance(), zmq.DEALER, address, 10, curve.public_key, (public.decode(), secret.decode()))
    client.send_multipart([b"command", msgpack.packb({"client": "anna"})])
    received(peer, socket, door)
    assert (peer.name, peer.refusal) == ("boris", "")
    client.close()


def test_an_ipc_address_that_cannot_be_is_named(bound):
    with pytest.raises(ConfigurationError, match="telemetry.command: cannot bind"):
        bound("ipc:///no/such/folder/command")
