/* Kernels of trees of rigid bodies, see tree_kernel.h.  The algorithms stand in tree_algorithms.inc and are compiled once per
 * instruction set; here is what they share, and the choice of a set.
 *
 * Sources: articulated bodies with joints whose torque or acceleration is known, Meng and Han 2007, sections 3-5
 * (with a_k in closed form and the P a term of the known-acceleration branch); Yaskevich 2020, ch. 2 (2.1.1)-(2.1.8). */
#include "tree_kernel.h"

#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wunused-function"
/* pairs made of the scalar recursions cost more in shuffles than they save in arithmetic (5-10 %) */
#pragma GCC optimize("no-tree-slp-vectorize", "no-code-hoisting")

#define INLINE static inline __attribute__((always_inline))
#define NUM double
#define T(name) name
#include "tree_vec3.inc"
#undef NUM
#undef T

static const double NO_ANGLE = 0.0;
#define ZERO ((Vec){0.0, 0.0, 0.0})
#define IDENTITY ((Mat){1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0})

/* ---- loads and stores: plain arrays, and lane `lane` of a block ---------------------------------------------------------------- */
INLINE Vec load_vec(const double *p) { return (Vec){p[0], p[1], p[2]}; }
INLINE Mat load_mat(const double *p) { return (Mat){p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]}; }
INLINE Sym load_sym(const double *p) { return (Sym){p[0], p[1], p[2], p[3], p[4], p[5]}; }
INLINE void put_vec3(double *p, Vec a) { p[0] = a.x; p[1] = a.y; p[2] = a.z; }
INLINE void put_sym(double *p, Sym A) { p[0] = A.xx; p[1] = A.xy; p[2] = A.xz; p[3] = A.yy; p[4] = A.yz; p[5] = A.zz; }
INLINE void put_mat(double *p, Mat A)
{
    p[0] = A.xx; p[1] = A.xy; p[2] = A.xz; p[3] = A.yx; p[4] = A.yy; p[5] = A.yz; p[6] = A.zx; p[7] = A.zy; p[8] = A.zz;
}
INLINE Vec get_vec(const double (*p)[TREE_BLOCK], int lane) { return (Vec){p[0][lane], p[1][lane], p[2][lane]}; }
INLINE Sym get_sym(const double (*p)[TREE_BLOCK], int lane) { return (Sym){p[0][lane], p[1][lane], p[2][lane], p[3][lane], p[4][lane], p[5][lane]}; }
INLINE Mat frame_rotation(const TreeFrame *F)
{
    return (Mat){F->x[0], F->y[0], F->z[0], F->x[1], F->y[1], F->z[1], F->x[2], F->y[2], F->z[2]};
}
INLINE void set_vec(double (*p)[TREE_BLOCK], int lane, Vec a) { p[0][lane] = a.x; p[1][lane] = a.y; p[2][lane] = a.z; }

/* ---- joints -------------------------------------------------------------------------------------------------------------------- */

/* A Rz: A with its first two columns turned by the angle of (c, s) */
INLINE Mat turn_z(Mat A, double c, double s)
{
    return (Mat){A.xx * c + A.xy * s, A.xy * c - A.xx * s, A.xz, A.yx * c + A.yy * s, A.yy * c - A.yx * s, A.yz,
                 A.zx * c + A.zy * s, A.zy * c - A.zx * s, A.zz};
}

/* rotation of a quaternion (x, y, z, w) of any length but zero */
INLINE Mat quaternion_rotation(const double *q)
{
    const double s = 2.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const double x = s * q[0], y = s * q[1], z = s * q[2];
    const double xx = x * q[0], xy = x * q[1], xz = x * q[2], yy = y * q[1], yz = y * q[2], zz = z * q[2], wx = x * q[3], wy = y * q[3], wz = z * q[3];
    return (Mat){1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy)};
}

/* multi-axis joints: rotation child to joint frame, translation in the joint frame, twist on child axes */
INLINE Mat joint_rotation(const TreeBody *b, const double *q)
{
    q += b->q_index;
    return b->kind == TREE_PLANAR ? turn_z(IDENTITY, q[2], q[3]) : quaternion_rotation(b->kind == TREE_FREE ? q + 3 : q);
}
INLINE int joint_translation(const TreeBody *b, const double *q, Vec *p)
{
    q += b->q_index;
    if (b->kind == TREE_SPHERICAL) return 0;
    *p = (Vec){q[0], q[1], b->kind == TREE_PLANAR ? 0.0 : q[2]};
    return 1;
}
INLINE void joint_twist(const TreeBody *b, const double *v, Vec *v_rel, Vec *w_rel)
{
    v += b->v_index;
    if (b->kind == TREE_PLANAR) {
        *v_rel = (Vec){v[0], v[1], 0.0};
        *w_rel = (Vec){0.0, 0.0, v[2]};
    } else {
        *v_rel = b->kind == TREE_FREE ? load_vec(v) : ZERO;
        *w_rel = load_vec(b->kind == TREE_FREE ? v + 3 : v);
    }
}
/* velocity coordinate j of a multi-axis joint: 0..2 along, 3..5 about the child's axes */
INLINE int joint_column(int kind, int j) { return kind == TREE_SPHERICAL ? 3 + j : kind == TREE_PLANAR && j == 2 ? 5 : j; }
INLINE Vec column_of(Mat A, int j) { return j == 0 ? (Vec){A.xx, A.yx, A.zx} : j == 1 ? (Vec){A.xy, A.yy, A.zy} : (Vec){A.xz, A.yz, A.zz}; }

