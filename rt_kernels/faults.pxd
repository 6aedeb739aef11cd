"""Fault masks and codes. Generated from channels.toml by tools/generate_channels.py: do not edit."""

from libc.stdint cimport int64_t


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
    #define FAULTS_STOP ((int64_t)52344644894463LL)
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
    const int64_t FAULT_SETPOINT_NOT_FINITE  # stop: a set point is not a finite number
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
    const int64_t FAULT_START_LEGS_UNKNOWN  # stop: before the first set point: a measured leg is not finite, not fresh or outside its stroke
    const int64_t FAULT_START_POSE_DISAGREES  # stop: before the first set point: the measured legs do not fit together, or not to the configured start
    const int64_t FAULT_DRIVE_LOST  # stop: too many answers of a drive missing in a second
    const int64_t FAULT_DRIVE_NOT_FOLLOWING  # stop: an enabled drive says that it does not follow its set points
    const int64_t FAULT_DRIVE_HEARTBEAT_LOST  # stop: a drive's heartbeat has stopped
    const int64_t FAULT_RECORD_LOST  # hold: the run can no longer be recorded: it was ended by parking
    const int64_t FAULT_RECORD_REQUIRED  # stop: the run can no longer be recorded: it was ended by a trip, as configured
    const int64_t FAULTS_STOP  # all whose severity is stop


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
    CYCLOGRAM_APPROACH = 0
    CYCLOGRAM_PRESS = 1
    CYCLOGRAM_CAPTURED = 2
    CYCLOGRAM_DAMPING = 3
    CYCLOGRAM_RETRACT = 4
    CYCLOGRAM_COMPLETE = 5
    CYCLOGRAM_RETREAT = 6
    CYCLOGRAM_MANUAL = 7


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
    SAFETY_STATE_FOLLOWING = 0
    SAFETY_STATE_DECELERATING = 1
    SAFETY_STATE_HELD = 2
    SAFETY_STATE_NOT_ARMED = 3


cdef enum:
    LATE_CAUSE_NONE = 0
    LATE_CAUSE_WAKE_UP = 1
    LATE_CAUSE_COMPUTE = 2
    LATE_CAUSE_IO = 3


cdef enum:
    EVENT_FIRST_CONTACT = 0
    EVENT_CONTACT_BEGIN = 1
    EVENT_CONTACT_END = 2
    EVENT_CAPTURE = 3
    EVENT_BOTTOM = 4
    EVENT_LATCH_FIRED = 5
    EVENT_START_OF_DOCKING = 6
    EVENT_COMMAND = 9
    EVENT_COMPLETE = 11
    EVENT_INITIAL_POSITION_LOST = 12
    EVENT_HAND_CONTROLLER_STALE = 14


cdef enum:
    MECHANISM_SIGNAL_DK1 = 0
    MECHANISM_SIGNAL_DSG = 1
    MECHANISM_SIGNAL_DK2 = 2
    MECHANISM_SIGNAL_INITIAL_POSITION = 3
    MECHANISM_SIGNAL_LIMITER_CONTACT = 4
    MECHANISM_SIGNAL_LEVER1_CONTACT = 5
    MECHANISM_SIGNAL_LEVER2_CONTACT = 6
    MECHANISM_SIGNAL_LEVER3_CONTACT = 7
    MECHANISM_SIGNAL_PUSHERS = 8
    MECHANISM_SIGNAL_LATCH1 = 9
    MECHANISM_SIGNAL_LATCH2 = 10
    MECHANISM_SIGNAL_LATCH3 = 11
    MECHANISM_SIGNAL_LATCH4 = 12
    MECHANISM_SIGNAL_DRIVE_RUNNING = 13
    MECHANISM_SIGNAL_RING_ALIGNED1 = 14
    MECHANISM_SIGNAL_RING_ALIGNED2 = 15
    MECHANISM_SIGNAL_RING_ALIGNED3 = 16
    MECHANISM_SIGNAL_RELEASED = 17
    MECHANISM_SIGNAL_PLANES_TOGETHER = 18


cdef enum:
    SENSOR_STATUS_NO_DATA = 0
    SENSOR_STATUS_STALE = 1
    SENSOR_STATUS_LOST = 2
    SENSOR_STATUS_CORRUPT = 3
    SENSOR_STATUS_SATURATED = 4
    SENSOR_STATUS_OUT_OF_RANGE = 5
    SENSOR_STATUS_DEVICE_FAULT = 6
    SENSOR_STATUS_BUSY = 7
    SENSOR_STATUS_BROKEN_WIRE = 8
    SENSOR_STATUS_WARNING = 9
    SENSOR_STATUS_SUPPLY = 10
    SENSOR_STATUS_TEMPERATURE = 11


cdef enum:
    DRIVE_STATUS_NO_DATA = 0
    DRIVE_STATUS_STALE = 1
    DRIVE_STATUS_LOST = 2
    DRIVE_STATUS_CORRUPT = 3
    DRIVE_STATUS_DEVICE_FAULT = 4
    DRIVE_STATUS_NOT_ENABLED = 5
    DRIVE_STATUS_FOLLOWING_ERROR = 6
    DRIVE_STATUS_LIMIT_TOUCHED = 7
    DRIVE_STATUS_LOCAL_CONTROL = 8
    DRIVE_STATUS_BUS_FAULT = 9
    DRIVE_STATUS_WARNING = 10
    DRIVE_STATUS_EMERGENCY = 11
    DRIVE_STATUS_TX_DROP = 12
    DRIVE_STATUS_NOT_FOLLOWING = 13
    DRIVE_STATUS_HEARTBEAT_LOST = 14
