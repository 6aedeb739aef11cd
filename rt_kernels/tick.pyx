"""The way of one sample: rows 2 to 9 of the table in the README, in this order, nothing else.

A pure function of the sample, the stages' states and the inputs that the ports have put into the sample.
"""


cdef inline void locate_platform(Line *line) noexcept nogil:
    line.locator.stage.step(line.locator.stage.self, &line.sample, line.locator.aux)


cdef inline void condition_wrench(Line *line) noexcept nogil:
    line.wrench.stage.step(line.wrench.stage.self, &line.sample, line.wrench.aux)


cdef inline void detect_events(Line *line) noexcept nogil:
    line.event_detector.stage.step(line.event_detector.stage.self, &line.sample, line.event_detector.aux)


cdef inline void choose_phase(Line *line) noexcept nogil:
    line.guidance.stage.step(line.guidance.stage.self, &line.sample, line.guidance.aux)


cdef inline void compensate(Line *line) noexcept nogil:
    line.compensator.stage.step(line.compensator.stage.self, &line.sample, line.compensator.aux)


cdef inline void advance(Line *line) noexcept nogil:
    line.dynamics.stage.step(line.dynamics.stage.self, &line.sample, line.dynamics.aux)


cdef inline void place_platform(Line *line) noexcept nogil:
    line.placer.stage.step(line.placer.stage.self, &line.sample, line.placer.aux)


cdef inline void limit_setpoints(Line *line) noexcept nogil:
    line.safety.stage.step(line.safety.stage.self, &line.sample, line.safety.aux)


cdef void tick(Line *line) noexcept nogil:
    locate_platform(line)
    condition_wrench(line)
    detect_events(line)
    choose_phase(line)
    compensate(line)
    advance(line)
    place_platform(line)
    limit_setpoints(line)
