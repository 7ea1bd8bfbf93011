"""What the page's charts show: the accountant's figures beyond those that a verdict has, from a report's parameters.

Everything here follows from the policy alone. Whether this window kept to it is the verdict's to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rag_audit._internal.errors import RagAuditError
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.coins import Listing, Sampling
from rag_audit.report.model import Report, TenantReport

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, *(i / 20 for i in range(2, 20)), 0.97, 0.99)
"""False-positive rates at which curves are computed."""
ONE_PERCENT = RATES.index(0.01)
T = TypeVar("T")
MOST_POINTS = 9
MANY_QUERIES = 1_000_000
"""Compositions from which a curve has its named points alone, since each takes a second."""


@dataclass(frozen=True)
class Protection:
    """A mechanism with its parameters, and the tenants that it protects.

    :param accounts_max: the most accounts that one of the tenants may have
    """

    tenants: tuple[str, ...]
    first: TenantReport
    accounts_max: int

    @property
    def mechanism(self) -> str:
        """noise, sampling, listing or none."""
        return self.first.mechanism

    def listing(self) -> Listing | None:
        """The closed forms of listing, where it is that."""
        if self.mechanism != "listing" or self.first.keep_coin is None or self.first.chance_coin is None:
            return None
        return Listing(self.first.keep_coin, self.first.chance_coin)

    def noise(self) -> accounting.Mechanism | None:
        """The noise, where it is that."""
        if self.mechanism != "noise":
            return None
        return accounting.Mechanism(tuple(self.first.gains), self.first.lattice)


@dataclass(frozen=True)
class Test:
    """What the best test by some accounts can tell: points (false alarms, found), each at most that."""

    accounts: int
    points: Sequence[tuple[float, float]]
    at_one_percent: float


def protections(report: Report) -> list[Protection]:
    """The window's mechanisms, the one with the largest epsilon first."""
    groups: dict[tuple[object, ...], list[TenantReport]] = {}
    for t in report.tenants:
        groups.setdefault((t.mechanism, *t.gains, t.lattice, t.keep_coin, t.chance_coin), []).append(t)
    found = [
        Protection(tuple(t.tenant for t in g), g[0], max(t.accounts_max for t in g)) for g in groups.values()
    ]
    return sorted(found, key=lambda p: -math.inf if p.first.eps is None else -float(p.first.eps))


def named_sizes(report: Report, protection: Protection) -> list[int]:
    """The sizes of coalitions that a verdict names: one account, k_max, and all that a tenant may have."""
    return sorted({1, report.figures.k_max, max(1, protection.accounts_max)})


def epsilon_curve(report: Report, protection: Protection) -> list[tuple[int, float]]:
    """Epsilon by the number of accounts that pool what they were handed; empty where there is none at any size."""
    f = report.figures
    mechanism = _or_none(protection.noise)
    listing = _or_none(protection.listing)
    if listing is not None:
        return _finite([(k, listing.epsilon(k)) for k in _sizes(report, protection)])
    if mechanism is None:
        return []
    found = []
    for k in _sizes(report, protection):
        eps = _or_none(partial(accounting.eps_at, mechanism, k * f.n, f.delta))
        if eps is not None:
            found.append((k, eps))
    return _finite(found)


def tests_of(report: Report, protection: Protection) -> list[Test]:
    """The trade-off curves of one account, k_max and all accounts; of sampling one, since every coalition has the same.

    They are the accountant's own: of noise from the composed distribution of its privacy loss, of coins closed forms.
    Nothing is approximated by a Gaussian, and everything is rounded up.
    """
    listing, mechanism = _or_none(protection.listing), _or_none(protection.noise)
    sizes = named_sizes(report, protection)
    if listing is not None:
        return [Test(k, listing.tradeoff(k), listing.tpr(k, "0.01")) for k in sizes]
    if mechanism is not None:
        made = []
        for k in sizes:
            bound = _or_none(partial(accounting.roc_bound, mechanism, k * report.figures.n, RATES))
            if bound is not None:
                points = [*zip(RATES, bound, strict=True), (1.0, 1.0)]
                made.append(Test(k, points, bound[ONE_PERCENT]))
        return made
    if protection.mechanism == "sampling" and protection.first.keep_coin is not None:
        sampling = Sampling(protection.first.keep_coin)
        points = [(0.0, sampling.roc(0.0)), (float(sampling.dropped), 1.0), (1.0, 1.0)]
        return [Test(report.figures.k_max, points, sampling.roc(0.01))]
    return []


def _sizes(report: Report, protection: Protection) -> list[int]:
    named = named_sizes(report, protection)
    most = named[-1]
    if most * report.figures.n > MANY_QUERIES:
        return named
    between = {round(most ** (i / (MOST_POINTS - 1))) for i in range(MOST_POINTS)}
    return sorted({*named, *between})


def _finite(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return [(k, eps) for k, eps in points if math.isfinite(eps)]


def _or_none(compute: Callable[[], T]) -> T | None:
    """A figure, or None where the accountant refuses its parameters, which a check has said."""
    try:
        return compute()
    except RagAuditError:
        return None
