"""A manipulator that carries the active vehicle: stage `manipulator_payload` (`payload`) and what it is made of.

    arm                  structs that the files share: constants and state of the whole
    compliance           static compliance of the arm's links at the end effector
    following_stiffness  stiffness and damping that move on with the configuration
    joint_drive          motor, gear, digital rate controller of one joint
    resolved_rate        joint rates from hand controllers, one joint, a stored path
    free_root            the vehicle that carries the arm, when it floats
    inner_step           one step of payload, joints and arm
    report               momentum, energy, auxiliary channels, the stage's verdict on itself
    record               auxiliary channels
    payload              the stage: rate commands, start, the tick, set-up
"""
