"""Force/torque sensors in software, a file each, written from its public protocol; the stand that serves the wires runs one of them."""

import importlib
import pkgutil
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any


@cache
def emulators() -> dict[str, Any]:
    """Variant → class, of every emulator in this folder."""
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    return {variant: one for module in modules for one in vars(module).values() for variant in getattr(one, "VARIANTS", ())}


@cache
def emulator(variant: str) -> Any:
    """The class; variant: one of this folder, or "module:Class". Raises ValueError."""
    module, _, name = variant.partition(":")
    try:
        part = getattr(importlib.import_module(module), name) if name else emulators()[variant]
        if isinstance(part.VARIANTS, dict):
            return part
        raise ValueError("no emulator")
    except (ImportError, AttributeError, KeyError, ValueError) as error:
        raise ValueError(f"sensor.variant = {variant!r}: must be one of {', '.join(emulators())}, or module:Class") from error


def shows(variant: str) -> tuple[Mapping[str, int], Collection[str]]:
    """What this sensor can show: class of the status word → its word; and the faults that its wire cannot have."""
    variants = emulator(variant).VARIANTS
    return variants.get(variant) or next(iter(variants.values()), ({}, ()))
