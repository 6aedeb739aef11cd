"""One contact of a mode through the line of a test: what the prediction plays before the run.

The line is the one that will run: forward kinematics, wrench path, event detector, compensator, setpoint kinematics and safety stage are
built by the assembly from the test's own tables, at the test's own rate, with the delays of its ledger. Five things take the place of what
would cost time or hide the answer:

    stand       as it is known: the machine of the identified `[stand_model]` with its noise, else a virtual one of second-order drives and
                pure delays as the ledger has them (identified first), without
    mechanism   one linear contact along the mode's screw (rt_kernels.mechanisms.linear.linear_contact)
    dynamics    the two vehicles: rigid ones as rigid bodies with the integrator's delay of the test's own dynamics, crafts that move or
                bend by the test's own part, their joints as they stand at the start
    guidance    approach along the mode, loop closed just before the touch, free motion after it
    control     none: thrusters, wheels and controllers from outside stand still. The margins of the mechanism's own contact are those
                under the test's press thrust

No compensator is known here by its name: whatever part the test names is built and asked, one from outside as one of ours. The check is
safe in a prediction, so monitors that would end the contact before its end is seen are opened as far as their parts declare them (`OPEN`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.config import TestConfig, crafts
from hil_server.config.checks import check_part, part_table
from hil_server.config.loader import VEHICLES
from hil_server.config.model import Stand
from hil_server.errors import ConfigurationError
from hil_server.judge import margins
from hil_server.judge.contact_energy import energy_restitution, free_energy, meeting_energy
from hil_server.judge.margins import Margin
from hil_server.judge.rebound import NOT_SEPARATED, rebound, speed_along
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.line.context import Context
from hil_server.line.delay_ledger import DelayLedger
from hil_server.line.free_run import blocks
from hil_server.predict.course import Course
from hil_server.predict.stability import Mode
from rt_kernels.algebra.arrays import quat_exponential, quat_multiply
from rt_kernels.codes import mask
from rt_kernels.compensation.effective_mass import at_active_port, relative_inverse_inertia, to_target_port
from rt_kernels.context import Limits, Start, Vehicles
from rt_kernels.layout import CODES, FAULTS
from rt_kernels.mechanisms.linear.linear_contact import LinearContact

Compensator = tuple[str, Mapping[str, Any]]  # name of the part, its keys
# role → key → value, where the part declares the key: the contact is seen to its end
OPEN: dict[str, dict[str, Any]] = {
    "safety": {"energy_warn": 9.0, "energy_trip": 1e5, "following_max_m": 1.0, "following_time_s": 10.0, "rate_excess_s": 10.0,
               "leg_balance_n": 0.0, **dict.fromkeys(Course.__annotations__)},  # the course is of another contact
    "wrench": {"range_force_n": [1e8] * 3, "range_moment_n_m": [1e8] * 3},
}
# of the flight, not of one contact: joints are as at its start, what an arm holds is free
OF_THE_FLIGHT: dict[str, Any] = {"joint_changes": [], "grasp_port": ""}
OF_THE_DEVICE = ("bias_counts", "broken_wire_counts", "saturation_counts")  # of the real sensor, not of its physics
STAND_LIMITS = Limits(force_limit_n=[1e8] * 3, moment_limit_n_m=[1e8] * 3, start_tolerance_m=0.02)
PLANT_STEP_S = 5e-5
AFTER_S = 0.1
SLOWEST_HZ = 0.5  # a contact of a mechanism is played for two seconds at the most
WAY = {"ramp_s", "constant_s", "close_before_s", "settle_s", "speed_max_m_s", "turn_max_deg_s", "acceleration_max_m_s2",
       "turn_acceleration_max_deg_s2", "position_tolerance_m", "angle_tolerance_deg"}  # fmt: skip
PARTED = 1e-3  # of the peak: a smaller force is none
PARTED_BY_ENERGY = 0.02  # likewise, under noise: what a spring holds then is 4e-4 of its energy
LEAD_LIMITED = mask("compensation_status", "rate_limited", "acceleration_limited")
LATE = {0.0: "symplectic", 0.5: "constant_acceleration", 1.0: "explicit"}
STOP = {name: bit for name, bit, severity, *_ in FAULTS if severity == "stop"}
FIELDS = ("motion", "phase", "faults", "F_T", "F_T_corrected", "X_TA", "V_TA", "lead", "lead_offset", "compensation_status", "contact",
          *margins.FIELDS)  # fmt: skip
FIELDS_OF_BODIES = (*FIELDS, "X_NC", "V_NC", "X_NV", "V_NV")
FIELDS_OF_A_RUN = (*FIELDS, "control_A", "control_T", "capture_time", "periods")
NOISE = ("leg_noise_m", "force_noise_n", "moment_noise_n_m")
HEALTHY = {"leg_resolution_m": 0.0, "sensor_bias": [0.0] * 6, "sensor_drift": [0.0] * 6, "sensor_dead_zone_n": 0.0, "chain_force_n": 1e7,
           "chain_moment_n_m": 1e7}  # fmt: skip
PLAYS = 4  # of a machine with noise, which limits and dead bands do not average out


@dataclass(frozen=True)
class Played:
    """restitution: speed along the mode after the contact over before, nan where there is none; refused: why there is none, or empty;
    lead: (l1 [s], l2 [s2]) where a constant setpoint lead is all that the compensator does, else None; peak: largest measured component
    along the screw, N (N.m); margins: to the limits of the test, nearest first; sigma: standard deviation of the restitution of one run
    under the stand's noise, 0 without."""

    restitution: float
    refused: str
    lead: tuple[float, float] | None
    peak: float
    margins: tuple[Margin, ...] = ()
    sigma: float = 0.0


