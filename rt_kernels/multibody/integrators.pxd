"""Fixed-step integrators on vectors and quaternions: the C side. See `integrators.pyx`."""

from rt_kernels.multibody.flexible cimport Model


cdef enum Method:
    SYMPLECTIC_EULER = 0
    TWO_STEP = 1
    RK4 = 2
    IMPLICIT_EULER = 3


ctypedef void (*Accelerate)(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil


cdef struct Rotation:
    int iq                # first number of the quaternion in q
    int iv                # first of the three body rates in v
    int jq, jv            # linear part of a free joint (position in parent axes, velocity in body axes), -1 without


cdef struct Stepper:
    int method
    int nq, nv
    int n_straight        # coordinates whose rate is a velocity: pairs below
    int *straight_q
    int *straight_v
    int n_rotations
    Rotation *rotation
    Accelerate accelerate
    void *state
    double h, psi, phi
    int fresh             # 1: the two-step method has no earlier acceleration
    double *work          # 12 nv + 2 nq


cdef void advance(Stepper *s, double t, double *q, double *v) noexcept nogil


cdef struct TreeLoads:
    Model *model
    double *tau
    double *f_ext
    double *a_given
    unsigned char *known
    void *callback        # Python callable or NULL


cdef class Motion:
    cdef Stepper stepper
    cdef object _keep
    cdef object _callback
    cdef TreeLoads loads
    cdef public int nq, nv
    cdef public object tree
    cdef public object tau, f_ext, known, a_given, error
    cdef double[::1] _tau
    cdef double[:, ::1] _f
    cdef double[::1] _a
    cdef unsigned char[::1] _known
    cdef double _t
