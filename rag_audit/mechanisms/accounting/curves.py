"""Figures that drafts, reports and studies derive from the closed forms of `bernoulli`. No verdict depends on them.

The curves bound every membership test (docs/accounting.md, "Sampling" and "Listing by chance").
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.bernoulli import BERNOULLI_BIAS, ChanceListing, Sampling
from rag_audit.mechanisms.accounting.values import Real, count, decimal, probability, round_up
from rag_audit.relation.bernoulli import PROBABILITY_RANGE


def probability_over_range(value: Real, field: str) -> int:
    """A decimal probability as a policy writes it: floor(x 2^40 + 1/2).

    >>> probability_over_range("0.5", "keep") == 1 << 39
    True

    :raises PolicyError: the value is not a decimal number, or rounds to 0 or 1
    """
    exact = Fraction(decimal(value, field))
    coin = math.floor(exact * PROBABILITY_RANGE + Fraction(1, 2))
    if not 0 < coin < PROBABILITY_RANGE:
        what = "the share is not between 0 and 1"
        if 0 < exact < 1:
            what = "the share rounds to 0 or to 1"
        raise PolicyError(
            what, field=field, expected="a share above 0 and below 1, such as 0.9", actual=str(value)
        )
    return coin


def roc(sampling: Sampling, fpr: float) -> float:
    """The largest true-positive rate of a test whether a position has one document or another, rounded up.

    If the position is not sampled, no answer depends on it: two such laws differ by pi in total variation.

    >>> roc(Sampling(keep=1 << 39), 0.01)
    0.51001

    :param fpr: false-positive rate, in 0..1
    """
    return min(1.0, round_up(fpr + 1 - float(sampling.dropped) + BERNOULLI_BIAS))


def auc(sampling: Sampling) -> float:
    """The area under `roc`.

    >>> auc(Sampling(keep=1 << 39))
    0.87501
    """
    return min(1.0, round_up(1 - float(sampling.dropped**2) / 2 + BERNOULLI_BIAS))


def epsilon_of_adding(mechanism: ChanceListing, sets: int) -> float:
    """`ChanceListing.epsilon` where the position is empty in one of the two worlds: the larger of
    ln(pi q^-k + 1 - pi), for a document added, and ln(1/(1 - pi)), for one removed; rounded up.

    >>> epsilon_of_adding(ChanceListing(keep=1 << 39, flip_probability=1 << 30), sets=2)
    13.17

    :raises PolicyError: sets is not a positive integer
    """
    k = count(sets, "k")
    return round_up(max(mechanism.log_most(k), -mechanism.log_dropped) + (k + 1) * BERNOULLI_BIAS)


def tradeoff(mechanism: ChanceListing, sets: int) -> list[tuple[float, float]]:
    """Points (false-positive rate, true-positive rate) of a concave curve above every test's, for k sets: its
    ends and its two corners.

    A test that accepts with probability x if the position is empty accepts with at most min(b x, 1 - a (1 - x)) if it
    has one document, and with at least max(a x, 1 - b (1 - x)) if it has another, for a = 1 - pi and b = pi q^-k + 1 -
    pi.

    >>> lists = ChanceListing(keep=1 << 39, flip_probability=1 << 30)
    >>> [(round(x, 3), round(y, 3)) for x, y in tradeoff(lists, sets=2)]
    [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]

    :raises PolicyError: sets is not a positive integer
    """
    k = count(sets, "k")
    a, t = float(mechanism.dropped), math.exp(k * mechanism.log_flip)
    rest = -math.expm1(k * mechanism.log_flip)  # 1 - t, with its digits where t is near 1
    low = (a * t, 1 - a + a * t)  # b q^k = pi + (1 - pi) q^k
    if t <= 0.5:
        return [(0.0, 0.0), low, (a * rest, 1 - a * t), (1.0, 1.0)]
    b = low[1] / t
    return [(0.0, 0.0), (a * rest, b * rest), (1 - b * rest, 1 - a * rest), (1.0, 1.0)]


def tpr(mechanism: ChanceListing, sets: int, fpr: Real) -> float:
    """The largest true-positive rate at a false-positive rate for k sets, rounded up.

    >>> tpr(ChanceListing(keep=1 << 39, flip_probability=1 << 30), sets=2, fpr="0.01")
    0.51001

    :raises PolicyError: fpr is not strictly between 0 and 1, or sets is not a positive integer
    """
    rate = probability(fpr, "fpr")
    corners = tradeoff(mechanism, sets)
    for (x0, y0), (x1, y1) in pairwise(corners):
        if x0 <= rate <= x1 and x1 > x0:
            result = y0 + (y1 - y0) * (rate - x0) / (x1 - x0)
            return min(1.0, round_up(result * math.exp((sets + 1) * BERNOULLI_BIAS)))
    return 1.0


def auc_for(mechanism: ChanceListing, sets: int) -> float:
    """The area under `tradeoff`, rounded up.

    >>> auc_for(ChanceListing(keep=1 << 39, flip_probability=1 << 30), sets=2)
    0.875

    :raises PolicyError: sets is not a positive integer
    """
    corners = tradeoff(mechanism, sets)
    area = sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(corners))
    return min(1.0, round_up(area * math.exp((sets + 1) * BERNOULLI_BIAS)))


def floor_epsilon(relevant: float, irrelevant: float, accounts: int, delta: float = 0.0) -> float:
    """The lower bound on epsilon for every mechanism that lists a relevant document with probability p and an
    irrelevant one with probability q, with independent draws for each account: ln((p^k - delta)/q^k); 0 if delta by
    itself allows it.

    >>> round(floor_epsilon(relevant=0.9, irrelevant=0.001, accounts=2), 2)
    13.6

    :param relevant: p, above 0 and at most 1
    :param irrelevant: q, above 0
    :param accounts: k
    """
    all_listed = accounts * math.log(relevant)
    if delta > 0:
        if all_listed <= math.log(delta):
            return 0.0
        all_listed += math.log1p(-math.exp(math.log(delta) - all_listed))
    return max(0.0, all_listed - accounts * math.log(irrelevant))
