"""The crafts as report, console and viewers draw them: every body of the page's data against Pinocchio, and against the momentum law's own
places in the log."""

import json
import re
import tomllib

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, crafts, load_test
from hil_server.console.recording import Recording
from hil_server.judge.crafts import names_in
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.pages.crafts import Crafts
from hil_server.pages.html import document
from hil_server.report.scene import crafts_scene, instants
from hil_server.run.session import Options, simulate
from rt_kernels.extends import read_tables
from tests.console.chromium import CHROMIUM, Browser, wait_for
from tests.stewart.plain_kinematics import matrix_of
from tests.system.line_runs import QUICK

pin = pytest.importorskip("pinocchio")
ARM = """
extends = "{shipped}"
synthetic = true

[[port]]
name = "docking"
body = "craft"
position_m = [0.9, 0.0, 0.0]
"""


def flown(folder, *settings):
    config = load_test("docking", [*QUICK, "test.stand=stands/ideal_stand.toml", "guidance.close_before_s=1", "test.duration_max_s=6",
                                   "dynamics.part=two_crafts", *settings])  # fmt: skip
    return read_log(simulate(config, Options(out=str(folder / "run"), quiet=True, report=False))["log"])


@pytest.fixture(scope="module")
def jointed(tmp_path_factory):
    """A craft with two folded wings and an arm, whose joints go elsewhere during the docking."""
    folder = tmp_path_factory.mktemp("arm")
    shipped = SHIPPED / "manipulators" / "craft_wings_arm.toml"
    names = [table.get("joint_name", table["name"]) for table in read_tables(shipped)["body"][1:]]
    text = ARM.format(shipped=shipped) + "".join(f'\n[[joint]]\nname = "{name}"\nmode = "given"\nangle_deg = {10 * i}.0\n'
                                                 for i, name in enumerate(names))  # fmt: skip
    (folder / "ship.toml").write_text(text)
    changes = ", ".join(f'{{ craft = "active", joint = "{name}", mode = "given", event = "contact", target = {0.3 * (-1) ** i * (i + 1)}, '
                        f"time_s = 2.0 }}" for i, name in enumerate(names))  # fmt: skip
    return flown(folder, f"test.active_vehicle={folder / 'ship.toml'}", f"dynamics.joint_changes=[{changes}]")


@pytest.fixture(scope="module")
def bending(tmp_path_factory):
    """Wings that bend, at a craft on a truss that bends."""
    return flown(tmp_path_factory.mktemp("bending"), "test.active_vehicle=vehicles/craft_two_wings.toml",
                 "test.target_vehicle=vehicles/dumbbell_truss.toml", "dynamics.modal_channels=all")  # fmt: skip


def figure(log):
    """The data of the report's figure, and its text."""
    made = crafts_scene(Run(log))
    return json.loads(re.search(r'application/json">(.*?)</script>', made)[1]), made


def target_port(log, row):
    """Pose of T in N of a rigid target craft: its centre of mass and its port, of the file."""
    table = tomllib.loads(log.header.configuration["configuration.toml"])["target_vehicle"]
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler("YZX", table["port_angles_deg"], degrees=True).as_matrix()
    T[:3, 3] = table["port_position_m"]
    return matrix_of(log.records["X_NV"][row]) @ T


