"""What an RDT sensor in software answers before the run: its page by HTTP, its scaling by TCP."""

import http.server
import socket
import socketserver
import struct
import threading
from collections.abc import Mapping
from typing import Any

from drivers.wrench_sensors.rdt_scaling import XML_PAGE, newton_metres_per_unit, newtons_per_unit

_GAUGE_16_FACTOR = 10000  # counts per step of the 16-bit values of the TCP interface


def counts_per_unit(sensor: Mapping[str, Any], scale: list[float] | None) -> tuple[int, int]:
    """Counts per force and torque unit as the device states them: given, or from the plant (scale None: bare gauges, 1)."""
    per_newton, per_newton_metre = (scale[0], scale[3]) if scale is not None else (1.0, 1.0)
    force = int(sensor["counts_per_force"]) or round(per_newton * newtons_per_unit(sensor["force_unit"]))
    torque = int(sensor["counts_per_torque"]) or round(per_newton_metre * newton_metres_per_unit(sensor["torque_unit"]))
    if not (1 <= force < 2**32 and 1 <= torque < 2**32):
        raise ValueError(f"sensor: {force} counts per {sensor['force_unit']}, {torque} per {sensor['torque_unit']}: must fit in 32 bits")
    return force, torque


class SetUpServers:
    """What a sensor answers before the run: the XML page by HTTP and the TCP interface (commands 0 read, 1 calibration info)."""

    def __init__(self, address: str, variant: str, sensor: Mapping[str, Any], counts: tuple[int, int], gauge: Any):
        page = _page(variant, sensor, counts)
        path = XML_PAGE[variant]

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.split("?")[0] != path:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_: Any) -> None:
                pass

        class Interface(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.settimeout(5.0)
                while True:
                    try:
                        request = self.request.recv(20, socket.MSG_WAITALL)
                    except OSError:
                        return
                    if len(request) != 20:
                        return
                    if reply := _tcp_reply(request, sensor, counts, gauge()):
                        self.request.sendall(reply)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._servers = [
            Server((address, sensor["http_port"]), Page),
            Server((address, sensor["calibration_port"]), Interface),
        ]
        self.http_port, self.calibration_port = (s.server_address[1] for s in self._servers)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        """Stops the servers of the set-up requests and closes their ports."""
        for server in self._servers:
            server.shutdown()
            server.server_close()


def _page(variant: str, sensor: Mapping[str, Any], counts: tuple[int, int]) -> bytes:
    cal, force, torque = ("cal", "calfu", "caltu") if variant == "onrobot" else ("cfg", "scfgfu", "scfgtu")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<netft><runstat>0x00000000</runstat><calsn>{sensor["serial"]}</calsn>'
        f"<calpn>{sensor['calibration']}</calpn><{cal}cpf>{counts[0]}</{cal}cpf>"
        f"<{cal}cpt>{counts[1]}</{cal}cpt><{force}>{sensor['force_unit']}</{force}>"
        f"<{torque}>{sensor['torque_unit']}</{torque}><comrdtrate>{sensor['rate_hz']:g}</comrdtrate>"
        f"<comrdtbsiz>{sensor['buffer_size']}</comrdtbsiz></netft>\n"
    ).encode()


_FORCE_CODE = {"lbf": 1, "n": 2, "klbf": 3, "kn": 4, "kgf": 5, "gf": 6}
_TORQUE_CODE = {"lbf-in": 1, "lbf-ft": 2, "nm": 3, "nmm": 4, "kgf-cm": 5, "knm": 6}


def _tcp_reply(request: bytes, sensor: Mapping[str, Any], counts: tuple[int, int], gauge: list[float]) -> bytes:
    if request[0] == 0:
        steps = [max(-32768, min(32767, round(count / _GAUGE_16_FACTOR))) for count in gauge]
        return struct.pack(">HH6h", 0x1234, 0, *steps)
    if request[0] == 1:
        return struct.pack(
            ">HBBII6H",
            0x1234,
            _FORCE_CODE[sensor["force_unit"].lower()],
            _TORQUE_CODE.get(sensor["torque_unit"].lower(), 3),
            *counts,
            *[_GAUGE_16_FACTOR] * 6,
        )
    return b""
