"""How a unit is written in a declaration, and how a key ends whose numbers have that unit.

A unit is factors joined by ".", powers as digits, one "/" before all that divides: `N.m`, `kg.m2`, `N.m.s/rad`; "-" is none. Numbers of one
row that have different units name them in order, separated by ", "; a number that may have one unit or another says "or".

A key ends with its unit: factors in lower case joined by "_", "per" before what divides. So `_n_m` is newton metres wherever it stands, and
newtons per metre are `_n_per_m`. Rates of motion alone go without "per" (`_m_s`, `_deg_s2`): nothing here is measured in metre seconds.
Rows of different units need no ending, or have that of their last column; a number without a unit has no ending of a unit. A key that names
the quantity itself and no unit (`baud`) is in the list `NAMED`.
"""

MOTION = {f"{length}/{time}": f"{length}_{time}" for length in ("m", "rad", "deg") for time in ("s", "s2")}
# what is counted is named in full: counts_per_newton
COUNTED = {"1/N": "per_newton", "1/(N.m)": "per_newton_metre", "1/m": "per_metre"}
# Endings that no key without a unit may have. Single letters but m and s stay free: a key may well end in _n.
ENDINGS = ("m", "s", "ms", "hz", "kg", "deg", "rad", "n_m", "kg_m2", "per_m", "per_s", "per_rad", "m_s", "m_s2")
# Keys that say no unit. Those of the drives belong to the fingerprint of the arms in logs.
NAMED = {"bitrate", "baud", "bits_per_second", "log_every", "analog_scale", "analog_offset", "centre", "range", "torque_constant",
         "back_emf_constant", "inner_gain", "outer_integral_gain"}  # fmt: skip


def suffix(unit: str) -> str:
    """The ending of a key with this unit, without its first "_"; empty for "-" and for mixed units."""
    if unit == "-" or mixed(unit):
        return ""
    if known := MOTION.get(unit) or COUNTED.get(unit):
        return known
    above, _, below = unit.partition("/")
    words = [] if above == "1" else [factor.lower() for factor in above.split(".")]
    if below:
        words += ["per", *(factor.lower() for factor in below.strip("()").split("."))]
    return "_".join(words)


def mixed(unit: str) -> list[str]:
    """The units of a row, or those that a number may have; empty for one unit."""
    separator = ", " if ", " in unit else " or "
    return unit.split(separator) if separator in unit else []


def key_fault(key: str, unit: str) -> str:
    """What is wrong with a key for its unit, empty if nothing is."""
    last = mixed(unit)[-1] if mixed(unit) else unit
    ending = suffix(last)
    if key in NAMED or (ending and f"_{key}".endswith(f"_{ending}")):
        return ""
    if ending and not mixed(unit):
        return f"{key} [{unit}]: must end in _{ending}"
    wrong = next((e for e in ENDINGS if f"_{key}".endswith(f"_{e}")), None)
    return f"{key} [{unit}]: ends in _{wrong}, which is another unit" if wrong else ""
