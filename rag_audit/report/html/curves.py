"""The data of the page's charts: the accountant's figures that a verdict lacks, computed from a report's parameters.

All values follow from the policy without other inputs. Only the verdict states whether this window followed its policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rag_audit._internal.errors import RagAuditError
from rag_audit.mechanisms.descriptions import Description, description
from rag_audit.mechanisms.descriptions.base import Ceiling
from rag_audit.report.model import Report, TenantReport

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, *(i / 20 for i in range(2, 20)), 0.97, 0.99)
"""False-positive rates of the computed points of a curve."""
T = TypeVar("T")
MAX_POINTS = 9
MANY_QUERIES = 1_000_000
"""Minimum number of compositions of a curve with only its named points, because each point takes a second."""


@dataclass(frozen=True)
class Protection:
    """A mechanism with its parameters, and the tenants that it protects.

    :param accounts_max: maximum number of accounts of one of the tenants
    """

    tenants: tuple[str, ...]
    first: TenantReport
    accounts_max: int

    @property
    def kind(self) -> type[Description]:
        """The mechanism, without its parameters."""
        return description(self.first.mechanism)


def protections(report: Report) -> list[Protection]:
    """The window's mechanisms, the one with the largest epsilon first."""
    groups: dict[tuple[object, ...], list[TenantReport]] = {}
    for t in report.tenants:
        groups.setdefault(
            (t.mechanism, *t.gains, t.lattice, t.keep_over_range, t.flip_over_range, t.document_positions), []
        ).append(t)
    result = [
        Protection(tuple(t.tenant for t in g), g[0], max(t.accounts_max for t in g)) for g in groups.values()
    ]
    return sorted(result, key=lambda p: -math.inf if p.first.eps is None else -float(p.first.eps))


def named_sizes(report: Report, protection: Protection) -> list[int]:
    """The sizes of coalitions that a verdict names: one account, k_max, and all that a tenant may have."""
    return sorted({1, report.figures.k_max, max(1, protection.accounts_max)})


def epsilon_curve(report: Report, protection: Protection) -> list[tuple[int, float]]:
    """Epsilon by the number of accounts that pool their received documents; empty if no coalition size has an
    epsilon."""
    f, kind = report.figures, protection.kind
    own = _or_none(partial(kind.from_facts, protection.first))
    if own is None:
        return []
    result = [
        (k, _or_none(partial(kind.epsilon_at, own, k, f.n, f.delta))) for k in _sizes(report, protection)
    ]
    return [(k, eps) for k, eps in result if eps is not None and math.isfinite(eps)]


def tests_of(report: Report, protection: Protection) -> list[Ceiling]:
    """The trade-off curves of one account, k_max accounts and all accounts; a single curve if it is the same for every
    coalition.

    The curves are the accountant's own. For noise they follow from the composed distribution of its privacy loss, for
    Bernoulli bits from closed forms. The computation uses no Gaussian approximation, and rounds every value up.
    """
    f, kind = report.figures, protection.kind
    own = _or_none(partial(kind.from_facts, protection.first))
    if own is None:
        return []
    sizes = [f.k_max] if kind.any_coalition else named_sizes(report, protection)
    result = [_or_none(partial(kind.ceiling, own, k, f.n, RATES)) for k in sizes]
    return [ceiling for ceiling in result if ceiling is not None]


def _sizes(report: Report, protection: Protection) -> list[int]:
    named = named_sizes(report, protection)
    maximum = named[-1]
    if maximum * report.figures.n * protection.first.document_positions > MANY_QUERIES:
        return named
    between = {round(maximum ** (i / (MAX_POINTS - 1))) for i in range(MAX_POINTS)}
    return sorted({*named, *between})


def _or_none(compute: Callable[[], T]) -> T | None:
    """A figure, or None if the accountant refuses its parameters; a check has reported this refusal."""
    try:
        return compute()
    except RagAuditError:
        return None
