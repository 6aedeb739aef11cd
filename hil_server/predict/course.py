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

POINTS = 60  # of the course; the safety stage has room for 64
LEAST_STEP_M = 1e-4
MEMORY_S = 0.02  # in which the largest force counts, as in the safety stage
NEAR_DEEPEST_M = 1e-4


class Course(TypedDict, total=False):
    """Keys of [safety]: least axial force by depth, in steps of course_step_m, and the largest force."""

    course_step_m: float
    course_force_n: list[float]
    predicted_force_n: float


def course(records: np.ndarray, contact_x_m: float, period_s: float) -> Course:
    """Keys of [safety] from the records of a prediction: course_step_m, course_force_n, predicted_force_n. Empty where its loop is never
    closed or its units do not touch. contact_x_m: X of the nominal first contact in T."""
    free = (records["motion"] == CODES["motion"]["free"]) & (records["mechanism_state"] & mask("mechanism_signal", "DSG") == 0)
    peak = np.linalg.norm(records["F_T"][records["motion"] == CODES["motion"]["free"], :3], axis=1).max(initial=0.0)
    depth = records["X_TA_measured"][free, 0] - contact_x_m
    if not len(depth) or depth.max() <= LEAST_STEP_M or peak <= 0.0:
        return {}
    window = max(1, round(MEMORY_S / period_s))
    force = np.maximum(records["F_T"][free, 0], 0.0)
    largest = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(window - 1), force]), window).max(axis=1)
    deepest = np.maximum.accumulate(np.maximum(depth, 0.0))
    front = (depth > 0.0) & (depth >= deepest - NEAR_DEEPEST_M)
    step = max(LEAST_STEP_M, float(deepest[-1]) / POINTS)
    place = np.minimum((depth[front] / step).astype(int), POINTS - 1)
    least = np.full(int(place.max()) + 1, np.inf)
    np.minimum.at(least, place, largest[front])
    # a depth that was passed between two ticks has the force before it; a place either way is no difference
    for k in range(1, len(least)):
        if np.isinf(least[k]):
            least[k] = least[k - 1]
    least[np.isinf(least)] = 0.0
    padded = np.concatenate([[0.0], least, least[-1:]])
    least = np.minimum(np.minimum(padded[:-2], padded[1:-1]), padded[2:])
    return {"course_step_m": step, "course_force_n": [round(float(f), 3) for f in least], "predicted_force_n": round(float(peak), 3)}


def together(courses: Sequence[Course]) -> Course:
    """The keys of several predictions of one variant, of other draws of its noise: at each depth the least of their forces, of their peaks
    the greatest. Where one of them has no contact no depth has to have a force."""
    touching = [one for one in courses if one]
    if len(courses) == 1 or not touching:
        return courses[0] if courses else {}
    peak: Course = {"predicted_force_n": max(one["predicted_force_n"] for one in touching)}
    if len(touching) < len(courses):
        return peak
    step = max(one["course_step_m"] for one in touching)
    ends = [len(one["course_force_n"]) * one["course_step_m"] for one in touching]
    least = []
    for k in range(ceil(max(ends) / step - 1e-9)):
        forces = []
        for one in touching:
            force, ratio = one["course_force_n"], step / one["course_step_m"]
            first = min(int(k * ratio + 1e-9), len(force) - 1)
            forces.append(min(force[first : max(first + 1, ceil((k + 1) * ratio - 1e-9))]))
        least.append(min(forces))
    return {"course_step_m": step, "course_force_n": least, "predicted_force_n": peak["predicted_force_n"]}


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
