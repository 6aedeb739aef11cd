"""Masks of faults and bits, codes. Generated from channels.toml by tools/generate_channels.py: do not edit."""

from libc.stdint cimport int64_t, uint32_t


cdef extern from *:
    """
    #define FAULT_SENSOR_NO_DATA ((int64_t)1 << 0)
    #define FAULT_SENSOR_STALE ((int64_t)1 << 1)
    #define FAULT_SENSOR_LOST ((int64_t)1 << 2)
    #define FAULT_SENSOR_CORRUPT ((int64_t)1 << 3)
    #define FAULT_SENSOR_SATURATED ((int64_t)1 << 4)
    #define FAULT_SENSOR_OUT_OF_RANGE ((int64_t)1 << 5)
    #define FAULT_SENSOR_DEVICE_FAULT ((int64_t)1 << 6)
    #define FAULT_SENSOR_BROKEN_WIRE ((int64_t)1 << 7)
    #define FAULT_SENSOR_BUSY ((int64_t)1 << 8)
    #define FAULT_FORCE_LIMIT ((int64_t)1 << 9)
    #define FAULT_MOMENT_LIMIT ((int64_t)1 << 10)
    #define FAULT_DRIVE_NO_DATA ((int64_t)1 << 11)
    #define FAULT_DRIVE_DEVICE_FAULT ((int64_t)1 << 12)
    #define FAULT_DRIVE_NOT_ENABLED ((int64_t)1 << 13)
    #define FAULT_FOLLOWING_ERROR ((int64_t)1 << 14)
    #define FAULT_BUS_FAULT ((int64_t)1 << 15)
    #define FAULT_DRIVE_LIMIT_TOUCHED ((int64_t)1 << 16)
    #define FAULT_STROKE_LIMIT ((int64_t)1 << 17)
    #define FAULT_RATE_LIMIT ((int64_t)1 << 18)
    #define FAULT_ACCELERATION_LIMIT ((int64_t)1 << 19)
    #define FAULT_SETPOINT_NOT_FINITE ((int64_t)1 << 20)
    #define FAULT_WORKSPACE ((int64_t)1 << 21)
    #define FAULT_NEAR_SINGULAR ((int64_t)1 << 22)
    #define FAULT_PLATFORM_UNKNOWN ((int64_t)1 << 23)
    #define FAULT_LOOP_OVERRUN ((int64_t)1 << 24)
    #define FAULT_SUPERVISOR_SILENT ((int64_t)1 << 25)
    #define FAULT_ANALOGUE_CHAIN ((int64_t)1 << 26)
    #define FAULT_ENERGY_GAIN ((int64_t)1 << 27)
    #define FAULT_ENERGY_WARNING ((int64_t)1 << 28)
    #define FAULT_DIVERGENCE ((int64_t)1 << 29)
    #define FAULT_OPERATOR_STOP ((int64_t)1 << 30)
    #define FAULT_HAND_CONTROLLER_STALE ((int64_t)1 << 31)
    #define FAULT_SIGNALS_NO_DATA ((int64_t)1 << 32)
    #define FAULT_DRIVE_LOCAL_CONTROL ((int64_t)1 << 33)
    #define FAULT_TARE_DRIFT ((int64_t)1 << 34)
    #define FAULT_PROGRAMME_NOT_REACHED ((int64_t)1 << 35)
    #define FAULT_MECHANISM_INVALID ((int64_t)1 << 36)
    #define FAULT_COMPENSATOR_CLIPPED ((int64_t)1 << 37)
    #define FAULT_ARM_OVERLOAD ((int64_t)1 << 38)
    #define FAULT_START_LEGS_UNKNOWN ((int64_t)1 << 39)
    #define FAULT_START_POSE_DISAGREES ((int64_t)1 << 40)
    #define FAULT_DRIVE_LOST ((int64_t)1 << 41)
    #define FAULT_DRIVE_NOT_FOLLOWING ((int64_t)1 << 42)
    #define FAULT_DRIVE_HEARTBEAT_LOST ((int64_t)1 << 43)
    #define FAULT_RECORD_LOST ((int64_t)1 << 44)
    #define FAULT_RECORD_REQUIRED ((int64_t)1 << 45)
    #define FAULT_SENSOR_FROZEN ((int64_t)1 << 50)
    #define FAULT_TARE_WRONG ((int64_t)1 << 51)
    #define FAULT_FORCE_WITHOUT_CONTACT ((int64_t)1 << 52)
    #define FAULT_CONTACT_WITHOUT_FORCE ((int64_t)1 << 53)
    #define FAULT_FORCE_BEYOND_PREDICTION ((int64_t)1 << 54)
    #define FAULT_LEG_JUMP ((int64_t)1 << 55)
    #define FAULT_RECORDS_DIFFER ((int64_t)1 << 56)
    #define FAULT_CHAIN_DISCREPANCY ((int64_t)1 << 57)
    #define FAULT_HYDRAULIC_UNIT ((int64_t)1 << 58)
    #define FAULT_HOLD_TOUCHES ((int64_t)1 << 59)
    #define FAULT_LEG_FORCES_DIFFER ((int64_t)1 << 60)
    #define FAULT_CONTROL_FAILED ((int64_t)1 << 46)
    #define FAULT_LEG_FORCE_LIMIT ((int64_t)1 << 47)
    #define FAULT_SUPPLY_PRESSURE ((int64_t)1 << 48)
    #define FAULT_VALVE_SATURATED ((int64_t)1 << 49)
    #define FAULTS_STOP ((int64_t)1729364232810987263LL)
    #define FAULTS_POWER_THEN_OFF ((int64_t)361276980907245568LL)
    #define FAULTS_POWER_OFF ((int64_t)180157187891427328LL)
    #define EVENT_FIRST_CONTACT ((uint32_t)1 << 0)
    #define EVENT_CONTACT_BEGIN ((uint32_t)1 << 1)
    #define EVENT_CONTACT_END ((uint32_t)1 << 2)
    #define EVENT_CAPTURE ((uint32_t)1 << 3)
    #define EVENT_BOTTOM ((uint32_t)1 << 4)
    #define EVENT_LATCH_FIRED ((uint32_t)1 << 5)
    #define EVENT_START_OF_DOCKING ((uint32_t)1 << 6)
    #define EVENT_COMMAND ((uint32_t)1 << 9)
    #define EVENT_COMPLETE ((uint32_t)1 << 11)
    #define EVENT_INITIAL_POSITION_LOST ((uint32_t)1 << 12)
    #define EVENT_HAND_CONTROLLER_STALE ((uint32_t)1 << 14)
    #define MECHANISM_SIGNAL_DK1 ((uint32_t)1 << 0)
    #define MECHANISM_SIGNAL_DSG ((uint32_t)1 << 1)
    #define MECHANISM_SIGNAL_DK2 ((uint32_t)1 << 2)
    #define MECHANISM_SIGNAL_INITIAL_POSITION ((uint32_t)1 << 3)
    #define MECHANISM_SIGNAL_LIMITER_CONTACT ((uint32_t)1 << 4)
    #define MECHANISM_SIGNAL_LEVER1_CONTACT ((uint32_t)1 << 5)
    #define MECHANISM_SIGNAL_LEVER2_CONTACT ((uint32_t)1 << 6)
    #define MECHANISM_SIGNAL_LEVER3_CONTACT ((uint32_t)1 << 7)
    #define MECHANISM_SIGNAL_PUSHERS ((uint32_t)1 << 8)
    #define MECHANISM_SIGNAL_LATCH1 ((uint32_t)1 << 9)
    #define MECHANISM_SIGNAL_LATCH2 ((uint32_t)1 << 10)
    #define MECHANISM_SIGNAL_LATCH3 ((uint32_t)1 << 11)
    #define MECHANISM_SIGNAL_LATCH4 ((uint32_t)1 << 12)
    #define MECHANISM_SIGNAL_DRIVE_RUNNING ((uint32_t)1 << 13)
    #define MECHANISM_SIGNAL_RING_ALIGNED1 ((uint32_t)1 << 14)
    #define MECHANISM_SIGNAL_RING_ALIGNED2 ((uint32_t)1 << 15)
    #define MECHANISM_SIGNAL_RING_ALIGNED3 ((uint32_t)1 << 16)
    #define MECHANISM_SIGNAL_RELEASED ((uint32_t)1 << 17)
    #define MECHANISM_SIGNAL_PLANES_TOGETHER ((uint32_t)1 << 18)
    #define MECHANISM_SIGNAL_LEVER_CONTACT ((uint32_t)0xe0)
    #define MECHANISM_SIGNAL_LATCH ((uint32_t)0x1e00)
    #define MECHANISM_SIGNAL_RING_ALIGNED ((uint32_t)0x1c000)
    #define SENSOR_STATUS_NO_DATA ((uint32_t)1 << 0)
    #define SENSOR_STATUS_STALE ((uint32_t)1 << 1)
    #define SENSOR_STATUS_LOST ((uint32_t)1 << 2)
    #define SENSOR_STATUS_CORRUPT ((uint32_t)1 << 3)
    #define SENSOR_STATUS_SATURATED ((uint32_t)1 << 4)
    #define SENSOR_STATUS_OUT_OF_RANGE ((uint32_t)1 << 5)
    #define SENSOR_STATUS_DEVICE_FAULT ((uint32_t)1 << 6)
    #define SENSOR_STATUS_BUSY ((uint32_t)1 << 7)
    #define SENSOR_STATUS_BROKEN_WIRE ((uint32_t)1 << 8)
    #define SENSOR_STATUS_WARNING ((uint32_t)1 << 9)
    #define SENSOR_STATUS_SUPPLY ((uint32_t)1 << 10)
    #define SENSOR_STATUS_TEMPERATURE ((uint32_t)1 << 11)
    #define SENSOR_STATUS_FROZEN ((uint32_t)1 << 12)
    #define SENSOR_STATUS_DIFFERS ((uint32_t)1 << 13)
    #define DRIVE_STATUS_NO_DATA ((uint32_t)1 << 0)
    #define DRIVE_STATUS_STALE ((uint32_t)1 << 1)
    #define DRIVE_STATUS_LOST ((uint32_t)1 << 2)
    #define DRIVE_STATUS_CORRUPT ((uint32_t)1 << 3)
    #define DRIVE_STATUS_DEVICE_FAULT ((uint32_t)1 << 4)
    #define DRIVE_STATUS_NOT_ENABLED ((uint32_t)1 << 5)
    #define DRIVE_STATUS_FOLLOWING_ERROR ((uint32_t)1 << 6)
    #define DRIVE_STATUS_LIMIT_TOUCHED ((uint32_t)1 << 7)
    #define DRIVE_STATUS_LOCAL_CONTROL ((uint32_t)1 << 8)
    #define DRIVE_STATUS_BUS_FAULT ((uint32_t)1 << 9)
    #define DRIVE_STATUS_WARNING ((uint32_t)1 << 10)
    #define DRIVE_STATUS_EMERGENCY ((uint32_t)1 << 11)
    #define DRIVE_STATUS_TX_DROP ((uint32_t)1 << 12)
    #define DRIVE_STATUS_NOT_FOLLOWING ((uint32_t)1 << 13)
    #define DRIVE_STATUS_HEARTBEAT_LOST ((uint32_t)1 << 14)
    #define DRIVE_STATUS_VALVE_SATURATED ((uint32_t)1 << 15)
    #define DRIVE_STATUS_SUPPLY_LOW ((uint32_t)1 << 16)
    #define DRIVE_STATUS_HYDRAULICS_BLOCKED ((uint32_t)1 << 17)
    #define DRIVE_STATUS_DIFFERS ((uint32_t)1 << 18)
    #define ANALOGUE_CHAIN_HEALTHY ((uint32_t)1 << 0)
    #define ANALOGUE_CHAIN_TRIPPED ((uint32_t)1 << 1)
    #define ANALOGUE_CHAIN_HYDRAULICS_BLOCKED ((uint32_t)1 << 2)
    #define ANALOGUE_CHAIN_EMERGENCY_STOP_A ((uint32_t)1 << 3)
    #define ANALOGUE_CHAIN_EMERGENCY_STOP_B ((uint32_t)1 << 4)
    #define ANALOGUE_CHAIN_GUARD_A ((uint32_t)1 << 5)
    #define ANALOGUE_CHAIN_GUARD_B ((uint32_t)1 << 6)
    #define ANALOGUE_CHAIN_UNIT_ON ((uint32_t)1 << 7)
    #define ANALOGUE_CHAIN_UNIT_LOW ((uint32_t)1 << 8)
    #define ANALOGUE_CHAIN_UNIT_HIGH ((uint32_t)1 << 9)
    #define ANALOGUE_CHAIN_UNIT_INTERLOCK ((uint32_t)1 << 10)
    #define CHAIN_STATE_EMERGENCY_STOP ((uint32_t)1 << 0)
    #define CHAIN_STATE_GUARD_OPEN ((uint32_t)1 << 1)
    #define CHAIN_STATE_EMERGENCY_STOP_DIFFERS ((uint32_t)1 << 2)
    #define CHAIN_STATE_GUARD_DIFFERS ((uint32_t)1 << 3)
    #define CHAIN_STATE_UNIT_OFF ((uint32_t)1 << 4)
    #define CHAIN_STATE_UNIT_LOW ((uint32_t)1 << 5)
    #define CHAIN_STATE_UNIT_HIGH ((uint32_t)1 << 6)
    #define CHAIN_STATE_UNIT_INTERLOCK ((uint32_t)1 << 7)
    #define CHAIN_STATE_PROOF_ASKED ((uint32_t)1 << 8)
    #define CHAIN_STATE_STOP_SEEN_OPEN ((uint32_t)1 << 9)
    #define CHAIN_STATE_GUARD_SEEN_OPEN ((uint32_t)1 << 10)
    #define CHAIN_STATE_PROVEN ((uint32_t)1 << 11)
    #define HAND_BUTTON_DEADMAN ((uint32_t)1 << 0)
    #define HAND_BUTTON_VERNIER ((uint32_t)1 << 1)
    #define HAND_STATUS_PRESENT ((uint32_t)1 << 0)
    #define HAND_STATUS_STALE ((uint32_t)1 << 1)
    #define HAND_STATUS_REJECTED ((uint32_t)1 << 2)
    #define FORWARD_KINEMATICS_STATUS_NOT_CONVERGED ((uint32_t)1 << 0)
    #define FORWARD_KINEMATICS_STATUS_NEAR_SINGULAR ((uint32_t)1 << 1)
    #define FORWARD_KINEMATICS_STATUS_LEG_MISSING ((uint32_t)1 << 2)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE1 ((uint32_t)1 << 0)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE2 ((uint32_t)1 << 1)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE3 ((uint32_t)1 << 2)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE4 ((uint32_t)1 << 3)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE5 ((uint32_t)1 << 4)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE6 ((uint32_t)1 << 5)
    #define WRENCH_CHANNEL_FAULT_SATURATED1 ((uint32_t)1 << 8)
    #define WRENCH_CHANNEL_FAULT_SATURATED2 ((uint32_t)1 << 9)
    #define WRENCH_CHANNEL_FAULT_SATURATED3 ((uint32_t)1 << 10)
    #define WRENCH_CHANNEL_FAULT_SATURATED4 ((uint32_t)1 << 11)
    #define WRENCH_CHANNEL_FAULT_SATURATED5 ((uint32_t)1 << 12)
    #define WRENCH_CHANNEL_FAULT_SATURATED6 ((uint32_t)1 << 13)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE1 ((uint32_t)1 << 16)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE2 ((uint32_t)1 << 17)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE3 ((uint32_t)1 << 18)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE4 ((uint32_t)1 << 19)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE5 ((uint32_t)1 << 20)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE6 ((uint32_t)1 << 21)
    #define WRENCH_CHANNEL_FAULT_OUT_OF_RANGE ((uint32_t)0x3f)
    #define WRENCH_CHANNEL_FAULT_SATURATED ((uint32_t)0x3f00)
    #define WRENCH_CHANNEL_FAULT_BROKEN_WIRE ((uint32_t)0x3f0000)
    #define MECHANISM_COMMAND_DRIVE ((uint32_t)1 << 0)
    #define MECHANISM_COMMAND_EXTRA_BRAKES ((uint32_t)1 << 1)
    #define MECHANISM_COMMAND_RELEASE ((uint32_t)1 << 2)
    #define MECHANISM_COMMAND_EXTEND ((uint32_t)1 << 3)
    #define MECHANISM_STATUS_OUT_OF_RANGE ((uint32_t)1 << 0)
    #define CONTROL_REQUEST_PRESS ((uint32_t)1 << 0)
    #define CONTROL_REQUEST_RETREAT ((uint32_t)1 << 1)
    #define CONTROL_REQUEST_ATTITUDE ((uint32_t)1 << 2)
    #define GUIDANCE_FAULT_OPERATOR_STOP ((uint32_t)1 << 0)
    #define GUIDANCE_FAULT_HAND_CONTROLLER_STALE ((uint32_t)1 << 1)
    #define GUIDANCE_FAULT_REGION_ENDED ((uint32_t)1 << 2)
    #define GUIDANCE_FAULT_PROGRAMME_NOT_REACHED ((uint32_t)1 << 3)
    #define GUIDANCE_FAULT_RECORD_LOST ((uint32_t)1 << 4)
    #define GUIDANCE_FAULT_RECORD_REQUIRED ((uint32_t)1 << 5)
    #define GUIDANCE_FAULT_HOLD_TOUCHES ((uint32_t)1 << 6)
    #define CONTROL_STATUS_ATTITUDE ((uint32_t)1 << 0)
    #define CONTROL_STATUS_FIRING ((uint32_t)1 << 1)
    #define CONTROL_STATUS_THRUST_LIMITED ((uint32_t)1 << 2)
    #define CONTROL_STATUS_WHEEL_LIMITED ((uint32_t)1 << 3)
    #define CONTROL_STATUS_FAILED ((uint32_t)1 << 4)
    #define COMPENSATION_STATUS_RATE_LIMITED ((uint32_t)1 << 0)
    #define COMPENSATION_STATUS_ACCELERATION_LIMITED ((uint32_t)1 << 1)
    #define COMPENSATION_STATUS_CLIPPED ((uint32_t)1 << 2)
    #define COMPENSATION_STATUS_GATE_OPEN ((uint32_t)1 << 3)
    #define COMPENSATION_STATUS_ADAPTING ((uint32_t)1 << 4)
    #define COMPENSATION_STATUS_ENERGY_CAP ((uint32_t)1 << 5)
    #define COMPENSATION_STATUS_DEAD_BAND ((uint32_t)1 << 6)
    #define COMPENSATION_STATUS_MODE_OBSERVED ((uint32_t)1 << 7)
    #define COMPENSATION_STATUS_AUTHORITY_LIMITED ((uint32_t)1 << 8)
    #define DYNAMICS_STATUS_NOT_FINITE ((uint32_t)1 << 0)
    #define DYNAMICS_STATUS_OUT_OF_RANGE ((uint32_t)1 << 1)
    #define DYNAMICS_STATUS_JOINED ((uint32_t)1 << 2)
    #define DYNAMICS_STATUS_DRIVE_SATURATED ((uint32_t)1 << 3)
    #define DYNAMICS_STATUS_JOINT_NEAR_STOP ((uint32_t)1 << 4)
    #define DYNAMICS_STATUS_NEAR_SINGULAR ((uint32_t)1 << 5)
    #define DYNAMICS_STATUS_OVERLOAD ((uint32_t)1 << 6)
    #define DYNAMICS_STATUS_PATH_DONE ((uint32_t)1 << 7)
    #define DYNAMICS_STATUS_JOINT_ENERGY ((uint32_t)1 << 8)
    #define SETPOINT_KINEMATICS_STATUS_OUT_OF_REACH ((uint32_t)1 << 0)
    #define SETPOINT_KINEMATICS_STATUS_NEAR_SINGULAR ((uint32_t)1 << 1)
    #define SETPOINT_KINEMATICS_STATUS_NOT_FINITE ((uint32_t)1 << 2)
    #define SETPOINT_STATUS_LENGTH1 ((uint32_t)1 << 0)
    #define SETPOINT_STATUS_LENGTH2 ((uint32_t)1 << 1)
    #define SETPOINT_STATUS_LENGTH3 ((uint32_t)1 << 2)
    #define SETPOINT_STATUS_LENGTH4 ((uint32_t)1 << 3)
    #define SETPOINT_STATUS_LENGTH5 ((uint32_t)1 << 4)
    #define SETPOINT_STATUS_LENGTH6 ((uint32_t)1 << 5)
    #define SETPOINT_STATUS_RATE1 ((uint32_t)1 << 8)
    #define SETPOINT_STATUS_RATE2 ((uint32_t)1 << 9)
    #define SETPOINT_STATUS_RATE3 ((uint32_t)1 << 10)
    #define SETPOINT_STATUS_RATE4 ((uint32_t)1 << 11)
    #define SETPOINT_STATUS_RATE5 ((uint32_t)1 << 12)
    #define SETPOINT_STATUS_RATE6 ((uint32_t)1 << 13)
    #define SETPOINT_STATUS_ACCELERATION1 ((uint32_t)1 << 16)
    #define SETPOINT_STATUS_ACCELERATION2 ((uint32_t)1 << 17)
    #define SETPOINT_STATUS_ACCELERATION3 ((uint32_t)1 << 18)
    #define SETPOINT_STATUS_ACCELERATION4 ((uint32_t)1 << 19)
    #define SETPOINT_STATUS_ACCELERATION5 ((uint32_t)1 << 20)
    #define SETPOINT_STATUS_ACCELERATION6 ((uint32_t)1 << 21)
    #define SETPOINT_STATUS_BLOCKED1 ((uint32_t)1 << 24)
    #define SETPOINT_STATUS_BLOCKED2 ((uint32_t)1 << 25)
    #define SETPOINT_STATUS_BLOCKED3 ((uint32_t)1 << 26)
    #define SETPOINT_STATUS_BLOCKED4 ((uint32_t)1 << 27)
    #define SETPOINT_STATUS_BLOCKED5 ((uint32_t)1 << 28)
    #define SETPOINT_STATUS_BLOCKED6 ((uint32_t)1 << 29)
    #define SETPOINT_STATUS_LENGTH ((uint32_t)0x3f)
    #define SETPOINT_STATUS_RATE ((uint32_t)0x3f00)
    #define SETPOINT_STATUS_ACCELERATION ((uint32_t)0x3f0000)
    #define SETPOINT_STATUS_BLOCKED ((uint32_t)0x3f000000)
    """
    const int64_t FAULT_SENSOR_NO_DATA  # stop: no record of the force sensor for the configured number of periods
    const int64_t FAULT_SENSOR_STALE  # stop: the sensor's own counter does not advance
    const int64_t FAULT_SENSOR_LOST  # stop: too many records missing in a second
    const int64_t FAULT_SENSOR_CORRUPT  # stop: too many damaged records in a second
    const int64_t FAULT_SENSOR_SATURATED  # stop: a gauge is saturated: the wrench is not known
    const int64_t FAULT_SENSOR_OUT_OF_RANGE  # stop: a channel is beyond its calibrated range
    const int64_t FAULT_SENSOR_DEVICE_FAULT  # stop: the sensor reports a fault of its own
    const int64_t FAULT_SENSOR_BROKEN_WIRE  # stop: a gauge reads as a broken wire does
    const int64_t FAULT_SENSOR_BUSY  # note: the sensor is busy; the last value is held
    const int64_t FAULT_FORCE_LIMIT  # stop: a force component is beyond its software limit
    const int64_t FAULT_MOMENT_LIMIT  # stop: a moment component is beyond its software limit
    const int64_t FAULT_DRIVE_NO_DATA  # stop: a drive has not answered for the configured number of periods
    const int64_t FAULT_DRIVE_DEVICE_FAULT  # stop: a drive reports a fault or sent an emergency message
    const int64_t FAULT_DRIVE_NOT_ENABLED  # stop: a drive left the enabled state while commanded
    const int64_t FAULT_FOLLOWING_ERROR  # stop: a leg is further from where it should be than allowed
    const int64_t FAULT_BUS_FAULT  # stop: a bus is off or its transmit queue is full
    const int64_t FAULT_DRIVE_LIMIT_TOUCHED  # note: a drive reports that it touched one of its own limits
    const int64_t FAULT_STROKE_LIMIT  # stop: a demanded leg length is beyond its stroke
    const int64_t FAULT_RATE_LIMIT  # stop: a demanded leg rate is beyond its limit for longer than allowed
    const int64_t FAULT_ACCELERATION_LIMIT  # note: a demanded leg acceleration was clipped
    const int64_t FAULT_SETPOINT_NOT_FINITE  # stop: a setpoint is not a finite number
    const int64_t FAULT_WORKSPACE  # stop: the demanded pose is out of the platform's reach
    const int64_t FAULT_NEAR_SINGULAR  # stop: the platform is too near a singular pose
    const int64_t FAULT_PLATFORM_UNKNOWN  # stop: the platform's pose cannot be found from the measured legs
    const int64_t FAULT_LOOP_OVERRUN  # stop: too many periods were skipped at once
    const int64_t FAULT_SUPERVISOR_SILENT  # stop: the supervisor gave no sign of life
    const int64_t FAULT_ANALOGUE_CHAIN  # stop: the independent emergency chain is tripped or not healthy
    const int64_t FAULT_ENERGY_GAIN  # stop: a contact gave back more energy than it took
    const int64_t FAULT_ENERGY_WARNING  # note: a contact gave back 5 % more energy than it took
    const int64_t FAULT_DIVERGENCE  # stop: the dynamics are not finite or beyond their valid range
    const int64_t FAULT_OPERATOR_STOP  # stop: ABORT was commanded
    const int64_t FAULT_HAND_CONTROLLER_STALE  # note: a hand controller is silent: its rates are zero until it is back and centred
    const int64_t FAULT_SIGNALS_NO_DATA  # stop: the mechanism signals are missing
    const int64_t FAULT_DRIVE_LOCAL_CONTROL  # stop: a drive was taken over at its own panel
    const int64_t FAULT_TARE_DRIFT  # note: the wrench without contact is not zero
    const int64_t FAULT_PROGRAMME_NOT_REACHED  # stop: the platform did not reach its start pose in time
    const int64_t FAULT_MECHANISM_INVALID  # stop: a mechanism model left its valid range
    const int64_t FAULT_COMPENSATOR_CLIPPED  # note: a compensator's correction was clipped
    const int64_t FAULT_ARM_OVERLOAD  # note: the load at the manipulator's end is beyond the arm's limit
    const int64_t FAULT_START_LEGS_UNKNOWN  # stop: before the first setpoint: a measured leg is not finite, not fresh or outside its stroke
    # stop: before the first setpoint: the measured legs do not fit together, or not to the configured start
    const int64_t FAULT_START_POSE_DISAGREES
    const int64_t FAULT_DRIVE_LOST  # stop: too many answers of a drive missing in a second
    const int64_t FAULT_DRIVE_NOT_FOLLOWING  # stop: an enabled drive says that it does not follow its setpoints
    const int64_t FAULT_DRIVE_HEARTBEAT_LOST  # stop: a drive's heartbeat has stopped
    const int64_t FAULT_RECORD_LOST  # hold: the run can no longer be recorded: it was ended by parking
    const int64_t FAULT_RECORD_REQUIRED  # stop: the run can no longer be recorded: it was ended by a trip, as configured
    const int64_t FAULT_SENSOR_FROZEN  # stop: the force sensor's values do not change, although its records are new
    # stop: the wrench before the loop is closed is not zero: the loop would move the model without a contact
    const int64_t FAULT_TARE_WRONG
    const int64_t FAULT_FORCE_WITHOUT_CONTACT  # stop: the sensor shows a contact while the units are apart
    # stop: the units are in each other as far as in the prediction, and the sensor shows much less force
    const int64_t FAULT_CONTACT_WITHOUT_FORCE
    const int64_t FAULT_FORCE_BEYOND_PREDICTION  # stop: the contact force is beyond what was predicted of this run
    const int64_t FAULT_LEG_JUMP  # stop: a measured leg moved faster than a leg can
    const int64_t FAULT_RECORDS_DIFFER  # stop: two records of one moment differ: one of them is not the device's
    const int64_t FAULT_CHAIN_DISCREPANCY  # stop: the two channels of an input of the emergency chain differ for longer than they may
    const int64_t FAULT_HYDRAULIC_UNIT  # stop: the hydraulic unit is off, its level or pressure is out of range, or an interlock is open
    const int64_t FAULT_HOLD_TOUCHES  # note: a hold cannot stop the platform before the units touch
    const int64_t FAULT_LEG_FORCES_DIFFER  # stop: the legs carry another force than the load cell shows
    const int64_t FAULT_CONTROL_FAILED  # stop: the crafts' own control has failed or gives what is not a number
    const int64_t FAULT_LEG_FORCE_LIMIT  # stop: a leg's actuator pushes or pulls with more than its limit
    # stop: the hydraulic supply has fallen below what the legs need, or its blocking valves have closed
    const int64_t FAULT_SUPPLY_PRESSURE
    const int64_t FAULT_VALVE_SATURATED  # stop: a servo valve has stayed at its end: the leg no longer follows
    const int64_t FAULTS_STOP  # all whose severity is stop
    const int64_t FAULTS_POWER_THEN_OFF  # all whose power is then_off
    const int64_t FAULTS_POWER_OFF  # all whose power is off
    const uint32_t EVENT_FIRST_CONTACT
    const uint32_t EVENT_CONTACT_BEGIN
    const uint32_t EVENT_CONTACT_END
    const uint32_t EVENT_CAPTURE
    const uint32_t EVENT_BOTTOM
    const uint32_t EVENT_LATCH_FIRED
    const uint32_t EVENT_START_OF_DOCKING
    const uint32_t EVENT_COMMAND
    const uint32_t EVENT_COMPLETE
    const uint32_t EVENT_INITIAL_POSITION_LOST
    const uint32_t EVENT_HAND_CONTROLLER_STALE
    const uint32_t MECHANISM_SIGNAL_DK1
    const uint32_t MECHANISM_SIGNAL_DSG
    const uint32_t MECHANISM_SIGNAL_DK2
    const uint32_t MECHANISM_SIGNAL_INITIAL_POSITION
    const uint32_t MECHANISM_SIGNAL_LIMITER_CONTACT
    const uint32_t MECHANISM_SIGNAL_LEVER1_CONTACT
    const uint32_t MECHANISM_SIGNAL_LEVER2_CONTACT
    const uint32_t MECHANISM_SIGNAL_LEVER3_CONTACT
    const uint32_t MECHANISM_SIGNAL_PUSHERS
    const uint32_t MECHANISM_SIGNAL_LATCH1
    const uint32_t MECHANISM_SIGNAL_LATCH2
    const uint32_t MECHANISM_SIGNAL_LATCH3
    const uint32_t MECHANISM_SIGNAL_LATCH4
    const uint32_t MECHANISM_SIGNAL_DRIVE_RUNNING
    const uint32_t MECHANISM_SIGNAL_RING_ALIGNED1
    const uint32_t MECHANISM_SIGNAL_RING_ALIGNED2
    const uint32_t MECHANISM_SIGNAL_RING_ALIGNED3
    const uint32_t MECHANISM_SIGNAL_RELEASED
    const uint32_t MECHANISM_SIGNAL_PLANES_TOGETHER
    const uint32_t MECHANISM_SIGNAL_LEVER_CONTACT  # all of the run
    const uint32_t MECHANISM_SIGNAL_LATCH  # all of the run
    const uint32_t MECHANISM_SIGNAL_RING_ALIGNED  # all of the run
    const uint32_t SENSOR_STATUS_NO_DATA
    const uint32_t SENSOR_STATUS_STALE
    const uint32_t SENSOR_STATUS_LOST
    const uint32_t SENSOR_STATUS_CORRUPT
    const uint32_t SENSOR_STATUS_SATURATED
    const uint32_t SENSOR_STATUS_OUT_OF_RANGE
    const uint32_t SENSOR_STATUS_DEVICE_FAULT
    const uint32_t SENSOR_STATUS_BUSY
    const uint32_t SENSOR_STATUS_BROKEN_WIRE
    const uint32_t SENSOR_STATUS_WARNING
    const uint32_t SENSOR_STATUS_SUPPLY
    const uint32_t SENSOR_STATUS_TEMPERATURE
    const uint32_t SENSOR_STATUS_FROZEN
    const uint32_t SENSOR_STATUS_DIFFERS
    const uint32_t DRIVE_STATUS_NO_DATA
    const uint32_t DRIVE_STATUS_STALE
    const uint32_t DRIVE_STATUS_LOST
    const uint32_t DRIVE_STATUS_CORRUPT
    const uint32_t DRIVE_STATUS_DEVICE_FAULT
    const uint32_t DRIVE_STATUS_NOT_ENABLED
    const uint32_t DRIVE_STATUS_FOLLOWING_ERROR
    const uint32_t DRIVE_STATUS_LIMIT_TOUCHED
    const uint32_t DRIVE_STATUS_LOCAL_CONTROL
    const uint32_t DRIVE_STATUS_BUS_FAULT
    const uint32_t DRIVE_STATUS_WARNING
    const uint32_t DRIVE_STATUS_EMERGENCY
    const uint32_t DRIVE_STATUS_TX_DROP
    const uint32_t DRIVE_STATUS_NOT_FOLLOWING
    const uint32_t DRIVE_STATUS_HEARTBEAT_LOST
    const uint32_t DRIVE_STATUS_VALVE_SATURATED
    const uint32_t DRIVE_STATUS_SUPPLY_LOW
    const uint32_t DRIVE_STATUS_HYDRAULICS_BLOCKED
    const uint32_t DRIVE_STATUS_DIFFERS
    const uint32_t ANALOGUE_CHAIN_HEALTHY
    const uint32_t ANALOGUE_CHAIN_TRIPPED
    const uint32_t ANALOGUE_CHAIN_HYDRAULICS_BLOCKED
    const uint32_t ANALOGUE_CHAIN_EMERGENCY_STOP_A
    const uint32_t ANALOGUE_CHAIN_EMERGENCY_STOP_B
    const uint32_t ANALOGUE_CHAIN_GUARD_A
    const uint32_t ANALOGUE_CHAIN_GUARD_B
    const uint32_t ANALOGUE_CHAIN_UNIT_ON
    const uint32_t ANALOGUE_CHAIN_UNIT_LOW
    const uint32_t ANALOGUE_CHAIN_UNIT_HIGH
    const uint32_t ANALOGUE_CHAIN_UNIT_INTERLOCK
    const uint32_t CHAIN_STATE_EMERGENCY_STOP
    const uint32_t CHAIN_STATE_GUARD_OPEN
    const uint32_t CHAIN_STATE_EMERGENCY_STOP_DIFFERS
    const uint32_t CHAIN_STATE_GUARD_DIFFERS
    const uint32_t CHAIN_STATE_UNIT_OFF
    const uint32_t CHAIN_STATE_UNIT_LOW
    const uint32_t CHAIN_STATE_UNIT_HIGH
    const uint32_t CHAIN_STATE_UNIT_INTERLOCK
    const uint32_t CHAIN_STATE_PROOF_ASKED
    const uint32_t CHAIN_STATE_STOP_SEEN_OPEN
    const uint32_t CHAIN_STATE_GUARD_SEEN_OPEN
    const uint32_t CHAIN_STATE_PROVEN
    const uint32_t HAND_BUTTON_DEADMAN
    const uint32_t HAND_BUTTON_VERNIER
    const uint32_t HAND_STATUS_PRESENT
    const uint32_t HAND_STATUS_STALE
    const uint32_t HAND_STATUS_REJECTED
    const uint32_t FORWARD_KINEMATICS_STATUS_NOT_CONVERGED
    const uint32_t FORWARD_KINEMATICS_STATUS_NEAR_SINGULAR
    const uint32_t FORWARD_KINEMATICS_STATUS_LEG_MISSING
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE1
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE2
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE3
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE4
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE5
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE6
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED1
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED2
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED3
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED4
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED5
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED6
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE1
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE2
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE3
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE4
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE5
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE6
    const uint32_t WRENCH_CHANNEL_FAULT_OUT_OF_RANGE  # all of the run
    const uint32_t WRENCH_CHANNEL_FAULT_SATURATED  # all of the run
    const uint32_t WRENCH_CHANNEL_FAULT_BROKEN_WIRE  # all of the run
    const uint32_t MECHANISM_COMMAND_DRIVE
    const uint32_t MECHANISM_COMMAND_EXTRA_BRAKES
    const uint32_t MECHANISM_COMMAND_RELEASE
    const uint32_t MECHANISM_COMMAND_EXTEND
    const uint32_t MECHANISM_STATUS_OUT_OF_RANGE
    const uint32_t CONTROL_REQUEST_PRESS
    const uint32_t CONTROL_REQUEST_RETREAT
    const uint32_t CONTROL_REQUEST_ATTITUDE
    const uint32_t GUIDANCE_FAULT_OPERATOR_STOP
    const uint32_t GUIDANCE_FAULT_HAND_CONTROLLER_STALE
    const uint32_t GUIDANCE_FAULT_REGION_ENDED
    const uint32_t GUIDANCE_FAULT_PROGRAMME_NOT_REACHED
    const uint32_t GUIDANCE_FAULT_RECORD_LOST
    const uint32_t GUIDANCE_FAULT_RECORD_REQUIRED
    const uint32_t GUIDANCE_FAULT_HOLD_TOUCHES
    const uint32_t CONTROL_STATUS_ATTITUDE
    const uint32_t CONTROL_STATUS_FIRING
    const uint32_t CONTROL_STATUS_THRUST_LIMITED
    const uint32_t CONTROL_STATUS_WHEEL_LIMITED
    const uint32_t CONTROL_STATUS_FAILED
    const uint32_t COMPENSATION_STATUS_RATE_LIMITED
    const uint32_t COMPENSATION_STATUS_ACCELERATION_LIMITED
    const uint32_t COMPENSATION_STATUS_CLIPPED
    const uint32_t COMPENSATION_STATUS_GATE_OPEN
    const uint32_t COMPENSATION_STATUS_ADAPTING
    const uint32_t COMPENSATION_STATUS_ENERGY_CAP
    const uint32_t COMPENSATION_STATUS_DEAD_BAND
    const uint32_t COMPENSATION_STATUS_MODE_OBSERVED
    const uint32_t COMPENSATION_STATUS_AUTHORITY_LIMITED
    const uint32_t DYNAMICS_STATUS_NOT_FINITE
    const uint32_t DYNAMICS_STATUS_OUT_OF_RANGE
    const uint32_t DYNAMICS_STATUS_JOINED
    const uint32_t DYNAMICS_STATUS_DRIVE_SATURATED
    const uint32_t DYNAMICS_STATUS_JOINT_NEAR_STOP
    const uint32_t DYNAMICS_STATUS_NEAR_SINGULAR
    const uint32_t DYNAMICS_STATUS_OVERLOAD
    const uint32_t DYNAMICS_STATUS_PATH_DONE
    const uint32_t DYNAMICS_STATUS_JOINT_ENERGY
    const uint32_t SETPOINT_KINEMATICS_STATUS_OUT_OF_REACH
    const uint32_t SETPOINT_KINEMATICS_STATUS_NEAR_SINGULAR
    const uint32_t SETPOINT_KINEMATICS_STATUS_NOT_FINITE
    const uint32_t SETPOINT_STATUS_LENGTH1
    const uint32_t SETPOINT_STATUS_LENGTH2
    const uint32_t SETPOINT_STATUS_LENGTH3
    const uint32_t SETPOINT_STATUS_LENGTH4
    const uint32_t SETPOINT_STATUS_LENGTH5
    const uint32_t SETPOINT_STATUS_LENGTH6
    const uint32_t SETPOINT_STATUS_RATE1
    const uint32_t SETPOINT_STATUS_RATE2
    const uint32_t SETPOINT_STATUS_RATE3
    const uint32_t SETPOINT_STATUS_RATE4
    const uint32_t SETPOINT_STATUS_RATE5
    const uint32_t SETPOINT_STATUS_RATE6
    const uint32_t SETPOINT_STATUS_ACCELERATION1
    const uint32_t SETPOINT_STATUS_ACCELERATION2
    const uint32_t SETPOINT_STATUS_ACCELERATION3
    const uint32_t SETPOINT_STATUS_ACCELERATION4
    const uint32_t SETPOINT_STATUS_ACCELERATION5
    const uint32_t SETPOINT_STATUS_ACCELERATION6
    const uint32_t SETPOINT_STATUS_BLOCKED1
    const uint32_t SETPOINT_STATUS_BLOCKED2
    const uint32_t SETPOINT_STATUS_BLOCKED3
    const uint32_t SETPOINT_STATUS_BLOCKED4
    const uint32_t SETPOINT_STATUS_BLOCKED5
    const uint32_t SETPOINT_STATUS_BLOCKED6
    const uint32_t SETPOINT_STATUS_LENGTH  # all of the run
    const uint32_t SETPOINT_STATUS_RATE  # all of the run
    const uint32_t SETPOINT_STATUS_ACCELERATION  # all of the run
    const uint32_t SETPOINT_STATUS_BLOCKED  # all of the run


