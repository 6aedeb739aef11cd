"""Set-up: from a file or an object that describes bodies to the constants that a kernel takes. Nothing here runs in a tick.

    bodies             rigid bodies and joints: `Body`, checks, readers of URDF and TOML
    tree_generator     straight-line C for one given tree, compiled and kept
    craft              craft with flexible parts: `Link`, readers of TOML
    modes              a flexible body as integrals over its modes; natural modes of finite elements
    beam_elements      finite elements of beams and trusses
    manipulator_file   table [manipulator] of an arm's file
    joint_drive        parameters of an arm's joint drive, gains by payload
    arm_segments       flexible segments of an arm
    elastic_payload    payload on the elastic arm: mass matrix, modes, damping

May import `rt_kernels.parameters` alone of ours: kernels take what is made here, never the other way round.
"""
