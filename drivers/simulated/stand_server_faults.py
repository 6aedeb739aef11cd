"""The faults that the stand in software can show, as data: a fault matrix runs over `FAULTS`.

Each has a name, the number that the stand's loop knows it by, what `index` and `value` mean, and which bit the input should show: `shows`
names (field of the sample, code list, name in it); `fault` is the bit of the fault table that follows from it. `at_start` marks what only
makes sense before the stream starts. An injection lasts until it is cleared.

`index` is the axis (0...5), the link, or not used; `value` has a default that shows the fault. `profile` names the only drive profile that
can show it.
"""

from dataclasses import dataclass
from typing import Literal

Where = Literal["sensor", "axis", "link", "module", "plant"]


@dataclass(frozen=True)
class InjectableFault:
    name: str
    number: int
    where: Where
    meaning: str
    value: float = 1.0
    value_meaning: str = "not used"
    shows: tuple[tuple[str, str, str], ...] = ()
    fault: str = ""
    at_start: bool = False
    profile: str = ""


# Faults of the plant itself have the plant's own codes (drivers/simulated/plant.pxd), from here on.
PLANT_BASE = 1000


def _sensor(name: str) -> tuple[tuple[str, str, str], ...]:
    return (("wrench_status", "sensor_status", name),)


def _drive(*names: str) -> tuple[tuple[str, str, str], ...]:
    return tuple(("drive_status", "drive_status", name) for name in names)


def _signal(name: str) -> tuple[tuple[str, str, str], ...]:
    return (("signal_status", "sensor_status", name),)


# fmt: off
FAULTS: tuple[InjectableFault, ...] = (
    InjectableFault("sensor_drop", 1, "sensor", "every n-th record is not sent", 3, "n, 1 = all", _sensor("lost"), "sensor_lost"),
    InjectableFault("sensor_duplicate", 2, "sensor", "every n-th record is sent twice", 2, "n"),
    InjectableFault("sensor_delay", 3, "sensor", "records leave late: a gap, then old ones", 50, "ms", _sensor("no_data"),
                    "sensor_no_data"),
    InjectableFault("sensor_reorder", 4, "sensor", "every n-th record leaves after its successor", 4, "n"),
    InjectableFault("sensor_rollover", 5, "sensor", "the record sequence starts n before its roll-over", 500, "n", at_start=True),
    InjectableFault("sensor_freeze", 6, "sensor", "the sample counter stands still, records go on", 1, "not used", _sensor("stale"),
                    "sensor_stale"),
    InjectableFault("sensor_status_word", 7, "sensor", "these bits are set in the status word", 0x20000, "bits"),
    InjectableFault("sensor_truncate", 8, "sensor", "every n-th datagram is cut", 3, "n", _sensor("corrupt"), "sensor_corrupt"),
    InjectableFault("sensor_taken_over", 9, "sensor", "a second client takes the stream", 1, "not used", _sensor("no_data"),
                    "sensor_no_data"),
    InjectableFault("sensor_stop", 10, "sensor", "the stream stops", 1, "not used", _sensor("no_data"), "sensor_no_data"),
    InjectableFault("sensor_saturated", 11, "sensor", "status word: gauge saturated", 1, "not used", _sensor("saturated"),
                    "sensor_saturated"),
    InjectableFault("sensor_out_of_range", 12, "sensor", "status word: out of range (axia), else as saturated", 1, "not used",
                    _sensor("out_of_range"), "sensor_out_of_range"),
    InjectableFault("sensor_device_fault", 13, "sensor", "status word: a fault of the device", 1, "not used", _sensor("device_fault"),
                    "sensor_device_fault"),
    InjectableFault("sensor_busy", 14, "sensor", "status word: busy (axia)", 1, "not used", _sensor("busy"), "sensor_busy"),
    InjectableFault("sensor_broken_gauge", 15, "sensor", "status word: broken gage (axia)", 1, "not used", _sensor("broken_wire"),
                    "sensor_broken_wire"),
    InjectableFault("sensor_threshold", 16, "sensor", "status word: threshold latched, a warning only", 1, "not used", _sensor("warning")),
    InjectableFault("sensor_supply", 17, "sensor", "status word: supply", 1, "not used", _sensor("supply"), "sensor_device_fault"),
    InjectableFault("sensor_temperature", 18, "sensor", "status word: temperature", 1, "not used", _sensor("temperature"),
                    "sensor_device_fault"),
    InjectableFault("axis_silent", 20, "axis", "the node neither sends nor listens", 1, "not used", _drive("no_data"), "drive_no_data"),
    InjectableFault("axis_emergency", 21, "axis", "an emergency message with this code", 0x8301, "code", _drive("emergency"),
                    "drive_device_fault"),
    InjectableFault("axis_fault", 22, "axis", "fault state that a reset does not clear", 1, "not used", _drive("device_fault"),
                    "drive_device_fault"),
    InjectableFault("axis_disabled", 23, "axis", "the axis leaves the enabled state by itself", 1, "not used", _drive("not_enabled"),
                    "drive_not_enabled"),
    InjectableFault("axis_local", 24, "axis", "taken over at its own panel", 1, "not used", _drive("local_control"),
                    "drive_local_control"),
    InjectableFault("axis_deviation", 25, "axis", "control deviation bit", 1, "not used", _drive("following_error"), "following_error"),
    InjectableFault("axis_limit", 26, "axis", "limit touched bit", 1, "not used", _drive("limit_touched"), "drive_limit_touched"),
    InjectableFault("axis_wrong_length", 27, "axis", "actual values one byte short", 1, "not used", _drive("corrupt", "no_data"),
                    "drive_no_data"),
    InjectableFault("axis_restart", 28, "axis", "the node restarts (boot-up message, pre-operational)", 1, "not used",
                    _drive("not_enabled"), "drive_not_enabled"),
    InjectableFault("axis_not_following", 29, "axis", "enabled, but its set points are ignored: status bit 12 is 0", 1, "not used",
                    _drive("not_following"), "drive_not_following", profile="cia402"),
    InjectableFault("axis_no_heartbeat", 30, "axis", "its heartbeat stops, all else goes on", 1, "not used", _drive("heartbeat_lost"),
                    "drive_heartbeat_lost"),
    InjectableFault("axis_sparse", 31, "axis", "of n actual values only one is sent", 3, "n", _drive("lost"), "drive_lost"),
    InjectableFault("link_silent", 39, "link", "all nodes of the link fall silent, as after bus-off", 1, "not used", _drive("no_data"),
                    "drive_no_data"),
    InjectableFault("module_silent", 40, "module", "the input module neither sends nor listens", 1, "not used", _signal("no_data"),
                    "signals_no_data"),
    InjectableFault("module_fault", 41, "module", "emergency message of the input module", 0x5000, "code", _signal("device_fault"),
                    "signals_no_data"),
    InjectableFault("leg_stuck", PLANT_BASE + 1, "plant", "a leg stands still", 1, "not used", (), "following_error"),
    InjectableFault("leg_slow", PLANT_BASE + 2, "plant", "a leg follows at this share of its rate", 0.2, "share", (), "following_error"),
    InjectableFault("transducer_offset", PLANT_BASE + 3, "plant", "the measured length of a leg jumps", 0.05, "m", (), "following_error"),
    InjectableFault("gauge_broken", PLANT_BASE + 4, "plant", "a gauge reads full scale, as a broken wire does", 1, "not used", (),
                    "sensor_broken_wire"),
    InjectableFault("gauge_saturated", PLANT_BASE + 5, "plant", "a gauge is clipped at this value", 2147483647.0, "counts", (),
                    "sensor_saturated"),
    InjectableFault("sensor_bias", PLANT_BASE + 6, "plant", "a component of the wrench drifts off", 200, "N or N.m", (), "tare_drift"),
    InjectableFault("external_force", PLANT_BASE + 7, "plant", "something else pulls at the load cell", 5500, "N or N.m", (),
                    "force_limit"),
    InjectableFault("chain_tripped", PLANT_BASE + 8, "plant", "the independent emergency chain trips and blocks the hydraulics", 1,
                    "not used", (), "analogue_chain"),
    InjectableFault("chain_unhealthy", PLANT_BASE + 9, "plant", "the independent emergency chain is not healthy", 1, "not used", (),
                    "analogue_chain"),
)
# fmt: on