def play(test: Assembly, mode: Mode, speed: float, compensator: Compensator | None = None,
         twist: np.ndarray | None = None, ideal: bool = False) -> Played:  # fmt: skip
    """One contact of `mode`, met at `speed` (m/s along its screw), through the line of `test`, with its compensator or another one.
    twist: V_TA (6,) with which the units meet; none: that of the mode alone. ideal: on a stand without lag, as in orbit.

    Raises ConfigurationError for a compensator that cannot be built."""
    machine = test.config.setup.stand.machine
    noise = 0.0
    if machine is not None:
        sigma = np.repeat([machine[0].get("force_noise_n", 0.0), machine[0].get("moment_noise_n_m", 0.0)], 3)
        noise = float(np.linalg.norm(sigma * mode.shape) / (mode.shape @ mode.shape))
    plays, moving = [], moves(test)
    for seed in range(1, PLAYS + 1) if _noisy(test) and not ideal else (1,):
        records = records_of(line(test, mode, speed, compensator, twist, ideal=ideal, seed=seed), FIELDS_OF_A_RUN)
        found = read(records, mode.shape, noise)
        if moving:
            # joints and modes swing on after the contact: as of a run, beside it; below 0: the ports continue in their direction
            beside = read_run(records, mode.shape, test.context["period_s"], going_on=True)
            found = replace(found, restitution=beside.restitution, refused=beside.refused)
        elif machine is not None and not found.refused:
            # with the test's own twist the units turn after the contact, and T's axes with them: as of a run, beside the contact
            beside = read_run(records, mode.shape, test.context["period_s"])
            found = found if beside.refused else replace(found, restitution=beside.restitution)
        plays.append(replace(found, margins=margins_of(records, test)))
    return plays[0] if len(plays) == 1 else together(plays)


def margins_of(records: np.ndarray, test: Assembly) -> tuple[Margin, ...]:
    """To the limits of the test, in the closed loop."""
    free = records[records["motion"] == CODES["motion"]["free"]]
    return margins.margins(free, test.config, test.context["period_s"])


@dataclass(frozen=True)
class Touch:
    """The first contact of the mechanism itself. margins: to the limits of the test, nearest first. Of one that says along which lines it
    touches (`lines`, as several contacts at once do), by energy (`contact_energy`): restitution on the stand, nan where there is none, and
    then `refused` says why; ideal: the same on a stand without lag, as in orbit; sigma: standard deviation under the stand's noise."""

    margins: tuple[Margin, ...] = ()
    restitution: float = math.nan
    ideal: float = math.nan
    refused: str = ""
    sigma: float = 0.0


