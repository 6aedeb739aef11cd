"""A Bota SensONE on a serial line in software.

After power-up the device says `App Init` and streams with its stored settings. `C` ends the stream and begins the set-up; there
`c,<temperature compensation>,<calibration>,<format>,<line rate>` and `f,<sinc length>,<chop>,<fast>,<fir off>` set, `R` streams again
with a new line rate. Each is answered `r,0,<letter>,<error>`, error 0: done. Commands have no end: each ends where its last field does,
blanks and line ends between them are skipped. Settings that were not stored are lost with the power.

A record, 37 bytes little-endian: 0xAA, status u16, force and torque 6 x f32 [N, N.m], clock of the device u32 [us], temperature f32 [C],
CRC-16/X-25 of the 34 bytes between. One in 19.53125 us times the sinc length; what the line cannot carry is left out, and the next record
says so.

Source: the vendor's published examples and ROS driver (Bota Systems, `python_interface`, `rokubimini_serial`). What they do not tell and
is assumed here: the error numbers other than 0, the end of an answer (CR LF), and that a new line rate begins with `R`.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from drivers.raw_frames.frame_io cimport io_store_le16, io_store_le32
from drivers.simulated.emulated_sensor cimport NEVER, EmulatedSensor, SensorWire
from drivers.simulated.sensor_emulators.serial_line cimport SerialLine, next_byte, put_message, put_record, reflected_crc16, set_line_rate

from drivers.simulated.emulated_sensor import ON_THE_NETWORK
from rt_kernels.parameters import Parameter, checked

cdef enum:
    BOTA_RECORD = 37
    BOTA_HEADER = 0xAA
    BOTA_X25 = 0x8408           # 0x1021 reflected

    BOTA_BOOTING = 0
    BOTA_SET_UP = 1
    BOTA_RUNNING = 2

    # bits of the status
    BOTA_OVERRUN = 0x1
    BOTA_OVERRANGE = 0x2
    BOTA_INVALID = 0x4
    BOTA_RAW = 0x8

    BOTA_TEXT = 32              # most characters of a command
    BOTA_BACKLOG = 2            # records that may wait for the line


cdef struct BotaSettings:
    int32_t sinc_length
    int32_t calibrated          # 0: gage values
    int32_t rate_code


cdef struct Bota:
    SerialLine line
    int32_t mode
    BotaSettings stored
    BotaSettings now
    int64_t powered_ns
    int64_t made                # records since power-up
    uint32_t clock_us           # of the newest record
    int32_t overrun
    double range[6]             # beyond it the record says overrange, 0: without end
    char text[BOTA_TEXT]
    int32_t characters


cdef inline int64_t bota_line_rate(int code) noexcept nogil:
    return 9600 if code == 0 else 57600 if code == 1 else 115200 if code == 2 else 230400 if code == 3 else 460800


cdef inline int64_t bota_period_ns(const Bota *b, const SensorWire *w) noexcept nogil:
    return <int64_t>(b.now.sinc_length * 19531.25) * (2 if w.faults.slow else 1)


cdef void power_up(void *self, SensorWire *w) noexcept nogil:
    cdef Bota *b = <Bota *>self
    b.mode = BOTA_BOOTING
    b.now = b.stored
    b.powered_ns = w.now
    w.record_ns = w.now + w.boot_ns
    b.made = b.characters = b.overrun = 0
    set_line_rate(&b.line, bota_line_rate(b.now.rate_code))


cdef void bota_answer(Bota *b, SensorWire *w, int letter, int error) noexcept nogil:
    cdef uint8_t answer[9]
    memcpy(answer, b"r,0,?,0\r\n", 9)
    answer[4] = <uint8_t>letter
    answer[6] = <uint8_t>(48 + error)
    if not w.faults.silent:
        put_message(&b.line, w, answer, 9, w.now)


# The numbers after the letter of a command. Returns how many there are, -1 while the last one is not there yet.
cdef int bota_numbers(const Bota *b, int *number) noexcept nogil:
    cdef int i, count = 0
    for i in range(1, b.characters):
        if b.text[i] == b',':
            if count == 4:
                return count
            number[count] = 0
            count += 1
        elif count and 48 <= b.text[i] <= 57 and number[count - 1] < 100000:
            number[count - 1] = 10 * number[count - 1] + b.text[i] - 48
    return count if count == 4 and b.text[b.characters - 1] != b',' else -1


# One character of the set-up.
cdef void bota_character(Bota *b, SensorWire *w, int c) noexcept nogil:
    cdef int number[4]
    cdef int letter, error
    if b.characters == 0 and (c == b' ' or c == b'\r' or c == b'\n'):
        return
    b.text[b.characters] = <char>c
    b.characters += 1
    letter = b.text[0]
    if letter == b'C':
        b.characters = 0
        bota_answer(b, w, letter, 0)
    elif letter == b'R':
        b.characters = 0
        bota_answer(b, w, letter, 0)
        set_line_rate(&b.line, bota_line_rate(b.now.rate_code))
        b.mode = BOTA_RUNNING
        w.record_ns = w.free_ns + bota_period_ns(b, w)
        b.overrun = 0
    elif letter == b'c' or letter == b'f':
        if bota_numbers(b, number) == 4:
            b.characters = 0
            if letter == b'c':
                error = number[0] > 1 or number[1] > 1 or number[2] != 0 or number[3] > 4
                if not error:
                    b.now.calibrated, b.now.rate_code = number[1], number[3]
            else:
                error = not 51 <= number[0] <= 512 or number[1] > 1 or number[2] > 1 or number[3] > 1
                if not error:
                    b.now.sinc_length = number[0]
            bota_answer(b, w, letter, error)
        elif c != b',' and not 48 <= c <= 57 and b.characters > 1 or b.characters == BOTA_TEXT:
            b.characters = 0
            bota_answer(b, w, letter, 1)
    else:
        b.characters = 0
        bota_answer(b, w, letter, 1)


# What the other end has written. While it boots it hears nothing, while it streams only `C`.
cdef void listen(void *self, SensorWire *w) noexcept nogil:
    cdef Bota *b = <Bota *>self
    cdef int c = next_byte(&b.line, w)
    while c >= 0:
        if w.faults.silent:
            pass
        elif b.mode == BOTA_SET_UP:
            bota_character(b, w, c)
        elif b.mode == BOTA_RUNNING and c == b'C':
            b.mode = BOTA_SET_UP
            w.record_ns = NEVER
            b.characters = 0
            bota_character(b, w, b'C')
        c = next_byte(&b.line, w)


# The end of booting, from where on it streams; then a record.
cdef void record(void *self, SensorWire *w) noexcept nogil:
    cdef Bota *b = <Bota *>self
    cdef uint8_t bytes[BOTA_RECORD]
    cdef float value
    cdef float celsius = 31.5
    cdef int status = <int>w.faults.status_word & 0xFFFF
    cdef int i
    w.record_ns += bota_period_ns(b, w)
    if b.mode == BOTA_BOOTING:
        b.mode = BOTA_RUNNING
        if not w.faults.silent:
            put_message(&b.line, w, <const uint8_t *>b"App Init\r\n", 10, w.now)
        return
    if w.lost:
        return

    # The line is behind: this one is left out.
    if w.free_ns - w.faults.delay_ns - w.now > BOTA_BACKLOG * BOTA_RECORD * b.line.byte_ns:
        b.overrun = 1
        return
    if b.overrun:
        status |= BOTA_OVERRUN
    if not b.now.calibrated:
        status |= BOTA_RAW
    if not w.faults.frozen:
        b.clock_us = <uint32_t>((w.now - b.powered_ns) // 1000)
    b.overrun = 0
    b.made += 1
    for i in range(6):
        if b.range[i] > 0.0 and not -b.range[i] <= w.F[i] <= b.range[i]:
            status |= BOTA_OVERRANGE
        value = <float>(w.F[i] if b.now.calibrated else w.gauge[i])
        memcpy(bytes + 3 + 4 * i, &value, 4)
    bytes[0] = BOTA_HEADER
    io_store_le16(bytes + 1, <unsigned short>status)
    io_store_le32(bytes + 27, b.clock_us)
    memcpy(bytes + 31, &celsius, 4)
    io_store_le16(bytes + 35, <unsigned short>(reflected_crc16(bytes + 1, BOTA_RECORD - 3, BOTA_X25) ^ 0xFFFF))
    put_record(&b.line, w, bytes, BOTA_RECORD, b.made, BOTA_HEADER)


cdef class EmulatedBota(EmulatedSensor):
    """A Bota SensONE on a serial line, with the settings that it has stored."""

    PARAMETERS = (
        Parameter("sinc_length", "int", "-", "stored filter: a record every sinc_length x 19.53125 us", 512, 51, 512),
        Parameter("rate_code", "int", "-", "stored rate of the line: 0 9600, 1 57600, 2 115200, 3 230400, 4 460800 bit/s", 4, 0, 4),
        Parameter("force_range_n", "float", "N", "beyond it a record says so, 0: without end", 0.0, 0.0, 1e6),
        Parameter("torque_range_n_m", "float", "N.m", "beyond it a record says so, 0: without end", 0.0, 0.0, 1e6),
    )
    VARIANTS = {"bota": ({"sensor_out_of_range": 0x0002, "sensor_saturated": 0x0004}, ON_THE_NETWORK)}
    cdef Bota c

    def __init__(self, **given):
        self.keys = keys = checked(self.PARAMETERS, given)
        self.c.stored.sinc_length, self.c.stored.calibrated, self.c.stored.rate_code = keys["sinc_length"], 1, keys["rate_code"]
        for i in range(6):
            self.c.range[i] = keys["force_range_n"] if i < 3 else keys["torque_range_n_m"]
        self.plug.self, self.plug.power_up, self.plug.record, self.plug.listen = &self.c, power_up, record, listen
