"""Offline library: dynamics that no stage of a tick calls, used from Python (`docs/multibody.md`).

    integrators   motion of trees and closed loops in time: explicit, implicit and two-step methods, limits of their steps
    kane          Kane's equations of a small system, derived symbolically and compiled; rolling and edges included
    collision     what a blow does to the speeds
    flexible_code  symbolic code: straight-line C of a flexible tree, joints active or passive
    tree_loops    closed loops: a `Tree` with cut joints
    payload_link  payload as a free body on the elastic end of an arm whose motion is given
    two_craft     two free rigid craft that meet through any docking mechanism, without stand and line

May import `rt_kernels.multibody`, `rt_kernels.model`, `rt_kernels.algebra` and `rt_kernels.plugs`; nothing of ours imports it but tests and
tools.
"""
