"""Identification of the hydraulic machine: what it finds against the machine that was played, and what it says it could not."""


import numpy as np
import pytest

from drivers.simulated.hydraulic_machine import HydraulicMachine
from hil_server.cli import main
from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.errors import ConfigurationError
from hil_server.identify.drives import write_stand
from hil_server.identify.stand import (
    CHANNELS,
    UNKNOWNS,
    Run,
    Stand,
    StandIdentification,
    _smooth,
    centred,
    data_sheet,
    fit,
    identify_stand_log,  # fmt: skip
)
from hil_server.line.stand_response import StandResponse
from hil_server.run.identification import HYDRAULIC, feels_load, tap
from hil_server.run.session import Options, simulate
from rt_kernels.extends import read_tables
from rt_kernels.stewart.platform import Platform

STAND = SHIPPED / "stands/hydraulic_stand.toml"
NOISE = np.repeat([2e-6, 1e4, 1e4, 5e-4, 1e4], [6, 6, 6, 6, 1])
TICK = 1e-3
FEW = [u for u in UNKNOWNS if u.name in ("platform_mass_kg", "platform_com_m[0]", "bulk_modulus_pa", "friction_coulomb_n",
                                         "friction_static_n", "position_gain_per_s", "supply_pressure_pa", "drive_delay_s")]  # fmt: skip


@pytest.fixture(scope="module")
def sheet():
    return data_sheet(read_tables(STAND))


@pytest.fixture(scope="module")
def stand():
    platform = Platform.from_dict(read_tables(STAND)["platform"])
    return Stand(platform, (-9.80665, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), np.array(platform.neutral_pose))


def played(stand, keys, seed=1, seconds=5.0, silent=()):
    """A run in six directions of the machine of these keys, measured with noise; silent: channels that say nothing."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds / TICK)) * TICK
    lines = np.arange(0.5, 20.0, 0.5)
    q, dq = np.zeros((2, len(t), 6))
    fade = np.clip(t / 0.5, 0.0, 1.0) ** 2
    for k, f in enumerate(lines):
        turn = 2 * np.pi * (f * t + rng.uniform())
        size = (0.008 if k % 6 < 3 else 0.005) / (2 * np.pi * f)
        q[:, k % 6] += size * fade * np.sin(turn)
        dq[:, k % 6] += size * fade * 2 * np.pi * f * np.cos(turn)
    J = np.asarray(stand.platform.jacobian(stand.X_start))
    leg = np.asarray(stand.platform.leg_lengths(stand.X_start)) + q @ J.T
    nothing = np.zeros((len(t), 7))
    run = Run(leg, dq @ J.T, np.zeros((len(t), 25)), NOISE.copy(), {"six 1": slice(0, len(t))}, TICK, TICK, nothing, nothing,
              np.zeros((len(t), 6)), [], 2.0, 0.5)  # fmt: skip
    run.measured[:] = stand.play(keys, run) + NOISE * rng.normal(size=(len(t), 25))
    for name in silent:
        run.measured[:, CHANNELS[name]] = 0.0
        run.noise[CHANNELS[name]] = 0.0
    return run


TRUE = {"platform_mass_kg": 2000.0, "bulk_modulus_pa": 1.2e9, "friction_coulomb_n": 200.0, "friction_static_n": 380.0,
        "position_gain_per_s": 36.0, "supply_pressure_pa": 18e6, "drive_delay_s": 3.13e-3, "platform_com_m": [0.19, 0.0, 0.0]}  # fmt: skip


@pytest.fixture(scope="module")
def found(stand, sheet):
    return fit(played(stand, sheet | TRUE), stand, sheet, FEW)


def test_slopes_to_both_sides_decide_what_is_evidence(stand, sheet, monkeypatch):
    """Two iterations at the machine's own step, the last with slopes to both sides; how much they may differ decides what is kept."""
    reported = []
    run = played(stand, sheet | TRUE, seconds=2.0)
    assert fit(run, stand, sheet, FEW[-2:], reported.append).kept == 1.0
    assert sum("at the fine step" in words for words in reported) == 2
    monkeypatch.setattr("hil_server.identify.stand.ROUGH", 1e-9)
    assert fit(run, stand, sheet, FEW[-2:]).kept < 0.9


