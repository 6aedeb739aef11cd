"""Keys of the stand's own phases, commands that they act on, and what the whole numbers of their state can be (`stand_phases.pxd`), as the
guidance parts declare them."""

from rt_kernels.block_check import COUNT_32, FLAG, code_range
from rt_kernels.parameters import Command, Parameter

BEFORE_FINISH = ("idle", "position", "approach", "closing", "contact", "latched", "hold")
MOVING = ("position", "approach", "closing", "contact", "latched", "finish", "retreat", "park")
# a run that has ended or tripped takes no command that would move something
ALIVE = ("idle", *MOVING, "hold")
STAND_COMMANDS = (
    Command("abort"),
    Command("start", ("idle",)),
    Command("resume", ("hold",), does="before the loop was closed: on to the start pose; after it: retreat and park"),
    Command("stop", (*BEFORE_FINISH, "fault")),  # in the fault phase: no recovery, the run ends
    Command("park", (*BEFORE_FINISH, "fault")),
    Command("recover", ("fault",)),  # the safety stage acts on it, the phases go along
    # while held: takes back what waits until the platform is at rest
    Command("hold", (*MOVING, "hold"), does="brings the platform to rest; once the loop is closed only the way back follows"),
)

STAND_PARAMETERS = (
    Parameter("speed_max_m_s", "float", "m/s", "programme mode", 0.1, low=0.001, high=2.0),
    Parameter("turn_max_deg_s", "float", "deg/s", "programme mode", 5.0, low=0.01, high=90.0),
    Parameter("acceleration_max_m_s2", "float", "m/s2", "programme mode", 0.2, low=0.001, high=10.0),
    Parameter("turn_acceleration_max_deg_s2", "float", "deg/s2", "programme mode", 10.0, low=0.01, high=1000.0),
    Parameter("hold_acceleration_max_m_s2", "float", "m/s2", "with which a hold may brake so that the units do not touch; 0: as in "
              "programme mode, and berthing does not report a hold that touches", 2.0, low=0.0, high=10.0),
    Parameter("position_tolerance_m", "float", "m", "achieved against programmed start pose", 0.003, low=1e-6, high=1.0),
    Parameter("angle_tolerance_deg", "float", "deg", "achieved against programmed start attitude", 0.2, low=1e-4, high=45.0),
    Parameter("settle_s", "float", "s", "rest after each programmed move and at the end of a Step", 0.3, low=0.0, high=60.0),
    Parameter("release_wait_s", "float", "s", "the retreat waits so long for the sensors of capture and latches to say that nothing holds, "
              "then the stand is held; 0: it does not wait", 0.0, low=0.0, high=3600.0),
    Parameter("retreat_distance_m", "float", "m", "programmed retreat after the run", 0.25, low=0.0, high=5.0),
    Parameter("fault_s", "float", "s", "recording continues this long after a trip", 1.0, low=0.0, high=60.0),
    Parameter("recover_s", "float", "s", "a run that tripped waits so long for the command recover; 0: it ends after fault_s", 0.0,
              low=0.0, high=86400.0),
    Parameter("auto_start", "bool", "-", "start without a command", True),
)  # fmt: skip

STAND_BOUNDS = {"stand.phase": code_range("phase"), "stand.end_cause": code_range("end_cause")} | {
    f"stand.{flag}": FLAG for flag in ("have_park", "leaves_hold", "gives_up", "recovers")
} | {"stand.released": COUNT_32, "stand.back": (0, 3)}  # to BACK_REST of stand_phases.pxd