def pinocchio_places(log, rows):
    """Body → poses in T at these rows: Pinocchio's kinematics of the tables in the log, the root where the log has the centre of mass."""
    tables = tomllib.loads(log.header.configuration["configuration.toml"])["active_vehicle"]
    model = pin.Model()
    ids, joints = {}, {}
    for table in tables["body"]:
        place = pin.SE3(Rotation.from_euler("YZX", table.get("angles_deg", [0, 0, 0]), degrees=True).as_matrix(),
                        np.array(table.get("position_m", [0.0, 0.0, 0.0])))  # fmt: skip
        axis = np.array(table.get("axis", [0.0, 0.0, 1.0]))
        joint = pin.JointModelFreeFlyer() if "parent" not in table else pin.JointModelRevoluteUnaligned(axis)
        ids[table["name"]] = model.addJoint(ids.get(table.get("parent"), 0), joint, place, table["name"])
        rigid = table["rigid"]
        inertia = np.array(rigid["inertia_kg_m2"])
        model.appendBodyToJoint(ids[table["name"]], pin.Inertia(rigid["mass_kg"], np.array(rigid["centre_of_mass_m"]),
                                np.diag(inertia) if inertia.ndim == 1 else inertia), pin.SE3.Identity())  # fmt: skip
        joints[f"active {table.get('joint_name', table['name'])}"] = ids[table["name"]]
    data = model.createData()
    found = {name: [] for name in ids}
    for row in rows:
        q = pin.neutral(model)
        for name, angle in zip(names_in(log.header.notes)["joints"], log.aux("joint_position")[row], strict=False):
            q[model.joints[joints[name]].idx_q] = angle
        q[3:7] = log.records["X_NC"][row, 3:]
        q[:3] = log.records["X_NC"][row, :3] - pin.centerOfMass(model, data, q)
        pin.forwardKinematics(model, data, q)
        X_TN = np.linalg.inv(target_port(log, row))
        for name, number in ids.items():
            found[name].append(X_TN @ data.oMi[number].homogeneous)
    return found


def apart(X, T):
    """Metres between a pose of a page and a matrix, and the length of a vector of a metre's change of direction."""
    D = matrix_of(X) - T
    return np.abs(D[:3]).max()


def test_each_body_of_the_report_is_where_pinocchio_has_it(jointed):
    about, text = figure(jointed)
    rows = instants(jointed)
    assert about["times"] == pytest.approx(jointed.time_s[rows].tolist(), abs=1e-4)
    bodies = {solid["body"] for solid in about["solids"]}
    places = pinocchio_places(jointed, rows)
    assert bodies == {"target body", *(f"active {name}" for name in places)} and len(places) == 13
    for name, wanted in places.items():
        assert max(apart(frame["bodies"][f"active {name}"], T) for frame, T in zip(about["frames"], wanted, strict=True)) < 1e-6, name
    # and they have gone somewhere, against the craft that carries them
    for name in places:
        seen = [np.linalg.inv(matrix_of(f["bodies"]["active craft"])) @ matrix_of(f["bodies"][f"active {name}"]) for f in about["frames"]]
        assert np.abs(seen[-1] - seen[0]).max() > 0.02 or name == "craft", name
    assert "no channel" not in text and "bending" not in text


def test_the_console_draws_what_the_report_draws(jointed):
    recording = Recording(jointed.path)
    about, _ = figure(jointed)
    things = recording.picture.things()["crafts"]
    assert json.loads(json.dumps(things["solids"])) == about["solids"]
    for k in (3, 80, len(about["times"]) - 1):
        row = instants(jointed)[k]
        values = recording.values(int(row))
        seen = recording.picture.frame({**values, "X_TA_measured": values["X_TA"]})["crafts"]
        assert seen["bodies"] == about["frames"][k]["bodies"]


def centre(tree, frame, side, coordinates):
    """Centre of mass in T: of every body's points, displaced by their modes, as the page places them."""
    mass, moment = 0.0, np.zeros(3)
    for link in tree.craft.links:
        T = matrix_of(frame["bodies"][f"{side} {link.name}"])
        eta = np.array(coordinates.get(f"{side} {link.name}", np.zeros(link.body.n_modes)))
        mass += link.body.mass
        moment += link.body.mass * T[:3, 3] + T[:3, :3] @ (link.body.first_moment + eta @ link.body.P)
    return moment / mass