def test_parameters_from_a_data_sheet_that_is_a_quarter_wrong(found, sheet):
    """Each within four of its own standard deviations, which are below 1 %; nothing but noise is left."""
    true = sheet | TRUE
    for k, u in enumerate(FEW):
        value, sigma = u.of(found.keys), u.sigma(u.of(found.keys), float(found.sigma[k]))
        assert abs(value - u.of(true)) < 4.0 * sigma, u.name
        assert found.found(k) and sigma < 0.01 * abs(value), u.name
    assert found.misfit == pytest.approx(1.0, abs=0.03) and found.excess < 1.5


def test_small_signal_response_of_what_was_found(found, stand, sheet):
    """0.3 dB and 3 degrees are asked for, from 0.5 to 15 Hz in all six directions."""
    f = np.geomspace(0.5, 15.0, 30)
    own, true = (np.einsum("nii->ni", StandResponse(keys, stand.platform).response(f)) for keys in (found.keys, sheet | TRUE))
    own = own / true
    assert np.abs(20 * np.log10(np.abs(own))).max() < 0.05 and np.abs(np.degrees(np.angle(own))).max() < 0.3


def test_what_the_lengths_alone_cannot_show_is_reported(stand, sheet):
    """The drive divides by the valve's flow, so that it cancels but for what the pressure difference does: without valve and pressures it
    is known far worse."""
    unknowns = [u for u in UNKNOWNS if u.name in ("valve_flow_m3_per_s", "pressure_gain_per_pa")]
    smooth = sheet | {"friction_coulomb_n": 0.0, "friction_static_n": 0.0, "valve_overlap": 0.0}
    silent = ("leg_pressure_a", "leg_pressure_b", "leg_valve", "supply_pressure")
    whole = fit(played(stand, smooth, seconds=3.0), stand, smooth, unknowns)
    lengths = fit(played(stand, smooth, seconds=3.0, silent=silent), stand, smooth, unknowns)
    assert whole.found(0) and whole.sigma[0] < 1e-3
    assert lengths.sigma[0] > 20 * whole.sigma[0]


def test_a_stand_that_is_another_machine_is_less_sure(stand, sheet, found):
    """A drive whose high-pass no one looks for is 40 % off: the misfit says so and the standard deviations grow."""
    wrong = fit(played(stand, sheet | TRUE | {"pressure_highpass_hz": 0.7}), stand, sheet, FEW)
    assert wrong.misfit > 1.05 and wrong.excess > 2.0
    assert wrong.sigma[0] > 1.3 * found.sigma[0]


# six unlike legs: flow gain, null of the spool (share of its stroke), friction
FLOW, NULL = (1.07, 0.94, 1.02, 0.97, 1.05, 0.93), (0.0018, -0.001, 0.0012, -0.0015, 0.001, -0.0018)
RUBS = (1.3, 0.7, 1.1, 0.85, 1.4, 0.9)


def of_unlike_legs(stand, keys, much, seconds=2.0):
    """A run of six unlike legs: each leg's channels are of a machine of that leg's figures; the null of a spool moves leg and spool by what
    the position loop needs against it. much: how unlike."""
    run = played(stand, keys, seconds=seconds)
    for leg in range(6):
        own = keys | {"valve_flow_m3_per_s": keys["valve_flow_m3_per_s"] * (1.0 + much * (FLOW[leg] - 1.0))}
        own |= {key: keys[key] * (1.0 + much * (RUBS[leg] - 1.0)) for key in ("friction_coulomb_n", "friction_static_n")}
        other = played(stand, own, seconds=seconds).measured
        for name in ("measured_leg", "leg_pressure_a", "leg_pressure_b", "leg_valve"):
            run.measured[:, CHANNELS[name].start + leg] = other[:, CHANNELS[name].start + leg]
        run.measured[:, CHANNELS["leg_valve"].start + leg] += much * NULL[leg]
    return run


def identified(run, stand, sheet):
    found = fit(run, stand, sheet, [u for u in FEW if u.name in ("platform_mass_kg", "position_gain_per_s", "drive_delay_s")])
    return StandIdentification(found, [], [], StandResponse(found.keys, stand.platform), "2026-01-01")


