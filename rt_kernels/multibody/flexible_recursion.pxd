"""Tree of rigid and modal bodies: the C data of one model and the functions a stage may call. See `flexible_recursion.pyx`."""

from rt_kernels.algebra.values cimport Inertia, Mat3, Vec3, Wrench


cdef enum JointType:
    FIXED = 0
    REVOLUTE = 1
    PRISMATIC = 2
    SPHERICAL = 3
    FREE = 4
    CONTINUOUS = 5               # q = [cos, sin] of the angle: turns without end
    SCREW = 6                    # q: angle; advances by pitch times it


cdef struct Body:
    # topology and coordinates
    int parent                   # index of the parent body, -1: the inertial base
    int joint                    # JointType
    int nd                       # velocity coordinates of the joint
    int s                        # modes of this body
    int iq, iv                   # first joint coordinate in q and in v
    int eq, ev                   # first modal coordinate in q and in v
    int carries                  # 1: it or what hangs on it has mass (`prepare`)
    # joint: constants
    double axis[3]               # body axes
    double pitch                 # of a screw, m/rad
    Mat3 R0                      # joint frame in undeformed parent axes
    Mat3 R1                      # R0 S(axis) and R0 S(axis)^2 (`prepare`)
    Mat3 R2
    Vec3 p_port                  # port on the undeformed parent, parent axes
    Vec3 p_off                   # port to joint frame, undeformed parent axes
    double armature              # added to the joint's own inertia
    double stiffness, damping    # linear spring and damper of a one-degree joint
    # body: constants
    double mass
    Vec3 d0                      # sum m rho0
    double E0[9]                 # sum m rho0 rho0^T
    double M0[36]                # inertia of the undeformed body about its origin (`prepare`)
    # constants in the tree's pool
    double *phi                  # (3, s of the parent) translation of the port per modal coordinate; NULL on a rigid parent
    double *psi                  # (3, s of the parent) rotation of the port
    double *N                    # (s, 9)    sum m rho0 phi_a^T
    double *Q                    # (s, s, 9) [a][b]: sum m phi_b phi_a^T, with the symmetric stiffening part added
    double *P                    # (s, 3)    sum m phi_a
    double *Y                    # (s, s, 3) [a][b]: sum m phi_b x phi_a
    double *Mee                  # (s, s)    sum m phi_a . phi_b
    double *K                    # (s, s)
    double *C                    # (s, s)
    # one evaluation: kinematics
    Mat3 R                       # body axes -> parent axes
    Vec3 r                       # parent origin -> body origin, parent axes
    double V[6]                  # twist of the body origin, body axes, linear first
    double c[6]                  # velocity part of the acceleration, body axes
    double A[6]                  # classical acceleration of the body origin, body axes
    double *J                    # (s of the parent, 6) port motion per modal rate, taken at the body origin, parent axes
    # one evaluation: inertia and bias, then the articulated quantities
    double M[36]                 # rigid part of the (articulated) inertia
    double z[6]                  # rigid part of the bias
    double *Mem                  # (s, 6) coupling
    double *Maa                  # (s, s) modal part, later its Cholesky factor
    double *ze                   # (s) modal part of the bias
    double *y                    # (s) forces of the modes less what is known, later divided by the factor
    double *G                    # (s, 9) sum m rho phi_a^T
    double U[36]                 # (6, free coordinates) P H
    double D[36]                 # Cholesky factor of H^T P H
    double p[6]                  # bias and loads of the body and of what hangs on it
    double g[6]                  # c and the given accelerations of the joint
    double e[6]                  # force left for the free coordinates
    int n_free
    int free_axis[6]
    int branch                   # child on the path of `respond` and `twist_of`
    double F[6]                  # wrench through the joint, body axes
    double pose[12]              # p_WB, R_WB (only filled by `place` and `place_in_root`)
    Inertia total                # of the body with what hangs on it (`compose`)
    Wrench total_momentum        # the same, [p; l] about the body origin


cdef struct Model:
    int n                        # bodies
    int nq, nv, nj               # nj: velocity coordinates of joints; modal ones follow
    int first_order              # 1: port rotation rate psi eta_dot without the exponential's Jacobian (form of Tian et al. 2010)
    double gravity[3]
    Body *body


cdef struct Composite:
    # of the whole tree about the origin of its root, axes of the root
    double mass
    double centre[3]             # centre of mass
    double inertia[9]            # about the centre of mass
    double p[3]                  # momentum and angular momentum about the centre of mass, of the motion with the root at rest
    double l[3]
    double energy                # kinetic energy of that motion, without rotors


cdef void prepare(Model *m) noexcept nogil
cdef void move(Model *m, const double *q, const double *v) noexcept nogil
cdef void factor(Model *m, double k_share, double d_share, const unsigned char *known) noexcept nogil
cdef void accelerate(Model *m, double ahead, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil
cdef void respond(Model *m, int index, const double *wrench, double *A) noexcept nogil
cdef void twist_of(Model *m, int index, const double *v, double *V) noexcept nogil
cdef void hybrid_dynamics(Model *m, double h, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil
cdef void inverse_dynamics(Model *m, const double *q, const double *v, const double *a, const double *f_ext,
                  double *tau) noexcept nogil
cdef void place(Model *m) noexcept nogil
cdef void place_in_root(Model *m) noexcept nogil
cdef void compose(Model *m, const double *q, const double *v, Composite *out) noexcept nogil
cdef void balance(Model *m, const double *q, const double *v, double *out) noexcept nogil
