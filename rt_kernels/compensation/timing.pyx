# distutils: extra_compile_args = -O1
"""What a stage costs: its step called many times in a row from C, timed with the monotonic clock. For benchmarks only."""

from libc.stdint cimport int64_t

import numpy as np

from rt_kernels.host cimport host_now
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample


def step_times(StagePart part, sample, int batches=200, int steps=200):
    """Seconds a step, one number per batch, shape (batches,). sample: array of one record; its V_TA sways, so that nothing is constant."""
    cdef unsigned char[::1] view = sample.view(np.uint8)
    cdef double[::1] aux = np.zeros(64)
    cdef double[::1] out = np.zeros(batches)
    cdef Sample *s = <Sample *>&view[0]
    cdef int64_t begin
    cdef int i, k
    with nogil:
        for i in range(batches):
            begin = host_now()
            for k in range(steps):
                s.V_TA[0] = 1e-4 * k
                s.X_TA[0] = 1e-6 * k
                s.F_T[0] = 100.0 + k
                part.plug.step(part.plug.self, s, &aux[0])
            out[i] = 1e-9 * (host_now() - begin) / steps
    return np.asarray(out)