@pytest.mark.parametrize("much", [0.5, 1.0, 2.0])
def test_unlike_legs_are_not_explained_and_nothing_is_called_a_data_sheets(stand, sheet, much):
    found = identified(of_unlike_legs(stand, sheet | TRUE, much), stand, sheet | TRUE)
    first = found.report()[:3]
    assert first[0].startswith("residual ") and first[1].startswith("evidence ") and first[2].startswith("NOT EXPLAINED ")
    assert any("channels are left unexplained" in why and "unlike the others" in why for why in found.lacking)
    assert "data sheet" not in "\n".join(found.report())


def test_more_noise_is_no_other_machine(stand, sheet):
    """Ten times the noise, and as much measured where it stands: right within its standard deviations."""
    run = played(stand, sheet | TRUE, seconds=2.0)
    run.measured[:] += 10.0 * NOISE * np.random.default_rng(5).normal(size=run.measured.shape)
    run.noise[:] = 10.0 * NOISE
    found = identified(run, stand, sheet | TRUE)
    assert found.lacking == []
    for k, u in enumerate(found.fit.unknowns):
        assert abs(u.of(found.fit.keys) - u.of(sheet | TRUE)) < 4.0 * found.sigma(k), u.name


def test_a_leg_that_does_not_move_is_named(stand, sheet):
    run = played(stand, sheet | TRUE, seconds=2.0)
    for name in ("measured_leg", "leg_pressure_a", "leg_pressure_b", "leg_valve"):
        run.measured[:, CHANNELS[name].start + 3] = run.measured[0, CHANNELS[name].start + 3]
    found = identified(run, stand, sheet | TRUE)
    assert found.lacking and found.residuals[0][0] in ("measured_leg 4", "leg_pressure_a 4", "leg_pressure_b 4", "leg_valve 4")


def test_nothing_is_written_of_a_run_that_is_not_explained(stand, sheet, tmp_path, monkeypatch, capsys):
    bad = identified(of_unlike_legs(stand, sheet | TRUE, 2.0, 1.0), stand, sheet | TRUE)
    monkeypatch.setattr("hil_server.run.identification.run_on_hydraulic", lambda *args, **how: (bad, str(tmp_path / "run.mcap")))
    monkeypatch.setattr("hil_server.identify.stand.picture", lambda found, path: path)
    target = tmp_path / "found.toml"
    assert main(["identify", str(STAND), "--write", str(target)]) == 1
    assert not target.exists() and "nothing written: the model does not explain the run" in capsys.readouterr().out


def test_a_stretch_without_a_slope_is_no_evidence(stand, sheet):
    """Slopes to both sides that differ by far more than what is known there: the block goes, the others stay; small differences do not
    matter. Means are those of what stays."""
    run = played(stand, sheet, seconds=1.0)
    rng = np.random.default_rng(3)
    now = rng.normal(size=(250, 25, 2))
    variance = 1.0 / np.sum(now**2, axis=(0, 1))
    difference = 1e-3 * rng.normal(size=now.shape)
    assert _smooth(run, difference, variance).all()
    difference[60:70, :, 1] += 1.0
    keep = _smooth(run, difference, variance)
    assert np.flatnonzero(~keep).tolist() == list(range(50, 75))
    d = 5.0 + now
    d[50:75] = 1e3
    left = centred(run, d, keep)
    assert np.all(left[50:75] == 0.0) and np.abs(left[keep] - now[keep] + now[keep].mean(axis=0)).max() < 1e-12


def test_play_is_the_machine_step_by_step(stand, sheet):
    """Rows of setpoints, late by some steps, against the machine advanced by hand."""
    run = played(stand, sheet, seconds=0.05)
    own = {p.key for p in HydraulicMachine.PARAMETERS}
    keys = {k: v for k, v in sheet.items() if k in own}
    fast, slow = (HydraulicMachine(platform=stand.platform, X_WP=stand.X_start, **keys) for _ in range(2))
    rows = fast.play(run.leg, run.rate, 20, 33)
    for step in range(len(run.leg) * 20):
        if step % 20 == 0:
            s = slow.state()
            assert np.array_equal(rows[step // 20], np.concatenate([s["leg"], s["pressure_a"], s["pressure_b"], s["spool"],
                                                                    [s["supply_pressure"]]]))  # fmt: skip
        row = max(0, step - 33) // 20
        slow.set_legs(run.leg[row], run.rate[row])
        slow.advance(1)
    with pytest.raises(ValueError, match="delay at least 0"):
        fast.play(run.leg, run.rate, 20, -1)