INLINE int any_known(const uint8_t *known, int n)
{
    int any = 0;
    for (int k = 0; k < n; ++k) any |= known[k];
    return any;
}
INLINE Vec minus_gravity(const TreeModel *M) { return (Vec){-M->gravity[0], -M->gravity[1], -M->gravity[2]}; }

/* known coordinates of the caller joined with the locked ones, whose acceleration (or velocity) is zero */
INLINE const uint8_t *with_locked(const TreeModel *M, TreeWork *W, const uint8_t *known, double *a)
{
    if (!M->n_known) return known;
    for (int k = 0; k < M->nv; ++k) {
        if (M->locked[k]) a[k] = 0.0;
        W->known[k] = known[k] | M->locked[k];
    }
    return W->known;
}

/* ---- articulated inertia: wrench = [J B; B^T M] [w'; l'] + [n; f] ----------------------------------------------------------------- */
typedef struct { Sym J; Mat B; Sym M; Vec n, f; } Articulated;

#define NOTHING ((Articulated){{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {0, 0, 0}, {0, 0, 0}})

INLINE Articulated load_articulated(const TreeArticulated *p)
{
    return (Articulated){load_sym(p->J), load_mat(p->B), load_sym(p->M), load_vec(p->n), load_vec(p->f)};
}
INLINE void store_articulated(TreeArticulated *p, Articulated X)
{
    put_sym(p->J, X.J);
    put_mat(p->B, X.B);
    put_sym(p->M, X.M);
    put_vec3(p->n, X.n);
    put_vec3(p->f, X.f);
}
INLINE Mat madd(Mat A, Mat B)
{
    return (Mat){A.xx + B.xx, A.xy + B.xy, A.xz + B.xz, A.yx + B.yx, A.yy + B.yy, A.yz + B.yz, A.zx + B.zx, A.zy + B.zy, A.zz + B.zz};
}
INLINE Articulated add_articulated(Articulated A, Articulated B)
{
    return (Articulated){sadd(A.J, B.J), madd(A.B, B.B), sadd(A.M, B.M), add(A.n, B.n), add(A.f, B.f)};
}

/* the rigid body itself: J += I, B += S(h), M += m 1 */
INLINE void add_body(Articulated *X, Sym I, Vec h, double m, Vec n, Vec f)
{
    X->J = sadd(X->J, I);
    X->B.xy -= h.z; X->B.xz += h.y; X->B.yx += h.z; X->B.yz -= h.x; X->B.zx -= h.y; X->B.zy += h.x;
    X->M.xx += m; X->M.yy += m; X->M.zz += m;
    X->n = add(X->n, n);
    X->f = add(X->f, f);
}

/* One velocity coordinate with the unit motion whose inertial wrench is (Un, Uf): its inertia d, its force beyond the bias.
 * Unknown: eliminate it, X -= U U^T / d, and keep U/d for the forward sweep.  Known: X stays, keep U for its torque. */
INLINE void take(Articulated *X, Vec Un, Vec Uf, double d, double bias, int is_known, const double *tau, const double *a,
                 const double *armature, int k, TreeColumn *column)
{
    if (is_known) {
        put_vec3(column->n, Un);
        put_vec3(column->f, Uf);
        column->u = bias + armature[k] * a[k];
        return;
    }
    const double inverse = 1.0 / (d + armature[k]), u = tau[k] - bias;
    const Vec Nn = scale(inverse, Un), Nf = scale(inverse, Uf);
    X->J = ssub_outer(X->J, Nn, Un);
    X->B = sub_outer(X->B, Nn, Uf);
    X->M = ssub_outer(X->M, Nf, Uf);
    X->n = add_scaled(X->n, u, Nn);
    X->f = add_scaled(X->f, u, Nf);
    put_vec3(column->n, Nn);
    put_vec3(column->f, Nf);
    column->u = u * inverse;
}
INLINE void take_angular(Articulated *X, Vec z, int is_known, const double *tau, const double *a, const double *armature, int k, TreeColumn *column)
{
    const Vec Un = smul(X->J, z), Uf = tmul(X->B, z);
    take(X, Un, Uf, dot(z, Un), dot(z, X->n), is_known, tau, a, armature, k, column);
}
INLINE void take_linear(Articulated *X, Vec z, int is_known, const double *tau, const double *a, const double *armature, int k, TreeColumn *column)
{
    const Vec Un = mul(X->B, z), Uf = smul(X->M, z);
    take(X, Un, Uf, dot(z, Uf), dot(z, X->f), is_known, tau, a, armature, k, column);
}
INLINE void take_screw(Articulated *X, Vec z, double pitch, int is_known, const double *tau, const double *a, const double *armature, int k, TreeColumn *column)
{
    const Vec Un = add_scaled(smul(X->J, z), pitch, mul(X->B, z)), Uf = add_scaled(tmul(X->B, z), pitch, smul(X->M, z));
    take(X, Un, Uf, dot(z, Un) + pitch * dot(z, Uf), dot(z, X->n) + pitch * dot(z, X->f), is_known, tau, a, armature, k, column);
}
/* forward sweep: torque of a known coordinate, or the acceleration of an unknown one (then 1 is returned) */
INLINE int give_back(const TreeColumn *column, Vec w, Vec l, int k, double *tau, double *a, int is_known)
{
    const double along = dot(load_vec(column->n), w) + dot(load_vec(column->f), l);
    if (is_known) {
        tau[k] = column->u + along;
        return 0;
    }
    a[k] = column->u - along;
    return 1;
}

