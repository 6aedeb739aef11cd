"""A campaign file, and what each of its cases has: initial conditions, and whatever else is varied.

    [campaign]
    name = "idss"
    test = "docking.toml"                # the test that every case starts from; or, in its place,
    from = "runs/x@contact-1s"           # LOG@TIME of a logged run: all cases continue from this one state (docs/results.md)
    cases = 2000
    seed = 1
    sampling = "latin_hypercube"         # uniform, latin_hypercube, normal, corners, expert, saltelli
    chunk = 20                           # cases that one worker takes at a time
    worst = 5                            # worst runs that are run again with full logs
    set = { "guidance.contact_max_s" = 40.0 }
    round = { lateral_y_m = "lateral_z_m" }   # pairs that fill the ellipse in their rectangle: a miss in any direction

    [box]                                # keys of [initial_conditions]: [low, high]
    lateral_y_m = [-0.1, 0.1]

    [[vary]], [[correlation]]            # any other number of the test: see hil_server.campaign.variables
    [[requirement]]                      # what every case is to show, beside those of the test: see docs/requirements.md
    [rare]                               # the probability of a rare event: see hil_server.campaign.rare

uniform and latin_hypercube fill the box; normal is centred in it with the box at three standard deviations, cut there; corners are the
box's worst cases: every parameter at one of its ends, signs drawn; expert takes the cases that the key `expert` lists, a row a case, values
in the order of the box; saltelli is the design of SALib for first-order and total Sobol' indices, a number of cases that is a power of two
times two more than there are variables. A case is its number: the same number and seed give the same conditions on every machine.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hil_server.campaign import variables
from hil_server.campaign.case import Beginning
from hil_server.campaign.rare import Rare, read_rare
from hil_server.campaign.variables import Variable
from hil_server.config import TestConfig, extends, load_test, test_from_toml, toml_text
from hil_server.config.checks import Table, line, missing, must_be, unknown_key
from hil_server.config.files import named_file
from hil_server.config.loader import named_test
from hil_server.config.tables import INITIAL_CONDITIONS
from hil_server.errors import ConfigurationError
from hil_server.line.run_header import configuration
from hil_server.requirements import declaration
from hil_server.values import Document, Given
from rt_kernels.parameters import Parameter

SAMPLINGS = ("uniform", "latin_hypercube", "normal", "corners", "expert", "saltelli")
TABLES = ("campaign", "box", "vary", "correlation", "rare", "requirement")
CAMPAIGN = Table(
    (
        Parameter("name", "str", "-", "short name, shown in reports"),
        Parameter("description", "str", "-", "what it is", default=""),
        Parameter("source", "str", "-", "where the box comes from", default=""),
        Parameter("test", "str", "-", "test file that every case starts from; or `from`", default=""),
        Parameter("from", "str", "-", "LOG@TIME: tick of a logged run that every case continues from, instead of `test`", default=""),
        Parameter("cases", "int", "-", "number of cases", low=1, high=10_000_000),
        Parameter("seed", "int", "-", "seed of the sampling", default=1, low=0, high=2**31 - 1),
        Parameter("sampling", "str", "-", "how the box is filled", default="latin_hypercube", choices=SAMPLINGS),
        Parameter("expert", "rows", "-", "cases of the sampling 'expert': rows of values in the order of the box", default=()),
        Parameter("chunk", "int", "-", "cases that one worker takes at a time", default=20, low=1, high=1000),
        Parameter("worst", "int", "-", "worst runs that are run again with full logs", default=5, low=0, high=100),
        Parameter("set", "table", "-", "overrides of the test", default={}),
        Parameter("round", "table", "-", "pairs of keys of the box whose vector sum is limited, not each by itself", default={}),
    )
)
BOX_KEYS = {p.key: p for p in INITIAL_CONDITIONS if p.kind == "float" and p.key != "first_contact_penetration_m"}
# the smallest and the largest value of each key that varies
BOX = Table([replace(p, kind="floats", shape=2, default=None) for p in BOX_KEYS.values()])


@dataclass(frozen=True)
class Plan:
    """A checked campaign. base: the test with the campaign's overrides; keys: columns of what is varied, the box first; low, high: of the
    box, in their order; vary: what is varied beside it; R: correlation of the normal scores; base_values: what factors multiply; begin: the
    state that every case continues from, None: each from the start of the test."""

    name: str
    cases: int
    seed: int
    sampling: str
    chunk: int
    worst: int
    keys: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    base: TestConfig
    description: str = ""
    source: str = ""
    expert: tuple[tuple[float, ...], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    vary: tuple[Variable, ...] = ()
    R: np.ndarray | None = None
    base_values: Document = field(default_factory=dict)
    rare: Rare | None = None
    begin: Beginning | None = None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All that is varied, in the order of `keys`."""
        box = zip(self.keys, self.low, self.high, strict=False)
        return (*(variables.initial_condition(*end) for end in box), *self.vary)

    def settings(self, values: Sequence[float]) -> list[str]:
        """What `--set` would say for a case. values: in the order of `keys`."""
        return [item for v, x in zip(self.variables, values, strict=True) for item in v.settings(float(x), self.base_values)]

    @property
    def independent(self) -> bool:
        """Whether the variables are drawn independently of each other and of the outcome."""
        return self.R is None and not self.pairs and self.rare is None

    @property
    def identity(self) -> str:
        """16 hexadecimal digits of everything that decides a case's result: what resumes must have the same."""
        text = repr((self.cases, self.seed, self.sampling, self.keys, self.low, self.high, self.expert, self.pairs)) + self.base.as_toml()
        if self.vary or self.R is not None or self.rare is not None:
            text += repr((self.vary, None if self.R is None else self.R.tolist(), self.rare))
        if self.begin is not None:
            text += repr((self.begin.tick, self.begin.state))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def conditions(self) -> np.ndarray:
        """What is varied, of all cases, shape (cases, len(keys)), in the units of the keys; of a table of texts the place in it."""
        if self.sampling == "expert":
            return np.array(self.expert[: self.cases])
        return self.at(self._unit())

    def at(self, unit: np.ndarray) -> np.ndarray:
        """Values for points of the unit cube, (n, len(keys)) each."""
        unit = variables.correlated(unit, self.R)
        found: np.ndarray = np.column_stack([v.quantile(u) for v, u in zip(self.variables, unit.T, strict=True)])
        return found

    def _unit(self) -> np.ndarray:
        """The cases in the unit cube, (cases, len(keys)): the box first, so that a campaign without more is as it always was."""
        if self.sampling == "saltelli":
            from hil_server.campaign.sensitivity import design

            return design(self.keys, self.cases, self.seed)
        rng = np.random.default_rng(self.seed)
        d = len(self.low)
        unit = self._filled(rng, d)
        if self.sampling != "normal":
            for i, j in self._round():
                unit[:, i], unit[:, j] = disc(unit[:, i], unit[:, j])
        if not self.vary:
            return unit
        # a normal box says nothing of the others: they have distributions of their own
        return np.hstack([unit, self._filled(rng, len(self.vary), "latin_hypercube" if self.sampling == "normal" else self.sampling)])

    def _filled(self, rng: np.random.Generator, d: int, sampling: str = "") -> np.ndarray:
        sampling = sampling or self.sampling
        if sampling == "latin_hypercube":
            # a permutation of the strata for every parameter, a place drawn inside each
            strata = np.column_stack([rng.permutation(self.cases) for _ in range(d)]) if d else np.empty((self.cases, 0))
            found: np.ndarray = (strata + rng.random((self.cases, d))) / self.cases
            return found
        if sampling == "uniform":
            return rng.random((self.cases, d))
        if sampling == "normal":
            unit: np.ndarray = 0.5 + rng.normal(size=(self.cases, d)) / 6.0
            while np.any(outside := self._outside(unit)):
                unit[outside] = 0.5 + rng.normal(size=int(outside.sum())) / 6.0
            return unit
        return rng.integers(0, 2, (self.cases, d)).astype(float)

    def _round(self) -> list[tuple[int, int]]:
        return [(self.keys.index(a), self.keys.index(b)) for a, b in self.pairs]

    def _outside(self, unit: np.ndarray) -> np.ndarray:
        """Values beyond the box, and both of a pair beyond its ellipse."""
        outside = (unit < 0.0) | (unit > 1.0)
        for i, j in self._round():
            outside[:, [i, j]] |= (np.hypot(unit[:, i] - 0.5, unit[:, j] - 0.5) > 0.5)[:, None]
        return outside


