"""One stand, one run: who has a device or an address of a stand is known to the whole machine before anything of it is touched.

A claim is a name in the kernel's table of sockets (an abstract UNIX socket without connections): there is no file to be left over, the
kernel takes it back however the process ends, kill -9 included, and it lies in the network namespace, as the interfaces themselves do. A
second socket beside it says in its name who has it; `/proc/net/unix` shows both to everybody.

What is claimed: of hardware each interface, serial line and address of the device tables, of every stand the addresses on which the run
publishes and takes commands. So two stands in software with addresses of their own run side by side.
"""

import contextlib
import hashlib
import os
import pwd
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from hil_server.config import TestConfig
from hil_server.errors import DeviceError
from hil_server.values import Keys

NAME = "hil-server.stand."  # abstract socket: the claim itself
HOLDER = "hil-server.holder."  # and who has it: key, process, time, test
LONGEST = 107  # bytes of a socket's name
PLACES = ("interface", "links", "link", "address", "device")  # keys of a device table that name what it is reached by
_mine = threading.local()  # claims of this thread: what it has already, it may use again


@contextlib.contextmanager
def claimed(config: TestConfig, hardware: bool = True) -> Iterator[None]:
    """Has the stand of this test until the end of the block. hardware: its devices, too, where it has any. Raises DeviceError that says who
    has it, or which address another program has."""
    held: dict[str, int] = _mine.__dict__.setdefault("held", {})
    with contextlib.ExitStack() as stack:
        for what, place in places(config, hardware):
            if what not in held:
                stack.enter_context(_one(what, place, config.setup.test.name))
                held[what] = 1
                stack.callback(held.pop, what)
        yield


def places(config: TestConfig, hardware: bool = True) -> list[tuple[str, str]]:
    """(what, key) of all that only one run can have: a device or an address, and where the configuration says it."""
    found: dict[str, str] = {}
    stand = config.setup.stand
    if hardware and stand.hardware:
        for table, device in stand.devices.items():
            for key, value in _named(device.keys):
                found.setdefault(value, f"stand.{table}.{key}")
    for key, address in config.setup.telemetry.addresses.items():
        if address and not address.endswith(":*"):
            found.setdefault(address, f"telemetry.{key}")
    return list(found.items())


def _named(table: Keys) -> Iterator[tuple[str, str]]:
    for key in PLACES:
        for one in str(table.get(key) or "").split():
            yield key, one


@contextlib.contextmanager
def _one(what: str, place: str, test: str) -> Iterator[None]:
    key = hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
    # the owner is written before the claim: a refusal can name it
    about = f"{HOLDER}{key}.{os.getpid()}.{int(time.time())}.{test}".encode()[:LONGEST].decode(errors="ignore")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        with contextlib.suppress(OSError):
            holder.bind("\0" + about)
        try:
            claim.bind("\0" + NAME + key)
        except OSError:
            raise DeviceError(f"{place}: {what} is in use by {_holder(key)}: one stand, one run; end that one, or name another") from None
        if place.startswith("telemetry.") and not _free(what):
            raise DeviceError(f"{place}: another program listens on {what}: end it, or set {place} to another address")
        yield


def _holder(key: str) -> str:
    """Who has a claim, in words."""
    pattern = re.compile(rf"@{re.escape(HOLDER + key)}\.(\d+)\.(\d+)\.(.*)")
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="replace").splitlines():
            found = pattern.search(line)
            if found and (process := int(found[1])) != os.getpid():
                since = time.strftime("%F %T", time.localtime(int(found[2])))
                return f"process {process} of {_user(process)}, test {found[3]!r}, since {since}"
    return "another run of this process"


def _user(process: int) -> str:
    try:
        number = os.stat(f"/proc/{process}").st_uid
        return pwd.getpwuid(number).pw_name
    except (OSError, KeyError):
        return "another user"


def _free(address: str) -> bool:
    """Whether an address is free, i.e. no process listens on it of the bus."""
    kind, _, rest = address.partition("://")
    if kind == "ipc":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            return one.connect_ex(rest) != 0
    host, _, port = rest.rpartition(":")
    if kind != "tcp" or not port.isdecimal():
        return True
    try:
        family, *_, place = socket.getaddrinfo(None if host in ("*", "") else host.strip("[]"), int(port), type=socket.SOCK_STREAM,
                                               flags=socket.AI_PASSIVE)[0]  # fmt: skip
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(place)
    except OSError:
        # an interface's name, an address of another machine: the bus says what it is
        return not _taken(host, int(port))
    return True


def _taken(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host.strip("[]") if host not in ("*", "") else "127.0.0.1", port), 0.1):
        return True
    return False
