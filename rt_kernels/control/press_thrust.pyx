# distutils: extra_compile_args = -O1
"""Press thrust of the docking sequence and damping of the active craft's rates: ideal actuators, the target craft drifts.

    press      +thrust_n along X of the active port, from the first contact until the guidance sees the probe at the bottom (Yaskevich
               2020, 6.2) or gives up
    retreat    -thrust_n
    attitude   moment -k w, w: angular velocity of the active craft in N on its own axes

The wrench acts at the centre of mass C on the axes of the craft.
"""

from libc.string cimport memset

from rt_kernels.algebra.values cimport Vec3, mul, put, quat, rotate_back, vec
from rt_kernels.codes cimport CONTROL_REQUEST_ATTITUDE, CONTROL_REQUEST_PRESS, CONTROL_REQUEST_RETREAT, CONTROL_STATUS_ATTITUDE
from rt_kernels.control.outputs cimport no_control, thrust_along
from rt_kernels.control.press_thrust_parameters cimport PressThrustParameters, fill_press_thrust
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter, checked

cdef struct Self:
    double thrust               # N
    double axis[3]              # that it acts along, craft axes
    PressThrustParameters keys


cdef void step(void *self, Sample *o, double *aux) noexcept nogil:
    cdef const Self *p = <const Self *>self
    cdef Vec3 w
    no_control(o)
    if o.control_request & CONTROL_REQUEST_PRESS:
        thrust_along(p.axis, p.thrust, o.control_A)
    elif o.control_request & CONTROL_REQUEST_RETREAT:
        thrust_along(p.axis, -p.thrust, o.control_A)
    if o.control_request & CONTROL_REQUEST_ATTITUDE and p.keys.attitude_rate_gain > 0.0:
        w = rotate_back(quat(o.X_NC + 3), vec(o.V_NC + 3))
        put(mul(-p.keys.attitude_rate_gain, w), o.control_A + 3)
        o.control_status |= CONTROL_STATUS_ATTITUDE


cdef class PressThrust(StagePart):
    """Thrust along the docking axis as the sequence asks for it, rates damped until capture."""

    PARAMETERS = (
        Parameter("attitude_rate_gain_n_m_s_per_rad", "float", "N.m.s/rad", "damping of the active craft's rates until capture", 0.0,
                  low=0.0),
    )
    CONTEXT = ("vehicles",)
    cdef Self c

    def __init__(self, *, vehicles, **given):
        memset(&self.c, 0, sizeof(Self))
        fill_press_thrust(&self.c.keys, checked(PressThrust.PARAMETERS, given))
        self.c.thrust = vehicles.active.thrust_n
        self.c.axis = vehicles.active.docking_axis
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.step = step

    def fields(self):
        return self.c
