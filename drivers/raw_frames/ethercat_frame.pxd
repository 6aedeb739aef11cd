"""EtherCAT frames (IEC 61158-4-12): datagrams one after the other behind a header of two bytes (inline, no module).

    Ethernet   destination 6, source 6, ethertype 0x88A4 (big-endian); from here on little-endian
    header     u16: bits 0-10 length of all datagrams, 12-15 type = 1
    datagram   command, index, u16 position or station, u16 register (logical commands: one u32), u16: bits 0-10 length, 15 more follow,
               u16 event bits, data, u16 working counter
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from drivers.raw_frames.frame_io cimport io_load_le16, io_store_be16, io_store_le16, io_store_le32

cdef enum:
    FRAME_MOST = 1514               # bytes, without the checksum
    FRAME_LEAST = 60
    FRAME_HEADER = 16               # up to the first datagram
    DATAGRAM_HEADER = 10
    DATAGRAM_OVERHEAD = 12          # with the working counter
    ETHERTYPE = 0x88A4
    TYPE_DATAGRAMS = 0x1000
    LENGTH_BITS = 0x07FF
    MORE_FOLLOW = 0x8000
    WENT_ROUND_HIGH = 0x40          # in the high byte of the length: the frame went round a broken ring
    RETURNED_BIT = 0x02             # of the first source byte: the first slave sets it
    COMMAND_FPRD = 4
    COMMAND_BRD = 7
    COMMAND_LRW = 12
    COMMAND_FRMW = 14


# A frame under way: header with nothing in it. source: six bytes, bit 1 of the first is sent clear.
cdef inline int frame_begin(uint8_t *frame, const uint8_t *source) noexcept nogil:
    cdef int i
    memset(frame, 0, FRAME_MOST)
    for i in range(6):
        frame[i] = 0xFF
        frame[6 + i] = source[i]
    frame[6] &= <uint8_t>(0xFF ^ RETURNED_BIT)
    io_store_be16(frame + 12, ETHERTYPE)
    io_store_le16(frame + 14, TYPE_DATAGRAMS)
    return FRAME_HEADER


# One more datagram of zeros at `end`, the first free byte. address: station | register << 16, or logical. Returns the new end.
cdef inline int frame_add(uint8_t *frame, int end, int last, uint8_t command, uint32_t address, int length) noexcept nogil:
    cdef uint8_t *d = frame + end
    cdef uint16_t size
    d[0] = command
    io_store_le32(d + 2, address)
    io_store_le16(d + 6, <uint16_t>length)
    if last > 0:
        io_store_le16(frame + last + 6, <uint16_t>(io_load_le16(frame + last + 6) | MORE_FOLLOW))
    size = io_load_le16(frame + 14) & LENGTH_BITS
    io_store_le16(frame + 14, <uint16_t>(TYPE_DATAGRAMS | (size + DATAGRAM_OVERHEAD + length)))
    return end + DATAGRAM_OVERHEAD + length


# Working counter of the datagram at `at`.
cdef inline uint16_t frame_counter(const uint8_t *frame, int at) noexcept nogil:
    return io_load_le16(frame + at + DATAGRAM_HEADER + (io_load_le16(frame + at + 6) & LENGTH_BITS))
