"""What is fuzzed: everything that reads a file or a message of somebody else, through the functions that the program itself calls.

A target makes an input from a seeded generator (`make`) and gives it to the program (`run`), which answers or raises RefusedError. WEIGHT:
share of the inputs of a long run, more where one costs less.
"""

import contextlib
import ctypes
import io
import json
import random
import re
import signal
import socket
import struct
from pathlib import Path

import numpy as np

from hil_server.errors import HilError, InternalError
from tests.fuzz.mutation import NUMBERS, WHOLE, any_value, mutated_bytes, mutated_tree

SHIPPED = Path(__file__).parents[2] / "stand_configs"


class RefusedError(Exception):
    """Raised by `refusing` for an error of ours that has an exit code in words."""


@contextlib.contextmanager
def refusing(*kinds: type[BaseException]):
    """Errors that the command line answers with exit 2, 3 or 4; further kinds: of the level that the target calls."""
    try:
        yield
    except InternalError:
        raise
    except (HilError, *kinds) as error:
        assert str(error).strip(), "a refusal without words"
        raise RefusedError(str(error)) from None
    except OSError as error:
        if error.filename is None:
            raise
        raise RefusedError(str(error)) from None


class Target:
    name = ""
    WEIGHT = 1
    REFUSALS: tuple[type[BaseException], ...] = (RefusedError,)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random):
        raise NotImplementedError

    def run(self, given) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


# --------------------------------------------------------------------------------------------------------------------- logs

SHORT_RUN = ("guidance.settle_s=0.05", "test.duration_max_s=0.2")
LINES = {
    "plain": (),
    "phased": ("compensation.part=phased", 'compensation.contact={part="pose_referenced_force", stiffness_n_per_m=1e5}'),
    "series": ("compensation.part=adaptive_time_series",),
    "crafts": ('dynamics.part="two_crafts"', 'test.active_vehicle="manipulators/transport_ship_probe.toml"'),
}


def short_log(folder: Path, name: str, overrides: tuple[str, ...]) -> Path:
    """The log of some tenths of a second in process."""
    from hil_server.config import load_test
    from hil_server.run.session import Options, simulate

    return Path(simulate(load_test(None, [*SHORT_RUN, *overrides]), Options(out=str(folder / name), quiet=True, report=False))["log"])


def small_log(folder: Path, count: int = 60) -> Path:
    """A log with every field filled, aux channels, a header, a few ticks a chunk, no configuration that could be built."""
    from hil_server.log.header import LogHeader
    from hil_server.log.record import record_dtype
    from hil_server.log.writer import LogWriter

    aux = (("damper_stroke", "m", "strokes", 3), ("temperature", "K", "oil", 1))
    header = LogHeader("fuzz", build_id="id", mode="live", configuration={"configuration.toml": "a = 1\n"}, aux=aux, host={"kernel": "6"},
                       notes=["one"], delay_ledger={"ticks": 0.001}, calibration={"bias": [1.0]}, initial_record=bytes(64),
                       states={"dynamics": bytes(16)}, created=1.7e9)  # fmt: skip
    records = np.random.default_rng(3).integers(0, 100, (count, record_dtype(4).itemsize), dtype=np.uint8).view(record_dtype(4)).reshape(-1)
    records["tick"] = np.arange(count)
    records["time_ns"] = records["tick"] * 1_000_000
    file = folder / "small.mcap"
    writer = LogWriter(file, header)
    for start in range(0, count, 7):
        writer.write(records[start : start + 7])
        writer.flush()
    writer.close({"end": "captured"})
    return file


def places_of(data: bytes) -> list[tuple[int, int, int]]:
    """(opcode, start of its body, length) of every record of an MCAP file."""
    found, at = [], 8
    while at + 9 <= len(data):
        length = int.from_bytes(data[at + 1 : at + 9], "little")
        if at + 9 + length > len(data):
            break
        found.append((data[at], at + 9, length))
        at += 9 + length
    return found


class Logs(Target):
    """The bytes of a log: reading, damage, missing ticks, recovery. Half the changes are made inside a chunk that is packed again."""

    name, WEIGHT = "logs", 30_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data = small_log(folder).read_bytes()
        self.places = places_of(self.data)
        self.file = folder / "input.mcap"

    def make(self, rng):
        data, kind = self.data, rng.random()
        if kind < 0.25:
            return mutated_bytes(rng, data, [data])
        opcode, start, length = rng.choice(self.places)
        body = data[start : start + length]
        if opcode == 6 and kind < 0.75:
            changed = self._chunk(rng, body)
        else:
            changed = mutated_bytes(rng, body, [data], 2)
        claimed = len(changed) if rng.random() < 0.9 else int(rng.choice(WHOLE)) % 2**64
        return data[: start - 8] + claimed.to_bytes(8, "little") + changed + data[start + length :]

    def _chunk(self, rng, body):
        """Another content, packed as a stranger would: sizes and checksums right or wrong, with and without the size in the frame."""
        import zlib

        import zstandard

        at = 28
        name = int.from_bytes(body[at : at + 4], "little")
        raw = zstandard.decompress(body[at + 4 + name + 8 :], 1 << 24)
        kind = rng.randrange(4)
        if kind == 0:
            raw = mutated_bytes(rng, raw, [raw], 2)
        elif kind == 1:
            raw = bytes(rng.choice((1 << 16, 1 << 22, 1 << 25)))
        elif kind == 2:
            raw = raw * rng.choice((2, 40))
        packed = zstandard.ZstdCompressor(level=1, write_content_size=rng.random() < 0.5).compress(raw)
        if rng.random() < 0.2:
            packed = mutated_bytes(rng, packed, [body], 1)
        size = len(raw) if rng.random() < 0.7 else int(rng.choice(WHOLE)) % 2**64
        crc = zlib.crc32(raw) if rng.random() < 0.7 else rng.choice((0, 1))
        compression = rng.choice((b"zstd", b"zstd", b"zstd", b"", b"lz4", b"\xff"))
        return (body[:16] + struct.pack("<QII", size, crc, len(compression)) + compression + len(packed).to_bytes(8, "little") + packed)

    def run(self, given):
        from hil_server.log.reader import read_log

        self.file.write_bytes(given)
        with refusing():
            log = read_log(self.file)
            log.damaged()
            log.missing()
            assert (np.diff(log.records["tick"]) > 0).all()


