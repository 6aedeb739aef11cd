"""Damaged streams of every force sensor with a protocol of its own, through the port that a run uses, and what it believed of them.

    python tools/fuzz_sensors.py                      10^5 streams of each sensor
    python tools/fuzz_sensors.py bota_serial -n 6000  of one

The first table: streams with flipped bits, lost bytes, inserted noise, cut and doubled records, and several of these. The second one:
damaged records whose checksum is right, as one in 65536 is where a checksum is; what of them is believed and not reported, times 2^-16, is
what remains for each damaged record. Exit 1 when a wrong wrench was believed without a word, or the port was not back in step in time.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fuzz import sensor_streams

COLUMNS = ("streams", "suspects", "wrong_said", "wrong_unsaid", "out_of_order", "silent", "late")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sensors", nargs="*", choices=[*sensor_streams.SENSORS, []], help="ports; none: all of them")
    parser.add_argument("-n", "--streams", type=int, default=100_000)
    parser.add_argument("--seed", default="1")
    given = parser.parse_args()
    good = True
    print(f"{'sensor':15}{'damage':10}" + "".join(f"{name:>14}" for name in COLUMNS))
    remaining = []
    for name in given.sensors or sensor_streams.SENSORS:
        sensor, port = sensor_streams.port_of(name)
        began = time.process_time()
        for kind, c in sensor_streams.tally(sensor, port, given.seed, given.streams).items():
            print(f"{name:15}{kind:10}" + "".join(f"{c[column]:14}" for column in COLUMNS), flush=True)
            good = good and not c["wrong_unsaid"] and c["late"] <= sensor_streams.BACK_IN_STEP
        print(f"{name:15}{time.process_time() - began:.0f} s of processor", flush=True)
        if name in sensor_streams.CHECKED_HERE:
            remaining.append((name, sensor_streams.collisions(sensor, port, given.seed, max(1000, given.streams // 5))))
    print("\ndamaged records with a right checksum")
    for name, c in remaining:
        print(f"{name:15}" + ", ".join(f"{what}: {count}" for what, count in sorted(c.items())))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
