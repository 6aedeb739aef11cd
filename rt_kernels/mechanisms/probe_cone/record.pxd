"""Auxiliary channels as the kernel writes them.

Generated from record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct ProbeConeTouch:
    double depth  # [m] penetration
    double force  # [N] normal force
    double n[3]  # normal in T
    double r[3]  # [m] contact point in T


cdef struct ProbeConeRoller:
    double centre[3]  # [m] roller centre in T
    double depth  # [m] penetration
    double force  # [N] normal force
    double r[3]  # [m] contact point in T


cdef struct ProbeConeLatch:
    double angle  # [rad] rotation into the head
    double phase  # 0 free, 1 pressed, 2 fired
    double force  # [N] spring reaction
    double tip[3]  # [m] outermost point at rest, in T
    double groove_depth  # [m] penetration in the groove
    double groove_force  # [N] normal force in the groove


cdef struct ProbeConeSensor:
    double angle  # [rad] lever rotation
    double phase  # 0 free, 1 pressed, 2 released
    double force  # [N] spring reaction
    double centre[3]  # [m] circle centre at rest, in T


cdef struct ProbeConeSpring:
    double stroke  # [m] stroke of the lateral spring
    double rate  # [m/s] its rate
    double force  # [N] its force
    double spare  # 0


cdef struct ProbeConeCrank:
    double angle  # [rad] crank angle from zero swing
    double rate  # [rad/s] crank rate
    double torque  # [N.m] magnetic torque
    double stop  # [N.m] torque of the stop


cdef struct ProbeConeDrive:
    double angle  # [rad] output shaft
    double rate  # [rad/s] output shaft
    double wheel_a  # [rad] wheel a
    double wheel_b  # [rad] wheel b
    double wheel_a_rate  # [rad/s] wheel a
    double wheel_b_rate  # [rad/s] wheel b
    double sign  # 1 retracts, -1 extends
    double load  # [N.m] load on the output shaft


cdef struct ProbeConeJoint:
    double bend[2]  # [N.m] bend_y, bend_z: moment
    double twist  # [N.m] moment
    double stiffening  # L_0/L


cdef struct ProbeConeMovable:
    double x  # [m] position of the movable limiter
    double rate  # [m/s] its rate
    double spring  # [N] spring force
    double stop  # [N] stop force


cdef struct ProbeConePusher:
    double gap  # [m] gap between the docking planes
    double force  # [N] force


cdef struct ProbeConeCover:
    double x  # [m] deformation of the hatch cover
    double v  # [m/s] its rate
    double force  # [N] its force


cdef struct ProbeConeInvalid:
    double part  # what was first beyond the valid range of its law, 0: nothing, else as `INVALID` of the unit
    double number  # which of them
    double value  # [SI] how far it was
    double limit  # [SI] how far its law holds
    double at[3]  # [m] place of the contact in T
    double time  # [s] time of the unit at which it was


cdef struct ProbeConeStored:
    double kinetic  # [J] relative to the base
    double contact  # [J] stored in contacts
    double axial  # [J] stored in the axial damper
    double bend  # [J] stored in bending
    double twist  # [J] stored in torsion
    double lateral  # [J] stored in the lateral damper
    double latch  # [J] stored in latches and levers
    double limiter  # [J] stored in the movable limiter
    double pusher  # [J] stored in the pushers


cdef struct ProbeConeLost:
    double contact  # [J] normal contact damping
    double friction  # [J] contact friction
    double screw  # [J] ball screw friction
    double brake  # [J] axial magnetic brakes
    double axial  # [J] hysteresis and slip of the axial damper
    double bend  # [J] hysteresis of bending
    double twist  # [J] hysteresis of torsion
    double lateral  # [J] hysteresis of the lateral springs
    double lateral_brake  # [J] lateral magnetic brakes and their stops
    double latch  # [J] latches and levers at release
    double limiter  # [J] movable limiter
    double damping  # [J] structural damping


cdef struct ProbeConeRecord:
    double q[7]  # [rad, m] swing_y; swing_z; bend_y; bend_z; twist; length; limiter
    # [rad/s, m/s] rate of swing_y; rate of swing_z; rate of bend_y; rate of bend_z; rate of twist; rate of length; rate of limiter
    double v[7]
    # [rad/s2, m/s2] acceleration of swing_y; acceleration of swing_z; acceleration of bend_y; acceleration of bend_z; acceleration of
    # twist; acceleration of length; acceleration of limiter
    double acceleration[7]
    double head[3]  # [m] head centre in T
    double head_v[3]  # [m/s] velocity of the head centre in T
    double axis[3]  # probe axis in T
    double head_w[3]  # [rad/s] angular velocity of the probe in T
    double contact[6]  # [N, N.m] contacts on the probe about A, A axes
    double lever[6]  # [N, N.m] contacts on the swinging body about A, A axes
    double limiter[6]  # [N, N.m] contacts on the limiter about A, A axes
    ProbeConeTouch head_contact[3]
    ProbeConeTouch lining[8]
    ProbeConeRoller roller[3]
    ProbeConeLatch latch[4]
    ProbeConeSensor sensor[2]
    ProbeConeSpring spring[2]
    ProbeConeCrank brake[2]
    double stroke  # [m] stroke of the probe, negative in compression
    double stroke_rate  # [m/s] its rate
    double nut_angle  # [rad] nut angle
    double nut_rate  # [rad/s] nut rate
    double clutch_angle  # [rad] clutch input relative to output
    double clutch_moment  # [N.m] m_FR at the nut
    double clutch_slip  # [rad] slip of the main clutch (FrT, FrT2)
    double clutch_slip1  # [rad] slip of FrT1
    double axial_brake  # [N] limit of the axial magnetic brakes
    double screw_limit  # [N] limit of the screw friction
    double axial_friction  # [N] friction and brakes on the stroke
    double travel_stop  # [N] end stop of the stroke
    ProbeConeDrive drive
    ProbeConeJoint joint
    ProbeConeMovable movable
    ProbeConePusher pusher[4]
    ProbeConeCover cover
    ProbeConeStored stored
    double energy_stored  # [J] sum of the stored energies
    ProbeConeLost lost
    double energy_lost  # [J] sum of the losses
    double energy_supplied  # [J] work of target and drive on the mechanism
    double base[6]  # [N, N.m] wrench on the base, last sub-step, A axes
    double target[6]  # [N, N.m] wrench on the target at T, last sub-step, T axes
    double base_p[3]  # [m] place of A in T
    double base_w[3]  # [rad/s] angular velocity of A relative to T
    double plane_gap  # [m] widest gap between the docking planes, of the four at the pushers
    double penetration  # [m] deepest contact of the tick
    double over_limit  # ticks in which a law was used beyond its valid range
    double commands  # command bits
    double time  # [s] time of the unit
    # [SI] mass_swing_y, mass_swing_z, mass_bend_y, mass_bend_z, mass_twist, mass_length, mass_limiter: diagonal of the mass matrix
    double mass[7]
    # [SI] bias_swing_y, bias_swing_z, bias_bend_y, bias_bend_z, bias_twist, bias_length, bias_limiter: inertia force without accelerations
    double bias[7]
    # [SI] generalised_swing_y, generalised_swing_z, generalised_bend_y, generalised_bend_z, generalised_twist, generalised_length,
    # generalised_limiter: generalised force
    double generalised[7]
    ProbeConeInvalid invalid
