"""What a signature of a compiled module becomes in its stub."""

from pathlib import Path

import pytest

from tools import generate_stubs

ROOT = Path(__file__).resolve().parent.parent


def test_packages_are_typed():
    assert all(ROOT.joinpath(package, "py.typed").exists() for package in ("hil_server", "rt_kernels", "drivers"))


@pytest.mark.parametrize(
    "signature, arguments, result",
    [
        ("f()\n\ntext", "", "Any"),
        ("P.f(self, double[::1] x, const unsigned char[::1] b, int n=3)", "self, x: NDArray[np.float64], b: Any, n: int = 3", "Any"),
        ("f(bint on=True, Stage s=None) -> str", "on: bool = True, s: Stage | None = None", "str"),
        ("f(pair=(0.0, 6), str name='a, b')", "pair: Any = ..., name: str = 'a, b'", "Any"),
        ("P(period_s, *, delays, **rest)", "*, period_s: Any, delays: Any, **rest: Any", "Any"),
        ("f(self, int status: int) -> None", "self, status: int", "None"),
    ],
)
def test_signature(signature, arguments, result):
    assert generate_stubs.signature(signature, {"Stage": "somewhere"}) == (arguments, result)


def test_no_signature_is_reported():
    with pytest.raises(ValueError, match="has no signature"):
        generate_stubs.function("f", "Only text.", {})


def test_attributes_have_the_types_of_their_declaration():
    source = "cdef class A(B):\n    cdef readonly double x, y\n    cdef public list parts\n\n    cdef double hidden\n"
    source += "cdef class C:\n    cdef public int z\n"
    assert generate_stubs.attributes(source, "A", {}) == {"x": "float", "y": "float", "parts": "list[Any]"}


def test_arguments_are_split_outside_of_brackets_and_quotes():
    assert generate_stubs.split_arguments("a, b=(1, 2), c='x, y', *, d") == ["a", "b=(1, 2)", "c='x, y'", "*", "d"]
