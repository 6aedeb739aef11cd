"""The worst cases of a campaign, run again with full logs and reports."""

import shutil
from pathlib import Path

import numpy as np

from hil_server import interrupts
from hil_server.campaign.case import gone_on
from hil_server.campaign.plan import Plan
from hil_server.config import test_from_toml
from hil_server.errors import HilError
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate
from hil_server.values import Document


def rerun(plan: Plan, numbers: list[int], conditions: np.ndarray, folder: Path) -> list[Document]:
    """The worst cases again, with full logs; those that are there already stay. conditions: of all cases, (cases, keys).

    Raises KeyboardInterrupt when one of them was stopped by a press; what there is of it is deleted."""
    done, remains = [], interrupts.remains()
    for number in numbers:
        out = folder / "worst" / f"case-{number:07d}"
        log = out / "run.mcap"
        if not (out / "run.html").exists():  # the report comes last: without it the run was cut off
            shutil.rmtree(out, ignore_errors=True)
            overrides = [*plan.settings(conditions[number]), "telemetry.log_every=1"]
            try:
                config = test_from_toml(plan.base.as_toml(), overrides)
                begin = None if plan.begin is None else gone_on(plan.begin, config, overrides)
                summary = simulate(config, Options(out=str(out), quiet=True, report=True), begin)
            except HilError:
                continue
            finally:
                interrupts.remains(remains)
            if summary["interrupted"]:  # its exit code may be that of a trip of its own
                shutil.rmtree(out)
                raise KeyboardInterrupt
        done.append({"number": number, "log": str(log), "branch": branch_command(log)})
    return done


def branch_command(log: Path) -> str:
    """The command that continues a worst case from before its first contact, with keys to be changed; from its start where there is none in
    it."""
    flown = read_log(log)
    start, contact = float(flown.time_s[0]), float(flown.records["first_contact_time"][-1])
    when = f"{start:g}" if contact < start else f"contact-{min(1.0, contact - start):.3g}s"
    return f"hil-server simulate --from {log}@{when} --set KEY=VALUE"
