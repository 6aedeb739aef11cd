"""`hil-server hand-controller`: the process of one operator station."""

import argparse
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from hil_server import interrupts
from hil_server.errors import ConfigurationError, DeviceError, UsageError
from hil_server.values import Document

if TYPE_CHECKING:
    from hil_server.operator_desk.station import Source, Station

GROUP = "live control"
ORDER = 180
SUMMARY = "sends the motion of a hand controller to the live run"
EXAMPLES = (
    ("hil-server hand-controller --keyboard", "the keys of this terminal, for rehearsals"),
    ("hil-server hand-controller sticks.toml --station 1", "a device, by its calibration file"),
    ("hil-server hand-controller --source straight_in.csv", "a recorded operator"),
)
UNHEARD_S = 2.0  # without a message from a run
CONNECTED_S = 1.0  # longest wait for the connection


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server hand-controller`."""
    from hil_server.bus.wire import COMMAND_ADDRESS, TELEMETRY_ADDRESS

    parser.add_argument(
        "calibration", nargs="?", metavar="CALIBRATION", help="calibration file (.toml): device, axes, buttons (see docs/console.md)"
    )
    parser.add_argument("--keyboard", action="store_true", help="reads the keys of this terminal instead of a device, for rehearsals")
    parser.add_argument(
        "--source",
        metavar="FILE",
        help="plays a recorded operator instead of a device; station 0 also sends its commands",
    )
    parser.add_argument("--bus", default=TELEMETRY_ADDRESS, metavar="ADDRESS", help="with --source: telemetry address of the run")
    parser.add_argument("--desk", default=COMMAND_ADDRESS, metavar="ADDRESS", help="with --source: command address of the run")
    parser.add_argument("--station", type=int, choices=(0, 1), help="station (default: that of the calibration file)")
    parser.add_argument("--address", metavar="ADDRESS", help="hand-controller address of the run (default: that of the calibration file)")
    parser.add_argument("--duration", type=float, metavar="S", help="ends after S seconds (default: at Ctrl-C)")


def run(args: argparse.Namespace) -> Document:
    """Sends the motion of the device until Ctrl-C; returns the counts."""
    from drivers.hand_controllers.evdev import EvdevSource
    from drivers.hand_controllers.keyboard import KeyboardSource
    from drivers.hand_controllers.keys import IN_WORDS
    from drivers.hand_controllers.serial_box import SerialBoxSource
    from hil_server.bus.wire import HAND_ADDRESS
    from hil_server.operator_desk.calibration import KEYBOARD, Desk, load
    from hil_server.operator_desk.sender import HandSender
    from hil_server.operator_desk.station import Station

    if sum(map(bool, (args.keyboard, args.calibration, args.source))) != 1:
        raise UsageError("hand-controller: give one of: a CALIBRATION file, --keyboard, --source FILE")
    if args.source:
        return _play(args)
    desk = Desk(0, 100.0, HAND_ADDRESS, "", "", {"kind": "keyboard"}, KEYBOARD) if args.keyboard else load(args.calibration)
    source = desk.source

    def open_source() -> "Source":
        if source["kind"] == "keyboard":
            return KeyboardSource(sys.stdin.fileno())
        if source["kind"] == "serial":
            return SerialBoxSource(source["path"], source["baud"])
        return EvdevSource(source["path"], desk.calibration.channels)

    server_key, keys = _keys(desk.server_key, desk.own_keys)
    station = desk.station if args.station is None else args.station
    with HandSender(station, args.address or desk.address, server_key, keys) as sender:
        desk_station = Station(open_source, desk.calibration, sender.send, desk.rate_hz, source.get("still_limit_s", 0.0), _say)
        try:
            desk_station.connect()
        except OSError as error:
            raise DeviceError(f"hand controller {source.get('path', source['kind'])}: {error.strerror or error}") from None
        if args.keyboard:
            _say(IN_WORDS)
        _say(f"sending to {args.address or desk.address}, {desk.rate_hz:g} times per second; Ctrl-C ends it")
        sender.wait(CONNECTED_S)
        seconds = _serve(desk_station, args.duration)
    return _conclude(desk_station, station, seconds)


def _play(args: argparse.Namespace) -> Document:
    """Plays a recorded operator by the run time on the bus."""
    from hil_server.bus.wire import HAND_ADDRESS
    from hil_server.config import named_file
    from hil_server.operator_desk.playback import AS_RECORDED, Follower, Playback
    from hil_server.operator_desk.script import load
    from hil_server.operator_desk.sender import HandSender
    from hil_server.operator_desk.station import Station

    rows, station = load(named_file(args.source, "programmes/operators")), args.station or 0
    with (
        Follower(rows, station == 0, args.bus, args.desk, _say) as follower,
        HandSender(station, args.address or HAND_ADDRESS) as sender,
    ):
        seconds, lost = follower.run_time.seconds, partial(follower.lost, station)
        player = Station(lambda: Playback(rows, station, seconds, lost), AS_RECORDED, sender.send, say=_say)
        player.connect()
        sender.wait(CONNECTED_S)
        flown = _serve(player, args.duration)
    return _conclude(player, station, flown)


def _serve(station: "Station", duration: float | None) -> float:
    """Sends until Ctrl-C or for `duration` s. Returns the duration."""
    started, warned = time.monotonic(), False
    try:
        with interrupts.ended_by_a_press():
            while duration is None or time.monotonic() - started < duration:
                station.step()
                if not warned and not station.sent and not station.unsent and time.monotonic() - started > UNHEARD_S:
                    warned = True
                    _say("no run is heard: waiting for one (is the address right?)")
                if not warned and station.unsent > 50 and station.sent < station.unsent:
                    warned = True
                    _say(
                        "no run receives the records: is a run with operator commands in progress, and is the address right? (keeps trying)"
                    )
    finally:
        station.close()
    return time.monotonic() - started


def _conclude(desk_station: "Station", station: int, seconds: float) -> Document:
    summary: Document = desk_station.summary() | {"exit_code": 0, "station": station, "seconds": seconds}
    summary["rate_hz"] = desk_station.sent / seconds
    print(f"station {station}: {summary['sent']} records in {seconds:.1f} s ({summary['rate_hz']:.0f} Hz), "
          f"{summary['unsent']} not sent, {summary['faults']} faults")  # fmt: skip
    return summary


def _keys(server_key: str, own_keys: str) -> tuple[str | None, tuple[str, str] | None]:
    """The server's public key and the own pair, from files as `make_keys` writes them."""
    import zmq.auth

    if bool(server_key) != bool(own_keys):
        raise ConfigurationError("hand controller: server_key and own_keys: give both; give neither on the machine of the run")
    if not server_key:
        return None, None
    try:
        public, _ = zmq.auth.load_certificate(server_key)
        own_public, own_secret = zmq.auth.load_certificate(own_keys)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"hand controller: keys: {error}") from None
    if own_secret is None:
        raise ConfigurationError(f"hand controller: own_keys: {own_keys}: has no secret key")
    return public.decode(), (own_public.decode(), own_secret.decode())


def _say(text: str) -> None:
    print(f"hand controller: {text}", file=sys.stderr, flush=True)
