"""A provider's own run of attacks, shown with a verdict (docs/attacks.md, "Attack results in a report").

This module proves no result, and no check uses it. The verifier only adds two facts: the run belongs to this window's
policy, and the certified figures are recomputed, because the file's certified figures are the provider's claim. If a
lower bound exceeds a certified figure, the report warns prominently, since the accounting, the engine or the
measurement is then wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rag_audit._internal.canonical import read_bytes, sha256
from rag_audit._internal.errors import MeasurementError, SchemaError, SizeError
from rag_audit.mechanisms import Mechanism, accounting, named
from rag_audit.mechanisms.descriptions import description
from rag_audit.models.attacks import MAX_ATTACKS_BYTES, AttackedMechanism, AttackResult, AttackRun
from rag_audit.models.policy import Policy
from rag_audit.report.model import AttackPart, AttackPoint, AttackRow, Attacks
from rag_audit.verify.case import Case
from rag_audit.verify.inputs import Inputs, printable_name, reading

MAX_COUNTS = 64
"""Maximum different numbers of questions that get figures: a run of all attacks has about eight."""
LABEL = "the provider's own measurement; this verdict does not prove it, and no check depends on it"


def read_measured(path: Path, case: Case, inputs: Inputs) -> Attacks:
    """A provider's attacks.json for a window.

    :raises MeasurementError: the attacks are not on this window or its policy (exit code 3)
    :raises RagAuditError: the file cannot be read
    """
    ask = "ask the provider for the attacks.json of this window, or omit --attacks"
    with reading("attacks file", path, missing=ask, remedy=ask):
        run = AttackRun.load(path)
        digest = sha256(read_bytes(path, max_bytes=MAX_ATTACKS_BYTES)).hex()
        inputs.add("attacks", printable_name(path), digest)
        return measured_of(run, case.policy, case.header_digest, field=printable_name(path))


def uncertified(attacks: Attacks) -> Attacks:
    """A provider's own measurements without certified figures, for a window with no established figures."""
    parts = [
        part.model_copy(update={"rows": [row.model_copy(update={"points": [
            point.model_copy(update={"lists_auc_at_most": None, "eps_certified": None, "above": False})
            for point in row.points
        ]}) for row in part.rows]})
        for part in attacks.parts
    ]  # fmt: skip
    return attacks.model_copy(update={"parts": parts, "above_certified": []})


def measured_of(run: AttackRun, policy: Policy, header: str, *, field: str) -> Attacks:
    """A run, compared with a window.

    :param header: the digest of the window's entry 0
    :param field: the file's name
    :raises MeasurementError: the run is of another window, or of a mechanism that the policy does not have, or of other
        n, k_max or K
    :raises SchemaError: the run contradicts itself: two results are of one attack and cell, or a mechanism is not named
    """
    seen = {(r.attack, r.cell.mechanism, r.cell.defence, r.cell.accounts) for r in run.results}
    if len(seen) < len(run.results):
        raise SchemaError("a cell has the result of an attack twice", field=f"{field}.results",
                          expected=f"{len(run.results)} different ones", actual=len(seen))  # fmt: skip
    if run.header is not None:
        return _of_window(run, policy, header, field)
    if run.target != "engine":
        raise MeasurementError(
            "the attacks were on a service that has no link to this window",
            field=f"{field}.target",
            expected=f"engine, or a service of the window {policy.window}",
            actual=run.target,
        )
    unnamed = sorted({r.cell.mechanism for r in run.results} - run.mechanisms.keys())
    if unnamed:
        raise SchemaError(
            "a cell's mechanism has no parameters", field=f"{field}.mechanisms", expected=unnamed[0]
        )
    return _of_engine(run, policy, field)


def _of_window(run: AttackRun, policy: Policy, header: str, field: str) -> Attacks:
    """A run against the window's own service."""
    if run.header != header:
        raise MeasurementError("the attacks were on another window", field=f"{field}.header",
                               expected=header, actual=run.header)  # fmt: skip
    if run.tenant is None or policy.tenant(run.tenant) is None:
        raise MeasurementError("the attacks were on a tenant that the window does not have", field=f"{field}.tenant",
                               expected=", ".join(t.tenant for t in policy.tenants), actual=run.tenant)  # fmt: skip
    mechanism, certify = policy.mechanism_of(run.tenant), _Certified(run)
    allowed = [r for r in run.results if _allowed(r, policy)]
    rows = [
        AttackRow(
            attack=r.attack,
            queries=r.queries,
            without_noise=None,
            points=[certify.point(r, mechanism, [run.tenant])],
        )
        for r in allowed
    ]
    part = AttackPart(tenants=[run.tenant], mechanism=described(attacked(mechanism)), rows=rows)
    return _attacks(run, [part], certify, len(run.results) - len(allowed))


