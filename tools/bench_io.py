"""Whole cycle of a live run on the virtual stand: six CANopen axes, RDT force sensor, input module, all stages.

Method: the stand runs as a process of its own (loopback UDP: 16-byte CAN frames, RDT records); the line is the live line of the shipped
docking on the wall clock at its own rate; the clock's own marks give, tick by tick, the time of reading all ports (drain, SYNC), of the
stages and of writing (setpoints). The cycle is their sum; waking up is not in it. Nothing else is done in the process while it runs.

    python tools/bench_io.py [--config FILE] [--profile cia402|cia408] [--seconds S] [--repeat N] [--json FILE]
"""

import argparse
import json
import os
import platform
import threading
import time

import numpy as np

from drivers.simulated.stand_server_client import StandProcess
from hil_server.config import load_test
from hil_server.config.model import devices_of
from hil_server.host.realtime_host import RealtimeHost
from hil_server.line import assembly
from rt_kernels.layout import SAMPLE_DTYPE

LIMIT_US = 60.0


def busy_seconds():
    """Processor time of the whole machine and of this process with its children, s."""
    with open("/proc/stat") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    own = os.times()
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def own_time_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_run(config, profile, seconds):
    """Times of each tick in us: arrays read, compute, write; and what the host gave."""
    with RealtimeHost() as host:
        context = assembly.base_context(config) | {"loop_core": host.core}
        settings = assembly.virtual_stand_settings(config, context, priority=max(0, host.priority - 20), loop_core=host.core)
        settings["drives"] = {"profile": profile}
        with StandProcess(settings) as stand:
            tables = {
                "drives": {"part": profile, "receive_timeout_periods": 50, **stand.ports["drives"]},
                "wrench_sensor": {"part": "rdt", **stand.ports["wrench_sensors"]},
                "mechanism_signals": {"part": "cia401", **stand.ports["mechanism_signals"]},
            }
            devices = list(assembly.devices(context, devices_of(tables)).values())
            try:
                for device in devices:
                    device.open()
                test = assembly.live(config, context, devices, priority=host.priority, cpu=host.core)
                for device in devices:
                    device.begin()
                thread = threading.Thread(target=test.line.run, name="loop")
                test.block.heartbeat()
                before, stand_before = busy_seconds(), own_time_of(stand.pid)
                thread.start()
                end = time.monotonic() + seconds
                while thread.is_alive() and time.monotonic() < end:
                    test.block.heartbeat()
                    time.sleep(0.02)
                test.block.request_stop()
                thread.join()
                after, stand_after = busy_seconds(), own_time_of(stand.pid)
                records = np.frombuffer(test.block.drain(1 << 20), np.uint8)
            finally:
                for device in devices:
                    device.close()
    width = SAMPLE_DTYPE.itemsize + 8 * sum(channel.count for channel in test.aux)
    samples = np.ascontiguousarray(records.reshape(-1, width)[:, : SAMPLE_DTYPE.itemsize]).view(SAMPLE_DTYPE)[:, 0]
    foreign = (after[0] - before[0]) - (after[1] - before[1]) - (stand_after - stand_before)
    # the times in a sample are those of the previous tick; the first ticks warm the caches
    times = {name: samples[f"{name}_ns"][10:] / 1e3 for name in ("read", "compute", "write")}
    facts = {
        "priority": host.priority,
        "core": host.core,
        "foreign_cores": round(max(0.0, foreign) / seconds, 2),
        "lost_records": int(samples["wrench_lost_total"][-1]),
        "axis_lost": sum(next(d for d in devices if hasattr(d, "bus_loads")).counters()["axis_lost"]),
    }
    return times, facts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=None)
    parser.add_argument("--profile", choices=("cia402", "cia408"), default="cia402")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    config = load_test(args.config)
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
    print(__doc__.split("\n\n")[1])
    print(f"machine: {model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}\n")
    results = []
    for _ in range(args.repeat):
        times, facts = one_run(config, args.profile, args.seconds)
        cycle = sum(times.values())
        row = {name: [round(float(q), 1) for q in np.percentile(x, (50, 99, 99.9))] for name, x in {**times, "cycle": cycle}.items()}
        results.append({**row, **facts, "ticks": len(cycle)})
        print(f"{len(cycle)} ticks, FIFO {facts['priority']}, core {facts['core']}, foreign load {facts['foreign_cores']} cores")
        for name, (p50, p99, p999) in row.items():
            print(f"  {name:8} p50 {p50:7.1f}   p99 {p99:7.1f}   p99.9 {p999:7.1f}  us")
        print(f"  records of the sensor lost: {facts['lost_records']}, actual values missed: {facts['axis_lost']}")
    best = min(result["cycle"][0] for result in results)
    print(f"\nmedian of the best run: {best:.1f} us (limit {LIMIT_US:g} us)")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"limit_us": LIMIT_US, "best_median_us": best, "runs": results}, file, indent=1)
    return 0 if best <= LIMIT_US else 1


if __name__ == "__main__":
    raise SystemExit(main())
