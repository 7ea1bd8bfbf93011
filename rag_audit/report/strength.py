"""The strength of a window's protection. Every format of a report takes its words from this one function.

The tiers of epsilon follow Ponomareva et al. (2023, "How to DP-fy ML", section 5.2): strong up to 1, moderate up to 10,
weak above. A window is as strong as the weakest of its tenants.
"""

from __future__ import annotations

from rag_audit._internal.words import some
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.model import Level, Protection, Standing, TenantReport
from rag_audit.verify.verdict import OutcomeName

ORDER: tuple[Level, ...] = ("none", "weak", "moderate", "strong")
"""Every level of an established window, the weakest first."""
_SHOWN = 4


def tier(eps: float) -> Level:
    """The level of an epsilon. An infinite epsilon, or a value that is not a number, gives no protection."""
    if eps <= 1:
        return "strong"
    if eps <= 10:
        return "moderate"
    return "weak" if eps < float("inf") else "none"


def protection_of(
    outcome: OutcomeName,
    standing: Standing,
    eps: str | None,
    tenants: list[TenantReport],
    *,
    drawn: int | None,
    records: int,
    beta: str | None,
) -> Protection:
    """The strength of a window's protection, with its reasons.

    :param outcome: the first word of the verdict line
    :param eps: epsilon of the window over all outcomes and tenants; None where no check could compute it
    :param drawn: in sampled mode, the number of records that needed a proof; None in full mode
    :param records: answers of the window
    :param beta: in sampled mode, the share of answers that may be false
    """
    if standing == "not-established":
        return Protection(
            level="not-established",
            reasons=["the evidence for a privacy figure is incomplete"],
            warning=None,
        )
    by_reason: dict[tuple[Level, str], list[str]] = {}
    reasons: list[tuple[Level, str]]
    for tenant in tenants:
        by_reason.setdefault(_of_tenant(tenant), []).append(tenant.tenant)
    reasons = [(level, f"{some(names)}: {reason}") for (level, reason), names in by_reason.items()]
    if eps is None:
        reasons.append(("none", "no epsilon was computed"))
    if standing == "if-conforming" and (drawn is None or drawn < records):
        share = "a share of them" if beta is None else f"a share {beta} of them"
        reasons.append(("weak", f"some answers have no proof: up to {share} may have no protection"))
    level: Level = min((level for level, _ in reasons), key=ORDER.index, default="none")
    deciding = [reason for own, reason in reasons if own == level] or ["the window has no tenant"]
    weak = outcome.startswith("PASS") and level in ("none", "weak")
    return Protection(level=level, reasons=deciding, warning=_warning(deciding) if weak else None)


def protection_words(protection: Protection) -> str:
    """The protection of a window in one sentence, followed by the warning if there is one."""
    if protection.warning is not None:
        return f"Protection: {protection.level}. {protection.warning}"
    more = len(protection.reasons) - _SHOWN
    rest = f"; and {more:,} more reasons" if more > 0 else ""
    level = protection.level.replace("-", " ")
    return f"Protection: {level} ({'; '.join(protection.reasons[:_SHOWN])}{rest})."


def _of_tenant(tenant: TenantReport) -> tuple[Level, str]:
    """The level of one tenant's protection, and why."""
    kind = description(tenant.mechanism)
    if not kind.mechanism.protects:
        return (
            "none",
            "no mechanism protects the documents, and the window only shows that answers are correct",
        )
    if tenant.eps is None:
        return "none", "no epsilon was computed"
    level = tier(float(tenant.eps))
    if level != "none":
        where = {"strong": "at most 1", "moderate": "above 1 and at most 10", "weak": "above 10"}[level]
        return level, f"epsilon {tenant.eps} is {where}"
    if (bounded := kind.without_epsilon(tenant)) is not None:
        return "weak", bounded
    return "none", "no epsilon bounds the information in answers"


def _warning(reasons: list[str]) -> str:
    more = f"; and {len(reasons) - _SHOWN:,} more reasons" if len(reasons) > _SHOWN else ""
    return (
        "A pass shows that the provider followed its policy, and that the policy meets the reader's limits. It does not"
        f" show that this protects much ({'; '.join(reasons[:_SHOWN])}{more})."
    )
