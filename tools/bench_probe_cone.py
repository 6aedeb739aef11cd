"""Cost of one tick of the probe-cone unit (0.5 ms, all auxiliary channels written).

Run on a quiet core: `taskset -c 1 python tools/bench_probe_cone.py`. Batches of 200 ticks; median, 99 % and least of the batches, processor
times of the thread. A whole docking through the line: `tools/bench_virtual_docking.py`.
"""

import time
from pathlib import Path

import numpy as np

from rt_kernels.extends import read_tables
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone

CONFIGS = Path(__file__).parents[1] / "stand_configs" / "mechanisms"
DT = 5e-4


def part(name: str, **overrides) -> ProbeCone:
    table = read_tables(CONFIGS / f"{name}.toml")
    own = {p.key for p in ProbeCone.PARAMETERS}
    return ProbeCone(**{k: v for k, v in table.items() if k in own} | overrides)


def ticks(unit: ProbeCone, X: np.ndarray, commands: int = 0, batches: int = 200, size: int = 200) -> np.ndarray:
    """Microseconds of processor time per tick, one number per batch."""
    cost = np.zeros(batches)
    for i in range(batches):
        start = time.thread_time_ns()
        unit.glide(X, np.zeros(6), DT, size, commands, size)
        cost[i] = (time.thread_time_ns() - start) / size / 1000
    return cost


def main() -> None:
    straight = np.array([0, 0, 0, 1.0])
    for name in ("probe_cone_existing", "probe_cone_modified", "probe_cone_movable_limiter"):
        for substeps in (1, 2):
            unit = part(name, substeps=substeps)
            free = -2.0
            exit_x = 0.35 if name == "probe_cone_existing" else 0.50
            rows = [("free", ticks(unit, np.concatenate([[free, 0, 0], straight])))]
            touch = 0.445 - exit_x - 0.60
            unit.glide(np.concatenate([[touch - 0.05, 0, 0], straight]), [0.1, 0, 0, 0, 0, 0], DT, 1400, 0, 1400)
            X = np.concatenate([[touch + 0.02, 0, 0], straight])
            rows.append(("captured", ticks(unit, X)))
            X[1] = 0.02
            rows.append(("captured, swung", ticks(unit, X, commands=3)))
            for words, cost in rows:
                print(f"{name:28s} sub-steps {substeps}  {words:16s} median {np.median(cost):5.2f} us  99 % {np.percentile(cost, 99):5.2f}"
                      f"  least {cost.min():5.2f}  ({len(ProbeCone.AUX)} channels)")


if __name__ == "__main__":
    main()