class Sealed(Target):
    """Logs whose checksums are right and whose contents are hostile, through replay and what reads a run: summary, comparison, export."""

    name, WEIGHT = "sealed_logs", 800
    FORMATS = ("csv", "parquet", "mat", "operator")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from hil_server.log.reader import read_log

        self.logs = [read_log(short_log(folder, name, overrides)) for name, overrides in LINES.items()]
        self.original = folder / "plain" / "run.mcap"
        self.number = 0

    def make(self, rng):
        which = rng.randrange(len(self.logs))
        log = self.logs[which]
        header = {}
        records = []
        if rng.random() < 0.6:
            name = rng.choice(("configuration", "states", "states", "initial_record", "calibration", "delay_ledger", "prediction", "host",
                               "notes", "aux", "period_ns", "mode", "created"))  # fmt: skip
            value = getattr(log.header, name)
            if name == "states":
                role = rng.choice(list(value))
                state = mutated_bytes(rng, value[role], [value[role]], 2) if rng.random() < 0.3 else _words(rng, value[role])
                header[name] = {**value, role: state}
            elif name == "configuration":
                text = mutated_bytes(rng, value["configuration.toml"].encode(), [b"1e9"], 2)
                header[name] = {"configuration.toml": text.decode(errors="replace")}
            elif name == "initial_record":
                header[name] = _words(rng, value)
            elif name == "aux":
                header[name] = tuple(value[: rng.randrange(len(value) + 1)])
            elif name in ("period_ns", "mode", "created"):
                header[name] = rng.choice({"period_ns": (1, 10**9, 10**10), "mode": ("", "live", "imported"), "created": (0.0, 1e10)}[name])
            else:
                header[name] = mutated_tree(rng, value) if isinstance(value, dict) else [any_value(rng)]
        fields = [n for n in log.records.dtype.names if n not in ("record_crc",)]
        for _ in range(rng.choice((0, 1, 5, 40))):
            name = rng.choice(fields)
            records.append((rng.randrange(log.ticks), name, rng.random(), rng.choice(NUMBERS), rng.choice(WHOLE)))
        drop = (rng.randrange(log.ticks), rng.choice((1, 5, 100))) if rng.random() < 0.3 else None
        use = rng.choice(("replay", "replay", "replay", "summary", "compare", "export", "what_if"))
        return which, header, records, drop, use, rng.choice(self.FORMATS)

    def run(self, given):
        from dataclasses import replace

        from hil_server.exchange.export import SUFFIXES, export
        from hil_server.judge.run import Run
        from hil_server.judge.summary import summarise
        from hil_server.log.reader import read_log
        from hil_server.log.record import record_dtype
        from hil_server.log.writer import LogWriter
        from hil_server.report.comparison import compare_runs
        from hil_server.run import replay

        which, changes, changed, drop, use, form = given
        log = self.logs[which]
        self.number += 1
        file = self.folder / "sealed.mcap"
        file.unlink(missing_ok=True)
        header = replace(log.header, **{k: v for k, v in changes.items() if k != "aux"})
        if "aux" in changes:
            header.aux = changes["aux"]
        records = np.zeros(log.ticks, record_dtype(header.aux_count))
        for name in log.records.dtype.names:
            records[name] = log.records[name][:, : header.aux_count] if name == "aux" else log.records[name]
        for i, name, where, number, whole in changed:
            cell = records[name][i : i + 1].reshape(-1)
            if not len(cell):
                continue
            at = int(where * len(cell))
            kind = cell.dtype.kind
            cell[at] = number if kind == "f" else bits_of(whole, cell.dtype)
            records[name][i : i + 1] = cell.reshape(records[name][i : i + 1].shape)
        if drop:
            records = np.delete(records, slice(drop[0], drop[0] + drop[1]))
        writer = LogWriter(file, header)
        writer.write(records)
        writer.close({"end": "captured"})
        with refusing():
            if use == "replay":
                replay.replay(file, verify=True)
            elif use == "what_if":
                replay.replay(file, overrides=("compensation.lead_factor=0.5",))
            elif use == "summary":
                summarise(Run(read_log(file)))
            elif use == "compare":
                compare_runs(Run(read_log(self.original)), Run(read_log(file)))
            else:
                export(file, form, self.folder / f"out{SUFFIXES[form]}")


class Reports(Sealed):
    """The same through the page with its pictures: some hundred milliseconds each."""

    name, WEIGHT = "reports", 60

    def run(self, given):
        which, changes, changed, drop, _, form = given
        super().run((which, changes, changed, drop, "summary", form))
        from hil_server.report.run_page import make_report

        with refusing():
            make_report(self.folder / "sealed.mcap", self.folder / "page")


