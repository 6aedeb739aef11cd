/* The scheme that bench_stewart.py compares with: forward kinematics of a hexapod by Newton steps whose rotation vector is added to
 * roll, pitch and yaw (the method of LinuxCNC's genhexkins, written anew from its description). It converges linearly, because a
 * rotation vector is not an increment of these angles. The 6x6 system is solved by elimination with row pivots. */
#include <math.h>

static int eliminate(double A[6][7])
{
    for (int k = 0; k < 6; k++) {
        int best = k;
        for (int i = k + 1; i < 6; i++)
            if (fabs(A[i][k]) > fabs(A[best][k]))
                best = i;
        if (!(fabs(A[best][k]) > 1e-14))
            return 1;
        if (best != k)
            for (int j = k; j < 7; j++) {
                double t = A[k][j];
                A[k][j] = A[best][j];
                A[best][j] = t;
            }
        for (int i = k + 1; i < 6; i++) {
            double f = A[i][k] / A[k][k];
            for (int j = k + 1; j < 7; j++)
                A[i][j] -= f * A[k][j];
        }
    }
    for (int i = 5; i >= 0; i--) {
        for (int j = i + 1; j < 6; j++)
            A[i][6] -= A[i][j] * A[j][6];
        A[i][6] /= A[i][i];
    }
    return 0;
}

/* pose: x y z roll pitch yaw, seed and result; returns the steps taken, or -1 */
static int forward(const double *base, const double *joint, const double *length, double *pose, double tolerance, int limit)
{
    for (int step = 1; step <= limit; step++) {
        double A[6][7], worst = 0.0;
        double sr = sin(pose[3]), cr = cos(pose[3]), sp = sin(pose[4]), cp = cos(pose[4]), sy = sin(pose[5]), cy = cos(pose[5]);
        double R[9] = {cp * cy, sr * sp * cy - cr * sy, cr * sp * cy + sr * sy,
                       cp * sy, sr * sp * sy + cr * cy, cr * sp * sy - sr * cy,
                       -sp, sr * cp, cr * cp};
        for (int i = 0; i < 6; i++) {
            const double *a = joint + 3 * i, *b = base + 3 * i;
            double rx = R[0] * a[0] + R[1] * a[1] + R[2] * a[2];
            double ry = R[3] * a[0] + R[4] * a[1] + R[5] * a[2];
            double rz = R[6] * a[0] + R[7] * a[1] + R[8] * a[2];
            double x = pose[0] + rx - b[0], y = pose[1] + ry - b[1], z = pose[2] + rz - b[2];
            double l = sqrt(x * x + y * y + z * z);
            x /= l, y /= l, z /= l;
            A[i][0] = x, A[i][1] = y, A[i][2] = z;
            A[i][3] = ry * z - rz * y, A[i][4] = rz * x - rx * z, A[i][5] = rx * y - ry * x;
            A[i][6] = length[i] - l;
            worst += fabs(A[i][6]);
        }
        if (worst < tolerance)
            return step - 1;
        if (eliminate(A))
            return -1;
        for (int i = 0; i < 6; i++)
            pose[i] += A[i][6];
    }
    return -1;
}

/* n cases; returns the sum of the steps, or -1 when one case is not found */
long forward_many(int n, const double *base, const double *joint, const double *lengths, double *poses, double tolerance, int limit)
{
    long total = 0;
    for (int i = 0; i < n; i++) {
        int steps = forward(base, joint, lengths + 6 * i, poses + 6 * i, tolerance, limit);
        if (steps < 0)
            return -1;
        total += steps;
    }
    return total;
}
