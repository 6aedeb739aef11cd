"""The evaluation against brute force, in one piece and in many, and against a log."""

import itertools
import math

import numpy as np
import pytest

from hil_server.errors import ConfigurationError
from hil_server.log.record import aux_channels, record_dtype
from hil_server.requirements import MET, NOT_JUDGED, VIOLATED, Watch, of_log, read
from hil_server.requirements.declaration import faults_of
from rt_kernels.layout import BITS, CODES

AUX = aux_channels([("gap", "m", "", 1)])
PHASE = CODES["phase"]


def records_of(seed, count=400):
    """A run with two contacts, ticks left out, a signal of steps that stays beyond a level now for long, now for short."""
    rng = np.random.default_rng(seed)
    r = np.zeros(count, record_dtype(1))
    ticks = np.sort(rng.choice(3 * count, count, replace=False))
    r["tick"], r["time_ns"] = ticks, ticks * 1_000_000
    r["phase"] = PHASE["approach"]
    a, b, c, d = np.sort(rng.choice(np.arange(10, count - 10), 4, replace=False))
    r["phase"][a:], r["contact"][a:b], r["contact"][c:d] = PHASE["contact"], 1, 1
    r["phase"][(c + d) // 2 :] = PHASE["latched"]
    r["F_T"][:, 0] = np.repeat(rng.normal(0.0, 100.0, count // 8 + 1), 8)[:count]
    r["F_T"][:, 1] = rng.normal(0.0, 1.0, count)
    r["events"][a] |= BITS["event"]["first_contact"]
    r["events"][c] |= BITS["event"]["capture"]
    r["first_contact_time"], r["capture_time"] = -1.0, -1.0
    r["first_contact_time"][a:], r["capture_time"][c:] = r["time_ns"][a] * 1e-9, r["time_ns"][c] * 1e-9
    r["contact_work"], r["lateness_ns"] = rng.normal(size=count), rng.integers(0, 90_000, count)
    r["V_TA"][:, 0] = rng.normal(size=count)
    r["X_TA"][:, 6] = 1.0
    r["X_TA"][:, 4], r["X_TA"][:, 6] = np.sin(0.05), np.cos(0.05)  # turned by 0.1 rad about Y
    r["aux"][:, 0] = rng.normal(size=count)
    return r


def in_pieces(records, rows, seed):
    """Results of the same records in pieces of any size, asked for after each of them, too."""
    rng = np.random.default_rng(seed)
    watch = Watch(read(rows, AUX))
    cuts = [0, *np.sort(rng.choice(len(records), 12, replace=False)), len(records)]
    for start, stop in itertools.pairwise(cuts):
        watch.see(records[start:stop])
        watch.results(final=False)
    return watch.results()


def judged(records, *rows):
    watch = Watch(read(rows, AUX))
    watch.see(records)
    return watch.results()


def stretches(records, row):
    """Indices of the ticks of each stretch."""
    names = [PHASE[name] for name in row.get("phase", PHASE)]
    inside = [p in names and (row.get("per") != "contact" or bool(c)) for p, c in zip(records["phase"], records["contact"], strict=True)]
    groups = itertools.groupby(range(len(records)), key=lambda i: inside[i])
    return [list(ticks) for yes, ticks in groups if yes]


def brute(records, row, signal):
    """The margin by the definition, tick by tick."""
    t, high, low = records["time_ns"], row.get("below_n", math.inf), row.get("above_n", -math.inf)
    m = [min(high - v, v - low) for v in signal]
    worst = math.inf
    for ticks in stretches(records, row):
        if "within_s" not in row and "for_s" not in row:
            robust = min(m[i] for i in ticks)
        else:
            hold, within = round(row.get("for_s", 0.0) * 1e9), round(row.get("within_s", 1e6) * 1e9)
            robust = -math.inf
            for i in ticks:
                if t[i] <= t[ticks[0]] + within and t[i] + hold <= t[ticks[-1]]:
                    robust = max(robust, min(m[j] for j in ticks if t[i] <= t[j] <= t[i] + hold))
        worst = min(worst, robust)
    return worst


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("times", [{}, {"within_s": 0.05}, {"for_s": 0.04}, {"within_s": 0.1, "for_s": 0.02}, {"within_s": 0.0}])
@pytest.mark.parametrize("where", [{}, {"phase": ["contact"]}, {"phase": ["contact", "latched"], "per": "contact"}])
def test_margin_is_that_of_the_definition(seed, times, where):
    records = records_of(seed)
    row = {"name": "x", "channel": "F_T[0]", "below_n": 60.0, "above_n": -150.0, **times, **where}
    wanted = brute(records, row, records["F_T"][:, 0])
    for found in (judged(records, row)[0], in_pieces(records, [row], seed)[0]):
        assert found.margin == (None if math.isinf(wanted) else pytest.approx(wanted, rel=1e-12))
        assert found.verdict == (MET if wanted >= 0.0 else VIOLATED)
        if found.value is not None:  # the value is the signal's at that time, and the margin follows from it
            at = np.flatnonzero(np.isclose(records["time_ns"] * 1e-9, found.time_s, atol=1e-7))[0]
            assert found.value == pytest.approx(records["F_T"][at, 0])
            assert found.phase == next(name for name, code in PHASE.items() if code == records["phase"][at])
            assert found.margin == pytest.approx(min(60.0 - found.value, found.value + 150.0))
            assert found.limit == (60.0 if 60.0 - found.value <= found.value + 150.0 else -150.0)


ROWS = [
    {"name": "peak", "channel": "norm(F_T[0:3])", "phase": ["contact"], "below_n": 150.0},
    {"name": "angle", "channel": "tilt(X_TA)", "at": "capture", "below_deg": 6.0},
    {"name": "gap", "channel": "gap", "at": "end", "above_mm": -1e4},
    {"name": "captured", "value": "captured_after_s", "below_s": 10.0},
    {"name": "late", "value": "late_p99", "below_us": 85.0},
    {"name": "work", "value": "contact_work_j", "below_j": 0.5},
    {"name": "speed", "value": "closing_speed_m_s", "below_m_s": 3.0, "above_m_s": -3.0},
    {"name": "long", "value": "contact_duration_s", "below_s": 0.1},
    {"name": "contacts", "value": "contacts", "below": 2},
    {"name": "settles", "channel": "abs(F_T[0])", "phase": ["contact", "latched"], "below_n": 50.0, "within_s": 0.3, "for_s": 0.01},
    {"name": "complete", "channel": "tilt(X_TA)", "at": "complete", "below_deg": 1.0},
    {"name": "retreat", "channel": "F_T[0]", "phase": ["retreat"], "below_n": 1.0},
]


@pytest.mark.parametrize("seed", range(8))
def test_pieces_make_no_difference(seed):
    records = records_of(seed)
    whole, pieces = judged(records, *ROWS), in_pieces(records, ROWS, seed)
    assert pieces == whole and len(whole) == len(ROWS)


def test_figures_by_hand():
    records = records_of(3)
    found = {one.name: one for one in judged(records, *ROWS)}
    t = records["time_ns"] * 1e-9
    contacts = stretches(records, {"per": "contact"})
    assert len(contacts) == 2 and found["contacts"].value == 2 and found["contacts"].verdict == MET  # a bound itself is kept
    longest = max(contacts, key=lambda c: t[c[-1]] - t[c[0]])
    assert found["long"].value == pytest.approx(t[longest[-1]] - t[longest[0]]) and found["long"].time_s == t[longest[0]]
    assert found["work"].value == max(records["contact_work"][c[-1]] for c in contacts)
    assert abs(found["speed"].value) == max(abs(records["V_TA"][c[0] - 1, 0]) for c in contacts)
    assert found["late"].value == pytest.approx(np.sort(np.ceil(records["lateness_ns"] * 1e-3))[math.ceil(0.99 * len(records)) - 1])
    assert found["captured"].value == pytest.approx(records["capture_time"][-1] - records["first_contact_time"][-1])
    assert found["angle"].value == pytest.approx(math.degrees(0.1)) and found["angle"].unit == "deg"
    assert found["gap"].value == pytest.approx(1e3 * records["aux"][-1, 0]) and found["gap"].unit == "mm"
    assert found["complete"].verdict == found["retreat"].verdict == NOT_JUDGED


def test_what_has_to_come_and_does_not_is_violated():
    records = records_of(3)
    records["capture_time"] = -1.0
    found, = judged(records, {"name": "captured", "value": "captured_after_s", "below_s": 10.0})
    assert found.verdict == VIOLATED and found.margin is None and "not captured" in found.words


def test_live_nothing_is_violated_while_it_may_still_come():
    records = records_of(5, 100)
    records["phase"], records["F_T"] = PHASE["contact"], 0.0
    records["F_T"][60:90, 0] = 100.0
    row = {"name": "x", "channel": "F_T[0]", "above_n": 50.0, "within_s": 10.0, "for_s": 0.02}
    watch, verdicts = Watch(read([row], AUX)), []
    for i in range(100):
        watch.see(records[i : i + 1])
        verdicts.append(watch.results(final=False)[0].verdict)
    assert verdicts[0] == verdicts[59] == NOT_JUDGED and verdicts[-1] == MET and VIOLATED not in verdicts
    late = Watch(read([{**row, "within_s": 0.03}], AUX))
    late.see(records[:58])
    assert late.results(final=False)[0].verdict == VIOLATED  # its time is over


def test_what_is_no_number_is_violated():
    records = records_of(2)
    records["F_T"][200, 0] = np.nan
    found, = judged(records, {"name": "x", "channel": "F_T[0]", "below_n": 1e9})
    assert found.verdict == VIOLATED and found.value is None and found.time_s == records["time_ns"][200] * 1e-9


def test_ticks_that_were_not_seen_are_told():
    watch = Watch(read(ROWS[:1], AUX))
    watch.missing = 7
    watch.see(records_of(1))
    assert "7 ticks were not seen" in watch.results()[0].words


class LogStandIn:
    def __init__(self, records, text, end=()):
        self.records, self.end = records, dict(end)
        self.header = type("Header", (), {"aux": AUX, "configuration": {"configuration.toml": text}})


def test_of_log_reads_the_logs_own_and_what_it_is_given():
    records = records_of(4)
    log = LogStandIn(records, '[[requirement]]\nname = "peak"\nchannel = "F_T[0]"\nbelow_n = 1.0\nsource = "me"\n')
    found, = of_log(log)
    assert found.verdict == VIOLATED and found.value == pytest.approx(records["F_T"][:, 0].max()) and found.source == "me"
    assert [one.name for one in of_log(log, ROWS)] == [row["name"] for row in ROWS]
    kept = LogStandIn(records[::7], log.header.configuration["configuration.toml"], {"requirements": [found.as_dict()]})
    assert of_log(kept) == [found]  # a thinned log does not know better than the run
    assert of_log(LogStandIn(records, "")) == [] and of_log(LogStandIn(records, "no toml")) == []


@pytest.mark.parametrize(("row", "reported"), [
    ({"channel": "F_T[0]", "below_n_m": 5.0},
     "requirement[0].below_n_m: not in the unit of 'F_T[0]', value 5.0, limit below_n or below_kn, unit N"),
    ({"channel": "F_T[0]", "below": 5.0}, "limit below_n or below_kn"),
    ({"channel": "F_T[0]"}, "a bound"),
    ({"channel": "F_T[0]", "below_n": 5.0, "below_kn": 5.0}, "second bound"),
    ({"channel": "F_T[0]", "below_n": 5.0, "above_n": 6.0}, "never met"),
    ({"channel": "F_T[0]", "below_n": "5"}, "must be a number"),
    ({"channel": "F_T[0] + X_TA[0]", "below_n": 5.0}, "units N and m"),
    ({"channel": "F_T[0]", "below_n": 5.0, "phase": ["contct"]}, "did you mean 'contact'"),
    ({"channel": "F_T[0]", "below_n": 5.0, "phase": "contact"}, "list of phases"),
    ({"channel": "F_T[0]", "below_n": 5.0, "at": "capture", "within_s": 1.0}, "not with at"),
    ({"channel": "F_T[0]", "below_n": 5.0, "for_s": -1.0}, "within 0"),
    ({"channel": "F_T[0]", "value": "missed", "below": 5.0}, "exactly one"),
    ({"value": "capture_time", "below_s": 5.0}, "one of first_contact_time_s"),
    ({"value": "missed", "below": 5.0, "phase": ["contact"]}, "not with value"),
    ({"value": "late_p99", "below_m": 5.0}, "not in the unit of 'late_p99'"),
    ({"stl": "always F_T[0] < 5", "below_n": 5.0}, "not with stl"),
    ({"channel": "F_T[0]", "below_n": 5.0, "signals": {}}, "only with stl"),
    ({"channel": "F_T[0]", "below_n": 5.0, "within": 1.0}, "unknown key"),
    ({"channel": "F_T[0]", "below_n": 5.0, "at": "docking"}, "one of first_contact"),
])  # fmt: skip
def test_faults_name_key_value_and_limit(row, reported):
    found = faults_of([{"name": "x", **row}])
    assert len(found) == 1 and reported in found[0] and found[0].startswith("requirement[0]"), found


def test_a_channel_of_a_part_is_held_against_the_run():
    row = {"name": "x", "channel": "gapp", "below_mm": 5.0}
    assert faults_of([row]) == []  # perhaps a part has it
    with pytest.raises(ConfigurationError, match=r"t.toml: requirement\[0\].channel: no channel 'gapp', did you mean 'gap'"):
        read([row], AUX, "t.toml")
    with pytest.raises(ConfigurationError, match=r"requirement\[0\].below_n: not in the unit of 'gap'"):
        read([{"name": "x", "channel": "gap", "below_n": 5.0}], AUX)
    assert "used twice" in faults_of([row, row])[0]
    assert faults_of("x") and faults_of([3])
