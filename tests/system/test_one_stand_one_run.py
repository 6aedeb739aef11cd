"""One stand, one run: a second one is refused before it touches anything, with who has the stand; a taken port is no other's console."""

import getpass
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from hil_server import cli
from hil_server.config import SHIPPED, load_test
from hil_server.errors import DeviceError
from hil_server.run import claim, session

HOLD = """
import sys
from hil_server.config import load_test
from hil_server.run.claim import claimed
with claimed(load_test(None, sys.argv[1:])):
    print("has it", flush=True)
    sys.stdin.read()
"""


def of(folder, *more):
    """Settings of a stand in software with addresses of its own."""
    return [*(f"telemetry.{key}=ipc://{folder}/{key}" for key in ("publish", "command", "hand_controller")), *more]


@pytest.fixture
def holder(tmp_path):
    """A process that has the stand of `of(tmp_path)`."""
    command = [sys.executable, "-c", HOLD, *of(tmp_path, "test.name=first")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "has it\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_run_is_refused_and_says_who_has_the_stand(holder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(session, "stand_of", lambda *_: pytest.fail("a device was touched"))
    settings = [word for key in of(tmp_path) for word in ("--set", key)]
    assert cli.main(["run", *settings, "--out", str(tmp_path / "run")]) == 4
    reported = capsys.readouterr().err
    who = f"process {holder.pid} of {getpass.getuser()}, test 'first', since "
    assert re.search(f"telemetry.publish: ipc://.*/publish is in use by {who}", reported)
    assert not (tmp_path / "run").exists()
    assert cli.main(["fly", *settings, "--out", str(tmp_path / "run")]) == 4 and "in use by process" in capsys.readouterr().err


def test_a_stand_is_free_when_its_process_is_killed(holder, tmp_path):
    config = load_test(None, of(tmp_path))
    with pytest.raises(DeviceError), claim.claimed(config):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with claim.claimed(config):
        pass


def test_the_claim_of_a_programme_covers_its_variants_alone(tmp_path):
    config = load_test(None, of(tmp_path))
    other = load_test(None, of(tmp_path / "other"))
    found = []

    def elsewhere():
        for one in (config, other):
            try:
                with claim.claimed(one):
                    found.append("free")
            except DeviceError as error:
                found.append(str(error))

    with claim.claimed(config), claim.claimed(config):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert "in use by another run of this process" in found[0] and found[1] == "free"


def test_what_is_claimed_of_hardware(tmp_path):
    keys = [*of(tmp_path), f'test.stand="{SHIPPED / "stands" / "ethercat_stand.toml"}"']
    here = dict(claim.places(load_test(None, keys)))
    assert here["eth1"] == "stand.drives.interface" and here["192.168.1.1"] == "stand.wrench_sensor.address"
    assert here[f"ipc://{tmp_path}/command"] == "telemetry.command"
    assert "eth1" not in dict(claim.places(load_test(None, keys), hardware=False))
    free = load_test(None, ["telemetry.publish=tcp://127.0.0.1:*", 'telemetry.command=""', 'telemetry.hand_controller=""'])
    assert claim.places(free) == []


@pytest.mark.parametrize("kind", ["tcp://127.0.0.1:{}", "tcp://*:{}", "ipc://{}"])
def test_an_address_that_another_program_has_is_named_by_its_key(tmp_path, kind):
    if kind.startswith("ipc"):
        place = str(tmp_path / "socket")
        taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        taken.bind(place)
        taken.listen()
    else:
        taken = socket.create_server(("127.0.0.1", 0))
        place = taken.getsockname()[1]
    address = kind.format(place)
    config = load_test(None, [*of(tmp_path), f"telemetry.command={address}"])
    with taken, pytest.raises(DeviceError, match=rf"telemetry.command: another program listens on {re.escape(address)}"):
        with claim.claimed(config):
            pass
    with claim.claimed(config):
        pass


def test_an_address_of_which_nothing_is_known_here_is_left_to_the_bus():
    assert claim._free("tcp://192.0.2.1:9770") and claim._free("inproc://bus") and claim._free("tcp://127.0.0.1:*")


def test_a_page_of_somebody_else_is_not_flown_with(tmp_path, monkeypatch, capfd):
    """Somebody serves on the port of the page: nothing is flown."""
    monkeypatch.setattr(session, "_flights", lambda *_: pytest.fail("it was flown"))
    settings = [word for key in of(tmp_path) for word in ("--set", key)]
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken.settimeout(0.1)

        def answer():
            while not stop.is_set():
                try:
                    with taken.accept()[0] as line:
                        line.recv(4096)
                        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother")
                except TimeoutError:
                    continue

        thread = threading.Thread(target=answer)
        thread.start()
        port = taken.getsockname()[1]
        try:
            assert cli.main(["fly", *settings, "--port", str(port), "--out", str(tmp_path / "run")]) == 4
        finally:
            stop.set()
            thread.join()
    assert f"cannot serve on 127.0.0.1:{port}" in (reported := capfd.readouterr().err) and "--port" in reported