def _of_engine(run: AttackRun, policy: Policy, field: str) -> Attacks:
    """A run against the reference engine under the policy's mechanisms."""
    mechanisms = {t.tenant: policy.mechanism(t) for t in policy.tenants}
    had = {tenant: attacked(mechanism) for tenant, mechanism in mechanisms.items()}
    by_mechanism = {
        name: [t for t, m in had.items() if m == requested] for name, requested in run.mechanisms.items()
    }
    if not any(by_mechanism[r.cell.mechanism] for r in run.results):
        raise MeasurementError(
            "no attack was measured under a mechanism of the window's policy",
            field=f"{field}.results",
            expected="; ".join(f"{tenant}: {described(m)}" for tenant, m in had.items()),
            actual="; ".join(dict.fromkeys(described(run.mechanisms[r.cell.mechanism]) for r in run.results)),
            hint=f"rag-audit lab attack run all {_options(had, policy)}",
        )
    for name, value in {"n": policy.n, "k_max": policy.k_max, "top_k": policy.top_k}.items():
        if getattr(run, name) != value:
            raise MeasurementError("the attacks were measured under another policy", field=f"{field}.{name}",
                                   expected=value, actual=getattr(run, name),
                                   hint=f"rag-audit lab attack run all {_options(had, policy)}")  # fmt: skip
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
            # One account, and the largest coalition that was measured.
            chosen = [r for r in mine if r.cell.accounts == 1][:1] + [r for r in mine if r.cell.accounts > 1][
                -1:
            ]
            without = plain.get(attack)
            rows.append(
                AttackRow(
                    attack=attack,
                    queries=mine[0].queries,
                    without_noise=None if without is None else _interval(without),
                    points=[certify.point(r, mechanism, names) for r in chosen],
                )
            )
            shown += len(chosen)
        parts.append(AttackPart(tenants=names, mechanism=described(run.mechanisms[name]), rows=rows))
    bare = sum(r is plain.get(r.attack) and not by_mechanism[r.cell.mechanism] for r in run.results)
    return _attacks(run, parts, certify, len(run.results) - shown - bare)


def _attacks(run: AttackRun, parts: list[AttackPart], certify: _Certified, left_out: int) -> Attacks:
    return Attacks(
        label=LABEL,
        answered_by=run.generator,
        members=run.members,
        others=run.others,
        seed=run.seed,
        index=run.index,
        capacity=run.capacity,
        parts=parts,
        left_out=left_out,
        above_certified=certify.above,
    )


def _allowed(r: AttackResult, policy: Policy) -> bool:
    """Whether a window's policy allows a result's setting: no defence, and at most k_max accounts of n questions."""
    return r.cell.defence == "none" and r.cell.accounts <= policy.k_max and r.queries <= policy.n


class _Certified:
    """The certified figures for the asked numbers of queries; attacks use few different numbers."""

    def __init__(self, run: AttackRun) -> None:
        self._delta = run.delta
        self._known: dict[tuple[Mechanism, int], tuple[float, float | None]] = {}
        self.above: list[str] = []
        """each lower bound above the certified epsilon, in words"""

    def point(self, r: AttackResult, mechanism: Mechanism, tenants: list[str]) -> AttackPoint:
        """One result with its certified figures."""
        epsilon, ceiling = self._figures(mechanism, r.cell.accounts, r.queries)
        bounds, accounts = r.bounds, r.cell.accounts
        above = bounds is not None and bounds.lower > epsilon
        if bounds is not None and above:
            self.above.append(
                f"{r.attack} by {accounts} account{'s' * (accounts > 1)} on {', '.join(tenants)}: epsilon is at least"
                f" {bounds.lower:.4g}, and the certified epsilon is {epsilon:.4g}"
            )
        return AttackPoint(
            accounts=accounts,
            auc=_interval(r),
            lists_auc=None if bounds is None else accounting.text(bounds.auc),
            lists_auc_at_most=None if ceiling is None else accounting.text(ceiling),
            eps_at_least=None if bounds is None else accounting.text(bounds.lower),
            eps_certified=None if bounds is None else accounting.text(epsilon),
            above=above,
        )

    def _figures(self, mechanism: Mechanism, accounts: int, queries: int) -> tuple[float, float | None]:
        kind = description(mechanism.name)
        key = (mechanism, kind.figures_depend_on(mechanism, accounts, queries))
        if key not in self._known:
            if len(self._known) == MAX_COUNTS:
                raise SizeError("the attacks use too many different numbers of questions", field="attacks",
                                expected=f"at most {MAX_COUNTS}")  # fmt: skip
            self._known[key] = kind.certified(mechanism, accounts, queries, self._delta)
        return self._known[key]


def attacked(mechanism: Mechanism) -> AttackedMechanism:
    """A tenant's mechanism as a run of attacks writes its own."""
    parameters = description(mechanism.name).parameters(mechanism)
    return AttackedMechanism.parse({"kind": mechanism.name, **parameters}, field="mechanism")


def described(m: AttackedMechanism) -> str:
    """A mechanism in words."""
    return description(m.kind).described(m)


def _options(had: Mapping[str, AttackedMechanism], policy: Policy) -> str:
    """The options of a run of this policy, as far as the reference engine has its mechanisms."""
    options = ["none", *(description(m.kind).option(m) for m in had.values())]
    words = [f"--mechanism {option}" for option in options if option is not None]
    return " ".join([*dict.fromkeys(words), f"--k {policy.k_max} --n {policy.n} --top-k {policy.top_k}"])


def _interval(r: AttackResult) -> list[str]:
    """The AUC of members against others, with both ends of its 95 % interval."""
    return [f"{x:.4f}" for x in r.figures.auc]
