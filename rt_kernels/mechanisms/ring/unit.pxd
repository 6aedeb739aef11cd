"""Structs and functions of `unit.pyx` that every ring unit uses."""

from rt_kernels.algebra.values cimport Pose, Twist, Vec3, Wrench
from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.ring.contact cimport RING_LATCHES, RingGeometry, RingLatchLaw, RingLatchState, RingLoads, RingSensors
from rt_kernels.mechanisms.ring.interface cimport Interface, InterfaceState, InterfaceTouch
from rt_kernels.mechanisms.ring.platform cimport MAX_LEGS, BodyMotion, Leg, LegMotion, RingBody, RingPose
from rt_kernels.mechanisms.ring.planes_record cimport PlanesRecord
from rt_kernels.mechanisms.ring.record cimport RingRecord
from rt_kernels.plugs cimport MechanismInput, MechanismOutput


cdef struct RingUnit:
    Leg leg[MAX_LEGS]
    RingBody ring
    RingGeometry geometry
    ContactLaw law
    RingLatchLaw latches
    RingSensors sensors
    Interface interface
    double depth_limit
    double mated_x                        # docking plane of the unit in its base: the ring plane when drawn in
    double plane_radius                   # where the gap of the docking planes is sensed, at four places
    double together_gap
    int substeps
    int spring_broken                     # number of the leg whose spring is broken, 0: none


# Flat; the part of a unit that changes.
cdef struct RingState:
    Pose X_AN                             # ring in the base
    Vec3 v                                # relative to the base, base axes
    Vec3 w
    Twist half_step                       # half the change of [v; w] in the last sub-step: the ledger takes every power at its middle
    RingLatchState latch[RING_LATCHES]
    double time
    double contact_time                   # of the first contact, -1 before
    double capture_time                   # all latch pairs behind their stops, -1 before
    double kinetic                        # energy of the mechanism relative to its base, J
    double work_in                        # put in by the target, moved against the base, J
    double lost_contact                   # friction and damping in contacts, J
    double lost_springs                   # given to springs and their dampers by the struts (stored and lost), J
    double depth_peak
    Pose X_led                            # of the base in T, where the last sub-step led it
    Wrench F_led                          # of that sub-step on the target, about A
    double latches                        # kept by the latches, J
    int out_of_range
    int led                               # there was a sub-step
    InterfaceState interface


cdef void ring_begin(const MechanismInput *inp, BodyMotion *base, RingLoads *loads, MechanismOutput *out) noexcept nogil
cdef Wrench ring_wrench(Pose X_TA, const RingLoads *loads) noexcept nogil
cdef void ring_mean(const RingUnit *u, const RingLoads *loads, Wrench W, MechanismOutput *out) noexcept nogil
cdef RingPose ring_in_target(Pose X_TA, Twist V_TA, const RingState *s) noexcept nogil
cdef void ring_touch(const RingUnit *u, RingState *s, const RingPose *N, double h, RingLoads *loads, bint grip) noexcept nogil
cdef void planes_touch(const RingUnit *u, Pose X_TA, Twist V_TA, double h, RingLoads *loads, InterfaceTouch *touch) noexcept nogil
cdef bint ring_close(const RingUnit *u, const RingState *s, LegMotion *motion, RingPose *N) noexcept nogil
cdef bint ring_move(const RingUnit *u, RingState *s, LegMotion *motion, const RingPose *N, const BodyMotion *base, Wrench F_ring, double h,
                    Wrench *W) noexcept nogil
cdef Wrench ring_nest(const RingUnit *u, const RingState *s, const RingPose *N, const InterfaceTouch *touch, Wrench *W) noexcept nogil
cdef void planes_account(const RingUnit *u, RingState *s, const InterfaceTouch *touch, Wrench nest, Twist V, bint drawing,
                         double h) noexcept nogil
cdef Pose base_moves(Pose X_TA, Twist V_TA, double h) noexcept nogil
cdef void ring_account(RingState *s, Pose X_TA, Twist V_TA, const RingLoads *loads, double h) noexcept nogil
cdef void ring_report(const RingUnit *u, const RingState *s, const LegMotion *motion, const double *force, const RingLoads *loads,
                      Pose X_TA, Twist V_TA, MechanismOutput *out, RingRecord *record, PlanesRecord *planes) noexcept nogil

# set-up, with the interpreter
cdef void fill_ring_unit(object t, RingUnit *u, RingState *s, object leg_tables) except *
cdef object ring_depth(RingUnit *u, RingState *s, object X_TA)
