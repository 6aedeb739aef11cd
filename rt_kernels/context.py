"""What a part may ask for beside its own keys: the values of the names in its `CONTEXT`, passed to it as further keyword arguments.

    period_s        period of the loop, s
    vehicles        Vehicles
    platform        rt_kernels.stewart.platform.Platform
    mounting        Mounting
    start           Start
    orbit           Orbit, or None: no gravity
    limits          Limits
    delays          Delays
    stand_model     parameters of the machine that moves the platform, by their keys in [stand_model] of the stand file, or None
    mechanism       the docking mechanism in software, a MechanismPart: what a virtual stand carries, what prediction and safety know of it
    dynamics        the dynamics part, a StagePart: names of its channels, joints and wheels for a control that looks at them (`look_at`)
    sensor_scale    counts per N and N.m of the six channels as the sensor reports them, or None
    noiseless       True: the force sensor is in software and has no noise, so that equal values say nothing
    block           the shared block (ports that take commands)
    tunables        parameters that can be changed while it runs, by their numbers: tables as TunedParameter.entry makes them (the same)
    live            True: the loop keeps time with a stand, False: a simulation or a replay
    folders         where files named in the test are looked for: beside it, among the shipped ones

The objects are made once by the assembly and do not change; `dataclasses.replace` makes another one. Poses are seven numbers, position and
quaternion [x, y, z, w]; SI units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rt_kernels.model.craft import DOCKING, Craft

IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
ZERO3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Vehicle:
    """A spacecraft as its neighbours see it.

    inertia_kg_m2: (3, 3) about the centre of mass, vehicle axes. X_port: docking port in the centre-of-mass frame; port: its name.
    thrust_n: along docking_axis (3,), vehicle axes. port_compliance: (6, 6) of what carries the port, m/N and rad/(N.m), or None. modal:
    function of a pair of step sizes [s] that gives the ModalCraft of its flexible modes, or None for a rigid one. craft: its bodies,
    joints, ports and actuators.
    """

    mass_kg: float
    inertia_kg_m2: Any
    X_port: Any = IDENTITY
    thrust_n: float = 0.0
    port_compliance: Any = None
    modal: Callable[[tuple[float, float]], Any] | None = None
    craft: Craft | None = None
    port: str = DOCKING
    docking_axis: Any = (1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Vehicles:
    """The two spacecraft of a test: the active one carries the active docking unit."""

    active: Vehicle
    target: Vehicle


@dataclass(frozen=True)
class Mounting:
    """Which docking unit hangs where on the stand.

    unit_on_load_cell: "target" or "active"; load_cell_on: "floor" or "platform". X_WF: port of the fixed unit in W. X_PM: port of the
    moving unit on the platform. X_S: load cell in W, or on the platform if it stands there. X_S_port: port of the unit on the load cell, in
    S. carried_mass_kg, carried_com_m: what hangs on the load cell, its centre of mass in S. gravity_m_s2: in W.
    carried_inertia_kg_m2: (3, 3) of what hangs there, about its centre of mass, S axes.
    """

    unit_on_load_cell: str
    load_cell_on: str
    X_WF: Any
    X_PM: Any
    X_S: Any = IDENTITY
    X_S_port: Any = IDENTITY
    carried_mass_kg: float = 0.0
    carried_com_m: Any = ZERO3
    gravity_m_s2: Any = ZERO3
    carried_inertia_kg_m2: Any = (ZERO3, ZERO3, ZERO3)


@dataclass(frozen=True)
class Start:
    """Relative pose and twist of the ports at the nominal first contact, and the target's orbital rate (3,) in N."""

    X_TA: Any
    V_TA: Any
    orbital_rate_rad_s: Any = ZERO3


@dataclass(frozen=True)
class Orbit:
    """Reference orbit of the origin of N at the closing of the loop, when N has the axes of the target vehicle.

    position_m (3,), velocity_m_s (3,): from the planet's centre, N axes.
    """

    position_m: Any
    velocity_m_s: Any
    gravitational_parameter_m3_per_s2: float


@dataclass(frozen=True)
class Limits:
    """Software limits of the wrench on the load cell, each component; the legs (6,) from which a run may start, None for those of the
    platform's neutral pose, and how far from there each may be; the lowest pressure of a hydraulic supply, 0: not judged; whether the
    drives close blocking valves when they lose their power; which axes lose their power after a fault that asks for it ("none", "axis",
    "all"); which inputs the emergency chain has, how long two channels may differ, and whether a proof test precedes the first motion."""

    force_limit_n: Sequence[float]
    moment_limit_n_m: Sequence[float]
    start_tolerance_m: float
    start_leg_m: Sequence[float] | None = None
    supply_pressure_min_pa: float = 0.0
    blocking_valves: bool = False
    power_off: str = "axis"
    emergency_stop: bool = False
    guard: bool = False
    hydraulic_unit: bool = False
    discrepancy_s: float = 0.1
    proof_test: bool = False


@dataclass(frozen=True)
class UnitEnergy:
    """What an active docking unit may put into the motion of the craft: its attribute `gives`.

    struts: how many sprung struts there are; analogue signals 0, 1, ... are their strokes [m], outwards positive. compression_m: of a
    spring where the stroke is zero; recoil_n: rows [compression m, force N], the least force of the spring's loop. damping_n_s_per_m: of a
    strut, at least. resolution_m: of a measured stroke. drive_power_w: the most that the drives give while the signal drive_running is on.
    """

    struts: int = 0
    compression_m: float = 0.0
    recoil_n: Any = ()
    damping_n_s_per_m: float = 0.0
    resolution_m: float = 2e-5
    drive_power_w: float = 0.0


@dataclass(frozen=True)
class Delays:
    """Sums of the delay ledger. transport_s: all of the loop but the drive's own lag; drive_frequency_hz 0: the drive has none.

    lead_rate, lead_acceleration: L1 and L2 of the lead that the platform's six directions want together, d = L1 V_TA + L2 A_TA in T axes,
    36 numbers each by rows (s and s2 between translations, rotations in rad); None where the drives' second order is all that is known."""

    total_s: float
    transport_s: float
    drive_frequency_hz: float
    drive_damping: float
    drive_lag_s: float
    measured_leg_delay_s: float
    sensor_delay_s: float
    lead_rate: Sequence[float] | None = None
    lead_acceleration: Sequence[float] | None = None
