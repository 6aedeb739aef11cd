"""The order of the tests: files that take long first. What a run of them says at its end: what was skipped and how to have it, and which
tests took more than their share of the time."""

import re
from collections import Counter
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).parent
# files of more than ten seconds, longest first: no core is left with one of them when the others have nothing more to do
LONGEST = """test_snippets.py system/test_berthing_run.py system/test_interrupted.py judge/test_peaks.py system/test_virtual_docking.py
campaign/test_campaign.py system/test_docking_to_rollers.py system/test_end_of_time.py drivers/test_misbehaviour.py system/test_fly.py
drivers/simulated/test_stand_server.py guidance/test_berthing.py
exchange/test_recordings.py campaign/test_rare.py judge/test_alignment.py predict/test_prediction.py
fuzz/test_fuzz.py mechanisms/probe_cone/test_movable_limiter.py config/test_shipped.py contracts/test_new_parts.py
system/test_new_and_packages.py dynamics/test_two_crafts_runs.py system/test_record_lost.py offline/test_kane.py bus/test_drain.py
exchange/test_notebooks.py bus/test_bus.py hybrid/test_contact_table.py
drivers/simulated/sensor_emulators/test_sensor_emulators.py contracts/test_ports.py config/test_schemas.py
identify/test_stand.py""".split()
SHARE_S = 20.0  # of one test with its set-up, of the whole run
# reason of a skip -> how to have it
REMEDIES = {
    r"Node": "install the package nodejs",
    r"Chromium": "install the package chromium (Ubuntu: chromium-browser)",
    r"vcan": "load the kernel's virtual CAN: modprobe vcan, ip link add dev vcan0 type vcan, ip link set vcan0 up",
    r"namespace|unshare": "run as root, or allow user namespaces, with the packages util-linux and iproute2",
    r"needs root|only root|mounting": "run as root",
    r"real-time scheduling": "run as root, or with a limit for rtprio (docs/real-time-host.md)",
    r"context switches": "run as root, or with sysctl kernel.perf_event_paranoid=0",
    r"systemd-analyze": "install the package systemd",
    r"no gcc": "install the package gcc",
    r"could not import '(?P<module>[^'.]+)": "pip install {module}",
    r"optional group (?P<group>\w+)": "pip install -e '.[{group}]'",
}


def pytest_configure(config):
    settings.register_profile("suite", derandomize=True)  # the same cases every time: a run that is red by chance tells no one anything
    settings.load_profile("suite")
    config.option.loadscopereorder = False  # pytest-xdist's own order: many short tests before few long ones


def pytest_collection_modifyitems(items):
    place = {TESTS / file: k for k, file in enumerate(LONGEST)}
    assert all(file.is_file() for file in place), "LONGEST names a file that is not there"
    items.sort(key=lambda item: place.get(item.path, len(place)))


def remedy(reason):
    """How to have what a skip names; empty where nothing can be done on this machine."""
    for pattern, text in REMEDIES.items():
        if found := re.search(pattern, reason):
            return text.format(**found.groupdict())
    return ""


def pytest_terminal_summary(terminalreporter):
    skipped = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    if skipped:
        terminalreporter.section("not tried here")
        for reason, count in skipped.most_common():
            text = remedy(reason)
            terminalreporter.write_line(f"{count:4d}  {reason}" + (f"\n      to try it: {text}" if text else ""))
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "nodeid"):
                seconds[report.nodeid] += report.duration
    long = [(name, spent) for name, spent in seconds.most_common(20) if spent > SHARE_S]
    if long:
        terminalreporter.section(f"took more than {SHARE_S:.0f} s")
        for name, spent in long:
            terminalreporter.write_line(f"{spent:5.0f} s  {name}")
