"""A provider's own run of attacks beside a verdict (docs/attacks.md, "Beside a verdict").

Nothing here is proved, and no check looks at it. What a verifier adds is that the run is of this window's policy, and
the certified figures, which are computed again: those in the file are the provider's words. A lower bound above one of
them is said loudly, since then the accounting, the engine or the measurement is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from rag_audit._internal.canonical import read_bytes, sha256
from rag_audit._internal.errors import MeasurementError, SchemaError, SizeError
from rag_audit.mechanisms import Mechanism, accounting, named
from rag_audit.models.attacks import MAX_ATTACKS_BYTES, AttackedMechanism, AttackResult, AttackRun
from rag_audit.models.policy import Policy
from rag_audit.verify.case import Case
from rag_audit.verify.inputs import Inputs, printable_name, reading

MAX_COUNTS = 64
"""Different numbers of questions for which figures are computed: a run of all attacks has about eight."""
LABEL = "the provider's own measurement, which this verdict does not prove and no check rests on"


class PointJson(TypedDict):
    """`Point` for programs; reals are decimal strings, and null what there is none of."""

    accounts: int
    auc: list[str]
    lists_auc: str | None
    lists_auc_at_most: str | None
    eps_at_least: str | None
    eps_certified: str | None


@dataclass(frozen=True)
class Point:
    """An attack under the policy's mechanism, by so many accounts.

    :param auc: of members against others, with both ends of its 95 % interval
    :param lists_auc: of the same test on lists alone, which `ceiling` bounds
    :param lower: the lower bound on epsilon from lists
    :param certified: epsilon of the queries that were asked, by this verifier's accountant
    """

    accounts: int
    auc: tuple[float, float, float]
    lists_auc: float | None
    ceiling: float | None
    lower: float | None
    certified: float | None

    @property
    def above(self) -> bool:
        """Whether the lower bound lies above the certified epsilon."""
        return self.lower is not None and self.certified is not None and self.lower > self.certified

    def as_json(self) -> PointJson:
        """JSON form."""
        return {
            "accounts": self.accounts,
            "auc": [f"{x:.4f}" for x in self.auc],
            "lists_auc": _text(self.lists_auc),
            "lists_auc_at_most": _text(self.ceiling),
            "eps_at_least": _text(self.lower),
            "eps_certified": _text(self.certified),
        }


@dataclass(frozen=True)
class Row:
    """One attack: without noise, by one account, and by the largest coalition that was measured."""

    attack: str
    queries: int
    without: tuple[float, float, float] | None
    alone: Point | None
    coalition: Point | None

    @property
    def points(self) -> list[Point]:
        """Both points, as far as they were measured."""
        return [p for p in (self.alone, self.coalition) if p is not None]


@dataclass(frozen=True)
class Part:
    """The attacks on tenants that have one mechanism."""

    tenants: tuple[str, ...]
    mechanism: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Measured:
    """A run of attacks that is of a window's policy.

    :param left_out: results of other mechanisms, of defences that no window has, or of more accounts or questions than
        the policy allows
    """

    run: AttackRun
    parts: tuple[Part, ...]
    left_out: int

    @property
    def above(self) -> list[str]:
        """Each lower bound that lies above the certified epsilon, in words."""
        return [
            f"{row.attack} by {p.accounts} account{'s' * (p.accounts > 1)} on {', '.join(part.tenants)}:"
            f" epsilon is at least {p.lower:.4g}, and certified is {p.certified:.4g}"
            for part in self.parts
            for row in part.rows
            for p in row.points
            if p.above
        ]


def read_measured(path: Path, case: Case, inputs: Inputs) -> Measured:
    """A provider's attacks.json beside a window.

    :raises MeasurementError: the attacks are not on this window or its policy (exit code 3)
    :raises RagAuditError: the file cannot be read
    """
    ask = "ask the provider for the attacks.json of this window, or leave out --attacks"
    with reading("attacks file", path, missing=ask, remedy=ask):
        run = AttackRun.load(path)
        digest = sha256(read_bytes(path, max_bytes=MAX_ATTACKS_BYTES)).hex()
        inputs.add("attacks", printable_name(path), digest)
        return measured_of(run, case.policy, case.opening_digest, field=printable_name(path))


def uncertified(measured: Measured) -> Measured:
    """A provider's own measurements without the certified figures beside them, of a window that is not established."""

    def alone(point: Point | None) -> Point | None:
        return None if point is None else replace(point, ceiling=None, certified=None)

    def of_part(part: Part) -> Part:
        rows = (replace(row, alone=alone(row.alone), coalition=alone(row.coalition)) for row in part.rows)
        return replace(part, rows=tuple(rows))

    return replace(measured, parts=tuple(map(of_part, measured.parts)))


