"""Structs and functions of `unit_energy.pyx`."""

from rt_kernels.sample cimport Sample

cdef enum:
    SPRING_ROWS = 12
    SPRINGS = 8             # as many as there are analogue signals


# What a docking unit may give of itself; springs 0 and power 0: a passive one.
cdef struct UnitEnergyParams:
    int springs
    int rows
    double compression      # of a spring at stroke 0, m
    double q[SPRING_ROWS]   # recoil branch: compression, m,
    double Q[SPRING_ROWS]   # and force, N
    double U[SPRING_ROWS]   # energy from 0 to q, J
    double damping          # of a strut, N.s/m
    double resolution       # of a stroke, m
    double drive_power      # the most that its drives put into the craft while they run, W

cdef struct UnitEnergyState:
    double stroke[SPRINGS]  # at the beginning of the present window
    double window           # time since then, s
    double energy           # in the springs at the last tick, J
    double springs          # given by the springs less what their dampers took, since it was last counted from zero, J
    double drive            # given by the drives in this contact at the most, J
    double drawn            # greatest part of the contact's work in it that the springs do not explain, J
    int started


cdef double unit_may_give(const UnitEnergyParams *p, UnitEnergyState *s, const Sample *o, double work, double dt) noexcept nogil
cdef void unit_contact_over(UnitEnergyState *s, double work) noexcept nogil
cdef void unit_begin(const UnitEnergyParams *p, UnitEnergyState *s, const Sample *o) noexcept nogil

# set-up, with the interpreter: of a mechanism's `gives`, None for a passive one
cdef void fill_unit_energy(object gives, UnitEnergyParams *p) except *
