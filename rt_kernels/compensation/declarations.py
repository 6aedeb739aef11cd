"""Keys that several compensators share, and the constants they are filled from."""

from rt_kernels.compensation.effective_mass import at_active_port, relative_inverse_inertia
from rt_kernels.parameters import Parameter

LEAD_PARAMETERS = (
    Parameter("order", "int", "-", "1: velocity lead, 2: velocity and acceleration lead", 2, low=1, high=2),
    Parameter("lead_factor", "float", "-", "multiplies both leads: 1 unless the effect of a wrong drive model is studied", 1.0,
              low=0.0, high=2.0),
    Parameter("lead_rate_max_m_s", "float", "m/s", "the lead moves no faster; none: the legs' own limit", None, low=1e-4, high=10.0),
    Parameter("lead_acceleration_max_m_s2", "float", "m/s2", "nor with more acceleration; none: the legs' own limit", None,
              low=1e-3, high=1e4),
)  # fmt: skip

POSE_FORCE_PARAMETERS = (
    Parameter("stiffness_n_per_m", "float", "N/m", "stiffness of the contact along its own direction (prior)", 0.0, low=0.0, high=1e10),
    Parameter("stiffness_rows", "rows", "N/m, N, N.m", "6x6 stiffness at and in T instead of the scalar; none: along the wrench",
              None, shape=(6, 6)),
    Parameter("damping_n_s_per_m", "float", "N.s/m", "damping of the contact", 0.0, low=0.0, high=1e8),
    Parameter("estimate", "bool", "-", "the stiffness follows a recursive estimate, within 0.5...1.5 of the prior", False),
    Parameter("forgetting", "float", "-", "of the estimate, per tick that is learnt from", 0.998, low=0.9, high=1.0),
    Parameter("excitation_m", "float", "m", "the estimate learns from changes of pose above this", 2e-5, low=1e-9, high=0.1),
    Parameter("stiffness_factor", "float", "-", "multiplies the stiffness: 1 unless the effect of a wrong one is studied", 1.0,
              low=0.0, high=3.0),
)  # fmt: skip


def lead_inertia(vehicles, start):
    """Wrench on the target at and in T to relative acceleration as in A_TA, (6, 6), at the nominal first contact."""
    return at_active_port(start.X_TA) @ relative_inverse_inertia(vehicles, start.X_TA)
