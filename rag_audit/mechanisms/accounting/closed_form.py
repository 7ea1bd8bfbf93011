"""The paper's closed form (Theorem 3.5 and equation 5.2), with the residual of Lemma 3.2 written out."""

from __future__ import annotations

import math


def query_epsilon(eps_acc: float, delta_acc: float, n: int) -> float:
    """eps_q of equation (3.1), the epsilon that one of an account's n queries may spend.

    >>> round(query_epsilon(1.0, 1e-6, 200), 5)
    0.01345
    """
    return eps_acc / math.sqrt(2 * n * math.log(1 / delta_acc))


def advanced_composition(eps_q: float, m: int, slack: float) -> float:
    """The epsilon of m adaptive eps_q-DP queries (Lemma 3.2) at delta = slack + the queries' own deltas.

    It is infinite where it exceeds the range of floats.

    >>> round(advanced_composition(0.01, 200, 1e-6), 4)
    0.7635
    """
    try:
        return math.sqrt(2 * m * math.log(1 / slack)) * eps_q + m * eps_q * math.expm1(eps_q)
    except OverflowError:
        return math.inf


def leading_term(eps_acc: float, k: int) -> float:
    """sqrt(k) eps_acc, the paper's figure for a coalition of k accounts, which is not a bound.

    >>> leading_term(1.0, 4)
    2.0
    """
    return math.sqrt(k) * eps_acc
