"""The stages of a tick. Generated from channels.toml by tools/generate_channels.py: do not edit."""

# role, what it does, writers whose fields of this tick it reads, and of the tick before: in the order of the tick
STAGES = (
    ("forward_kinematics", "measured legs to the achieved relative pose", ('ports',), ()),  # noqa: E501
    ("wrench", "raw record of the force sensor to the wrench at the docking port", ('clock', 'ports', 'forward_kinematics'), ()),  # noqa: E501
    ("events", "contacts and mechanism signals to events", ('clock', 'ports', 'wrench'), ('guidance',)),  # noqa: E501
    ("guidance", "phase of the run, programmed motion, what the control is to do, commands to the mechanism", ('clock', 'ports', 'forward_kinematics', 'wrench', 'events'), ('dynamics', 'safety')),  # noqa: E501
    ("control", "wrenches of both crafts' own actuators: press thrust, thrusters, wheels", ('clock', 'ports', 'forward_kinematics', 'wrench', 'events', 'guidance'), ('dynamics',)),  # noqa: E501
    ("compensation", "takes the delay of the loop out of wrench and setpoints", ('clock', 'ports', 'forward_kinematics', 'wrench', 'events', 'guidance', 'control'), ('dynamics', 'setpoint_kinematics')),  # noqa: E501
    ("dynamics", "how the vehicles move under the wrench", ('clock', 'ports', 'forward_kinematics', 'events', 'guidance', 'control', 'compensation'), ()),  # noqa: E501
    ("setpoint_kinematics", "relative pose to platform pose and legs", ('clock', 'guidance', 'compensation', 'dynamics'), ()),  # noqa: E501
    ("safety", "limits setpoints, trips", ('clock', 'ports', 'forward_kinematics', 'wrench', 'events', 'guidance', 'control', 'compensation', 'dynamics', 'setpoint_kinematics'), ()),  # noqa: E501
)
STAGE_ROLES = tuple(role for role, *_ in STAGES)

# what a stage was called in logs and files of earlier versions -> its role
FORMER_ROLES = {"locators": "forward_kinematics", "event_detectors": "events", "compensators": "compensation", "placers": "setpoint_kinematics"}  # noqa: E501