BY_NAME = {fault.name: fault for fault in FAULTS}

_STATUS_WORDS = {
    "net_ft": {
        "sensor_saturated": 0x80020000,
        "sensor_out_of_range": 0x80020000,
        "sensor_device_fault": 0x90000000,
        "sensor_busy": 0,
        "sensor_broken_gauge": 0x80020000,
        "sensor_threshold": 0x80010000,
        "sensor_supply": 0x80000020,
        "sensor_temperature": 0x80000004,
    },
    "axia": {
        "sensor_saturated": 0x88000000,
        "sensor_out_of_range": 0xC0000000,
        "sensor_device_fault": 0x80000020,
        "sensor_busy": 0x00000008,
        "sensor_broken_gauge": 0x80000004,
        "sensor_threshold": 0x80010000,
        "sensor_supply": 0x80000002,
        "sensor_temperature": 0x80000001,
    },
    "onrobot": dict.fromkeys(
        ("sensor_saturated", "sensor_out_of_range", "sensor_device_fault", "sensor_broken_gauge", "sensor_supply", "sensor_temperature"), 1
    ),
}


def wire_fault(name: str, value: float | None, variant: str) -> tuple[int, float]:
    """(number, value) that the stand's loop understands. A class of the status word becomes the word of the sensor family.

    Raises ValueError for an unknown name, or a class that the family's status word does not have.
    """
    if name not in BY_NAME:
        raise ValueError(f"fault {name!r} is unknown; there are: {', '.join(BY_NAME)}")
    fault = BY_NAME[name]
    if name in _STATUS_WORDS["net_ft"]:
        word = _STATUS_WORDS[variant].get(name, 0)
        if not word:
            raise ValueError(f"fault {name!r}: the status word of {variant} has no such class")
        return BY_NAME["sensor_status_word"].number, float(word)
    return fault.number, fault.value if value is None else float(value)


# what the virtual stand in process (drivers.simulated.virtual_stand) calls otherwise
_IN_PROCESS = {
    "sensor_silent": "sensor_stop", "sensor_stale": "sensor_freeze", "sensor_lost": "sensor_drop", "sensor_corrupt": "sensor_truncate",
    "drive_silent": "axis_silent", "drive_fault": "axis_fault", "drive_disabled": "axis_disabled", "drive_local": "axis_local",
    "drive_following_error": "axis_deviation", "drive_limit_touched": "axis_limit", "drive_emergency": "axis_emergency",
    "signals_silent": "module_silent",
}  # fmt: skip


def same_faults(variant: str) -> dict[int, str]:
    """Number of a fault of the virtual stand in process → name of the same fault here; faults that this stand cannot show are left out."""
    from drivers.simulated.virtual_stand import FAULTS as IN_PROCESS

    found = {}
    for name, number in IN_PROCESS.items():
        name = _IN_PROCESS.get(name, name)
        try:
            wire_fault(name, None, variant)
        except ValueError:
            continue
        found[number] = name
    return found
