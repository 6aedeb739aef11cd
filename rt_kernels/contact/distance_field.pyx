"""Signed distance of closed meshes: nodes of a grid from triangles (set-up), and Python access to `distance_field.pxd`.

The sign is that of the way from the nearest point of the surface against the pseudonormal there: of a face its normal, of an edge the sum
of both faces' normals, of a vertex the sum of the faces' normals, each times its angle (Baerentzen and Aanaes 2005).
"""

from libc.math cimport ceil, fabs, floor
from rt_kernels.algebra.values cimport Vec3, add, cross, dot, mul, neg, norm, sub, vec, xyz

import numpy as np

SLACK_CELLS = 2.0 + 0.5 * 3.0**0.5


cdef inline Vec3 nearest_of_triangle(Vec3 p, Vec3 a, Vec3 b, Vec3 c, int *feature) noexcept nogil:
    """Nearest point of the triangle; feature 0: face, 1 2 3: edges ab, bc, ca, 4 5 6: vertices a, b, c."""
    cdef Vec3 ab = sub(b, a), ac = sub(c, a), ap = sub(p, a), bp = sub(p, b), cp = sub(p, c)
    cdef double d1 = dot(ab, ap), d2 = dot(ac, ap), d3 = dot(ab, bp), d4 = dot(ac, bp), d5 = dot(ab, cp), d6 = dot(ac, cp)
    cdef double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2
    cdef double scale
    if d1 <= 0.0 and d2 <= 0.0:
        feature[0] = 4
        return a
    if d3 >= 0.0 and d4 <= d3:
        feature[0] = 5
        return b
    if d6 >= 0.0 and d5 <= d6:
        feature[0] = 6
        return c
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        feature[0] = 1
        return add(a, mul(d1 / (d1 - d3), ab))
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        feature[0] = 3
        return add(a, mul(d2 / (d2 - d6), ac))
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        feature[0] = 2
        return add(b, mul((d4 - d3) / ((d4 - d3) + (d5 - d6)), sub(c, b)))
    feature[0] = 0
    scale = 1.0 / (va + vb + vc)
    return add(a, add(mul(vb * scale, ab), mul(vc * scale, ac)))


cdef inline int first_node(double x, int count) noexcept nogil:
    # the first one not below x, in cells from the first of all
    return 0 if x < 0.0 else count if x > count else <int>ceil(x)


cdef inline int end_node(double x, int count) noexcept nogil:
    return 0 if x < -1.0 else count if x > count - 1 else <int>floor(x) + 1


cdef inline double least(double a, double b, double c) noexcept nogil:
    return min(a, min(b, c))


cdef struct Side:
    # half-space at + x i + y j + z k <= 0 of nodes that can be near a triangle
    double at
    double x
    double y
    double z


cdef inline Side side_of(Vec3 normal, Vec3 point, Vec3 origin, double cell, double band) noexcept nogil:
    """No further than the band beyond a plane; a normal that is none leaves all nodes."""
    cdef double size = norm(normal)
    cdef Vec3 n = mul(1.0 / size, normal) if size > 0.0 else normal
    cdef Side out
    out.at = dot(n, sub(origin, point)) - band
    out.x, out.y, out.z = cell * n.x, cell * n.y, cell * n.z
    return out


