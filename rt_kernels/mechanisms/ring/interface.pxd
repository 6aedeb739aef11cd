"""Structs and functions of `interface.pyx`."""

from rt_kernels.algebra.values cimport Pose, Twist, Vec3, Wrench
from rt_kernels.contact.planes cimport PLACES, Planes
from rt_kernels.contact.primitives cimport Profile
from rt_kernels.mechanisms.ring.planes_record cimport PlanesRecord
from rt_kernels.mechanisms.ring.platform cimport RingPose

cdef enum:
    PINS = 2
    SEATS = 3


cdef struct Interface:
    bint fitted                  # False: a unit that is given without planes has none of this
    Planes planes
    Vec3 nose[PINS]              # centres of the pins' spherical ends in the base
    double nose_radius
    Vec3 mouth[PINS]             # middles of the sockets' mouths in T
    Profile socket               # of a socket about its axis, x from its mouth
    double depth_limit
    double preload               # force of the planes at which, after `press` s, the drive is stopped and the nest's latches close
    double press
    bint latches_dead            # these latches do not close
    Vec3 seat[SEATS]             # where the nest bears on the ring, ring axes
    double nest_x                # its seats in the base
    double nest_stiffness        # of a seat
    double nest_damping


# Flat; the part that changes.
cdef struct InterfaceState:
    Pose X_AH                    # ring where its nest holds it, in the base
    double lost                  # friction and damping, J
    double given_to_nest         # J
    double depth_peak
    double pressed               # for so long, s
    int held
    int spare


cdef struct InterfaceTouch:
    Wrench F_T                   # on the target, at T, T axes
    Wrench F_A                   # on the base, at A, A axes
    double lost_power
    double stored
    double depth
    double force                 # of the planes, N
    int pressed                  # places where they touch
    double gap[PLACES]
    double plane[PLACES]
    double push[PLACES]
    double pin[PINS]


cdef void interface_touch(const Interface *g, Pose X_TA, Twist V_TA, InterfaceTouch *out) noexcept nogil
cdef Wrench nest_hold(const Interface *g, const InterfaceState *s, const RingPose *N, Wrench *W) noexcept nogil
cdef void interface_account(const Interface *g, InterfaceState *s, const InterfaceTouch *touch, Pose X_AN, bint drawing,
                            double h) noexcept nogil
cdef void interface_report(const Interface *g, const InterfaceState *s, Pose X_TA, Twist V_TA, PlanesRecord *record) noexcept nogil

# set-up, with the interpreter
cdef void fill_interface(object t, Interface *g) except *
