"""What a verdict leaves out of a window whose figures are not established: every privacy figure, wherever it stands.

The figures are computed from the policy, so a window that keeps to nothing has them too. A reader takes a number for
a result, so a verdict of FAIL, UNDECIDED or UNPROVEN has no such number: not among its figures, not in what a check
found, not beside a tenant, and not beside a provider's own measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from rag_audit.mechanisms.accounting.figures import TenantFigures
from rag_audit.verify.case import Check, Status
from rag_audit.verify.facts import Facts
from rag_audit.verify.figures import Figures
from rag_audit.verify.measured import Measured, Point

WITHHELD = "no figure is shown: the figures of this window are not established"
QUOTING = frozenset({"bound.computed", "trust.max_epsilon", "trust.max_odds_unlisted"})
"""The checks whose findings quote a privacy figure."""


def without_figures(figures: Figures) -> Figures:
    """The figures of a verdict without those that say how private the window is."""
    made: Figures = figures.copy()
    for name in ("bounds", "eps_audit", "eps_audit_by", "eps_one_account", "eps_all_accounts", "eps_realised",
                 "membership", "odds_unlisted", "odds_unlisted_all_accounts", "positions_per_document", "by_chance",
                 "listable"):  # fmt: skip
        made.pop(name, None)  # type: ignore[misc]  # a TypedDict's key is a literal to the type checker
    if "tenants" in made:
        kinds = {tenant: {"mechanism": part["mechanism"]} for tenant, part in made["tenants"].items()}
        made["tenants"] = cast("dict[str, TenantFigures]", kinds)
    return made


def without_findings(checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks, those that quote a figure without it. A check that failed shows why, which is no figure."""
    return tuple(
        replace(c, found=WITHHELD) if c.id in QUOTING and c.status in _QUOTED and c.found != "unknown" else c
        for c in checks
    )


_QUOTED = (Status.PASS, Status.UNMET, Status.UNPROVEN)


def facts_without(facts: Facts) -> Facts:
    """The facts with tenants that have no figure."""
    none = dict.fromkeys(
        ("eps", "odds_unlisted", "odds_unlisted_all_accounts", "chance_listed", "positions_listed")
    )
    return replace(facts, tenants=[tenant.model_copy(update=none) for tenant in facts.tenants], policies=[])


def uncertified(measured: Measured) -> Measured:
    """A provider's own measurements without the certified figures beside them."""

    def alone(point: Point | None) -> Point | None:
        return None if point is None else replace(point, ceiling=None, certified=None)

    return replace(
        measured,
        parts=tuple(
            replace(
                part,
                rows=tuple(
                    replace(row, alone=alone(row.alone), coalition=alone(row.coalition)) for row in part.rows
                ),
            )
            for part in measured.parts
        ),
    )
