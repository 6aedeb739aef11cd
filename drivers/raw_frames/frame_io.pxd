"""Non-blocking datagrams and CAN frames by file descriptor, for ports and for the stand in software (inline, header only)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef extern from "drivers/raw_frames/frame_io.h":
    enum:
        IO_BATCH                # most frames or datagrams in one call
        CAN_ERR_FLAG            # bit of can_id: the frame reports an error of the bus
        CAN_EFF_FLAG
        CAN_RTR_FLAG
        CAN_ERR_BUSERROR        # the controller saw an error on the bus
        CAN_ERR_BUSOFF
        CAN_ERR_RESTARTED
        CAN_ERR_CRTL
        CAN_ERR_CRTL_RX_OVERFLOW
        CAN_ERR_CRTL_RX_PASSIVE
        CAN_ERR_CRTL_TX_PASSIVE
        CAN_ERR_PROT            # a frame that breaks the rules of the bus
        EAGAIN
        ENOBUFS

    struct can_frame:
        uint32_t can_id
        uint8_t can_dlc
        uint8_t data[8]

    struct sockaddr_in:
        uint16_t sin_family
        uint16_t sin_port

    struct pollfd:
        int fd
        short events
        short revents

    const short POLLIN

    int64_t io_now_ns() noexcept nogil
    int64_t io_wall_ns() noexcept nogil
    uint16_t io_load_be16(const uint8_t *) noexcept nogil
    uint32_t io_load_be32(const uint8_t *) noexcept nogil
    void io_store_be16(uint8_t *, uint16_t) noexcept nogil
    void io_store_be32(uint8_t *, uint32_t) noexcept nogil
    uint16_t io_load_le16(const uint8_t *) noexcept nogil
    uint32_t io_load_le32(const uint8_t *) noexcept nogil
    void io_store_le16(uint8_t *, uint16_t) noexcept nogil
    void io_store_le32(uint8_t *, uint32_t) noexcept nogil
    int io_send_frames(int fd, const can_frame *frames, int count, const sockaddr_in *peer, int *error) noexcept nogil
    int io_receive_frames_stamped(int fd, can_frame *frames, int64_t *came_ns, int64_t *bad, sockaddr_in *peer, int *more,
                                  int *error) noexcept nogil
    int io_receive_frames(int fd, can_frame *frames, int64_t *bad, sockaddr_in *peer, int *more, int *error) noexcept nogil
    int io_receive_datagrams(int fd, uint8_t *buffer, int stride, int count, int *length, int64_t *came_ns, int *error) noexcept nogil
    int io_receive_from(int fd, uint8_t *buffer, int size, sockaddr_in *peer) noexcept nogil
    int io_send_to(int fd, const uint8_t *buffer, int size, const sockaddr_in *peer) noexcept nogil
    int io_send(int fd, const uint8_t *buffer, int size) noexcept nogil
    int io_wait_readable(pollfd *fds, int count, int64_t timeout_ns) noexcept nogil
    int io_set_fifo(int priority) noexcept nogil
    int io_set_core(int core) noexcept nogil
