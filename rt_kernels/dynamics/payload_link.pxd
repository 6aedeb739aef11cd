"""Payload as a free body on the elastic end of a manipulator. Dissertation (8.2), corrected; frames N inertial, E end effector, G grapple
fixture (on the payload, together with E when nothing is deflected), P payload's centre of mass, B base port.

    r = R_NE^T (p_G - p_E),  phi = vee of the antisymmetric part of R_EG                      deflection, axes of E
    [f; m] = K [r; phi] + D [r'; phi']                                                        on the end effector at E
    on the payload: -f at G, -m;  on the end effector the moment about E is m + r x f, so that both sides balance exactly
    contact, measured on the base port: its negative acts on the payload at the same point, the base port's origin
                                        (printed with opposite signs of force and moment, and on the payload's own port)

One step is semi-implicit Euler, velocity first: explicit Euler would feed h w^2/2 of negative damping into every mode.
"""

cdef struct PayloadLink:
    double mass
    double inertia[9]     # about P, axes of P
    double inverse[9]
    double X_PG[7]
    double K[36]
    double D[36]


cdef struct PayloadState:
    double X_NP[7]
    double v[3]           # of P, N axes
    double w[3]           # axes of P


cdef void link_wrench(const PayloadLink *c, const PayloadState *s, const double *X_NE, const double *V_NE, double *F_E,
                      double *F_P) noexcept nogil
cdef void payload_step(const PayloadLink *c, PayloadState *s, const double *F_P, double h) noexcept nogil
cdef void add_contact(const PayloadState *s, const double *X_NB, const double *F_B, double *F_P) noexcept nogil
