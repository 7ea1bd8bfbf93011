"""The requirements of trust.toml with the window's values, and the remaining distance to each limit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Literal

from rag_audit._internal.words import PLAIN, Say, marked, some_of
from rag_audit.mechanisms import named
from rag_audit.models.trust import Require
from rag_audit.report.claims import REQUIREMENTS, Passed
from rag_audit.report.model import Requirement, StatusName, TenantReport, Vouching
from rag_audit.verify.case import Check, Status

Kind = Literal["at-most", "at-least", "level"]

WORDS: Mapping[str, tuple[Kind, str]] = {
    "mechanisms": ("level", marked("the accepted mechanisms")),
    "max_epsilon": (
        "at-most",
        marked("epsilon for the largest coalition that the policy covers (k_max accounts)"),
    ),
    "max_exclusion_factor": (
        "at-most",
        marked("the maximum factor for the likelihood of a document's absence"),
    ),
    "max_exposure": ("at-most", marked("documents that k_max accounts can read")),
    "max_fresh_share": ("at-most", marked("the share of rows of a document table that each window replaces")),
    "max_delta": ("at-most", marked("the delta that the policy states; mechanisms without noise use none")),
    "min_k_max": ("at-least", marked("colluding accounts that the bound covers")),
    "max_theta": (
        "at-most",
        marked("the similarity from which on two questions count as one repeated question"),
    ),
    "min_tau": (
        "at-least",
        marked("the time or number of questions within which the estimate compares questions"),
    ),
    "max_K_share": ("at-most", marked("the share of a tenant's positions in one answer")),
    "max_score_hi": (
        "at-most",
        marked(
            "the score that counts as a full match: the upper end of the score window, or the threshold of pooled"
            " listing. Above all scores, only chance would select documents"
        ),
    ),
    "min_score_width": (
        "at-least",
        marked(
            "the width of the score window in units of raw scores: a score outside of it counts as the nearer end, so"
            " in a narrow window better and worse matches count alike"
        ),
    ),
    "min_keep": ("at-least", marked("the sampled share of positions")),
    "max_abandoned": ("at-most", marked("windows abandoned since the last complete one")),
    "max_empty": ("at-most", marked("windows without a query since the last complete one")),
    "min_receipts": ("at-least", marked("receipts from accounts that trust.toml calls independent")),
    "query_embedding": ("level", marked("evidence that a query's vector comes from its text")),
    "document_embedding": ("level", marked("evidence that a document's vector comes from its text")),
    "coalition": ("level", marked("evidence for the estimate of repeated questions")),
    "challenge": ("level", marked("the party that drew the records to prove")),
    "setup": ("level", marked("the origin of the keys of proofs")),
    "quorum": ("at-least", marked("witnesses that cosigned the header, and the end")),
}
"""Each requirement in words, in the order of a report."""
CHECKS = {"min_receipts": "receipt.independent", "quorum": "header.quorum"}
"""The checks of requirements that are not named `trust.<name>`."""


def requirements_of(
    require: Require,
    checks: Mapping[str, Check],
    vouching: Vouching,
    passed: Passed,
    tenants: list[TenantReport],
    eps: str | None,
    *,
    established: bool,
) -> list[Requirement]:
    """The requirements that the window was checked against.

    A requirement counts as met only if every check passed that its finding depends on (`claims.REQUIREMENTS`).

    :param checks: the checks by id
    :param eps: epsilon of the whole window
    :param established: whether the window's figures are established; if not, no requirement counts as met
    """
    result = []
    for name, (kind, words) in WORDS.items():
        check = checks.get(CHECKS.get(name, f"trust.{name}"))
        if name == "quorum":
            result.append(_quorum(checks, vouching, words, passed))
        elif check is not None:
            limit, actual = _limit(require, name, check), check.actual
            if (
                name == "min_receipts"
            ):  # the check of a pilot adds the number of independent accounts' receipts
                actual = actual.partition(" ")[0]
            result.append(
                Requirement(
                    name=name,
                    check=check.id,
                    words=words,
                    kind=kind,
                    limit=limit,
                    actual=actual,
                    outcome=_outcome(check.status, name, passed),
                    scope=pilot_scope(PLAIN, name, vouching) or scope_of(PLAIN, name, actual, tenants, eps),
                    used=_used(kind, limit, actual),
                )
            )
    if established:
        return result
    unproven: StatusName = Status.UNPROVEN.value
    return [r.model_copy(update={"outcome": unproven}) if r.outcome == "pass" else r for r in result]


def _outcome(status: Status, name: str, passed: Passed) -> StatusName:
    """The outcome of a requirement: met only on findings that are established."""
    held = name not in REQUIREMENTS or passed.holds(REQUIREMENTS[name])
    return Status.UNPROVEN.value if status is Status.PASS and not held else status.value


def pilot_scope(say: Say, name: str, vouching: Vouching) -> str | None:
    """The remark that a pilot meets the limit for receipts with accounts of its provider."""
    if name != "min_receipts" or not vouching.pilot or not vouching.accounts_dependent:
        return None
    return say.text("in this pilot, receipts of accounts that are not independent of the provider count too")


def scope_of(say: Say, name: str, actual: str, tenants: list[TenantReport], eps: str | None) -> str | None:
    """The tenants that a limit applies to, if not every tenant (docs/protocol.md, "Checks")."""
    absence = name == "max_exclusion_factor"
    kinds = {t.tenant: named(t.mechanism) for t in tenants}
    inside = [
        tenant for tenant, kind in kinds.items() if kind.limit == name or (absence and kind.limits_absence)
    ]
    outside = [t for t in tenants if t.tenant not in inside]
    if not inside or not outside:
        return None
    if name == "max_epsilon" and actual != eps:
        return say.text(
            "only %(inside)s; no epsilon bounds what answers of %(outside)s show",
            inside=some_of(say, inside),
            outside=some_of(say, [t.tenant for t in outside]),
        )
    if name == "max_exclusion_factor":
        rest = [
            say.text("%(tenant)s, which has %(mechanism)s", tenant=t.tenant, mechanism=t.mechanism)
            if t.exclusion_factor is None
            else say.text(
                "%(tenant)s, which has %(mechanism)s and a factor of %(factor)s",
                tenant=t.tenant,
                mechanism=t.mechanism,
                factor=say.number(t.exclusion_factor),
            )
            for t in outside
        ]
        return say.text(
            "only %(inside)s; the limit is not applied to %(outside)s",
            inside=some_of(say, inside),
            outside=some_of(say, rest),
        )
    return None


def _quorum(checks: Mapping[str, Check], vouching: Vouching, words: str, passed: Passed) -> Requirement:
    """The quorum of both ends, as the worse of them has it."""
    signed = min(sum(w.header for w in vouching.witnesses), sum(w.end for w in vouching.witnesses))
    parts = [checks[name] for name in ("header.quorum", "ledger.quorum") if name in checks]
    worse = next((c for c in parts if c.status.value != "pass"), parts[0] if parts else None)
    limit = str(vouching.quorum)
    return Requirement(
        name="quorum",
        check="header.quorum" if worse is None else worse.id,
        words=words,
        kind="at-least",
        limit=limit,
        actual=str(signed),
        # Without the provider's signature there is no text that witnesses could have cosigned.
        outcome="fail" if len(parts) < 2 or worse is None else _outcome(worse.status, "quorum", passed),
        scope=None,
        used=_used("at-least", limit, str(signed)),
    )


def _limit(require: Require, name: str, check: Check) -> str | None:
    if name == "setup":
        return (
            "keys of one party are allowed" if require.allow_unsafe_setup else "a ceremony, or no keys needed"
        )
    value = getattr(require, name)
    if isinstance(value, list):
        return ", ".join(value)
    if name == "min_tau" and value == 0:
        return "the whole window"
    return None if value is None else str(value)


def _used(kind: Kind, limit: str | None, actual: str) -> str | None:
    """The used share of a limit, if both are numbers and the limit is not 0."""
    try:
        bound, value = Decimal(limit or "-"), Decimal(actual)
    except InvalidOperation:
        return None
    divisor = value if kind == "at-least" else bound
    if kind == "level" or divisor == 0 or not bound.is_finite():
        return None
    share = bound / value if kind == "at-least" else value / bound
    return "inf" if not share.is_finite() else f"{share:.4g}".lower()


def nearest(requirements: list[Requirement]) -> list[Requirement]:
    """The requirements that have a number, the one closest to its limit first."""
    ranked = [r for r in requirements if r.used is not None]
    return sorted(ranked, key=lambda r: -Decimal(r.used or "0"))
