"""Designs side by side: the shipped comparison of the dampers, cut to eight seconds of contact, and the words on figures made by hand."""

import json

import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.log.reader import read_log
from hil_server.report.side_by_side import compared, table_of, write_page
from hil_server.run.programme import load_programme
from rt_kernels.extends import read_tables

PROGRAMME = SHIPPED / "programmes" / "damper_comparison.toml"


def elsewhere():
    """The programme as it reads in another folder."""
    return PROGRAMME.read_text().replace('test = "virtual_docking.toml"', 'test = "programmes/virtual_docking.toml"')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The expert case with the three units, as a user runs it: (summary, folder)."""
    folder = tmp_path_factory.mktemp("comparison")
    text = elsewhere()
    head, *variants = text.split("[[variant]]")
    expert = [v for v in variants if '"EXPERT-' in v]
    assert len(expert) == 3
    (folder / "expert.toml").write_text("[[variant]]".join([head, *expert]))
    code = main(["simulate", str(folder / "expert.toml"), "--set", "guidance.contact_max_s=8.0", "--out", str(folder / "out"), "--quiet",
                 "--no-report", "--json", str(folder / "reported.json")])  # fmt: skip
    assert code == 0
    return json.loads((folder / "reported.json").read_text()), folder / "out"


def test_the_modified_damper_halves_the_loads_of_the_expert_case(run):
    """6.4: axial peak at most 0.8 of the existing unit's, lateral at most 1.1; all capture, no law beyond its range (2 mm)."""
    (case,) = run[0]["side_by_side"]
    by = {d["design"]: d for d in case["designs"]}
    assert list(by) == ["existing", "modified", "movable limiter"] and all(d["verdict"] == "captured" for d in by.values())
    existing = by["existing"]["figures"]
    for name in ("modified", "movable limiter"):
        figures = by[name]["figures"]
        assert figures["axial_n"] <= 0.8 * existing["axial_n"] and figures["lateral_n"] <= 1.1 * existing["lateral_n"], name
    assert all(d["figures"]["penetration_m"] < 0.002 for d in by.values())
    # 6.4, figure 6.4.4: both limiters are met; the force passes the existing hinge nearly through its centre, the one at the base at an arm
    modified = by["modified"]["figures"]
    assert 1000.0 < modified["limiter_n"] < 0.7 * existing["limiter_n"]
    assert existing["limiter_arm_m"] < 0.05 and 0.15 < modified["limiter_arm_m"] < 0.25
    # and they are the figures of the logs
    for d in by.values():
        log = read_log(d["log"])
        assert d["figures"]["axial_n"] == pytest.approx(log.records["F_T"][:, 0].max(), rel=1e-9)


def test_existing_and_modified_are_compared_with_the_same_clearance_of_the_limiter():
    """From both ends of the linings to the head's centre in the undisturbed units; the programme flies these files."""
    files = [SHIPPED / "mechanisms" / f"probe_cone_{name}.toml" for name in ("existing", "modified_short")]
    units = [read_tables(file) for file in files]
    ahead, rear = ([unit["exit_x_m"] + unit["probe_length_m"] - unit[f"lining_{end}_m"][0] for unit in units] for end in ("front", "rear"))
    assert ahead == pytest.approx([0.35, 0.35]) and rear == pytest.approx([0.60, 0.60])
    for key in ("cone_profile_m", "probe_length_range_m", "bend_forward", "bend_return"):
        assert units[1].get(key, units[0][key]) == units[0][key], key
    assert all(a["lining_front_m"][1] == units[0]["lining_front_m"][1] for a in units)
    flown = {v.design: v.config.paths["mechanism"].name for v in load_programme(PROGRAMME)[1]}
    assert [flown["existing"], flown["modified"]] == [file.name for file in files]


def test_the_page_says_which_is_better_and_by_how_much(run):
    reported, out = run
    page = (out / "side_by_side.html").read_text()
    (case,) = reported["side_by_side"]
    first, second = (d["figures"]["axial_n"] for d in case["designs"][:2])
    words = f"axial compression lower by {100 * (1 - second / first):.0f} % ({second:.0f} against {first:.0f} N)"
    assert case["text"][0].startswith(f"modified against existing: {words}") and words in page
    assert page.count("<canvas") == 3 and page.count("<table") == 1
    head, rows = table_of(case)
    assert head == ["", "existing", "modified", "movable limiter"] and rows[0] == ["end", "captured", "captured", "captured"]


def test_words_of_figures_made_by_hand(tmp_path):
    rows = [{"number": str(i), "case": "one", "design": name, "verdict": verdict} for i, (name, verdict) in enumerate(
        [("old", "captured"), ("new", "tripped")])] + [{"number": "alone", "case": "", "design": "", "verdict": "captured"}]  # fmt: skip
    (case,) = compared(rows)
    assert case["text"] == ["They do not end alike: old captured, new tripped."]
    from hil_server.report.side_by_side import _sentences

    loads = {"old": (1000.0, 100.0, 200.0), "new": (400.0, 102.0, 250.0)}
    designs = [{"design": name, "verdict": "captured", "figures": dict(axial_n=a, pull_n=p, lateral_n=q, bending_n_m=0.0)}
               for name, (a, p, q) in loads.items()]  # fmt: skip
    assert _sentences(designs) == ["new against old: axial compression lower by 60 % (400 against 1000 N); axial tension equal "
                                   "(102 against 100 N); lateral force higher by 25 % (250 against 200 N)."]  # fmt: skip
    assert "They do not end alike" in write_page("x", [case], tmp_path).read_text()


def test_a_case_without_its_design_is_refused(tmp_path):
    from hil_server.errors import ConfigurationError

    (tmp_path / "p.toml").write_text(elsewhere().replace('design = "modified"\n', "", 1))
    with pytest.raises(ConfigurationError, match=r"variant\[1\].design"):
        load_programme(tmp_path / "p.toml")
    assert {v.design for v in load_programme(PROGRAMME)[1]} == {"existing", "modified", "movable limiter"}
