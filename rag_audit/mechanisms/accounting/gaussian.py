"""The Gaussian mechanism exactly (Balle and Wang 2018, Theorem 8): a comparison and a calibration, never a bound.

dp-accounting has the same functions; tests compare the two (docs/decisions/0032).
"""

from __future__ import annotations

import math

from rag_audit.mechanisms.accounting.search import crossing

_SERIES_BELOW = -30.0
"""Below this the asymptotic series of ln Phi is exact to float64; above it erfc does not underflow."""


def epsilon(sigma_over_delta: float, delta: float) -> float:
    """The least epsilon such that one query with noise of this sigma is (epsilon, delta)-DP.

    >>> round(epsilon(4.0, 1e-6), 3)
    1.061

    :param sigma_over_delta: standard deviation over sensitivity, above 0
    :param delta: strictly between 0 and 1
    """
    target = math.log(delta)
    if log_delta(sigma_over_delta, 0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while log_delta(sigma_over_delta, high) > target:
        low, high = high, 10 * high
    return crossing(lambda eps: log_delta(sigma_over_delta, eps) - target, low, high)


def sigma(eps: float, delta: float) -> float:
    """The least sigma/Delta such that one query is (eps, delta)-DP.

    >>> round(sigma(1.0, 1e-6), 3)
    4.225

    :param eps: at least 0
    :param delta: strictly between 0 and 1
    """
    target = math.log(delta)
    low = high = 1.0
    while log_delta(low, eps) < target:
        low /= 10
    while log_delta(high, eps) > target:
        high *= 10
    return crossing(lambda s: log_delta(s, eps) - target, low, high)


def log_delta(sigma_over_delta: float, eps: float) -> float:
    """ln of the least delta at eps: ln(Phi(1/(2 s) - eps s) - e^eps Phi(-1/(2 s) - eps s)) for s = sigma/Delta.

    >>> round(log_delta(4.0, 1.0), 3)
    -12.742
    """
    shift, half = eps * sigma_over_delta, 1 / (2 * sigma_over_delta)
    above = log_normal_cdf(half - shift)
    below = eps + log_normal_cdf(-half - shift)
    return above + math.log1p(-math.exp(below - above)) if below < above else -math.inf


def log_normal_cdf(x: float) -> float:
    """ln Phi(x), to a few units in the last place at any x.

    >>> round(log_normal_cdf(0.0), 6)
    -0.693147
    """
    if x > _SERIES_BELOW:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    inverse = 1 / (x * x)
    term, total = 1.0, 0.0
    for k in range(1, 10):
        term *= -(2 * k - 1) * inverse
        total += term
    return -x * x / 2 - math.log(-x) - math.log(2 * math.pi) / 2 + math.log1p(total)