cdef enum:
    PHASE_IDLE = 0
    PHASE_POSITION = 1
    PHASE_APPROACH = 2
    PHASE_CLOSING = 3
    PHASE_CONTACT = 4
    PHASE_LATCHED = 5
    PHASE_FINISH = 6
    PHASE_RETREAT = 7
    PHASE_PARK = 8
    PHASE_ENDED = 9
    PHASE_HOLD = 10
    PHASE_FAULT = 11


cdef enum:
    MOTION_FOLLOW_PROFILE = 0
    MOTION_CLOSE_LOOP = 1
    MOTION_FREE = 2
    MOTION_FREEZE = 3
    MOTION_JOINED = 4


cdef enum:
    SEQUENCE_APPROACH = 0
    SEQUENCE_PRESS = 1
    SEQUENCE_CAPTURED = 2
    SEQUENCE_DAMPING = 3
    SEQUENCE_RETRACT = 4
    SEQUENCE_COMPLETE = 5
    SEQUENCE_RETREAT = 6
    SEQUENCE_MANUAL = 7
    SEQUENCE_SEPARATION = 8
    SEQUENCE_EXTENSION = 9


cdef enum:
    END_CAUSE_NONE = 0
    END_CAUSE_CAPTURED = 1
    END_CAUSE_TIME = 2
    END_CAUSE_REGION = 3
    END_CAUSE_STOPPED = 4
    END_CAUSE_TRIPPED = 5
    END_CAUSE_RETREATED = 6
    END_CAUSE_COMPLETE = 7
    END_CAUSE_OVERLOAD = 8
    END_CAUSE_RECORD_LOST = 9
    END_CAUSE_NOT_ALIGNED = 10
    END_CAUSE_SEPARATED = 11


