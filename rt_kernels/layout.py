"""Layout of a sample for NumPy, stages, codes and bits. Generated from channels.toml by tools/generate_channels.py: do not edit."""

import numpy as np

LAYOUT_HASH = "fd602bc6028feeb7"

# names of earlier versions -> ours
FORMER_FIELDS = {"locate_status": "forward_kinematics_status", "cyclogram": "sequence", "control_C": "control_A", "compensator_status": "compensation_status", "place_status": "setpoint_kinematics_status"}  # noqa: E501

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
    ("late_cause", "i4", 1, "-", "", "clock", "input", 1, "why this tick was late"),  # noqa: E501
    ("realtime_mode", "i4", 1, "-", "", "clock", "input", 1, "how the loop runs"),  # noqa: E501
    ("wrench_raw", "f8", 6, "-", "", "ports", "input", 1, "counts of the force sensor: six gauges, or a ready six-axis record, force first"),  # noqa: E501
    ("wrench_sequence", "i8", 1, "-", "", "ports", "input", 1, "sequence number of the newest record"),  # noqa: E501
    ("wrench_age_ns", "i8", 1, "ns", "", "ports", "input", 1, "time since the newest record arrived"),  # noqa: E501
    ("wrench_lost_total", "i8", 1, "-", "", "ports", "input", 1, "records missing in the sequence so far"),  # noqa: E501
    ("wrench_corrupt_total", "i8", 1, "-", "", "ports", "input", 1, "damaged records of the force sensor so far"),  # noqa: E501
    ("drive_lost_total", "i8", 6, "-", "", "ports", "input", 1, "answers of each drive missing so far"),  # noqa: E501
    ("drive_corrupt_total", "i8", 6, "-", "", "ports", "input", 1, "damaged answers of each drive so far, damaged frames of its bus included"),  # noqa: E501
    ("measured_leg", "f8", 6, "m", "", "ports", "input", 1, "measured leg lengths"),  # noqa: E501
    ("measured_leg_rate", "f8", 6, "m/s", "", "ports", "input", 1, "measured leg rates (from the drive, else differences of the measured lengths)"),  # noqa: E501
    ("leg_force", "f8", 6, "N", "", "ports", "input", 1, "force of each leg's actuator as its drive measures it (pressures or cell), pushing is positive; 0 where it does not say"),  # noqa: E501
    ("leg_pressure_a", "f8", 6, "Pa", "", "ports", "input", 4, "pressure of each cylinder's chamber A, which pushes; 0 where the drive does not say"),  # noqa: E501
    ("leg_pressure_b", "f8", 6, "Pa", "", "ports", "input", 4, "pressure of each cylinder's chamber B, which pulls; 0 where the drive does not say"),  # noqa: E501
    ("leg_valve", "f8", 6, "-", "", "ports", "input", 4, "spool of each leg's servo valve, -1...1 (of an electric drive: current against its limit); 0 where the drive does not say"),  # noqa: E501
    ("supply_pressure", "f8", 1, "Pa", "", "ports", "input", 4, "pressure of the hydraulic supply; 0 where nothing says it"),  # noqa: E501
    ("cell_acceleration", "f8", 6, "m/s2,rad/s2", "S", "ports", "input", 1, "what accelerometers at the load cell read: its acceleration less gravity, and its angular acceleration; 0 without them"),  # noqa: E501
    ("signal_analog", "f8", 8, "-", "", "ports", "input", 1, "analogue mechanism signals (LPS, BPR, BPT, ...), in the unit of the mechanism's declaration"),  # noqa: E501
    ("command_arg", "f8", 8, "-", "", "ports", "input", 1, "arguments of the command taken at this tick"),  # noqa: E501
    ("hand_axis", "f8", 12, "-", "", "ports", "input", 1, "two hand controllers, six axes each, -1...1 after calibration"),  # noqa: E501
    ("command_sequence", "i8", 1, "-", "", "ports", "input", 1, "sequence number of the last command taken (its acknowledgement)"),  # noqa: E501
    ("hand_sequence", "i8", 2, "-", "", "ports", "input", 1, "sequence number of the newest record of each hand controller"),  # noqa: E501
    ("hand_age_ns", "i8", 2, "ns", "", "ports", "input", 1, "age of the newest record of each hand controller"),  # noqa: E501
    ("wrench_status", "u4", 1, "-", "", "ports", "input", 1, "status bits of the force sensor, one word for all devices"),  # noqa: E501
    ("wrench_device_status", "u4", 1, "-", "", "ports", "input", 1, "the device's own status word"),  # noqa: E501
    ("drive_status", "u4", 6, "-", "", "ports", "input", 1, "status bits of each drive, one word for all devices"),  # noqa: E501
    ("drive_device_status", "u4", 6, "-", "", "ports", "input", 1, "the device's own status word (low half) and last emergency code (high half)"),  # noqa: E501
    ("signal_discrete", "u4", 1, "-", "", "ports", "input", 1, "discrete mechanism signals"),  # noqa: E501
    ("signal_status", "u4", 1, "-", "", "ports", "input", 1, "status bits of the mechanism signals, as wrench_status"),  # noqa: E501
    ("analogue_chain", "u4", 1, "-", "", "ports", "input", 1, "independent emergency chain as read"),  # noqa: E501
    ("command_code", "i4", 1, "-", "", "ports", "input", 1, "command taken at this tick"),  # noqa: E501
    ("hand_buttons", "u4", 2, "-", "", "ports", "input", 1, "buttons of each hand controller"),  # noqa: E501
    ("hand_status", "u4", 2, "-", "", "ports", "input", 1, "status of each hand controller"),  # noqa: E501
    ("tuned", "f8", 24, "-", "", "tuning", "state", 4, "values in force of the parameters that can be changed in the run, each in its own unit, in the order of the run's list of tunables; 0 behind its end"),  # noqa: E501
    ("tune_answer", "i4", 1, "-", "", "tuning", "state", 1, "what became of the command tune of this tick"),  # noqa: E501
    ("X_WP_measured", "f8", 7, "m,-", "W", "forward_kinematics", "state", 1, "pose of the platform from the measured legs"),  # noqa: E501
    ("V_WP_measured", "f8", 6, "m/s,rad/s", "W", "forward_kinematics", "state", 1, "twist of the platform from the measured leg rates"),  # noqa: E501
    ("X_TA_measured", "f8", 7, "m,-", "T", "forward_kinematics", "state", 1, "achieved pose of the active port in the target port"),  # noqa: E501
    ("V_TA_measured", "f8", 6, "m/s,rad/s", "T", "forward_kinematics", "state", 1, "achieved twist of the active port relative to the target port"),  # noqa: E501
    ("forward_kinematics_status", "u4", 1, "-", "", "forward_kinematics", "state", 1, "what the forward kinematics could not do"),  # noqa: E501
    ("F_S", "f8", 6, "N,N.m", "S", "wrench", "state", 1, "wrench on the unit side of the load cell, calibrated, compensated and filtered, at and in S"),  # noqa: E501
    ("F_T", "f8", 6, "N,N.m", "T", "wrench", "state", 1, "contact wrench that the active unit exerts on the target unit, at and in T"),  # noqa: E501
    ("wrench_fault", "u4", 1, "-", "", "wrench", "state", 1, "status bits after the checks of the wrench path"),  # noqa: E501
    ("wrench_channel_fault", "u4", 1, "-", "", "wrench", "state", 1, "faults of single channels of the force sensor"),  # noqa: E501
    ("first_contact_time", "f8", 1, "s", "", "events", "state", 1, "run time of the first contact of this run, negative before it"),  # noqa: E501
    ("capture_time", "f8", 1, "s", "", "events", "state", 1, "run time of the capture, negative before it"),  # noqa: E501
    ("contact_time", "f8", 1, "s", "", "events", "state", 1, "time in the present contact, 0 without one"),  # noqa: E501
    ("events", "u4", 1, "-", "", "events", "state", 1, "events of this tick"),  # noqa: E501
    ("mechanism_state", "u4", 1, "-", "", "events", "state", 1, "latched mechanism states"),  # noqa: E501
    ("contact", "i4", 1, "-", "", "events", "state", 1, "1 in contact (with hysteresis), else 0"),  # noqa: E501
    ("phase_time", "f8", 1, "s", "", "guidance", "state", 1, "time in the present phase"),  # noqa: E501
    ("profile_X_TA", "f8", 7, "m,-", "T", "guidance", "state", 1, "programmed relative pose"),  # noqa: E501
    ("profile_V_TA", "f8", 6, "m/s,rad/s", "T", "guidance", "state", 1, "programmed relative twist"),  # noqa: E501
    ("profile_A_TA", "f8", 6, "m/s2,rad/s2", "T", "guidance", "state", 1, "programmed relative acceleration"),  # noqa: E501
    ("operator_rate", "f8", 6, "m/s,rad/s", "rate_frame", "guidance", "state", 1, "rates that the operator or a supervisory command asks for, after deadman and age checks, in the axes that rate_frame names"),  # noqa: E501
    ("supervisory_left", "f8", 1, "m,rad", "", "guidance", "state", 1, "travel that the running Step or Insert has left, 0 without one"),  # noqa: E501
    ("phase", "i4", 1, "-", "", "guidance", "state", 1, "phase of the run"),  # noqa: E501
    ("motion", "i4", 1, "-", "", "guidance", "state", 1, "what the dynamics do"),  # noqa: E501
    ("sequence", "i4", 1, "-", "", "guidance", "state", 1, "state of the docking sequence"),  # noqa: E501
    ("end_cause", "i4", 1, "-", "", "guidance", "state", 1, "why the run ended"),  # noqa: E501
    ("arm_mode", "i4", 1, "-", "", "guidance", "state", 1, "what the manipulator's controller does"),  # noqa: E501
    ("arm_target", "i4", 1, "-", "", "guidance", "state", 1, "joint of the single-joint mode, or number of the stored path, from 0"),  # noqa: E501
    ("rate_frame", "i4", 1, "-", "", "guidance", "state", 1, "axes and point of operator_rate"),  # noqa: E501
    ("speed_mode", "i4", 1, "-", "", "guidance", "state", 1, "scale of the hand controllers"),  # noqa: E501
    ("supervisory", "i4", 1, "-", "", "guidance", "state", 1, "state of the supervisory commands Step and Insert"),  # noqa: E501
    ("supervisory_queue", "i4", 1, "-", "", "guidance", "state", 1, "supervisory commands that wait"),  # noqa: E501
    ("mechanism_command", "u4", 1, "-", "", "guidance", "state", 1, "commands to the docking mechanism"),  # noqa: E501
    ("control_request", "u4", 1, "-", "", "guidance", "state", 1, "what the crafts' own control is to do"),  # noqa: E501
    ("guidance_fault", "u4", 1, "-", "", "guidance", "state", 1, "what the guidance saw that ends or holds the run, or asks for attention: safety makes faults of it"),  # noqa: E501
    ("control_A", "f8", 6, "N,N.m", "C", "control", "state", 1, "wrench of its own actuators on the active craft, all together, at its centre of mass"),  # noqa: E501
    ("control_T", "f8", 6, "N,N.m", "V", "control", "state", 1, "the same of the target craft"),  # noqa: E501
    ("thruster_A", "f8", 16, "N", "", "control", "state", 1, "thrust of each thruster of the active craft, in the order of its file"),  # noqa: E501
    ("thruster_T", "f8", 16, "N", "", "control", "state", 1, "the same of the target craft"),  # noqa: E501
    ("wheel_torque_A", "f8", 4, "N.m", "", "control", "state", 1, "motor torque on each reaction wheel of the active craft, in the order of its file"),  # noqa: E501
    ("wheel_torque_T", "f8", 4, "N.m", "", "control", "state", 1, "the same of the target craft"),  # noqa: E501
    ("control_status", "u4", 1, "-", "", "control", "state", 1, "what the crafts' own control does and what limits it"),  # noqa: E501
    ("F_T_corrected", "f8", 6, "N,N.m", "T", "compensation", "state", 1, "contact wrench as it would be without the delay of the loop"),  # noqa: E501
    ("lead", "f8", 3, "-,s,s2", "", "compensation", "state", 1, "setpoint lead: pose gain, velocity lead l1, acceleration lead l2"),  # noqa: E501
    ("lead_offset", "f8", 6, "m,rad", "T", "compensation", "state", 1, "further setpoint correction as a small motion (extrapolating compensators)"),  # noqa: E501
    ("lead_offset_rate", "f8", 6, "m/s,rad/s", "T", "compensation", "state", 0, "rate of the lead's offset, a part of the demanded twist"),  # noqa: E501
    ("leg_offset", "f8", 6, "m", "", "compensation", "state", 4, "what each leg's demand gets on top against the dead band and the friction of its drive"),  # noqa: E501
    ("loop_delay", "f8", 1, "s", "", "compensation", "state", 1, "sum of the delay ledger that the compensator uses"),  # noqa: E501
    ("compensation_status", "u4", 1, "-", "", "compensation", "state", 1, "what limits the compensator's correction, and what in it acts"),  # noqa: E501
    ("X_TA", "f8", 7, "m,-", "T", "dynamics", "state", 1, "pose of the active port in the target port, as in orbit"),  # noqa: E501
    ("V_TA", "f8", 6, "m/s,rad/s", "T", "dynamics", "state", 1, "twist of the active port relative to the target port (d/dt of the position, relative angular velocity)"),  # noqa: E501
    ("A_TA", "f8", 6, "m/s2,rad/s2", "T", "dynamics", "state", 1, "time derivative of V_TA"),  # noqa: E501
    ("X_NC", "f8", 7, "m,-", "N", "dynamics", "state", 1, "pose of the active vehicle (centre of mass)"),  # noqa: E501
    ("V_NC", "f8", 6, "m/s,rad/s", "N", "dynamics", "state", 1, "velocity of the active vehicle's centre of mass, its angular velocity, in N axes"),  # noqa: E501
    ("X_NV", "f8", 7, "m,-", "N", "dynamics", "state", 1, "pose of the target vehicle (centre of mass)"),  # noqa: E501
    ("V_NV", "f8", 6, "m/s,rad/s", "N", "dynamics", "state", 1, "velocity of the target vehicle's centre of mass, its angular velocity, in N axes"),  # noqa: E501
    ("momentum", "f8", 6, "kg.m/s,kg.m2/s", "N", "dynamics", "state", 1, "total linear momentum and angular momentum about the origin of N"),  # noqa: E501
    ("kinetic_energy", "f8", 1, "J", "", "dynamics", "state", 1, "kinetic energy of relative motion of the two vehicles"),  # noqa: E501
    ("wheel_rate_A", "f8", 4, "rad/s", "", "dynamics", "state", 1, "rate of each reaction wheel of the active craft about its axis, relative to its body"),  # noqa: E501
    ("wheel_rate_T", "f8", 4, "rad/s", "", "dynamics", "state", 1, "the same of the target craft"),  # noqa: E501
    ("joint_energy", "f8", 2, "J", "", "dynamics", "state", 1, "work that the joints of the active and of the target craft, wheels left out, have done on its bodies since the loop closed"),  # noqa: E501
    ("dynamics_status", "u4", 1, "-", "", "dynamics", "state", 1, "state of the vehicles' model; of a manipulator also what its drives and path do"),  # noqa: E501
    ("X_WP", "f8", 7, "m,-", "W", "setpoint_kinematics", "output", 1, "demanded pose of the platform, lead included"),  # noqa: E501
    ("V_WP", "f8", 6, "m/s,rad/s", "W", "setpoint_kinematics", "output", 1, "demanded twist of the platform"),  # noqa: E501
    ("leg_demand", "f8", 6, "m", "", "setpoint_kinematics", "output", 1, "leg lengths of the demanded pose"),  # noqa: E501
    ("leg_rate_demand", "f8", 6, "m/s", "", "setpoint_kinematics", "output", 1, "leg rates of the demanded twist"),  # noqa: E501
    ("stroke_margin", "f8", 1, "m", "", "setpoint_kinematics", "output", 1, "distance of the nearest leg to a stroke end"),  # noqa: E501
    ("condition", "f8", 1, "-", "", "setpoint_kinematics", "output", 1, "condition number of the scaled Jacobian at the demanded pose"),  # noqa: E501
    ("setpoint_kinematics_status", "u4", 1, "-", "", "setpoint_kinematics", "output", 1, "why the demanded pose has no legs"),  # noqa: E501
    ("leg_setpoint", "f8", 6, "m", "", "safety", "output", 1, "leg lengths sent to the drives"),  # noqa: E501
    ("leg_rate_setpoint", "f8", 6, "m/s", "", "safety", "output", 1, "leg rates sent to the drives"),  # noqa: E501
    ("following_error", "f8", 6, "m", "", "safety", "state", 1, "expected minus measured leg length, the expected delay of the drive taken off"),  # noqa: E501
    ("faults", "i8", 1, "-", "", "safety", "state", 1, "fault bits, latched until a recovery clears what no longer stands (the table of faults)"),  # noqa: E501
    ("trip_tick", "i8", 1, "-", "", "safety", "state", 1, "tick of the stop fault that tripped last, -1 without one"),  # noqa: E501
    ("contact_work", "f8", 1, "J", "", "safety", "state", 1, "energy monitor: work that the corrected wrench has done on the vehicles' model since the contact began; positive: the model has gained energy, which a passive contact cannot give"),  # noqa: E501
    ("contact_energy_ratio", "f8", 1, "-", "", "safety", "state", 1, "energy monitor: energy of relative motion at the start of this contact plus the work since, against itself"),  # noqa: E501
    ("safety_state", "i4", 1, "-", "", "safety", "state", 1, "what the setpoints do: follow the demand, decelerate to rest, stand there, not sent yet because the legs are not known; stand there with the drives' power off and their blocking valves closed; or go to the measured legs and stay there while the drives are enabled again"),  # noqa: E501
    ("setpoint_status", "u4", 1, "-", "", "safety", "state", 1, "what of each leg's setpoint was clipped, and which drives are to have no power (their blocking valves, or brakes, close)"),  # noqa: E501
    ("chain_state", "u4", 1, "-", "", "safety", "state", 1, "what the inputs of the emergency chain say: emergency stop and guard (two channels each), hydraulic unit, and their proof test"),  # noqa: E501
    ("watchdog", "u4", 1, "-", "", "safety", "output", 1, "counts healthy ticks: on time, judged by the safety stage, the drives' power not taken; bit 0 is the dynamic output. It stands still else"),  # noqa: E501
    ("record_crc", "u4", 1, "-", "", "telemetry", "diagnostic", 0, "CRC-32 of the record with this field zero: names a damaged channel after the fact"),  # noqa: E501
)

