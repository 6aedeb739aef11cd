"""Every compensator of the registry by itself: its own fields only, the same bits twice, snapshot, wrong keys named."""

from dataclasses import replace

import numpy as np
import pytest

from hil_server import registry
from rt_kernels.layout import CODES, FIELDS, SAMPLE_DTYPE
from rt_kernels.stewart.platform import Platform
from tests.first_sample import first_sample

OWN = {name for name, *rest in FIELDS if name in ("F_T_corrected", "lead", "lead_offset", "loop_delay", "compensation_status")}
NEEDED = {
    "pose_referenced_force": {"stiffness_n_per_m": 1e5},
    "lead_and_pose_force": {"stiffness_n_per_m": 1e5},
    "phased": {"contact": {"part": "lead_and_pose_force", "stiffness_n_per_m": 1e5}},
}
NAMES = sorted(registry.PARTS["compensation"])


@pytest.fixture(scope="module")
def context():
    from hil_server.config import load_test
    from hil_server.line import assembly

    test = assembly.simulation(load_test("stand_configs/programmes/elastic_contact.toml"))
    assert isinstance(test.context["platform"], Platform)
    return test.context


def build(name, context, **keys):
    part = registry.part("compensation", name)
    return part(**(NEEDED.get(name, {}) | keys), **{wanted: context[wanted] for wanted in part.CONTEXT})


def samples(count=200, seed=1):
    """A contact with noise: random poses, twists and wrenches, contact in the second half."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        s = first_sample(motion=CODES["motion"]["free"], contact=i > count // 2)
        for name in ("X_TA", "X_TA_measured", "X_NC", "X_NV", "X_WP"):
            s[name][0, :3] = 1e-3 * rng.normal(size=3)
            q = np.array([0, 0, 0, 1.0]) + 1e-3 * np.append(rng.normal(size=3), 0.0)
            s[name][0, 3:] = q / np.linalg.norm(q)
        s["V_TA"], s["A_TA"], s["F_T"] = 0.02 * rng.normal(size=6), 0.1 * rng.normal(size=6), 100.0 * rng.normal(size=6)
        s["kinetic_energy"] = 0.06
        yield s


@pytest.mark.parametrize("name", NAMES)
def test_writes_its_own_fields_only_and_finite(name, context):
    part = build(name, context)
    for s in samples():
        before = s.copy()
        part.step(s)
        for field in SAMPLE_DTYPE.names:
            if field not in OWN:
                assert s[field].tobytes() == before[field].tobytes(), field
        assert all(np.all(np.isfinite(s[field])) for field in OWN)
    assert s["loop_delay"][0] == pytest.approx(context["delays"].total_s, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_gives_nothing_out(name, context):
    s = first_sample()
    build(name, context).step(s)
    assert not s["F_T_corrected"].any() and not s["lead_offset"].any()


def test_stiffness_follows_the_wrench_of_any_single_contact(context):
    """Force at the pose x out of the force at the pose y of one spring, anywhere, in any direction: exact."""
    rng = np.random.default_rng(3)
    together = context | {"delays": replace(context["delays"], sensor_delay_s=0.0, measured_leg_delay_s=0.0)}
    part = build("pose_referenced_force", together, stiffness_n_per_m=1e5)
    for _ in range(20):
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        p = rng.normal(size=3)
        u = np.concatenate([n, np.cross(p, n)])
        x, y = 1e-4 * rng.normal(size=3), 1e-4 * rng.normal(size=3)
        depth_y, depth_x = 2e-3 + n @ y, 2e-3 + n @ x
        s = first_sample(contact=1, F_T=1e5 * depth_y * u)
        s["X_TA"][0, :3], s["X_TA_measured"][0, :3] = x, y
        part.step(s)
        np.testing.assert_allclose(s["F_T_corrected"][0], 1e5 * depth_x * u, rtol=1e-9, atol=1e-6)


def test_force_is_never_turned_around(context):
    part = build("pose_referenced_force", context, stiffness_n_per_m=1e6)
    s = first_sample(contact=1)
    s["X_TA"][0, 0], s["F_T"][0, 0] = -0.01, 50.0
    part.step(s)
    assert s["F_T_corrected"][0, 0] == 0.0 and s["compensation_status"][0] & 4


@pytest.mark.parametrize("axes", [(0,), (3,), (0, 3)], ids=["translation", "rotation", "both"])
def test_lead_is_limited_and_says_so(context, axes):
    """A lead that jumps is led up inside its limits and brakes in time (2.13 mm at 0.05 m/s and 2 m/s2: 68 ms); the flag tells. Neither of
    translation and rotation leaves its limits while the other is at its own."""
    part = build("phase_lead", context, lead_rate_max_m_s=0.05, lead_acceleration_max_m_s2=2.0)
    s = first_sample()
    leads, flags = [], 0
    for i in range(90):
        s["V_TA"][0, axes] = 0.1 if i > 5 else 0.0
        part.step(s)
        leads.append(s["lead"][0, 1] * s["V_TA"][0, axes] + s["lead_offset"][0, axes])
        flags |= int(s["compensation_status"][0])
    rate = np.diff(leads, axis=0) / 1e-3
    assert rate.max() <= 0.05 + 1e-9 and np.abs(np.diff(rate, axis=0)).max() / 1e-3 <= 2.0 + 1e-6
    assert flags & 1 and flags & 2
    assert leads[-1] == pytest.approx(0.1 * context_lead(context), rel=1e-9)
    assert np.max(leads) <= 1.01 * leads[-1].min()


def context_lead(context):
    d = context["delays"]
    return d.transport_s + 2.0 * d.drive_damping / (2.0 * np.pi * d.drive_frequency_hz)


def test_stiffness_estimate_finds_the_contact_and_stays_in_bounds(context):
    """Prior wrong by 30 %: found; wrong by a factor of 3: held at the bound."""
    for prior, expected in ((1.3e5, 1e5), (3e5, 1.5e5)):
        part = build("pose_referenced_force", context, stiffness_n_per_m=prior, estimate=True)
        aux = np.zeros(1)
        for i in range(300):
            y = 1e-3 * np.sin(0.03 * i)
            s = first_sample(contact=1)
            s["X_TA"][0, 0] = s["X_TA_measured"][0, 0] = y
            s["F_T"][0, 0] = 1e5 * (y + 2e-3)
            part.step(s, aux)
        assert aux[0] == pytest.approx(expected, rel=0.01)


def of_many_channels(count):
    """A compensator with `count` auxiliary channels; the last one is the stiffness that it uses."""
    from rt_kernels.compensation import pose_referenced_force, smith
    from rt_kernels.parameters import Aux

    base = pose_referenced_force.PoseReferencedForce if count else smith.SmithPredictor
    return type("Many", (base,), {"AUX": tuple(Aux(f"channel{i}", "-", "one of many") for i in range(count))})


@pytest.mark.parametrize("count", [0, 1, 8, 9, 100])
def test_phased_with_any_number_of_auxiliary_channels(count, context, monkeypatch):
    """The contact compensator's channels follow those of the free one, however many there are; nothing is written beside them."""
    from rt_kernels.compensation import phased

    monkeypatch.setattr(phased, "Many", of_many_channels(count), raising=False)
    monkeypatch.setitem(registry.PARTS["compensation"], "many", "rt_kernels.compensation.phased:Many")
    for free, contact in (("many", "lead_and_pose_force"), ("lead_and_pose_force", "many")):
        keys = {role: {"part": name, **({"stiffness_n_per_m": k} if name != "many" or count else {})}
                for role, name, k in (("free", free, 1e5), ("contact", contact, 2e5))}  # fmt: skip
        part = build("phased", context, **keys)
        assert [a.name.partition(".")[0] for a in part.AUX] == ["free"] * (count if free == "many" else 1) + ["contact"] * (
            1 if free == "many" else count
        )
        declared = sum(a.count for a in part.AUX)
        aux = np.full(declared + 64, -1.0)
        for s in samples(20):
            part.step(s, aux)
        at = count if free == "many" else 1  # the first channel of the contact part: its stiffness
        if contact != "many" or count:
            assert aux[at] == 2e5
        if free != "many" or count:
            assert aux[0] == 1e5
        assert np.all(np.delete(aux, [0, at]) == -1.0) if declared > 1 else True
        assert np.all(aux[declared:] == -1.0)


