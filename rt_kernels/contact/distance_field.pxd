"""Signed distance to a body made of triangles, on a regular grid, and surface samples in a tree of balls that meet it.

    phi(p)   tricubic convolution of the nodes (Keys 1981, a = -1/2): it passes through them, phi and its gradient are continuous
    far      phi > 0 in the whole ball of centre c and radius r, if the nearest node says more than r + `slack`

The nodes within `band` of the surface hold the distance; beyond it, what is nearest to zero and certain of it (`signed_distance`). So |phi|
at a node is never more than the distance, and the distance changes by no more than the way. `slack` is the way to the nearest node,
sqrt(3)/2 cells, and the most by which the interpolation of such a function misses it, two cells.
"""

from libc.math cimport sqrt
from rt_kernels.algebra.values cimport Vec3, xyz

cdef enum:
    STENCIL = 4


cdef struct Field:
    const float *node      # (nx, ny, nz), m, positive outside of the body
    int n[3]
    int unused
    double origin[3]       # of node (0, 0, 0)
    double cell            # between two nodes, m
    double per_cell        # its inverse
    double slack
    double low[3]          # box of the body
    double high[3]


cdef struct Ball:
    # depth first: the next one outside of this ball is `skip`
    double centre[3]
    double radius
    int skip
    int first              # samples of a leaf
    int count              # 0: no leaf
    int unused


cdef inline void weights(double t, double *w, double *d) noexcept nogil:
    # of the four nodes around, and their derivatives by t, at t = 0..1 behind the second one
    w[0] = ((-0.5 * t + 1.0) * t - 0.5) * t
    w[1] = (1.5 * t - 2.5) * t * t + 1.0
    w[2] = ((-1.5 * t + 2.0) * t + 0.5) * t
    w[3] = (0.5 * t - 0.5) * t * t
    d[0] = (-1.5 * t + 2.0) * t - 0.5
    d[1] = (4.5 * t - 5.0) * t
    d[2] = (-4.5 * t + 4.0) * t + 0.5
    d[3] = (1.5 * t - 1.0) * t


cdef inline double along_z(const double *w, const double *x) noexcept nogil:
    return w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3]


cdef inline bint distance_at(const Field *f, Vec3 p, double *phi, Vec3 *gradient) noexcept nogil:
    """phi [m] and its gradient at p; False where the grid does not reach, which is outside of the body."""
    cdef double u[3]
    cdef double w[3][4]
    cdef double d[3][4]
    cdef int first[3]
    # sums over the lines along x, y and both, for the four nodes along z
    cdef double value[4]
    cdef double by_x[4]
    cdef double by_y[4]
    cdef double plane[4]
    cdef double plane_y[4]
    cdef const float *row
    cdef const float *r
    cdef int i, j, k
    u[0] = (p.x - f.origin[0]) * f.per_cell
    u[1] = (p.y - f.origin[1]) * f.per_cell
    u[2] = (p.z - f.origin[2]) * f.per_cell
    for i in range(3):
        if not (1.0 <= u[i] < f.n[i] - 2):
            return False
        first[i] = <int>u[i]
        weights(u[i] - first[i], w[i], d[i])
    row = f.node + (<size_t>(first[0] - 1) * f.n[1] + (first[1] - 1)) * f.n[2] + (first[2] - 1)
    for k in range(STENCIL):
        value[k] = by_x[k] = by_y[k] = 0.0
    for i in range(STENCIL):
        for k in range(STENCIL):
            plane[k] = plane_y[k] = 0.0
        for j in range(STENCIL):
            r = row + (<size_t>i * f.n[1] + j) * f.n[2]
            for k in range(STENCIL):
                plane[k] += w[1][j] * r[k]
                plane_y[k] += d[1][j] * r[k]
        for k in range(STENCIL):
            value[k] += w[0][i] * plane[k]
            by_x[k] += d[0][i] * plane[k]
            by_y[k] += w[0][i] * plane_y[k]
    phi[0] = along_z(w[2], value)
    gradient[0] = xyz(f.per_cell * along_z(w[2], by_x), f.per_cell * along_z(w[2], by_y), f.per_cell * along_z(d[2], value))
    return True


cdef inline double beyond(double x, double low, double high) noexcept nogil:
    return low - x if x < low else x - high if x > high else 0.0


cdef inline bint is_far(const Field *f, Vec3 c, double radius) noexcept nogil:
    """Is phi certainly above zero in the ball of centre c?"""
    cdef double dx = beyond(c.x, f.low[0], f.high[0]), dy = beyond(c.y, f.low[1], f.high[1]), dz = beyond(c.z, f.low[2], f.high[2])
    cdef double reach = radius + f.slack
    cdef int i, j, k
    if dx * dx + dy * dy + dz * dz > reach * reach:
        return True
    i = <int>((c.x - f.origin[0]) * f.per_cell + 0.5)
    j = <int>((c.y - f.origin[1]) * f.per_cell + 0.5)
    k = <int>((c.z - f.origin[2]) * f.per_cell + 0.5)
    # a box around the grid counts as near
    if i < 0 or j < 0 or k < 0 or i >= f.n[0] or j >= f.n[1] or k >= f.n[2]:
        return False
    return f.node[(<size_t>i * f.n[1] + j) * f.n[2] + k] > reach


cdef class DistanceField:
    cdef Field field
    cdef readonly object nodes
