"""Every shipped docking unit at five ticks: refused, or how far its peaks are from those with the shortest tick.

    nice python tools/step_table.py [UNIT ...] [--rate HZ ...] [--set KEY=VALUE ...]

Each unit makes one contact without noise, as `CONTACT` has it: the shipped docking or berthing that flies it, else the shipped docking on
the ideal stand. Seen is the impact until it is over, or SECONDS_S after the first contact. Printed for each rate: the sub-steps that the
loader took, largest force and moment of the impact, and their distance from those at the highest rate. A rate is as it should be when the
loader refuses it for the unit (`step_max_s`), or when the force is within 2 %, and the moment, too, or the unit says that its moment is not
resolved (`moment_step_max_s`).
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from hil_server.config import SHIPPED, TestConfig, load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly, free_run
from hil_server.log.moments import MOMENTS, Peaks
from hil_server.run.programme import load_programme

RATES = (250, 500, 1000, 2000, 4000)
WITHIN = 0.02
SECONDS_S = 10.0
LEAST = 1e-3  # N, N.m: less is rounding
IDEAL = "test.stand=stands/ideal_stand_long_unit.toml"
# unit: (file of the test, number of its variant or None, settings)
CONTACT: dict[str, tuple[str, int | None, tuple[str, ...]]] = {
    "probe_cone_existing": ("virtual_docking", None, ()),
    "probe_cone_module": ("virtual_docking", None, ()),
    "probe_cone_modified": ("virtual_docking_modified", None, ()),
    "probe_cone_movable_limiter": ("virtual_docking_movable_limiter", None, ()),
    "elastic_adaptive": ("virtual_docking_elastic", None, ()),
    "ring": ("virtual_docking_ring", None, ()),
    "hunt": ("virtual_docking_ring", None, ()),
    "ring_idss": ("idss_docking", None, ("test.stand=stands/ideal_stand.toml",)),
    "berthing_head": ("berthing_head_variants", 0, ()),
    "usa_usp": ("berthing_pins_variants", 0, ()),
    "probe_cone_berthing": ("docking", None, (IDEAL, "initial_conditions.velocity_x_m_s=0.03")),
    "two_rubbing_contacts": ("rubbing_contacts", None, ("test.stand=stands/ideal_stand.toml", "compensation.part=none")),
    "elastic_bumper": ("elastic_contact", None, ("test.stand=stands/ideal_stand.toml", "compensation.part=none")),
}


def contact(unit: str, rate: float, settings: list[str]) -> TestConfig:
    """The contact of this unit at `rate` Hz. Raises ConfigurationError where it is refused."""
    name, variant, own = CONTACT.get(unit, ("docking", None, (IDEAL,)))
    keys = [*own, f"test.mechanism=mechanisms/{unit}.toml", f"test.rate_hz={rate}", *settings]
    if variant is None:
        return load_test(name, keys)
    return load_programme(SHIPPED / "programmes" / f"{name}.toml", keys)[1][variant].config


def impact(config: TestConfig) -> dict[str, Any] | None:
    """Loads of impact and damping, a row of `hil_server.log.moments.Peaks`; None where the units never met."""
    peaks, after = Peaks(), list(MOMENTS)[list(MOMENTS).index("impact") + 1 :]
    for records in free_run.blocks(assembly.simulation(config)):
        first, time_s = float(records["first_contact_time"][-1]), records["time_ns"] * 1e-9
        # where a block ends is by chance: the same stretch at every rate
        peaks.see(records[time_s <= first + SECONDS_S].copy() if first >= 0.0 else records.copy())
        over = {row["moment"] for row in peaks.rows()} & set(after)
        if over or (first >= 0.0 and time_s[-1] > first + SECONDS_S):
            break
    return peaks.headline()


def main() -> int:
    """0 where every rate of every unit is as it should be."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shipped = sorted(Path(one.name).stem for one in (SHIPPED / "mechanisms").iterdir() if one.name.endswith(".toml"))
    p.add_argument("unit", nargs="*", default=shipped)
    p.add_argument("--rate", type=float, action="append", help=f"Hz (default: {', '.join(map(str, RATES))})")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of every contact, as of hil-server simulate")
    options = p.parse_args()
    good = True
    for unit in options.unit:
        finest = None
        for rate in sorted(options.rate or RATES, reverse=True):
            head = f"{unit:28s} {rate:6g} Hz"
            try:
                config = contact(unit, rate, options.set)
                found = impact(config)
            except ConfigurationError as error:
                message = str(error)
                own = "too slow for the docking unit" in message
                good = good and own
                print(f"{head}  {'refused' if own else 'NOT TO BE RUN: ' + message.splitlines()[0]}", flush=True)
                continue
            substeps = config.mechanism.get("substeps", "-")
            if found is None:
                print(f"{head}  substeps {substeps}: the units never met", flush=True)
                good = False
                continue
            finest = finest or found
            force, moment = (found[key] / finest[key] - 1.0 if finest[key] > LEAST else 0.0 for key in ("force_n", "moment_n_m"))
            resolved = 1.0 / rate <= config.mechanism.get("moment_step_max_s", 1.0) * (1.0 + 1e-9)
            fine = abs(force) <= WITHIN and (abs(moment) <= WITHIN or not resolved)
            good = good and fine
            loads = f"force {found['force_n']:9.1f} N {100 * force:+6.2f} %  moment {found['moment_n_m']:9.1f} N.m {100 * moment:+6.1f} %"
            note = "" if resolved else "  moment not resolved, as the unit says"
            print(f"{head}  substeps {substeps:>2}  {loads}{note if fine else '  BEYOND 2 %'}", flush=True)
    print("all as they should be" if good else "NOT all as they should be")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