def _words(rng, data):
    """A few words of a block replaced: what an index, an offset or a pointer could become."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if len(out) >= 8:
            at = 4 * rng.randrange(len(out) // 4 - 1)
            word = struct.pack("<d", rng.choice(NUMBERS)) if rng.random() < 0.3 else (int(rng.choice(WHOLE)) % 2**64).to_bytes(8, "little")
            size = rng.choice((4, 8))
            out[at : at + size] = word[:size]
    return bytes(out)


def bits_of(value, dtype):
    """The low bits of a number as a whole number of a field."""
    whole = int(value) if value == value and abs(value) < 1e300 else 0
    return np.array(whole % 2**64, np.uint64).astype(dtype)


class States(Target):
    """Blocks of every stage, as a log holds them; what is taken runs on hostile samples."""

    name, WEIGHT = "states", 60_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from hil_server import registry
        from hil_server.config import load_test
        from hil_server.line import assembly
        from rt_kernels.stages import STAGE_ROLES
        from tests.contracts.conftest import SHIP, valid_keys

        test = assembly.simulation(load_test(None, [SHIP]))  # what every part in the registry can be built from
        self.first = test.line.sample
        self.parts = {}
        for role in STAGE_ROLES:
            for name in registry.PARTS[role]:
                keys = valid_keys(role, name)
                if "kernels" in {p.key for p in registry.part(role, name).PARAMETERS}:
                    keys["kernels"] = "general"
                self.parts[role, name] = assembly.build_part(role, name, keys, test.context)
        self.blocks = {key: part.dump() for key, part in self.parts.items()}
        self.small = [key for key, block in self.blocks.items() if len(block) < 4000]
        self.doubles = [n for n in self.first.dtype.names if self.first.dtype[n].base.kind == "f"]
        self.wholes = [n for n in self.first.dtype.names if self.first.dtype[n].base.kind in "iu"]

    def make(self, rng):
        key = rng.choice(self.small) if rng.random() < 0.9 else rng.choice(list(self.parts))
        block = self.blocks[key]
        kind = rng.random()
        state = block if kind < 0.4 else mutated_bytes(rng, block, [block], 1) if kind < 0.5 else _words(rng, block)
        samples = []
        for _ in range(rng.randint(1, 3)):
            changes = [(rng.choice(self.doubles), rng.random(), rng.choice(NUMBERS)) for _ in range(rng.randint(0, 4))]
            changes += [(rng.choice(self.wholes), rng.random(), rng.choice(WHOLE)) for _ in range(rng.randint(0, 4))]
            if rng.random() < 0.3:
                changes.append(("command_code", 0.0, rng.randrange(40)))
                changes += [("command_arg", rng.random(), rng.choice((*NUMBERS, *range(-2, 9)))) for _ in range(3)]
            samples.append((rng.choice((0, 1, 2, 3, 4, 5, 6, 7)), changes))
        return key, state, samples

    def run(self, given):
        key, state, samples = given
        part = self.parts[key]
        part.load_unchecked(self.blocks[key])
        try:
            part.load(state)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        sample, aux = self.first.copy(), None
        for phase, changes in samples:
            sample["periods"], sample["phase"] = 1, phase
            for name, where, value in changes:
                cell = sample[name].reshape(-1)
                at = int(where * len(cell))
                cell[at] = value if cell.dtype.kind == "f" else bits_of(value, cell.dtype)
            for _ in range(2):
                aux = part.step(sample, aux)


class Checkpoints(Target):
    """Checkpoints of whole lines, as a log holds them, with every kind of stage, unit and stand; a line that is put back runs on."""

    name, WEIGHT = "checkpoints", 60_000
    LINES = (
        ("docking.toml", ["compensation.part=adaptive_time_series"], 400),
        ("virtual_docking.toml", ["test.rate_hz=1000"], 300),
        ("virtual_docking_hydraulic.toml", [], 200),
        ("rubbing_contacts.toml", ["compensation.part=polynomial"], 200),
        ("berthing.toml", [], 200),
        ("virtual_docking_ring.toml", [], 200),
        ("virtual_docking_thrusters.toml", [], 200),
        ("virtual_docking_flexible.toml", [], 200),
        ("virtual_docking_movable_limiter.toml", [], 200),
        ("elastic_contact.toml", [], 200),
        ("berthing_pins.toml", [], 200),
        ("berthing_head.toml", [], 200),
        ("docking.toml", ['dynamics.part="two_crafts"', 'test.active_vehicle="manipulators/transport_ship_probe.toml"'], 200),
        ("docking.toml", ['compensation.part="phased"', 'compensation.contact={part="pose_referenced_force", stiffness_n_per_m=1e5}'], 200),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from hil_server.config import load_test
        from hil_server.host.build import build_id
        from hil_server.line import assembly
        from hil_server.line.checkpoints import take
        from rt_kernels.loop import LoopLine

        self.lines = []
        for file, settings, ticks in self.LINES:
            test = assembly.simulation(load_test(SHIPPED / "programmes" / file, settings))
            clock = assembly.simulation_clock(period_ns=test.period_ns, duration_ns=test.period_ns)
            test.line = LoopLine(clock, test.line.ports, test.line.stages, None, test.line.tuning)
            clock.extend(ticks)
            test.line.run()
            kept = take(test, build_id(), "fuzz")
            self.lines.append((test, kept, sorted(name for name, block in kept.parts.items() if block)))

    def make(self, rng):
        line = rng.randrange(len(self.lines))
        _, kept, names = self.lines[line]
        parts = dict(kept.parts)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            name = rng.choice(names)
            parts[name] = mutated_bytes(rng, parts[name], [parts[name]], 2) if rng.random() < 0.15 else _words(rng, parts[name])
        how = rng.random()
        head = {"tick": rng.choice(WHOLE)} if how < 0.03 else {"build_id": "another"} if how < 0.05 else {}
        return line, parts, head

    def run(self, given):
        from dataclasses import replace

        from hil_server.line.checkpoints import put_back
        from hil_server.log.checkpoint import Checkpoint

        line, parts, head = given
        test, kept, _ = self.lines[line]
        try:
            with refusing(ValueError):
                put_back(Checkpoint.unpacked(replace(kept, parts=parts, **head).packed()), test)
            test.line.clock.extend(3)
            test.line.run()
        finally:
            test.line.restore(kept.parts)


# ---------------------------------------------------------------------------------------------------------------- the wires


class Datagrams(Target):
    """Datagrams of a force sensor through the RDT port's own socket."""

    name, WEIGHT = "datagrams", 250_000
    RECORD = struct.Struct(">IIIiiiiii")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import threading

        from drivers.wrench_sensors.rdt import RdtPort
        from rt_kernels.layout import SAMPLE_DTYPE

        self.sample = np.zeros(1, SAMPLE_DTYPE)
        self.aux = np.zeros(1)
        self.sensor = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sensor.bind(("127.0.0.1", 0))
        self.port = RdtPort(address="127.0.0.1", stream_port=self.sensor.getsockname()[1], scaling="given")
        answer = threading.Thread(target=self._answer)
        answer.start()
        self.port.open()
        answer.join()

    def _answer(self):
        _, self.peer = self.sensor.recvfrom(100)
        self.sensor.sendto(self.RECORD.pack(1, 1, 0, *range(6)), self.peer)

    def make(self, rng):
        made = []
        for _ in range(rng.choice((1, 1, 2, 5))):
            head = [rng.choice((rng.randrange(2**32), 0, 2**32 - 1, 5)) for _ in range(3)]
            data = self.RECORD.pack(*head, *(rng.choice((0, -(2**31), 2**31 - 1, rng.randrange(1000))) for _ in range(6)))
            made.append(mutated_bytes(rng, data, [data], 2) if rng.random() < 0.7 else data)
        return made

    def run(self, given):
        for data in given:
            self.sensor.sendto(data[:60_000], self.peer)
        self.port.read(self.sample, self.aux)
        assert np.isfinite(self.sample["wrench_raw"]).all()
        if not self.port.counters()["corrupt"] % 2:
            return
        raise RefusedError("damaged datagrams were counted")

    def close(self):
        self.port.close()
        self.sensor.close()