def play_mechanism(test: Assembly, mode: Mode) -> Touch:
    """The first contact of the test's own mechanism, with the test's own twist: what gives way, catches or rubs answers otherwise than the
    linear contact of a mode. mode: the slowest, which says how long is played. Margins are those under the test's press thrust,
    restitutions those without it. The mechanism is left as it was."""
    mechanism = test.context["mechanism"]
    state = mechanism.snapshot()
    slowest = replace(mode, frequency_hz=max(mode.frequency_hz, SLOWEST_HZ), zeta=min(mode.zeta, 0.9))
    twist = np.asarray(test.context["start"].V_TA, float)

    def played(**how: Any) -> np.ndarray:
        mechanism.restore(state)
        return records_of(line(test, slowest, 0.0, None, twist, mechanism=mechanism, **how), FIELDS_OF_BODIES)

    press = presses(test)
    try:
        if not hasattr(mechanism, "lines"):
            return Touch(margins_of(played(press=press), test))
        ideal, refused = _energy_restitution(played(ideal=True), test)
        if refused:
            return Touch(margins_of(played(press=press), test), refused=f"without a stand: {refused}")
        runs = [played(seed=seed) for seed in (range(1, PLAYS + 1) if _noisy(test) else (1,))]
        found = [_energy_restitution(records, test) for records in runs]
        if press:
            runs.append(played(press=True))
        es = [e for e, _ in found]
        refused = next((why for _, why in found if why), "")
        mean, sigma = (math.nan, 0.0) if refused else (float(np.mean(es)), float(np.std(es, ddof=1)) if len(es) > 1 else 0.0)
        return Touch(_nearest(margins_of(records, test) for records in runs), mean, ideal, refused, sigma)
    finally:
        mechanism.restore(state)


def presses(test: Assembly) -> bool:
    """Whether the guidance of the test presses the active craft on from the first contact, by the thrust of its vehicle file."""
    by_thrust = test.config.part("control")[0] == registry.FILLED["control"] and test.config.part("guidance")[0] == registry.APPROACH
    return by_thrust and test.context["vehicles"].active.thrust_n > 0.0


def _energy_restitution(records: np.ndarray, test: Assembly) -> tuple[float, str]:
    """e by energy of the closed loop, and why there is none, or empty."""
    free = records[records["motion"] == CODES["motion"]["free"]]
    if not len(free) or (trip := _trip(records)):
        return math.nan, f"the played contact does not end{trip}" if len(free) else "the played line never closed its loop"
    felt = np.linalg.norm(free["F_T"][:, :3], axis=1)
    peak = float(felt.max())
    if not peak > 0.0:
        return math.nan, "the played line felt no contact"
    if felt[-1] > PARTED_BY_ENERGY * peak:
        return math.nan, "the units do not part in the played contact"
    first = free[0]
    mechanism: Any = test.context["mechanism"]
    met = meeting_energy(test.context["vehicles"], first["X_TA"], first["V_TA"], mechanism.lines(first["X_TA"]))
    return energy_restitution(free_energy(free[[0, -1]], test.context["vehicles"]), met), ""


def _noisy(test: Assembly) -> bool:
    machine = test.config.setup.stand.machine
    return machine is not None and any(machine[0].get(key) for key in NOISE)


def _nearest(plays: Iterable[tuple[Margin, ...]]) -> tuple[Margin, ...]:
    """Of several plays the nearest margin of each name, nearest first."""
    nearest: dict[str, Margin] = {}
    for margin in (margin for found in plays for margin in found):
        if margin.name not in nearest or margin.share > nearest[margin.name].share:
            nearest[margin.name] = margin
    return tuple(sorted(nearest.values(), key=lambda margin: -margin.share))


def together(plays: Sequence[Played]) -> Played:
    """The same contact under different noise: mean and scatter of the restitution, the nearest margins; refused as soon as one is."""
    refused = next((found.refused for found in plays if found.refused), "")
    es = [found.restitution for found in plays]
    ordered = _nearest(found.margins for found in plays)
    mean, sigma = (math.nan, 0.0) if refused else (float(np.mean(es)), float(np.std(es, ddof=1)))
    return Played(mean, refused, None, max(found.peak for found in plays), ordered, sigma)


