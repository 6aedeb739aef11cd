"""How much of a classic CAN bus, or of an EtherCAT segment, a cycle of setpoints and actual values takes.

Length of a frame with n data bytes and an 11-bit identifier, interframe space included: 47 + 8 n bits without stuffing, and
floor((33 + 8 n) / 4) stuff bits more at worst (ISO 11898-1: 34 + 8 n bits are subject to stuffing, every fifth at worst).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from drivers.drives.drive_channels import DriveChannels

PLANNING_LIMIT = 0.8  # share of the bus that a cycle may take at worst: the rest is for SDO, heartbeat and emergency messages


def frame_bits(data_bytes: int) -> tuple[int, int]:
    """(unstuffed, worst) length in bits of a classic frame with an 11-bit identifier. Raises ValueError outside 0...8 bytes."""
    if not 0 <= data_bytes <= 8:
        raise ValueError(f"data_bytes = {data_bytes}: a classic frame carries 0...8 bytes")
    plain = 47 + 8 * data_bytes
    return plain, plain + (33 + 8 * data_bytes) // 4


@dataclass(frozen=True)
class BusLoad:
    """Time of one cycle on the bus, and its share of the period together with that of the slow frames, unstuffed and at worst. peak_max:
    share of the period that a cycle takes which first waits for the longest slow frame."""

    cycle_us_min: float
    cycle_us_max: float
    load_min: float
    load_max: float
    peak_max: float

    @property
    def fits(self) -> bool:
        """Within the planning limit at worst-case stuffing; a cycle that waits for one slow frame ends within its period."""
        return self.load_max <= PLANNING_LIMIT and self.peak_max <= 1.0


def bus_load(
    axes: int,
    rpdo_bytes: int,
    tpdo_bytes: int,
    rate_hz: float,
    bitrate: float = 1e6,
    rpdo_frames: int | None = None,
    extra_frames: tuple[int, ...] = (),
    slow_frames: Sequence[int] = (),
    slow_every: int = 1,
) -> BusLoad:
    """Load of one bus whose cycle is: SYNC, `rpdo_frames` setpoint frames (default: one per axis), one actual-value frame per axis.

    rpdo_bytes, tpdo_bytes: data bytes of those frames. extra_frames: data bytes of further frames in each cycle. slow_frames: of frames of
    lower priority, which all come once in `slow_every` cycles and fill what the others leave over; one of them may be on its way when a
    cycle begins. rate_hz: cycles per second. bitrate: bit/s. Raises ValueError for a number that cannot be.
    """
    if axes < 1 or (rpdo_frames is not None and rpdo_frames < 0):
        raise ValueError(f"axes = {axes}, rpdo_frames = {rpdo_frames}: at least one axis and no negative count")
    if not (rate_hz > 0 and bitrate > 0):
        raise ValueError(f"rate_hz = {rate_hz}, bitrate = {bitrate}: both must be above zero")
    if slow_every < 1:
        raise ValueError(f"slow_every = {slow_every}: must be at least 1")
    frames = [0, *([rpdo_bytes] * (axes if rpdo_frames is None else rpdo_frames)), *([tpdo_bytes] * axes), *extra_frames]
    low, high = _seconds(frames, bitrate)
    slow_low, slow_high = (time / slow_every for time in _seconds(slow_frames, bitrate))
    longest = max((_seconds([n], bitrate)[1] for n in slow_frames), default=0.0)
    return BusLoad(low * 1e6, high * 1e6, (low + slow_low) * rate_hz, (high + slow_high) * rate_hz, (high + longest) * rate_hz)


def bus_loads(
    axis_link: Sequence[int], channels: DriveChannels, rate_hz: float, bitrate: float, extra_frames: Sequence[tuple[int, ...]] = ((),) * 6
) -> list[BusLoad]:
    """Load of each link of six axes with six bytes of setpoint and actual value each and what they say beside it. extra_frames: of each
    axis in each cycle."""
    loads = []
    for link in range(max(axis_link) + 1):
        axes = [axis for axis in range(6) if axis_link[axis] == link]
        slow = [n for axis in axes for n in channels.frames(axis)]
        extra = tuple(n for axis in axes for n in extra_frames[axis])
        loads.append(bus_load(len(axes), 6, 6, rate_hz, bitrate, extra_frames=extra, slow_frames=slow, slow_every=channels.every))
    return loads


def ethercat_load(axes: int, rate_hz: float, out_bytes: int = 7, in_bytes: int = 13, slave_us: float = 1.0) -> BusLoad:
    """Load of an EtherCAT segment: a frame a cycle with the process image (LRW), reference time (FRMW), AL status (BRD, FPRD of 6 bytes).

    On the wire 38 bytes of Ethernet with preamble and gap, 2 of EtherCAT, 12 and its data for each datagram, at least 84 in all; 80 ns
    each at 100 Mbit/s, and at worst `slave_us` through each slave. Raises ValueError for a number that cannot be.
    """
    if axes < 1 or not rate_hz > 0:
        raise ValueError(f"axes = {axes}, rate_hz = {rate_hz}: at least one axis, a rate above zero")
    data = [axes * (out_bytes + in_bytes), 8, 2, 6]
    low = max(84, 38 + 2 + sum(12 + n for n in data)) * 0.08
    high = low + axes * slave_us
    return BusLoad(low, high, low * 1e-6 * rate_hz, high * 1e-6 * rate_hz, high * 1e-6 * rate_hz)


def _seconds(frames: Sequence[int], bitrate: float) -> tuple[float, float]:
    """Time of the frames with so many data bytes, unstuffed and at worst."""
    lengths = [frame_bits(n) for n in frames]
    return sum(low for low, _ in lengths) / bitrate, sum(high for _, high in lengths) / bitrate
