"""Structs and functions of `unit.pyx` that every ring unit uses."""

from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.ring.contact cimport RING_LATCHES, RingGeometry, RingLatchLaw, RingLatchState, RingLoads, RingPose, RingSensors
from rt_kernels.mechanisms.ring.platform cimport MAX_LEGS, BaseMotion, Leg, LegMotion, RingBody
from rt_kernels.mechanisms.ring.record cimport RingRecord
from rt_kernels.plugs cimport MechanismInput, MechanismOutput


cdef struct RingUnit:
    Leg leg[MAX_LEGS]
    RingBody ring
    RingGeometry geometry
    ContactLaw law
    RingLatchLaw latches
    RingSensors sensors
    double depth_limit
    double mated_x                        # docking plane of the unit in its base: the ring plane when drawn in
    double plane_radius                   # where the gap of the docking planes is sensed, at four places
    double together_gap
    int substeps


# Flat; the part of a unit that changes.
cdef struct RingState:
    double X_AN[7]                        # ring in the base
    double v[3]                           # relative to the base, base axes
    double w[3]
    double half_step[6]                   # half the change of [v; w] in the last sub-step: the ledger takes every power at its middle
    RingLatchState latch[RING_LATCHES]
    double time
    double contact_time                   # of the first contact, -1 before
    double capture_time                   # all latch pairs behind their stops, -1 before
    double kinetic                        # energy of the mechanism relative to its base, J
    double work_in                        # put in by the target, moved against the base, J
    double lost_contact                   # friction and damping in contacts, J
    double lost_springs                   # given to springs and their dampers by the struts (stored and lost), J
    double depth_peak
    int out_of_range


cdef void ring_begin(const MechanismInput *inp, BaseMotion *base, double *X_TA, RingLoads *loads, MechanismOutput *out) noexcept nogil
cdef void ring_wrench(const double *X_TA, const RingLoads *loads, double *F_ring) noexcept nogil
cdef void ring_mean(const RingUnit *u, const RingLoads *loads, const double *W, MechanismOutput *out) noexcept nogil
cdef void ring_in_target(const double *X_TA, const double *V_TA, const RingState *s, RingPose *N) noexcept nogil
cdef void ring_touch(const RingUnit *u, RingState *s, const RingPose *N, double h, RingLoads *loads, bint grip) noexcept nogil
cdef bint ring_close(const RingUnit *u, const RingState *s, LegMotion *motion, double *R_AN) noexcept nogil
cdef bint ring_move(const RingUnit *u, RingState *s, LegMotion *motion, const double *R_AN, const BaseMotion *base, const double *F_ring,
                    double h, double *W) noexcept nogil
cdef void base_moves(double *X_TA, const double *V_TA, double h) noexcept nogil
cdef void ring_account(RingState *s, const MechanismInput *inp, const double *X_TA, const RingLoads *loads,
                       double h) noexcept nogil
cdef void ring_report(const RingUnit *u, const RingState *s, const LegMotion *motion, const double *force, const RingLoads *loads,
                      const double *X_TA, MechanismOutput *out, RingRecord *record) noexcept nogil

# set-up, with the interpreter
cdef void fill_ring_unit(object t, RingUnit *u, RingState *s, object leg_tables) except *
cdef object ring_depth(RingUnit *u, RingState *s, object X_TA)
