"""A part's keyword arguments against its declaration, for parts that are made by hand (the loader has checked a TOML table before)."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rt_kernels.parameters import Parameter

_KINDS: dict[str, tuple[type, ...]] = {"float": (int, float), "int": (int,), "bool": (bool,), "str": (str,), "table": (dict,)}


def checked(declared: Iterable[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """All values, defaults filled in. Raises ValueError naming key, value, limit and unit of the first that cannot be."""
    declared = tuple(declared)
    known = {parameter.key for parameter in declared}
    for key in given:
        if key not in known:
            raise ValueError(f"{key} is no parameter of this part; there are: {', '.join(sorted(known))}")
    values = {}
    for parameter in declared:
        if parameter.key in given:
            values[parameter.key] = _value(parameter, given[parameter.key])
        elif parameter.required:
            raise ValueError(f"{parameter.key} is missing: {parameter.meaning} [{parameter.unit}]")
        else:
            values[parameter.key] = parameter.default
    return values


def _value(parameter: Parameter, value: Any) -> Any:
    if parameter.kind == "floats":
        numbers = [_number(parameter, x) for x in _list(parameter, value)]
        if parameter.shape is not None and len(numbers) != parameter.shape:
            raise ValueError(f"{parameter.key} = {value!r}: must have {parameter.shape} numbers [{parameter.unit}]")
        return numbers
    kinds = _KINDS[parameter.kind]
    if not isinstance(value, kinds) or (isinstance(value, bool) and parameter.kind != "bool"):
        raise ValueError(f"{parameter.key} = {value!r}: must be of kind {parameter.kind} [{parameter.unit}]")
    if parameter.kind in ("float", "int"):
        return _number(parameter, value)
    if parameter.choices is not None and value not in parameter.choices:
        raise ValueError(f"{parameter.key} = {value!r}: must be one of {', '.join(parameter.choices)}")
    return value


def _list(parameter: Parameter, value: Any) -> list[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ValueError(f"{parameter.key} = {value!r}: must be a list of numbers [{parameter.unit}]")
    return list(value)


def _number(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{parameter.key} = {value!r}: must be a finite number [{parameter.unit}]")
    if parameter.low is not None and value < parameter.low:
        raise ValueError(f"{parameter.key} = {value!r}: must be at least {parameter.low} [{parameter.unit}]")
    if parameter.high is not None and value > parameter.high:
        raise ValueError(f"{parameter.key} = {value!r}: must be at most {parameter.high} [{parameter.unit}]")
    return float(value) if parameter.kind == "float" else value
