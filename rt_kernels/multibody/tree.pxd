"""Trees of rigid bodies for other kernels: the C tables and kernels of `tree_kernel.h`, and the class that owns them.

A stage keeps a reference to the `Tree`, takes `tree.model` and `tree.work` once, and calls in its step, without the GIL:

    tree.model.kernels.forward_dynamics(model, work, q, v, tau, NULL, a)
    tree.model.integrate(model, q, v, dt)

The functions come as pointers in the model, so that no other module needs to link against this one.
"""

from libc.stdint cimport uint8_t


cdef extern from "rt_kernels/multibody/tree_kernel.h" nogil:
    enum: TREE_BLOCK
    enum: TREE_REVOLUTE
    enum: TREE_CONTINUOUS
    enum: TREE_PRISMATIC
    enum: TREE_SCREW
    enum: TREE_SPHERICAL
    enum: TREE_PLANAR
    enum: TREE_FREE
    enum: TREE_DONE
    enum: TREE_NOT_FREE_JOINT
    enum: TREE_WOULD_LOOP

    ctypedef struct TreeBody:
        int parent
        int kind
        int q_index
        int v_index
        int n_v
        int branches
        int user_body
        int column
        int columns_end
        double R_place[9]
        double p_place[3]
        double R_align[9]
        double pitch

    ctypedef struct TreeInertia:
        double mass
        double h[3]
        double tensor[6]

    ctypedef struct TreeConstantsBlock:
        pass
    ctypedef struct TreeBlock:
        pass
    ctypedef struct TreeFrame:
        double w[4]
        double e[4]
        double g[4]
    ctypedef struct TreeColumn:
        pass
    ctypedef struct TreeArticulated:
        pass
    ctypedef struct TreeMotion:
        pass

    ctypedef struct TreeModel
    ctypedef struct TreeWork

    ctypedef struct TreeKernels:
        void (*forward_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, const double *tau, const double *f_ext,
                                 double *a) noexcept nogil
        void (*hybrid_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, double *tau, double *a,
                                const uint8_t *known, const double *f_ext) noexcept nogil
        void (*inverse_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, const double *a, const double *f_ext,
                                 double *tau, double *reactions) noexcept nogil
        void (*mass_matrix)(const TreeModel *, TreeWork *, const double *q, double *H) noexcept nogil
        void (*velocity_jump)(const TreeModel *, TreeWork *, const double *q, const double *momentum, const uint8_t *known,
                              double *v) noexcept nogil

    ctypedef struct TreeOperations:
        void (*motion)(const TreeModel *, const double *q, const double *v, const double *origin, double *rows) noexcept nogil
        void (*integrate)(const TreeModel *, double *q, const double *v, double dt) noexcept nogil
        void (*jacobian)(const TreeModel *, const double *rows, int slot, const double *point, double *J) noexcept nogil
        void (*totals)(const TreeModel *, const double *rows, double *momentum, double *mass, double *first, double *energy) noexcept nogil
        int (*lock)(TreeModel *, TreeWork *, const double *q, double *v, int k) noexcept nogil
        void (*unlock)(TreeModel *, int k) noexcept nogil
        int (*attach)(TreeModel *, TreeWork *, double *q, double *v, int number, int parent, const uint8_t *hold) noexcept nogil
        void (*set_inertia)(TreeModel *, int number, const TreeInertia *) noexcept nogil

    ctypedef struct TreeModel:
        int n
        int nq
        int nv
        int n_user
        int n_known
        double gravity[3]
        TreeBody *declared
        TreeInertia *mass
        int *slot
        int *thread
        TreeBody *body
        TreeConstantsBlock *constants
        double *armature
        uint8_t *locked
        int *angle_q
        int *column_v
        int *column_slot
        int in_order
        int continuous
        int changed
        TreeKernels kernels
        TreeKernels general
        TreeOperations operations

    ctypedef struct TreeWork:
        TreeFrame *frame
        TreeBlock *block
        TreeColumn *column
        TreeArticulated *branch
        TreeMotion *motion
        double *wrench
        double *square
        int column_stride
        double *scratch
        double *rows
        double *momentum
        uint8_t *known

    int tree_kernels(int set, TreeKernels *out)
    void tree_operations(TreeOperations *out)
    void tree_arrange(TreeModel *)


cdef class Tree:
    cdef TreeModel c_model
    cdef TreeWork c_work
    cdef TreeModel *model              # address of the above, for stages
    cdef TreeWork *work
    cdef void *memory
    cdef readonly list bodies          # declared bodies, fixed joints merged
    cdef readonly list frames
    cdef readonly list joint_names
    cdef readonly str instruction_set
    cdef readonly object generated     # None, or the path of the generated library
    cdef object _library
    cdef list _number                  # user body -> declared number
    cdef object _frame_of
    cdef int _allocate(self, int n, int nq, int nv) except -1
    cdef int _fill(self, list rows) except -1
    cdef int _put_mass(self, int number, list values) except -1
    cdef double *_wrenches(self, object f_ext, list keep) except? NULL