# ------------------------------------------------------------------------------------------------------------- the line


def line(test: Assembly, mode: Mode, speed: float, compensator: Compensator | None = None,
         twist: np.ndarray | None = None, *, mechanism: Any = None, as_configured: bool = False, ideal: bool = False,
         seed: int = 1, press: bool = False) -> Assembly:  # fmt: skip
    """The line of `test` with the mode's contact in the place of the mechanism, ready to run on the free-running clock.

    mechanism: a MechanismPart instead of that contact (several contacts, friction); as_configured: on the stand of the test's own
    [virtual], with its noise, limits and monitors, and not on the one that is known: what a run of this contact would do; ideal: on a stand
    without lag, filter and compensation, as in orbit; seed: of the noise of the stand that is known; press: under the press thrust."""
    config = contact_test(test, mode, compensator, as_configured, ideal)
    context = contact_context(test, mode, speed, config.guidance, twist, press)
    if as_configured:
        context["limits"] = replace(test.context["limits"], start_leg_m=None)  # from the middle of the legs, not from where it is parked
    if mechanism is not None:
        context["mechanism"] = mechanism
    stand = config.stand["virtual"] if as_configured else config.stand["virtual"] | {"seed": seed}
    port = assembly.build_part("simulated", stand["part"], {k: v for k, v in stand.items() if k != "part"}, context)
    context |= {"sensor_scale": port.sensor_scale, "noiseless": Stand({"virtual": stand}).noiseless()}
    return assembly.finish(config, context, [port])


def moves(test: Assembly) -> bool:
    """Whether a craft of the test moves or bends between its docking port and the rest of it, and is flown so."""
    part = registry.part("dynamics", test.config.part("dynamics")[0])
    return getattr(part, "FREE_VEHICLES", False) and any(crafts.bends(test.config.document[name]) for name in VEHICLES)


def inner_modes(test: Assembly) -> tuple[np.ndarray, np.ndarray] | None:
    """Modes of both crafts as the relative motion at and in T shows them: squares of their circular frequencies (n,) and mass-normalised
    shapes (6, n); None for two rigid ones."""
    if not moves(test):
        return None
    from hil_server.predict import craft_view  # late: it loads the trees of bodies

    (a, active), (t, target) = (craft_view.docking_modes(test.config.document[name]) for name in VEHICLES)
    return np.concatenate([a, t]), np.hstack([to_target_port(test.context["start"].X_TA) @ active, -target])


def mobility(test: Assembly) -> np.ndarray:
    """L^-1 (6, 6) at and in T: the relative acceleration by a wrench of the contact at its first instant, of the crafts as they fly."""
    if (inner := inner_modes(test)) is not None:
        found: np.ndarray = inner[1] @ inner[1].T
        return found
    return relative_inverse_inertia(test.context["vehicles"], test.context["start"].X_TA)


def twist_of(test: Assembly, mode: Mode, speed: float) -> np.ndarray:
    """V_TA (6,) that moves the mode alone at `speed` along its screw: u . V = speed and no other mode."""
    X_TA = np.asarray(test.context["start"].X_TA, float)
    along = mobility(test) @ mode.shape
    found: np.ndarray = at_active_port(X_TA) @ along / (mode.shape @ along) * speed
    return found


