"""A run that goes out on the bus, seen by a client of Foxglove's WebSocket protocol that knows nothing of us but the port."""

import asyncio
import json
import socket
import struct
import threading
import time

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from hil_server import open_log
from hil_server.bus.settings import TelemetrySettings
from hil_server.errors import UsageError
from hil_server.run.replay import playback
from tests.processes import free_port

pytest.importorskip("foxglove", reason="optional group foxglove")
websockets = pytest.importorskip("websockets")
WANTED = ("/tf", "/scene/stand", "/scene/unit", "/channels/wrench", "/robot_description", "/events", "/joint_states")


class Viewer:
    """Subscribes to the topics WANTED and keeps their messages until it has what `enough` wants."""

    def __init__(self, port):
        self.port, self.channels, self.messages = port, {}, {topic: [] for topic in WANTED}

    async def watch(self, enough, seconds):
        async with websockets.connect(f"ws://127.0.0.1:{self.port}", subprotocols=["foxglove.sdk.v1"], max_size=None) as line:
            subscribed = {}
            async with asyncio.timeout(seconds):
                while not enough(self.messages):
                    data = await line.recv()
                    if isinstance(data, str):
                        told = json.loads(data)
                        for channel in told.get("channels", []) if told["op"] == "advertise" else []:
                            self.channels[channel["topic"]] = channel
                            if channel["topic"] in WANTED:
                                subscribed[len(subscribed)] = channel["topic"]
                                await self.subscribe(line, len(subscribed) - 1, channel["topic"])
                        if told["op"] == "status":  # asked before the server had finished advertising: once more what has not come
                            await asyncio.sleep(0.1)
                            for number, topic in subscribed.items():
                                if not self.messages[topic]:
                                    await self.subscribe(line, number, topic)
                    elif data[0] == 1:
                        number, at = struct.unpack_from("<IQ", data, 1)
                        self.messages[subscribed[number]].append((at, data[13:]))

    async def subscribe(self, line, number, topic):
        request = {"id": number, "channelId": self.channels[topic]["id"]}
        await line.send(json.dumps({"op": "subscribe", "subscriptions": [request]}))

    def decoded(self, topic):
        """The topic's messages by the schema that the server sent, (time, message)."""
        import base64

        channel = self.channels[topic]
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"])).file:
            pool.Add(file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"]))
        return [(at, kind.FromString(data)) for at, data in self.messages[topic]]


@pytest.fixture
def bus(docking, tmp_path):
    """Addresses on which the docking goes out, over and over, until the test ends."""
    addresses = {f"{name}_address": f"tcp://127.0.0.1:{free_port()}" for name in ("telemetry", "command", "hand")}
    over = threading.Event()

    def play():
        n = 0
        while not over.is_set():
            playback(docking, 2.0, TelemetrySettings(log_path=str(tmp_path / f"{n}.mcap"), **addresses))
            n += 1

    thread = threading.Thread(target=play)
    thread.start()
    yield addresses
    over.set()
    thread.join()


def test_a_viewer_gets_scene_and_curves(bus, docking):
    from hil_server.viewers.foxglove_live import Bridge

    reported = []
    bridge = Bridge(bus["telemetry_address"], bus["command_address"], port=0, report=reported.append)
    try:
        viewer = Viewer(bridge.port)
        began = time.time()
        asyncio.run(viewer.watch(lambda m: all(m[topic] for topic in WANTED if topic != "/events") and len(m["/tf"]) > 20, 100.0))
        late = Viewer(bridge.port)  # who comes later gets what is reported once, too
        asyncio.run(late.watch(lambda m: m["/scene/stand"] and m["/robot_description"], 60.0))
    finally:
        bridge.close()
    frames = viewer.decoded("/tf")
    names = {t.child_frame_id for t in frames[-1][1].transforms}
    assert {"platform", "active_port", "target_craft", "leg_4_rod", "head"} <= names
    assert began - 60.0 < frames[-1][0] * 1e-9 < time.time() + 1.0 and sorted(at for at, _ in frames) == [at for at, _ in frames]
    assert {e.frame_id for _, m in viewer.decoded("/scene/stand") for e in m.entities} <= names | {"W"}
    assert b"<robot" in late.messages["/robot_description"][0][1]
    log = open_log(docking)
    force, at = log["F_T[0]"].values, {round(t, 6): i for i, t in enumerate(log.seconds)}
    curve = viewer.decoded("/channels/wrench")
    assert len(curve) > 20 and all(message.F_T[0] == force[at[round(message.seconds, 6)]] for _, message in curve)
    assert any(text.startswith("run ") for text in reported)


def test_a_port_that_is_taken(bus):
    from hil_server.viewers.foxglove_live import Bridge

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        with pytest.raises(UsageError, match="--port"):
            Bridge(bus["telemetry_address"], bus["command_address"], port=one.getsockname()[1])
