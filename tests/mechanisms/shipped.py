"""The shipped docking units: their keys, and the channels of a run by name."""

from hil_server.config import SHIPPED
from hil_server.config.tables import MECHANISM_KEYS
from rt_kernels.extends import read_tables
from rt_kernels.offline.two_craft import aux_index


def shipped(name):
    """Keys of a file as its part takes them. All are synthetic: no real unit is in the tree."""
    table = read_tables(SHIPPED / "mechanisms" / f"{name}.toml")
    assert table["synthetic"] is True
    return {key: value for key, value in table.items() if key not in ("part", *MECHANISM_KEYS)}


def column(unit, out, name, width=1):
    """A channel of all ticks of a run, (n,), or so many from there on, (n, width)."""
    at = aux_index(unit, name)
    return out["aux"][:, at] if width == 1 else out["aux"][:, at : at + width]