class Frames(Target):
    """CAN frames of six drives through the ports of both profiles."""

    name, WEIGHT = "can_frames", 200_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from drivers.drives import cia402, cia408
        from rt_kernels.layout import SAMPLE_DTYPE
        from tests.drivers.library_drives import LibraryDrives

        self.sample, self.aux = np.zeros(1, SAMPLE_DTYPE), np.zeros(1)
        self.peers = []
        for kind, cls in ((402, cia402.Cia402Port), (408, cia408.Cia408Port)):
            peer = LibraryDrives(kind)
            port = cls(links=peer.link, zero_m=[1.0] * 6, timeout_s=5.0, heartbeat_ms=100)
            peer.ports.append(port)
            port.open()
            peer.let_go()
            self.peers.append((peer, port))

    def make(self, rng):
        frames = []
        for _ in range(rng.choice((1, 2, 6, 20))):
            base = rng.choice((0x80, 0x180, 0x280, 0x380, 0x700, 0x000, 0x580, rng.randrange(2**32)))
            body = bytes(rng.choice((0, 0xFF, rng.randrange(256))) for _ in range(8))
            frame = struct.pack("=IB3x8s", (base + rng.randrange(9)) % 2**32, rng.choice((0, 1, 4, 6, 8, 8, 9, 255)), body)
            frames.append(mutated_bytes(rng, frame, [frame], 2) if rng.random() < 0.3 else frame)
        return rng.randrange(2), frames, rng.choice(NUMBERS)

    def run(self, given):
        which, frames, setpoint = given
        peer, port = self.peers[which]
        before = sum(port.counters()["link_corrupt"]) + sum(port.counters()["link_ignored"])
        for frame in frames:
            with contextlib.suppress(BlockingIOError):
                peer.far.send(frame or b"\0")
        port.read(self.sample, self.aux)
        assert np.isfinite(self.sample["measured_leg"]).all() and np.isfinite(self.sample["measured_leg_rate"]).all()
        self.sample["leg_setpoint"] = setpoint
        port.write(self.sample, self.aux)
        with contextlib.suppress(BlockingIOError):
            while True:
                peer.far.recv(100)
        if sum(port.counters()["link_corrupt"]) + sum(port.counters()["link_ignored"]) > before:
            raise RefusedError("frames were refused and counted")

    def close(self):
        for peer, _ in self.peers:
            peer.network.bus = None
            peer.far.close()
        for peer, port in self.peers:
            port.close()
            peer.near.close()


