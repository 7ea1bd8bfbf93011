"""Bounds on the best membership test: its AUC, and its true-positive rate at a false-positive rate.

Both follow from the dominating privacy loss distribution. Its trade-off curve (ROC) is on or above the real one. They
cover the list of selected positions; the text at a selected position is disclosed whatever the noise
(docs/accounting.md, "Scope of the figures").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from rag_audit.mechanisms.accounting.exact import MISSING, Composition, TiltedSum
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.values import Real, count, probability, round_up, text

FALSE_ALARM_RATE = 0.01
_DELTA_SCALE = 1e-9
"""The delta for cutting tails: they weigh 2^-31 of it, far below the printed digits."""
_EXP_RANGE = 600.0


class MembershipJson(TypedDict):
    """`Membership` as JSON, reals as decimal strings."""

    compositions: int
    auc_bound: str
    tpr_at_fpr_1pct: str


@dataclass(frozen=True)
class Membership:
    """Upper bounds for every membership test by a coalition that makes a given number of queries.

    :param auc_bound: area under the ROC curve, 0.5 .. 1
    :param tpr_at_fpr_1pct: true-positive rate at a false-positive rate of 1 %, 0.01 .. 1
    """

    compositions: int
    auc_bound: float
    tpr_at_fpr_1pct: float

    def as_json(self) -> MembershipJson:
        """JSON form, reals as decimal strings."""
        return {
            "compositions": self.compositions,
            "auc_bound": text(self.auc_bound),
            "tpr_at_fpr_1pct": text(self.tpr_at_fpr_1pct),
        }


def membership(mechanism: Mechanism, compositions: int) -> Membership:
    """Both membership bounds for m queries.

    >>> membership(Mechanism((1, 8, 64), 1024), 10)
    Membership(compositions=10, auc_bound=0.98675, tpr_at_fpr_1pct=0.79138)

    :raises PolicyError: compositions is not a positive integer
    """
    m = count(compositions, "compositions")
    return Membership(m, auc_bound(mechanism, m), tpr_bound(mechanism, m, FALSE_ALARM_RATE))


def auc_bound(mechanism: Mechanism, compositions: int) -> float:
    """The best test's AUC after m queries, rounded up.

    The pair is symmetric: minus the loss under one distribution is the loss under the other. So the AUC is
    the probability that a sum of 2 m losses is above 0, ties counting half.

    >>> auc_bound(Mechanism((1, 8, 64), 1024), 10)
    0.98675
    """
    composition = Composition([(mechanism, 2 * compositions)], _DELTA_SCALE)
    total = TiltedSum(composition, 0.0)
    zero = min(max(-total.first, 0), len(total.masses))
    below = float(np.sum(total.masses[:zero]))
    if zero < len(total.masses):
        below += float(total.masses[zero]) / 2
    below = (below - MISSING - total.error * math.sqrt(zero + 1)) * math.exp(
        total.log_scale - total.log_slack
    )
    return _inflated(1 - max(below, 0.0), composition)


def tpr_bound(mechanism: Mechanism, compositions: int, fpr: Real) -> float:
    """The best test's true-positive rate at a false-positive rate after m queries, rounded up (`roc_bound`).

    >>> tpr_bound(Mechanism((1, 8, 64), 1024), 10, "0.01")
    0.79138

    :raises PolicyError: fpr is not strictly between 0 and 1
    """
    return roc_bound(mechanism, compositions, [fpr])[0]


def roc_bound(mechanism: Mechanism, compositions: int, rates: Sequence[Real]) -> list[float]:
    """The best test's true-positive rate at each of some false-positive rates after m queries, rounded up.

    A bound is the least exp(eps) fpr + delta(eps) over the grid, since every eps gives a line above the curve.

    >>> roc_bound(Mechanism((1, 8, 64), 1024), 10, ["0.01", "0.1"])
    [0.79138, 0.96828]

    :raises PolicyError: a rate is not strictly between 0 and 1
    """
    wanted = [probability(fpr, "fpr") for fpr in rates]
    composition = Composition([(mechanism, compositions)], _DELTA_SCALE)
    total = TiltedSum(composition, 0.0)
    sums = (total.first + np.arange(len(total.masses))) * total.step
    near = np.abs(sums) <= _EXP_RANGE
    beyond = float(np.sum(total.masses[sums > _EXP_RANGE]))
    eps, masses = sums[near], total.masses[near]
    upper = beyond + np.cumsum(masses[::-1])[::-1]
    lower = np.cumsum((masses * np.exp(-eps))[::-1])[::-1]
    finite = (upper - np.exp(eps) * lower) * math.exp(total.log_scale + total.log_slack)
    missing = MISSING + total.error * math.sqrt(len(sums)) + 1e-12
    slopes = np.exp(eps)
    lines = (slopes * rate + finite + missing + composition.infinite for rate in wanted)
    return [_inflated(float(np.min(line, initial=1.0)), composition) for line in lines]


def _inflated(bound: float, composition: Composition) -> float:
    """A bound with the biases added: delta exp(factor) at eps + shift raises a point of the curve by at most this."""
    return min(1.0, round_up(bound * math.exp(max(composition.factor, composition.shift))))
