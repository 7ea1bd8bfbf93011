"""The strength of an epsilon. Every format of a report takes its words from this one function.

The tiers follow Ponomareva et al. (2023, "How to DP-fy ML", section 5.2): strong up to 1, moderate up to 10, weak
above. They apply to lists only: an epsilon does not describe what accounts learn that receive texts
(`report.protection`).
"""

from __future__ import annotations

from rag_audit.report.model import Level

ORDER: tuple[Level, ...] = ("none", "weak", "moderate", "strong")
"""Every level of an established window, the weakest first."""


def tier(eps: float) -> Level:
    """The level of an epsilon. An infinite epsilon, or a value that is not a number, gives no protection."""
    if eps <= 1:
        return "strong"
    if eps <= 10:
        return "moderate"
    return "weak" if eps < float("inf") else "none"
