"""Exact modal propagation of a flexible craft: the struct and the step for other kernels. Equations, frames and units: modal.pyx.

Inline: a call through a pointer, and the pose of a bent port, for both craft in every tick.
"""

from libc.stddef cimport size_t

from rt_kernels.algebra.values cimport Pose, Twist, compose, exponential, pose_of, rotate, twist_of, vec


cdef extern from "rt_kernels/dynamics/modal_block.h" nogil:
    ctypedef void (*modal_pass_function)(const double *blocks, double *state, int n_blocks, int n_loads, const double *load,
                                         double *displacement, double *rate) noexcept nogil
    enum:
        MODAL_LANES
        MODAL_COEFFICIENTS


cdef struct Modal:
    double *state                  # q and q' of every mode, blocks of MODAL_LANES; flat, `state_size` bytes: a snapshot is one copy
    size_t state_size
    const double *coefficients[2]  # coefficients and mode shapes per block, one set for each step size
    modal_pass_function run        # one pass, compiled for the instructions that the processor has
    int n_blocks
    int n_loads                    # six components at the port, then those of further load points
    int active                     # which coefficient set the next step uses


cdef inline void select_step(Modal *modal, int which) noexcept nogil:
    # the state is q and q', which mean the same in both sets: a change of step size makes no jump
    modal.active = which


cdef inline void propagate(Modal *modal, const double *load, double *port_displacement6, double *port_rate6) noexcept nogil:
    """One step: `load[n_loads]` = port wrench [f, m] then further loads, held over the step; out: [u, theta] and rates at its end."""
    modal.run(modal.coefficients[modal.active], modal.state, modal.n_blocks, modal.n_loads, load, port_displacement6, port_rate6)


cdef inline Pose deformed_port(Pose X_CD0, const double *displacement6) noexcept nogil:
    """Pose of the deformed port D in the craft frame C; X_CD0: of the undeformed one, in whose axes the displacement is.

    q_CD = q_CD0 exp(theta): to first order the A_D of Yaskevich 2020 = 1 - skew(theta) with theta = (x, y, z) as components of a vector,
    but a rotation at any size.
    """
    return compose(X_CD0, pose_of(vec(displacement6), exponential(vec(displacement6 + 3))))


cdef inline Twist deformation_twist(Pose X_CD0, const double *rate6) noexcept nogil:
    """Twist of the port from the deformation, C axes; the rate is in axes of the undeformed port."""
    return twist_of(rotate(X_CD0.q, vec(rate6)), rotate(X_CD0.q, vec(rate6 + 3)))


cdef class ModalCraft:
    cdef Modal modal
    cdef object _keep              # arrays that the struct points into
    cdef readonly int n_modes
    cdef readonly int n_loads
    cdef readonly int n_thrusters  # the last of the loads
    cdef readonly tuple steps
    cdef readonly str instructions
