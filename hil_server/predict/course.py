"""What the prediction of a run says of its force, as the keys of [safety] that hold the sensor against it.

The axial force of a contact is judged where the units are deeper in each other than ever before: that part of a docking a simulation and
a run have in common, what bounces behind it they have not. See `rt_kernels.safety.limits`.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from os import PathLike
from typing import TypedDict

import numpy as np

from hil_server import registry
from hil_server.config import TestConfig
from hil_server.config.narrowing import is_wider
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.log.reader import read_log
from hil_server.values import Document
from rt_kernels.codes import mask
from rt_kernels.layout import CODES

POINTS = 60  # of the course before the capture
MOST_POINTS = 250  # the safety stage has room for 256
LEAST_STEP_M = 1e-4
MEMORY_S = 0.02  # in which the largest force counts, as in the safety stage
NEAR_DEEPEST_M = 1e-4


FORCES = ("course_force_n", "captured_force_n", "pulled_force_n")  # before the signal of capture, since, and the pull since


class Course(TypedDict, total=False):
    """Keys of [safety]: least axial force by depth, in steps of course_step_m, before the capture and since; the largest force.

    pulled_force_n: by the way out from the end of captured_force_n."""

    course_step_m: float
    course_force_n: list[float]
    captured_force_n: list[float]
    pulled_force_n: list[float]
    course_aside_m: list[float]
    predicted_force_n: float


def course(records: np.ndarray, contact_x_m: float, period_s: float) -> Course:
    """Keys of [safety] from the records of a prediction. Empty where its loop is never closed or its units do not touch; a part of the
    course without depth has no key, nor has the way across the axis of units that an operator leads. contact_x_m: X of the nominal
    first contact in T."""
    free = records["motion"] == CODES["motion"]["free"]
    captured = records["mechanism_state"] & mask("mechanism_signal", "DSG") != 0
    depth = records["X_TA_measured"][:, 0] - contact_x_m
    peak = np.linalg.norm(records["F_T"][free, :3], axis=1).max(initial=0.0)
    deepest = depth[free].max(initial=0.0)
    if deepest <= LEAST_STEP_M or peak <= 0.0:
        return {}
    before = depth[free & ~captured].max(initial=0.0)
    step = max(LEAST_STEP_M, float(before) / POINTS, float(deepest) / MOST_POINTS)
    window = max(1, round(MEMORY_S / period_s))
    found: Course = {"course_step_m": step}
    for key, part in (("course_force_n", free & ~captured), ("captured_force_n", free & captured)):
        if depth[part].max(initial=0.0) > LEAST_STEP_M:
            found[key] = _least_by_depth(depth[part], records["F_T"][part, 0], step, window)  # type: ignore[literal-required]
    if "captured_force_n" in found:
        part = free & captured
        way_out = len(found["captured_force_n"]) * step - depth[part]
        pulled = _least_by_depth(way_out, -records["F_T"][part, 0], step, window)
        found["pulled_force_n"] = pulled if len(pulled) <= MOST_POINTS else [*pulled[:MOST_POINTS], 0.0]  # further out is not judged
    if not records["operator_rate"].any():  # an operator's next flight goes another way
        found["course_aside_m"] = _most_aside(depth[free], np.linalg.norm(records["X_TA_measured"][free, 1:3], axis=1), step)
    found["predicted_force_n"] = round(float(peak), 3)
    return found


def _least_by_depth(depth: np.ndarray, force: np.ndarray, step: float, window: int) -> list[float]:
    """Least of the largest axial forces of the last `window` records, where the units are deeper than before, for each step of depth."""
    force = np.maximum(force, 0.0)
    largest = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(window - 1), force]), window).max(axis=1)
    deepest = np.maximum.accumulate(np.maximum(depth, 0.0))
    front = (depth > 0.0) & (depth >= deepest - NEAR_DEEPEST_M)
    place = (depth[front] / step).astype(int)
    least = np.full(int(place.max()) + 1, np.inf)
    np.minimum.at(least, place, largest[front])
    # a depth that was passed between two ticks has the force before it; a place either way is no difference
    for k in range(1, len(least)):
        if np.isinf(least[k]):
            least[k] = least[k - 1]
    least[np.isinf(least)] = 0.0
    padded = np.concatenate([[0.0], least, least[-1:]])
    return [round(float(f), 3) for f in np.minimum(np.minimum(padded[:-2], padded[1:-1]), padded[2:])]


def _most_aside(depth: np.ndarray, aside: np.ndarray, step: float) -> list[float]:
    """Greatest distance across the axis in each step of depth; a step either way is no difference."""
    place = (depth[depth > 0.0] / step).astype(int)
    most = np.full(int(place.max()) + 1, -np.inf)
    np.maximum.at(most, place, aside[depth > 0.0])
    seen = np.isfinite(most)  # a depth that was passed between two records has the greater of its neighbours
    before = np.maximum.accumulate(np.where(seen, np.arange(len(most)), 0))
    after = np.minimum.accumulate(np.where(seen, np.arange(len(most)), len(most) - 1)[::-1])[::-1]
    most = np.maximum(most[before], most[after])
    padded = np.concatenate([most[:1], most, most[-1:]])
    return [round(float(x), 5) for x in np.maximum(np.maximum(padded[:-2], padded[1:-1]), padded[2:])]


def together(courses: Sequence[Course]) -> Course:
    """The keys of several predictions of one variant, of other draws of its noise: at each depth the least of their forces, of their peaks
    the greatest. What one of them has no depth for is not judged."""
    touching = [one for one in courses if one]
    if len(courses) == 1 or not touching:
        return courses[0] if courses else {}
    peak: Course = {"predicted_force_n": max(one["predicted_force_n"] for one in touching)}
    if len(touching) < len(courses):
        return peak
    step = max(one["course_step_m"] for one in touching)
    found: Course = {"course_step_m": step}
    for key, widest in (*((force, min) for force in FORCES), ("course_aside_m", max)):
        lists: list[tuple[list[float], float]] = [(one.get(key) or [], step / one["course_step_m"]) for one in touching]  # type: ignore[misc]
        if all(values for values, _ in lists):
            steps = range(max(ceil(len(values) / ratio - 1e-9) for values, ratio in lists))
            found[key] = [widest(widest(_values(values, k, ratio)) for values, ratio in lists) for k in steps]  # type: ignore[literal-required]
    return found | peak


def _values(values: list[float], k: int, ratio: float) -> list[float]:
    """Those in step k, which is `ratio` of their own steps long; behind their end the last."""
    first = min(int(k * ratio + 1e-9), len(values) - 1)
    return values[first : max(first + 1, ceil((k + 1) * ratio - 1e-9))]


def held_against(config: TestConfig, predictions: Sequence[str | PathLike[str]]) -> TestConfig:
    """The test with what its predictions say in its [safety]. A key that the test gives itself stays where it is as strict or stricter.
    predictions: logs of the simulated variant, one or several draws of its noise. Raises LogError, ConfigurationError."""
    start = assembly.base_context(config)["start"]
    declared = {p.key: p for p in registry.part("safety", config.part("safety")[0]).PARAMETERS}
    logs = [read_log(one) for one in predictions]
    found = together([course(log.records, float(start.X_TA[0]), log.header.period_ns * 1e-9) for log in logs])
    kept: Document = {key: value for key, value in found.items() if key in declared}
    own = {key: config.safety[key] for key in kept if key in config.safety and not config.of_log}
    wider = [key for key, value in own.items()
             if (value != kept[key] if key == "course_step_m" else is_wider(declared[key], value, kept[key]))]  # fmt: skip
    if wider:
        raise ConfigurationError([f"{config.paths['test']}: safety.{key}: wider than the prediction, value {own[key]}, the prediction has "
                                  f"{kept[key]}; omit it" for key in wider])  # fmt: skip
    return replace(config, document={**config.document, "safety": {**kept, **config.document["safety"]}})