# the struct: falling alignment, so that it is little-endian CDR as it stands
SAMPLE_DTYPE = np.dtype(
    [
        ("wrench_raw", "<f8", (6,)),
        ("measured_leg", "<f8", (6,)),
        ("measured_leg_rate", "<f8", (6,)),
        ("leg_force", "<f8", (6,)),
        ("leg_pressure_a", "<f8", (6,)),
        ("leg_pressure_b", "<f8", (6,)),
        ("leg_valve", "<f8", (6,)),
        ("supply_pressure", "<f8"),
        ("cell_acceleration", "<f8", (6,)),
        ("signal_analog", "<f8", (8,)),
        ("command_arg", "<f8", (8,)),
        ("hand_axis", "<f8", (12,)),
        ("tuned", "<f8", (24,)),
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
        ("operator_rate", "<f8", (6,)),
        ("supervisory_left", "<f8"),
        ("control_A", "<f8", (6,)),
        ("control_T", "<f8", (6,)),
        ("thruster_A", "<f8", (16,)),
        ("thruster_T", "<f8", (16,)),
        ("wheel_torque_A", "<f8", (4,)),
        ("wheel_torque_T", "<f8", (4,)),
        ("F_T_corrected", "<f8", (6,)),
        ("lead", "<f8", (3,)),
        ("lead_offset", "<f8", (6,)),
        ("lead_offset_rate", "<f8", (6,)),
        ("leg_offset", "<f8", (6,)),
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
        ("wheel_rate_A", "<f8", (4,)),
        ("wheel_rate_T", "<f8", (4,)),
        ("joint_energy", "<f8", (2,)),
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
        ("tune_answer", "<i4"),
        ("contact", "<i4"),
        ("phase", "<i4"),
        ("motion", "<i4"),
        ("sequence", "<i4"),
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
        ("forward_kinematics_status", "<u4"),
        ("wrench_fault", "<u4"),
        ("wrench_channel_fault", "<u4"),
        ("events", "<u4"),
        ("mechanism_state", "<u4"),
        ("mechanism_command", "<u4"),
        ("control_request", "<u4"),
        ("guidance_fault", "<u4"),
        ("control_status", "<u4"),
        ("compensation_status", "<u4"),
        ("dynamics_status", "<u4"),
        ("setpoint_kinematics_status", "<u4"),
        ("setpoint_status", "<u4"),
        ("chain_state", "<u4"),
        ("watchdog", "<u4"),
        ("record_crc", "<u4"),
    ]
)

