"""What sets a bench up: the recipe that check answers, the service, the image, the wheels."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hil_server.bus import wire
from hil_server.host import kernel_files, preflight
from hil_server.host.late_causes import CAUSES

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "real-time-host.md").read_text()
INSTRUCTIONS = set("ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split())


def rows(heading):
    """Rows of the first table below a heading of the guide, without its head."""
    part = GUIDE.split(f"## {heading}\n")[1]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n## ")[0].splitlines() if line.startswith("|")]
    return found[2:]


def test_check_answers_the_recipe_line_by_line():
    answered = [finding.item for finding in preflight.examine(seconds=0)]
    assert [row[0] for row in rows("Recipe")] == list(preflight.RECIPE)
    assert [item for item in preflight.RECIPE if item not in answered] == []
    # and says nothing of the host that the recipe leaves out, but the buses
    assert [item for item in answered if item not in preflight.RECIPE and not item.startswith(("CAN", "USB", "clock res"))] == []


COMMANDS = re.compile(r"(?:sysctl \S+=\S+|echo \S+ > \S+|systemctl disable --now \w+|cpupower .*|swapoff -a|[a-z_]+=\S+|nosmt)")


def test_every_remedy_is_in_the_recipe(monkeypatch):
    """A host on which everything is wrong: what check advises is what the guide has done."""
    wrong = {
        "/proc/sys/kernel/sched_rt_runtime_us": "0", "/proc/cpuinfo": "flags : hypervisor", "/sys/devices/system/cpu/smt/active": "1",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet", "/proc/swaps": "Filename\n/dev/sda2",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never", "/sys/kernel/mm/ksm/run": "1",
        "/proc/sys/kernel/numa_balancing": "1", "/proc/sys/kernel/watchdog": "1",
    }  # fmt: skip
    monkeypatch.setattr(kernel_files, "read", lambda path: wrong.get(str(path), "irqbalance" if str(path).endswith("/comm") else ""))
    monkeypatch.setattr(preflight, "fifo_refusal", lambda: "Operation not permitted")
    monkeypatch.setattr(preflight, "has_capability", lambda number: False)
    monkeypatch.setattr(preflight.resource, "getrlimit", lambda kind: (65536, 65536))
    monkeypatch.setattr(preflight.SwitchTrace, "open", classmethod(lambda cls, core: None))
    monkeypatch.setattr(preflight.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    recipe = {row[0]: row[1] for row in rows("Recipe")}
    bad = [finding for finding in preflight.examine(3, seconds=0) if finding.remedy and finding.item in recipe]
    # the rest is read from folders, which are this machine's
    assert set(preflight.RECIPE) - {finding.item for finding in bad} <= {"idle states", "interrupts", "frequency governor"}
    for finding in bad:
        for command in COMMANDS.findall(finding.remedy):
            words = re.sub(r"^sysctl |[,.)]*$", "", command)
            if finding.item not in ("real-time throttling", "transparent huge pages", "numa balancing"):  # the guide has them lasting
                assert words in GUIDE, (finding.item, command)


def test_the_guide_names_every_cause_of_a_late_tick():
    assert tuple(row[0] for row in rows("Why a tick was late")) == CAUSES


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_the_service_is_clean(tmp_path):
    """systemd's own check, with the program where this tree has it."""
    text = (DEPLOY / "hil-server.service").read_text()
    program = tmp_path / "hil-server"
    program.write_text(f"#!{sys.executable}\n")
    program.chmod(0o755)
    unit = tmp_path / "hil-server.service"
    unit.write_text(text.replace("/opt/hil-server/bin/hil-server", str(program)).replace("User=stand\n", "User=root\n"))
    reported = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert reported.returncode == 0 and "hil-server.service" not in reported.stderr, reported.stderr
    broken = tmp_path / "broken.service"
    broken.write_text(unit.read_text().replace("LimitRTPRIO=98", "LimitRTPRIO=many"))
    assert "broken.service" in subprocess.run(["systemd-analyze", "verify", str(broken)], capture_output=True, text=True).stderr


def test_the_service_gives_what_the_recipe_gives():
    text = (DEPLOY / "hil-server.service").read_text()
    limits = re.search(r"```text\n(@stand.*?)```", GUIDE, re.DOTALL)[1].split()
    assert f"LimitRTPRIO={limits[limits.index('rtprio') + 1]}\n" in text and "LimitMEMLOCK=infinity\n" in text
    assert limits[limits.index("memlock") + 1] == "unlimited" and "KillSignal=SIGINT\n" in text


def test_the_recipe_of_the_image_reads_as_one():
    """No registry can be reached from a test, so nothing is built: its instructions exist, its stages and files as well."""
    text = (DEPLOY / "Containerfile").read_text()
    lines = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if line and not line.startswith("#"))).splitlines()
    assert {line.split()[0] for line in lines} <= INSTRUCTIONS
    stages = {words[3] for line in lines if (words := line.split())[0] == "FROM" and len(words) == 4}
    for line in lines:
        words = line.split()
        if words[0] == "COPY":
            source = re.search(r"--from=(\w+)", line)
            assert source[1] in stages if source else all((ROOT / one).exists() for one in words[1:-1])
    assert lines[-1] == 'CMD ["run"]' and 'ENTRYPOINT ["hil-server"]' in lines
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = re.findall(r"\[(\w+)\]'", text)
    assert groups and set(groups) <= set(project["optional-dependencies"])
    version = re.search(r"ARG PYTHON=3\.(\d+)", text)[1]
    assert int(version) >= int(project["requires-python"].removeprefix(">=3."))
    assert wire.TELEMETRY_ADDRESS.endswith(":9770") and "--network=host" in text


def test_wheels_are_made_for_both_processors_and_every_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheels, ci = project["tool"]["cibuildwheel"], (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert wheels["linux"]["archs"] == ["x86_64", "aarch64"]
    pythons = re.findall(r'"3\.(\d+)"', ci)
    assert wheels["build"].split() == [f"cp3{minor}-manylinux_*" for minor in pythons]
