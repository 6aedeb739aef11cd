"""Round elastic pad on the target unit; the nose of the active unit, at the origin of A, meets it along the docking axis X of T.

    f = k depth        on the target along X, while depth = x of the nose in T > 0; no friction
"""

from libc.string cimport memset

from my_parts.pad_parameters cimport PadParameters, fill_pad
from rt_kernels.algebra.values cimport Pose, Vec3, cross, neg, pose, put_wrench, wrench_of, wrench_to_child, xyz
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.parameters import Aux, Parameter, checked
from rt_kernels.pictures import ACTIVE, TARGET, Bar, Looks, Mimic, Picture, Shape, circle


cdef struct Self:
    PadParameters keys


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Vec3 f, m
    memset(out, 0, sizeof(MechanismOutput))
    aux[0] = X_TA.p.x
    if X_TA.p.x <= 0.0:
        return
    # force on the target at the nose, its moment about the origin of T; the opposite on the active vehicle, at and in A
    f = xyz((<Self *>self).keys.stiffness * X_TA.p.x, 0.0, 0.0)
    m = cross(X_TA.p, f)
    put_wrench(wrench_of(f, m), out.F_T)
    put_wrench(wrench_to_child(X_TA, wrench_of(neg(f), neg(m))), out.F_A)
    out.signals = MECHANISM_SIGNAL_DK1


class PadPicture(Picture):
    """Pad as a ring, nose as a line, depth as a bar."""

    MIMIC = Mimic(("side",), (1, 2), (4,), (("bars", {"place": "axial"}),))

    def build(self, m):
        pad = Shape("T", TARGET, [circle(0.0, m["radius_m"])], "pad")
        nose = Shape("A", ACTIVE, [[[-0.3, 0.0, 0.0], [0.0, 0.0, 0.0]]], "nose")
        return Looks(2.0 * m["radius_m"], [pad, nose], [Bar("depth", "pad.depth", 0, "m", 0.05, "axial")])

    def bodies(self, values, X_TA):
        return {}, {}

    def touching(self, values):
        return ["pad"] if values.get("pad.depth", 0.0) > 0.0 else []


cdef class Pad(MechanismPart):
    """Elastic pad and nose."""

    PARAMETERS = (
        Parameter("stiffness_n_per_m", "float", "N/m", "of the pad", low=1.0, high=1e8),
        Parameter("radius_m", "float", "m", "of the pad, for the picture", 0.2, low=0.01, high=2.0),
    )
    AUX = (Aux("pad.depth", "m", "nose below the surface of the pad, negative: gap"),)
    PICTURE = PadPicture
    cdef Self c

    def __init__(self, **given):
        fill_pad(&self.c.keys, checked(self.PARAMETERS, given))
        self.plug.self = &self.c
        self.plug.advance = advance

    def max_penetration(self, X_TA):
        """Depth at the relative pose X_TA (7), m; negative: a gap."""
        return float(X_TA[0])
