"""Layout of a sample for NumPy. Generated from channels.toml by tools/generate_channels.py: do not edit."""

import numpy as np

LAYOUT_HASH = "2972a2d8a19473ca"

# name, type, shape, unit, frame, writer, role, bus, meaning: in the order of the table (the order of the tick)
FIELDS = (
    ("tick", "i8", 1, "-", "", "clock", "input", 1, "number of the period on the absolute grid, from 0"),  # noqa: E501
    ("time_ns", "i8", 1, "ns", "", "clock", "input", 1, "time of the tick on the grid since the start of the run"),  # noqa: E501
    ("lateness_ns", "i8", 1, "ns", "", "clock", "input", 1, "wake-up after the grid time"),  # noqa: E501
    ("read_ns", "i8", 1, "ns", "", "clock", "input", 1, "time the ports took to read, previous tick"),  # noqa: E501
    ("compute_ns", "i8", 1, "ns", "", "clock", "input", 1, "time the stages took, previous tick"),  # noqa: E501
    ("write_ns", "i8", 1, "ns", "", "clock", "input", 1, "time the ports took to write, previous tick"),  # noqa: E501
    ("missed_total", "i8", 1, "-", "", "clock", "input", 1, "whole periods skipped so far"),  # noqa: E501
    ("overflow_total", "i8", 1, "-", "", "clock", "input", 1, "samples that found the ring full so far"),  # noqa: E501
    ("supervisor_age_ns", "i8", 1, "ns", "", "clock", "input", 1, "age of the supervisor's last sign of life"),  # noqa: E501
    ("periods", "i4", 1, "-", "", "clock", "input", 1, "periods since the previous tick: 1, or more when some were skipped"),  # noqa: E501
    ("late_cause", "i4", 1, "-", "", "clock", "input", 1, "why this tick was late: 0 not late, 1 wake-up, 2 compute, 3 input and output"),  # noqa: E501
    ("realtime_mode", "i4", 1, "-", "", "clock", "input", 1, "0 free-running, 1 soft (no real-time privilege), 2 real time"),  # noqa: E501
    ("wrench_raw", "f8", 6, "-", "", "ports", "input", 1, "counts of the force sensor: six gauges, or a ready six-axis record, force first"),  # noqa: E501
    ("wrench_sequence", "i8", 1, "-", "", "ports", "input", 1, "sequence number of the newest record"),  # noqa: E501
    ("wrench_age_ns", "i8", 1, "ns", "", "ports", "input", 1, "time since the newest record arrived"),  # noqa: E501
    ("wrench_lost_total", "i8", 1, "-", "", "ports", "input", 1, "records missing in the sequence so far"),  # noqa: E501
    ("wrench_corrupt_total", "i8", 1, "-", "", "ports", "input", 1, "damaged records of the force sensor so far"),  # noqa: E501
    ("drive_lost_total", "i8", 6, "-", "", "ports", "input", 1, "answers of each drive missing so far"),  # noqa: E501
    ("drive_corrupt_total", "i8", 6, "-", "", "ports", "input", 1, "damaged answers of each drive so far, damaged frames of its bus included"),  # noqa: E501
    ("measured_leg", "f8", 6, "m", "", "ports", "input", 1, "measured leg lengths"),  # noqa: E501
    ("measured_leg_rate", "f8", 6, "m/s", "", "ports", "input", 1, "measured leg rates (from the drive, else differences of the measured lengths)"),  # noqa: E501
    ("signal_analog", "f8", 8, "-", "", "ports", "input", 1, "analogue mechanism signals (LPS, BPR, BPT, ...), in the unit of the mechanism's declaration"),  # noqa: E501
    ("command_arg", "f8", 8, "-", "", "ports", "input", 1, "arguments of the command taken at this tick"),  # noqa: E501
    ("hand_axis", "f8", 12, "-", "", "ports", "input", 1, "two hand controllers, six axes each, -1...1 after calibration"),  # noqa: E501
    ("command_sequence", "i8", 1, "-", "", "ports", "input", 1, "sequence number of the last command taken (its acknowledgement)"),  # noqa: E501
    ("hand_sequence", "i8", 2, "-", "", "ports", "input", 1, "sequence number of the newest record of each hand controller"),  # noqa: E501
    ("hand_age_ns", "i8", 2, "ns", "", "ports", "input", 1, "age of the newest record of each hand controller"),  # noqa: E501
    ("wrench_status", "u4", 1, "-", "", "ports", "input", 1, "status bits of the force sensor, one word for all devices (sensor_status)"),  # noqa: E501
    ("wrench_device_status", "u4", 1, "-", "", "ports", "input", 1, "the device's own status word"),  # noqa: E501
    ("drive_status", "u4", 6, "-", "", "ports", "input", 1, "status bits of each drive, one word for all devices (drive_status)"),  # noqa: E501
    ("drive_device_status", "u4", 6, "-", "", "ports", "input", 1, "the device's own status word (low half) and last emergency code (high half)"),  # noqa: E501
    ("signal_discrete", "u4", 1, "-", "", "ports", "input", 1, "discrete mechanism signals (mechanism_signal)"),  # noqa: E501
    ("signal_status", "u4", 1, "-", "", "ports", "input", 1, "status bits of the mechanism signals, as wrench_status"),  # noqa: E501
    ("analogue_chain", "u4", 1, "-", "", "ports", "input", 1, "independent emergency chain as read: bit 0 healthy, bit 1 tripped, bit 2 hydraulics blocked"),  # noqa: E501
    ("command_code", "i4", 1, "-", "", "ports", "input", 1, "command taken at this tick (command), 0 none"),  # noqa: E501
    ("hand_buttons", "u4", 2, "-", "", "ports", "input", 1, "buttons of each hand controller, bit 0 the deadman"),  # noqa: E501
    ("hand_status", "u4", 2, "-", "", "ports", "input", 1, "status of each hand controller: bit 0 present, bit 1 stale, bit 2 rejected record"),  # noqa: E501
    ("X_WP_measured", "f8", 7, "m,-", "W", "locate", "state", 1, "pose of the platform from the measured legs"),  # noqa: E501
    ("V_WP_measured", "f8", 6, "m/s,rad/s", "W", "locate", "state", 1, "twist of the platform from the measured leg rates"),  # noqa: E501
    ("X_TA_measured", "f8", 7, "m,-", "T", "locate", "state", 1, "achieved pose of the active port in the target port"),  # noqa: E501
    ("V_TA_measured", "f8", 6, "m/s,rad/s", "T", "locate", "state", 1, "achieved twist of the active port relative to the target port"),  # noqa: E501
    ("locate_status", "u4", 1, "-", "", "locate", "state", 1, "forward kinematics: bit 0 not converged, bit 1 near singular, bit 2 measured leg missing"),  # noqa: E501
    ("F_S", "f8", 6, "N,N.m", "S", "wrench", "state", 1, "wrench on the unit side of the load cell, calibrated, compensated and filtered, at and in S"),  # noqa: E501
    ("F_T", "f8", 6, "N,N.m", "T", "wrench", "state", 1, "contact wrench that the active unit exerts on the target unit, at and in T"),  # noqa: E501
    ("wrench_fault", "u4", 1, "-", "", "wrench", "state", 1, "status bits after the checks of the wrench path (sensor_status)"),  # noqa: E501
    ("wrench_channel_fault", "u4", 1, "-", "", "wrench", "state", 1, "channels out of range (bits 0-5), saturated (8-13), broken wire (16-21)"),  # noqa: E501
    ("first_contact_time", "f8", 1, "s", "", "mechanism", "state", 1, "run time of the first contact of this run, negative before it"),  # noqa: E501
    ("capture_time", "f8", 1, "s", "", "mechanism", "state", 1, "run time of the capture, negative before it"),  # noqa: E501
    ("contact_time", "f8", 1, "s", "", "mechanism", "state", 1, "time in the present contact, 0 without one"),  # noqa: E501
    ("events", "u4", 1, "-", "", "mechanism", "state", 1, "events of this tick (event)"),  # noqa: E501
    ("mechanism_state", "u4", 1, "-", "", "mechanism", "state", 1, "latched mechanism states (mechanism_signal)"),  # noqa: E501
    ("contact", "i4", 1, "-", "", "mechanism", "state", 1, "1 in contact (with hysteresis), else 0"),  # noqa: E501
    ("phase_time", "f8", 1, "s", "", "guidance", "state", 1, "time in the present phase"),  # noqa: E501
    ("profile_X_TA", "f8", 7, "m,-", "T", "guidance", "state", 1, "programmed relative pose"),  # noqa: E501
    ("profile_V_TA", "f8", 6, "m/s,rad/s", "T", "guidance", "state", 1, "programmed relative twist"),  # noqa: E501
    ("profile_A_TA", "f8", 6, "m/s2,rad/s2", "T", "guidance", "state", 1, "programmed relative acceleration"),  # noqa: E501
    ("control_C", "f8", 6, "N,N.m", "C", "guidance", "state", 1, "control wrench on the active vehicle at its centre of mass"),  # noqa: E501
    ("operator_rate", "f8", 6, "m/s,rad/s", "rate_frame", "guidance", "state", 1, "rates that the operator or a supervisory command asks for, after deadman and age checks, in the axes that rate_frame names"),  # noqa: E501
    ("supervisory_left", "f8", 1, "m,rad", "", "guidance", "state", 1, "travel that the running Step or Insert has left, 0 without one"),  # noqa: E501
    ("phase", "i4", 1, "-", "", "guidance", "state", 1, "phase of the run (phase)"),  # noqa: E501
    ("motion", "i4", 1, "-", "", "guidance", "state", 1, "what the dynamics do (motion)"),  # noqa: E501
    ("cyclogram", "i4", 1, "-", "", "guidance", "state", 1, "state of the docking cyclogram (cyclogram)"),  # noqa: E501
    ("end_cause", "i4", 1, "-", "", "guidance", "state", 1, "why the run ended (end_cause)"),  # noqa: E501
    ("arm_mode", "i4", 1, "-", "", "guidance", "state", 1, "what the manipulator's controller does (arm_mode)"),  # noqa: E501
    ("arm_target", "i4", 1, "-", "", "guidance", "state", 1, "joint of the single-joint mode, or number of the stored path, from 0"),  # noqa: E501
    ("rate_frame", "i4", 1, "-", "", "guidance", "state", 1, "axes and point of operator_rate (rate_frame)"),  # noqa: E501
    ("speed_mode", "i4", 1, "-", "", "guidance", "state", 1, "scale of the hand controllers (speed_mode)"),  # noqa: E501
    ("supervisory", "i4", 1, "-", "", "guidance", "state", 1, "state of the supervisory commands Step and Insert (supervisory)"),  # noqa: E501
    ("supervisory_queue", "i4", 1, "-", "", "guidance", "state", 1, "supervisory commands that wait"),  # noqa: E501
    ("mechanism_command", "u4", 1, "-", "", "guidance", "state", 1, "commands to the docking mechanism: bit 0 drive on, bit 1 extra lateral brakes, bit 2 release"),  # noqa: E501
    ("guidance_fault", "u4", 1, "-", "", "guidance", "state", 1, "bit 0 operator stop, bit 1 stale hand controller, bit 2 end of the valid region, bit 3 programme not reached"),  # noqa: E501
    ("F_T_corrected", "f8", 6, "N,N.m", "T", "compensator", "state", 1, "contact wrench as it would be without the delay of the loop"),  # noqa: E501
    ("lead", "f8", 3, "-,s,s2", "", "compensator", "state", 1, "set-point lead: pose gain, velocity lead l1, acceleration lead l2"),  # noqa: E501
    ("lead_offset", "f8", 6, "m,rad", "T", "compensator", "state", 1, "further set-point correction as a small motion (extrapolating compensators)"),  # noqa: E501
    ("loop_delay", "f8", 1, "s", "", "compensator", "state", 1, "sum of the delay ledger that the compensator uses"),  # noqa: E501
    ("compensator_status", "u4", 1, "-", "", "compensator", "state", 1, "bit 0 rate limited, bit 1 acceleration limited, bit 2 correction clipped, bit 3 contact gate open, bit 4 adaptation running, bit 5 energy cap acting"),  # noqa: E501
    ("X_TA", "f8", 7, "m,-", "T", "dynamics", "state", 1, "pose of the active port in the target port, as in orbit"),  # noqa: E501
    ("V_TA", "f8", 6, "m/s,rad/s", "T", "dynamics", "state", 1, "twist of the active port relative to the target port (d/dt of the position, relative angular velocity)"),  # noqa: E501
    ("A_TA", "f8", 6, "m/s2,rad/s2", "T", "dynamics", "state", 1, "time derivative of V_TA"),  # noqa: E501
    ("X_NC", "f8", 7, "m,-", "N", "dynamics", "state", 1, "pose of the active vehicle (centre of mass)"),  # noqa: E501
    ("V_NC", "f8", 6, "m/s,rad/s", "N", "dynamics", "state", 1, "velocity of the active vehicle's centre of mass, its angular velocity, in N axes"),  # noqa: E501
    ("X_NV", "f8", 7, "m,-", "N", "dynamics", "state", 1, "pose of the visited vehicle (centre of mass)"),  # noqa: E501
    ("V_NV", "f8", 6, "m/s,rad/s", "N", "dynamics", "state", 1, "velocity of the visited vehicle's centre of mass, its angular velocity, in N axes"),  # noqa: E501
    ("momentum", "f8", 6, "kg.m/s,kg.m2/s", "N", "dynamics", "state", 1, "total linear momentum and angular momentum about the origin of N"),  # noqa: E501
    ("kinetic_energy", "f8", 1, "J", "", "dynamics", "state", 1, "kinetic energy of relative motion of the two vehicles"),  # noqa: E501
    ("dynamics_status", "u4", 1, "-", "", "dynamics", "state", 1, "bit 0 not finite, bit 1 out of its valid range, bit 2 bodies joined; manipulator: bit 3 a drive saturated, bit 4 a joint near its stop, bit 5 near singular, bit 6 load at the arm's end beyond its limit, bit 7 path done"),  # noqa: E501
    ("X_WP", "f8", 7, "m,-", "W", "place", "output", 1, "demanded pose of the platform, lead included"),  # noqa: E501
    ("V_WP", "f8", 6, "m/s,rad/s", "W", "place", "output", 1, "demanded twist of the platform"),  # noqa: E501
    ("leg_demand", "f8", 6, "m", "", "place", "output", 1, "leg lengths of the demanded pose"),  # noqa: E501
    ("leg_rate_demand", "f8", 6, "m/s", "", "place", "output", 1, "leg rates of the demanded twist"),  # noqa: E501
    ("stroke_margin", "f8", 1, "m", "", "place", "output", 1, "distance of the nearest leg to a stroke end"),  # noqa: E501
    ("condition", "f8", 1, "-", "", "place", "output", 1, "condition number of the scaled Jacobian at the demanded pose"),  # noqa: E501
    ("place_status", "u4", 1, "-", "", "place", "output", 1, "bit 0 out of reach, bit 1 near singular, bit 2 not finite"),  # noqa: E501
    ("leg_setpoint", "f8", 6, "m", "", "safety", "output", 1, "leg lengths sent to the drives"),  # noqa: E501
    ("leg_rate_setpoint", "f8", 6, "m/s", "", "safety", "output", 1, "leg rates sent to the drives"),  # noqa: E501
    ("following_error", "f8", 6, "m", "", "safety", "state", 1, "expected minus measured leg length, the expected delay of the drive taken off"),  # noqa: E501
    ("faults", "i8", 1, "-", "", "safety", "state", 1, "fault bits of this run, latched (fault)"),  # noqa: E501
    ("trip_tick", "i8", 1, "-", "", "safety", "state", 1, "tick of the first stop fault, -1 without one"),  # noqa: E501
    ("contact_work", "f8", 1, "J", "", "safety", "state", 1, "energy monitor: work of the corrected wrench on the model since the contact began, positive when it gains"),  # noqa: E501
    ("contact_energy_ratio", "f8", 1, "-", "", "safety", "state", 1, "energy monitor: energy of relative motion at the start of this contact plus the work since, against itself"),  # noqa: E501
    ("safety_state", "i4", 1, "-", "", "safety", "state", 1, "0 following, 1 decelerating, 2 held"),  # noqa: E501
    ("setpoint_status", "u4", 1, "-", "", "safety", "state", 1, "set point clipped: bits 0-5 length, 8-13 rate, 16-21 acceleration"),  # noqa: E501
    ("record_crc", "u4", 1, "-", "", "telemetry", "diagnostic", 0, "CRC-32 of the record with this field zero: names a damaged channel after the fact"),  # noqa: E501
)

