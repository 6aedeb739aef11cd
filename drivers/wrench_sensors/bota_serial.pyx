"""Force/torque sensor of Bota Systems on a serial line (SensONE, Rokubi: RS-422 or USB).

Wire (little-endian), 37 bytes at 8N1:

    0   u8     header AA
    1   u16    status: bit 0 processing overrun, 1 overrange, 2 invalid (saturation, open or short circuit), 3 values are raw gauges
    3   f32 x6 Fx Fy Fz [N], Mx My Mz [N.m]
    27  u32    stamp of the device [us], wraps
    31  f32    temperature [degC]
    35  u16    CRC-16/X-25 over bytes 1 ... 34

Sources: Bota Systems' published serial drivers (`rokubimini_serial` and its Python example). Set-up is a dialogue in text: `C` (configure),
`c,TEMPERATURE COMPENSATION,CALIBRATION,FORMAT,BAUD CODE`, `f,SINC LENGTH,CHOP,FAST,FIR OFF`, `R` (run); each is answered by `r,0,` and its
letter and `,0`. A record comes every `sinc_length` x 19.53125 us.

Delay of the filter: sinc length, chop, fast and FIR are the fields of the filter register of a sigma-delta converter whose first stage is a
sinc filter of the third order with its first zero at the output rate (Analog Devices, data sheets of AD7730 and AD7731, digital filter).
Without the other three its impulse response is symmetrical and three records long: one and a half records late, at every frequency. What
chop, fast and FIR add is not published for the sensor: there it is not known.

Status: overrange is `out_of_range`, invalid is `saturated`, a processing overrun is a `warning`; raw gauges, an unknown bit and a number
that is none are `device_fault`; a temperature outside -40 ... 85 degC is `temperature`.
"""


from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from drivers.raw_frames.frame_io cimport io_load_le16, io_load_le32
from drivers.wrench_sensors.record_check cimport Reading
from drivers.wrench_sensors.serial_stream cimport SerialSensor
from rt_kernels.codes cimport (SENSOR_STATUS_DEVICE_FAULT, SENSOR_STATUS_OUT_OF_RANGE, SENSOR_STATUS_SATURATED, SENSOR_STATUS_TEMPERATURE,
                               SENSOR_STATUS_WARNING)

from drivers.wrench_sensors.serial_stream import LINE_PARAMETERS
from rt_kernels.parameters import Parameter, checked

cdef enum:
    STATUS_OVERRUN = 1
    STATUS_OVERRANGE = 2
    STATUS_INVALID = 4
    STATUS_RAW = 8

cdef float COLDEST = -40.0, HOTTEST = 85.0  # degC

SINC_US = 19.53125
SINC_LENGTH = 64
BAUD_CODES = {9600: 0, 57600: 1, 115200: 2, 230400: 3, 460800: 4}
STAMP_WINDOW_US = 100_000  # a stamp further away than this is not of the same sequence
FIRST_RECORDS = 8
RATE_TOLERANCE = 0.1


cdef inline double load_f32(const uint8_t *bytes) noexcept nogil:
    cdef uint32_t bits = io_load_le32(bytes)
    cdef float value
    memcpy(&value, &bits, sizeof(float))
    return value


cdef uint32_t status_of(uint32_t word, double temperature) noexcept nogil:
    cdef uint32_t found = 0
    if word & STATUS_OVERRUN:
        found |= SENSOR_STATUS_WARNING
    if word & STATUS_OVERRANGE:
        found |= SENSOR_STATUS_OUT_OF_RANGE
    if word & STATUS_INVALID:
        found |= SENSOR_STATUS_SATURATED
    if word & ~<uint32_t>(STATUS_OVERRUN | STATUS_OVERRANGE | STATUS_INVALID):
        found |= SENSOR_STATUS_DEVICE_FAULT
    if not COLDEST <= temperature <= HOTTEST:
        found |= SENSOR_STATUS_TEMPERATURE
    return found


cdef void decode(const uint8_t *record, Reading *r) noexcept nogil:
    cdef int i
    r.word = io_load_le16(record + 1)
    for i in range(6):
        r.values[i] = load_f32(record + 3 + 4 * i)
    r.stamp = io_load_le32(record + 27)
    r.found = status_of(r.word, load_f32(record + 31))


