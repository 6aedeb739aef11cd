"""Tree of rigid and modal bodies: the C data of one model and the functions a stage may call. See `flexible_recursion.pyx`."""


cdef enum JointType:
    FIXED = 0
    REVOLUTE = 1
    PRISMATIC = 2
    SPHERICAL = 3
    FREE = 4


cdef struct Body:
    # topology and coordinates
    int parent                   # index of the parent body, -1: the inertial base
    int joint                    # JointType
    int nd                       # velocity coordinates of the joint
    int s                        # modes of this body
    int iq, iv                   # first joint coordinate in q and in v
    int eq, ev                   # first modal coordinate in q and in v
    # joint: constants
    double axis[3]               # body axes
    double R0[9]                 # joint frame in undeformed parent axes
    double p_port[3]             # port on the undeformed parent, parent axes
    double p_off[3]              # port to joint frame, undeformed parent axes
    double armature              # added to the joint's own inertia
    double stiffness, damping    # linear spring and damper of a one-degree joint
    double *phi                  # (3, s of the parent) translation of the port per modal coordinate; NULL on a rigid parent
    double *psi                  # (3, s of the parent) rotation of the port
    # body: constants
    double mass
    double d0[3]                 # sum m rho0
    double E0[9]                 # sum m rho0 rho0^T
    double *N                    # (s, 9)    sum m rho0 phi_a^T
    double *Q                    # (s, s, 9) [a][b]: sum m phi_b phi_a^T, with the symmetric stiffening part added
    double *P                    # (s, 3)    sum m phi_a
    double *Y                    # (s, s, 3) [a][b]: sum m phi_b x phi_a
    double *Mee                  # (s, s)    sum m phi_a . phi_b
    double *K                    # (s, s)
    double *C                    # (s, s)
    # one evaluation: kinematics
    double R[9]                  # body axes -> parent axes
    double r[3]                  # parent origin -> body origin, parent axes
    double V[6]                  # twist of the body origin, body axes, linear first
    double c[6]                  # velocity part of the acceleration, body axes
    double A[6]                  # classical acceleration of the body origin, body axes
    double *J                    # (s of the parent, 6) port motion per modal rate, taken at the body origin, parent axes
    # one evaluation: inertia and bias, then the articulated quantities
    double M[36]                 # rigid part of the (articulated) inertia
    double z[6]                  # rigid part of the bias
    double *Mem                  # (s, 6) coupling
    double *Maa                  # (s, s) modal part, later its Cholesky factor
    double *ze                   # (s)
    double *y                    # (s)
    double *G                    # (s, 9) sum m rho phi_a^T
    double U[36]                 # (6, free coordinates) P H
    double D[36]                 # Cholesky factor of H^T P H
    double e[6]                  # force left for the free coordinates
    int n_free
    int free_axis[6]
    double F[6]                  # wrench through the joint, body axes
    double pose[12]              # p_WB, R_WB (only filled by `place`)


cdef struct Model:
    int n                        # bodies
    int nq, nv, nj               # nj: velocity coordinates of joints; modal ones follow
    int first_order              # 1: port rotation rate psi eta_dot without the exponential's Jacobian (form of Tian et al. 2010)
    double gravity[3]
    Body *body


cdef void move(Model *m, const double *q, const double *v) noexcept nogil
cdef void hybrid_dynamics(Model *m, double h, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil
cdef void inverse_dynamics(Model *m, const double *q, const double *v, const double *a, const double *f_ext,
                  double *tau) noexcept nogil
cdef void place(Model *m) noexcept nogil
cdef void balance(Model *m, const double *q, const double *v, double *out) noexcept nogil
