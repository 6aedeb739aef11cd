"""The sample of one tick. Generated from channels.toml by tools/generate_channels.py: do not edit."""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct Sample:
    double wrench_raw[6]  # ports, input: counts of the force sensor: six gauges, or a ready six-axis record, force first
    double measured_leg[6]  # ports, input [m]: measured leg lengths
    double measured_leg_rate[6]  # ports, input [m/s]: measured leg rates (from the drive, else differences of the measured lengths)
    # ports, input [N]: force of each leg's actuator as its drive measures it (pressures or cell), pushing is positive; 0 where it does not
    # say
    double leg_force[6]
    double leg_pressure_a[6]  # ports, input [Pa]: pressure of each cylinder's chamber A, which pushes; 0 where the drive does not say
    double leg_pressure_b[6]  # ports, input [Pa]: pressure of each cylinder's chamber B, which pulls; 0 where the drive does not say
    # ports, input: spool of each leg's servo valve, -1...1 (of an electric drive: current against its limit); 0 where the drive does not
    # say
    double leg_valve[6]
    double supply_pressure  # ports, input [Pa]: pressure of the hydraulic supply; 0 where nothing says it
    # ports, input [m/s2,rad/s2]: what accelerometers at the load cell read: its acceleration less gravity, and its angular acceleration; 0
    # without them
    double cell_acceleration[6]
    double signal_analog[8]  # ports, input: analogue mechanism signals (LPS, BPR, BPT, ...), in the unit of the mechanism's declaration
    double command_arg[8]  # ports, input: arguments of the command taken at this tick
    double hand_axis[12]  # ports, input: two hand controllers, six axes each, -1...1 after calibration
    # tuning, state: values in force of the parameters that can be changed in the run, each in its own unit, in the order of the run's list
    # of tunables; 0 behind its end
    double tuned[24]
    double X_WP_measured[7]  # forward_kinematics, state [m,-]: pose of the platform from the measured legs
    double V_WP_measured[6]  # forward_kinematics, state [m/s,rad/s]: twist of the platform from the measured leg rates
    double X_TA_measured[7]  # forward_kinematics, state [m,-]: achieved pose of the active port in the target port
    double V_TA_measured[6]  # forward_kinematics, state [m/s,rad/s]: achieved twist of the active port relative to the target port
    double F_S[6]  # wrench, state [N,N.m]: wrench on the unit side of the load cell, calibrated, compensated and filtered, at and in S
    double F_T[6]  # wrench, state [N,N.m]: contact wrench that the active unit exerts on the target unit, at and in T
    double first_contact_time  # events, state [s]: run time of the first contact of this run, negative before it
    double capture_time  # events, state [s]: run time of the capture, negative before it
    double contact_time  # events, state [s]: time in the present contact, 0 without one
    double phase_time  # guidance, state [s]: time in the present phase
    double profile_X_TA[7]  # guidance, state [m,-]: programmed relative pose
    double profile_V_TA[6]  # guidance, state [m/s,rad/s]: programmed relative twist
    double profile_A_TA[6]  # guidance, state [m/s2,rad/s2]: programmed relative acceleration
    # guidance, state [m/s,rad/s]: rates that the operator or a supervisory command asks for, after deadman and age checks, in the axes that
    # rate_frame names
    double operator_rate[6]
    double supervisory_left  # guidance, state [m,rad]: travel that the running Step or Insert has left, 0 without one
    double control_A[6]  # control, state [N,N.m]: wrench of its own actuators on the active craft, all together, at its centre of mass
    double control_T[6]  # control, state [N,N.m]: the same of the target craft
    double thruster_A[16]  # control, state [N]: thrust of each thruster of the active craft, in the order of its file
    double thruster_T[16]  # control, state [N]: the same of the target craft
    double wheel_torque_A[4]  # control, state [N.m]: motor torque on each reaction wheel of the active craft, in the order of its file
    double wheel_torque_T[4]  # control, state [N.m]: the same of the target craft
    double F_T_corrected[6]  # compensation, state [N,N.m]: contact wrench as it would be without the delay of the loop
    double lead[3]  # compensation, state [-,s,s2]: setpoint lead: pose gain, velocity lead l1, acceleration lead l2
    double lead_offset[6]  # compensation, state [m,rad]: further setpoint correction as a small motion (extrapolating compensators)
    double lead_offset_rate[6]  # compensation, state [m/s,rad/s]: rate of the lead's offset, a part of the demanded twist
    double leg_offset[6]  # compensation, state [m]: what each leg's demand gets on top against the dead band and the friction of its drive
    double loop_delay  # compensation, state [s]: sum of the delay ledger that the compensator uses
    double X_TA[7]  # dynamics, state [m,-]: pose of the active port in the target port, as in orbit
    # dynamics, state [m/s,rad/s]: twist of the active port relative to the target port (d/dt of the position, relative angular velocity)
    double V_TA[6]
    double A_TA[6]  # dynamics, state [m/s2,rad/s2]: time derivative of V_TA
    double X_NC[7]  # dynamics, state [m,-]: pose of the active vehicle (centre of mass)
    double V_NC[6]  # dynamics, state [m/s,rad/s]: velocity of the active vehicle's centre of mass, its angular velocity, in N axes
    double X_NV[7]  # dynamics, state [m,-]: pose of the target vehicle (centre of mass)
    double V_NV[6]  # dynamics, state [m/s,rad/s]: velocity of the target vehicle's centre of mass, its angular velocity, in N axes
    double momentum[6]  # dynamics, state [kg.m/s,kg.m2/s]: total linear momentum and angular momentum about the origin of N
    double kinetic_energy  # dynamics, state [J]: kinetic energy of relative motion of the two vehicles
    double wheel_rate_A[4]  # dynamics, state [rad/s]: rate of each reaction wheel of the active craft about its axis, relative to its body
    double wheel_rate_T[4]  # dynamics, state [rad/s]: the same of the target craft
    # dynamics, state [J]: work that the joints of the active and of the target craft, wheels left out, have done on its bodies since the
    # loop closed
    double joint_energy[2]
    double X_WP[7]  # setpoint_kinematics, output [m,-]: demanded pose of the platform, lead included
    double V_WP[6]  # setpoint_kinematics, output [m/s,rad/s]: demanded twist of the platform
    double leg_demand[6]  # setpoint_kinematics, output [m]: leg lengths of the demanded pose
    double leg_rate_demand[6]  # setpoint_kinematics, output [m/s]: leg rates of the demanded twist
    double stroke_margin  # setpoint_kinematics, output [m]: distance of the nearest leg to a stroke end
    double condition  # setpoint_kinematics, output: condition number of the scaled Jacobian at the demanded pose
    double leg_setpoint[6]  # safety, output [m]: leg lengths sent to the drives
    double leg_rate_setpoint[6]  # safety, output [m/s]: leg rates sent to the drives
    double following_error[6]  # safety, state [m]: expected minus measured leg length, the expected delay of the drive taken off
    # safety, state [J]: energy monitor: work that the corrected wrench has done on the vehicles' model since the contact began; positive:
    # the model has gained energy, which a passive contact cannot give
    double contact_work
    # safety, state: energy monitor: energy of relative motion at the start of this contact plus the work since, against itself
    double contact_energy_ratio
    int64_t tick  # clock, input: number of the period on the absolute grid, from 0
    int64_t time_ns  # clock, input [ns]: time of the tick on the grid since the start of the run
    int64_t lateness_ns  # clock, input [ns]: wake-up after the grid time
    int64_t read_ns  # clock, input [ns]: time the ports took to read, previous tick
    int64_t compute_ns  # clock, input [ns]: time the stages took, previous tick
    int64_t write_ns  # clock, input [ns]: time the ports took to write, previous tick
    int64_t missed_total  # clock, input: whole periods skipped so far
    int64_t overflow_total  # clock, input: samples that found the ring full so far
    int64_t supervisor_age_ns  # clock, input [ns]: age of the supervisor's last sign of life
    int64_t wrench_sequence  # ports, input: sequence number of the newest record
    int64_t wrench_age_ns  # ports, input [ns]: time since the newest record arrived
    int64_t wrench_lost_total  # ports, input: records missing in the sequence so far
    int64_t wrench_corrupt_total  # ports, input: damaged records of the force sensor so far
    int64_t drive_lost_total[6]  # ports, input: answers of each drive missing so far
    int64_t drive_corrupt_total[6]  # ports, input: damaged answers of each drive so far, damaged frames of its bus included
    int64_t command_sequence  # ports, input: sequence number of the last command taken (its acknowledgement)
    int64_t hand_sequence[2]  # ports, input: sequence number of the newest record of each hand controller
    int64_t hand_age_ns[2]  # ports, input [ns]: age of the newest record of each hand controller
    int64_t faults  # safety, state: fault bits, latched until a recovery clears what no longer stands (the table of faults)
    int64_t trip_tick  # safety, state: tick of the stop fault that tripped last, -1 without one
    int32_t periods  # clock, input: periods since the previous tick: 1, or more when some were skipped
    int32_t late_cause  # clock, input: why this tick was late
    int32_t realtime_mode  # clock, input: how the loop runs
    int32_t command_code  # ports, input: command taken at this tick
    int32_t tune_answer  # tuning, state: what became of the command tune of this tick
    int32_t contact  # events, state: 1 in contact (with hysteresis), else 0
    int32_t phase  # guidance, state: phase of the run
    int32_t motion  # guidance, state: what the dynamics do
    int32_t sequence  # guidance, state: state of the docking sequence
    int32_t end_cause  # guidance, state: why the run ended
    int32_t arm_mode  # guidance, state: what the manipulator's controller does
    int32_t arm_target  # guidance, state: joint of the single-joint mode, or number of the stored path, from 0
    int32_t rate_frame  # guidance, state: axes and point of operator_rate
    int32_t speed_mode  # guidance, state: scale of the hand controllers
    int32_t supervisory  # guidance, state: state of the supervisory commands Step and Insert
    int32_t supervisory_queue  # guidance, state: supervisory commands that wait
    # safety, state: what the setpoints do: follow the demand, decelerate to rest, stand there, not sent yet because the legs are not known;
    # stand there with the drives' power off and their blocking valves closed; or go to the measured legs and stay there while the drives
    # are enabled again
    int32_t safety_state
    uint32_t wrench_status  # ports, input: status bits of the force sensor, one word for all devices
    uint32_t wrench_device_status  # ports, input: the device's own status word
    uint32_t drive_status[6]  # ports, input: status bits of each drive, one word for all devices
    uint32_t drive_device_status[6]  # ports, input: the device's own status word (low half) and last emergency code (high half)
    uint32_t signal_discrete  # ports, input: discrete mechanism signals
    uint32_t signal_status  # ports, input: status bits of the mechanism signals, as wrench_status
    uint32_t analogue_chain  # ports, input: independent emergency chain as read
    uint32_t hand_buttons[2]  # ports, input: buttons of each hand controller
    uint32_t hand_status[2]  # ports, input: status of each hand controller
    uint32_t forward_kinematics_status  # forward_kinematics, state: what the forward kinematics could not do
    uint32_t wrench_fault  # wrench, state: status bits after the checks of the wrench path
    uint32_t wrench_channel_fault  # wrench, state: faults of single channels of the force sensor
    uint32_t events  # events, state: events of this tick
    uint32_t mechanism_state  # events, state: latched mechanism states
    uint32_t mechanism_command  # guidance, state: commands to the docking mechanism
    uint32_t control_request  # guidance, state: what the crafts' own control is to do
    # guidance, state: what the guidance saw that ends or holds the run, or asks for attention: safety makes faults of it
    uint32_t guidance_fault
    uint32_t control_status  # control, state: what the crafts' own control does and what limits it
    uint32_t compensation_status  # compensation, state: what limits the compensator's correction, and what in it acts
    uint32_t dynamics_status  # dynamics, state: state of the vehicles' model; of a manipulator also what its drives and path do
    uint32_t setpoint_kinematics_status  # setpoint_kinematics, output: why the demanded pose has no legs
    # safety, state: what of each leg's setpoint was clipped, and which drives are to have no power (their blocking valves, or brakes,
    # close)
    uint32_t setpoint_status
    # safety, state: what the inputs of the emergency chain say: emergency stop and guard (two channels each), hydraulic unit, and their
    # proof test
    uint32_t chain_state
    # safety, output: counts healthy ticks: on time, judged by the safety stage, the drives' power not taken; bit 0 is the dynamic output.
    # It stands still else
    uint32_t watchdog
    uint32_t record_crc  # telemetry, diagnostic: CRC-32 of the record with this field zero: names a damaged channel after the fact