# name, mask, severity, meaning, what to do, power (of a stop)
FAULTS = (
    ("sensor_no_data", 1, "stop", "no record of the force sensor for the configured number of periods", "check power and cable of the force sensor, then its network address; park and restart", "kept"),  # noqa: E501
    ("sensor_stale", 2, "stop", "the sensor's own counter does not advance", "restart the sensor; a frozen counter means its acquisition stopped", "kept"),  # noqa: E501
    ("sensor_lost", 4, "stop", "too many records missing in a second", "look for other clients of the sensor and for a loaded network", "kept"),  # noqa: E501
    ("sensor_corrupt", 8, "stop", "too many damaged records in a second", "check cable and grounding", "kept"),  # noqa: E501
    ("sensor_saturated", 16, "stop", "a gauge is saturated: the wrench is not known", "find what overloaded the sensor before the next run; check its zero", "kept"),  # noqa: E501
    ("sensor_out_of_range", 32, "stop", "a channel is beyond its calibrated range", "as sensor_saturated", "kept"),  # noqa: E501
    ("sensor_device_fault", 64, "stop", "the sensor reports a fault of its own", "read wrench_device_status against the sensor's manual", "kept"),  # noqa: E501
    ("sensor_broken_wire", 128, "stop", "a gauge reads as a broken wire does", "check the gauge named in wrench_channel_fault", "kept"),  # noqa: E501
    ("sensor_busy", 256, "note", "the sensor is busy; the last value is held", "none, unless it lasts: then sensor_stale follows", ""),  # noqa: E501
    ("force_limit", 512, "stop", "a force component is beyond its software limit", "compare with the prediction of this variant; do not raise the limit above the analogue threshold", "kept"),  # noqa: E501
    ("moment_limit", 1024, "stop", "a moment component is beyond its software limit", "as force_limit", "kept"),  # noqa: E501
    ("drive_no_data", 2048, "stop", "a drive has not answered for the configured number of periods", "check the drive's power and its bus", "off"),  # noqa: E501
    ("drive_device_fault", 4096, "stop", "a drive reports a fault or sent an emergency message", "read drive_device_status against the drive's manual, reset at the drive", "off"),  # noqa: E501
    ("drive_not_enabled", 8192, "stop", "a drive left the enabled state while commanded", "check enable input and local control", "off"),  # noqa: E501
    ("following_error", 16384, "stop", "a leg is further from where it should be than allowed", "check pressure, valve and position transducer of the leg", "off"),  # noqa: E501
    ("bus_fault", 32768, "stop", "a bus is off or its transmit queue is full", "check termination and bit rate; run hil-server check for the bus load", "then_off"),  # noqa: E501
    ("drive_limit_touched", 65536, "note", "a drive reports that it touched one of its own limits", "compare the drive's limits with those of the stand file", ""),  # noqa: E501
    ("stroke_limit", 131072, "stop", "a demanded leg length is beyond its stroke", "choose a neutral pose or a variant further from the stroke end (hil-server workspace)", "kept"),  # noqa: E501
    ("rate_limit", 262144, "stop", "a demanded leg rate is beyond its limit for longer than allowed", "reduce the approach rates or the lead", "kept"),  # noqa: E501
    ("acceleration_limit", 524288, "note", "a demanded leg acceleration was clipped", "expected at hard contacts; the report tells how often", ""),  # noqa: E501
    ("setpoint_not_finite", 1048576, "stop", "a setpoint is not a finite number", "a part failed: look at dynamics_status and setpoint_kinematics_status of the trip tick", "kept"),  # noqa: E501
    ("workspace", 2097152, "stop", "the demanded pose is out of the platform's reach", "see stroke_limit", "kept"),  # noqa: E501
    ("near_singular", 4194304, "stop", "the platform is too near a singular pose", "see stroke_limit", "kept"),  # noqa: E501
    ("platform_unknown", 8388608, "stop", "the platform's pose cannot be found from the measured legs", "check the position transducers", "then_off"),  # noqa: E501
    ("loop_overrun", 16777216, "stop", "too many periods were skipped at once", "run hil-server check; look at late_cause", "kept"),  # noqa: E501
    ("supervisor_silent", 33554432, "stop", "the supervisor gave no sign of life", "the server's control plane hangs or died; the log up to here is complete", "kept"),  # noqa: E501
    ("analogue_chain", 67108864, "stop", "the independent emergency chain is tripped or not healthy", "clear it at its own panel; the server cannot", "off"),  # noqa: E501
    ("energy_gain", 134217728, "stop", "a contact gave back more energy than it took", "the loop delays more than the compensator knows: hil-server identify, hil-server predict", "kept"),  # noqa: E501
    ("energy_warning", 268435456, "note", "a contact gave back 5 % more energy than it took", "as energy_gain, before it trips", ""),  # noqa: E501
    ("divergence", 536870912, "stop", "the dynamics are not finite or beyond their valid range", "look at dynamics_status of the trip tick: joint_energy: a stop, spring or drive of a joint gave more than dynamics.joint_energy_max_j (joint_torque says which); else report the run: its log holds the inputs that caused it", "kept"),  # noqa: E501
    ("operator_stop", 1073741824, "stop", "ABORT was commanded", "none: the operator knows", "kept"),  # noqa: E501
    ("hand_controller_stale", 2147483648, "note", "a hand controller is silent: its rates are zero until it is back and centred", "check its cable", ""),  # noqa: E501
    ("signals_no_data", 4294967296, "stop", "the mechanism signals are missing", "check the signal module and its bus", "kept"),  # noqa: E501
    ("drive_local_control", 8589934592, "stop", "a drive was taken over at its own panel", "give it back to the bus before the next run", "off"),  # noqa: E501
    ("tare_drift", 17179869184, "note", "the wrench without contact is not zero", "tare again or calibrate (hil-server calibrate)", ""),  # noqa: E501
    ("programme_not_reached", 34359738368, "stop", "the platform did not reach its start pose in time", "check that the start pose lies inside the workspace and that the drives follow", "kept"),  # noqa: E501
    ("mechanism_invalid", 68719476736, "stop", "a mechanism model left its valid range", "see the auxiliary channels of the mechanism", "kept"),  # noqa: E501
    ("compensator_clipped", 137438953472, "note", "a compensator's correction was clipped", "check stiffness prior and force gate", ""),  # noqa: E501
    ("arm_overload", 274877906944, "note", "the load at the manipulator's end is beyond the arm's limit", "release the sticks; the report names the peak", ""),  # noqa: E501
    ("start_legs_unknown", 549755813888, "stop", "before the first setpoint: a measured leg is not finite, not fresh or outside its stroke", "check the transducer's zero (zero_m, counts_per_metre) of the leg against its drawing; the drives were sent no setpoint of ours", "then_off"),  # noqa: E501
    ("start_pose_disagrees", 1099511627776, "stop", "before the first setpoint: the measured legs do not fit together, or not to the configured start", "compare measured_leg with the transducers and the stand file; the drives were sent no setpoint of ours", "then_off"),  # noqa: E501
    ("drive_lost", 2199023255552, "stop", "too many answers of a drive missing in a second", "check the drive's bus: load, termination, its TPDO settings", "then_off"),  # noqa: E501
    ("drive_not_following", 4398046511104, "stop", "an enabled drive says that it does not follow its setpoints", "check mode of operation, enable inputs and local control of the drive named in drive_status", "off"),  # noqa: E501
    ("drive_heartbeat_lost", 8796093022208, "stop", "a drive's heartbeat has stopped", "check the drive's supply and its bus; its firmware may have stopped while its outputs still hold", "off"),  # noqa: E501
    ("record_lost", 17592186044416, "hold", "the run can no longer be recorded: it was ended by parking", "free the disk, look why the telemetry process stopped; ticks up to here are in the log", ""),  # noqa: E501
    ("record_required", 35184372088832, "stop", "the run can no longer be recorded: it was ended by a trip, as configured", "as record_lost", "kept"),  # noqa: E501
    ("sensor_frozen", 1125899906842624, "stop", "the force sensor's values do not change, although its records are new", "restart the sensor: its counter runs, its acquisition does not; compare a still reading with the noise in its data sheet", "kept"),  # noqa: E501
    ("tare_wrong", 2251799813685248, "stop", "the wrench before the loop is closed is not zero: the loop would move the model without a contact", "tare again: once, in the sensor or in wrench.bias_counts; a tare in the sensor already holds the carried weight (mounting.carried_mass_kg)", "kept"),  # noqa: E501
    ("force_without_contact", 4503599627370496, "stop", "the sensor shows a contact while the units are apart", "look for what touches the load cell or pulls at its cable; a force that grows steadily is drift: restart the sensor, tare again", "kept"),  # noqa: E501
    ("contact_without_force", 9007199254740992, "stop", "the units are in each other as far as in the prediction, and the sensor shows much less force", "check the sensor's scale, axes and wiring against its calibration before the next contact; compare with the prediction", "kept"),  # noqa: E501
    ("force_beyond_prediction", 18014398509481984, "stop", "the contact force is beyond what was predicted of this run", "compare with the prediction of this variant: other masses, another rate, a sensor with the wrong scale", "kept"),  # noqa: E501
    ("leg_jump", 36028797018963968, "stop", "a measured leg moved faster than a leg can", "check the transducer of the leg, its cable and its supply: its drive follows the same transducer", "off"),  # noqa: E501
    ("records_differ", 72057594037927936, "stop", "two records of one moment differ: one of them is not the device's", "look for a second sender on the bus or the network; the log shows which device", "then_off"),  # noqa: E501
    ("chain_discrepancy", 144115188075855872, "stop", "the two channels of an input of the emergency chain differ for longer than they may", "check both contacts and their wiring, operate the input once; chain_state names it", "off"),  # noqa: E501
    ("hydraulic_unit", 288230376151711744, "stop", "the hydraulic unit is off, its level or pressure is out of range, or an interlock is open", "look at chain_state and at the unit's own panel", "then_off"),  # noqa: E501
    ("hold_touches", 576460752303423488, "note", "a hold cannot stop the platform before the units touch", "none: it brakes as hard as it may; the units touch at the speed that is left", ""),  # noqa: E501
    ("leg_forces_differ", 1152921504606846976, "stop", "the legs carry another force than the load cell shows", "check the sensor's scale, axes and mounting; then the legs' forces, their friction and the moved mass in the stand file (safety.leg_balance_n)", "kept"),  # noqa: E501
    ("control_failed", 70368744177664, "stop", "the crafts' own control has failed or gives what is not a number", "look at the part's own channels (fmu.failure says why) and at its line at the start of the log; try the controller in a simulation", "kept"),  # noqa: E501
    ("leg_force_limit", 140737488355328, "stop", "a leg's actuator pushes or pulls with more than its limit", "look at leg_force: a blocked leg, a contact far off the axis, or a platform heavier than the stand file says", "then_off"),  # noqa: E501
    ("supply_pressure", 281474976710656, "stop", "the hydraulic supply has fallen below what the legs need, or its blocking valves have closed", "look at pump, accumulator and hoses; the motion may ask for more flow than the supply has", "then_off"),  # noqa: E501
    ("valve_saturated", 562949953421312, "stop", "a servo valve has stayed at its end: the leg no longer follows", "reduce speed, force or lead; predict says which motion saturates which valve", "then_off"),  # noqa: E501
)

