"""Numbers of the faults that a stand in software can show; those of one place are a block.

Generated from channels.toml by tools/generate_channels.py: do not edit.
"""

cdef enum:
    INJECTION_CLEAR = 0  # everything whole again
    INJECTION_LEG_STUCK = 1  # a leg stands still
    INJECTION_LEG_SLOW = 2  # a leg follows at this share of its rate
    INJECTION_TRANSDUCER_OFFSET = 3  # the measured length of a leg jumps
    INJECTION_GAUGE_BROKEN = 4  # a gauge reads full scale, as a broken wire does
    INJECTION_GAUGE_SATURATED = 5  # a gauge is clipped at this value
    INJECTION_SENSOR_BIAS = 6  # a component of the wrench drifts off
    INJECTION_EXTERNAL_FORCE = 7  # something else pulls at the load cell
    INJECTION_CHAIN_TRIPPED = 8  # the independent emergency chain trips and blocks the hydraulics
    INJECTION_CHAIN_UNHEALTHY = 9  # the independent emergency chain is not healthy
    INJECTION_SUPPLY_LOSS = 10  # the hydraulic supply falls to the tank's pressure with this time constant
    INJECTION_LINE_BURST = 11  # the hose of a leg's chamber A opens to the air through an orifice of this area
    INJECTION_VALVE_STUCK = 12  # the spool of a leg's servo valve stays where it is
    INJECTION_SENSOR_LOST = 20  # every n-th record is not sent
    INJECTION_SENSOR_DUPLICATE = 21  # every n-th record is sent twice
    INJECTION_SENSOR_DELAY = 22  # records leave late: a gap, then old ones
    INJECTION_SENSOR_REORDER = 23  # every n-th record leaves after its successor
    INJECTION_SENSOR_ROLLOVER = 24  # the record sequence starts n before its roll-over
    INJECTION_SENSOR_STALE = 25  # the sample counter stands still, records go on
    INJECTION_SENSOR_STATUS_WORD = 26  # these bits are set in the status word
    INJECTION_SENSOR_CORRUPT = 27  # every n-th datagram is cut
    INJECTION_SENSOR_TAKEN_OVER = 28  # a second client takes the stream
    INJECTION_SENSOR_SILENT = 29  # the stream stops
    INJECTION_SENSOR_SATURATED = 30  # status word: gauge saturated
    INJECTION_SENSOR_OUT_OF_RANGE = 31  # status word: out of range (axia), else as saturated
    INJECTION_SENSOR_DEVICE_FAULT = 32  # status word: a fault of the device
    INJECTION_SENSOR_BUSY = 33  # status word: busy (axia)
    INJECTION_SENSOR_BROKEN_GAUGE = 34  # status word: broken gage (axia)
    INJECTION_SENSOR_THRESHOLD = 35  # status word: threshold latched, a warning only
    INJECTION_SENSOR_SUPPLY = 36  # status word: supply
    INJECTION_SENSOR_TEMPERATURE = 37  # status word: temperature
    INJECTION_DRIVE_SILENT = 50  # the node neither sends nor listens
    INJECTION_DRIVE_EMERGENCY = 51  # an emergency message with this code
    INJECTION_DRIVE_FAULT = 52  # fault state that a reset does not clear
    INJECTION_DRIVE_DISABLED = 53  # the axis leaves the enabled state by itself
    INJECTION_DRIVE_LOCAL = 54  # taken over at its own panel
    INJECTION_DRIVE_FOLLOWING_ERROR = 55  # control deviation bit
    INJECTION_DRIVE_LIMIT_TOUCHED = 56  # limit touched bit
    INJECTION_DRIVE_WRONG_LENGTH = 57  # actual values one byte short
    INJECTION_DRIVE_RESTART = 58  # the node restarts (boot-up message, pre-operational)
    INJECTION_DRIVE_NOT_FOLLOWING = 59  # enabled, but its setpoints are ignored: status bit 12 is 0
    INJECTION_DRIVE_HEARTBEAT_LOST = 60  # its heartbeat stops, all else goes on
    INJECTION_DRIVE_LOST = 61  # of n actual values only one is sent
    INJECTION_BUS_FAULT = 62  # the bus of a drive is off
    INJECTION_DRIVE_CORRUPT = 63  # a drive's answers are damaged
    INJECTION_LINK_SILENT = 80  # all nodes of the link fall silent, as after bus-off
    INJECTION_SIGNALS_SILENT = 90  # the input module neither sends nor listens
    INJECTION_SIGNALS_FAULT = 91  # emergency message of the input module
    INJECTION_ANALOGUE_CHAIN_UNREAD = 92  # the emergency chain cannot be read
    INJECTIONS_PLANT_FIRST = 1
    INJECTIONS_PLANT_LAST = 12
    INJECTIONS_SENSOR_FIRST = 20
    INJECTIONS_SENSOR_LAST = 37
    INJECTIONS_DRIVE_FIRST = 50
    INJECTIONS_DRIVE_LAST = 63
    INJECTIONS_LINK_FIRST = 80
    INJECTIONS_LINK_LAST = 80
    INJECTIONS_SIGNALS_FIRST = 90
    INJECTIONS_SIGNALS_LAST = 92