/* A x = b for a symmetric positive definite 3x3 matrix: A = L D L^T */
typedef struct { double l10, l20, l21, i0, i1, i2; } Factor;
INLINE Factor factor(Sym A)
{
    Factor F;
    F.i0 = 1.0 / A.xx;
    F.l10 = A.xy * F.i0;
    F.l20 = A.xz * F.i0;
    const double d1 = A.yy - F.l10 * A.xy, c = A.yz - F.l20 * A.xy;
    F.i1 = 1.0 / d1;
    F.l21 = c * F.i1;
    F.i2 = 1.0 / (A.zz - F.l20 * A.xz - F.l21 * c);
    return F;
}
INLINE Vec solve(Factor F, Vec b)
{
    const double y1 = b.y - F.l10 * b.x, y2 = b.z - F.l20 * b.x - F.l21 * y1;
    const double z = y2 * F.i2, y = y1 * F.i1 - F.l21 * z, x = b.x * F.i0 - F.l10 * y - F.l20 * z;
    return (Vec){x, y, z};
}

/* All six coordinates of a free body at once: its motion follows from the wrench that reaches it; to its parent it passes its
 * joint force and no inertia. */
INLINE void take_free(Articulated *X, Mat R, const double *tau, TreeColumn *column)
{
    const Vec f = mul(R, load_vec(tau)), n = mul(R, load_vec(tau + 3)), rf = sub(f, X->f), rn = sub(n, X->n);
    const Factor linear = factor(X->M);
    const Mat B = X->B;
    const Vec b0 = {B.xx, B.xy, B.xz}, b1 = {B.yx, B.yy, B.yz}, b2 = {B.zx, B.zy, B.zz}; /* rows of B, columns of B^T */
    const Vec y0 = solve(linear, b0), y1 = solve(linear, b1), y2 = solve(linear, b2), y = solve(linear, rf);
    const Sym S = {X->J.xx - dot(b0, y0), X->J.xy - dot(b0, y1), X->J.xz - dot(b0, y2),
                   X->J.yy - dot(b1, y1), X->J.yz - dot(b1, y2), X->J.zz - dot(b2, y2)};
    const Vec w = solve(factor(S), sub(rn, mul(B, y)));
    const Vec l = sub(y, add(scale(w.x, y0), add(scale(w.y, y1), scale(w.z, y2))));
    put_vec3(column->n, w);
    put_vec3(column->f, l);
    *X = NOTHING;
    X->n = n;
    X->f = f;
}

/* about the parent's joint origin, r from there to the present one:
 *   B' = B + S(r) M,   J' = J + S(r) B'^T - B S(r),   n' = n + r x f */
INLINE Articulated shift_articulated(Articulated X, Vec r)
{
    const Sym M = X.M, J = X.J;
    const Mat B = X.B;
    const Mat C = {B.xx + (r.y * M.xz - r.z * M.xy), B.xy + (r.y * M.yz - r.z * M.yy), B.xz + (r.y * M.zz - r.z * M.yz),
                   B.yx + (r.z * M.xx - r.x * M.xz), B.yy + (r.z * M.xy - r.x * M.yz), B.yz + (r.z * M.xz - r.x * M.zz),
                   B.zx + (r.x * M.xy - r.y * M.xx), B.zy + (r.x * M.yy - r.y * M.xy), B.zz + (r.x * M.yz - r.y * M.xz)};
    const Sym K = {J.xx + (r.y * C.xz - r.z * C.xy) - (B.xy * r.z - B.xz * r.y),
                   J.xy + (r.y * C.yz - r.z * C.yy) - (B.xz * r.x - B.xx * r.z),
                   J.xz + (r.y * C.zz - r.z * C.zy) - (B.xx * r.y - B.xy * r.x),
                   J.yy + (r.z * C.yx - r.x * C.yz) - (B.yz * r.x - B.yx * r.z),
                   J.yz + (r.z * C.zx - r.x * C.zz) - (B.yx * r.y - B.yy * r.x),
                   J.zz + (r.x * C.zy - r.y * C.zx) - (B.zx * r.y - B.zy * r.x)};
    return (Articulated){K, C, M, add(X.n, cross(r, X.f)), X.f};
}