cdef class BotaSerialPort(SerialSensor):
    """Reads a Bota Systems sensor. `feed(bytes)` for tests.

    Raises ValueError for a parameter that cannot be, ConnectionError (from `open`) when the sensor does not answer, does not stream, or
    streams at another rate than `sinc_length` says.
    """

    PARAMETERS = (
        *LINE_PARAMETERS,
        Parameter("baud", "int", "bit/s", "bit rate of the line", 460800, min(BAUD_CODES), max(BAUD_CODES)),
        Parameter("configure", "bool", "-", "set filter and format in the device at open; false: it streams already, as set before", True),
        Parameter("sinc_length", "int", "-", "filter of the device: a record every sinc_length x 19.53125 us", SINC_LENGTH, 51, 512),
        Parameter("chop", "bool", "-", "chopper of the device's converter: less drift, slower", False),
        Parameter("fast", "bool", "-", "fast mode of the device's filter", False),
        Parameter("fir", "bool", "-", "second filter (FIR) of the device", False),
        Parameter("temperature_compensation", "bool", "-", "the device compensates its temperature", False),
        Parameter("force_range_n", "floats", "N", "range of Fx, Fy, Fz, from the data sheet", low=1.0, high=1e6, shape=3),
        Parameter("moment_range_n_m", "floats", "N.m", "range of Mx, My, Mz, from the data sheet", low=0.1, high=1e5, shape=3),
        Parameter("no_data_ms", "float", "ms", "a silence longer than this is no data", 10.0, 0.5, 10000.0),
        Parameter("stale_ms", "float", "ms", "a stamp of the device that stands still for longer is stale", 10.0, 0.5, 10000.0),
    )
    not_asked = "the published protocol has no question for a serial number: read it off the housing"

    def __init__(self, **parameters):
        given = checked(BotaSerialPort.PARAMETERS, parameters)
        if given["baud"] not in BAUD_CODES:
            raise ValueError(f"baud = {given['baud']}, limit one of {', '.join(map(str, BAUD_CODES))} bit/s")
        self._given = given
        self.prepare(decode)
        self._set_framing(header=b"\xaa", record_length=37, crc_begin=1, generator=0x8408, invert=0xFFFF, baud=given["baud"])
        self._set_limits([*given["force_range_n"], *given["moment_range_n_m"]], given["jump_share"])
        self.stream.p.check.window = <int32_t>max(STAMP_WINDOW_US, int(10 * self.period_us))
        self.stream.p.check.period = self.period_us
        self.stream.p.no_data_ns = <int64_t>(given["no_data_ms"] * 1e6)
        self.stream.p.stale_ns = <int64_t>(given["stale_ms"] * 1e6)
        if self.line_delay_s * self.rate_hz > 1.0:
            fits = int(1e6 * self.line_delay_s / SINC_US) + 1
            raise ValueError(f"sinc_length = {given['sinc_length']}: {self.rate_hz:.0f} records/s do not fit through "
                             f"{given['baud']} bit/s, limit {fits} or more")  # fmt: skip

    @staticmethod
    def own_delay_s(keys):
        """Group delay of the plain sinc filter, s; None with another stage in its path, or with a setting that this port does not make."""
        if not keys.get("configure", True) or keys.get("chop") or keys.get("fast") or keys.get("fir"):
            return None
        return 1.5e-6 * SINC_US * keys.get("sinc_length", SINC_LENGTH)

    @property
    def period_us(self):
        """Time from record to record by the device's clock, us."""
        return self._given["sinc_length"] * SINC_US

    @property
    def rate_hz(self):
        return 1e6 / self.period_us

    def _set_up(self):
        """Filter and format, if it is asked to. Raises TimeoutError."""
        given = self._given
        if given["configure"]:
            code = BAUD_CODES[given["baud"]]
            self._ask(b"C", b"r,0,C,0", "C (configure)")
            self._ask(f"c,{int(given['temperature_compensation'])},1,0,{code}".encode(), b"r,0,c,0", "c (communication)")
            filters = f"f,{given['sinc_length']},{int(given['chop'])},{int(given['fast'])},{int(not given['fir'])}"
            self._ask(filters.encode(), b"r,0,f,0", "f (filter)")
            self._ask(b"R", b"r,0,R,0", "R (run)")

    def _await_stream(self):
        """The first records; their rate is looked at before it is relied upon. Raises TimeoutError."""
        self.stream.p.check.period = 0.0
        period_us, _ = self._begin_stream(FIRST_RECORDS)
        self.stream.p.check.period = self.period_us
        if abs(period_us / self.period_us - 1.0) > RATE_TOLERANCE:
            raise TimeoutError(f"a record every {period_us:.0f} us, sinc_length = {self._given['sinc_length']} is one every "
                               f"{self.period_us:.0f} us")  # fmt: skip
