"""A view of the console is one file; a mechanism brings its picture and its mimic display along."""

import sys
import tomllib

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import SHIPPED, load_test, toml_text
from hil_server.console.picture import Picture, picture_of
from rt_kernels.extends import read_tables
from rt_kernels.pictures import ONE_PROBE
from rt_kernels.pictures import Picture as UnitPicture

VIEW = """
from nicegui import ui

ORDER, NAME, PATH, PICTURES = 15, "Tests", "/tests", False
built = []


def build(pane, folder, log, chosen):
    built.append((pane, folder, log, chosen))
"""


def test_a_view_is_one_file(tmp_path, monkeypatch):
    pytest.importorskip("nicegui", reason="optional group console")
    from nicegui import app

    from hil_server.console import pages, views
    from hil_server.console.view import views as found

    (tmp_path / "of_tests.py").write_text(VIEW)
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    try:
        assert [view.NAME for view in found()] == ["Engineer", "Tests", "Operator", "Mimic", "Replay"]
        pages.add_pages(live=None, logs=tmp_path, chosen="")
        assert {"/", "/tests", "/operator", "/mimic", "/replay"} <= {getattr(route, "path", None) for route in app.routes}
    finally:
        sys.modules.pop("hil_server.console.views.of_tests", None)


UNIT = '''
"""A hook that turns with a channel of its own."""

import numpy as np

from rt_kernels.parameters import Parameter
from rt_kernels.pictures import ACTIVE, Bar, Looks, Mimic, Picture, Shape, circle, rotate


class HookPicture(Picture):
    MIMIC = Mimic(("top",), (1,), (5,), (("bars", {"place": "axial"}),))

    def build(self, m):
        hook = Shape("hook", ACTIVE, [circle(0.0, m["radius_m"])], "hook")
        return Looks(2.0 * m["radius_m"], [hook], [Bar("pull", "pull", 0, "N", 9.0, "axial")])

    def bodies(self, values, X_TA):
        return {"hook": [*rotate(X_TA[3:], np.array([values["reach"], 0.0, 0.0])), *X_TA[3:]]}, {}


class Hook:
    PARAMETERS = (Parameter("radius_m", "float", "m", "of the hook", 0.25),)
    PICTURE = HookPicture
'''


def test_a_mechanism_brings_its_picture_along(tmp_path, monkeypatch):
    (tmp_path / "hook_unit.py").write_text(UNIT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(registry.PARTS["mechanisms"], "hook", "hook_unit:Hook")
    document = tomllib.loads(load_test(None).as_toml()) | {"mechanism": {"part": "hook"}}
    picture = Picture({"configuration.toml": toml_text.dumps(document)})
    things = picture.things()
    assert things["extent"] == 0.5 and [shape["name"] for shape in things["shapes"]] == ["hook"]
    turned = [0.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]  # a quarter turn about Z: X becomes Y
    frame = picture.frame({"X_TA": turned, "V_TA": [0.0] * 6, "F_T": [0.0] * 6, "reach": 2.0, "pull": 4.5})
    assert frame["bodies"]["hook"][:3] == [0.0, 2.0, 0.0] and frame["bars"] == [{"value": 4.5, "flags": []}]
    assert picture.unit.MIMIC.projections == ("top",)


def test_an_unknown_unit_is_two_flanges():
    for table in ({}, {"part": "unknown"}, {"part": 3}):
        unit = picture_of(table)
        assert type(unit) is UnitPicture and unit.MIMIC is ONE_PROBE
        assert [shape.name for shape in unit.looks.shapes] == ["target port", "active port"]


def test_every_shipped_unit_has_a_picture_of_its_own():
    for file in sorted((SHIPPED / "mechanisms").glob("*.toml")):
        table = read_tables(file)
        if table["part"] not in ("bumper", "several_contacts"):  # plates and balls for tests of the loop
            assert type(picture_of(table)) is not UnitPicture, file.name
