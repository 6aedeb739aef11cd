"""Starts the telemetry process from the server and closes it. See `drain.py` for what passes between them."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from hil_server.errors import ConfigurationError, HilError, InternalError
from hil_server.telemetry.log_file import LogHeader
from hil_server.telemetry.settings import TelemetrySettings, start_line

ROOT = Path(__file__).resolve().parents[2]
# as `python -m hil_server.telemetry.drain`, but of this very installation wherever it is started from
BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from hil_server.telemetry.drain import main; sys.exit(main(sys.argv[1:]))"


class TelemetryProcess:
    """The running telemetry process of one run. Made by `start`; end it with `finish`.

    endpoints: settings key → address as bound. closed: what it said at its end, or None.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lines: Queue[dict[str, Any]] = Queue()
        self._reader = threading.Thread(target=self._read, name="telemetry-answers", daemon=True)
        self._reader.start()
        self.endpoints: dict[str, str] = {}
        self.closed: dict[str, Any] | None = None

    @classmethod
    def start(cls, block_fd: int, settings: TelemetrySettings, header: LogHeader, timeout_s: float = 20.0) -> "TelemetryProcess":
        """Starts it and waits until its log is open and its sockets are bound. Call before the loop starts.

        Raises ConfigurationError (addresses, keys, log path) or InternalError.
        """
        process = subprocess.Popen(
            [sys.executable, "-c", BOOT, str(ROOT), "--fd", str(block_fd)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(block_fd,),
        )
        self = cls(process)
        try:
            self._tell(start_line(settings, header.to_json()))
            answer = self._answer(timeout_s)
            if "ready" not in answer:
                kind = ConfigurationError if answer.get("exit_code") == 2 else InternalError
                raise kind(answer.get("error", "the telemetry process did not start"))
        except HilError:
            self.kill()
            raise
        self.endpoints = answer["ready"]
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def finish(self, facts: dict[str, Any] | None = None, timeout_s: float = 60.0) -> dict[str, Any]:
        """Ends the log with `facts` (JSON values). Returns path, ticks, lost_ticks, complete, reasons, overflow.

        Call when the loop has ended. Raises InternalError when the process has died or does not end in time; the log then ends at its
        last whole chunk.
        """
        if self.closed is None:
            self._tell(json.dumps({"close": facts or {}}, default=str))
            self.closed = self._answer(timeout_s).get("closed")
            self._end(10.0)
        if self.closed is None:
            raise InternalError("the telemetry process ended without closing the log; it is readable up to its last 0.1 s")
        return self.closed

    def kill(self) -> None:
        self._process.kill()
        self._end(10.0)

    def _end(self, timeout_s: float) -> None:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout_s)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has died; the missing answer says so

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        try:
            return self._lines.get(timeout=timeout_s)
        except Empty:
            raise InternalError(f"the telemetry process (pid {self.pid}) gave no answer within {timeout_s:g} s") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._lines.put(json.loads(line))
            except ValueError:
                continue
        self._lines.put({"error": "the telemetry process ended"})
