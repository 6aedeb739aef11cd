"""Pointing of a craft: attitude held by wheels, a wing turned to the sun by its drive, an arm taken to an angle by its servo.

    wheels   motor torque I (W^2 phi + 1.4 W w): phi turn from the attitude at the first request, w rates of the gyroscope
    drive    torque I (F^2 (a - x) + 2 F (a' - x')): a angle at which the wing faces the sun, x that of its joint
    arm      target angle for the servo of its joint

W, F: 2 pi times a frequency. Goes into an FMU by pythonfmu (FMI 2.0, pointing2.py) and pythonfmu3 (FMI 3.0, pointing3.py), in C as
pointing.h; the operations have the same order everywhere.
"""

from math import atan2

NUMBERS = (*(f"q{i}" for i in range(4)), *(f"gyro{i}" for i in range(3)), "wing", "wing_rate")
SWITCHES = ("hold", "press")
OUTPUTS = ("wheel0", "wheel1", "wheel2", "drive", "arm", "thrust")
PARAMETERS = ("inertia0", "inertia1", "inertia2", "hold_hz", "wheel_max", "drive_inertia", "drive_hz", "drive_max", "sun_x", "sun_z",
              "arm_angle", "force")  # fmt: skip
TURN = 6.283185307179586


def within(x, limit):
    return limit if x > limit else -limit if x < -limit else x


def start(m):
    """Attributes of a controller before its first step."""
    for name in (*NUMBERS, *OUTPUTS, *PARAMETERS):
        setattr(m, name, 0.0)
    m.q3 = m.sun_z = 1.0
    m.hold = m.press = m.holding = False
    m.held = None


def declare(m, number, switch, causality, variability):
    """The variables of an FMU, which starts as it declares them; number and switch make one of its FMI version."""
    start(m)
    for name in NUMBERS:
        m.register_variable(number(name, causality=causality.input))
    for name in SWITCHES:
        m.register_variable(switch(name, causality=causality.input, variability=variability.discrete))
    for name in OUTPUTS:
        m.register_variable(number(name, causality=causality.output))
    m.register_variable(switch("holding", causality=causality.output, variability=variability.discrete))
    for name in PARAMETERS:
        m.register_variable(number(name, causality=causality.parameter, variability=variability.tunable))


def advance(m):
    """The outputs of a controller with these attributes from its inputs."""
    x, y, z, s = m.q0, m.q1, m.q2, m.q3
    w = (m.gyro0, m.gyro1, m.gyro2)
    m.holding = m.hold
    if not m.holding:
        m.held = None
    elif m.held is None:
        m.held = (x, y, z, s)
    r = m.held or (0.0, 0.0, 0.0, 0.0)
    # the turn from the held attitude, axes of the craft
    e = (r[3] * x - r[0] * s - r[1] * z + r[2] * y, r[3] * y - r[1] * s - r[2] * x + r[0] * z, r[3] * z - r[2] * s - r[0] * y + r[1] * x)
    side = -2.0 if r[3] * s + r[0] * x + r[1] * y + r[2] * z < 0.0 else 2.0
    f = TURN * m.hold_hz
    for i, inertia in enumerate((m.inertia0, m.inertia1, m.inertia2)):
        torque = within(inertia * (f * f * (side * e[i]) + 1.4 * f * w[i]), m.wheel_max) if m.holding else 0.0
        setattr(m, f"wheel{i}", torque)
    # the sun on the axes of the craft, how it turns there, the angle of the drive to it
    bx = (1.0 - 2.0 * (y * y + z * z)) * m.sun_x + 2.0 * (x * z - y * s) * m.sun_z
    by = 2.0 * (x * y - z * s) * m.sun_x + 2.0 * (y * z + x * s) * m.sun_z
    bz = 2.0 * (x * z + y * s) * m.sun_x + (1.0 - 2.0 * (x * x + y * y)) * m.sun_z
    rx, rz = by * w[2] - bz * w[1], bx * w[1] - by * w[0]
    rate = (rx * bz - bx * rz) / (bx * bx + bz * bz)
    f = TURN * m.drive_hz
    m.drive = within(m.drive_inertia * (f * f * (atan2(bx, bz) - m.wing) + 2.0 * f * (rate - m.wing_rate)), m.drive_max)
    m.arm = m.arm_angle
    m.thrust = m.force if m.press else 0.0