def contact_context(test: Assembly, mode: Mode, speed: float, way: Mapping[str, float], twist: np.ndarray | None = None,
                    press: bool = False) -> Context:  # fmt: skip
    """What the parts get: the test's geometry and vehicles, a start that moves along the mode alone or with `twist`, its contact. way:
    times, s, of the approach (ramp_s, constant_s, close_before_s); press: with the thrust of the vehicles."""
    own = test.context
    X_TA = np.asarray(own["start"].X_TA, float)
    V_TA = twist_of(test, mode, speed) if twist is None else np.asarray(twist, float)
    # the approach begins so long before the touch at this twist
    u = -(0.5 * way["ramp_s"] + way["constant_s"] + way["close_before_s"])
    X_wait = np.concatenate([X_TA[:3] + u * V_TA[:3], quat_multiply(quat_exponential(u * V_TA[3:]), X_TA[3:])])
    damping = 2.0 * mode.zeta * 2.0 * math.pi * mode.frequency_hz * mode.effective_mass
    contact = LinearContact(stiffness=mode.stiffness, damping=damping, screw=mode.shape, X_TA=X_TA, X_wait=X_wait)
    keep = moves(test)
    crafts_of_it = (own["vehicles"].active, own["vehicles"].target)
    vehicles = Vehicles(*(replace(v, thrust_n=v.thrust_n if press else 0.0, modal=v.modal if keep else None) for v in crafts_of_it))
    start = Start(X_TA, V_TA)
    return {**own, "vehicles": vehicles, "mechanism": contact, "start": start, "orbit": None, "limits": STAND_LIMITS, "sensor_scale": None,
            "live": False}  # fmt: skip


def contact_test(test: Assembly, mode: Mode, compensator: Compensator | None, as_configured: bool = False,
                 ideal: bool = False) -> TestConfig:  # fmt: skip
    """The test's tables with those of the played contact in them."""
    config, ledger = test.config, test.ledger
    document = {table: keys for table, keys in config.document.items() if table != "requirement"}  # the contact has no docking unit
    known = known_stand(test, config.document["wrench"].get("calibration"))
    if not as_configured:
        for role, keys in OPEN.items():
            name, own = config.part(role)
            declared = part_table(role, name).parameters
            document[role] = {"part": name, **own, **{k: v for k, v in keys.items() if k in declared}}
        document["wrench"] = {k: v for k, v in document["wrench"].items() if k not in OF_THE_DEVICE}
        document["stand"] = {**config.stand, **known}
    if ideal:
        document["stand"] = _without_lag(config.stand, known["virtual"])
        document["wrench"] = {**document["wrench"], "filter_order": 0}
        compensator = registry.NO_COMPENSATION, {}
    document["dynamics"] = {"part": registry.FREE_BODIES, "range_max_m": 1000.0, "integrator": _integrator(test)}
    if moves(test):
        name, own = config.part("dynamics")
        without = {key: empty for key, empty in OF_THE_FLIGHT.items() if key in own}
        document["dynamics"] = {"part": name, **own, "range_max_m": 1000.0, **without}
    document["commands"] = {"part": registry.FILLED["commands"]}
    if config.part("control")[0] != registry.FILLED["control"]:
        document["control"] = {"part": registry.FILLED["control"]}  # its thrust is that of the vehicles
    # the way to the contact is the test's own, since adaptive parts learn on it; after the contact all filters and drives come to rest
    slow = 8.0 * _drive_time(known, ledger)
    settled = AFTER_S + slow + 4.0 * ledger.total_s
    name, own = config.part("guidance")
    way = {key: value for key, value in check_part("guidance", name, own).items() if key in WAY}
    guidance = registry.APPROACH
    way = check_part("guidance", guidance, {"close_before_s": settled, **way})
    contact = 1.0 / ((mode.slowest_hz or mode.frequency_hz) * math.sqrt(1.0 - mode.zeta**2))  # twice as long as in orbit
    way |= {"contact_max_s": way["close_before_s"] + contact + settled, "finish_at_region_end": False, "retreat_distance_m": 0.0}
    document["guidance"] = {"part": guidance, **way}
    document["test"] = {**config.test, "duration_max_s": 3600.0}
    if compensator is not None:
        document["compensation"] = {"part": compensator[0], **compensator[1]}
    return TestConfig(document)