class Messages(Target):
    """Requests and hand-controller records to the desks of the telemetry process, and what a client makes of telemetry."""

    name, WEIGHT = "messages", 250_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from hil_server.bus.desks import CommandDesk, HandDesk
        from hil_server.bus.wire import pack
        from hil_server.client import _Decoder
        from rt_kernels.layout import LAYOUT_HASH
        from rt_kernels.ring import SharedBlock
        from tests.bus.list_socket import ListSocket

        self.block = SharedBlock.create(16, 0)
        self.now = 1000.0
        self.pack = pack
        self.commands = CommandDesk(ListSocket(), self.block, describe=lambda: {}, status=lambda: {}, clock=self._clock)
        self.hands = HandDesk(ListSocket(), self.block, clock=self._clock)
        self.decoder = _Decoder(None)
        self.requests = [{"id": 1, "command": "hold", "args": {}, "client": "a", "layout": LAYOUT_HASH},
                         {"id": 2, "command": "step", "args": {"coordinate": 1, "amplitude": 0.1, "rate": 0.01}},
                         {"id": 3, "take": True}, {"id": 4, "leave": True}]  # fmt: skip
        self.records = [{"seq": 5, "t": 1.5, "id": 0, "axes": [0.0] * 6, "buttons": 1}]
        batch = {"t": 1.0, "t_ns": 10**9, "tick": 7, "run": "r", "dropped": 0, "sequence": 3, "layout": LAYOUT_HASH}
        self.batches = [batch | {"channels": {"F_T": [[0.0] * 6]}, "last": {"a": 1.0}, "min": {}, "max": {}, "any": {"events": 3}}]

    def _clock(self):
        return self.now

    def make(self, rng):
        kind = rng.choice(("command", "command", "hand", "batch"))
        tree = rng.choice({"command": self.requests, "hand": self.records, "batch": self.batches}[kind])
        tree = mutated_tree(rng, tree, 2) if rng.random() < 0.8 else tree
        try:
            data = self.pack(tree)
        except (ValueError, TypeError, OverflowError):
            data = self.pack({"id": 1})
        if rng.random() < 0.4:
            data = mutated_bytes(rng, data, [data], 2)
        topic = rng.choice((b"command", b"command", b"desk", b"status", b"describe", b"hand", b"", b"x"))
        frames = [topic if kind == "command" else b"hand" if kind == "hand" else b"full", data]
        if rng.random() < 0.1:
            frames = frames[: rng.randrange(3)] + [b"more"] * rng.randrange(3)
        return kind, frames, rng.choice((0.001, 0.02, 5.0))

    def run(self, given):
        from hil_server.bus.wire import MalformedError
        from hil_server.log.record import LayoutMismatchError

        kind, frames, later = given
        self.now += later
        if kind == "batch":
            try:
                self.decoder.batch(frames)
            except (MalformedError, LayoutMismatchError) as error:
                raise RefusedError(str(error)) from None
            return
        desk = self.commands if kind == "command" else self.hands
        desk.socket.incoming.append([b"client", *frames])
        before = desk.refused if kind == "command" else sum(desk.rejected.values())
        desk.serve()
        desk.socket.outgoing.clear()
        if kind == "command":
            desk.expire()
        if (desk.refused if kind == "command" else sum(desk.rejected.values())) > before:
            raise RefusedError("answered with an error")


class Boxes(Target):
    """Bytes of a hand-controller box on a serial line, and the pages on which a force sensor tells its scaling."""

    name, WEIGHT = "devices", 60_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from drivers.hand_controllers import serial_box

        self.box = serial_box.SerialBoxSource.__new__(serial_box.SerialBoxSource)
        self.box._buffer, self.box._sequence, self.box.corrupt = b"", None, 0
        self.frames = [serial_box.encode(n, (0, 100, -100, 32767, -32768, 5), 3) for n in range(4)]
        page = ("<?xml version='1.0'?><netft><prodname>Net F/T</prodname><setserial>1</setserial><calsn>FT1</calsn>"
                "<cfgcpf>1000000</cfgcpf><cfgcpt>1000000</cfgcpt><scfgfu>N</scfgfu><scfgtu>Nm</scfgtu><comrdtrate>4000</comrdtrate>"
                "</netft>")  # fmt: skip
        self.page = page.encode()

    def make(self, rng):
        if rng.random() < 0.7:
            return "box", mutated_bytes(rng, b"".join(rng.choice(self.frames) for _ in range(3)), self.frames)
        return rng.choice(("ati", "onrobot")), mutated_bytes(rng, self.page, [self.page])

    def run(self, given):
        from types import SimpleNamespace

        from drivers.hand_controllers import FaultyDeviceError
        from drivers.wrench_sensors.rdt_scaling import scaling_of_page

        kind, data = given
        try:
            if kind == "box":
                self.box._port = SimpleNamespace(read=lambda n: data)
                self.box.read()
                self.box._buffer = self.box._buffer[-100:]
            else:
                scaling_of_page(data, kind)
        except (FaultyDeviceError, ValueError) as error:
            raise RefusedError(str(error)) from None


# -------------------------------------------------------------------------------------------------------------------- files


