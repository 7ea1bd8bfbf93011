"""The requirements of trust.toml with the window's values, and the remaining distance to each limit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Literal

from rag_audit._internal.words import some
from rag_audit.mechanisms import named
from rag_audit.models.trust import Require
from rag_audit.proofs.description import keyed_titles
from rag_audit.report.claims import REQUIREMENTS, Passed
from rag_audit.report.model import Requirement, StatusName, TenantReport, Vouching
from rag_audit.verify.case import Check, Status

Kind = Literal["at-most", "at-least", "level"]

WORDS: Mapping[str, tuple[Kind, str]] = {
    "mechanisms": ("level", "the accepted mechanisms"),
    "max_epsilon": ("at-most", "epsilon for k_max accounts"),
    "max_exclusion_factor": (
        "at-most",
        "the maximum factor for the likelihood of a document's absence",
    ),
    "max_exposure": ("at-most", "documents that k_max accounts can read"),
    "max_delta": ("at-most", "the delta of the stated epsilon"),
    "min_k_max": ("at-least", "colluding accounts that the bound covers"),
    "max_theta": ("at-most", "the minimum similarity of two accounts' queries in one coalition"),
    "min_tau": ("at-least", "the span of the comparison of queries"),
    "max_K_share": ("at-most", "the share of a tenant's positions in one answer"),
    "max_score_hi": ("at-most", "the upper end of the score window"),
    "min_score_width": ("at-least", "the width of the score window"),
    "min_keep": ("at-least", "the sampled share of positions"),
    "max_abandoned": ("at-most", "windows abandoned since the last complete one"),
    "max_empty": ("at-most", "windows without a query since the last complete one"),
    "min_receipts": ("at-least", "receipts from accounts that trust.toml lists"),
    "query_embedding": ("level", "evidence that a query's vector comes from its text"),
    "document_embedding": ("level", "evidence that a document's vector comes from its text"),
    "coalition": ("level", "evidence for the estimate of repeated questions"),
    "challenge": ("level", "the party that drew the records to prove"),
    "setup": ("level", f"the origin of the keys of {keyed_titles()} proofs"),
    "quorum": ("at-least", "witnesses that cosigned the header, and the end"),
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
            limit = _limit(require, name, check)
            result.append(
                Requirement(
                    name=name,
                    check=check.id,
                    words=words,
                    kind=kind,
                    limit=limit,
                    actual=check.actual,
                    outcome=_outcome(check.status, name, passed),
                    scope=_scope(name, check.actual, tenants, eps),
                    used=_used(kind, limit, check.actual),
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


def _scope(name: str, actual: str, tenants: list[TenantReport], eps: str | None) -> str | None:
    """The tenants that a limit applies to, if not every tenant (docs/protocol.md, "Checks")."""
    if name == "max_epsilon" and actual != eps:
        inside = [t.tenant for t in tenants if named(t.mechanism).limit == name]
        reason = "no epsilon bounds what answers of"
    elif name == "max_exclusion_factor":
        inside = [t.tenant for t in tenants if named(t.mechanism).limit == name]
        return _exclusion_scope(inside, [t for t in tenants if t.tenant not in inside])
    else:
        return None
    outside = [t.tenant for t in tenants if t.tenant not in inside]
    if not outside or not inside:
        return None
    rest = f"{reason} {some(outside)}" + (" show" if name == "max_epsilon" else "")
    return f"only {some(inside)}; {rest}"


def _exclusion_scope(inside: list[str], outside: list[TenantReport]) -> str | None:
    """The tenants without noise, and the other tenants' replacement for the limit."""
    if not inside or not outside:
        return None
    rest = [
        f"{t.tenant}, which has {t.mechanism}"
        + ("" if t.exclusion_factor is None else f" and a factor of {t.exclusion_factor}")
        for t in outside
    ]
    return f"only {some(inside)}; the limit is not applied to {some(rest)}"


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
