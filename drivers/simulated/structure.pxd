"""Bodies of a stand that hang on springs: structs and the step. Equations and units: structure.pyx."""

from rt_kernels.plugs cimport MechanismOutput

cdef enum:
    BASE = 0                    # what the load cell stands on
    CELL = 1                    # what hangs on the load cell, on the cell's own spring
    UNIT = 2                    # the unit without a load cell
    BODIES = 3
    RIGID = -1                  # no body of its own: moves with the platform, or stands on the floor

# A rigid body B (axes of its port or of S, origin in its centre of mass) on a spring-damper to the frame E of its parent, in which it
# stands at rest under all weights in the neutral pose
cdef struct ElasticBody:
    double mass
    double gravity_W[3]
    double J[9]                 # about the centre of mass, body axes
    double J_inverse[9]
    double stiffness[36]        # E axes, at the origin of B
    double damping[36]
    double preload[6]           # what the spring carries at rest, E axes
    double X_E[7]               # rest pose: in the parent body, on the platform, or in W
    int present
    int unused

cdef struct BodyState:
    double X_WB[7]
    double v[3]                 # of the centre of mass, W axes
    double L[3]                 # angular momentum about it, W axes
    double w[3]
    double spring[6]            # wrench of the spring on the body at the origin of B, W axes
    double m[3]                 # moment of all forces about the centre of mass, W axes
    double a[3]                 # acceleration of the centre of mass, W axes
    double dw[3]

# Where a docking port, or the load cell, sits
cdef struct Seat:
    double X[7]                 # in the body, on the platform, or in W
    int body                    # BASE, CELL, UNIT or RIGID
    int on_platform             # of a rigid one

cdef struct StructureParams:
    ElasticBody body[3]
    Seat measured               # port of the unit on the load cell
    Seat other
    Seat cell                   # S where it is held
    Seat carried                # S as what it carries moves
    double X_S_port[7]          # port of the unit on the load cell in S
    double carried_mass
    double com_S[3]
    double carried_J[9]         # about the centre of mass, S axes
    double gravity_W[3]
    double dt
    int elastic                 # how many bodies there are, 0: all is rigid
    int cell_on_platform
    int target_on_cell
    int unused

cdef struct StructureState:
    BodyState body[3]
    double X_WM[7]              # port of the unit on the load cell
    double X_WO[7]              # the other one
    double on_platform[6]       # wrench of springs and contact on the platform at P, W axes

cdef int fill_structure(StructureParams *p, object keys, object mounting, const double *neutral, double dt) except -1
cdef void structure_rest(const StructureParams *p, StructureState *s, const double *X_WP) noexcept nogil
cdef void structure_advance(const StructureParams *p, StructureState *s) noexcept nogil
cdef void structure_relative(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP, double *X_TA,
                             double *V_TA) noexcept nogil
cdef void structure_forces(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP,
                           const MechanismOutput *contact, const double *external_S) noexcept nogil
cdef void structure_cell(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP, const double *A_WP,
                         const double *applied_S, double *F_S) noexcept nogil
cdef void structure_acceleration(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP,
                                 const double *A_WP, double *out) noexcept nogil
cdef object structure_state(const StructureParams *p, const StructureState *s)