# the struct: falling alignment, so that it is little-endian CDR as it stands
SAMPLE_DTYPE = np.dtype(
    [
        ("wrench_raw", "<f8", (6,)),
        ("measured_leg", "<f8", (6,)),
        ("measured_leg_rate", "<f8", (6,)),
        ("signal_analog", "<f8", (8,)),
        ("command_arg", "<f8", (8,)),
        ("hand_axis", "<f8", (12,)),
        ("X_WP_measured", "<f8", (7,)),
        ("V_WP_measured", "<f8", (6,)),
        ("X_TA_measured", "<f8", (7,)),
        ("V_TA_measured", "<f8", (6,)),
        ("F_S", "<f8", (6,)),
        ("F_T", "<f8", (6,)),
        ("first_contact_time", "<f8"),
        ("capture_time", "<f8"),
        ("contact_time", "<f8"),
        ("phase_time", "<f8"),
        ("profile_X_TA", "<f8", (7,)),
        ("profile_V_TA", "<f8", (6,)),
        ("profile_A_TA", "<f8", (6,)),
        ("control_C", "<f8", (6,)),
        ("operator_rate", "<f8", (6,)),
        ("supervisory_left", "<f8"),
        ("F_T_corrected", "<f8", (6,)),
        ("lead", "<f8", (3,)),
        ("lead_offset", "<f8", (6,)),
        ("loop_delay", "<f8"),
        ("X_TA", "<f8", (7,)),
        ("V_TA", "<f8", (6,)),
        ("A_TA", "<f8", (6,)),
        ("X_NC", "<f8", (7,)),
        ("V_NC", "<f8", (6,)),
        ("X_NV", "<f8", (7,)),
        ("V_NV", "<f8", (6,)),
        ("momentum", "<f8", (6,)),
        ("kinetic_energy", "<f8"),
        ("X_WP", "<f8", (7,)),
        ("V_WP", "<f8", (6,)),
        ("leg_demand", "<f8", (6,)),
        ("leg_rate_demand", "<f8", (6,)),
        ("stroke_margin", "<f8"),
        ("condition", "<f8"),
        ("leg_setpoint", "<f8", (6,)),
        ("leg_rate_setpoint", "<f8", (6,)),
        ("following_error", "<f8", (6,)),
        ("contact_work", "<f8"),
        ("contact_energy_ratio", "<f8"),
        ("tick", "<i8"),
        ("time_ns", "<i8"),
        ("lateness_ns", "<i8"),
        ("read_ns", "<i8"),
        ("compute_ns", "<i8"),
        ("write_ns", "<i8"),
        ("missed_total", "<i8"),
        ("overflow_total", "<i8"),
        ("supervisor_age_ns", "<i8"),
        ("wrench_sequence", "<i8"),
        ("wrench_age_ns", "<i8"),
        ("wrench_lost_total", "<i8"),
        ("wrench_corrupt_total", "<i8"),
        ("drive_lost_total", "<i8", (6,)),
        ("drive_corrupt_total", "<i8", (6,)),
        ("command_sequence", "<i8"),
        ("hand_sequence", "<i8", (2,)),
        ("hand_age_ns", "<i8", (2,)),
        ("faults", "<i8"),
        ("trip_tick", "<i8"),
        ("periods", "<i4"),
        ("late_cause", "<i4"),
        ("realtime_mode", "<i4"),
        ("command_code", "<i4"),
        ("contact", "<i4"),
        ("phase", "<i4"),
        ("motion", "<i4"),
        ("cyclogram", "<i4"),
        ("end_cause", "<i4"),
        ("arm_mode", "<i4"),
        ("arm_target", "<i4"),
        ("rate_frame", "<i4"),
        ("speed_mode", "<i4"),
        ("supervisory", "<i4"),
        ("supervisory_queue", "<i4"),
        ("safety_state", "<i4"),
        ("wrench_status", "<u4"),
        ("wrench_device_status", "<u4"),
        ("drive_status", "<u4", (6,)),
        ("drive_device_status", "<u4", (6,)),
        ("signal_discrete", "<u4"),
        ("signal_status", "<u4"),
        ("analogue_chain", "<u4"),
        ("hand_buttons", "<u4", (2,)),
        ("hand_status", "<u4", (2,)),
        ("locate_status", "<u4"),
        ("wrench_fault", "<u4"),
        ("wrench_channel_fault", "<u4"),
        ("events", "<u4"),
        ("mechanism_state", "<u4"),
        ("mechanism_command", "<u4"),
        ("guidance_fault", "<u4"),
        ("compensator_status", "<u4"),
        ("dynamics_status", "<u4"),
        ("place_status", "<u4"),
        ("setpoint_status", "<u4"),
        ("record_crc", "<u4"),
        ("pad", "<u4"),
    ]
)

