"""Motions and loads as functions of the time since an event: against scipy's splines, impulses worked out by hand, momenta of rotors."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from rt_kernels.layout import CODES
from rt_kernels.model.profiles import Profile, with_data
from tests.dynamics.test_two_crafts import AUX, MODE, PERIOD, arm, begin, flexible, make, pair, run
from tests.dynamics.test_two_crafts_joints import change, command, equipped, fly, pulse, settings

PHASE = CODES["phase"]
TIMES, VALUES = [0.0, 0.3, 0.5, 0.9], [0.3, 0.5, 0.2, 0.35]
MOVE = {"name": "move", "times_s": TIMES, "values": VALUES, "interpolation": "cubic"}
STEPS = {"name": "steps", "times_s": [0.0, 0.2, 0.2, 0.4], "values": [1.0, 2.0, -3.0, 0.0]}
PUSH = {"craft": "active", "body": "craft", "profile": "steps"}


def only(craft, joint="link0", **more):
    """The craft without springs, all joints but one locked."""
    held = {name: {"mode": "locked"} for name in ("link0", "link1", "link2") if name != joint}
    return settings(craft, **held, **{joint: more})


# ----------------------------------------------------------------------------------------------------------------------- joints


def test_a_given_joint_follows_its_spline():
    """From the first tick on where it begins there, and behind the last point at rest."""
    part = make(pair(only(arm(stiffness=0.0, damping=0.0))), profiles=[MOVE], joint_changes=[change("link0", "given", profile="move")])
    _, aux = fly(part, 1100, np.zeros(6), F_T_corrected=pulse)
    t = PERIOD * np.arange(1101)
    expected = CubicSpline(TIMES, VALUES, bc_type="clamped")(np.minimum(t, TIMES[-1]))
    np.testing.assert_allclose(aux[1:, AUX["joint_position"]][:, 0], expected[1:], atol=1e-12)
    assert np.ptp(expected) > 0.3


def test_a_joint_that_is_elsewhere_comes_onto_its_profile():
    """By the path of fifth degree, in the time given; target and amplitude move and scale the profile."""
    joint = change("link0", "given", event="contact", after_s=0.1, target=-0.2, amplitude=2.0, profile="swing", time_s=0.25)
    part = make(pair(only(arm(stiffness=0.0, damping=0.0))), profiles=[{"name": "swing", "frequency_hz": 0.7, "phase_deg": 30.0}],
                joint_changes=[joint])
    _, aux = fly(part, 600, np.zeros(6), phase=PHASE["contact"])
    x, rate = (aux[:, AUX[f"joint_{what}"]][:, 0] for what in ("position", "rate"))
    # contact is entered with the first tick
    t = PERIOD * (np.arange(601) - 1) - 0.1
    wanted = -0.2 + 2.0 * np.sin(2 * np.pi * 0.7 * t + np.pi / 6)
    assert (x[:100] == 0.3).all() and abs(wanted[110] - 0.3) > 0.1
    np.testing.assert_allclose(x[360:], wanted[360:], atol=1e-12)
    assert np.abs(rate).max() < 15 and abs(rate[101]) < 0.2


def test_a_torque_follows_its_profile():
    """Constant inertia about the axis: the rate is the integral of a sine over it."""
    part = make(pair(only(arm(stiffness=0.0, damping=0.0), mode="driven")), profiles=[{"name": "hum", "frequency_hz": 2.0}],
                joint_changes=[change("link0", "driven", profile="hum", amplitude=12.0)])
    _, aux = fly(part, 300, np.zeros(6))
    middle = PERIOD * (np.arange(300) + 0.5)
    np.testing.assert_allclose(aux[1:, AUX["joint_torque"]][:, 0], 12.0 * np.sin(2 * np.pi * 2.0 * middle), atol=1e-9)


def test_an_operator_ends_a_profile():
    part = make(pair(only(arm(stiffness=0.0, damping=0.0))), profiles=[MOVE], joint_changes=[change("link0", "given", profile="move")])
    _, aux = fly(part, 700, np.zeros(6), **command(150, 0, 0, MODE["given"], 0.1, 0.3))
    x = aux[:, AUX["joint_position"]][:, 0]
    np.testing.assert_allclose(x[480:], 0.1, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------------------ loads


def test_a_load_gives_its_impulse():
    """Straight pieces with a jump, from a phase on: taken at the middles of the steps they are exact."""
    force, moment = [3.0, -1.0, 2.0], [0.4, 0.2, -0.7]
    load = PUSH | {"axes": "inertial", "force_n": force, "moment_n_m": moment, "event": "latched", "after_s": 0.05}
    part = make(pair(arm()), profiles=[STEPS], loads=[load])
    phase = {"phase": lambda k: PHASE["latched"] if k >= 100 else PHASE["contact"]}
    records, _ = fly(part, 700, np.zeros(6), **phase)
    change_of = records["momentum"][:, :3] - records["momentum"][0, :3]
    assert not change_of[150].any()
    # the phase is entered with record 101; up to the jump 0.2 x 1.5, behind it 0.2 x -1.5
    np.testing.assert_allclose(change_of[351], 0.3 * np.array(force), rtol=1e-9)
    np.testing.assert_allclose(change_of[601:], 0.0 * change_of[601:], atol=1e-10)


def test_a_load_in_the_axes_of_its_body_turns_with_it():
    part = make(pair(arm()), loads=[{"craft": "active", "body": "link2", "position_m": [0.4, 0.0, 0.1], "force_n": [0.0, 30.0, 0.0]}])
    sample, aux = begin(part, np.zeros(6))
    for k in range(400):
        sample["time_ns"] = round((k + 1) * PERIOD * 1e9)
        before, (q, _) = sample["momentum"].copy(), part.coordinates(0)
        R, p = part.trees[0].poses(q)
        part.step(sample, aux)
        link = part.trees[0].index("link2")
        f = R[link] @ [0.0, 30.0, 0.0]
        np.testing.assert_allclose(sample["momentum"][0, :3] - before[0, :3], PERIOD * f, atol=1e-12)
        m = np.cross(p[link] + R[link] @ [0.4, 0.0, 0.1], f)
        np.testing.assert_allclose(sample["momentum"][0, 3:] - before[0, 3:], PERIOD * m, rtol=1e-3, atol=1e-4)
    assert np.abs(f[[0, 2]]).max() > 0.1


def test_a_load_at_a_node_bends_its_body():
    still, bent = (make(pair(flexible()), loads=[{"craft": "active", "body": "boom", "node": "tip", "force_n": [0.0, 0.0, f]}])
                   for f in (0.0, 50.0))  # fmt: skip
    energies = [fly(part, 300, np.zeros(6))[1][-1, AUX["modal_energy"]][0] for part in (still, bent)]
    assert energies[0] == 0.0 and energies[1] > 1e-3


def test_late_ticks_take_the_load_of_their_own_time():
    """Three periods in one tick are the same as three ticks."""
    both = []
    for periods in (1, 3):
        part = make(pair(arm()), profiles=[STEPS], loads=[PUSH | {"force_n": [10.0, 0.0, 0.0]}])
        sample, aux = begin(part, np.zeros(6))
        sample["periods"] = periods
        for k in range(300 // periods):
            sample["time_ns"] = round((k + 1) * periods * PERIOD * 1e9)
            part.step(sample, aux)
        both.append(sample["momentum"][0].copy())
    np.testing.assert_allclose(both[1], both[0], rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------------------ start


@pytest.mark.parametrize("given", [{"rate_deg_s": np.degrees(200.0)}, {"momentum_n_m_s": 200.0 * 0.35}])
def test_a_rotor_starts_with_its_spin(given):
    """The craft moves as without it; momentum of the rotor about its axis on top (0.35 kg.m2)."""
    part = make(pair(equipped()), joint_start=[{"craft": "active", "joint": "disc", **given}])
    still = make(pair(equipped()))
    (one, aux), (other, _) = fly(part, 1), fly(still, 1)
    assert one["wheel_rate_A"][0, 0] == pytest.approx(200.0 + other["wheel_rate_A"][0, 0], rel=1e-12)
    np.testing.assert_allclose(one["V_NC"][0, 3:], other["V_NC"][0, 3:], rtol=1e-9)
    R = Rotation.from_quat(one["X_NC"][0, 3:])
    np.testing.assert_allclose(one["momentum"][0, 3:] - other["momentum"][0, 3:], R.apply(70.0 * np.array([0.0, 0.6, 0.8])), rtol=1e-9)
    assert aux[0, AUX["joint_rate"]][0] == pytest.approx(200.0, rel=1e-12)


def test_a_sliding_joint_starts_with_its_rate():
    craft = arm(("prismatic", "revolute", "revolute"), angles=(0.1, -0.5, 0.4))
    _, aux = fly(make(pair(craft), joint_start=[{"craft": "active", "joint": "link0", "rate_m_s": 0.2}]), 5)
    assert aux[0, AUX["joint_rate"]][0] == 0.2
    assert aux[5, AUX["joint_position"]][0] - 0.1 == pytest.approx(5 * PERIOD * 0.2, rel=0.02)


# -------------------------------------------------------------------------------------------------------------- blocks and errors


def test_snapshot_and_block_run_to_the_same_bits():
    keys = {"profiles": [STEPS, MOVE], "loads": [PUSH | {"force_n": [10.0, 0.0, 0.0], "event": "contact"}],
            "joint_changes": [change("link0", "given", profile="move", event="contact", after_s=0.05)]}  # fmt: skip
    part, twin = make(pair(arm()), **keys), make(pair(arm()), **keys)
    block = part.dump()
    fly(part, 100, phase=PHASE["contact"])
    kept = part.snapshot()
    first = run(part, 100)[0]
    part.restore(kept)
    assert run(part, 100)[0].tobytes() == first.tobytes()
    twin.load(block)
    assert fly(twin, 200, phase=PHASE["contact"])[0].tobytes() == fly(part, 200, phase=PHASE["contact"])[0].tobytes()
    with pytest.raises(ValueError, match="profiles of other points"):
        make(pair(arm()), **keys | {"profiles": [STEPS, MOVE | {"times_s": [0.0, 0.9], "values": [0.3, 0.3]}]}).load(block)


def profile(**more):
    return {"profiles": [MOVE | more]}


def moved(mode="given", **more):
    return {"profiles": [MOVE, STEPS], "joint_changes": [change("link0", mode, profile="move") | more]}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (profile(frequency_hz=2.0), r"profiles\[0\].frequency_hz: a profile is a sine or goes through points"),
        (profile(values=[1.0]), r"profiles\[0\].values: 1 values at 4 times, limit as many"),
        (profile(times_s=[0.0, 0.5, 0.4, 0.9]), r"profiles\[0\].times_s\[2\]: 0.4 s, limit not before 0.5 s"),
        (profile(times_s=[0.0, 0.5, 0.5, 0.9]), r"profiles\[0\].times_s: 0.5 s stands twice, limit once"),
        (profile(repeats=True), r"profiles\[0\].values: from 0.3 at 0 s to 0.35"),
        ({"profiles": [{"name": "move"}]}, r"profiles\[0\].times_s: points are missing"),
        ({"profiles": [MOVE, MOVE]}, r"profiles\[1\].name: 'move' stands twice"),
        (moved(profile="moves"), r"joint_changes\[0\].profile: no profile 'moves'; there are move, steps"),
        (moved(mode="free"), r"joint_changes\[0\].profile: of a joint that is free, limit given or driven"),
        (moved(profile="steps"), r"joint_changes\[0\].profile: 'steps' jumps"),
        (moved(amplitude=4.0), r"joint_changes\[0\].amplitude: 2.0\d* rad of joint 'link0', limit -1 ... 1 rad \(its stops\)"),
        (moved(amplitude=1.8), r"joint_changes\[0\].amplitude: 3.\d* rad/s of joint 'link0' by its profile, limit 3 rad/s"),
        ({"loads": [{"craft": "active", "body": "hull"}]}, r"loads\[0\]: no body 'hull'; there are craft, link0"),
        ({"loads": [{"craft": "target", "body": "boom"}]},
         r"loads\[0\].node: body 'boom' bends, limit a load on one of its nodes: root, tip"),
        ({"loads": [{"craft": "active", "body": "craft", "event": "docked"}]}, r"loads\[0\].event: must be one of time, first_contact"),
        ({"joint_start": [{"craft": "active", "joint": "link0", "rate_m_s": 1.0}]},
         r"joint_start\[0\]: rate_m_s of joint 'link0', limit one of rate_deg_s, momentum_n_m_s"),
        ({"joint_start": [{"craft": "active", "joint": "link1", "rate_deg_s": 1.0}]}, r"joint_start\[0\]: joint 'link1' is locked"),
        ({"joint_start": [{"craft": "active", "joint": "link0", "rate_deg_s": 360.0}]},
         r"joint_start\[0\].rate_deg_s: 6.28\d* rad/s .* limit 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(keys, words):
    with pytest.raises(ValueError, match=words):
        make(pair(settings(only(arm()), link0={"lower": -1.0, "upper": 1.0, "rate": 3.0}), flexible()), **keys)


def test_points_come_from_a_file(tmp_path):
    (tmp_path / "move.csv").write_text("# of the drive\ntime_s, angle\n0.0, 0.3\n0.3, 0.5\n0.5, 0.2\n0.9, 0.35\n")
    table = with_data({"name": "move", "file": "move.csv", "interpolation": "cubic"}, tmp_path)
    assert table == MOVE
    (tmp_path / "move.csv").write_text("0.0, 0.3\n0.3, much\n")
    with pytest.raises(ValueError, match=r"move.csv: row 2: '0.3, much', limit two numbers"):
        with_data({"name": "move", "file": "move.csv"}, tmp_path)


def test_a_profile_repeats():
    saw = Profile({"name": "saw", "times_s": [0.0, 0.2], "values": [0.0, 1.0], "repeats": True}, "profiles[0]")
    assert saw.jumps and saw.period_s == 0.2 and saw.range() == (0.0, 1.0) and saw.fastest() == pytest.approx(5.0)
    part = make(pair(arm()), profiles=[{"name": "saw", "times_s": [0.0, 0.2], "values": [0.0, 1.0], "repeats": True}],
                loads=[PUSH | {"profile": "saw", "axes": "inertial", "force_n": [1.0, 0.0, 0.0]}])  # fmt: skip
    records, _ = fly(part, 1000, np.zeros(6))
    gained = records["momentum"][:, 0] - records["momentum"][0, 0]
    np.testing.assert_allclose(gained[200::200], 0.1 * np.arange(1, 6), rtol=1e-9)
