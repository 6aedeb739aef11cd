"""The committed pictures of README and guides. The two that are drawn (tools/generate.py writes them).

docs/stand.svg          the shipped docking stand in its neutral pose, out of its file by its own kinematics
docs/architecture.svg   data flow: stages as the table has them, ports, ring, processes

The others show the program; `python tools/draw_pictures.py [report] [console] [operator]` (none named: all; needs Chromium and some
minutes) takes them:

docs/report.png         the top of the report of the shipped docking
docs/console.png        the console's mimic display of a simulated docking at its first contact
docs/operator.png       the operator's view of a berthing on the virtual stand, before anybody has flown

Stand: axonometric projection, X (the docking axis) up, metres.
"""

import argparse
import contextlib
import math
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rt_kernels.extends import read_tables
from rt_kernels.stages import STAGES
from rt_kernels.stewart.platform import Platform

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
STAND = ROOT / "stand_configs" / "stands" / "docking_stand.toml"

INK, STEEL, PALE, BLUE, ORANGE, GREEN = "#263238", "#78909c", "#eceff1", "#1565c0", "#ef6c00", "#2e7d32"
FONT = "font-family='Helvetica, Arial, sans-serif'"


class Drawing:
    """Lines of an SVG file; coordinates in its own units, y down."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' {FONT}>",
            f"<title>{title}</title>",
            f"<rect width='{width}' height='{height}' rx='8' fill='white'/>",
        ]

    def path(self, points, stroke=INK, width=1.5, fill="none", more="") -> None:
        at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        kind = "polygon" if fill != "none" else "polyline"
        self.lines.append(f"<{kind} points='{at}' fill='{fill}' stroke='{stroke}' stroke-width='{width}' stroke-linejoin='round' {more}/>")

    def box(self, x, y, width, height, fill=PALE, stroke=STEEL, more="") -> None:
        self.lines.append(f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='6' fill='{fill}' stroke='{stroke}' {more}/>")

    def text(self, x, y, text, size=13, anchor="middle", fill=INK, more="") -> None:
        self.lines.append(f"<text x='{x:.0f}' y='{y:.0f}' font-size='{size}' text-anchor='{anchor}' fill='{fill}' {more}>{text}</text>")

    def arrow(self, *points, stroke=INK, more="") -> None:
        """Through the points, with its head at the last one."""
        (x0, y0), (x, y) = points[-2:]
        angle, size = math.atan2(y - y0, x - x0), 7.0
        self.path(points, stroke, 1.6, more=more)
        wings = [(x - size * math.cos(angle + s), y - size * math.sin(angle + s)) for s in (0.45, -0.45)]
        self.path([(x, y), *wings], stroke, 1.0, fill=stroke)

    def __str__(self) -> str:
        return "\n".join([*self.lines, "</svg>", ""])


# ---------------------------------------------------------------------------------------------------------------------- stand


def on_paper(p) -> tuple[float, float]:
    """W (3,) m to the paper: X up, Y and Z turned by 25 degrees and seen from 15 degrees above."""
    x, y, z = p
    turn, tilt = math.radians(25.0), math.radians(15.0)
    right, back = y * math.cos(turn) - z * math.sin(turn), y * math.sin(turn) + z * math.cos(turn)
    return 310.0 + 74.0 * right, 432.0 - 74.0 * (x * math.cos(tilt) + back * math.sin(tilt))


def circle(x: float, radius: float) -> list[tuple[float, float]]:
    angles = np.linspace(0.0, 2.0 * np.pi, 49)
    return [on_paper((x, radius * math.cos(a), radius * math.sin(a))) for a in angles]


def tube(d: Drawing, low: float, high: float, r_low: float, r_high: float, fill: str) -> None:
    """A body of revolution about the docking axis between two circles."""
    (x0, y0), (x1, y1) = on_paper((low, 0.0, 0.0)), on_paper((high, 0.0, 0.0))
    d.path(circle(low, r_low), INK, 1.2, fill)
    d.path([(x0 - 74 * r_low, y0), (x1 - 74 * r_high, y1), (x1 + 74 * r_high, y1), (x0 + 74 * r_low, y0)], "none", 0, fill)
    d.path([(x0 - 74 * r_low, y0), (x1 - 74 * r_high, y1)], INK, 1.2)
    d.path([(x0 + 74 * r_low, y0), (x1 + 74 * r_high, y1)], INK, 1.2)
    d.path(circle(high, r_high), INK, 1.2, fill)


def stand() -> str:
    """The stand of `STAND` in its neutral pose, a probe on the platform and a cone on the load cell."""
    file = read_tables(STAND)
    platform, mounting = Platform.from_dict(file["platform"]), file["mounting"]
    base = np.asarray(platform.base_joints)
    pose = np.asarray(platform.neutral_pose)
    joints = pose[:3] + np.asarray(platform.platform_joints)  # parallel to W in the neutral pose
    cell = mounting["load_cell_position_m"][0]
    target = cell + mounting["measured_port_position_m"][0]
    active = pose[0] + mounting["other_port_position_m"][0]

    d = Drawing(760, 500, "Docking stand: Stewart platform, active unit, target unit on the load cell")
    d.path(circle(0.0, 3.35), STEEL, 1.0, PALE)
    columns = [(3.3 * math.cos(a), 3.3 * math.sin(a)) for a in np.radians([35.0, 145.0, 215.0, 325.0])]
    top = cell + 0.35
    for y, z in sorted(columns, key=lambda c: -on_paper((0.0, *c))[1])[2:]:  # the two behind
        d.path([on_paper((0.0, y, z)), on_paper((top, y, z))], STEEL, 5.5)
    legs = sorted(zip(base, joints, strict=True), key=lambda leg: on_paper(leg[0])[1])
    for foot, head in legs:
        middle = foot + 0.55 * (head - foot)
        d.path([on_paper(foot), on_paper(middle)], BLUE, 9.0)
        d.path([on_paper(middle), on_paper(head)], STEEL, 4.5)
    d.path([on_paper(j) for j in joints], INK, 1.5, "#cfd8dc")
    tube(d, pose[0], active, 0.42, 0.34, "#ffcc80")
    tube(d, active, target - 0.28, 0.06, 0.06, ORANGE)
    tube(d, target - 0.28, target - 0.16, 0.06, 0.10, ORANGE)
    for y, z in columns:
        d.path([on_paper((top, y, z)), on_paper((top, 0.0, 0.0))], STEEL, 5.5)
    tube(d, target - 0.1, target + 0.12, 0.50, 0.28, "#a5d6a7")
    tube(d, cell - 0.08, cell + 0.08, 0.30, 0.30, "#e53935")
    tube(d, cell + 0.08, top, 0.22, 0.22, STEEL)
    for y, z in sorted(columns, key=lambda c: -on_paper((0.0, *c))[1])[:2]:  # the two in front
        d.path([on_paper((0.0, y, z)), on_paper((top, y, z))], STEEL, 5.5)
    for height, radius, text in (
        (cell, 0.30, "force/torque sensor"),
        (target, 0.50, "target unit"),
        (active + 0.12, 0.06, "active unit"),
        (pose[0] - 0.1, 1.3, "platform"),
        (1.5, 1.85, "six hydraulic legs"),
    ):
        x, y = on_paper((height, 0.0, 0.0))
        y_text = y - 14 if text == "force/torque sensor" else y
        d.path([(x + 74 * radius + 4, y), (592, y_text)], STEEL, 0.8)
        d.text(598, y_text + 5, text, 15, "start")
    return str(d)


# --------------------------------------------------------------------------------------------------------------- architecture


def architecture() -> str:
    """Processes as frames, the loop's straight line from left to right, what leaves it below."""
    d = Drawing(980, 470, f"Data flow: ports, {len(STAGES)} stages, ports, ring, telemetry process, log and bus")
    frame = "stroke-dasharray='6 4'"
    # the world
    d.box(16, 40, 150, 246, "white", ORANGE, frame)
    d.text(91, 30, "stand, or virtual stand", 13, fill=ORANGE)
    for i, name in enumerate(("force sensor", "drives", "mechanism signals")):
        d.box(28, 68 + 72 * i, 126, 44, "#fff3e0", ORANGE)
        d.text(91, 95 + 72 * i, name)
    # the loop
    d.box(192, 40, 772, 246, "white", BLUE, frame)
    d.text(578, 30, "server: one loop thread, 1000 ticks a second, each a straight line without lock or allocation", 13, fill=BLUE)
    d.box(208, 130, 84, 64, "#e3f2fd", BLUE)
    d.text(250, 157, "ports")
    d.text(250, 175, "read")
    d.box(864, 130, 84, 64, "#e3f2fd", BLUE)
    d.text(906, 157, "ports")
    d.text(906, 175, "write")
    d.box(208, 56, 84, 40, "#e3f2fd", BLUE)
    d.text(250, 81, "clock wait")
    d.arrow((250, 96), (250, 130), stroke=BLUE)
    d.arrow((166, 162), (208, 162))
    half = (len(STAGES) + 1) // 2
    width = 124
    at = []
    for i, (name, *_) in enumerate(STAGES):
        row, column = divmod(i, half)
        x, y = 316 + column * (width + 10), 72 + row * 106
        at.append((x, y))
        d.box(x, y, width, 48, "#bbdefb", BLUE)
        words = name.split("_")
        d.text(x + width / 2, y + 20, f"{i + 1}", 11, fill=BLUE)
        d.text(x + width / 2, y + 37, " ".join(words), 12)
    for (x, y), (x_next, y_next) in zip(at, at[1:], strict=False):
        if y == y_next:
            d.arrow((x + width, y + 24), (x_next, y + 24), stroke=BLUE)
        else:
            d.arrow(
                (x + width / 2, y + 48), (x + width / 2, y + 77), (x_next + width / 2, y + 77), (x_next + width / 2, y_next), stroke=BLUE
            )
    first, last = at[0], at[-1]
    d.arrow((292, 150), (304, 150), (304, first[1] + 24), first[0:1] + (first[1] + 24,), stroke=BLUE)
    d.arrow((last[0] + width, last[1] + 24), (856, last[1] + 24), (856, 176), (864, 176), stroke=BLUE)
    d.text(578, 262, "each stage fills its own fields of the one Sample", 12, fill=BLUE)
    d.arrow((906, 194), (906, 304), (91, 304), (91, 286))
    d.text(330, 300, "setpoints of the legs, commands to the mechanism", 12)
    # out of the loop
    d.arrow((930, 194), (930, 350), (872, 350))
    d.box(712, 326, 160, 48, "#e8f5e9", GREEN)
    d.text(792, 347, "ring in shared memory")
    d.text(792, 364, "every sample, every tick", 11)
    d.box(430, 318, 250, 136, "white", GREEN, frame)
    d.text(555, 336, "telemetry process", 13, fill=GREEN)
    d.arrow((712, 356), (668, 356))
    d.box(560, 344, 108, 24, "#e8f5e9", GREEN)
    d.text(614, 361, "reads the ring", 12)
    d.box(446, 384, 100, 56, "#e8f5e9", GREEN)
    d.text(496, 408, "log (MCAP)")
    d.text(496, 426, "every tick", 11)
    d.box(566, 384, 100, 56, "#e8f5e9", GREEN)
    d.text(616, 408, "bus (ZeroMQ)")
    d.text(616, 426, "thinned", 11)
    d.arrow((590, 368), (496, 384))
    d.arrow((624, 368), (620, 384))
    d.box(720, 398, 228, 56, "white", STEEL, frame)
    d.text(834, 420, "clients: console, scripts,", 12)
    d.text(834, 438, "hand controllers", 12)
    d.arrow((666, 420), (720, 420))
    d.box(150, 384, 250, 56, "white", STEEL, frame)
    d.text(275, 407, "replay · report · compare", 12)
    d.text(275, 425, "export · campaign", 12)
    d.arrow((446, 412), (400, 412))
    d.text(936, 391, "commands, stick rates", 11, "end")
    d.arrow((942, 398), (942, 286))
    return str(d)


