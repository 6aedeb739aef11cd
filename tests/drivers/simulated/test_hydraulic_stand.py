"""The hydraulic and the electric machine in the plant of a stand and behind its port: contact, weight, faults, readings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from drivers.simulated.hydraulic_machine import HYDRAULIC_PARAMETERS, HydraulicMachine
from drivers.simulated.injections import BY_NAME
from drivers.simulated.plant import PlantPart
from hil_server.config import SHIPPED, load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from rt_kernels.layout import BITS, CODES
from rt_kernels.mechanisms.linear.bumper import Bumper
from tests.system.line_runs import QUICK, run_line

STANDS = {name: f"test.stand={SHIPPED}/stands/{name}.toml" for name in ("hydraulic_stand", "electric_stand")}
DRIVE = BITS["drive_status"]


def keys_of(name):
    virtual = load_test(None, [STANDS[name]]).stand["virtual"]
    return {key: value for key, value in virtual.items() if key not in ("part", "faults")}


def plant_of(name="hydraulic_stand", mechanism=None, mounting=(), **keys):
    config = load_test(None, [STANDS[name]])
    context = assembly.base_context(config)
    given = {key: value for key, value in keys_of(name).items() if "delay_ticks" not in key} | keys
    unit = mechanism or Bumper(stiffness_n_per_m=1e4)
    return PlantPart(platform=context["platform"], mounting=replace(context["mounting"], **dict(mounting)), mechanism=unit,
                     machine="hydraulic", **given)  # fmt: skip


def inject(plant, name, index=0, value=None):
    fault = BY_NAME[name]
    plant.inject(fault.number, index, fault.value if value is None else value)


def forces(plant):
    return plant.machine.state()["force"]


# ------------------------------------------------------------------------------------------------------------------ contact and weight


@pytest.mark.parametrize("unit", ["target", "active"])
def test_the_platform_feels_what_the_load_cell_does(unit):
    """A spring between the ports: platform and cell feel the same force, opposite; the moment at P follows from the place."""
    mounting = {"carried_mass_kg": 0.0, "unit_on_load_cell": unit}
    at = plant_of(mounting=mounting).state()["X_TA"]
    # a plane 5 mm deep in the other unit, off the axis
    spring = Bumper(stiffness_n_per_m=2e5, plane_point_m=[at[0] - 0.005, 0.0, 0.0], contact_point_m=[0.0, 0.2, -0.1])
    plant = plant_of(mounting=mounting, mechanism=spring)
    plant.advance(20)
    s, W = plant.state(), plant.machine.wrench()
    assert np.linalg.norm(s["F_S"][:3]) > 500.0
    mounting = assembly.base_context(load_test(None, [STANDS["hydraulic_stand"]]))["mounting"]
    R_WS = Rotation.from_quat(mounting.X_S[3:]).as_matrix()
    on_cell = R_WS @ s["F_S"][:3]
    assert W[:3] == pytest.approx(-on_cell, rel=1e-9)
    moment_W = R_WS @ s["F_S"][3:] + np.cross(mounting.X_S[:3], on_cell)
    assert W[3:] == pytest.approx(-(moment_W - np.cross(s["X_WP"][:3], on_cell)), rel=1e-6, abs=1e-3)


def test_what_hangs_on_the_load_cell_is_carried_once():
    """On the floor's cell it does not load the legs; on the platform's it does, and the platform's own mass stays what the file says."""
    floor = plant_of()
    riding = plant_of(mounting={"load_cell_on": "platform", "unit_on_load_cell": "active", "X_S": [0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]})
    bare = plant_of(mounting={"carried_mass_kg": 0.0})
    assert forces(floor) == pytest.approx(forces(bare), rel=1e-12)
    J = floor.machine.jacobian()
    assert J.T @ (forces(riding) - forces(floor)) == pytest.approx([120.0 * 9.80665, 0, 0, 0, 0, 0], abs=1e-6)


