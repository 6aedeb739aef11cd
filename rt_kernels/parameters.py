"""How a part declares its parameters. The declaration is the manual page of the part (`hil-server list ROLE NAME`).

A part has a class attribute `PARAMETERS`, a tuple of `Parameter`, and takes exactly these keys as keyword arguments; `AUX`, a tuple
of `Aux`, names its auxiliary channels; `COMMANDS`, a tuple of `Command`, says which commands it acts on (a command that no part of a run
declares is refused); `hil_server.config` checks a TOML table against the declaration. `CONTEXT` (a tuple of names)
lists what the part needs of the rest of the configuration; the assembly passes these as further keyword arguments:

    period_s        period of the loop, s
    vehicles        {"active": vehicle, "target": vehicle}; vehicle: mass_kg, inertia_kg_m2 (3 rows), X_port (7 numbers: port in the
                    centre-of-mass frame), thrust_n
    platform        rt_kernels.stewart.platform.Platform
    mounting        {"unit_on_load_cell" (target or active), "load_cell_on" (floor or platform), "X_WF" (fixed port in W), "X_PM"
                    (moving port on the platform), "X_S" (load cell in W, or on the platform), "X_S_port" (port of the carried unit
                    in S), "carried_mass_kg", "carried_com_m", "gravity_m_s2" (in W)}
    start           {"X_TA", "V_TA", "orbital_rate_rad_s"}: relative pose and twist at the nominal first contact
    limits          {"force_limit_n", "moment_limit_n_m"}: software limits of the wrench on the load cell
    mechanism       the docking mechanism in software, a MechanismPart (virtual stand only)
    sensor_scale    counts per N and N.m of the six channels as the sensor reports them, or None
    block           the shared block (ports that take commands)
    folders         where files named in the test are looked for: beside it, among the shipped ones
    delays          the delay ledger's sums: total_s, transport_s, drive_frequency_hz, drive_damping, drive_lag_s, measured_leg_delay_s,
                    sensor_delay_s
"""

from dataclasses import dataclass
from typing import Any

REQUIRED = object()


@dataclass(frozen=True)
class Parameter:
    """One key of a part's table.

    kind: "float", "int", "bool", "str", "floats" (list of numbers), "rows" (list of lists of numbers), "table".
    low, high: inclusive limits of every number. shape: length of a list, or (rows, columns). choices: allowed strings.
    """

    key: str
    kind: str
    unit: str
    meaning: str
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    shape: int | tuple[int, int] | None = None
    choices: tuple[str, ...] | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Aux:
    """One auxiliary channel of a part: `count` doubles from the offset the assembly gives it."""

    name: str
    unit: str
    meaning: str
    count: int = 1


@dataclass(frozen=True)
class Command:
    """A command that a part acts on.

    name: of the table's `command`. phases: names of the phases in which it acts, none: in every one. numbers: what its first argument may
    be where the part knows (numbers of faults, of joints), None: whatever the command itself allows. acts: False for a part that only
    narrows what another part acts on.
    """

    name: str
    phases: tuple[str, ...] = ()
    numbers: tuple[int, ...] | None = None
    acts: bool = True