def test_phased_refuses_a_part_whose_state_is_not_one_block(context, monkeypatch):
    from hil_server.config import load_test
    from hil_server.line import assembly
    from rt_kernels.compensation import phased

    ship = assembly.simulation(load_test()).context

    class Pointers:
        PARAMETERS, CONTEXT = (), ()

        def __new__(cls):
            return assembly.build_part("dynamics", "two_crafts", {}, ship)

    monkeypatch.setattr(phased, "Pointers", Pointers, raising=False)
    monkeypatch.setitem(registry.PARTS["compensation"], "pointers", "rt_kernels.compensation.phased:Pointers")
    with pytest.raises(ValueError, match=r"compensation\.contact\.part: 'pointers' keeps pointers"):
        build("phased", context, contact={"part": "pointers"})


def test_phased_follows_no_offset_out_of_a_file(context):
    """Whatever bytes a log has for the head of the block, the parts stay where they are, and the block is refused by name."""
    part = build("phased", context)
    whole = part.dump()
    for head in (b"\x7f" * 16, (1 << 40).to_bytes(8, "little") * 2):
        part.load_unchecked(head + whole[16:])  # as the lowest level takes it: nothing of it is an offset
        for s in samples(5):
            part.step(s)
        with pytest.raises(ValueError, match="this program builds"):
            build("phased", context).load(head + whole[16:])


@pytest.mark.parametrize(("name", "keys", "named"), [
    ("pose_referenced_force", {"stiffness_n_per_m": 0.0}, "stiffness_n_per_m"),
    ("phased", {"contact": {"part": "leed"}}, "contact.part"),
    ("phased", {"contact": {"part": "phase_lead", "ordre": 1}}, "contact.ordre"),
    ("polynomial", {"order": 4, "spacing_ticks": 200}, "spacing_ticks"),
])  # fmt: skip
def test_wrong_keys_are_named(name, keys, named, context):
    with pytest.raises(ValueError, match=named):
        build(name, context, **keys)
