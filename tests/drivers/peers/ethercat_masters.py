"""An independent master against the emulated line, in a network namespace of its own: `unshare -rn python ethercat_masters.py`.

It makes a veth pair, serves two drives on one end and lets pysoem bring them to Operation Enabled from the other. One line of JSON.
"""

import json
import socket
import struct
import subprocess
import threading
import time

import pysoem

from drivers.simulated.ethercat_segment import EtherCatSegment


def main() -> None:
    subprocess.run(["ip", "link", "add", "ec0", "type", "veth", "peer", "name", "ec1"], check=True)
    for name in ("ec0", "ec1"):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(0x88A4))
    s.bind(("ec1", 0))
    line = EtherCatSegment(2)
    thread = threading.Thread(target=line.serve, args=(s.fileno(),))
    thread.start()
    try:
        master = pysoem.Master()
        master.open("ec0")
        result: dict[str, object] = {"found": master.config_init(), "dc": master.config_dc()}
        master.config_map()
        result["safeop"] = master.state_check(pysoem.SAFEOP_STATE, 100_000)
        master.send_processdata()
        master.receive_processdata(100_000)
        for slave in master.slaves:
            slave.output = struct.pack("<HiB", 0, 0, 8)
        master.state = pysoem.OP_STATE
        master.write_state()
        for word in [0x80] * 20 + [0x06] * 20 + [0x07] * 20 + [0x0F] * 40:
            for slave in master.slaves:
                slave.output = struct.pack("<HiB", word, 100, 8)
            master.send_processdata()
            result["wkc"] = master.receive_processdata(100_000)
            time.sleep(0.001)
        master.read_state()
        result["states"] = [slave.state for slave in master.slaves]
        result["status"] = [struct.unpack_from("<H", slave.input)[0] for slave in master.slaves]
        result["position"] = [struct.unpack_from("<i", slave.input, 2)[0] for slave in master.slaves]
        result["name"] = master.slaves[0].sdo_read(0x1008, 0).decode()
        try:
            master.slaves[0].sdo_read(0x2000, 0)
        except pysoem.SdoError as error:
            result["abort"] = error.abort_code
        master.close()
    finally:
        line.stop()
        thread.join()
    print(json.dumps(result))


main()
