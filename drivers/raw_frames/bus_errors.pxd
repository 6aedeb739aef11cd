"""Error frames of a CAN controller in the words of sensor_status, for devices that are no drives (inline, header only).

Bus-off is no_data: until the controller restarted nothing can come; `bus_off` keeps it from tick to tick. Error-passive is a warning. Bus
errors and a controller that lost frames are damage (corrupt).
"""

from libc.stdint cimport int32_t, uint32_t

from drivers.raw_frames.frame_io cimport (
    CAN_ERR_BUSERROR, CAN_ERR_BUSOFF, CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, CAN_ERR_CRTL_RX_PASSIVE, CAN_ERR_CRTL_TX_PASSIVE,
    CAN_ERR_PROT, CAN_ERR_RESTARTED, can_frame,
)
from rt_kernels.codes cimport SENSOR_STATUS_CORRUPT, SENSOR_STATUS_NO_DATA, SENSOR_STATUS_WARNING


cdef inline uint32_t judge_error_frame(const can_frame *f, int32_t *bus_off) noexcept nogil:
    cdef uint32_t found = 0
    if f.can_id & CAN_ERR_BUSOFF:
        bus_off[0] = 1
        found |= SENSOR_STATUS_NO_DATA
    if f.can_id & CAN_ERR_RESTARTED:
        bus_off[0] = 0
    if f.can_id & CAN_ERR_CRTL and f.data[1] & (CAN_ERR_CRTL_RX_PASSIVE | CAN_ERR_CRTL_TX_PASSIVE):
        found |= SENSOR_STATUS_WARNING
    if f.can_id & (CAN_ERR_PROT | CAN_ERR_BUSERROR) or f.can_id & CAN_ERR_CRTL and f.data[1] & CAN_ERR_CRTL_RX_OVERFLOW:
        found |= SENSOR_STATUS_CORRUPT
    return found