def test_bending_closes_the_chain_from_centre_to_centre(bending):
    """From one centre of mass to the other through wings, ports and truss as they are drawn, against the places of the centres in the log,
    which the dynamics integrate. Left straight, the chain does not close."""
    about, _ = figure(bending)
    pair = Crafts(Run(bending).document).trees
    off = {True: 0.0, False: 0.0}
    for frame, row in zip(about["frames"], instants(bending), strict=True):
        X_NC, X_NV = (matrix_of(bending.records[name][row]) for name in ("X_NC", "X_NV"))
        R_TN = matrix_of(frame["bodies"]["target truss"])[:3, :3] @ X_NV[:3, :3].T
        assert np.abs(R_TN @ X_NC[:3, :3] - matrix_of(frame["bodies"]["active hub"])[:3, :3]).max() < 1e-6
        for bent in off:
            eta = frame["bend"] if bent else {}
            drawn = centre(pair["active"], frame, "active", eta) - centre(pair["target"], frame, "target", eta)
            off[bent] = max(off[bent], np.abs(drawn - R_TN @ (X_NC[:3, 3] - X_NV[:3, 3])).max())
    assert off[True] < 1e-6 < 1e-4 < off[False]


def test_enlarged_bodies_still_hang_together(bending):
    """The reactor at the truss's tip and the body at its root, true and enlarged; the factor shows on the page."""
    about, text = figure(bending)
    assert {frame["factor"] for frame in about["frames"]} == {100} and 'class="enlarged" checked' in text
    truss = next(link for link in Crafts(Run(bending).document).trees["target"].craft.links if link.name == "truss").body
    moved = 0.0
    for frame in about["frames"]:
        eta = np.array(frame["bend"]["target truss"])
        for poses, factor in ((frame["bodies"], 1), (frame["large"], 100)):
            T = matrix_of(poses["target truss"])
            for node, body in (("tip", "target reactor"), ("root", "target main_body")):
                port = truss.ports[node]
                place = T[:3, :3] @ (port.position + factor * port.phi @ eta) + T[:3, 3]
                assert np.abs(place - poses[body][:3]).max() < 1e-6
        moved = max(moved, np.linalg.norm(np.subtract(frame["large"]["target main_body"][:3], frame["bodies"]["target main_body"][:3])))
        assert frame["large"]["target reactor"] == pytest.approx(frame["bodies"]["target reactor"], abs=1e-6), "it carries the port"
    assert moved > 0.1


def test_what_a_run_has_no_channel_of_is_drawn_at_rest_and_named(jointed, bending):
    made = Crafts(Run(bending).document)
    frame = made.frame({}, [0.0] * 6 + [1.0])
    assert frame["bodies"]["active hub"][:3] == pytest.approx([-0.9, 0.0, 0.0]) and "bend" not in frame
    assert [line.partition(":")[0] for line in frame["absent"]] == ["active craft"] * 2 + ["target craft"]
    assert "joint_position" in frame["absent"][0] and "dynamics.modal_channels" in frame["absent"][2]
    lost = made.frame({"joint_position": [np.nan] * 12, "X_NV": [0.0] * 7}, [0.0] * 6 + [1.0])
    assert "active left_wing" not in lost["bodies"] and "target truss" in lost["bodies"], "a damaged record"
    rest = Crafts(Run(jointed).document).frame({}, [0.0] * 6 + [1.0])["bodies"]
    turn = matrix_of(rest["active craft"])[:3, :3].T @ matrix_of(rest["active left_panel2"])[:3, :3]
    assert turn == pytest.approx(Rotation.from_euler("XZ", [-90.0, 0.0 + 10.0], degrees=True).as_matrix(), abs=1e-6), "as in the file"


