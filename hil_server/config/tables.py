"""What the files of a test may contain: the declarations of all tables that do not belong to a part.

Frames: S load cell, T port of the target unit, A port of the active unit, P platform, W stand floor; angles are yaw (about Y), pitch
(about Z), roll (about X), in that order of rotation.
"""

from rt_kernels.model import craft_file
from rt_kernels.parameters import Parameter

ZERO3 = (0.0, 0.0, 0.0)
SMALL = 1e-9

NAME = Parameter("name", "str", "-", "short name, shown in reports")
DESCRIPTION = Parameter("description", "str", "-", "what it is", default="")
SOURCE = Parameter("source", "str", "-", "where the figures come from", default="")
SYNTHETIC = Parameter("synthetic", "bool", "-", "true: invented for tests, no real hardware has these figures", default=False)

# ---------------------------------------------------------------------------------------------------------------- test file
TEST = (
    NAME,
    DESCRIPTION,
    Parameter("rate_hz", "float", "Hz", "ticks per second of the loop", default=1000.0, low=100.0, high=4000.0),
    Parameter("duration_max_s", "float", "s", "the run ends here at the latest; a live one is parked then", low=0.01, high=86400.0),
    Parameter("stand", "str", "-", "stand file, relative to this file or to the shipped stand_configs"),
    Parameter("active_vehicle", "str", "-", "vehicle file: carries the active docking unit"),
    Parameter("target_vehicle", "str", "-", "vehicle file: carries the target unit"),
    Parameter("mechanism", "str", "-", "mechanism file: the docking units; a virtual stand simulates them"),
    Parameter("operator", "str", "-", "who flies, for the rehearsal record", default=""),
    Parameter("notes", "str", "-", "anything worth keeping with the record", default=""),
    Parameter("rehearsal", "bool", "-", "true: the console's page may act as a hand controller (browser Gamepad, keys)", default=False),
)

INITIAL_CONDITIONS = (
    Parameter("approaching_vehicle", "str", "-", "which vehicle moves before the contact", default="active", choices=("active", "target")),
    Parameter("between", "str", "-", "whose axes angles, velocities and rates are in: the docking ports', wherever they look, or those of "
              "the crafts' root bodies", default="ports", choices=("ports", "bodies")),
    Parameter("lateral_y_m", "float", "m", "lateral miss of the port centres along Y of the target port", default=0.0, low=-1.0, high=1.0),
    Parameter("lateral_z_m", "float", "m", "lateral miss of the port centres along Z of the target port", default=0.0, low=-1.0, high=1.0),
    Parameter("yaw_deg", "float", "deg", "misalignment, first rotation, about Y", default=0.0, low=-30.0, high=30.0),
    Parameter("pitch_deg", "float", "deg", "misalignment, second rotation, about Z", default=0.0, low=-30.0, high=30.0),
    Parameter("roll_deg", "float", "deg", "misalignment, third rotation, about X", default=0.0, low=-180.0, high=180.0),
    Parameter("velocity_x_m_s", "float", "m/s", "relative velocity of the centre of mass, + closes the distance", low=-0.5, high=0.5),
    Parameter("velocity_y_m_s", "float", "m/s", "relative velocity of the centre of mass", default=0.0, low=-0.5, high=0.5),
    Parameter("velocity_z_m_s", "float", "m/s", "relative velocity of the centre of mass", default=0.0, low=-0.5, high=0.5),
    Parameter("rate_x_deg_s", "float", "deg/s", "relative angular rate", default=0.0, low=-10.0, high=10.0),
    Parameter("rate_y_deg_s", "float", "deg/s", "relative angular rate", default=0.0, low=-10.0, high=10.0),
    Parameter("rate_z_deg_s", "float", "deg/s", "relative angular rate", default=0.0, low=-10.0, high=10.0),
    Parameter(
        "orbital_rate_rad_s", "floats", "rad/s", "orbital rate in the axes of the vehicle that does not approach (about 1.1e-3 at 400 km); "
        "with a table [orbit] it follows from the orbit and may be left out",
        default=ZERO3, shape=3, low=-0.01, high=0.01,
    ),
    Parameter("first_contact_penetration_m", "float", "m", "largest penetration accepted as first contact",
              default=1e-6, low=1e-9, high=1e-3),
)  # fmt: skip

EARTH_M3_S2 = 3.986004418e14
EARTH_RADIUS_KM = 6378.137

