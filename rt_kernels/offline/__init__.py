"""Offline library of multibody dynamics: what no stage of a tick calls. Its entry point is Python; `docs/flexible-bodies.md` is its guide.

    integrators   motion of a `FlexibleTree` in time: explicit, implicit and two-step methods, limits of their steps
    kane          Kane's equations of a small system, derived symbolically and compiled
    tree_loops    closed loops: a `Tree` with cut joints
    payload_link  payload as a free body on the elastic end of an arm whose motion is given

May import `rt_kernels.multibody`, `rt_kernels.model` and `rt_kernels.algebra`; nothing of ours imports it but tests and tools.
"""
