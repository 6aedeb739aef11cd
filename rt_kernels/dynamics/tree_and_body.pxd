"""Free-flying tree and a body: what other parts of its kind use. Equations and frames: tree_and_body.pyx."""

cdef void solve6(double *A, double *b) noexcept nogil
