"""Values of TOML and JSON, by the names under which functions take and give them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | Sequence["Value"] | Mapping[str, "Value"]
Keys: TypeAlias = Mapping[str, Value]  # a part's own, checked
Document: TypeAlias = dict[str, Any]  # tables as they are read from a file or written to one, whatever is in them
Given: TypeAlias = Mapping[str, Any]  # the same, only looked at


def finite(value: object) -> object:
    """None instead of what JSON has no number for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
