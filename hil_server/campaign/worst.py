"""The worst cases of a campaign, run again with full logs and reports."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.campaign.plan import Plan
from hil_server.config import test_from_toml
from hil_server.errors import HilError
from hil_server.run.session import Options, simulate
from hil_server.telemetry.log_file import open_log


def rerun(plan: Plan, numbers: list[int], conditions: np.ndarray, folder: Path) -> list[dict[str, Any]]:
    """The worst cases again, with full logs; those that are there already stay. conditions: of all cases, (cases, keys)."""
    done = []
    for number in numbers:
        out = folder / "worst" / f"case-{number:07d}"
        log = out / "run.mcap"
        if not (out / "run.html").exists():  # the report comes last: without it the run was cut off
            shutil.rmtree(out, ignore_errors=True)
            overrides = [*plan.settings(conditions[number]), "telemetry.log_every=1"]
            try:
                simulate(test_from_toml(plan.base.as_toml(), overrides), Options(out=str(out), quiet=True, report=True))
            except HilError:
                continue
        done.append({"number": number, "log": str(log), "branch": branch_command(log)})
    return done


def branch_command(log: Path) -> str:
    """The command that goes on from a worst case before its first contact, with keys to be changed; from its start where there is none."""
    contact = float(open_log(log).records["first_contact_time"][-1])
    when = "0" if contact < 0.0 else f"contact-{min(1.0, contact):.3g}s"
    return f"hil-server simulate --from {log}@{when} --set KEY=VALUE"
