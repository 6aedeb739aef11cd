/* Tree of rigid bodies: tables that the kernels read (`TreeModel`), what they write on the way (`TreeWork`), and the kernels.
 *
 * A body has one joint to its parent.  Bodies lie in depth-first order (a parent before its children), so a chain is a run of neighbours.
 * Frames: every body's frame is its joint frame, turned so that a single-axis joint acts along its z ("aligned" frame);
 * `R_align` leads back to the axes the user gave.  Everything is computed on inertial axes about each body's own joint origin:
 * articulated inertias are then added without being rotated, and only differences of positions occur, so the distance of the base
 * from the origin of coordinates costs no digit.
 * Accelerations are classical (time derivative of the velocity of the material point at the joint origin). */
#ifndef HIL_TREE_KERNEL_H
#define HIL_TREE_KERNEL_H

#include <stdint.h>

#define TREE_BLOCK 8 /* bodies per block of the vector phases */

enum TreeJoint {
    TREE_REVOLUTE,   /* q = angle about z                                    v = its rate                                */
    TREE_CONTINUOUS, /* q = (cos, sin) of the angle about z                  v = rate of the angle                       */
    TREE_PRISMATIC,  /* q = displacement along z                             v = its rate                                */
    TREE_SCREW,      /* q = angle about z, advance pitch * q along z         v = rate of the angle                       */
    TREE_SPHERICAL,  /* q = quaternion xyzw child to parent                  v = relative angular velocity, child axes   */
    TREE_PLANAR,     /* q = (x, y, cos, sin)                                 v = (vx, vy, wz), child axes                */
    TREE_FREE        /* q = (p in parent joint frame, quaternion xyzw)       v = (linear, angular), child axes           */
};

typedef struct {
    int parent;           /* slot of the parent body, -1: the inertial frame */
    int kind;             /* enum TreeJoint */
    int q_index, v_index; /* first position and velocity coordinate */
    int n_v;              /* number of velocity coordinates */
    int branches;         /* 1: some child is not the next body */
    int user_body;        /* row of f_ext, -1: massless body inside a universal joint */
    int column;           /* first of its velocity coordinates, counted in the order of slots ... */
    int columns_end;      /* ... and one past the last of its whole subtree */
    double R_place[9];    /* aligned joint frame at q = 0, components to the parent's aligned frame */
    double p_place[3];    /* its origin, parent's aligned frame [m] */
    double R_align[9];    /* components: aligned frame to the user's joint frame */
    double pitch;         /* screw: advance per radian [m/rad] */
} TreeBody;

typedef struct { double mass, h[3], tensor[6]; } TreeInertia; /* one body, as a lane of the block below */

typedef struct { /* constants of eight bodies, a lane each */
    double mass[TREE_BLOCK];    /* [kg] */
    double h[3][TREE_BLOCK];    /* mass times centre of mass, aligned frame [kg.m] */
    double tensor[6][TREE_BLOCK]; /* xx xy xz yy yz zz about the joint origin, aligned frame [kg.m2] */
    double place[6][TREE_BLOCK];  /* first two columns of R_place, row by row */
} TreeConstantsBlock;

typedef struct { /* one body, on inertial axes; the fourth number of each is zero */
    double x[4], y[4], z[4];    /* axes of the aligned frame; a single-axis joint acts along z */
    double r[4];                /* parent's joint origin to own joint origin */
    double w[4];                /* angular velocity */
    double e[4];                /* angular acceleration with the unknown joint accelerations at zero */
    double g[4];                /* acceleration of the joint origin, likewise, gravity taken off */
} TreeFrame;

typedef struct { /* on inertial axes about the joint origin, a lane a body */
    double turn[6][TREE_BLOCK]; /* first two columns of R_place turned by the joint angle, row by row */
    double tensor[6][TREE_BLOCK];    /* inertia */
    double h[3][TREE_BLOCK];    /* mass times centre of mass */
    double n[3][TREE_BLOCK];    /* moment that body alone needs */
    double f[3][TREE_BLOCK];    /* force that body alone needs */
} TreeBlock;

typedef struct { double n[3], f[3], u; } TreeColumn;                    /* what the forward sweep needs of one velocity coordinate */
typedef struct { double J[6], B[9], M[6], n[3], f[3]; } TreeArticulated; /* wrench = [J B; B^T M] acceleration + [n; f] */
typedef struct { double a[6]; } TreeMotion;                             /* angular, linear */

typedef struct TreeModel TreeModel;
typedef struct TreeWork TreeWork;

