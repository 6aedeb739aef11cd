"""A made-up operator: flies a berthing by what the bus shows, and leaves the record of it as a script (`hil_server.operator_desk.script`).

It looks 25 times a second, acts on what it saw a reaction time ago, moves the sticks no faster than a hand does, and works in the order of
the handbook (Yaskevich 2020, 8.3): attitude, then lateral miss, then the approach with small corrections, pushing on until capture.

The sticks ask for rates, so that arm and load are near K/s, and the operator is a gain with a delay: the crossover model
Y_p Y_c = w_c exp(-s tau)/s (McRuer and Jex 1967; for K/s tau is 0.2-0.4 s, w_c up to 4.5 rad/s). Yaskevich has no figures of operators.
Here w_c is far below what a person can do: an 8 t load on the arm swings from 0.4 rad/s on with hardly any damping, and a loop that crosses
over near it oscillates.

A heavy load on an elastic arm swings for minutes. An operator does not chase the swing but the place where it will come to rest. The pilot
keeps that place as what it has asked for since the start, u, and a slow mean b of what is seen beside it:

    db/dt = (x - x_0 - u - b)/tau,      rate = w_c (target - (x_0 + u + b)),   du/dt = rate

In contact the units hold the load, and it corrects what it sees. There it presses while the head stands, until the latches give way, and
goes back to the rate of the approach when it sees the head go in; at the capture it lets go of the sticks.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hil_server.config import TestConfig
from hil_server.operator_desk.script import Row
from rt_kernels.context import Start

DEADMAN = 1


@dataclass
class Habits:
    """How it flies. Rates and gains are those of the scenario; the defaults are for 8 t on a long arm."""

    look_hz: float = 25.0
    reaction_s: float = 0.24
    crossover_rad_s: float = 0.12
    mean_s: float = 12.0
    hand_s: float = 2.0  # from rest to full deflection
    let_go_s: float = 0.3  # back to rest, with the spring of the stick
    angle_tolerance_deg: float = 0.25
    lateral_tolerance_m: float = 0.004
    settled_s: float = 4.0
    approach_part: float = 0.6  # of full deflection
    near_m: float = 0.1  # so far from where the units first touch it slows down
    contact_part: float = 0.25
    press_part: float = 1.0  # against the latches: an arm under rate control presses the harder, the more it is asked
    contact_crossover_rad_s: float = 0.3  # at 1 rad/s the sticks go to and fro by 0.7 of full deflection in RT-30, at 0.3 by 0.02
    watched_s: float = 1.5  # the head stands that advances by less than stands_m in it, and goes in with more than goes_in_m
    stands_m: float = 0.001
    goes_in_m: float = 0.004
    quantum: float = 0.02  # of full deflection: finer a hand does not set


@dataclass
class Pilot:
    """linear, angular: rates at full deflection, m/s and rad/s; contact_x: of the active port at the nominal first contact, m, in the
    target's axes. The sticks' axes are taken for those of the target: within some degrees they are, and attitude comes first.

    `look(t, X_TA, contact, captured)` takes what the bus shows at run time t and returns the rows that the sticks make of it."""

    linear: float
    angular: float
    contact_x: float
    rotation_from: str = "right"
    habits: Habits = field(default_factory=Habits)
    task: str = "wait"

    def __post_init__(self) -> None:
        self._seen: deque[tuple[float, np.ndarray, bool, bool]] = deque()
        self._asked = np.zeros(6)
        self._mean = np.zeros(6)
        self._stick = np.zeros(6)
        self._hand = np.zeros(6)
        self._sent: np.ndarray | None = None
        self._begin: np.ndarray | None = None
        self._last = self._good_since = -1.0
        self._furthest: deque[tuple[float, float]] = deque()

    def take_over(self, t: float) -> list[Row]:
        """Both sticks centred, deadman held."""
        return self._rows(t, np.zeros(6))

    def look(self, t: float, X_TA: np.ndarray, contact: bool, captured: bool) -> list[Row]:
        """X_TA: (7,). Rows carry the time t; both sticks in one go."""
        from scipy.spatial.transform import Rotation

        self._seen.append((t, np.concatenate([X_TA[:3], Rotation.from_quat(X_TA[3:]).as_rotvec()]), contact, captured))
        while len(self._seen) > 1 and self._seen[1][0] <= t - self.habits.reaction_s:
            self._seen.popleft()
        _, x, contact, captured = self._seen[0]
        if self._begin is None:
            self._begin, self._last, self.task = x, t, "attitude"
            return []
        dt, self._last = t - self._last, t
        self._mean += (x - self._begin - self._asked - self._mean) * min(1.0, dt / self.habits.mean_s)
        rest = self._begin + self._asked + self._mean
        wanted = self._wanted(t, rest, x, contact, captured)
        back = np.abs(wanted) < np.abs(self._stick)
        reach = dt / np.where(back, self.habits.let_go_s, self.habits.hand_s)
        self._stick += np.clip(wanted - self._stick, -reach, reach)
        self._set(self._stick)
        stick = self._hand
        self._asked += dt * stick * self._scale()
        return self._rows(t, stick)

    def _set(self, stick: np.ndarray) -> None:
        """The hand in its small parts; it does not tremble between two of them."""
        quantum = self.habits.quantum
        moved = np.abs(stick - self._hand) > 0.75 * quantum
        self._hand = np.where(moved, np.clip(np.round(stick / quantum) * quantum, -1.0, 1.0), self._hand)

    def _scale(self) -> np.ndarray:
        return np.repeat([self.linear, self.angular], 3)

    def _wanted(self, t: float, rest: np.ndarray, x: np.ndarray, contact: bool, captured: bool) -> np.ndarray:
        """Deflections, in the axes of the target, for the present task; rest: where the load swings about, x: where it is."""
        h = self.habits
        correction = np.clip(-h.crossover_rad_s * rest / self._scale(), -1.0, 1.0)
        turning, sideways = float(np.linalg.norm(rest[3:])), float(np.linalg.norm(rest[1:3]))
        wanted = np.zeros(6)
        if captured:
            self.task = "done"
            return wanted
        if self.task == "attitude":
            wanted[3:] = correction[3:]
            self._next_task(t, turning < np.radians(h.angle_tolerance_deg), "lateral")
        elif self.task == "lateral":
            wanted[3:], wanted[1:3] = correction[3:], correction[1:3]
            self._next_task(t, turning < np.radians(h.angle_tolerance_deg) and sideways < h.lateral_tolerance_m, "approach")
        elif contact or self.task in ("press", "insert"):
            # the load turns while the arm presses beside its middle, and a head pressed sideways leaves a latch outside its groove
            wanted = np.clip(-h.contact_crossover_rad_s * x / self._scale(), -1.0, 1.0)
            self.task = self._head(t, x[0])
            wanted[0] = h.press_part if self.task == "press" else h.contact_part
        else:
            wanted[0] = h.approach_part if rest[0] < self.contact_x - h.near_m else h.contact_part
            wanted[3:], wanted[1:3] = correction[3:], correction[1:3]
        return wanted

    def _head(self, t: float, x: float) -> str:
        """"press" while the head stands, "insert" while it goes in; x: along the axis. Its rebound counts for nothing."""
        seen = self._furthest
        seen.append((t, max(x, seen[-1][1]) if seen else x))
        while seen[-1][0] - seen[0][0] > self.habits.watched_s:
            seen.popleft()
        advance = seen[-1][1] - seen[0][1]
        if self.task == "press":
            return "insert" if advance > self.habits.goes_in_m else "press"
        watched = seen[-1][0] - seen[0][0] > 0.9 * self.habits.watched_s
        return "press" if watched and advance < self.habits.stands_m else "insert"

    def _next_task(self, t: float, good: bool, task: str) -> None:
        if not good:
            self._good_since = -1.0
        elif self._good_since < 0.0:
            self._good_since = t
        elif t - self._good_since >= self.habits.settled_s:
            self.task, self._good_since = task, -1.0

    def _rows(self, t: float, stick: np.ndarray) -> list[Row]:
        """Both hands, or one with all six axes; only what has changed."""
        stick = np.round(stick, 6) + 0.0
        before, self._sent = self._sent, stick.copy()
        hands: Mapping[int, np.ndarray]
        if self.rotation_from == "left":
            hands = {0: stick}
        else:
            right = (stick[3:], np.zeros(3)) if self.rotation_from == "right_first" else (np.zeros(3), stick[3:])
            hands = {0: np.concatenate([stick[:3], np.zeros(3)]), 1: np.concatenate(right)}
        if before is not None and np.array_equal(before, stick):
            return []
        return [Row(round(t, 3), station, tuple(float(a) for a in axes), DEADMAN) for station, axes in hands.items()]


def pilot_for(config: TestConfig, start: Start, habits: Habits | None = None) -> Pilot:
    """The pilot of a berthing test: its rates and axes are those of the guidance; start: of the assembly's context. Raises
    ConfigurationError for another guidance."""
    from hil_server import registry
    from hil_server.errors import ConfigurationError

    stage = config.setup.stages["guidance"]
    if not getattr(registry.part(stage.role, stage.name), "FLOWN", False):
        raise ConfigurationError(f"guidance.part: value {stage.name!r}, limit a guidance that operators fly")
    full = stage.values
    kind = "coarse" if full["start_coarse"] else "vernier"
    rates = full[f"{kind}_m_s"], float(np.radians(full[f"{kind}_deg_s"]))
    return Pilot(*rates, float(start.X_TA[0]), full["rotation_from"], habits or Habits())