cdef enum:
    COMMAND_NONE = 0
    COMMAND_START = 1
    COMMAND_STOP = 2
    COMMAND_HOLD = 3
    COMMAND_RESUME = 4
    COMMAND_PARK = 5
    COMMAND_ABORT = 6
    COMMAND_INJECT_FAULT = 7
    COMMAND_CLEAR_INJECTION = 8
    COMMAND_SET_COMPENSATOR = 9
    COMMAND_MANUAL_MODE = 10
    COMMAND_SINGLE_JOINT = 11
    COMMAND_STEP = 12
    COMMAND_INSERT = 13
    COMMAND_AUTO_SEQUENCE = 14
    COMMAND_BRAKES = 15
    COMMAND_LIMP = 16
    COMMAND_RELEASE = 17
    COMMAND_MECHANISM_DRIVE = 18
    COMMAND_SPEED_MODE = 19
    COMMAND_RECORD_LOST = 20
    COMMAND_JOINT = 21
    COMMAND_TUNE = 22
    COMMAND_AGAIN = 23
    COMMAND_RECOVER = 24


cdef enum:
    TUNE_ANSWER_NONE = 0
    TUNE_ANSWER_TAKEN = 1
    TUNE_ANSWER_UNKNOWN = 2
    TUNE_ANSWER_OUT_OF_LIMITS = 3
    TUNE_ANSWER_NOT_IN_THIS_PHASE = 4


