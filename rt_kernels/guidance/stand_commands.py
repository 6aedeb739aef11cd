"""Commands that the stand's own phases act on, and what the whole numbers of their state can be (`stand_phases.pxd`), as the guidance
parts declare them."""

from rt_kernels.block_check import FLAG, code_range
from rt_kernels.parameters import Command

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

STAND_BOUNDS = {"stand.phase": code_range("phase"), "stand.end_cause": code_range("end_cause")} | {
    f"stand.{flag}": FLAG for flag in ("have_park", "leaves_hold", "back", "gives_up", "recovers")
}
