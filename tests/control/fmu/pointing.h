/* The controller of pointing.py, in C: put into the place of that of controller.c. */
enum { Q, GYRO = 4, HOLD = 7, PRESS, WING, WING_RATE, WHEEL, DRIVE = 14, ARM, THRUST, HOLDING, INERTIA,
       HOLD_HZ = 21, WHEEL_MAX, DRIVE_INERTIA, DRIVE_HZ, DRIVE_MAX, SUN_X, SUN_Z, ARM_ANGLE, FORCE, COUNT };

typedef struct {
    double v[COUNT]; /* by value reference; Boolean as numbers */
    double held[4];
} model;

static model *create(void)
{
    model *m = calloc(1, sizeof *m);
    m->v[Q + 3] = 1.0;
    m->v[SUN_Z] = 1.0;
    return m;
}

static double within(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

static void outputs(model *m)
{
    const double turn = 6.283185307179586;
    double *v = m->v, *q = v + Q, *w = v + GYRO, *r = m->held;
    double x = q[0], y = q[1], z = q[2], s = q[3];
    v[HOLDING] = v[HOLD] != 0.0;
    if (v[HOLDING] == 0.0)
        r[0] = r[1] = r[2] = r[3] = 0.0;
    else if (r[0] == 0.0 && r[1] == 0.0 && r[2] == 0.0 && r[3] == 0.0)
        for (int i = 0; i < 4; i++)
            r[i] = q[i];
    /* the turn from the held attitude, axes of the craft */
    double e[3] = {r[3] * x - r[0] * s - r[1] * z + r[2] * y, r[3] * y - r[1] * s - r[2] * x + r[0] * z,
                   r[3] * z - r[2] * s - r[0] * y + r[1] * x};
    double side = r[3] * s + r[0] * x + r[1] * y + r[2] * z < 0.0 ? -2.0 : 2.0, f = turn * v[HOLD_HZ];
    for (int i = 0; i < 3; i++)
        v[WHEEL + i] = v[HOLDING] != 0.0 ? within(v[INERTIA + i] * (f * f * (side * e[i]) + 1.4 * f * w[i]), v[WHEEL_MAX]) : 0.0;
    /* the sun on the axes of the craft, how it turns there, the angle of the drive to it */
    double bx = (1.0 - 2.0 * (y * y + z * z)) * v[SUN_X] + 2.0 * (x * z - y * s) * v[SUN_Z];
    double by = 2.0 * (x * y - z * s) * v[SUN_X] + 2.0 * (y * z + x * s) * v[SUN_Z];
    double bz = 2.0 * (x * z + y * s) * v[SUN_X] + (1.0 - 2.0 * (x * x + y * y)) * v[SUN_Z];
    double rx = by * w[2] - bz * w[1], rz = bx * w[1] - by * w[0];
    double rate = (rx * bz - bx * rz) / (bx * bx + bz * bz);
    f = turn * v[DRIVE_HZ];
    v[DRIVE] = within(v[DRIVE_INERTIA] * (f * f * (atan2(bx, bz) - v[WING]) + 2.0 * f * (rate - v[WING_RATE])), v[DRIVE_MAX]);
    v[ARM] = v[ARM_ANGLE];
    v[THRUST] = v[PRESS] != 0.0 ? v[FORCE] : 0.0;
}

static int advance(model *m, double t, double h, int *end)
{
    (void)t, (void)h, (void)end;
    outputs(m);
    return 0;
}

static int begin(model *m) { (void)m; return 0; }

static double value(const model *m, unsigned r) { return m->v[r]; }
