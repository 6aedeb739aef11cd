"""How fast a log is written and read: `python tools/bench_log.py [TICKS]`. Noisy signals, 60 000 ticks, wall clock, best of three."""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from hil_server.log.header import LogHeader
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter


def records(count: int) -> np.ndarray:
    rng, time_s = np.random.default_rng(0), np.arange(count) * 1e-3
    out = np.zeros(count, record_dtype(4))
    for name in out.dtype.names or ():
        field = out[name]
        if field.dtype.kind == "f":
            wave = np.sin(3.0 * time_s + len(name)).reshape((count,) + (1,) * (field.ndim - 1))
            field[...] = wave + 1e-6 * rng.standard_normal(field.shape)
    out["tick"], out["time_ns"] = np.arange(count), np.arange(count) * 1_000_000
    return out


def main(argv: list[str]) -> int:
    count = int(argv[0]) if argv else 60_000
    made = records(count)
    data, size = made.tobytes(), made.dtype.itemsize
    write, read, check = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(3):
            path = Path(folder) / f"{i}.mcap"
            began = time.perf_counter()
            writer = LogWriter(path, LogHeader("bench", aux=(("a", "m", "", 4),)))
            for start in range(0, count, 1000):
                writer.write(data[start * size : (start + 1000) * size])
            writer.close()
            write.append(time.perf_counter() - began)
            began = time.perf_counter()
            log = read_log(path)
            read.append(time.perf_counter() - began)
            began = time.perf_counter()
            assert log.damaged() == []
            check.append(time.perf_counter() - began)
        megabytes = path.stat().st_size * 1e-6
    print(f"{count} ticks of {size} bytes, {len(data) * 1e-6:.0f} MB raw, {megabytes:.0f} MB in the file")
    for name, seconds in (("written", write), ("read", read), ("checked", check)):
        print(f"{name:8s} {count / min(seconds):9.0f} ticks/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
