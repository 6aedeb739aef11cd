"""Structs and functions of `contact.pyx`."""

from rt_kernels.algebra.values cimport Mat3, Vec3, Wrench
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.ring.platform cimport RingPose

cdef enum:
    PETALS = 3
    RING_LATCHES = 6
    MAX_GENERATORS = 257
    RING_CONTACTS = 24       # 6 petal-circle, 6 flanks, 6 plane points, 6 locked latches
    LATCH_CONTACTS = 12


cdef struct Edge:
    Vec3 start
    Vec3 vector


cdef struct RingGeometry:
    double inner_radius              # R_R, inner circle of the ring plane
    double face_radius               # outer edge of the ring face
    double outer_radius              # R_R,max: circle below the plane where generators and upper segments start
    double azimuth[PETALS]           # of the petals in the ring frame
    Mat3 R_petal[PETALS]             # petal frame in the ring frame (turn about X)
    int levels                       # 2^levels + 1 generators per petal
    Vec3 start[MAX_GENERATORS]       # generators of a petal: start and vector, petal axes
    Vec3 along[MAX_GENERATORS]
    Edge upper[2]                    # flank (minus, plus): from C to A
    Edge lower[2]                    # from E to A
    Vec3 outward[2]                  # outward normal of the flank face
    Vec3 plane_point[2]              # on the ring plane beside the petal
    double chord_error               # largest distance of the straight flank edge from the true one, m
    double depth_max                 # of a flank contact: beyond it the petals have passed each other


cdef struct RingLatch:
    Vec3 tip                         # B, extended, ring axes
    Vec3 inner                       # A
    Vec3 out                         # n_L, from A to B


cdef struct RingLatchLaw:
    RingLatch latch[RING_LATCHES]
    double mass
    double stiffness                 # spring
    double preload
    double contact_stiffness         # k_LS
    double stop_radius_min           # of the stop's edge
    double stop_radius_max           # guiding cone: radius at x = 0
    double stroke                    # greatest compression
    int jammed                       # number of the pair that is jammed inside, 0: none, PETALS + 1: all
    int stays                        # of the pair that the release does not draw in


cdef struct RingLatchState:
    double x                         # compression, m
    double v
    double fired                     # 0 or 1


cdef struct RingSensors:
    Vec3 position[3]                 # feet of the plungers on the ring plane, ring axes
    double protrusion                # of a free plunger
    double stiffness
    double preload
    double switch_compression
    int dead                         # number of the sensor whose switch does not close, 0: none


cdef struct RingLoads:
    Wrench F_T                       # on the target ring, at T, T axes
    Wrench F_N                       # on the active ring, about its centre, T axes
    Wrench D_N                       # part of F_N from friction and contact damping
    double lost_power                # friction and contact damping at the rates of the start of the step, W
    double stored                    # contact springs and plungers, J
    double latches                   # springs and speeds of the latches, J
    double depth                     # deepest penetration, m
    int count
    bint aligned[3]
    double plunger[3]


cdef int ring_contacts(const RingGeometry *g, Vec3 p_TN, Mat3 R_TN, Contact *out) noexcept nogil
cdef void contact_loads(const ContactLaw *law, const Contact *contacts, int count, const RingPose *N, RingLoads *out) noexcept nogil
cdef void sensor_loads(const RingSensors *s, const RingGeometry *g, const RingPose *N, RingLoads *out) noexcept nogil
cdef void latch_loads(const RingLatchLaw *law, const ContactLaw *contact_law, RingLatchState *states, const RingPose *N, bint grip,
                      double h, RingLoads *out) noexcept nogil
cdef bint ring_captured(const RingLatchState *states) noexcept nogil

# set-up, with the interpreter
cdef void fill_ring_geometry(object t, RingGeometry *g) except *
cdef void fill_contact_law(object t, ContactLaw *law) except *
cdef void fill_latches(object t, RingLatchLaw *law) except *
cdef void fill_sensors(object t, const RingGeometry *g, RingSensors *s) except *