/* take_angular with an unknown acceleration and the shift by r in one: the shifted inertia does not wait for the division.
 *   shift(X - U U^T / d) = shift(X) - U' U'^T / d,   U' = (Un + r x Uf, Uf) */
INLINE Articulated take_angular_shifted(Articulated X, Vec z, Vec r, const double *tau, const double *armature, int k, TreeColumn *column)
{
    const Vec Un = smul(X.J, z), Uf = tmul(X.B, z), Us = add(Un, cross(r, Uf));
    const Sym zz = {z.x * z.x, 2.0 * z.x * z.y, 2.0 * z.x * z.z, z.y * z.y, 2.0 * z.y * z.z, z.z * z.z};
    const double d = ((X.J.xx * zz.xx + X.J.yy * zz.yy) + (X.J.zz * zz.zz + X.J.xy * zz.xy)) + (X.J.xz * zz.xz + X.J.yz * zz.yz);
    const double inverse = 1.0 / (d + armature[k]), u = tau[k] - dot(z, X.n);
    const Vec Nf = scale(inverse, Uf), Ns = scale(inverse, Us);
    X = shift_articulated(X, r);
    X.J = ssub_outer(X.J, Ns, Us);
    X.B = sub_outer(X.B, Ns, Uf);
    X.M = ssub_outer(X.M, Nf, Uf);
    X.n = add_scaled(X.n, u, Ns);
    X.f = add_scaled(X.f, u, Nf);
    put_vec3(column->n, Ns); /* for the parent's motion */
    put_vec3(column->f, Nf);
    column->u = u * inverse;
    return X;
}

/* composite rigid body (J about the origin, h, m) about the parent's origin: J + [2 (r.h) + m r.r] 1 - r h^T - h r^T - m r r^T */
INLINE Sym shift_inertia(Sym J, Vec h, double m, Vec r)
{
    const Vec k = add_scaled(h, m, r); /* first moment about the parent's origin */
    const double x = r.x * (h.x + k.x), y = r.y * (h.y + k.y), z = r.z * (h.z + k.z);
    return (Sym){J.xx + (y + z), J.xy - (r.x * k.y + h.x * r.y), J.xz - (r.x * k.z + h.x * r.z),
                 J.yy + (x + z), J.yz - (r.y * k.z + h.y * r.z), J.zz + (x + y)};
}

/* masks of the mass matrix: read at 8 - k all lanes from k on, at 16 - k the first k lanes */
static const int64_t EDGE[3 * TREE_BLOCK] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

/* components of a wrench along the columns of a joint */
INLINE void project_columns(const TreeBody *b, const TreeFrame *frame, Vec n, Vec f, double *out)
{
    const Vec z = load_vec(frame->z);
    const Mat R = frame_rotation(frame);
    if (b->kind == TREE_PRISMATIC)
        out[0] = dot(z, f);
    else if (b->kind == TREE_SCREW)
        out[0] = dot(z, n) + b->pitch * dot(z, f);
    else if (b->kind == TREE_SPHERICAL)
        put_vec3(out, tmul(R, n));
    else if (b->kind == TREE_PLANAR) {
        const Vec fb = tmul(R, f);
        out[0] = fb.x;
        out[1] = fb.y;
        out[2] = tmul(R, n).z;
    } else {
        put_vec3(out, tmul(R, f));
        put_vec3(out + 3, tmul(R, n));
    }
}
INLINE void project_wrench(const TreeBody *b, const TreeFrame *frame, Vec n, Vec f, const double *armature, const double *a, double *tau)
{
    project_columns(b, frame, n, f, tau);
    for (int j = 0; j < b->n_v; ++j) tau[j] += armature[j] * a[j];
}

/* external wrenches come on the user's axes: taken off what each body needs */
static void apply_wrenches(const TreeModel *M, TreeWork *W, const double *f_ext)
{
    for (int i = 0; i < M->n; ++i) {
        const TreeBody *b = &M->body[i];
        if (b->user_body < 0) continue;
        TreeBlock *B = &W->block[i / TREE_BLOCK];
        const int lane = i % TREE_BLOCK;
        const double *row = f_ext + 6 * b->user_body;
        const Mat R = frame_rotation(&W->frame[i]), align = load_mat(b->R_align);
        set_vec(B->f, lane, sub(get_vec(B->f, lane), mul(R, tmul(align, load_vec(row)))));
        set_vec(B->n, lane, sub(get_vec(B->n, lane), mul(R, tmul(align, load_vec(row + 3)))));
    }
}