def disc(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The unit square onto the disc in it, areas kept in proportion: squares about the centre become circles (Shirley and Chiu 1997)."""
    a, b = 2.0 * u - 1.0, 2.0 * v - 1.0
    wide = np.abs(a) > np.abs(b)
    r = np.where(wide, a, b)
    ratio = np.divide(np.where(wide, b, a), r, out=np.zeros_like(r), where=r != 0.0)
    angle = np.where(wide, np.pi / 4 * ratio, np.pi / 2 - np.pi / 4 * ratio)
    return 0.5 + 0.5 * r * np.cos(angle), 0.5 + 0.5 * r * np.sin(angle)


def load_plan(file: str | Path, overrides: tuple[str, ...] = (), cases: int | None = None) -> Plan:
    """Reads and checks a campaign file. Raises ConfigurationError with all faults."""
    file = named_file(file)
    document = extends.tables_of(file, "campaign")
    faults = [unknown_key(str(file), k, v, k, TABLES) for k, v in document.items() if k not in TABLES]
    head, box = document.get("campaign"), document.get("box", {} if document.get("vary") else None)
    faults += CAMPAIGN.faults(head, str(file), "campaign")
    faults += _box_faults(box, str(file)) if box != {} or not document.get("vary") else []
    vary = variables.read(document.get("vary"), str(file), faults)
    rare = read_rare(document.get("rare"), str(file), faults)
    demanded = document.get("requirement", [])
    faults += [f"{file}: {fault}" for fault in declaration.faults_of(demanded)]
    if faults:
        raise ConfigurationError(faults)
    assert isinstance(head, dict) and isinstance(box, dict)
    faults = [*_expert_faults(head, box, vary, cases, str(file)), *_round_faults(head, box, str(file))]
    names = (*box, *(v.name for v in vary))
    R = variables.correlations(document.get("correlation"), names, str(file), faults)
    if both := set(box) & {v.name for v in vary}:
        faults.append(line(str(file), "vary", "in the box, too", ", ".join(sorted(both)), limit="one of both", unit="-"))
    if faults:
        raise ConfigurationError(faults)
    head = CAMPAIGN.with_defaults(head)
    if not head["test"] and not head["from"]:
        raise ConfigurationError(missing(str(file), "campaign.test", "str", "a test file (or `from`: a tick of a logged run)"))
    wanted = head["cases"] if cases is None else cases
    if head["sampling"] == "saltelli":
        from hil_server.campaign.sensitivity import design_cases

        if R is not None or head["round"]:
            what = "correlation" if R is not None else "campaign.round"
            limit = "independent variables"
            raise ConfigurationError(line(str(file), what, "not with sampling 'saltelli'", "given", limit=limit, unit="-"))
        wanted = design_cases(wanted, len(names), str(file))
    if head["from"]:
        test, begin = _beginning(head, box, demanded, overrides, str(file))
    else:
        test, begin = _test(head, demanded, overrides, file), None
    base_values = variables.base_values(vary, test, str(file))
    if faults := variables.end_faults(vary, test, base_values, str(file)):
        raise ConfigurationError(faults)
    return Plan(
        name=head["name"],
        cases=wanted,
        seed=head["seed"],
        sampling=head["sampling"],
        chunk=head["chunk"],
        worst=head["worst"],
        keys=names,
        low=tuple(float(v[0]) for v in box.values()),
        high=tuple(float(v[1]) for v in box.values()),
        base=test,
        description=head["description"],
        source=head["source"],
        expert=tuple(tuple(map(float, row)) for row in head["expert"]),
        pairs=tuple(head["round"].items()),
        vary=vary,
        R=R,
        base_values=base_values,
        rare=rare,
        begin=begin,
    )


def _settings(head: Document) -> list[str]:
    """The campaign's overrides, as `--set` says them."""
    from hil_server.run.programme import _flat

    return [f"{key}={toml_text.value(value)}" for key, value in _flat(head["set"])]


def _test(head: Document, demanded: Sequence[Given], overrides: Sequence[str], file: Path) -> TestConfig:
    """The test that every case starts from. Raises ConfigurationError."""
    base = named_test(head["test"], file, "campaign.test")
    try:
        return load_test(base, [*_settings(head), *overrides], demanded)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: campaign: {fault}" for fault in error.faults) from None


def _beginning(head: Document, box: Document, demanded: Sequence[Given], overrides: Sequence[str],
               file: str) -> tuple[TestConfig, Beginning]:  # fmt: skip
    """The configuration of the logged run with the campaign's overrides and requirements, and the state that the cases continue from.
    Raises ConfigurationError, and what `hil_server.run.branch.resumed` raises."""
    from hil_server.run import branch

    if head["test"]:
        raise ConfigurationError(line(file, "campaign.from", "beside campaign.test", head["from"], limit="one of both", unit="-"))
    if box:
        allowed = "keys under [[vary]]: the logged run has begun with its own"
        raise ConfigurationError(line(file, "box", "initial conditions with campaign.from", ", ".join(box), limit=allowed, unit="-"))
    settings = (*_settings(head), *overrides)
    begin = branch.resumed(head["from"])
    if begin.checkpoint is None:
        limit = "a run whose parts give their states"
        raise ConfigurationError(line(file, "campaign.from", begin.lost[-1], head["from"], limit=limit, unit="-"))
    document = configuration(begin.log, settings).document
    mine = {row["name"] for row in demanded}
    document["requirement"] = [*(row for row in document.get("requirement", ()) if row["name"] not in mine), *demanded]
    config = test_from_toml(toml_text.dumps(document), label=head["from"])
    if settings:
        branch.changed(begin, settings, config)  # what cannot be changed there is refused now, not in every case
    state = hashlib.sha256(repr(sorted(begin.checkpoint.parts.items())).encode()).hexdigest()[:16]
    return config, Beginning(str(begin.log.path.absolute()), begin.tick, begin.time_s, settings, state)


def _box_faults(box: object, file: str) -> list[str]:
    if not isinstance(box, dict) or not box:
        return [missing(file, "box", "table", "at least one key of initial_conditions")]
    if faults := BOX.faults(box, file, "box"):
        return faults
    turned = {key: value for key, value in box.items() if value[0] > value[1]}
    return [line(file, f"box.{key}", "not in order", value, limit="[low, high]", unit=BOX_KEYS[key].unit) for key, value in turned.items()]


def _expert_faults(head: Document, box: Document, vary: Sequence[Variable], cases: int | None, file: str) -> list[str]:
    """Listed cases: as many as there are to be, each with a value in the box for every key."""
    rows, wanted = head.get("expert", []), head["cases"] if cases is None else cases
    if head.get("sampling") != "expert":
        return [line(file, "campaign.expert", "cases listed", len(rows), limit="only with sampling 'expert'", unit="-")] if rows else []
    if len(rows) < wanted:
        return [line(file, "campaign.expert", "too few cases listed", len(rows), limit=f"at least {wanted}, the number of cases", unit="-")]
    faults = [line(file, "vary", "not with sampling 'expert'", vary[0].name, limit="keys of the box", unit="-")] if vary else []
    for i, row in enumerate(rows):
        if len(row) != len(box):
            faults.append(must_be(file, f"campaign.expert[{i}]", f"{len(box)} numbers, one for each key of the box", row))
            continue
        for key, value, (low, high) in zip(box, row, box.values(), strict=True):
            if not low <= value <= high:
                limit = f"{low} ... {high}, the box"
                faults.append(line(file, f"campaign.expert[{i}]: {key}", "out of range", value, limit=limit, unit=BOX_KEYS[key].unit))
    return faults


def _round_faults(head: Document, box: Document, file: str) -> list[str]:
    pairs = head.get("round", {})
    named = [*pairs, *pairs.values()]
    faults = [unknown_key(file, f"campaign.round.{key}", key, str(key), box) for key in named if key not in box]
    twice = [key for i, key in enumerate(named) if key in named[:i]]
    return faults + [line(file, f"campaign.round.{key}", "in two pairs", key, limit="one pair", unit="-") for key in twice]
