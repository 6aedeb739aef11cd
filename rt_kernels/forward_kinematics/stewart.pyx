"""Where the platform is: forward kinematics of the measured legs, a fixed number of SO(3) Newton steps from the previous pose.

The twist comes from the measured leg rates through the Jacobian and a first-order low-pass (`rate_filter_hz`): a leg rate is a
difference of measured lengths, and a length noise of 10 um alone is 14 mm/s at 1 kHz. It serves the bumpless closing of the loop, where
the motion is steady, and the inertia of what a moving load cell carries.
"""

from libc.string cimport memset

import math

from rt_kernels.algebra.values cimport pose, put_pose
from rt_kernels.codes cimport FORWARD_KINEMATICS_STATUS_LEG_MISSING
from rt_kernels.forward_kinematics.stewart_parameters cimport StewartForwardParameters, fill_stewart_forward
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting, relative_pose, relative_twist
from rt_kernels.stewart.platform cimport PLATFORM_NEAR_SINGULAR, Platform, PlatformParams, forward, platform_twist

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked

cdef enum:
    COLD_STEPS = 20

cdef struct Self:
    PlatformParams platform
    Mounting mounting
    StewartForwardParameters keys
    double keep         # of the low-pass
    int warm            # state: a pose has been found


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef double V[6]
    cdef int i
    sample.forward_kinematics_status = 0
    for i in range(6):
        if not (sample.measured_leg[i] > 0.0):
            sample.forward_kinematics_status = FORWARD_KINEMATICS_STATUS_LEG_MISSING
    if sample.forward_kinematics_status:
        return
    # the first pose is sought from the neutral one, every later one from its predecessor
    if not p.warm:
        put_pose(pose(p.platform.neutral), sample.X_WP_measured)
        sample.forward_kinematics_status = forward(&p.platform, sample.measured_leg, sample.X_WP_measured, COLD_STEPS)
        p.warm = sample.forward_kinematics_status == 0
    else:
        sample.forward_kinematics_status = forward(&p.platform, sample.measured_leg, sample.X_WP_measured, p.keys.newton_steps)
    if sample.forward_kinematics_status:
        return
    if platform_twist(&p.platform, sample.X_WP_measured, sample.measured_leg_rate, V) == 0:
        for i in range(6):
            sample.V_WP_measured[i] += p.keep * (V[i] - sample.V_WP_measured[i])
    else:
        sample.forward_kinematics_status |= PLATFORM_NEAR_SINGULAR
    relative_pose(&p.mounting, sample.X_WP_measured, sample.X_TA_measured)
    relative_twist(&p.mounting, sample.X_WP_measured, sample.V_WP_measured, sample.X_TA_measured, sample.V_TA_measured)


cdef class StewartForward(StagePart):
    """Forward kinematics of the measured legs."""

    PARAMETERS = (
        Parameter("newton_steps", "int", "-", "Newton steps a tick, from the pose of the previous tick", 3, low=1, high=20),
        Parameter("rate_filter_hz", "float", "Hz", "low-pass of the measured twist", 5.0, low=0.1, high=400.0),
    )
    CONTEXT = ("period_s", "platform", "mounting")
    cdef Self c

    def __init__(self, *, period_s, platform, mounting, **given):
        keys = checked(StewartForward.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.platform = (<Platform?>platform).params
        fill_mounting(&self.c.mounting, mounting)
        fill_stewart_forward(&self.c.keys, keys)
        self.c.keep = 1.0 - math.exp(-2.0 * math.pi * keys["rate_filter_hz"] * period_s)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.warm
        self.plug.state_size = sizeof(int)
        self.plug.step = step

    def state_fields(self):
        return {"warm": self.c.warm}

    def state_bounds(self):
        return {"warm": FLAG}

    def fields(self):
        return self.c