/* `f_ext` (a row of six per user body: force, moment about the joint origin, user's joint axes) and `reactions` may be NULL. */
typedef struct {
    void (*forward_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, const double *tau, const double *f_ext, double *a);
    /* known[k]: a[k] given and tau[k] returned, else the other way round; both arrays are input and output */
    void (*hybrid_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, double *tau, double *a, const uint8_t *known,
                            const double *f_ext);
    /* reactions: wrench on each body through its joint, inertial axes about its joint origin, force first, a row per slot */
    void (*inverse_dynamics)(const TreeModel *, TreeWork *, const double *q, const double *v, const double *a, const double *f_ext,
                             double *tau, double *reactions);
    void (*mass_matrix)(const TreeModel *, TreeWork *, const double *q, double *H); /* full, row-major nv x nv */
    /* velocities after a jump: each body has the momentum rows[slot] = (linear, angular about its joint origin, inertial axes),
     * known coordinates take the given v, all others get no impulse */
    void (*velocity_jump)(const TreeModel *, TreeWork *, const double *q, const double *momentum, const uint8_t *known, double *v);
} TreeKernels;

/* Everything else that works on a model, as pointers too (another module calls them without linking against this one). */
typedef struct {
    /* Pose and velocity of every body on inertial axes: a row of 18 per slot, R (9), p relative to `origin`, w (3), velocity of the
     * joint origin (3); v may be NULL (rates then zero). */
    void (*motion)(const TreeModel *, const double *q, const double *v, const double *origin, double *rows);
    /* q <- q advanced by v dt on the manifold (rotations by the exponential, then normalised) */
    void (*integrate)(const TreeModel *, double *q, const double *v, double dt);
    /* 6 x nv, linear rows first, inertial axes: velocity of the point at `point` (aligned frame) on the body in `slot` */
    void (*jacobian)(const TreeModel *, const double *rows, int slot, const double *point, double *J);
    /* over all bodies: momentum (linear, angular about `origin` of the rows), mass, first moment about `origin`, kinetic energy */
    void (*totals)(const TreeModel *, const double *rows, double *momentum, double *mass, double *first, double *energy);

    /* Events: poses stay as they are, velocities jump so that every free coordinate keeps its momentum; q and v are changed in place.
     * `number` is a declared number.  Those that return int return TREE_DONE, or the reason why the model is as before. */
    /* hold velocity coordinate k at rest from now on / let it go */
    int (*lock)(TreeModel *, TreeWork *, const double *q, double *v, int k);
    void (*unlock)(TreeModel *, int k);
    /* body `number`, which has a free joint, gets a new parent (-1: the inertial frame); hold[6]: which of its coordinates are locked */
    int (*attach)(TreeModel *, TreeWork *, double *q, double *v, int number, int parent, const uint8_t *hold);
    /* new mass, first moment and inertia (joint origin, aligned frame); mass comes and goes with the velocity of the body */
    void (*set_inertia)(TreeModel *, int number, const TreeInertia *);
} TreeOperations;

enum { TREE_DONE, TREE_NOT_FREE_JOINT, TREE_WOULD_LOOP };

/* Bodies are declared in any order (`declared`, whose `parent` is a declared number); tree_arrange() lays them into slots. */
struct TreeModel {
    int n;              /* bodies */
    int nq, nv;
    int n_user;         /* rows of f_ext */
    int n_known;        /* how many velocity coordinates are locked */
    double gravity[3];  /* [m/s2], inertial axes */
    TreeBody *declared; /* as declared; slots follow */
    TreeInertia *mass;  /* as declared */
    int *slot;          /* declared number to slot */
    int *thread;        /* scratch of tree_arrange, 2 n + 2 */
    TreeBody *body;
    TreeConstantsBlock *constants;
    double *armature;   /* nv: reflected inertia of the drive, gear ratio squared times rotor inertia */
    uint8_t *locked;    /* nv: 1 where the acceleration is held at zero */
    int *angle_q;       /* per slot, whole blocks: q index of the joint angle, -1: none */
    int *column_v;      /* v index of each column */
    int *column_slot;   /* slot of each column's body */
    int in_order;       /* 1: column_v counts up */
    int continuous;     /* 1: some joint brings cosine and sine as its coordinates */
    int changed;        /* 1: topology or masses are no longer those of the construction; generated kernels then use the general ones */
    TreeKernels kernels;
    TreeKernels general;
    TreeOperations operations;
};

struct TreeWork {
    TreeFrame *frame;              /* whole blocks */
    TreeBlock *block;
    TreeColumn *column;
    TreeArticulated *branch;
    TreeMotion *motion;
    double *wrench;                /* 6 rows of column_stride: wrench of each column, the mass matrix's */
    double *square;                /* nv rows of column_stride: mass matrix in the order of columns */
    int column_stride;             /* nv and a whole block more */
    double *scratch;               /* 2 nv */
    double *rows;                  /* 18 n */
    double *momentum;              /* 6 n */
    uint8_t *known;                /* nv */
};

/* set: 0 what every x86-64 has, 1 AVX2, 2 AVX-512; all give the same bits.  Returns 0 when this processor lacks the set. */
int tree_kernels(int set, TreeKernels *out);

void tree_operations(TreeOperations *out);
/* lay the declared bodies into slots, depth first; no allocation */
void tree_arrange(TreeModel *);

#endif