ORBIT = (
    Parameter("radius_km", "float", "km", "distance of the target's centre of mass from the planet's centre when the loop closes",
              low=1.0, high=1e9),
    Parameter("radius_direction", "floats", "-", "from the planet's centre to the target, in the target's axes when the loop closes; of "
              "any length", shape=3, low=-1e6, high=1e6),
    Parameter("flight_direction", "floats", "-", "way of flight in the same axes, of any length; what of it lies across the radius counts",
              shape=3, low=-1e6, high=1e6),
    Parameter("eccentricity", "float", "-", "of the orbit", default=0.0, low=0.0, high=0.99),
    Parameter("true_anomaly_deg", "float", "deg", "where on an eccentric orbit: angle from the pericentre", default=0.0,
              low=-360.0, high=360.0),
    Parameter("target_attitude", "str", "-", "how the target is held before the loop closes: it turns with the orbit, or not at all",
              default="orbital", choices=("orbital", "inertial")),
    Parameter("gravitational_parameter_m3_per_s2", "float", "m3/s2", "of the planet; the Earth's if not given", default=EARTH_M3_S2,
              low=1.0, high=1e21),
)  # fmt: skip

# Largest deviations of the eleven parameters from the nominal approach, for the criticality of a variant (Yaskevich 2020, 4.5).
CRITICALITY_LIMITS = (
    Parameter("velocity_x_nominal_m_s", "float", "m/s", "nominal closing velocity", default=0.1, low=-0.5, high=0.5),
    Parameter("lateral_y_m", "float", "m", "largest deviation", default=0.1, low=SMALL),
    Parameter("lateral_z_m", "float", "m", "largest deviation", default=0.1, low=SMALL),
    Parameter("yaw_deg", "float", "deg", "largest deviation", default=4.0, low=SMALL),
    Parameter("pitch_deg", "float", "deg", "largest deviation", default=4.0, low=SMALL),
    Parameter("roll_deg", "float", "deg", "largest deviation", default=4.0, low=SMALL),
    Parameter("velocity_x_m_s", "float", "m/s", "largest deviation from the nominal velocity", default=0.05, low=SMALL),
    Parameter("velocity_y_m_s", "float", "m/s", "largest deviation", default=0.04, low=SMALL),
    Parameter("velocity_z_m_s", "float", "m/s", "largest deviation", default=0.04, low=SMALL),
    Parameter("rate_x_deg_s", "float", "deg/s", "largest deviation", default=0.2, low=SMALL),
    Parameter("rate_y_deg_s", "float", "deg/s", "largest deviation", default=0.2, low=SMALL),
    Parameter("rate_z_deg_s", "float", "deg/s", "largest deviation", default=0.2, low=SMALL),
)
ELEVEN = tuple(p.key for p in CRITICALITY_LIMITS if p.key != "velocity_x_nominal_m_s")

TELEMETRY = (
    Parameter("publish", "str", "-", "address of the data bus", default="tcp://127.0.0.1:9770"),
    Parameter("command", "str", "-", "address for commands", default="tcp://127.0.0.1:9771"),
    Parameter("hand_controller", "str", "-", "address for hand controllers", default="tcp://127.0.0.1:9772"),
    Parameter("plotjuggler", "str", "-", "address on which PlotJuggler may subscribe, as tcp://127.0.0.1:9773 (none: no such messages)",
              default=None),
    Parameter("samples_per_message", "int", "-", "ticks in one message on the bus", default=20, low=1, high=1000),
    Parameter("keys", "str", "-", "folder with CURVE keys; required off loopback", default=""),
    Parameter("users", "str", "-", "users of this machine who may command beside the one who runs the server, by name, with blanks between",
              default=""),
    Parameter("on_record_lost", "str", "-", "end of a live run that cannot be recorded: the platform returns home, or a trip",
              default="park", choices=("park", "trip")),
    Parameter("log_every", "int", "ticks", "simulations only: logs every n-th tick, every one in which a state changes or a load component "
              "reaches a new peak", default=1, low=1, high=10000),
    Parameter("checkpoint_every_s", "float", "s", "simulations only: run time between two checkpoints, for simulate --from; "
              "further ones where a phase changes, at the first contact, the capture and a stop; 0: none", default=5.0, low=0.0, high=1e5),
)  # fmt: skip



def _camera(on: str, position_m: tuple[float, ...], look_at_m: tuple[float, ...], field_of_view_deg: float) -> tuple[Parameter, ...]:
    return (
        Parameter("on", "str", "-", "port on whose axes the camera sits", default=on, choices=("active", "target")),
        Parameter("position_m", "floats", "m", "camera in the axes of that port", default=position_m, shape=3, low=-100.0, high=100.0),
        Parameter("look_at_m", "floats", "m", "middle of its picture, in the same axes", default=look_at_m, shape=3, low=-1e3, high=1e3),
        Parameter("field_of_view_deg", "float", "deg", "from the lower to the upper edge", default=field_of_view_deg, low=1.0, high=150.0),
    )