def known_stand(test: Assembly, calibration: Sequence[Sequence[float]] | None = None) -> dict[str, Any]:
    """Tables `virtual` and, of a linear stand, `drive_model` of the stand as it is known, with the delays of the test's ledger; the
    setpoints of an identified machine act after its own delay."""
    config, ledger, period = test.config, test.ledger, test.context["period_s"]
    machine = config.setup.stand.machine
    model = machine[0] if machine else None
    terms = {term.name: term.seconds for term in ledger.terms}
    wire = model.get("drive_delay_s", 0.0) if model else terms["transport"]
    step = period / max(1, round(period / PLANT_STEP_S))
    # whole steps of the plant; what rounding takes from the sensor's delay the transport gets
    sensor, ticks = terms["sensor"] + terms["sensor age"], round(terms["ticks"] / period)
    whole_sensor = step * round(sensor / step)
    transport = step * max(0, round((wire + terms["ticks"] - min(ticks, 1) * period + sensor - whole_sensor) / step))
    late = {
        "drive_delay_s": transport, "sensor_delay_s": whole_sensor, "setpoint_delay_ticks": min(ticks, 1),
        "measured_leg_delay_ticks": min(1, round(ledger.measured_leg_delay_s / period)), "plant_step_s": step,
        **({"gauge_matrix": calibration} if calibration is not None else {"counts_per_newton": 1e4, "counts_per_newton_metre": 1e4}),
    }  # fmt: skip
    if model:
        part = registry.HYDRAULIC_STAND
        declared = part_table("simulated", part).parameters
        return {"virtual": {"part": part, **{k: v for k, v in {**model, **HEALTHY, **late, "faults": []}.items() if k in declared}}}
    drives = {"frequency_hz": ledger.drive_frequency_hz, "damping": ledger.drive_damping}
    virtual = {"part": registry.LINEAR_STAND, **{f"drive_{k}": v for k, v in drives.items()}, **HEALTHY, **late}
    return {"virtual": virtual, "drive_model": {**drives, "delay_s": transport, "date": ""}}


