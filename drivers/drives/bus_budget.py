"""How much of a classic CAN bus a cycle of setpoints and actual values takes.

Length of a frame with n data bytes and an 11-bit identifier, interframe space included: 47 + 8 n bits without stuffing, and
floor((33 + 8 n) / 4) stuff bits more at worst (ISO 11898-1: 34 + 8 n bits are subject to stuffing, every fifth at worst).
"""

from dataclasses import dataclass

PLANNING_LIMIT = 0.8  # share of the bus that a cycle may take at worst: the rest is for SDO, heartbeat and emergency messages


def frame_bits(data_bytes: int) -> tuple[int, int]:
    """(unstuffed, worst) length in bits of a classic frame with an 11-bit identifier. Raises ValueError outside 0...8 bytes."""
    if not 0 <= data_bytes <= 8:
        raise ValueError(f"data_bytes = {data_bytes}: a classic frame carries 0...8 bytes")
    plain = 47 + 8 * data_bytes
    return plain, plain + (33 + 8 * data_bytes) // 4


@dataclass(frozen=True)
class BusLoad:
    """Time of one cycle on the bus and its share of the period, unstuffed and at worst."""

    cycle_us_min: float
    cycle_us_max: float
    load_min: float
    load_max: float

    @property
    def fits(self) -> bool:
        """Within the planning limit at worst-case stuffing."""
        return self.load_max <= PLANNING_LIMIT


def bus_load(
    axes: int,
    rpdo_bytes: int,
    tpdo_bytes: int,
    rate_hz: float,
    bitrate: float = 1e6,
    rpdo_frames: int | None = None,
    extra_frames: tuple[int, ...] = (),
) -> BusLoad:
    """Load of one bus whose cycle is: SYNC, `rpdo_frames` setpoint frames (default: one per axis), one actual-value frame per axis.

    rpdo_bytes, tpdo_bytes: data bytes of those frames. extra_frames: data bytes of further frames in each cycle.
    rate_hz: cycles per second. bitrate: bit/s. Raises ValueError for a number that cannot be.
    """
    if axes < 1 or (rpdo_frames is not None and rpdo_frames < 0):
        raise ValueError(f"axes = {axes}, rpdo_frames = {rpdo_frames}: at least one axis and no negative count")
    if not (rate_hz > 0 and bitrate > 0):
        raise ValueError(f"rate_hz = {rate_hz}, bitrate = {bitrate}: both must be above zero")
    frames = [0, *([rpdo_bytes] * (axes if rpdo_frames is None else rpdo_frames)), *([tpdo_bytes] * axes), *extra_frames]
    lengths = [frame_bits(n) for n in frames]
    low, high = (sum(column) / bitrate for column in zip(*lengths, strict=True))
    return BusLoad(low * 1e6, high * 1e6, low * rate_hz, high * rate_hz)
