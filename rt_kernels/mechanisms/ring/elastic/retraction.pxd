"""Structs and functions of `retraction.pyx`."""

from rt_kernels.algebra.values cimport Vec3, Wrench
from rt_kernels.mechanisms.ring.platform cimport RingPose

cdef enum:
    CABLES = 3
    STRUTS = 6

cdef enum Phase:
    RETRACTED = 0
    EXTENDING = 1
    READY = 2
    THROWN = 3          # "CONTACT" of the text: the ring is on its way forward
    CAPTURED = 4
    RETRACTING = 5
    DONE = 6


cdef struct Sequencer:
    double ready_stroke           # stroke of the initial position
    double ready_stroke_min       # below it the switch of the initial position opens
    double retract_delay          # s
    double drive_rate             # rad/s
    double gear_cam_max           # rad


cdef struct SequencerState:
    int phase
    int blocked[STRUTS]
    int in_position[STRUTS]
    double time                   # in this phase, s
    double drive_command          # rad/s


cdef struct Retraction:
    Vec3 drum[CABLES]             # take-off points in the base
    Vec3 eye[CABLES]              # cable ends in the ring
    double length_in[CABLES]      # free length with the planes mated
    double roll_radius
    double gear_ratio
    double cam_gap                # dphi_Cam
    double stiffness              # cable and flexible shaft in series
    double shaft_share            # of the tension to the gear cam angle: R_Roll / (i_G^2 k_FS)
    double damping
    int broken                    # number of the cable that is broken, 0: none
    double drive_gain             # N.m.s/rad
    double drive_inertia
    double efficiency


cdef struct Cable:
    double length
    double length_join
    double phi_join
    double tension
    double cam                    # phi_CamR
    int joined


cdef struct RetractionState:
    Cable cable[CABLES]
    double phi                    # drive angle, positive pays out
    double omega
    double load                   # on the drive, N.m


cdef void sequence(const Sequencer *q, SequencerState *s, const double *stroke, const bint *aligned, bint extend, double gear_cam,
                   bint mated, double dt) noexcept nogil
cdef void block_all(SequencerState *s, int blocked) noexcept nogil
cdef Wrench pull(const Retraction *r, RetractionState *s, const RingPose *N, Wrench *W) noexcept nogil
cdef void drive_step(const Retraction *r, RetractionState *s, double command, double dt) noexcept nogil

# set-up, with the interpreter
cdef void fill_retraction(object t, object p_eyes, Retraction *r, Sequencer *q) except *
