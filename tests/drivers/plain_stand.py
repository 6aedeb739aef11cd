"""What the tests share: a stand in software with a plain plant: the docking stand's platform, a bumper far away, nothing
on the load cell."""

import time
import tomllib
from pathlib import Path

from rt_kernels.layout import BITS

STAND_FILE = Path(__file__).resolve().parents[2] / "stand_configs" / "stands" / "docking_stand.toml"
IDENTITY = [0.0, 0.0, 0.0, 1.0]


def plant_tables(**changes):
    return {
        "platform": tomllib.loads(STAND_FILE.read_text())["platform"],
        "mounting": {
            "load_cell_on": "floor",
            "unit_on_load_cell": "target",
            "X_WF": [4.3, 0.0, 0.0, *IDENTITY],
            "X_PM": [0.3, 0.0, 0.0, *IDENTITY],
            "X_S": [4.5, 0.0, 0.0, *IDENTITY],
            "X_S_port": [-0.2, 0.0, 0.0, *IDENTITY],
            "carried_mass_kg": 0.0,
            "carried_com_m": [0.0, 0.0, 0.0],
            "gravity_m_s2": [-9.80665, 0.0, 0.0],
        },
        "mechanism": {"part": "rt_kernels.mechanisms.linear.bumper:Bumper", "stiffness_n_per_m": 1e5},
        "counts_per_newton": 1e5,
        "counts_per_newton_metre": 2e5,
        **changes,
    }


def stand_config(plant=None, **tables):
    return {"plant": plant_tables(**(plant or {})), **tables}


def has(word, code, name):
    """Whether a status word has the bit `name` of a code list."""
    return bool(int(word) & BITS[code][name])


def until(condition, seconds=3.0):
    """Waits until the condition holds. Returns whether it did: nothing here depends on how fast."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False