# Pictures of the console; the shipped poses are invented. Y of the port is up.
CAMERAS = {
    "aim": _camera("active", (-0.10, 0.95, 0.0), (1.0, 0.95, 0.0), 30.0),
    "survey_1": _camera("target", (-0.8, 1.6, 2.2), (-0.35, 0.1, 0.0), 50.0),
    "survey_2": _camera("target", (-0.5, -0.3, -2.9), (-0.35, 0.1, 0.0), 50.0),
    "cross": (
        Parameter("on", "str", "-", "port that carries the target cross of the aim camera", default="target", choices=("active", "target")),
        Parameter("position_m", "floats", "m", "middle of the cross", default=(0.0, 0.95, 0.0), shape=3, low=-100.0, high=100.0),
        Parameter("size_m", "float", "m", "length of its arms", default=0.12, low=0.001, high=10.0),
        Parameter("standoff_m", "float", "m", "how far the white cross stands before its plate", default=0.12, low=0.0, high=10.0),
    ),
}

# --------------------------------------------------------------------------------------------------------------- stand file
STAND = (NAME, DESCRIPTION, SOURCE, SYNTHETIC)

# Table of a stand file that belongs to a part → role of the part.
DEVICES = {"drives": "drives", "wrench_sensor": "wrench_sensors", "mechanism_signals": "mechanism_signals", "virtual": "simulated"}

MOUNTING = (
    Parameter("load_cell_on", "str", "-", "what the load cell stands on: the force frame on the floor, or the platform",
              default="floor", choices=("floor", "platform")),
    Parameter("unit_on_load_cell", "str", "-", "which docking unit hangs on the load cell", choices=("target", "active")),
    Parameter("load_cell_position_m", "floats", "m", "load cell in W, or on P if it stands on the platform", shape=3, low=-50.0, high=50.0),
    Parameter("load_cell_angles_deg", "floats", "deg", "its yaw, pitch, roll there", default=ZERO3, shape=3, low=-180.0, high=180.0),
    Parameter("measured_port_position_m", "floats", "m", "port of the unit on the load cell, in S", shape=3, low=-10.0, high=10.0),
    Parameter("measured_port_angles_deg", "floats", "deg", "its yaw, pitch, roll in S", default=ZERO3, shape=3, low=-180.0, high=180.0),
    Parameter("other_port_position_m", "floats", "m", "port of the other unit: on P, or in W if the load cell stands on the platform",
              shape=3, low=-50.0, high=50.0),
    Parameter("other_port_angles_deg", "floats", "deg", "its yaw, pitch, roll there", default=ZERO3, shape=3, low=-180.0, high=180.0),
    Parameter("gravity_m_s2", "floats", "m/s2", "gravity in W", default=(0.0, 0.0, -9.80665), shape=3, low=-20.0, high=20.0),
    Parameter("carried_mass_kg", "float", "kg", "mass that hangs on the load cell", low=0.0, high=1e5),
    Parameter("carried_com_m", "floats", "m", "its centre of mass in S", default=ZERO3, shape=3, low=-10.0, high=10.0),
    Parameter("carried_inertia_kg_m2", "rows", "kg.m2", "its inertia about its centre of mass, in S axes",
              default=(ZERO3,) * 3, shape=(3, 3)),
)  # fmt: skip

LIMITS = (
    Parameter("force_limit_n", "floats", "N", "software limit of each force component at the load cell", shape=3, low=SMALL, high=1e7,
              stricter="lower"),
    Parameter("moment_limit_n_m", "floats", "N.m", "software limit of each moment component at the load cell",
              shape=3, low=SMALL, high=1e7, stricter="lower"),
    Parameter("analogue_force_n", "floats", "N", "thresholds of the independent analogue chain", shape=3, low=SMALL, high=1e7,
              stricter="lower"),
    Parameter("analogue_moment_n_m", "floats", "N.m", "thresholds of the independent analogue chain", shape=3, low=SMALL, high=1e7,
              stricter="lower"),
    Parameter("start_leg_m", "floats", "m", "leg lengths of the parked platform, from which a run starts; omitted: those of the neutral "
              "pose", default=None, shape=6, low=SMALL, high=100.0, stricter="equal"),
    Parameter("start_tolerance_m", "float", "m", "a leg further from there is not started from", default=0.004, low=1e-5, high=10.0,
              stricter="lower"),
    Parameter("supply_pressure_min_pa", "float", "Pa", "a hydraulic supply below it is a fault; 0: not judged, nothing measures it",
              default=0.0, low=0.0, high=1e8, stricter="higher"),
    Parameter("blocking_valves", "bool", "-", "drives that lose their power close blocking valves: so legs are stopped that cannot follow",
              default=False, stricter="equal"),
    Parameter("power_off", "str", "-", "after a fault whose stop category asks for it (CHANNELS.md) the power is taken off: the axis whose "
              "fault it is, all axes, or none", default="axis", choices=("axis", "all", "none"), stricter="equal"),
    Parameter("emergency_stop", "bool", "-", "the emergency stop is read on two channels (analogue_chain)", default=False,
              stricter="equal"),
    Parameter("guard", "bool", "-", "the guard is read on two channels", default=False, stricter="equal"),
    Parameter("hydraulic_unit", "bool", "-", "the hydraulic unit is read: on, low, high, interlock", default=False, stricter="equal"),
    Parameter("discrepancy_s", "float", "s", "the two channels of an input that differ for longer are a fault", default=0.1, low=0.0,
              high=10.0, stricter="lower"),
    Parameter("proof_test", "bool", "-", "nothing moves before each input of the chain with two channels has been operated once, in this "
              "run", default=False, stricter="equal"),
)