def test_unknown_machine_and_wrong_keys_are_refused_by_name():
    with pytest.raises(ValueError, match="friction_static_n: 100 N is below friction_coulomb_n, 300 N"):
        plant_of(friction_static_n=100.0)
    with pytest.raises(ValueError, match="platform_inertia_kg_m2: must be symmetric and positive definite"):
        plant_of(platform_inertia_kg_m2=[[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ConfigurationError, match="drive_frequency_hz: unknown key"):
        assembly.simulation(load_test(None, [STANDS["hydraulic_stand"], "stand.virtual.drive_frequency_hz=10"]))
    with pytest.raises(ConfigurationError, match=r"faults\[0\].fault: must be one of"):
        assembly.simulation(load_test(None, ["stand.virtual.faults=[{fault='line_burst', at_s=0.1}]"]))


# -------------------------------------------------------------------------------------------------------------------------------- faults


def moving(name="hydraulic_stand", speed=0.4, **keys):
    """A machine on its way along X, and a function that continues with it for some milliseconds."""
    given = {key: value for key, value in keys_of(name).items() if key in {p.key for p in HYDRAULIC_PARAMETERS}}
    platform = assembly.base_context(load_test(None, [STANDS[name]]))["platform"]
    m = HydraulicMachine(platform=platform, **given | keys)
    X, at = platform.neutral_pose - np.r_[0.2, np.zeros(6)], [0.0]
    m.rest(X)

    def proceed(ms, follow=True):
        rates = []
        for _ in range(ms):
            if follow:
                at[0] += 1e-3
            ahead = min(at[0] * speed, 0.5)
            m.set_legs(*platform.leg_rates(X + np.r_[ahead, np.zeros(6)], [speed if ahead < 0.5 else 0.0, 0, 0, 0, 0, 0]))
            m.advance(20)
            rates.append(m.state()["V_WP"])
        return np.array(rates)

    return m, proceed


@pytest.mark.parametrize("fault", ["supply_loss", "chain"])
@pytest.mark.parametrize("name", list(STANDS))
def test_loss_of_the_supply_and_the_chain_stop_the_platform(name, fault):
    m, proceed = moving(name)
    assert proceed(500)[-1, 0] > 0.3
    if fault == "chain":
        m.block()
    else:
        m.inject(BY_NAME["supply_loss"].number, 0, 0.02)
    # supply: 20 ms time constant until the valves fall shut, then 0.15 s; the setpoints run on meanwhile
    proceed(200 if fault == "chain" else 250)
    assert m.state()["blocking"] == 0.0
    rates = proceed(200)
    assert np.abs(rates[:, 0]).max() < 0.04
    if fault == "supply_loss" and name == "hydraulic_stand":
        assert m.state()["supply_pressure"] < 5e6


def test_a_burst_line_lets_its_leg_go_until_the_blocking_valves_hold_it():
    m, proceed = moving(speed=0.0)
    proceed(100)
    at = m.state()["leg"]
    m.inject(BY_NAME["line_burst"].number, 2, 2e-5)
    proceed(400)
    sunk = m.state()["leg"] - at
    assert sunk[2] < -1e-3 and np.argmin(sunk) == 2
    m.block()
    proceed(400)
    held = m.state()["leg"]
    proceed(1000)
    assert np.abs(m.state()["leg"] - held).max() < 1e-3


def test_a_stuck_spool_and_a_blocked_leg():
    m, proceed = moving(speed=0.1)
    proceed(300)
    m.inject(BY_NAME["valve_stuck"].number, 4)
    spool = m.state()["spool"]
    proceed(100)
    assert m.state()["spool"][4] == spool[4] != 0.0 and (m.state()["spool"][:4] != spool[:4]).all()
    m, proceed = moving(speed=0.1)
    proceed(300)
    m.inject(BY_NAME["leg_stuck"].number, 1)
    proceed(200)
    at = m.state()["leg"]
    proceed(400)
    after = m.state()["leg"]
    assert abs(after[1] - at[1]) < 0.3 * np.abs(after - at).max(), "it stands on its oil, the others bend it"
    m.inject(0)
    proceed(600)
    assert m.state()["leg"] - after != pytest.approx(np.zeros(6), abs=1e-3)


def test_faults_come_over_the_port_and_the_drives_say_so():
    """Blocked and low supply are bits of every drive; forces, pressures, valves and supply are in the log. From the neutral pose, for which
    the pressure under the weight is known."""
    platform = load_test(None, [STANDS["hydraulic_stand"]]).setup.stand.platform
    neutral = f"stand.limits.start_leg_m={platform.leg_lengths(platform.neutral_pose).tolist()}"
    records = run_line(
        (*QUICK, STANDS["hydraulic_stand"], neutral, "stand.virtual.faults=[{fault='supply_loss', at_s=0.5}]", "test.duration_max_s=1.0")
    )
    early = records[records["time_ns"] < 0.4e9]
    late = records[-1]
    bits = DRIVE["supply_low"] | DRIVE["hydraulics_blocked"]
    assert not (early["drive_status"] & bits).any() and (late["drive_status"] & bits == bits).all()
    assert early["supply_pressure"][-1] == pytest.approx(21e6, rel=0.05) and late["supply_pressure"] < 5e6
    assert early["leg_force"][-1] == pytest.approx(6.2e-3 * (early["leg_pressure_a"][-1] - early["leg_pressure_b"][-1]), rel=1e-3, abs=1.0)
    assert early["leg_force"][1].sum() == pytest.approx(6 * 0.919e6 * 6.2e-3, rel=0.01)
    assert np.abs(records["leg_valve"]).max() > 1e-3


# ------------------------------------------------------------------------------------------------------------------------------- electric


def electric(**keys):
    given = {key: value for key, value in keys_of("electric_stand").items() if key in {p.key for p in HYDRAULIC_PARAMETERS}}
    platform = assembly.base_context(load_test(None, [STANDS["electric_stand"]]))["platform"]
    return HydraulicMachine(platform=platform, **given | keys), platform


def test_electric_cylinders_hold_a_load_without_an_error_and_their_ledger_closes():
    """The integral carries the load; current times F_max is the force; the screw gives way by F / k."""
    m, platform = electric(friction_coulomb_n=0.0, friction_static_n=0.0)
    load = np.array([-2e4, 5e3, 0.0, 0.0, 1e3, 0.0])
    m.set_wrench(load)
    m.advance(4)
    sag = m.state()["leg"]
    m.advance(40000)
    s = m.state()
    assert s["leg"] == pytest.approx(platform.leg_lengths(platform.neutral_pose), abs=1e-6)
    assert not np.array_equal(sag, s["leg"])
    assert s["force"] == pytest.approx(m.leg_forces(np.zeros(6)), rel=1e-4)
    assert s["spool"] * 130e3 == pytest.approx(s["force"], rel=1e-3)
    for t in np.arange(1, 1001) * 1e-3:
        pose = platform.neutral_pose + np.r_[0.02 * np.sin(4 * np.pi * t), np.zeros(6)]
        m.set_legs(*platform.leg_rates(pose, [0.08 * np.pi * np.cos(4 * np.pi * t), 0, 0, 0, 0, 0]))
        m.advance(20)
    e = m.energy()
    moved = abs(e["supply"]) + abs(e["contact"]) + e["friction"]
    assert abs(e["residual"]) < 1e-3 * moved


def test_an_electric_drive_out_of_current_falls_behind():
    m, platform = electric()
    m.set_wrench(-m.jacobian().T @ np.full(6, 140e3))
    m.advance(4000)
    assert m.state()["saturated"] == 0b111111
    assert (m.state()["leg"] < platform.leg_lengths(platform.neutral_pose) - 0.01).all()


# ----------------------------------------------------------------------------------------------------------------------------- whole runs


@pytest.mark.parametrize("name", list(STANDS))
def test_a_docking_on_the_stand_ends_as_on_linear_drives(name):
    records = run_line((*QUICK, STANDS[name]))
    linear = run_line(QUICK)
    assert records[-1]["end_cause"] == linear[-1]["end_cause"] != CODES["end_cause"]["tripped"]


def test_two_runs_give_the_same_bits():
    def final():
        plant = plant_of()
        plant.machine.set_wrench(np.arange(6.0))
        plant.advance(4000)
        return plant.state()

    one, other = final(), final()
    assert all(np.array_equal(one[key], other[key]) for key in one)