def measured_of(run: AttackRun, policy: Policy, opening: str, *, field: str) -> Measured:
    """A run beside a window.

    :param opening: the digest of the window's entry 0
    :param field: the file's name
    :raises MeasurementError: the run is of another window, or of no mechanism that the policy has, or of other n, k_max
        or K
    :raises SchemaError: the run contradicts itself: two results are of one attack and cell, or a mechanism is not named
    """
    seen = {(r.attack, r.cell.mechanism, r.cell.defence, r.cell.accounts) for r in run.results}
    if len(seen) < len(run.results):
        raise SchemaError("an attack's result in a cell is there twice", field=f"{field}.results",
                          expected=f"{len(run.results)} different ones", found=len(seen))  # fmt: skip
    if run.opening is not None:
        return _of_window(run, policy, opening, field)
    if run.target != "engine":
        raise MeasurementError(
            "the attacks were on a service of which nothing ties it to this window",
            field=f"{field}.target",
            expected=f"engine, or a service of the window {policy.window}",
            found=run.target,
        )
    unnamed = sorted({r.cell.mechanism for r in run.results} - run.mechanisms.keys())
    if unnamed:
        raise SchemaError(
            "a cell's mechanism has no parameters", field=f"{field}.mechanisms", expected=unnamed[0]
        )
    return _of_engine(run, policy, field)


def _of_window(run: AttackRun, policy: Policy, opening: str, field: str) -> Measured:
    """A run against the window's own service."""
    if run.opening != opening:
        raise MeasurementError("the attacks were on another window", field=f"{field}.opening",
                               expected=opening, found=run.opening)  # fmt: skip
    if run.tenant is None or policy.tenant(run.tenant) is None:
        raise MeasurementError("the attacks were on a tenant that the window does not have", field=f"{field}.tenant",
                               expected=", ".join(t.tenant for t in policy.tenants), found=run.tenant)  # fmt: skip
    mechanism, certify = policy.mechanism_of(run.tenant), _Certified(run)
    allowed = [r for r in run.results if _allowed(r, policy)]
    rows = [
        Row(r.attack, r.queries, None, point if r.cell.accounts == 1 else None, None if r.cell.accounts == 1 else point)
        for r in allowed
        for point in [certify.point(r, mechanism)]
    ]  # fmt: skip
    part = Part((run.tenant,), described(attacked(mechanism)), tuple(rows))
    return Measured(run, (part,), len(run.results) - len(allowed))