SAFETY_RECORD = (
    Parameter("owner", "str", "-", "who answers for the limits of this file"),
    Parameter("date", "str", "-", "when they were signed"),
    Parameter("checksum", "str", "-", "of the tables that say how far, how fast and how hard the stand may go, and of its devices; written "
              "by `hil-server sign`"),
)  # fmt: skip

DRIVE_MODEL = (
    Parameter("frequency_hz", "float", "Hz", "natural frequency of a drive", low=0.1, high=1000.0),
    Parameter("damping", "float", "-", "damping ratio of a drive", low=0.01, high=5.0),
    Parameter("delay_s", "float", "s", "transport delay of a drive", low=0.0, high=0.5),
    Parameter("date", "str", "-", "when it was identified; empty: a figure of the manufacturer", default=""),
    Parameter("gain", "float", "-", "static gain", default=1.0, low=0.1, high=10.0),
    Parameter("dead_band_m", "float", "m", "dead band, half width", default=0.0, low=0.0, high=0.1),
    Parameter("frequency_sigma_hz", "float", "Hz", "standard deviation of the frequency over the legs", default=0.0, low=0.0),
    Parameter("damping_sigma", "float", "-", "of the damping ratio", default=0.0, low=0.0),
    Parameter("delay_sigma_s", "float", "s", "of the delay", default=0.0, low=0.0),
    Parameter("confidence", "float", "-", "share of the chirp's motion that the model explains", default=0.0, low=0.0, high=1.0),
)

# Beside the parameters of the machine itself (`stand_model`).
IDENTIFIED = (
    Parameter("drive_delay_s", "float", "s", "transport delay of the drives", default=0.002, low=-0.1, high=0.1),
    Parameter("mode_hz", "floats", "Hz", "modes of the structure on the load cell after a tap", default=(), low=0.1, high=1000.0),
    Parameter("mode_damping", "floats", "-", "damping ratio of each", default=(), low=0.0, high=1.0),
    Parameter("date", "str", "-", "when it was identified; empty: the manufacturers' figures", default=""),
    Parameter("misfit", "float", "-", "mean square of what the machine did not follow, in units of the noise; 1: nothing but noise",
              default=0.0, low=0.0),
    Parameter("not_separated", "str", "-", "what the run could not say", default=""),
    Parameter("sigma", "table", "-", "standard deviations of what was found, in the unit of each key", default={}),
)  # fmt: skip


def stand_model() -> tuple[Parameter, ...]:
    """`[stand_model]` of a stand file: the hydraulic machine as it was identified. Its parameters are those of the machine in software."""
    from drivers.simulated.hydraulic_machine import HydraulicMachine

    return (*HydraulicMachine.PARAMETERS, *IDENTIFIED)


# ------------------------------------------------------------------------------------------------- vehicle and mechanism file
VEHICLE = (*craft_file.CRAFT, *craft_file.ONE_BODY)  # of one rigid body
CRAFT = (*craft_file.CRAFT, *craft_file.BODIES)  # of several bodies

MECHANISM = (
    NAME,
    DESCRIPTION,
    SOURCE,
    SYNTHETIC,
    Parameter("force_limit_n", "floats", "N", "what the docking unit may bear at its port, each force component; a prediction is held "
              "against it before a run", default=None, shape=3, low=SMALL, high=1e7),
    Parameter("moment_limit_n_m", "floats", "N.m", "likewise, each moment component", default=None, shape=3, low=SMALL, high=1e7),
    Parameter("step_max_s", "float", "s", "longest tick with which the unit is stable and the peak force of its impact within 2 % of that "
              "with the shortest; a test with a longer one is refused", default=None, low=1e-5, high=0.1),
    Parameter("moment_step_max_s", "float", "s", "longest tick with which the largest moment of its impact is so, too; with a longer one a "
              "test runs, and `check` and the pages of a run say that its moment is not resolved", default=None, low=1e-5, high=0.1),
    Parameter("substep_max_s", "float", "s", "longest sub-step with which it is so: a longer tick gets more `substeps`", default=None,
              low=1e-6, high=0.1),
)  # fmt: skip
MECHANISM_KEYS = tuple(p.key for p in MECHANISM)