cdef void spread_triangle(double[:, :, ::1] node, const double *t, const double *normal, const double *origin, double cell,
                          double band) noexcept nogil:
    """Nodes nearer to this triangle than to those before, and than the band, take its signed distance. Along a line of nodes only those are
    looked at that are within the band of its plane, and of the planes through its edges."""
    cdef Vec3 a = vec(t), b = vec(t + 3), c = vec(t + 6), p, way, face = vec(normal), at = vec(origin)
    cdef Side side[5]
    cdef int low[3]
    cdef int high[3]
    cdef int n[3]
    cdef int axis, i, j, k, m, first, end, feature
    cdef double size, s, from_k, to_k
    n[0], n[1], n[2] = <int>node.shape[0], <int>node.shape[1], <int>node.shape[2]
    for axis in range(3):
        low[axis] = first_node((least(t[axis], t[3 + axis], t[6 + axis]) - band - origin[axis]) / cell, n[axis])
        high[axis] = end_node((-least(-t[axis], -t[3 + axis], -t[6 + axis]) + band - origin[axis]) / cell, n[axis])
    side[0], side[1] = side_of(face, a, at, cell, band), side_of(neg(face), a, at, cell, band)
    side[2] = side_of(cross(sub(b, a), face), a, at, cell, band)
    side[3] = side_of(cross(sub(c, b), face), b, at, cell, band)
    side[4] = side_of(cross(sub(a, c), face), c, at, cell, band)
    for i in range(low[0], high[0]):
        for j in range(low[1], high[1]):
            from_k, to_k = low[2], high[2] - 1
            for m in range(5):
                s = side[m].at + side[m].x * i + side[m].y * j
                if fabs(side[m].z) < 1e-9 * cell:
                    if s > 1e-9 * cell:
                        to_k = -1.0
                elif side[m].z > 0.0:
                    to_k = min(to_k, -s / side[m].z)
                else:
                    from_k = max(from_k, -s / side[m].z)
            first, end = first_node(from_k, n[2]), end_node(to_k, n[2])
            for k in range(first, end):
                p = add(at, xyz(i * cell, j * cell, k * cell))
                way = sub(p, nearest_of_triangle(p, a, b, c, &feature))
                size = norm(way)
                if size <= band and size < fabs(node[i, j, k]):
                    node[i, j, k] = size if dot(way, vec(normal + 3 * feature)) >= 0.0 else -size


def spread(double[:, :, ::1] node, const double[:, :, ::1] triangles, const double[:, :, ::1] normals, const double[::1] origin,
           double cell, double band):
    """Signed distances to `triangles` (n, 3, 3) into the nodes (infinite before the first call), as far as `band`. normals: (n, 7, 3) of
    face, edges ab, bc, ca and vertices a, b, c; of the face a unit vector. All in m."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(triangles.shape[0]):
            spread_triangle(node, &triangles[i, 0, 0], &normals[i, 0, 0], &origin[0], cell, band)


cdef class DistanceField:
    """nodes: (nx, ny, nz) float32 [m]; origin: (3,) of the first one; cell: m; low, high: (3,) box of the body. Raises ValueError for a
    grid of fewer than four nodes along an axis."""

    def __init__(self, nodes, origin, double cell, low, high):
        cdef int i
        self.nodes = np.ascontiguousarray(nodes, np.float32)
        if self.nodes.ndim != 3 or min(self.nodes.shape) < STENCIL or not cell > 0.0:
            raise ValueError(f"a field has at least {STENCIL} nodes along each of three axes and a cell above 0 m, got {self.nodes.shape} "
                             f"and {cell}")
        cdef const float[:, :, ::1] view = self.nodes
        self.field.node = &view[0, 0, 0]
        self.field.cell, self.field.per_cell, self.field.slack = cell, 1.0 / cell, SLACK_CELLS * cell
        for i in range(3):
            self.field.n[i] = self.nodes.shape[i]
            self.field.origin[i], self.field.low[i], self.field.high[i] = origin[i], low[i], high[i]

    def at(self, points):
        """phi (n,) [m], infinite where the grid does not reach, and its gradient (n, 3) at points (n, 3)."""
        cdef const double[:, ::1] p = np.ascontiguousarray(points, dtype=float).reshape(-1, 3)
        phi, gradient = np.full(p.shape[0], np.inf), np.zeros((p.shape[0], 3))
        cdef double[::1] v = phi
        cdef double[:, ::1] g = gradient
        cdef Vec3 slope
        cdef Py_ssize_t i
        for i in range(p.shape[0]):
            if distance_at(&self.field, vec(&p[i, 0]), &v[i], &slope):
                g[i, 0], g[i, 1], g[i, 2] = slope.x, slope.y, slope.z
        return phi, gradient

    def far(self, centres, double radius):
        """(n,) whether phi is certainly above zero in the balls of this radius [m] about centres (n, 3)."""
        cdef const double[:, ::1] c = np.ascontiguousarray(centres, dtype=float).reshape(-1, 3)
        return np.array([is_far(&self.field, vec(&c[i, 0]), radius) for i in range(c.shape[0])], dtype=bool)
