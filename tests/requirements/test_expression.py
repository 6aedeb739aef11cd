"""Expressions of channels: values against NumPy, units, and what is refused."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.log.record import aux_channels, record_dtype
from hil_server.requirements.expression import ExpressionError, UnknownChannelError, channels, expression
from hil_server.requirements.units import of_suffix, suffixes, unit

AUX = aux_channels([("probe.stroke", "m", "", 1), ("latch", "N", "", 4), ("odd", "SI", "", 1), ("latch", "N", "", 1)])


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(7)
    found = np.zeros(50, record_dtype(7))
    for name in ("F_T", "X_TA", "measured_leg", "aux", "contact_work"):
        found[name] = rng.normal(size=found[name].shape)
    found["X_TA"][:, 3:] = Rotation.random(50, random_state=1).as_quat()
    found["lateness_ns"] = rng.integers(0, 100_000, 50)
    return found


@pytest.mark.parametrize(("text", "wanted", "of"), [
    ("F_T[0]", lambda r: r["F_T"][:, 0], "N"),
    ("-abs(F_T[2]) + 3.0*F_T[1]/2", lambda r: -np.abs(r["F_T"][:, 2]) + 1.5 * r["F_T"][:, 1], "N"),
    ("norm(F_T[0:3])", lambda r: np.linalg.norm(r["F_T"][:, :3], axis=1), "N"),
    ("max(abs(F_T[3:]))", lambda r: np.abs(r["F_T"][:, 3:]).max(axis=1), "N.m"),
    ("min(measured_leg)", lambda r: r["measured_leg"].min(axis=1), "m"),
    ("max(F_T[0], F_T[1], latch[3])", lambda r: np.max([r["F_T"][:, 0], r["F_T"][:, 1], r["aux"][:, 4]], axis=0), "N"),
    ("probe.stroke", lambda r: r["aux"][:, 0], "m"),
    ("'latch#2'", lambda r: r["aux"][:, 6], "N"),
    ("F_T[0]*X_TA[0] - contact_work", lambda r: r["F_T"][:, 0] * r["X_TA"][:, 0] - r["contact_work"], "J"),
    ("lateness_ns", lambda r: r["lateness_ns"] * 1e-9, "s"),
    ("tilt(X_TA)", lambda r: np.arccos(Rotation.from_quat(r["X_TA"][:, 3:]).as_matrix()[:, 0, 0]), "rad"),
    ("yaw(X_TA)", lambda r: Rotation.from_quat(r["X_TA"][:, 3:]).as_euler("YZX")[:, 0], "rad"),
    ("pitch(X_TA)", lambda r: Rotation.from_quat(r["X_TA"][:, 3:]).as_euler("YZX")[:, 1], "rad"),
    ("roll(X_TA)", lambda r: Rotation.from_quat(r["X_TA"][:, 3:]).as_euler("YZX")[:, 2], "rad"),
])  # fmt: skip
def test_values_and_units(records, text, wanted, of):
    found = expression(text, channels(AUX))
    assert found.values(records) == pytest.approx(wanted(records), rel=1e-12, abs=1e-12)
    assert found.unit.fits(unit(of))


@pytest.mark.parametrize(("text", "reported"), [
    ("F_T", "6 components"), ("F_T[6]", "outside"), ("F_T[-1]", "whole number"), ("F_T[0:6:2]", "two ends"),
    ("F_T[0] + F_T[3]", "units N and N.m"), ("max(F_T)", "units N and N.m"), ("tilt(F_T)", "takes a pose"),
    ("__import__('os')", "no channel"), ("open(1)", "no function"), ("F_T.__class__", "no channel"),
    ("F_T[0] if contact else 0", "is not supported"),
    ("[x for x in F_T][0]", "is not supported"), ("F_T[0] ** 1000000", r"limit \+ - \* /"), ("(lambda: 0)()", "is not supported"),
    ("norm(F_T[0], F_T[1])", "one argument"), ("abs(x=1)", "is not supported"), ("F_T[", "no expression"), ("", "no expression"),
    ("1+" * 200 + "1" + " " * 200, "limit 500"), ("(" * 240 + "1" + ")" * 240, "no expression"), ("probe.strok", "did you mean"),
    ("F_T[0] < 5", "is not supported"), ("True", "is not supported"), ("1j", "is not supported"), ("F_T[True]", "whole number"),
])  # fmt: skip
def test_refused(text, reported):
    with pytest.raises(ExpressionError, match=reported):
        expression(text, channels(AUX))


def test_an_unknown_channel_is_told_apart():
    with pytest.raises(UnknownChannelError):
        expression("abs(probe.stroke)", channels())
    assert expression("F_T[0]", channels()).unit.text == "N"


def test_units_of_keys():
    assert suffixes(unit("N.m")) == ["n_m", "j"] and "mm" in suffixes(unit("m")) and suffixes(unit("SI")) == [""]
    assert of_suffix("", unit("SI")).fits(unit("SI")) and not of_suffix("", unit("N")).fits(unit("N"))
    assert unit("kg.m2/s").fits(unit("N.m") * unit("s")) and unit("1/s").fits(unit("Hz")) and not unit("rad").fits(unit("-"))
    assert unit("deg").factor == pytest.approx(np.pi / 180) and unit("us").factor == 1e-6 and unit("m/s2").powers == (("m", 1), ("s", -2))