# faults that a stand in software can show: name, number, at, meaning, value, value_meaning, shows, fault, stands, at_start, profile
INJECTIONS = (
    ("leg_stuck", 1, "plant", "a leg stands still", 1.0, "not used", (), "following_error", ('in_process', 'served'), False, ""),  # noqa: E501
    ("leg_slow", 2, "plant", "a leg follows at this share of its rate", 0.2, "share", (), "following_error", ('in_process', 'served'), False, ""),  # noqa: E501
    ("transducer_offset", 3, "plant", "the measured length of a leg jumps", 0.05, "m", (), "leg_jump", ('in_process', 'served'), False, ""),  # noqa: E501
    ("gauge_broken", 4, "plant", "a gauge reads full scale, as a broken wire does", 1.0, "not used", (), "sensor_broken_wire", ('in_process', 'served'), False, ""),  # noqa: E501
    ("gauge_saturated", 5, "plant", "a gauge is clipped at this value", 2147483647.0, "counts", (), "sensor_saturated", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_bias", 6, "plant", "a component of the wrench drifts off", 200.0, "N or N.m", (), "tare_wrong", ('in_process', 'served'), False, ""),  # noqa: E501
    ("external_force", 7, "plant", "something else pulls at the load cell", 5500.0, "N or N.m", (), "force_limit", ('in_process', 'served'), False, ""),  # noqa: E501
    ("chain_tripped", 8, "plant", "the independent emergency chain trips and blocks the hydraulics", 1.0, "not used", (), "analogue_chain", ('in_process', 'served'), False, ""),  # noqa: E501
    ("chain_unhealthy", 9, "plant", "the independent emergency chain is not healthy", 1.0, "not used", (), "analogue_chain", ('in_process', 'served'), False, ""),  # noqa: E501
    ("supply_loss", 10, "plant", "the hydraulic supply falls to the tank's pressure with this time constant", 0.05, "s", (), "supply_pressure", ('hydraulic', 'served'), False, ""),  # noqa: E501
    ("line_burst", 11, "plant", "the hose of a leg's chamber A opens to the air through an orifice of this area", 0.0002, "m2", (), "following_error", ('hydraulic', 'served'), False, ""),  # noqa: E501
    ("valve_stuck", 12, "plant", "the spool of a leg's servo valve stays where it is", 1.0, "not used", (), "following_error", ('hydraulic', 'served'), False, ""),  # noqa: E501
    ("leg_runaway", 13, "plant", "a leg moves at this rate, whatever its setpoint, until its drive has no power", 0.2, "m/s", (), "following_error", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_frozen", 14, "plant", "the sensor sends the values of this moment for ever, with new counters and good checksums", 1.0, "not used", (), "sensor_frozen", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_gain", 15, "plant", "the sensor's wrench is this share of the true one", 0.1, "share", (), "", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_drift", 16, "plant", "a component of the wrench drifts at this rate from now on", 20.0, "N/s or N.m/s", (), "tare_wrong", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_exchanged", 17, "plant", "a component of the wrench and the next one of its kind (of forces, of moments) are exchanged", 1.0, "not used", (), "", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_lost", 20, "sensor", "every n-th record is not sent", 3.0, "n, 1 = all", (('wrench_status', 'lost'),), "sensor_lost", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_duplicate", 21, "sensor", "every n-th record is sent twice", 2.0, "n", (), "", ('served',), False, ""),  # noqa: E501
    ("sensor_delay", 22, "sensor", "records leave late: a gap, then old ones", 50.0, "ms", (('wrench_status', 'no_data'),), "sensor_no_data", ('served',), False, ""),  # noqa: E501
    ("sensor_reorder", 23, "sensor", "every n-th record leaves after its successor", 4.0, "n", (), "", ('served',), False, ""),  # noqa: E501
    ("sensor_rollover", 24, "sensor", "the record sequence starts n before its roll-over", 500.0, "n", (), "", ('served',), True, ""),  # noqa: E501
    ("sensor_stale", 25, "sensor", "the sample counter stands still, records go on", 1.0, "not used", (('wrench_status', 'stale'),), "sensor_stale", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_status_word", 26, "sensor", "these bits are set in the status word", 131072.0, "bits", (), "", ('served',), False, ""),  # noqa: E501
    ("sensor_corrupt", 27, "sensor", "every n-th datagram is cut", 3.0, "n", (('wrench_status', 'corrupt'),), "sensor_corrupt", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_taken_over", 28, "sensor", "a second client takes the stream", 1.0, "not used", (('wrench_status', 'no_data'),), "sensor_no_data", ('served',), False, ""),  # noqa: E501
    ("sensor_silent", 29, "sensor", "the stream stops", 1.0, "not used", (('wrench_status', 'no_data'),), "sensor_no_data", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_saturated", 30, "sensor", "status word: gauge saturated", 1.0, "not used", (('wrench_status', 'saturated'),), "sensor_saturated", ('served',), False, ""),  # noqa: E501
    ("sensor_out_of_range", 31, "sensor", "status word: out of range (axia), else as saturated", 1.0, "not used", (('wrench_status', 'out_of_range'),), "sensor_out_of_range", ('served',), False, ""),  # noqa: E501
    ("sensor_device_fault", 32, "sensor", "status word: a fault of the device", 1.0, "not used", (('wrench_status', 'device_fault'),), "sensor_device_fault", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_busy", 33, "sensor", "status word: busy (axia)", 1.0, "not used", (('wrench_status', 'busy'),), "sensor_busy", ('in_process', 'served'), False, ""),  # noqa: E501
    ("sensor_broken_gauge", 34, "sensor", "status word: broken gage (axia)", 1.0, "not used", (('wrench_status', 'broken_wire'),), "sensor_broken_wire", ('served',), False, ""),  # noqa: E501
    ("sensor_threshold", 35, "sensor", "status word: threshold latched, a warning only", 1.0, "not used", (('wrench_status', 'warning'),), "", ('served',), False, ""),  # noqa: E501
    ("sensor_supply", 36, "sensor", "status word: supply", 1.0, "not used", (('wrench_status', 'supply'),), "sensor_device_fault", ('served',), False, ""),  # noqa: E501
    ("sensor_temperature", 37, "sensor", "status word: temperature", 1.0, "not used", (('wrench_status', 'temperature'),), "sensor_device_fault", ('served',), False, ""),  # noqa: E501
    ("sensor_noise", 38, "sensor", "noise on the wire before every n-th record; on CAN an error frame", 3.0, "n", (('wrench_status', 'corrupt'),), "sensor_corrupt", ('emulator',), False, ""),  # noqa: E501
    ("sensor_checksum", 39, "sensor", "the checksum of every n-th record is wrong", 3.0, "n", (('wrench_status', 'corrupt'),), "sensor_corrupt", ('emulator',), False, ""),  # noqa: E501
    ("sensor_slow", 40, "sensor", "records come at half their rate", 1.0, "not used", (), "", ('emulator',), False, ""),  # noqa: E501
    ("sensor_reboot", 41, "sensor", "the sensor loses power for a moment and starts up with its stored settings", 1.0, "not used", (('wrench_status', 'no_data'),), "sensor_no_data", ('emulator',), False, ""),  # noqa: E501
    ("drive_silent", 50, "drive", "the node neither sends nor listens", 1.0, "not used", (('drive_status', 'no_data'),), "drive_no_data", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_emergency", 51, "drive", "an emergency message with this code", 33537.0, "code", (('drive_status', 'emergency'),), "drive_device_fault", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_fault", 52, "drive", "fault state that a reset does not clear", 1.0, "not used", (('drive_status', 'device_fault'),), "drive_device_fault", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_disabled", 53, "drive", "the axis leaves the enabled state by itself", 1.0, "not used", (('drive_status', 'not_enabled'),), "drive_not_enabled", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_local", 54, "drive", "taken over at its own panel", 1.0, "not used", (('drive_status', 'local_control'),), "drive_local_control", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_following_error", 55, "drive", "control deviation bit", 1.0, "not used", (('drive_status', 'following_error'),), "following_error", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_limit_touched", 56, "drive", "limit touched bit", 1.0, "not used", (('drive_status', 'limit_touched'),), "drive_limit_touched", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_wrong_length", 57, "drive", "actual values one byte short", 1.0, "not used", (('drive_status', 'corrupt'), ('drive_status', 'no_data')), "drive_no_data", ('served',), False, ""),  # noqa: E501
    ("drive_restart", 58, "drive", "the node restarts (boot-up message, pre-operational)", 1.0, "not used", (('drive_status', 'not_enabled'),), "drive_not_enabled", ('served',), False, ""),  # noqa: E501
    ("drive_not_following", 59, "drive", "enabled, but its setpoints are ignored: status bit 12 is 0", 1.0, "not used", (('drive_status', 'not_following'),), "drive_not_following", ('in_process', 'served'), False, "cia402"),  # noqa: E501
    ("drive_heartbeat_lost", 60, "drive", "its heartbeat stops, all else goes on", 1.0, "not used", (('drive_status', 'heartbeat_lost'),), "drive_heartbeat_lost", ('in_process', 'served'), False, ""),  # noqa: E501
    ("drive_lost", 61, "drive", "of n actual values only one is sent", 3.0, "n", (('drive_status', 'lost'),), "drive_lost", ('in_process', 'served'), False, ""),  # noqa: E501
    ("bus_fault", 62, "drive", "the bus of a drive is off", 1.0, "not used", (('drive_status', 'bus_fault'),), "bus_fault", ('in_process',), False, ""),  # noqa: E501
    ("drive_corrupt", 63, "drive", "a drive's answers are damaged", 1.0, "not used", (('drive_status', 'corrupt'),), "bus_fault", ('in_process',), False, ""),  # noqa: E501
    ("link_silent", 80, "link", "all nodes of the link fall silent, as after bus-off", 1.0, "not used", (('drive_status', 'no_data'),), "drive_no_data", ('served',), False, ""),  # noqa: E501
    ("signals_silent", 90, "signals", "the input module neither sends nor listens", 1.0, "not used", (('signal_status', 'no_data'),), "signals_no_data", ('in_process', 'served'), False, ""),  # noqa: E501
    ("signals_fault", 91, "signals", "emergency message of the input module", 20480.0, "code", (('signal_status', 'device_fault'),), "signals_no_data", ('served',), False, ""),  # noqa: E501
    ("analogue_chain_unread", 92, "signals", "the emergency chain cannot be read", 1.0, "not used", (), "analogue_chain", ('in_process',), False, ""),  # noqa: E501
    ("emergency_stop", 93, "signals", "the emergency stop is operated: both channels open", 1.0, "not used", (), "analogue_chain", ('in_process', 'served'), False, ""),  # noqa: E501
    ("guard_open", 94, "signals", "the guard is opened: both channels open", 1.0, "not used", (), "analogue_chain", ('in_process', 'served'), False, ""),  # noqa: E501
    ("chain_discrepant", 95, "signals", "channel B of an input stays closed (welded); index 0 emergency stop, 1 guard, while channel A opens", 1.0, "not used", (), "chain_discrepancy", ('in_process', 'served'), False, ""),  # noqa: E501
    ("unit_fault", 96, "signals", "the hydraulic unit; index 0 off, 1 low, 2 high, 3 interlock", 1.0, "not used", (), "hydraulic_unit", ('in_process', 'served'), False, ""),  # noqa: E501
    ("frames_lost", 100, "line", "every n-th EtherCAT frame does not come back", 2.0, "n", (('drive_status', 'lost'),), "drive_lost", ('ethercat',), False, ""),  # noqa: E501
    ("frames_doubled", 101, "line", "every n-th EtherCAT frame comes back twice", 1.0, "n", (), "", ('ethercat',), False, ""),  # noqa: E501
    ("frames_late", 102, "line", "EtherCAT frames come back this much later", 1.5, "ms", (('drive_status', 'lost'),), "drive_lost", ('ethercat',), False, ""),  # noqa: E501
    ("cable_cut", 103, "line", "the cable to the first slave is cut: no EtherCAT frame arrives", 1.0, "not used", (('drive_status', 'lost'),), "drive_no_data", ('ethercat',), False, ""),  # noqa: E501
    ("slave_lost", 104, "line", "the cable before a slave is cut: it and all behind it are gone", 1.0, "not used", (('drive_status', 'corrupt'),), "bus_fault", ('ethercat',), False, ""),  # noqa: E501
    ("working_counter", 105, "line", "a slave does not take part in the process data: the working counter is too small", 1.0, "not used", (('drive_status', 'corrupt'),), "bus_fault", ('ethercat',), False, ""),  # noqa: E501
    ("al_error", 106, "line", "a slave leaves the operational state with this AL status code", 27.0, "code", (('drive_status', 'bus_fault'),), "bus_fault", ('ethercat',), False, ""),  # noqa: E501
    ("clock_drift", 107, "line", "the reference clock of the line gains this on its former rate", 50.0, "ppm", (), "", ('ethercat',), False, ""),  # noqa: E501
    ("frames_spoofed", 108, "line", "somebody else answers each EtherCAT frame first, with positions this far off", 5.0, "mm", (('drive_status', 'differs'),), "records_differ", ('ethercat',), False, ""),  # noqa: E501
)

# list -> name -> number
CODES = {
    "phase": {"idle": 0, "position": 1, "approach": 2, "closing": 3, "contact": 4, "latched": 5, "finish": 6, "retreat": 7, "park": 8, "ended": 9, "hold": 10, "fault": 11},  # noqa: E501
    "motion": {"follow_profile": 0, "close_loop": 1, "free": 2, "freeze": 3, "joined": 4},  # noqa: E501
    "sequence": {"approach": 0, "press": 1, "captured": 2, "damping": 3, "retract": 4, "complete": 5, "retreat": 6, "manual": 7, "separation": 8, "extension": 9},  # noqa: E501
    "end_cause": {"none": 0, "captured": 1, "time": 2, "region": 3, "stopped": 4, "tripped": 5, "retreated": 6, "complete": 7, "overload": 8, "record_lost": 9, "not_aligned": 10, "separated": 11},  # noqa: E501
    "command": {"none": 0, "start": 1, "stop": 2, "hold": 3, "resume": 4, "park": 5, "abort": 6, "inject_fault": 7, "clear_injection": 8, "set_compensator": 9, "manual_mode": 10, "single_joint": 11, "step": 12, "insert": 13, "auto_sequence": 14, "brakes": 15, "limp": 16, "release": 17, "mechanism_drive": 18, "speed_mode": 19, "record_lost": 20, "joint": 21, "tune": 22, "again": 23, "recover": 24},  # noqa: E501
    "tune_answer": {"none": 0, "taken": 1, "unknown": 2, "out_of_limits": 3, "not_in_this_phase": 4},  # noqa: E501
    "joint_mode": {"locked": 0, "free": 1, "given": 2, "driven": 3},  # noqa: E501
    "arm_mode": {"hold": 0, "hand": 1, "single_joint": 2, "path": 3, "brakes": 4, "limp": 5},  # noqa: E501
    "rate_frame": {"end_effector": 0, "camera": 1, "target": 2, "interface": 3},  # noqa: E501
    "speed_mode": {"vernier": 0, "coarse": 1},  # noqa: E501
    "supervisory": {"idle": 0, "step": 1, "insert": 2, "done": 3, "aborted": 4},  # noqa: E501
    "realtime_mode": {"free_running": 0, "soft": 1, "real_time": 2},  # noqa: E501
    "safety_state": {"following": 0, "decelerating": 1, "held": 2, "not_armed": 3, "blocked": 4, "recovering": 5},  # noqa: E501
    "late_cause": {"none": 0, "wake_up": 1, "compute": 2, "io": 3},  # noqa: E501
}

# list -> name -> mask
BITS = {
    "event": {"first_contact": 1, "contact_begin": 2, "contact_end": 4, "capture": 8, "bottom": 16, "latch_fired": 32, "start_of_docking": 64, "command": 512, "complete": 2048, "initial_position_lost": 4096, "hand_controller_stale": 16384},  # noqa: E501
    "mechanism_signal": {"DK1": 1, "DSG": 2, "DK2": 4, "initial_position": 8, "limiter_contact": 16, "lever1_contact": 32, "lever2_contact": 64, "lever3_contact": 128, "pushers": 256, "latch1": 512, "latch2": 1024, "latch3": 2048, "latch4": 4096, "drive_running": 8192, "ring_aligned1": 16384, "ring_aligned2": 32768, "ring_aligned3": 65536, "released": 131072, "planes_together": 262144},  # noqa: E501
    "sensor_status": {"no_data": 1, "stale": 2, "lost": 4, "corrupt": 8, "saturated": 16, "out_of_range": 32, "device_fault": 64, "busy": 128, "broken_wire": 256, "warning": 512, "supply": 1024, "temperature": 2048, "frozen": 4096, "differs": 8192},  # noqa: E501
    "drive_status": {"no_data": 1, "stale": 2, "lost": 4, "corrupt": 8, "device_fault": 16, "not_enabled": 32, "following_error": 64, "limit_touched": 128, "local_control": 256, "bus_fault": 512, "warning": 1024, "emergency": 2048, "tx_drop": 4096, "not_following": 8192, "heartbeat_lost": 16384, "valve_saturated": 32768, "supply_low": 65536, "hydraulics_blocked": 131072, "differs": 262144},  # noqa: E501
    "analogue_chain": {"healthy": 1, "tripped": 2, "hydraulics_blocked": 4, "emergency_stop_a": 8, "emergency_stop_b": 16, "guard_a": 32, "guard_b": 64, "unit_on": 128, "unit_low": 256, "unit_high": 512, "unit_interlock": 1024},  # noqa: E501
    "chain_state": {"emergency_stop": 1, "guard_open": 2, "emergency_stop_differs": 4, "guard_differs": 8, "unit_off": 16, "unit_low": 32, "unit_high": 64, "unit_interlock": 128, "proof_asked": 256, "stop_seen_open": 512, "guard_seen_open": 1024, "proven": 2048},  # noqa: E501
    "hand_button": {"deadman": 1, "vernier": 2},  # noqa: E501
    "hand_status": {"present": 1, "stale": 2, "rejected": 4},  # noqa: E501
    "forward_kinematics_status": {"not_converged": 1, "near_singular": 2, "leg_missing": 4},  # noqa: E501
    "wrench_channel_fault": {"out_of_range1": 1, "out_of_range2": 2, "out_of_range3": 4, "out_of_range4": 8, "out_of_range5": 16, "out_of_range6": 32, "saturated1": 256, "saturated2": 512, "saturated3": 1024, "saturated4": 2048, "saturated5": 4096, "saturated6": 8192, "broken_wire1": 65536, "broken_wire2": 131072, "broken_wire3": 262144, "broken_wire4": 524288, "broken_wire5": 1048576, "broken_wire6": 2097152},  # noqa: E501
    "mechanism_command": {"drive": 1, "extra_brakes": 2, "release": 4, "extend": 8},  # noqa: E501
    "mechanism_status": {"out_of_range": 1},  # noqa: E501
    "control_request": {"press": 1, "retreat": 2, "attitude": 4},  # noqa: E501
    "guidance_fault": {"operator_stop": 1, "hand_controller_stale": 2, "region_ended": 4, "programme_not_reached": 8, "record_lost": 16, "record_required": 32, "hold_touches": 64},  # noqa: E501
    "control_status": {"attitude": 1, "firing": 2, "thrust_limited": 4, "wheel_limited": 8, "failed": 16},  # noqa: E501
    "compensation_status": {"rate_limited": 1, "acceleration_limited": 2, "clipped": 4, "gate_open": 8, "adapting": 16, "energy_cap": 32, "dead_band": 64, "mode_observed": 128, "authority_limited": 256},  # noqa: E501
    "dynamics_status": {"not_finite": 1, "out_of_range": 2, "joined": 4, "drive_saturated": 8, "joint_near_stop": 16, "near_singular": 32, "overload": 64, "path_done": 128, "joint_energy": 256},  # noqa: E501
    "setpoint_kinematics_status": {"out_of_reach": 1, "near_singular": 2, "not_finite": 4},  # noqa: E501
    "setpoint_status": {"length1": 1, "length2": 2, "length3": 4, "length4": 8, "length5": 16, "length6": 32, "rate1": 256, "rate2": 512, "rate3": 1024, "rate4": 2048, "rate5": 4096, "rate6": 8192, "acceleration1": 65536, "acceleration2": 131072, "acceleration3": 262144, "acceleration4": 524288, "acceleration5": 1048576, "acceleration6": 2097152, "blocked1": 16777216, "blocked2": 33554432, "blocked3": 67108864, "blocked4": 134217728, "blocked5": 268435456, "blocked6": 536870912},  # noqa: E501
}

# list -> name of a run without its number -> mask of all its bits
RUNS = {
    "mechanism_signal": {"lever_contact": 224, "latch": 7680, "ring_aligned": 114688},
    "wrench_channel_fault": {"out_of_range": 63, "saturated": 16128, "broken_wire": 4128768},
    "setpoint_status": {"length": 63, "rate": 16128, "acceleration": 4128768, "blocked": 1056964608},
}

# field -> kind of its list (code or bits), name of the list
WORDS = {
    "late_cause": ("code", "late_cause"),
    "realtime_mode": ("code", "realtime_mode"),
    "wrench_status": ("bits", "sensor_status"),
    "drive_status": ("bits", "drive_status"),
    "signal_discrete": ("bits", "mechanism_signal"),
    "signal_status": ("bits", "sensor_status"),
    "analogue_chain": ("bits", "analogue_chain"),
    "command_code": ("code", "command"),
    "hand_buttons": ("bits", "hand_button"),
    "hand_status": ("bits", "hand_status"),
    "tune_answer": ("code", "tune_answer"),
    "forward_kinematics_status": ("bits", "forward_kinematics_status"),
    "wrench_fault": ("bits", "sensor_status"),
    "wrench_channel_fault": ("bits", "wrench_channel_fault"),
    "events": ("bits", "event"),
    "mechanism_state": ("bits", "mechanism_signal"),
    "phase": ("code", "phase"),
    "motion": ("code", "motion"),
    "sequence": ("code", "sequence"),
    "end_cause": ("code", "end_cause"),
    "arm_mode": ("code", "arm_mode"),
    "rate_frame": ("code", "rate_frame"),
    "speed_mode": ("code", "speed_mode"),
    "supervisory": ("code", "supervisory"),
    "mechanism_command": ("bits", "mechanism_command"),
    "control_request": ("bits", "control_request"),
    "guidance_fault": ("bits", "guidance_fault"),
    "control_status": ("bits", "control_status"),
    "compensation_status": ("bits", "compensation_status"),
    "dynamics_status": ("bits", "dynamics_status"),
    "setpoint_kinematics_status": ("bits", "setpoint_kinematics_status"),
    "safety_state": ("code", "safety_state"),
    "setpoint_status": ("bits", "setpoint_status"),
    "chain_state": ("bits", "chain_state"),
}

# field -> value before the first tick, where it is not zero
INITIAL = {
    "first_contact_time": -1.0,
    "capture_time": -1.0,
    "lead": [1.0, 0.0, 0.0],
    "trip_tick": -1,
    "safety_state": 3,
    "X_WP_measured": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "X_TA_measured": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "profile_X_TA": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "X_TA": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "X_NC": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "X_NV": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "X_WP": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
}