class Files(Target):
    """Text of a kind, changed as bytes; `read` gives it to its reader."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.corpus = [text if isinstance(text, bytes) else text.encode() for text in self.texts()]

    def texts(self):
        raise NotImplementedError

    def make(self, rng):
        return mutated_bytes(rng, rng.choice(self.corpus), self.corpus)

    def put(self, name: str, given: bytes) -> Path:
        file = self.folder / name
        file.write_bytes(given)
        return file


class Toml(Files):
    """A whole test as a log or another machine brings it: its text and its tree; a few that are taken are built."""

    name, WEIGHT = "toml", 12_000

    def texts(self):
        import tomllib

        from hil_server.config import load_test

        made = [load_test(SHIPPED / "programmes" / f"{name}.toml").as_toml() for name in ("docking", "virtual_docking", "berthing")]
        self.trees = [tomllib.loads(text) for text in made]
        return made

    def make(self, rng):
        from hil_server.config import toml_text

        build = rng.random() < 0.05
        if rng.random() < 0.5:
            return build, super().make(rng)
        tree = mutated_tree(rng, rng.choice(self.trees[:2] if build else self.trees), 2)
        try:
            return build, toml_text.dumps(tree).encode()
        except (TypeError, AttributeError, RecursionError, ValueError, UnicodeEncodeError):
            return build, super().make(rng)

    def run(self, given):
        from hil_server.config import test_from_toml
        from hil_server.line import assembly

        build, data = given
        with refusing():
            config = test_from_toml(data.decode(errors="replace"))
            if build:
                assembly.simulation(config)


class Overrides(Target):
    """`--set` items on the shipped test."""

    name, WEIGHT = "set", 15_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from hil_server.config import load_test

        self.document = load_test().document
        self.paths = list(_paths(self.document))

    def make(self, rng):
        from hil_server.config import toml_text

        items = []
        for _ in range(rng.randint(1, 2)):
            path = list(rng.choice(self.paths))
            if rng.random() < 0.3:
                path = path[: rng.randint(1, len(path))]
            if rng.random() < 0.1:
                path[-1] = rng.choice(("0", "99999999999999999999", "", "part", "\u0663", "file"))
            value = any_value(rng)
            try:
                text = toml_text.value(value)
            except TypeError:
                text = str(value)
            if rng.random() < 0.2:
                text = mutated_bytes(rng, text.encode("utf-8", "replace") or b"1", [b"[1,2"], 1).decode(errors="replace")
            items.append(".".join(path) + rng.choice(("=", "=", "=", "", " = ")) + text)
        return items, rng.random() < 0.03

    def run(self, given):
        from hil_server.config import load_test
        from hil_server.line import assembly

        items, build = given
        with refusing():
            config = load_test(None, items)
            if build:
                assembly.simulation(config)


def _paths(tree, path=()):
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from _paths(value, (*path, key))


class Programmes(Files):
    """Programmes, campaigns, hand-controller calibrations, stands: the other TOML files of the command line."""

    name, WEIGHT = "toml_files", 4_000

    def texts(self):
        self.kinds = {
            "programme": (SHIPPED / "programmes" / "docking_variants.toml").read_bytes(),
            "campaign": (SHIPPED / "programmes" / "idss_campaign.toml").read_bytes(),
            "stand": (SHIPPED / "stands" / "docking_stand.toml").read_bytes(),
            "extending": (SHIPPED / "stands" / "hydraulic_stand_elastic.toml").read_bytes(),
            "extending_arm": (SHIPPED / "manipulators" / "canadarm2.toml").read_bytes(),
            "craft": (SHIPPED / "vehicles" / "radiator.toml").read_bytes(),
            "arm": (SHIPPED / "manipulators" / "transport_ship_probe.toml").read_bytes(),
            "desk": b'station = 0\nrate_hz = 100.0\n[source]\nkind = "keyboard"\n[buttons]\ndeadman = 1\n',
        }
        # a programme of two variants is as good as one of twenty
        head, *variants = self.kinds["programme"].split(b"[[variant]]")
        self.kinds["programme"] = b"[[variant]]".join([head, *variants[:2]])
        return self.kinds.values()

    def make(self, rng):
        kind = rng.choice(list(self.kinds))
        return kind, mutated_bytes(rng, self.kinds[kind], self.corpus, 2)

    def run(self, given):
        from hil_server.campaign.plan import load_plan
        from hil_server.operator_desk.calibration import load
        from hil_server.predict.workspace import load_platform
        from hil_server.run.programme import is_programme, load_programme
        from rt_kernels.model.craft_file import read_bodies
        from rt_kernels.multibody.flexible import FlexibleTree

        kind, data = given
        file = self.put(f"{kind}.toml", data)
        readers = {"programme": load_programme, "campaign": load_plan, "stand": load_platform, "extending": load_platform,
                   "desk": lambda f: load(str(f))}  # fmt: skip
        if kind in readers:
            with refusing():
                is_programme(file)
                readers[kind](file)
        else:  # readers of the kernels know ValueError alone
            with refusing(ValueError):
                {"craft": FlexibleTree.from_toml, "arm": read_bodies, "extending_arm": read_bodies}[kind](file)


class Tables(Files):
    """CSV of wrenches, of modes and of operators, and Nastran's .f06."""

    name, WEIGHT = "csv_f06", 60_000

    def texts(self):
        row = "\n".join(f"{1_700_000_000_000_000 + 1000 * i},{i},2.0,3,4e0,5,-6" for i in range(12))
        modes = "mode,frequency_hz,generalized_mass,node,t1,t2,t3,r1,r2,r3\n1,0.5,1,3,1,0,0,0,0,0\n2,0.7,2,3,0,1,0,0,0,0\n"
        self.kinds = {
            "wrench": ("t_us,fx,fy,fz,tx,ty,tz\n" + row + "\n").encode(),
            "modes": modes.encode(),
            "operator": b"".join((SHIPPED / "programmes" / "operators" / "rt-1.csv").read_bytes().splitlines(keepends=True)[:25]),
            "f06": F06.encode(),
        }
        return self.kinds.values()

    def make(self, rng):
        kind = rng.choice(list(self.kinds))
        return kind, mutated_bytes(rng, self.kinds[kind], self.corpus)

    def run(self, given):
        from hil_server.config import modal_data
        from hil_server.exchange import foreign_logs
        from hil_server.operator_desk import script

        kind, data = given
        file = self.put(f"{kind}.csv" if kind != "f06" else "modes.f06", data)
        if kind == "wrench":
            with refusing():
                stream = foreign_logs.read_csv(file)
                grid = foreign_logs.common_grid([stream], 1e-3) if stream.time_s is not None else np.zeros(1)
                foreign_logs.resample(stream, foreign_logs.WRENCH, grid, 0.01)
        elif kind == "operator":
            with refusing():
                script.load(file)
        else:
            with refusing(modal_data.ModalDataError, UnicodeDecodeError):
                data = modal_data.read_modal_data(file)
                modal_data.csv_text(data.flexible(0.01))