# name, bit, severity, meaning, what to do
FAULTS = (
    ("sensor_no_data", 0, "stop", "no record of the force sensor for the configured number of periods", "check power and cable of the force sensor, then its network address; park and restart"),  # noqa: E501
    ("sensor_stale", 1, "stop", "the sensor's own counter does not advance", "restart the sensor; a frozen counter means its acquisition stopped"),  # noqa: E501
    ("sensor_lost", 2, "stop", "too many records missing in a second", "look for other clients of the sensor and for a loaded network"),  # noqa: E501
    ("sensor_corrupt", 3, "stop", "too many damaged records in a second", "check cable and grounding"),  # noqa: E501
    ("sensor_saturated", 4, "stop", "a gauge is saturated: the wrench is not known", "find what overloaded the sensor before the next run; check its zero"),  # noqa: E501
    ("sensor_out_of_range", 5, "stop", "a channel is beyond its calibrated range", "as sensor_saturated"),  # noqa: E501
    ("sensor_device_fault", 6, "stop", "the sensor reports a fault of its own", "read wrench_device_status against the sensor's manual"),  # noqa: E501
    ("sensor_broken_wire", 7, "stop", "a gauge reads as a broken wire does", "check the gauge named in wrench_channel_fault"),  # noqa: E501
    ("sensor_busy", 8, "note", "the sensor is busy; the last value is held", "none, unless it lasts: then sensor_stale follows"),  # noqa: E501
    ("force_limit", 9, "stop", "a force component is beyond its software limit", "compare with the prediction of this variant; do not raise the limit above the analogue threshold"),  # noqa: E501
    ("moment_limit", 10, "stop", "a moment component is beyond its software limit", "as force_limit"),  # noqa: E501
    ("drive_no_data", 11, "stop", "a drive has not answered for the configured number of periods", "check the drive's power and its bus"),  # noqa: E501
    ("drive_device_fault", 12, "stop", "a drive reports a fault or sent an emergency message", "read drive_device_status against the drive's manual, reset at the drive"),  # noqa: E501
    ("drive_not_enabled", 13, "stop", "a drive left the enabled state while commanded", "check enable input and local control"),  # noqa: E501
    ("following_error", 14, "stop", "a leg is further from where it should be than allowed", "check pressure, valve and position transducer of the leg"),  # noqa: E501
    ("bus_fault", 15, "stop", "a bus is off or its transmit queue is full", "check termination and bit rate; run hil-server check for the bus load"),  # noqa: E501
    ("drive_limit_touched", 16, "note", "a drive reports that it touched one of its own limits", "compare the drive's limits with those of the stand file"),  # noqa: E501
    ("stroke_limit", 17, "stop", "a demanded leg length is beyond its stroke", "choose a neutral pose or a variant further from the stroke end (hil-server workspace)"),  # noqa: E501
    ("rate_limit", 18, "stop", "a demanded leg rate is beyond its limit for longer than allowed", "reduce the approach rates or the lead"),  # noqa: E501
    ("acceleration_limit", 19, "note", "a demanded leg acceleration was clipped", "expected at hard contacts; the report tells how often"),  # noqa: E501
    ("setpoint_not_finite", 20, "stop", "a set point is not a finite number", "a part failed: look at dynamics_status and place_status of the trip tick"),  # noqa: E501
    ("workspace", 21, "stop", "the demanded pose is out of the platform's reach", "see stroke_limit"),  # noqa: E501
    ("near_singular", 22, "stop", "the platform is too near a singular pose", "see stroke_limit"),  # noqa: E501
    ("platform_unknown", 23, "stop", "the platform's pose cannot be found from the measured legs", "check the position transducers"),  # noqa: E501
    ("loop_overrun", 24, "stop", "too many periods were skipped at once", "run hil-server check; look at late_cause"),  # noqa: E501
    ("supervisor_silent", 25, "stop", "the supervisor gave no sign of life", "the server's control plane hangs or died; the log up to here is complete"),  # noqa: E501
    ("analogue_chain", 26, "stop", "the independent emergency chain is tripped or not healthy", "clear it at its own panel; the server cannot"),  # noqa: E501
    ("energy_gain", 27, "stop", "a contact gave back more energy than it took", "the loop delays more than the compensator knows: hil-server identify, hil-server predict"),  # noqa: E501
    ("energy_warning", 28, "note", "a contact gave back 5 % more energy than it took", "as energy_gain, before it trips"),  # noqa: E501
    ("divergence", 29, "stop", "the dynamics are not finite or beyond their valid range", "report the run: its log holds the inputs that caused it"),  # noqa: E501
    ("operator_stop", 30, "stop", "ABORT was commanded", "none: the operator knows"),  # noqa: E501
    ("hand_controller_stale", 31, "note", "a hand controller is silent: its rates are zero until it is back and centred", "check its cable"),  # noqa: E501
    ("signals_no_data", 32, "stop", "the mechanism signals are missing", "check the signal module and its bus"),  # noqa: E501
    ("drive_local_control", 33, "stop", "a drive was taken over at its own panel", "give it back to the bus before the next run"),  # noqa: E501
    ("tare_drift", 34, "note", "the wrench without contact is not zero", "tare again or calibrate (hil-server calibrate)"),  # noqa: E501
    ("programme_not_reached", 35, "stop", "the platform did not reach its start pose in time", "check that the start pose lies inside the workspace and that the drives follow"),  # noqa: E501
    ("mechanism_invalid", 36, "stop", "a mechanism model left its valid range", "see the auxiliary channels of the mechanism"),  # noqa: E501
    ("compensator_clipped", 37, "note", "a compensator's correction was clipped", "check stiffness prior and force gate"),  # noqa: E501
    ("arm_overload", 38, "note", "the load at the manipulator's end is beyond the arm's limit", "release the sticks; the report names the peak"),  # noqa: E501
    ("start_legs_unknown", 39, "stop", "before the first set point: a measured leg is not finite, not fresh or outside its stroke", "check the transducer's zero (zero_m, counts_per_metre) of the leg against its drawing; the drives were sent no set point of ours"),  # noqa: E501
    ("start_pose_disagrees", 40, "stop", "before the first set point: the measured legs do not fit together, or not to the configured start", "compare measured_leg with the transducers and the stand file; the drives were sent no set point of ours"),  # noqa: E501
    ("drive_lost", 41, "stop", "too many answers of a drive missing in a second", "check the drive's bus: load, termination, its TPDO settings"),  # noqa: E501
    ("drive_not_following", 42, "stop", "an enabled drive says that it does not follow its set points", "check mode of operation, enable inputs and local control of the drive named in drive_status"),  # noqa: E501
    ("drive_heartbeat_lost", 43, "stop", "a drive's heartbeat has stopped", "check the drive's supply and its bus; its firmware may have stopped while its outputs still hold"),  # noqa: E501
    ("record_lost", 44, "hold", "the run can no longer be recorded: it was ended by parking", "free the disk, look why the telemetry process stopped; ticks up to here are in the log"),  # noqa: E501
    ("record_required", 45, "stop", "the run can no longer be recorded: it was ended by a trip, as configured", "as record_lost"),  # noqa: E501
)

