"""Makes the FMU of these tests: controller.c through the C compiler, a model description, a ZIP file."""

import atexit
import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).with_name("controller.c")
# name, type, causality, start: in the order of the value references of controller.c
VARIABLES = (
    ("w[0]", "real", "input", 0.0), ("w[1]", "real", "input", 0.0), ("w[2]", "real", "input", 0.0), ("press", "Boolean", "input", "false"),
    ("torque[0]", "real", "output", None), ("torque[1]", "real", "output", None), ("torque[2]", "real", "output", None),
    ("thrust", "real", "output", None), ("gain", "real", "parameter", 50.0), ("force", "real", "parameter", 100.0),
    ("lag", "real", "parameter", 0.05), ("fail_time", "real", "parameter", 1e9), ("fail", "integer", "parameter", 0), None,
    ("pushing", "Boolean", "output", None),
)  # fmt: skip
INPUTS = {"w[0]": "V_NC[3]", "w[1]": "V_NC[4]", "w[2]": "V_NC[5]", "press": "control_request.press"}
OUTPUTS = {"torque[0]": "control_A[3]", "torque[1]": "control_A[4]", "torque[2]": "control_A[5]", "thrust": "control_A[0]",
           "pushing": "control_status.firing"}  # fmt: skip
BINARIES = {2: "linux64", 3: "x86_64-linux"}


@lru_cache
def library(version, law=""):
    """The shared library of controller.c for this version of FMI, as bytes. law: a header beside it, another controller."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "controller.so"
        compiler = shutil.which("cc") or "gcc"
        subprocess.run([compiler, f"-DFMI={version}", "-O2", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-fvisibility=hidden",
                        *([f'-DLAW="{law}"'] if law else []), str(SOURCE), "-o", str(out), "-lm"], check=True)  # fmt: skip
        return out.read_bytes()


def description(version, fmi_version=None, interface="CoSimulation", keeps_state=True, fixed_step=None, variables=VARIABLES):
    """modelDescription.xml."""
    three, keeps = version == 3, str(keeps_state).lower()
    types = {"real": "Float64" if three else "Real", "integer": "Int32" if three else "Integer"}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<fmiModelDescription fmiVersion="{fmi_version or f"{version}.0"}" modelName="controller" version="1.4" '
                 f'generationTool="factory" {"instantiationToken" if three else "guid"}="{{controller-{version}}}">')
    state = ("canGetAndSetFMUState", "canSerializeFMUState") if three else ("canGetAndSetFMUstate", "canSerializeFMUstate")
    own = f' fixedInternalStepSize="{fixed_step}"' if fixed_step else ""
    lines.append(f'<{interface} modelIdentifier="controller" {state[0]}="{keeps}" {state[1]}="{keeps}"{own}/>')
    lines.append("<ModelVariables>")
    for reference, variable in enumerate(variables):
        if variable is None:
            continue
        name, kind, causality, start = variable
        kind = types.get(kind, kind)
        about = f'name="{name}" valueReference="{reference}" causality="{causality}"'
        about += ' variability="fixed"' if causality == "parameter" else ' variability="discrete"' if kind in ("Boolean", "Int32") else ""
        begun = "" if start is None else f' start="{start}"'
        lines.append(f"<{kind} {about}{begun}/>" if three else f"<ScalarVariable {about}><{kind}{begun}/></ScalarVariable>")
    outputs = [i for i, v in enumerate(variables) if v and v[2] == "output"]
    indices = [i for i, v in enumerate([v for v in variables if v]) if v[2] == "output"]
    lines.append("</ModelVariables><ModelStructure>")
    lines += [f'<Output valueReference="{i}"/>' for i in outputs] if three else [
        "<Outputs>", *(f'<Unknown index="{i + 1}"/>' for i in indices), "</Outputs>"]  # fmt: skip
    lines.append("</ModelStructure></fmiModelDescription>")
    return "\n".join(lines)


def write(path, version, binaries=None, law="", **changes):
    """An FMU. Returns the keys that name it: file and sha256."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description(version, **changes))
        archive.writestr(f"binaries/{binaries or BINARIES[version]}/controller.so", library(version, law))
    return {"file": str(path), "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}


def folder():
    """A folder that is there until the tests end."""
    made = tempfile.mkdtemp(prefix="hil-tests-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def keys(folder, version=2, start=None, **changes):
    """Keys of the part, with an FMU made in `folder`."""
    named = write(Path(folder) / f"controller{version}.fmu", version, **changes)
    return named | {"inputs": dict(INPUTS), "outputs": dict(OUTPUTS), "start": dict(start or {})}
