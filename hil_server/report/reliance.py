"""What protected a run and what did not: whose limits it ran under, which of them the test had stricter, and what this program is not
relied on for (docs/safety.md)."""

from collections.abc import Mapping
from typing import Any

from hil_server.config import narrowing
from hil_server.pages.html import table_html, text

NOT_RELIED_ON = (
    "the safety of persons: no stop of this program has a performance level (ISO 13849-1); the independent chain has one",
    "an emergency stop: the button, its wires and the removal of power are hardware (ISO 13850, IEC 60204-1)",
    "removal of power: drives are asked to stop and to switch off; who makes sure of it is outside",
    "forces between two ticks, and of a sensor that gives a plausible wrong value",
    "what moves without this program: a drive of its own, a hose, a load that falls",
    "the strength of docking units and stand: limits are figures of the stand file, as good as who signed them",
)


def body(document: Mapping[str, Any], devices: Mapping[str, str]) -> str:
    """The section of a report as HTML. document: the configuration of the run as plain tables; devices: what those of the stand reported
    they are, by table."""
    record = document.get("stand", {}).get("safety_record")
    if not isinstance(record, Mapping) or "state" not in record:
        signed = '<p class="note">Who signed the limits of the stand was not logged.</p>'
    else:
        words = narrowing.in_words(record)
        signed = f"<p>{text(words[0].upper() + words[1:])}.</p>"
        if record["narrower"]:
            rows = [(one["key"], _shown(one["value"]), _shown(one.get("limit", "any")), one["unit"]) for one in record["narrower"]]
            table = table_html(("limit", "in this test", "of the stand", "unit"), rows)
            signed += f"<h3>Stricter in this test than the stand allows</h3>{table}"
    if devices:
        signed += f"<h3>Devices</h3>{table_html(('device', 'identity'), list(devices.items()))}"
    items = "".join(f"<li>{text(one)}</li>" for one in NOT_RELIED_ON)
    return f"{signed}<h3>This program is not relied on for</h3><ul>{items}</ul>"


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