F06 = """1    NORMAL MODES
0                                              R E A L   E I G E N V A L U E S
   MODE    EXTRACTION      EIGENVALUE            RADIANS             CYCLES            GENERALIZED         GENERALIZED
         1         1        1.000000E+01        3.162278E+00        5.032921E-01        1.000000E+00        1.000000E+01
         2         2        4.000000E+01        6.324555E+00        1.006584E+00        1.000000E+00        4.000000E+01
1    NORMAL MODES
      CYCLES =  5.032921E-01         R E A L   E I G E N V E C T O R   N O .          1
      POINT ID.   TYPE          T1             T2             T3             R1             R2             R3
             3      G      1.000000E+00   0.0            0.0            0.0            0.0            0.0
             4      G      1.000000E+00   0.0            0.0            0.0            0.0            0.0
1    NORMAL MODES
      CYCLES =  1.006584E+00         R E A L   E I G E N V E C T O R   N O .          2
             3      G      0.0            1.000000E+00   0.0            0.0            0.0            0.0
             4      G      0.0            1.000000E+00   0.0            0.0            0.0            0.0
"""


class Urdf(Files):
    """A model that is read is stepped, too."""

    name, WEIGHT = "urdf", 8_000

    def texts(self):
        link = ('<link name="{0}"><inertial><origin xyz="0.1 0 0" rpy="0 0 0"/><mass value="2"/>'
                '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>')  # fmt: skip
        joint = '<joint name="j{0}" type="{1}"><origin xyz="0 0 1"/><parent link="{2}"/><child link="{0}"/><axis xyz="0 0 1"/></joint>'
        return ['<robot name="r">' + "".join(link.format(n) for n in "abc") + joint.format("b", "revolute", "a")
                + joint.format("c", "fixed", "b") + "</robot>"]  # fmt: skip

    def make(self, rng):
        """Every other one stays XML: an attribute has another value."""
        if rng.random() < 0.5:
            return super().make(rng)
        one = rng.choice(list(re.finditer(rb'"[^"]*"', self.corpus[0])))
        value = rng.choice((b"", b"0", b"-1", b"1e308", b"1e-308", b"nan", b"inf", b"a", b"1 2", b"0 0 0", b"prismatic", b"1e20"))
        return self.corpus[0][: one.start() + 1] + value + self.corpus[0][one.end() - 1 :]

    def run(self, given):
        from rt_kernels.multibody import ModelError, Tree

        with refusing(ModelError), contextlib.redirect_stdout(io.StringIO()):
            tree = Tree.from_urdf(self.put("robot.urdf", given), floating_base=True)
        v = np.full(tree.nv, 0.1)
        q = tree.integrate(tree.neutral(), v, 1.0)
        tree.forward_dynamics(q, v, v)
        tree.inverse_dynamics(q, v, v)
        tree.mass_matrix(q)
        tree.momentum(q, v)


class Recordings(Files):
    """MCAP files of other programs."""

    name, WEIGHT = "foreign_mcap", 10_000

    def texts(self):
        from mcap.writer import Writer

        made = io.BytesIO()
        writer = Writer(made, chunk_size=2000)
        writer.start()
        schema = writer.register_schema("geometry_msgs/msg/WrenchStamped", "ros2msg", b"")
        ours = writer.register_channel("/wrench", "cdr", schema)
        other = writer.register_channel("/json", "json", 0)
        for i in range(20):
            cdr = struct.pack("<IiII4s", 0x100, i, 0, 2, b"a\0\0\0") + bytes(4) + struct.pack("<6d", *range(6))
            writer.add_message(ours, i * 10**6, cdr, i * 10**6)
            writer.add_message(other, i * 10**6, json.dumps({"wrench": {"fx": i}}).encode(), i * 10**6)
        writer.finish()
        return [made.getvalue()]

    def run(self, given):
        from hil_server.exchange.foreign_logs import read_mcap

        with refusing():
            read_mcap(self.put("other.mcap", given), "/wrench" if len(given) % 2 else "/json")


class Folders(Files):
    """Folders of campaigns: the card, a part of the results, the programme's progress."""

    name, WEIGHT = "campaign_folders", 15_000

    def texts(self):
        from hil_server.campaign import execution
        from hil_server.campaign.plan import load_plan

        self.plan = load_plan(SHIPPED / "programmes" / "idss_campaign.toml", cases=40)
        execution.prepare(self.plan, self.folder / "campaign")
        self.card = self.folder / "campaign" / "campaign.json"
        self.part = execution.part_file(self.folder / "campaign", (0, 20))
        execution.write_part(self.part, [{"number": i, "end": "captured", "captured": True, "peak": 1.0 * i} for i in range(20)])
        return [self.card.read_bytes(), self.part.read_bytes(), b'{"programme": "x", "ended": true, "variants": []}']

    def make(self, rng):
        which = rng.randrange(3)
        return which, mutated_bytes(rng, self.corpus[which], self.corpus)

    def run(self, given):
        from hil_server.campaign import execution
        from hil_server.console.programme import newest_programme, shown

        which, data = given
        with refusing():
            if which == 0:
                self.card.write_bytes(data)
                execution.prepare(self.plan, self.folder / "campaign")
            elif which == 1:
                self.part.write_bytes(data)
                execution.read_results(self.folder / "campaign")
            else:
                self.put("programme.json", data)
                shown(newest_programme(self.folder))


