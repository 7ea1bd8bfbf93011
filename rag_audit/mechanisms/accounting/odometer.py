"""The bound for the queries that a window's accounts did ask, as an odometer.

The people who read the answers choose the counts, so epsilon at the actual counts, with all of delta, would not be a
bound. A ladder of counts is fixed before the window opens and delta is split over its rungs: the reading at a rung is
valid for every transcript that ends on it (Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters", 2016, for
the notion; docs/accounting.md, "Other figures of a verdict", for the argument).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.values import Real, count, probability, text


class RealisedJson(TypedDict):
    """`Realised` as JSON, reals as decimal strings."""

    queries: int
    rung: int
    rungs: int
    eps: str
    delta: str


@dataclass(frozen=True)
class Realised:
    """The odometer's reading.

    :param queries: total number of queries of the k_max busiest accounts of the tenant
    :param rung: the smallest rung of the ladder that is at least `queries`; 0 without queries
    :param rungs: number of rungs that share delta
    :param eps: epsilon for `rung` queries at delta / rungs, rounded up
    :param delta: delta for the ladder as a whole
    """

    queries: int
    rung: int
    rungs: int
    eps: float
    delta: float

    def as_json(self) -> RealisedJson:
        """JSON form, reals as decimal strings."""
        return {
            "queries": self.queries,
            "rung": self.rung,
            "rungs": self.rungs,
            "eps": text(self.eps),
            "delta": text(self.delta),
        }


def ladder(limit: int) -> list[int]:
    """The rungs of a window with `limit` = k_max n: the powers of two up to the limit, and the limit.

    >>> ladder(200)
    [1, 2, 4, 8, 16, 32, 64, 128, 200]
    """
    rungs = [1]
    while rungs[-1] < limit:
        rungs.append(min(2 * rungs[-1], limit))
    return rungs


def realised(
    mechanism: Mechanism, counts: Sequence[int], delta: Real, *, n: int, k: int, positions: int = 1
) -> Realised:
    """The bound for the k busiest of one tenant's accounts, from the ledger's counts.

    >>> realised(Mechanism((1, 8, 64), 1024), [3, 1], "1e-6", n=10, k=2).eps
    11.604

    :param counts: queries of each account of the tenant, in any order
    :param delta: delta_policy, split evenly over the ladder of k n
    :param positions: the positions of a document, each of which has a loss at each query
    :raises PolicyError: n, k or positions is not a positive integer, delta is outside (0, 1), or a count is outside
        0..n
    """
    n, k, total = count(n, "n"), count(k, "k_max"), probability(delta, "delta")
    each = count(positions, "positions")
    for i, requested in enumerate(counts):
        if isinstance(requested, bool) or not isinstance(requested, int) or not 0 <= requested <= n:
            raise PolicyError(
                "an account's count is out of range",
                field=f"counts[{i}]",
                expected=f"0..{n}",
                actual=repr(requested),
            )
    rungs = ladder(k * n)
    queries = sum(sorted(counts, reverse=True)[:k])
    if queries == 0:
        return Realised(0, 0, len(rungs), 0.0, total)
    rung = next(r for r in rungs if r >= queries)
    return Realised(queries, rung, len(rungs), eps_at(mechanism, rung * each, total / len(rungs)), total)
