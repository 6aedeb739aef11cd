"""Closed loops for other modules of the library: the C tables and the functions of a step. Equations: `tree_loops.pyx`."""

from libc.stdint cimport uint8_t

from rt_kernels.algebra.values cimport Vec3
from rt_kernels.multibody.tree cimport Tree, TreeModel, TreeWork


ctypedef struct Cut:
    int number[2]             # declared numbers of the bodies, -1: the inertial frame
    Vec3 point[2]             # cut centre on each, aligned frames
    int n_along               # rows of position: the gap along these axes is zero
    Vec3 along[3]             # first body's aligned frame
    int n_across              # rows of direction: an axis of the first body stands across one of the second
    Vec3 across[2][3]         # side, row: aligned frames
    int row                   # first constraint row
    Vec3 slide                # velocity of the second centre relative to the turning first body, inertial axes


ctypedef struct Loops:
    TreeModel *model
    TreeWork *work
    int n_cuts, n_rows
    int n_u, n_p              # independent and dependent coordinates
    Cut *cut
    int *u                    # v index of the independent coordinates
    int *p                    # v index of the dependent ones
    double *J                 # n_rows x nv
    double *c                 # n_rows
    double *f                 # n_rows: closure
    double *rows              # 18 per slot
    double *Ja                # 6 x nv, twice
    double *Jb
    double *LU                # n_rows x n_rows
    double *B                 # n_rows x (n_u + 1): H and h
    double *M                 # nv x nv
    double *bias              # nv
    double *A                 # n_u x n_u, twice
    double *A_solved
    double *b                 # n_u, twice
    double *b_solved
    double *x                 # nv
    double *y                 # nv
    double *force             # n_rows: lambda
    double *zero              # nv, zeros


cdef int loops_settle(Loops *L, double *q, double *v) noexcept nogil
cdef int loops_dynamics(Loops *L, const double *q, const double *v, double *tau, const double *f_ext, const uint8_t *known, double *a,
                        double *reaction) noexcept nogil


cdef class ClosedTree:
    cdef readonly Tree tree
    cdef readonly list independent
    cdef readonly list cuts
    cdef Loops loops
    cdef double *memory
    cdef int *indices
    cdef object _locked                # mask of the tree at construction
    cdef int _place(self, list sizes) except -1
    cdef int _fill(self, int i, int row, dict cut) except -1