cdef enum:
    JOINT_MODE_LOCKED = 0
    JOINT_MODE_FREE = 1
    JOINT_MODE_GIVEN = 2
    JOINT_MODE_DRIVEN = 3


cdef enum:
    ARM_MODE_HOLD = 0
    ARM_MODE_HAND = 1
    ARM_MODE_SINGLE_JOINT = 2
    ARM_MODE_PATH = 3
    ARM_MODE_BRAKES = 4
    ARM_MODE_LIMP = 5


cdef enum:
    RATE_FRAME_END_EFFECTOR = 0
    RATE_FRAME_CAMERA = 1
    RATE_FRAME_TARGET = 2
    RATE_FRAME_INTERFACE = 3


cdef enum:
    SPEED_MODE_VERNIER = 0
    SPEED_MODE_COARSE = 1


cdef enum:
    SUPERVISORY_IDLE = 0
    SUPERVISORY_STEP = 1
    SUPERVISORY_INSERT = 2
    SUPERVISORY_DONE = 3
    SUPERVISORY_ABORTED = 4


cdef enum:
    REALTIME_MODE_FREE_RUNNING = 0
    REALTIME_MODE_SOFT = 1
    REALTIME_MODE_REAL_TIME = 2


cdef enum:
    SAFETY_STATE_FOLLOWING = 0
    SAFETY_STATE_DECELERATING = 1
    SAFETY_STATE_HELD = 2
    SAFETY_STATE_NOT_ARMED = 3
    SAFETY_STATE_BLOCKED = 4
    SAFETY_STATE_RECOVERING = 5


cdef enum:
    LATE_CAUSE_NONE = 0
    LATE_CAUSE_WAKE_UP = 1
    LATE_CAUSE_COMPUTE = 2
    LATE_CAUSE_IO = 3