SHORT = ("stand.virtual.cell_mode_hz=[25.0, 31.0, 38.0, 44.0, 50.0, 57.0]", "guidance.slow_hz=1.0", "guidance.chirp_s=0.5",
         "guidance.multisine_s=2.0", "guidance.six_rate_rms_m_s=[0.015, 0.004]", "guidance.six_period_s=2.0", "guidance.six_periods=2",
         "guidance.high_s=0.0", "guidance.poses=[]", "guidance.tap_s=2.0")  # fmt: skip


def test_run_log_and_stand_file_of_the_whole_chain(tmp_path):
    """A stand of 2900 kg whose sensor rings, through server and log: mass, modes, responses; then written and read again."""
    stand = (f'test.stand="{STAND}"', "stand.virtual.platform_mass_kg=2900.0", *SHORT)
    config = load_test(SHIPPED / HYDRAULIC, (*stand, *tap(load_test(SHIPPED / HYDRAULIC, stand))))
    log = simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True))["log"]
    sheet = data_sheet(read_tables(STAND))
    found = identify_stand_log(log, sheet, unknowns=FEW[:1])
    assert found.fit.keys["platform_mass_kg"] == pytest.approx(2900.0, rel=3e-3)
    assert found.fit.misfit == pytest.approx(1.0, abs=0.05) and found.lacking == []
    assert [m.frequency_hz for m in found.modes] == pytest.approx([25.0, 31.0, 38.0, 44.0, 50.0, 57.0], rel=0.02)
    assert [m.damping for m in found.modes] == pytest.approx([0.02] * 6, rel=0.2)
    for direct in found.direct:
        good = (direct.lines_hz < 15.0) & (direct.noise < 0.02 * np.abs(direct.response))
        assert good.sum() > 10
        assert np.abs(20 * np.log10(np.abs(direct.response / direct.played)))[good].max() < 0.3
    # written over what was there, read by the loader, and the start of the next identification
    target = tmp_path / "identified.toml"
    write_stand(STAND, target, found.model, "stand_model")
    write_stand(target, target, found.model, "stand_model")
    assert target.read_text().count("[stand_model]") == 1 and target.read_text().count("[stand_model.sigma]") == 1
    read = load_test(SHIPPED / HYDRAULIC, (f'test.stand="{target}"',)).stand
    assert read["stand_model"]["platform_mass_kg"] == pytest.approx(found.fit.keys["platform_mass_kg"], rel=1e-5)
    assert 0.0 < read["stand_model"]["sigma"]["platform_mass_kg"] < 20.0
    assert data_sheet(read)["platform_mass_kg"] == read["stand_model"]["platform_mass_kg"] and feels_load(target)


def test_loader_refuses_a_model_that_is_none(tmp_path):
    target = tmp_path / "wrong.toml"
    text = STAND.read_text() + "\n[stand_model]\nplatform_mass_kg = -1.0\nmode_hz = [30.0]\n"
    target.write_text(text)
    with pytest.raises(ConfigurationError, match=r"stand_model.platform_mass_kg: must be a number within 1 \.\.\. 1e\+06 kg, got -1"):
        load_test(SHIPPED / HYDRAULIC, (f'test.stand="{target}"',))
    target.write_text(text.replace("-1.0", "2000.0"))
    with pytest.raises(ConfigurationError, match="a damping ratio for each of mode_hz"):
        load_test(SHIPPED / HYDRAULIC, (f'test.stand="{target}"',))
    target.write_text(text.replace("-1.0", "2000.0").replace("mode_hz", "[stand_model.sigma]\nmode_hz_of_nothing"))
    with pytest.raises(ConfigurationError, match="mode_hz_of_nothing"):
        load_test(SHIPPED / HYDRAULIC, (f'test.stand="{target}"',))


def test_a_run_of_linear_drives_says_nothing_of_six_directions(tmp_path):
    short = ("guidance.slow_hz=2.0", "guidance.chirp_s=0.5", "guidance.multisine_s=2.0")
    config = load_test(SHIPPED / "programmes/identify.toml", short)
    log = simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True))["log"]
    assert not feels_load(SHIPPED / "stands/docking_stand.toml")
    assert not feels_load(SHIPPED / "stands/electric_stand.toml") and feels_load(SHIPPED / "stands/hydraulic_stand.toml")
    with pytest.raises(ConfigurationError, match="no part in six directions"):
        identify_stand_log(log, data_sheet(read_tables(STAND)))
