"""Bodies of a stand that hang on springs: structs and the step. Equations and units: structure.pyx."""

from rt_kernels.algebra.values cimport Mat3, Pose, Twist, Vec3, Wrench
from rt_kernels.plugs cimport MechanismOutput

cdef enum:
    BASE = 0                    # what the load cell stands on
    CELL = 1                    # what hangs on the load cell, on the cell's own spring
    UNIT = 2                    # the unit without a load cell
    BODIES = 3
    RIGID = -1                  # no body of its own: moves with the platform, or stands on the floor

# Pose in W, and twist: velocity of the origin and angular rate, W axes; of the docking ports relative to each other: in T
cdef struct Motion:
    Pose X
    Twist V

# A rigid body B (axes of its port or of S, origin in its centre of mass) on a spring-damper to the frame E of its parent, in which it
# stands at rest under all weights in the neutral pose
cdef struct ElasticBody:
    double mass
    Vec3 gravity_W
    Mat3 J                      # about the centre of mass, body axes
    Mat3 J_inverse
    double stiffness[36]        # E axes, at the origin of B
    double damping[36]
    Wrench preload              # what the spring carries at rest, E axes
    Pose X_E                    # rest pose: in the parent body, on the platform, or in W
    int present
    int unused

cdef struct BodyState:
    Pose X_WB
    Vec3 v                      # of the centre of mass, W axes
    Vec3 L                      # angular momentum about it, W axes
    Vec3 w
    Wrench spring               # wrench of the spring on the body at the origin of B, W axes
    Vec3 m                      # moment of all forces about the centre of mass, W axes
    Vec3 a                      # acceleration of the centre of mass, W axes
    Vec3 dw

# Where a docking port, or the load cell, sits
cdef struct Seat:
    Pose X                      # in the body, on the platform, or in W
    int body                    # BASE, CELL, UNIT or RIGID
    int on_platform             # of a rigid one

cdef struct StructureParams:
    ElasticBody body[3]
    Seat measured               # port of the unit on the load cell
    Seat other
    Seat cell                   # S where it is held
    Seat carried                # S as what it carries moves
    Pose X_S_port               # port of the unit on the load cell in S
    double carried_mass
    Vec3 com_S
    Mat3 carried_J              # about the centre of mass, S axes
    Vec3 gravity_W
    double dt
    int elastic                 # how many bodies there are, 0: all is rigid
    int cell_on_platform
    int target_on_cell
    int unused

cdef struct StructureState:
    BodyState body[3]
    Pose X_WM                   # port of the unit on the load cell
    Pose X_WO                   # the other one
    Wrench on_platform          # wrench of springs and contact on the platform at P, W axes

cdef int fill_structure(StructureParams *p, object keys, object mounting, const double *neutral, double dt) except -1
cdef void structure_rest(const StructureParams *p, StructureState *s, const double *X_WP) noexcept nogil
cdef void structure_advance(const StructureParams *p, StructureState *s) noexcept nogil
cdef Motion structure_relative(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP) noexcept nogil
cdef void structure_forces(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP,
                           const MechanismOutput *contact, const double *external_S) noexcept nogil
cdef Wrench structure_cell(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP, const double *A_WP,
                           Wrench applied_S) noexcept nogil
cdef void structure_acceleration(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP,
                                 const double *A_WP, double *out) noexcept nogil
cdef object structure_state(const StructureParams *p, const StructureState *s)
