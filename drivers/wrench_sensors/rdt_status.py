"""Status words of the RDT family as data: (bit, what it says, class in the table's `sensor_status`), one list per product family.

The families do not share a list. Bit 31 is a summary: a word that says nothing else is a device fault (except the bits below that are
only warnings). Sources: ATI Net F/T and Ethernet Axia manuals; the OnRobot/OptoForce word is not public: any set bit is a device fault.
"""

from rt_kernels.layout import BITS

SENSOR_STATUS = BITS["sensor_status"]

NET_FT = (
    (30, "CPU or RAM error", "device_fault"),
    (29, "digital board error", "device_fault"),
    (28, "analog board error", "device_fault"),
    (27, "serial link to the analog board", "device_fault"),
    (26, "program memory verification", "device_fault"),
    (25, "halted, configuration errors", "device_fault"),
    (24, "settings validation error", "device_fault"),
    (23, "configuration does not fit the calibration", "device_fault"),
    (22, "network communication failure", "device_fault"),
    (21, "CAN communication error", "warning"),
    (20, "RDT communication error", "device_fault"),
    (19, "EtherNet/IP failure", "warning"),
    (18, "DeviceNet failure", "warning"),
    (17, "transducer saturation or A/D error", "saturated"),
    (16, "monitor condition latched", "warning"),
    (14, "watchdog time-out", "device_fault"),
    (13, "stack check error", "device_fault"),
    (12, "serial EEPROM failure", "device_fault"),
    (11, "serial flash failure", "device_fault"),
    (10, "analog board watchdog", "device_fault"),
    (9, "gage excitation current too high", "supply"),
    (8, "gage excitation current too low", "supply"),
    (7, "artificial analog ground out of range", "device_fault"),
    (6, "analog supply too high", "supply"),
    (5, "analog supply too low", "supply"),
    (4, "serial link data unavailable", "device_fault"),
    (3, "reference voltage or power monitoring", "supply"),
    (2, "internal temperature", "temperature"),
    (1, "HTTP failure", "warning"),
)

AXIA = (
    (30, "force or torque out of range", "out_of_range"),
    (29, "calibration checksum", "device_fault"),
    (28, "simulated error", "device_fault"),
    (27, "gage out of range", "saturated"),
    (16, "monitor condition latched", "warning"),
    (7, "calibration not accessible", "device_fault"),
    (5, "other error", "device_fault"),
    (3, "busy", "busy"),
    (2, "broken gage", "broken_wire"),
    (1, "supply outside 12...32 V", "supply"),
    (0, "internal temperature outside -5...70 degC", "temperature"),
)

ONROBOT: tuple[tuple[int, str, str], ...] = ()

TABLES = {"net_ft": NET_FT, "axia": AXIA, "onrobot": ONROBOT}


def masks(variant: str) -> list[int]:
    """32 masks of `sensor_status`, one per bit of the device's word; a bit that is in no list is a device fault, bit 31 says nothing."""
    result = [SENSOR_STATUS["device_fault"]] * 31 + [0]
    for bit, _, name in TABLES[variant]:
        result[bit] = SENSOR_STATUS[name]
    return result
