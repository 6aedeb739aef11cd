"""Readers of modal data: Nastran text and CSV give the same craft, whatever the normalisation."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config.modal_data import (
    ModalData,
    ModalDataError,
    log_decrements,
    modal_craft,
    read_csv,
    read_f06,
    read_modal_data,
    rigid_of,
    with_data,
    write_csv,
)
from rt_kernels.multibody.flexible import FlexibleTree

TRUSS = "tests/data/truss_modes.csv"
VEHICLES = Path("stand_configs/vehicles")
BARE_TRUSS = """
name = "bare truss"

[[body]]
name = "truss"
joint = "free"
[body.truss]
bays = 40
side_m = 0.75
mass_kg = 1505.0
youngs_modulus_pa = 1.0079e9
shear_modulus_pa = 1.0079e9
member_area_m2 = 6.24e-4
member_bending_m4 = 4.685e-7
member_torsion_m4 = 2.37e-7
mode_set = "free_free"
modes = 12
"""


@pytest.fixture
def truss(request):
    return read_csv(request.config.rootpath / TRUSS)


def f06_text(data, masses, rows_per_page=1, in_front=2):
    """The tables of a normal-modes run as MSC Nastran prints them, with page breaks; `in_front` rigid-body modes before those of data."""
    head = "1    TRUSS" + 60 * " " + "NOVEMBER  20, 2026  MSC.NASTRAN  6/17/05   PAGE {:5d}\n"
    page, text = 1, ""
    text += head.format(page) + "0" + 110 * " " + "\n \n"
    text += "                                              R E A L   E I G E N V A L U E S\n"
    text += "   MODE    EXTRACTION      EIGENVALUE            RADIANS             CYCLES            GENERALIZED         GENERALIZED\n"
    text += "    NO.       ORDER                                                                       MASS              STIFFNESS\n"
    frequency = np.concatenate([[-1e-6, 3e-6][:in_front], data.frequency_hz])
    mass = np.concatenate([[1.0, 1.0][:in_front], masses])
    for k, (f, m) in enumerate(zip(frequency, mass, strict=True), start=1):
        w = 2 * np.pi * f
        text += f"  {k:8d}  {k:8d}  {w * w:18.6E}  {abs(w):18.6E}  {f:18.6E}  {m:18.6E}  {m * w * w:18.6E}\n"
    for k, m in enumerate(mass, start=1):
        nodes = list(data.shapes)
        for begin in range(0, len(nodes), rows_per_page):
            page += 1
            text += head.format(page) + "0                                                                    SUBCASE 1\n"
            text += f"      EIGENVALUE = {(2 * np.pi * frequency[k - 1])**2:13.6E}\n"
            text += f"          CYCLES = {frequency[k - 1]:13.6E}         R E A L   E I G E N V E C T O R   N O . {k:10d}\n \n"
            text += "      POINT ID.   TYPE          T1             T2             T3             R1             R2             R3\n"
            for node in nodes[begin:begin + rows_per_page]:
                values = np.ones(6) if k <= in_front else data.shapes[node][k - 1 - in_front] * np.sqrt(m)
                text += f"{node:14d} {'G':>6s}     " + "  ".join(f"{v:13.6E}" for v in values) + "\n"
            text += f"{90001:14d} {'S':>6s}     {0.5:13.6E}\n"
    return text + "1                                        * * * END OF JOB * * *\n"


@pytest.mark.parametrize("rows_per_page", [1, 5])
def test_f06_and_csv_give_the_same_modes(tmp_path, truss, rows_per_page):
    masses = np.linspace(0.5, 40.0, len(truss.frequency_hz))       # not mass-normalised
    path = tmp_path / "truss.f06"
    path.write_text(f06_text(truss, masses, rows_per_page))
    read = read_f06(path).flexible(0.01)
    np.testing.assert_allclose(read.frequency_hz, truss.frequency_hz, rtol=1e-6)
    assert sorted(read.shapes) == [2, 3]
    for node in (2, 3):
        np.testing.assert_allclose(read.shapes[node], truss.shapes[node], rtol=2e-6, atol=1e-12)
    only = read_f06(path, [3])
    assert list(only.shapes) == [3] and len(only.frequency_hz) == len(truss.frequency_hz) + 2


def test_csv_round_trip_is_exact(tmp_path, truss):
    write_csv(tmp_path / "again.csv", truss, "a remark\nof two lines")
    again = read_modal_data(tmp_path / "again.csv")
    assert np.array_equal(again.frequency_hz, truss.frequency_hz)
    assert all(np.array_equal(again.shapes[n], truss.shapes[n]) for n in truss.shapes)


def test_truss_modes_are_free_free(truss):
    """Momentum of every bending mode about the middle vanishes by symmetry: even modes have equal ends, odd ones opposite."""
    for k, f in enumerate(truss.frequency_hz):
        end2, end3 = truss.shapes[2][k], truss.shapes[3][k]
        np.testing.assert_allclose(np.abs(end2), np.abs(end3), rtol=1e-12)
        lateral = np.argmax(np.abs(end2[:3]))
        if lateral > 0:
            even = end2[lateral] * end3[lateral] > 0
            slope = 5 if lateral == 1 else 4
            assert even == (end2[slope] * end3[slope] < 0), f


def test_shapes_are_turned_to_port_axes(truss):
    q = Rotation.from_euler("zyx", [0.4, -0.8, 1.1]).as_quat()
    R_DS = Rotation.from_quat(q).as_matrix().T
    turned = truss.at(3, R_DS)
    np.testing.assert_allclose(turned[:, :3], (R_DS @ truss.shapes[3][:, :3].T).T, atol=1e-15)
    np.testing.assert_allclose(turned[:, 3:], (R_DS @ truss.shapes[3][:, 3:].T).T, atol=1e-15)


def answers_as_the_whole_craft(craft, M, dt=5e-4):
    """A lateral half-sine of 100 N and 0.5 s at the port of the dumbbell spacecraft (12,005 kg): 4.37 mm after 0.5 s and 18.8 mm after 2 s,
    rigid motion included, as finite elements of the whole craft give; the bare truss would have moved by 33 mm in the first half second."""
    rigid, speed, seen = np.zeros(6), np.zeros(6), {}
    for k in range(4000):
        load = np.zeros(6)
        load[1] = 100.0 * np.sin(np.pi * (k + 0.5) * dt / 0.5) if k < 1000 else 0.0
        bent, _ = craft.propagate(load)
        a = np.linalg.solve(M, load)
        rigid, speed = rigid + speed * dt + 0.5 * a * dt * dt, speed + a * dt
        seen[k + 1] = rigid[1] + bent[1]
    assert seen[1000] == pytest.approx(4.37e-3, rel=0.02) and seen[4000] == pytest.approx(18.8e-3, rel=0.02)


def test_shipped_vehicle_answers_as_the_whole_craft(request):
    folder = request.config.rootpath / VEHICLES
    with open(folder / "flexible_truss.toml", "rb") as file:
        table = tomllib.load(file)
    table["modal"]["log_decrement_bands"] = [[100.0, 0.0]]
    M = rigid_of(table)
    craft = modal_craft(table["modal"], folder, (5e-4, 1e-4), M)
    assert craft.n_modes == 12 and craft.n_loads == 6
    answers_as_the_whole_craft(craft, M)


def test_modes_of_a_part_of_the_craft_are_refused(request, tmp_path, truss):
    """The bare truss's modes in the place of the craft's: both masses are named; so are another port and another inertia."""
    folder = request.config.rootpath / VEHICLES
    with open(folder / "flexible_truss.toml", "rb") as file:
        table = tomllib.load(file)
    (tmp_path / "bare.toml").write_text(BARE_TRUSS)
    frequency_hz, shapes = FlexibleTree.from_toml(tmp_path / "bare.toml").modes_at("truss")
    shapes[:, :3] += np.cross(shapes[:, 3:], (15.0, 0.0, 0.0))  # at the end of the truss
    write_csv(tmp_path / "bare.csv", ModalData(frequency_hz, {1: shapes}))
    with pytest.raises(ModalDataError, match=r"a craft of 1505 kg, the vehicle has mass_kg = 12005"):
        modal_craft(table["modal"] | {"file": "bare.csv"}, tmp_path, (5e-4, 1e-4), rigid_of(table))
    with pytest.raises(ModalDataError, match=r"0 rigid-body modes .* 6 are needed"):
        modal_craft(table["modal"] | {"file": "truss_modes.csv", "port_node": 3}, request.config.rootpath / "tests/data", (5e-4, 1e-4),
                    rigid_of(table))
    for key, value in (("port_position_m", [22.0, 0.0, 0.0]), ("inertia_kg_m2", [[47581.5, 0, 0], [0, 3.3e6, 0], [0, 0, 2994845.0]])):
        with pytest.raises(ModalDataError, match=key):
            modal_craft(table["modal"], folder, (5e-4, 1e-4), rigid_of(table | {key: value}))


def test_configuration_keeps_the_rigid_body_modes(request):
    """What a log or another machine gets of the file still shows whose modes they are."""
    folder = request.config.rootpath / VEHICLES
    with open(folder / "flexible_truss.toml", "rb") as file:
        table = tomllib.load(file)
    taken = with_data(table["modal"], folder)
    modal_craft(taken, "nowhere", (5e-4, 1e-4), rigid_of(table))
    with pytest.raises(ModalDataError, match="mass_kg = 1505"):
        modal_craft(taken, "nowhere", (5e-4, 1e-4), rigid_of(table | {"mass_kg": 1505.0}))


def test_further_loads_and_bands(request, truss):
    folder = request.config.rootpath / "tests/data"
    table = dict(file="truss_modes.csv", port_node=3, log_decrement_bands=[[1.0, 0.05], [2.0, 0.02]], further_loads=[[2, 1], [2, 6]],
                 port_axes_xyzw=[0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    craft = modal_craft(table, folder, (5e-4, 1e-4))
    assert craft.n_loads == 8
    u, _ = craft.propagate([0, 0, 0, 0, 0, 0, 100.0, 0])   # pushes end 2 along x, which is -y of the turned port
    assert u[1] == pytest.approx(0.036451**2 * 0.5 * 5e-4**2 * 100.0, rel=1e-3)
    decrements = log_decrements(np.array([0.3, 1.0, 1.5, 7.0]), table["log_decrement_bands"])
    assert decrements.tolist() == [0.05, 0.05, 0.02, 0.02]


@pytest.mark.parametrize("change, message", [
    (dict(port_node=9), "node 9"),
    (dict(file="truss_modes.op2"), "ending '.op2'"),
    (dict(port_axes_xyzw=[0, 0, 0, 2.0]), "unit quaternion"),
    (dict(log_decrement_bands=[[2.0, 0.1], [1.0, 0.1]]), "must ascend"),
    (dict(log_decrement_bands=[[2.0, 25.0]]), "limits 0...20"),
    (dict(frequency_min_hz=100.0), "no mode left"),
    (dict(further_loads=[[2, 7]]), "components are 1...6"),
    (dict(port_nod=3), "unknown key"),
])
def test_wrong_tables_are_named(request, change, message):
    table = dict(file="truss_modes.csv", port_node=3, log_decrement_bands=[[1.0, 0.05]]) | change
    with pytest.raises(ModalDataError, match=message.replace("[", r"\[")):
        modal_craft(table, request.config.rootpath / "tests/data", (5e-4, 1e-4))


@pytest.mark.parametrize("break_it, message", [
    (lambda t: t.replace("R E A L   E I G E N V A L U E S", "nothing"), "no table 'R E A L   E I G E N V A L U E S'"),
    (lambda t: t.replace("R E A L   E I G E N V E C T O R", "nothing"), "no table 'R E A L   E I G E N V E C T O R"),
    (lambda t: " *** USER FATAL MESSAGE 9050 (SEKRRS)\n" + t, "line 1: the run ended with"),
    (lambda t: t.replace("  3.801000E+00", "  3.8010-x"), "is not a number"),
    (lambda t: t[: t.index("E I G E N V E C T O R   N O .") + len("E I G E N V E C T O R   N O .")] + "\n", "a number of an eigenvector"),
])
def test_broken_f06_is_named(tmp_path, truss, break_it, message):
    path = tmp_path / "broken.f06"
    path.write_text(break_it(f06_text(truss, np.ones(len(truss.frequency_hz)))))
    with pytest.raises(ModalDataError, match=message):
        read_f06(path)


def test_nodes_without_rotations_cannot_be_a_port(tmp_path, truss):
    text = f06_text(truss, np.ones(len(truss.frequency_hz)), 5)
    lines = [line[:68] if line.split()[1:2] == ["G"] else line for line in text.splitlines()]
    path = tmp_path / "solid.f06"
    path.write_text("\n".join(lines))
    with pytest.raises(ModalDataError, match="node 3 has no rotations"):
        read_f06(path).at(3)