CODES = {
    "phase": {"idle": 0, "position": 1, "approach": 2, "closing": 3, "contact": 4, "latched": 5, "finish": 6, "retreat": 7, "park": 8, "ended": 9, "hold": 10, "fault": 11},  # noqa: E501
    "motion": {"follow_profile": 0, "close_loop": 1, "free": 2, "freeze": 3, "joined": 4},  # noqa: E501
    "cyclogram": {"approach": 0, "press": 1, "captured": 2, "damping": 3, "retract": 4, "complete": 5, "retreat": 6, "manual": 7},  # noqa: E501
    "end_cause": {"none": 0, "captured": 1, "time": 2, "region": 3, "stopped": 4, "tripped": 5, "retreated": 6, "complete": 7, "overload": 8, "record_lost": 9, "not_aligned": 10},  # noqa: E501
    "command": {"none": 0, "start": 1, "stop": 2, "hold": 3, "resume": 4, "park": 5, "abort": 6, "inject_fault": 7, "clear_injection": 8, "set_compensator": 9, "manual_mode": 10, "single_joint": 11, "step": 12, "insert": 13, "auto_sequence": 14, "brakes": 15, "limp": 16, "release": 17, "mechanism_drive": 18, "speed_mode": 19, "record_lost": 20},  # noqa: E501
    "arm_mode": {"hold": 0, "hand": 1, "single_joint": 2, "path": 3, "brakes": 4, "limp": 5},  # noqa: E501
    "rate_frame": {"end_effector": 0, "camera": 1, "target": 2, "interface": 3},  # noqa: E501
    "speed_mode": {"vernier": 0, "coarse": 1},  # noqa: E501
    "supervisory": {"idle": 0, "step": 1, "insert": 2, "done": 3, "aborted": 4},  # noqa: E501
    "safety_state": {"following": 0, "decelerating": 1, "held": 2, "not_armed": 3},  # noqa: E501
    "late_cause": {"none": 0, "wake_up": 1, "compute": 2, "io": 3},  # noqa: E501
    "event": {"first_contact": 0, "contact_begin": 1, "contact_end": 2, "capture": 3, "bottom": 4, "latch_fired": 5, "start_of_docking": 6, "command": 9, "complete": 11, "initial_position_lost": 12, "hand_controller_stale": 14},  # noqa: E501
    "mechanism_signal": {"DK1": 0, "DSG": 1, "DK2": 2, "initial_position": 3, "limiter_contact": 4, "lever1_contact": 5, "lever2_contact": 6, "lever3_contact": 7, "pushers": 8, "latch1": 9, "latch2": 10, "latch3": 11, "latch4": 12, "drive_running": 13, "ring_aligned1": 14, "ring_aligned2": 15, "ring_aligned3": 16, "released": 17, "planes_together": 18},  # noqa: E501
    "sensor_status": {"no_data": 0, "stale": 1, "lost": 2, "corrupt": 3, "saturated": 4, "out_of_range": 5, "device_fault": 6, "busy": 7, "broken_wire": 8, "warning": 9, "supply": 10, "temperature": 11},  # noqa: E501
    "drive_status": {"no_data": 0, "stale": 1, "lost": 2, "corrupt": 3, "device_fault": 4, "not_enabled": 5, "following_error": 6, "limit_touched": 7, "local_control": 8, "bus_fault": 9, "warning": 10, "emergency": 11, "tx_drop": 12, "not_following": 13, "heartbeat_lost": 14},  # noqa: E501
}
