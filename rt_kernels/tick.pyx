"""The way of one sample: the stages in the order of the table, nothing else.

A pure function of the sample, the stages' states and the inputs that the ports have put into the sample.
Generated from channels.toml by tools/generate.py: do not edit.
"""


cdef inline void run(PlacedStage *place, Sample *sample) noexcept nogil:
    place.stage.step(place.stage.self, sample, place.aux)


cdef inline void forward_kinematics(Line *line) noexcept nogil:
    # measured legs to the achieved relative pose
    run(&line.stage[STAGE_FORWARD_KINEMATICS], &line.sample)


cdef inline void wrench(Line *line) noexcept nogil:
    # raw record of the force sensor to the wrench at the docking port
    run(&line.stage[STAGE_WRENCH], &line.sample)


cdef inline void events(Line *line) noexcept nogil:
    # contacts and mechanism signals to events
    run(&line.stage[STAGE_EVENTS], &line.sample)


cdef inline void guidance(Line *line) noexcept nogil:
    # phase of the run, programmed motion, requests to the control, commands to the mechanism
    run(&line.stage[STAGE_GUIDANCE], &line.sample)


cdef inline void control(Line *line) noexcept nogil:
    # wrenches of both crafts' own actuators: press thrust, thrusters, wheels; joints
    run(&line.stage[STAGE_CONTROL], &line.sample)


cdef inline void compensation(Line *line) noexcept nogil:
    # compensates loop delay in wrench and setpoints
    run(&line.stage[STAGE_COMPENSATION], &line.sample)


cdef inline void dynamics(Line *line) noexcept nogil:
    # motion of the vehicles under the wrench
    run(&line.stage[STAGE_DYNAMICS], &line.sample)


cdef inline void setpoint_kinematics(Line *line) noexcept nogil:
    # relative pose to platform pose and legs
    run(&line.stage[STAGE_SETPOINT_KINEMATICS], &line.sample)


cdef inline void safety(Line *line) noexcept nogil:
    # limits setpoints, trips
    run(&line.stage[STAGE_SAFETY], &line.sample)


cdef void tick(Line *line) noexcept nogil:
    forward_kinematics(line)
    wrench(line)
    events(line)
    guidance(line)
    control(line)
    compensation(line)
    dynamics(line)
    setpoint_kinematics(line)
    safety(line)
