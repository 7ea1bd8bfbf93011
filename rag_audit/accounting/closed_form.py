"""The paper's closed form (Theorem 3.5 and equation 5.2), with the residual of Lemma 3.2 written out."""

from __future__ import annotations

import math


def query_epsilon(eps_acc: float, delta_acc: float, n: int) -> float:
    """eps_q of equation (3.1): what one of an account's n queries may spend."""
    return eps_acc / math.sqrt(2 * n * math.log(1 / delta_acc))


def advanced_composition(eps_q: float, m: int, slack: float) -> float:
    """eps of m adaptive queries that are eps_q each (Lemma 3.2), delta = slack + the queries' own.

    Infinite where floats end.
    """
    try:
        return math.sqrt(2 * m * math.log(1 / slack)) * eps_q + m * eps_q * math.expm1(eps_q)
    except OverflowError:
        return math.inf


def leading_term(eps_acc: float, k: int) -> float:
    """sqrt(k) eps_acc, the paper's figure for a coalition of k accounts. It is not a bound."""
    return math.sqrt(k) * eps_acc
