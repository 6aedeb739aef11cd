"""When a stand that is to move again begins from where it is: the same question for the guidance, which then programmes the measured pose,
and for the safety stage, which then leads the setpoints to the measured legs. Both ask it of the same sample, so that the pose programmed
and the legs sent belong to one tick.
"""

from rt_kernels.codes cimport (DRIVE_STATUS_BUS_FAULT, DRIVE_STATUS_CORRUPT, DRIVE_STATUS_DEVICE_FAULT, DRIVE_STATUS_EMERGENCY,
                               DRIVE_STATUS_HEARTBEAT_LOST, DRIVE_STATUS_HYDRAULICS_BLOCKED, DRIVE_STATUS_LOST, DRIVE_STATUS_NOT_ENABLED,
                               DRIVE_STATUS_NO_DATA, DRIVE_STATUS_STALE)
from rt_kernels.sample cimport Sample

cdef enum:
    # bits of drive_status of a drive whose word on its leg does not count
    NOT_FRESH = (DRIVE_STATUS_NO_DATA | DRIVE_STATUS_STALE | DRIVE_STATUS_LOST | DRIVE_STATUS_CORRUPT | DRIVE_STATUS_DEVICE_FAULT
                 | DRIVE_STATUS_EMERGENCY | DRIVE_STATUS_BUS_FAULT | DRIVE_STATUS_HEARTBEAT_LOST)


cdef inline bint starts_from_here(const Sample *o, bint begun) noexcept nogil:
    """Whether the achieved pose of this tick is the start pose: it is known, and nothing has begun yet, or a drive without
    power may have let its leg go elsewhere since."""
    cdef int i
    if o.forward_kinematics_status != 0:
        return False
    if not begun:
        return True
    for i in range(6):
        if o.drive_status[i] & (NOT_FRESH | DRIVE_STATUS_NOT_ENABLED | DRIVE_STATUS_HYDRAULICS_BLOCKED):
            return True
    return False