/* ---- one copy of the algorithms for each instruction set -------------------------------------------------------------------------- */
#define LANES 2
#define WALK 2
#define KERNEL(name) name##_sse2
#include "tree_algorithms.inc"
#undef LANES
#undef WALK
#undef KERNEL

#pragma GCC push_options
#pragma GCC target("avx2")
#define LANES 4
#define WALK 4
#define KERNEL(name) name##_avx2
#include "tree_algorithms.inc"
#undef LANES
#undef WALK
#undef KERNEL
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,avx512f,avx512dq,avx512vl,prefer-vector-width=256")
#define LANES 4 /* 32 registers; eight lanes close a port to the scalar recursions between and were slower but for the long walks */
#define WALK 8
#define KERNEL(name) name##_avx512
#include "tree_algorithms.inc"
#undef LANES
#undef WALK
#undef KERNEL
#pragma GCC pop_options

int tree_kernels(int set, TreeKernels *out)
{
    __builtin_cpu_init();
    if (set == 0)
        *out = table_sse2;
    else if (set == 1 && __builtin_cpu_supports("avx2"))
        *out = table_avx2;
    else if (set == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        *out = table_avx512;
    else
        return 0;
    return 1;
}

/* ---- poses, velocities, integration ------------------------------------------------------------------------------------------------- */

/* scalar sincos: the first lane of the baseline's */
static void sincos_one(double x, double *s, double *c)
{
    lanes_sse2 sine, cosine;
    const lanes_sse2 angle = {x, 0.0};
    sincos_sse2(&angle, &sine, &cosine);
    *s = sine[0];
    *c = cosine[0];
}

static void tree_motion(const TreeModel *M, const double *q, const double *v, const double *origin, double *rows)
{
    const Vec p_origin = load_vec(origin);
    for (int i = 0; i < M->n; ++i) {
        const TreeBody *b = &M->body[i];
        const double *up = rows + 18 * b->parent, *at = q + b->q_index;
        const Mat R_up = b->parent < 0 ? IDENTITY : load_mat(up);
        const Vec p_up = b->parent < 0 ? scale(-1.0, p_origin) : load_vec(up + 9);
        Vec w = b->parent < 0 ? ZERO : load_vec(up + 12), l = b->parent < 0 ? ZERO : load_vec(up + 15);
        const Mat R_joint = matmul(R_up, load_mat(b->R_place));
        Mat R = R_joint;
        const Vec place = mul(R_up, load_vec(b->p_place));
        Vec travel = ZERO, v_rel = ZERO, w_rel = ZERO;
        double s = 0.0, c = 1.0;
        if (b->kind <= TREE_SCREW) { /* one axis, z */
            const int turns = b->kind != TREE_PRISMATIC;
            const double advance = b->kind == TREE_SCREW ? b->pitch : b->kind == TREE_PRISMATIC ? 1.0 : 0.0;
            if (b->kind == TREE_CONTINUOUS) {
                c = at[0];
                s = at[1];
            } else if (turns)
                sincos_one(at[0], &s, &c);
            R = turn_z(R_joint, c, s);
            const Vec z = {R.xz, R.yz, R.zz};
            if (advance != 0.0) travel = scale(advance * at[0], z);
            if (v && turns) w_rel = scale(v[b->v_index], z);
            if (v && advance != 0.0) v_rel = scale(advance * v[b->v_index], z);
        } else {
            R = matmul(R_joint, joint_rotation(b, q));
            if (joint_translation(b, q, &travel)) travel = mul(R_joint, travel);
            if (v) {
                joint_twist(b, v, &v_rel, &w_rel);
                v_rel = mul(R, v_rel);
                w_rel = mul(R, w_rel);
            }
        }
        /* a free root: the difference of two large positions first, so that nothing is lost far from the origin */
        const Vec p = b->parent < 0 ? add(sub(travel, p_origin), place) : add(add(p_up, place), travel);
        l = add(add(l, cross(w, add(place, travel))), v_rel);
        w = add(w, w_rel);
        double *row = rows + 18 * i;
        put_mat(row, R);
        put_vec3(row + 9, p);
        put_vec3(row + 12, w);
        put_vec3(row + 15, l);
    }
}

/* q_new = q * exp(w dt / 2), then normalised; w on child axes */
static void turn_quaternion(double *q, const double *w, double dt)
{
    const double hx = 0.5 * dt * w[0], hy = 0.5 * dt * w[1], hz = 0.5 * dt * w[2], square = hx * hx + hy * hy + hz * hz;
    const double half = __builtin_sqrt(square);
    double s, c, sinc;
    sincos_one(half, &s, &c);
    sinc = square < 1e-12 ? 1.0 - square * (1.0 / 6.0) : s / half;
    const double x = sinc * hx, y = sinc * hy, z = sinc * hz;
    const double a = q[3] * x + c * q[0] + q[1] * z - q[2] * y, b = q[3] * y + c * q[1] + q[2] * x - q[0] * z;
    const double d = q[3] * z + c * q[2] + q[0] * y - q[1] * x, e = q[3] * c - q[0] * x - q[1] * y - q[2] * z;
    const double scale = 1.0 / __builtin_sqrt(a * a + b * b + d * d + e * e);
    q[0] = scale * a;
    q[1] = scale * b;
    q[2] = scale * d;
    q[3] = scale * e;
}

static void turn_circle(double *cs, double angle)
{
    double s, c;
    sincos_one(angle, &s, &c);
    const double x = cs[0] * c - cs[1] * s, y = cs[0] * s + cs[1] * c, scale = 1.0 / __builtin_sqrt(x * x + y * y);
    cs[0] = scale * x;
    cs[1] = scale * y;
}

/* translation of a constant body twist over dt: R V(w dt) v dt, V(u) = 1 + (1 - cos|u|)/|u|^2 S(u) + (|u| - sin|u|)/|u|^3 S(u)^2 */
static Vec twist_translation(Vec w, Vec v, double dt)
{
    const Vec u = scale(dt, w);
    const double square = dot(u, u), angle = __builtin_sqrt(square);
    double s, c, first = 0.5 - square * (1.0 / 24.0), second = 1.0 / 6.0 - square * (1.0 / 120.0);
    if (square > 1e-4) {
        sincos_one(0.5 * angle, &s, &c); /* 1 - cos u = 2 sin^2(u/2) */
        first = 2.0 * s * s / square;
        second = (angle - 2.0 * s * c) / (square * angle);
    } else {
        first += square * square * (1.0 / 720.0);
        second += square * square * (1.0 / 5040.0);
    }
    const Vec uv = cross(u, v), uuv = cross(u, uv);
    return scale(dt, add(v, add(scale(first, uv), scale(second, uuv))));
}

static void tree_integrate(const TreeModel *M, double *q, const double *v, double dt)
{
    for (int i = 0; i < M->n; ++i) {
        const TreeBody *b = &M->body[i];
        double *at = q + b->q_index;
        const double *rate = v + b->v_index;
        switch (b->kind) {
        case TREE_CONTINUOUS:
            turn_circle(at, dt * rate[0]);
            break;
        case TREE_SPHERICAL:
            turn_quaternion(at, rate, dt);
            break;
        case TREE_PLANAR: {
            const Vec step = mul(turn_z(IDENTITY, at[2], at[3]), twist_translation((Vec){0, 0, rate[2]}, (Vec){rate[0], rate[1], 0}, dt));
            at[0] += step.x;
            at[1] += step.y;
            turn_circle(at + 2, dt * rate[2]);
            break;
        }
        case TREE_FREE: {
            const Vec step = mul(quaternion_rotation(at + 3), twist_translation(load_vec(rate + 3), load_vec(rate), dt));
            at[0] += step.x;
            at[1] += step.y;
            at[2] += step.z;
            turn_quaternion(at + 3, rate + 3, dt);
            break;
        }
        default:
            at[0] += dt * rate[0];
        }
    }
}

static void tree_jacobian(const TreeModel *M, const double *rows, int slot, const double *point, double *J)
{
    const double *own = rows + 18 * slot;
    const Vec tip = add(load_vec(own + 9), mul(load_mat(own), load_vec(point)));
    for (int k = 0; k < 6 * M->nv; ++k) J[k] = 0.0;
    for (int i = slot; i >= 0; i = M->body[i].parent) {
        const TreeBody *b = &M->body[i];
        const double *row = rows + 18 * i;
        const Mat R = load_mat(row);
        const Vec arm = sub(tip, load_vec(row + 9));
        for (int j = 0; j < b->n_v; ++j) {
            Vec w = ZERO, l = ZERO;
            if (b->kind <= TREE_SCREW) {
                const Vec z = column_of(R, 2);
                if (b->kind != TREE_PRISMATIC) w = z;
                if (b->kind == TREE_PRISMATIC) l = z;
                if (b->kind == TREE_SCREW) l = scale(b->pitch, z);
            } else {
                const int column = joint_column(b->kind, j);
                if (column < 3)
                    l = column_of(R, column);
                else
                    w = column_of(R, column - 3);
            }
            l = add(l, cross(w, arm));
            double *at = J + b->v_index + j;
            at[0] = l.x; at[M->nv] = l.y; at[2 * M->nv] = l.z;
            at[3 * M->nv] = w.x; at[4 * M->nv] = w.y; at[5 * M->nv] = w.z;
        }
    }
}

/* momentum of the body in slot i (linear, angular about its joint origin), first moment, on inertial axes */
static void body_momentum(const TreeModel *M, int i, const double *row, Vec *linear, Vec *angular, Vec *first, Vec *Iw)
{
    const TreeConstantsBlock *C = &M->constants[i / TREE_BLOCK];
    const int lane = i % TREE_BLOCK;
    const Mat R = load_mat(row);
    const Vec w = load_vec(row + 12), l = load_vec(row + 15);
    *first = mul(R, get_vec(C->h, lane));
    *Iw = mul(R, smul(get_sym(C->tensor, lane), tmul(R, w)));
    *linear = add(scale(C->mass[lane], l), cross(w, *first));
    *angular = add(*Iw, cross(*first, l));
}

static void tree_totals(const TreeModel *M, const double *rows, double *momentum, double *mass, double *first, double *energy)
{
    Vec P = ZERO, L = ZERO, h_sum = ZERO;
    double m_sum = 0.0, T = 0.0;
    for (int i = 0; i < M->n; ++i) {
        const double *row = rows + 18 * i;
        const double m = M->constants[i / TREE_BLOCK].mass[i % TREE_BLOCK];
        const Vec p = load_vec(row + 9), w = load_vec(row + 12), l = load_vec(row + 15);
        Vec linear, angular, h, Iw;
        body_momentum(M, i, row, &linear, &angular, &h, &Iw);
        P = add(P, linear);
        L = add(L, add(angular, cross(p, linear)));
        h_sum = add(h_sum, add_scaled(h, m, p));
        m_sum += m;
        T += 0.5 * (dot(linear, l) + dot(angular, w));
    }
    put_vec3(momentum, P);
    put_vec3(momentum + 3, L);
    put_vec3(first, h_sum);
    *mass = m_sum;
    *energy = T;
}

/* ---- topology ----------------------------------------------------------------------------------------------------------------------- */

void tree_arrange(TreeModel *M)
{
    const int n = M->n;
    int *first = M->thread, *next = M->thread + n + 1; /* first child, next sibling; entry n is the inertial frame */
    for (int i = 0; i <= n; ++i) first[i] = -1;
    for (int i = n - 1; i >= 0; --i) {
        const int up = M->declared[i].parent < 0 ? n : M->declared[i].parent;
        next[i] = first[up];
        first[up] = i;
    }
    int slot = 0, at = first[n], columns = 0;
    for (int i = 0; i < (n + TREE_BLOCK - 1) / TREE_BLOCK * TREE_BLOCK; ++i) M->angle_q[i] = -1;
    M->continuous = 0;
    M->in_order = 1;
    while (at >= 0) {
        const TreeInertia *mass = &M->mass[at];
        TreeBody *b = &M->body[slot];
        TreeConstantsBlock *C = &M->constants[slot / TREE_BLOCK];
        const int lane = slot % TREE_BLOCK;
        *b = M->declared[at];
        b->parent = b->parent < 0 ? -1 : M->slot[b->parent];
        b->branches = 0;
        if (b->parent >= 0 && b->parent != slot - 1) M->body[b->parent].branches = 1;
        M->angle_q[slot] = b->kind == TREE_REVOLUTE || b->kind == TREE_SCREW ? b->q_index : -1;
        M->continuous |= b->kind == TREE_CONTINUOUS;
        C->mass[lane] = mass->mass;
        set_vec(C->h, lane, load_vec(mass->h));
        for (int k = 0; k < 6; ++k) C->tensor[k][lane] = mass->tensor[k];
        for (int k = 0; k < 6; ++k) C->place[k][lane] = b->R_place[3 * (k / 2) + k % 2];
        b->column = columns;
        M->in_order &= columns == b->v_index;
        for (int k = 0; k < b->n_v; ++k) {
            M->column_slot[columns] = slot;
            M->column_v[columns++] = b->v_index + k;
        }
        M->slot[at] = slot++;
        /* next in depth-first order */
        if (first[at] >= 0)
            at = first[at];
        else {
            while (at >= 0 && next[at] < 0) at = M->declared[at].parent;
            if (at >= 0) at = next[at];
        }
    }
    for (int i = 0; i < n; ++i) {
        M->body[i].columns_end = M->body[i].column + M->body[i].n_v;
    }
    for (int i = n - 1; i >= 0; --i) {
        const TreeBody *b = &M->body[i];
        if (b->parent >= 0 && M->body[b->parent].columns_end < b->columns_end) M->body[b->parent].columns_end = b->columns_end;
    }
}

/* momentum of every body, a row per declared number, from the present rows */
static void note_momentum(const TreeModel *M, TreeWork *W)
{
    for (int number = 0; number < M->n; ++number) {
        const int i = M->slot[number];
        Vec linear, angular, h, Iw;
        body_momentum(M, i, W->rows + 18 * i, &linear, &angular, &h, &Iw);
        put_vec3(W->momentum + 6 * number, linear);
        put_vec3(W->momentum + 6 * number + 3, angular);
    }
}
/* those rows put in order of slots (through W->rows), then the jump; `known` NULL: only locked coordinates, which come to rest */
static void jump(const TreeModel *M, TreeWork *W, const double *q, double *v)
{
    for (int number = 0; number < M->n; ++number)
        for (int k = 0; k < 6; ++k) W->rows[6 * M->slot[number] + k] = W->momentum[6 * number + k];
    M->kernels.velocity_jump(M, W, q, W->rows, M->locked, v);
}

static const double NO_OFFSET[3] = {0.0, 0.0, 0.0};

static int tree_lock(TreeModel *M, TreeWork *W, const double *q, double *v, int k)
{
    if (!M->locked[k]) {
        tree_motion(M, q, v, NO_OFFSET, W->rows);
        note_momentum(M, W);
        M->locked[k] = 1;
        M->n_known++;
        jump(M, W, q, v);
    }
    return TREE_DONE;
}

static void tree_unlock(TreeModel *M, int k)
{
    M->n_known -= M->locked[k];
    M->locked[k] = 0;
}

/* quaternion (x, y, z, w) of a rotation, from its largest component */
static void rotation_quaternion(Mat R, double *q)
{
    const double four[4] = {1.0 + R.xx - R.yy - R.zz, 1.0 - R.xx + R.yy - R.zz, 1.0 - R.xx - R.yy + R.zz, 1.0 + R.xx + R.yy + R.zz};
    const double pairs[4][4] = {{four[0], R.xy + R.yx, R.xz + R.zx, R.zy - R.yz}, {R.xy + R.yx, four[1], R.yz + R.zy, R.xz - R.zx},
                                {R.xz + R.zx, R.yz + R.zy, four[2], R.yx - R.xy}, {R.zy - R.yz, R.xz - R.zx, R.yx - R.xy, four[3]}};
    int most = 0;
    for (int k = 1; k < 4; ++k)
        if (four[k] > four[most]) most = k;
    double square = 0.0;
    for (int k = 0; k < 4; ++k) square += pairs[most][k] * pairs[most][k];
    const double scale = 1.0 / __builtin_sqrt(square);
    for (int k = 0; k < 4; ++k) q[k] = scale * pairs[most][k];
}

static int tree_attach(TreeModel *M, TreeWork *W, double *q, double *v, int number, int parent, const uint8_t *hold)
{
    TreeBody *b = &M->declared[number];
    if (b->kind != TREE_FREE) return TREE_NOT_FREE_JOINT;
    for (int up = parent; up >= 0; up = M->declared[up].parent)
        if (up == number) return TREE_WOULD_LOOP;
    tree_motion(M, q, v, NO_OFFSET, W->rows);
    note_momentum(M, W);
    /* the joint is set anew between the same two poses: placement at the parent's origin, all of it in q; velocity relative to the parent */
    const double *own = W->rows + 18 * M->slot[number];
    const Mat R_own = load_mat(own);
    Mat R_parent = IDENTITY;
    Vec p_parent = ZERO, w_parent = ZERO, v_parent = ZERO;
    if (parent >= 0) {
        const double *row = W->rows + 18 * M->slot[parent];
        R_parent = load_mat(row);
        p_parent = load_vec(row + 9);
        w_parent = load_vec(row + 12);
        v_parent = load_vec(row + 15);
    }
    const Vec r = sub(load_vec(own + 9), p_parent);
    const Mat R_parent_T = {R_parent.xx, R_parent.yx, R_parent.zx, R_parent.xy, R_parent.yy, R_parent.zy, R_parent.xz, R_parent.yz, R_parent.zz};
    put_vec3(q + b->q_index, tmul(R_parent, r));
    rotation_quaternion(matmul(R_parent_T, R_own), q + b->q_index + 3);
    put_vec3(v + b->v_index, tmul(R_own, sub(load_vec(own + 15), add(v_parent, cross(w_parent, r)))));
    put_vec3(v + b->v_index + 3, tmul(R_own, sub(load_vec(own + 12), w_parent)));
    put_mat(b->R_place, IDENTITY);
    put_vec3(b->p_place, ZERO);
    b->parent = parent;
    M->changed = 1;
    int held = 0;
    for (int k = 0; k < 6; ++k) {
        uint8_t *locked = M->locked + b->v_index + k;
        M->n_known += hold[k] - *locked;
        *locked = hold[k];
        held |= hold[k];
    }
    tree_arrange(M);
    if (held) jump(M, W, q, v);
    return TREE_DONE;
}

static void tree_set_inertia(TreeModel *M, int number, const TreeInertia *mass)
{
    M->mass[number] = *mass;
    M->changed = 1;
    tree_arrange(M);
}

void tree_operations(TreeOperations *out)
{
    *out = (TreeOperations){tree_motion, tree_integrate, tree_jacobian, tree_totals, tree_lock, tree_unlock, tree_attach, tree_set_inertia};
}