def _of_engine(run: AttackRun, policy: Policy, field: str) -> Measured:
    """A run against the reference engine under the policy's mechanisms."""
    mechanisms = {t.tenant: policy.mechanism(t) for t in policy.tenants}
    had = {tenant: attacked(mechanism) for tenant, mechanism in mechanisms.items()}
    by_mechanism = {
        name: tuple(t for t, m in had.items() if m == asked) for name, asked in run.mechanisms.items()
    }
    if not any(by_mechanism[r.cell.mechanism] for r in run.results):
        raise MeasurementError(
            "no attack was measured under a mechanism of the window's policy",
            field=f"{field}.results",
            expected="; ".join(f"{tenant}: {described(m)}" for tenant, m in had.items()),
            found="; ".join(dict.fromkeys(described(run.mechanisms[r.cell.mechanism]) for r in run.results)),
            hint=f"rag-audit attack run all {_options(had, policy)}",
        )
    ranked = any(mechanisms[name].ranked for names in by_mechanism.values() for name in names)
    wanted = {"n": policy.n, "k_max": policy.k_max, **({"top_k": policy.top_k} if ranked else {})}
    for name, value in wanted.items():
        if getattr(run, name) != value:
            raise MeasurementError("the attacks were measured under another policy", field=f"{field}.{name}",
                                   expected=value, found=getattr(run, name),
                                   hint=f"rag-audit attack run all {_options(had, policy)}")  # fmt: skip
    certify, parts, shown = _Certified(run), [], 0
    plain = {
        r.attack: r for r in run.results
        if not named(run.mechanisms[r.cell.mechanism].kind).protects
        and r.cell.defence == "none" and r.cell.accounts == 1
    }  # fmt: skip
    for name, names in by_mechanism.items():
        results = [r for r in run.results if r.cell.mechanism == name and _allowed(r, policy)]
        if not names or not results:
            continue
        mechanism, rows = mechanisms[names[0]], []
        for attack in dict.fromkeys(r.attack for r in results):
            mine = sorted((r for r in results if r.attack == attack), key=lambda r: r.cell.accounts)
            alone = next((r for r in mine if r.cell.accounts == 1), None)
            together = mine[-1] if mine[-1].cell.accounts > 1 else None
            without = plain.get(attack)
            rows.append(
                Row(
                    attack,
                    mine[0].queries,
                    None if without is None else _interval(without),
                    None if alone is None else certify.point(alone, mechanism),
                    None if together is None else certify.point(together, mechanism),
                )
            )
            shown += (alone is not None) + (together is not None)
        parts.append(Part(names, described(run.mechanisms[name]), tuple(rows)))
    bare = sum(r is plain.get(r.attack) and not by_mechanism[r.cell.mechanism] for r in run.results)
    return Measured(run, tuple(parts), len(run.results) - shown - bare)


def _allowed(r: AttackResult, policy: Policy) -> bool:
    """Whether a result is of what a window answers: no defence, and at most k_max accounts of n questions."""
    return r.cell.defence == "none" and r.cell.accounts <= policy.k_max and r.queries <= policy.n


class _Certified:
    """What is certified of the queries that were asked; attacks ask few different numbers of them."""

    def __init__(self, run: AttackRun) -> None:
        self._delta = run.delta
        self._known: dict[tuple[Mechanism, int], tuple[float, float | None]] = {}

    def point(self, r: AttackResult, mechanism: Mechanism) -> Point:
        """One result beside what is certified."""
        epsilon, ceiling = self._figures(mechanism, r.cell.accounts, r.queries)
        return Point(
            r.cell.accounts,
            _interval(r),
            None if r.bounds is None else r.bounds.auc,
            ceiling,
            None if r.bounds is None else r.bounds.lower,
            epsilon if r.bounds is not None else None,
        )

    def _figures(self, mechanism: Mechanism, accounts: int, queries: int) -> tuple[float, float | None]:
        key = (mechanism, mechanism.figures_depend_on(accounts, queries))
        if key not in self._known:
            if len(self._known) == MAX_COUNTS:
                raise SizeError("the attacks ask too many different numbers of questions", field="attacks",
                                expected=f"at most {MAX_COUNTS}")  # fmt: skip
            self._known[key] = mechanism.certified(accounts, queries, self._delta)
        return self._known[key]


def attacked(mechanism: Mechanism) -> AttackedMechanism:
    """A tenant's mechanism as a run of attacks writes its own."""
    return AttackedMechanism.parse({"kind": mechanism.name, **mechanism.parameters()}, field="mechanism")


def described(m: AttackedMechanism) -> str:
    """A mechanism in words."""
    return named(m.kind).described(m)


def _options(had: Mapping[str, AttackedMechanism], policy: Policy) -> str:
    """The options of a run of this policy, as far as the reference engine has its mechanisms."""
    options = ["none", *(named(m.kind).option(m) for m in had.values())]
    words = [f"--mechanism {option}" for option in options if option is not None]
    return " ".join([*dict.fromkeys(words), f"--k {policy.k_max} --n {policy.n} --top-k {policy.top_k}"])


def _interval(r: AttackResult) -> tuple[float, float, float]:
    value, low, high = r.figures.auc
    return value, low, high


def _text(value: float | None) -> str | None:
    return None if value is None else accounting.text(value)