class Fmus(Files):
    """FMUs: their model descriptions, the files around them, and the tables that wire them. None is run."""

    name, WEIGHT = "fmu", 3_000

    def texts(self):
        from tests.control.fmu import factory

        self.keys = {version: factory.keys(self.folder, version, {"gain": 1.0, "fail": 0}) for version in (2, 3)}
        self.files = {version: Path(keys["file"]).read_bytes() for version, keys in self.keys.items()}
        return [factory.description(version) for version in (2, 3)]

    def make(self, rng):
        version, kind = rng.choice((2, 3)), rng.randrange(3)
        if kind == 0:
            return version, "file", mutated_bytes(rng, self.files[version], list(self.files.values()))
        if kind == 1:
            return version, "description", mutated_bytes(rng, self.corpus[version - 2], self.corpus)
        tables = {key: self.keys[version][key] for key in ("inputs", "outputs", "start")}
        named = {"inputs": {"w[0]": "joint_position[target mast.1]", "w[1]": "sensor_rate[active imu][2]"},
                 "outputs": {"thrust": "joint_target[active shoulder]", "torque[0]": "wheel_torque_A[x]"}}  # fmt: skip
        tables |= {key: tables[key] | more for key, more in named.items()}
        tree = mutated_tree(rng, tables)
        return version, "tables", tree if isinstance(tree, dict) else {"inputs": tree}

    def run(self, given):
        import hashlib
        import shutil
        import zipfile

        from rt_kernels.control.fmu.description import described
        from rt_kernels.control.fmu.part import Fmu
        from rt_kernels.parameters import checked
        from tests.control.fmu.test_description import DYNAMICS

        version, kind, data = given
        file = self.put("given.fmu", data if kind == "file" else self.files[version])
        if kind == "description":
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("modelDescription.xml", data)
                archive.writestr("binaries/linux64/controller.so", b"")
                archive.writestr("binaries/x86_64-linux/controller.so", b"")
        keys = self.keys[version] | {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        with refusing(ValueError):
            keys = checked(Fmu.PARAMETERS, keys | (data if kind == "tables" else {}))
            tables = [keys[key] or {} for key in ("inputs", "outputs", "start")]
            found = described(keys["file"], [], keys["sha256"], *tables, 1e-3, dynamics=DYNAMICS)
            shutil.rmtree(found.folder)


class Units(Files):
    """Meshes, and the field of a unit under its own hash; a unit that is made of it touches."""

    name, WEIGHT = "units", 2_000

    def texts(self):
        import trimesh

        from hil_server.config.unit_meshes import unit_arrays
        from rt_kernels.mechanisms.mesh import field_file

        box = trimesh.creation.box((0.2, 0.1, 0.1))
        field_file.write(self.folder / "made.npz", unit_arrays(box, box, cell=0.02, spacing=0.02, depth=0.003))
        return [box.export(file_type="stl"), box.export(file_type="stl_ascii"), (self.folder / "made.npz").read_bytes()]

    def run(self, given):
        import hashlib

        from hil_server.config.unit_meshes import read_mesh
        from rt_kernels.mechanisms.mesh.unit import MeshUnit

        file = self.put("unit.npz" if given[:2] == b"PK" else "unit.stl", given)
        with refusing(ValueError):
            if file.suffix == ".stl":
                read_mesh(file)
            else:
                unit = MeshUnit(field=str(file), field_sha256=hashlib.sha256(given).hexdigest())
                unit.advance([0.01, 0, 0, 0, 0, 0, 1], [0.0] * 6, 1e-3)


class Selftest(Target):
    """What the harness has to find."""

    name = "selftest"

    def make(self, rng):
        return rng.random()

    def run(self, given):
        self.number = getattr(self, "number", -1) + 1
        if 0.0 < given < 0.05:
            ctypes.string_at(0)
        if 0.05 < given < 0.1:
            signal.pause()
        if 0.1 < given < 0.3:
            _ = 1 / 0
        if 0.3 < given < 0.4:
            bytearray(1 << 40)
        if 0.4 < given < 0.6:
            raise RefusedError("no")


_EVERY = (Datagrams, Frames, Messages, Boxes, States, Checkpoints, Logs, Sealed, Reports, Toml, Overrides, Programmes, Tables, Urdf,
          Recordings, Folders, Fmus, Units)  # fmt: skip
TARGETS: dict[str, type[Target]] = {cls.name: cls for cls in _EVERY}
SHORT = {"datagrams": 1500, "can_frames": 1500, "messages": 2000, "devices": 1000, "states": 300, "checkpoints": 300, "logs": 150,
         "sealed_logs": 20, "reports": 2, "toml": 80, "set": 60, "toml_files": 60, "csv_f06": 500, "urdf": 100, "foreign_mcap": 150,
         "campaign_folders": 200, "fmu": 100, "units": 100}  # fmt: skip