def _without_lag(stand: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The stand with drives that reach their setpoints in the tick, and nothing that delays or limits."""
    sensor = {key: value for key, value in known.items() if key in ("gauge_matrix", "counts_per_newton", "counts_per_newton_metre")}
    now = {"drive_frequency_hz": 0.0, "drive_delay_s": 0.0, "sensor_delay_s": 0.0, "setpoint_delay_ticks": 0, "measured_leg_delay_ticks": 0}
    platform = {**stand["platform"], "leg_rate_max_m_s": 10.0, "leg_acceleration_max_m_s2": 1e4}
    own = {key: value for key, value in stand.items() if key not in ("stand_model", "drive_model")}
    return {**own, "platform": platform, "virtual": {"part": registry.LINEAR_STAND, **HEALTHY, **now, **sensor}}


def _drive_time(known: Mapping[str, Any], ledger: DelayLedger) -> float:
    """Time constant with which the drives of the played stand come to rest, s."""
    if "drive_model" not in known:
        keys = dict(known["virtual"])
        return 1.0 / float(check_part("simulated", keys.pop("part"), keys)["position_gain_per_s"])
    return 1.0 / (ledger.drive_damping * 2.0 * math.pi * ledger.drive_frequency_hz) if ledger.drive_frequency_hz > 0.0 else 0.0


def _integrator(test: Assembly) -> str:
    """Of the rigid bodies: as late as the test's own dynamics. Raises ConfigurationError for a delay that none of them has."""
    late = float(getattr(test.line.stages["dynamics"], "integrator_late_ticks", 0.0))
    if late not in LATE:
        raise ConfigurationError(f"dynamics: {late} ticks of integrator delay cannot be played; limit one of {', '.join(map(str, LATE))}")
    return LATE[late]


# ----------------------------------------------------------------------------------------------------------- the contact


def records_of(test: Assembly, fields: Sequence[str] = FIELDS) -> np.ndarray:
    """Runs the line until the loop is opened again; the fields that the reading wants, (n,)."""
    found = []
    for block in blocks(test):
        found.append(block[list(fields)].copy())
        if block["phase"][-1] >= CODES["phase"]["finish"]:
            break
    return np.concatenate(found)


def read(records: np.ndarray, screw: np.ndarray, noise: float = 0.0) -> Played:
    """Restitution from the free motion before and after the contact, and whether a constant lead was all that was compensated. noise: of
    the force along the screw, standard deviation."""
    free = records[records["motion"] == CODES["motion"]["free"]]
    if not len(free):
        return Played(math.nan, f"the played line never closed its loop{_trip(records)}", None, 0.0)
    speed = speed_along(free[[0, -1]], screw)
    scale = float(screw @ screw)
    felt, moved = free["F_T"] @ screw / scale, free["F_T_corrected"] @ screw / scale
    peak = float(np.abs(felt).max())
    l = free["lead"]
    limited = free["compensation_status"] & LEAD_LIMITED != 0
    alone = np.array_equal(free["F_T"], free["F_T_corrected"]) and not free["lead_offset"][~limited].any()
    lead = (float(l[0, 1]), float(l[0, 2])) if alone and (l == l[0]).all() and l[0, 0] == 1.0 else None
    if trip := _trip(records):
        return Played(math.nan, f"the played contact does not end{trip}", lead, peak)
    before, after = map(float, speed)
    if not peak > 0.0:
        return Played(math.nan, "the played line felt no contact", lead, peak)
    if max(abs(float(felt[-1])), abs(float(moved[-1]))) > PARTED * peak + 6.0 * noise or not before * after < 0.0:
        return Played(math.nan, "the units do not part in the played contact", lead, peak)
    return Played(-after / before, "", lead, peak)


def read_run(records: np.ndarray, screw: np.ndarray, period_s: float, going_on: bool = False) -> Played:
    """Restitution of the first contact of a run with noise, in the motion along `screw`, as it is reported of a run
    (`hil_server.judge.rebound`). records: with FIELDS_OF_A_RUN; going_on: also of one that does not turn the ports back, below 0."""
    flag = np.flatnonzero(np.diff(records["contact"] != 0, prepend=False, append=False))
    peak = float(np.abs(records["F_T"] @ screw).max(initial=0.0) / (screw @ screw))
    if trip := _trip(records):
        return Played(math.nan, f"the contact does not end{trip}", None, peak)
    if not len(flag):
        return Played(math.nan, "no contact was felt", None, peak)
    found = rebound(records, int(flag[0]), int(flag[1]), period_s, None, screw)
    if going_on and found.why == NOT_SEPARATED and found.before is not None and found.after is not None:
        before, after = map(float, speed_along(records[[found.before, found.after]], screw))
        return Played(-after / before, "", None, peak)
    return Played(math.nan if found.restitution is None else found.restitution, found.why, None, peak)


def _trip(records: np.ndarray) -> str:
    names = [name for name, bit in STOP.items() if len(records) and int(records["faults"][-1]) & bit]
    return f": it trips ({', '.join(names)})" if names else ""


# --------------------------------------------------------------------------------------------------- over the frequency


def mode_at(test: Assembly, frequency_hz: float, zeta: float, screw: Sequence[float] | np.ndarray = (1.0, 0, 0, 0, 0, 0)) -> Mode:
    """The mode that a contact along `screw` would have at this frequency with the test's vehicles."""
    u = np.asarray(screw, float)
    mass = 1.0 / float(u @ mobility(test) @ u)
    return Mode(frequency_hz, zeta, mass, mass * (2.0 * math.pi * frequency_hz) ** 2, u)


def restitution_curve(test: Assembly, frequencies: Iterable[float], zeta: float = 0.0, speed: float = 0.02,
                      compensator: Compensator | None = None, screw: Sequence[float] | np.ndarray = (1.0, 0, 0, 0, 0, 0),
                      ) -> np.ndarray:  # fmt: skip
    """e over frequency, (n,), for the test's compensator or another one; nan where the contact cannot be played to its end. A compensator
    that declares a stiffness of the contact and is given none gets the true one: compensators are compared at their best."""
    return np.array([play(test, mode, speed, with_stiffness(compensator, mode)).restitution
                     for mode in (mode_at(test, f, zeta, screw) for f in frequencies)])  # fmt: skip


def with_stiffness(compensator: Compensator | None, mode: Mode) -> Compensator | None:
    """The same compensator, its declared `stiffness_n_per_m` filled in where it is not given."""
    if compensator is None:
        return None
    name, keys = compensator
    declared = part_table("compensation", name).parameters
    return name, ({"stiffness_n_per_m": mode.stiffness} if "stiffness_n_per_m" in declared else {}) | dict(keys)