# -------------------------------------------------------------------------------------------------------------------- screens

PROGRAM = [sys.executable, "-m", "hil_server"]


@contextlib.contextmanager
def browser(folder: Path, width: int = 1366, height: int = 800):
    """Headless Chromium with a window of this size."""
    from tests.console.chromium import Browser

    folder.joinpath("browser").mkdir()
    window = Browser(folder / "browser")
    try:
        window.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        yield window
    finally:
        window.close()


@contextlib.contextmanager
def console(folder: Path, *arguments: str):
    """Address of a console of the logs in the folder."""
    served = subprocess.Popen(
        [*PROGRAM, "console", "--logs", folder, "--port", "8799", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield served.stdout.readline().split()[-1]
    finally:
        served.terminate()
        served.wait(20)


def save(window, file: Path) -> None:
    """What the window shows, as a small file: pages of flat colours keep well in a palette."""
    from PIL import Image

    window.picture(file)
    Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)


def simulated(folder: Path, test: str) -> Path:
    """Log of a simulated run."""
    subprocess.run([*PROGRAM, "simulate", test, "--out", folder / "docking", "--quiet"], cwd=ROOT, check=False)
    return next((folder / "docking").glob("*.mcap"))


def report_screen(file: Path, folder: Path) -> None:
    """The report of the shipped docking as it opens, in a window of 1300 x 800."""
    page = simulated(folder, "programmes/docking.toml").with_suffix(".html")
    with browser(folder, 1300, 800) as window:
        window.go(page.as_uri())
        time.sleep(2.0)
        save(window, file)


def console_screen(file: Path, folder: Path) -> None:
    """The mimic display one second after the first contact of a simulated docking."""
    from hil_server.console.recording import Recording
    from tests.console.chromium import wait_for

    log = simulated(folder, "programmes/virtual_docking.toml")
    with console(folder) as address, browser(folder, 1280, 800) as window:
        window.go(f"{address}mimic?log={log}")
        wait_for(lambda: window.value("!!window.hilGo") and "phase" in window.text, 120)
        window.value(f"window.hilGo({float(Recording(log).log.records['first_contact_time'][-1]) + 1.0})")
        time.sleep(4.0)  # pictures and curves come one after another
        save(window, file)


def operator_screen(file: Path, folder: Path) -> None:
    """The operator's page of a live berthing whose loop has been closed for some seconds; on addresses of its own."""
    from tests.console.chromium import wait_for

    at = {name: f"tcp://127.0.0.1:{9881 + k}" for k, name in enumerate(("publish", "command", "hand_controller"))}
    settings = [word for name, address in at.items() for word in ("--set", f"telemetry.{name}={address}")]
    to = ["--telemetry", at["publish"], "--command", at["command"], "--hand", at["hand_controller"]]
    run = subprocess.Popen(
        [*PROGRAM, "run", "programmes/berthing_operator.toml", *settings, "--out", folder / "flight", "--operator", "Ada"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with console(folder, *to) as address, browser(folder) as window:
            window.go(f"{address}operator")
            flown = re.compile(r"T current\s+([\d.]+)")  # s of the run; the loop is closed ten seconds after its start
            def shows_flight(text: str) -> bool:
                return "CONNECTION LOST" not in text and bool(found := flown.search(text)) and float(found[1]) > 20.0

            for _ in range(10):  # a machine that is too busy for the run, console and browser loses it now and then
                wait_for(lambda: shows_flight(window.text), 240)
                save(window, file)
                if shows_flight(window.text):
                    return
            raise SystemExit("this machine is too busy for a live run, its console and a browser: no picture of the operator's view")
    finally:
        run.send_signal(signal.SIGINT)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)  # the first one parks, the second one ends
        run.wait(60)


SCREENS = {"report": report_screen, "console": console_screen, "operator": operator_screen}


def files() -> dict[Path, str]:
    """Path and text of what is drawn."""
    return {DOCS / "stand.svg": stand(), DOCS / "architecture.svg": architecture()}


def main() -> int:
    parser = argparse.ArgumentParser(description="Takes the pictures of the program: report, console, operator.")
    parser.add_argument("screen", nargs="*", choices=sorted(SCREENS), help="none named: all")
    for name in parser.parse_args().screen or SCREENS:
        with tempfile.TemporaryDirectory() as folder:
            SCREENS[name](DOCS / f"{name}.png", Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