def test_an_arm_reaches_from_its_base():
    """A berthing: every link of the file one after another, by its own product of turns; the target craft by its port."""
    configuration = tomllib.loads(load_test("programmes/berthing_latches.toml").as_toml())
    made = Crafts(configuration)
    assert set(made.trees) == {"active", "target", "arm"} and made.missing == []
    base = np.array([1.0, -2.0, 0.5, 0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    X_NV = np.array([0.3, 0.1, -0.2, 0.0, np.sin(0.1), 0.0, np.cos(0.1)])
    angles = [0.1 * (i + 1) for i in range(7)]
    values = {"arm_q": angles, "arm_X_NO": base.tolist(), "X_NV": X_NV.tolist()}
    frame = made.frame(values, [0.0] * 6 + [1.0])
    T, left = matrix_of(frame["bodies"]["target body"]) @ np.linalg.inv(matrix_of(X_NV)) @ matrix_of(base), iter(angles)
    assert "no channel" not in " ".join(frame.get("absent", []))
    for link in crafts.craft(configuration["dynamics"]["model_data"]).links:
        step = np.eye(4)
        step[:3, :3] = link.rotation @ Rotation.from_rotvec(link.axis * (next(left) if link.joint == "revolute" else 0.0)).as_matrix()
        step[:3, 3] = link.position
        T = T @ step
        assert apart(frame["bodies"][f"arm {link.name}"], T) < 1e-6
    assert not [name for name in made.frame({**values, "arm_X_NO": [0.0] * 7}, base)["bodies"] if name.startswith("arm")], "not begun"


SHIPPED_CRAFTS = [file for file in sorted((SHIPPED / "vehicles").glob("*.toml")) if "dumbbell" not in file.stem]  # above


@pytest.mark.parametrize("file", SHIPPED_CRAFTS, ids=lambda file: file.stem)
def test_every_body_of_every_shipped_craft_is_drawn(file):
    """And what has no declared form says so."""
    table = read_tables(file)
    config = load_test("docking", [f"test.active_vehicle={file}"])
    made = Crafts(tomllib.loads(config.as_toml()))
    things, frame = made.things(), made.frame({}, [0.0] * 6 + [1.0])
    drawn = {solid["body"] for solid in things["solids"]}
    assert drawn == {"target body", *(f"active {body['name']}" for body in table.get("body", [{"name": "body"}]))} == set(frame["bodies"])
    named = any(re.match("active craft .*: (box of its mass|bar )", line) for line in things["notes"])
    assert made.missing == [] and named != all("shapes" in body for body in table.get("body", [table]))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_draws_them_bent_as_the_modes_say(bending, tmp_path):
    """The points of wing and truss in the browser against the shapes of the modes; the picture changes with the slider and the choice."""
    about, text = figure(bending)
    (tmp_path / "page.html").write_text(document("crafts", [text]), encoding="utf-8")
    browser = Browser(tmp_path)
    try:
        browser.go((tmp_path / "page.html").as_uri())
        wait_for(lambda: browser.value("document.querySelector('figure.scene output')?.textContent.includes('bending × 100')"), 20)
        last = about["frames"][-1]
        for solid in (one for one in about["solids"] if one["moves"]):
            X, eta = last["bodies"][solid["body"]], last["bend"][solid["body"]]
            drawn = browser.value(f"hilSpace.points({json.dumps(solid)}, {json.dumps(X)}, {json.dumps(eta)})")
            bent = np.array(solid["points"]) + np.array(solid["moves"]) @ eta
            assert np.abs(np.array(drawn) - (bent @ matrix_of(X)[:3, :3].T + X[:3])).max() < 1e-8
        seen = [browser.value("document.querySelector('canvas').toDataURL()")]
        for what in (".enlarged", "button[data-at]:last-child"):
            browser.value(f"document.querySelector('{what}').click()")
            seen.append(browser.value("document.querySelector('canvas').toDataURL()"))
        assert len(set(seen)) == 3 and "bending × 1" in browser.value("document.querySelector('output').textContent")
        assert browser.complaints == [] and len(browser.requests) == 1
    finally:
        browser.close()


@pytest.mark.parametrize("table", [None, 3, "text", [], {}, {"body": []}, {"body": [{"name": "a"}]}, {"mass_kg": "heavy"}])
def test_a_configuration_that_is_not_whole_draws_what_it_has(table):
    whole = tomllib.loads(load_test("docking").as_toml())
    made = Crafts(whole | {"active_vehicle": table})
    assert set(made.trees) == {"target"} and made.missing[0].startswith("active: ")
    assert set(made.frame({}, [0.0] * 6 + [1.0])["bodies"]) == {"target body"} and made.things()["extent"] > 1.0
    assert Crafts({}).trees == {} and Crafts({}).frame({}, [0.0] * 7)["bodies"] == {}
