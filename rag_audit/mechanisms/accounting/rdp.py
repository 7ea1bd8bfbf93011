"""Renyi differential privacy on the paper's grid of orders (appendix B)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_audit.mechanisms.accounting.exact import Composition

ORDERS = tuple(range(2, 65))
_LOG_MGF_ROUNDING = 2.0**-49


def renyi_divergences(composition: Composition) -> list[float]:
    """Renyi divergence of the composed mechanisms at each of `ORDERS`, given that no loss is infinite.

    It follows from the dominating distribution of the worst shift, so it covers every shift and any adaptive choice of
    shifts. The infinite losses' probability must be subtracted from delta before a conversion.

    >>> from rag_audit.mechanisms.accounting.pmf import Mechanism
    >>> len(renyi_divergences(Composition([(Mechanism((1, 8, 64), 1024), 20)], 1e-6))) == len(ORDERS)
    True
    """
    finite = math.log1p(-composition.infinite)
    rounding = sum(composition.counts) * _LOG_MGF_ROUNDING
    return [
        max(0.0, (composition.log_mgf(order - 1) + rounding - order * finite) / (order - 1))
        for order in ORDERS
    ]


def gaussian_divergences(sigma_over_delta: float, compositions: int) -> list[float]:
    """m alpha R^2 / (2 sigma^2), the divergences of the Gaussian, which the real noise only resembles.

    >>> divergences = gaussian_divergences(50.0, 200)
    >>> len(divergences) == len(ORDERS), divergences[0] < divergences[-1]
    (True, True)
    """
    return [order * compositions / (2 * sigma_over_delta**2) for order in ORDERS]


def convert(divergences: Sequence[float], delta: float) -> float:
    """The least epsilon at delta over the orders (Canonne, Kamath, Steinke, arXiv 2004.00010, Prop. 12).

    It is 0 if a single divergence bounds the total variation by delta: sqrt(1 - e^-rho) <= delta (Bretagnolle, Huber).

    >>> round(convert(gaussian_divergences(50.0, 200), 1e-6), 3)
    1.305
    """
    if any(delta**2 + math.expm1(-rho) > 0 for rho in divergences):
        return 0.0
    return max(
        0.0,
        min(
            rho + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
            for order, rho in zip(ORDERS, divergences, strict=True)
        ),
    )


def convert_as_paper(divergences: Sequence[float], delta: float) -> float:
    """Epsilon at delta by the paper's (R3): the least rho + ln(1/delta)/(alpha - 1) over the orders.

    >>> round(convert_as_paper(gaussian_divergences(50.0, 200), 1e-6), 3)
    1.527
    """
    return min(
        rho + math.log(1 / delta) / (order - 1) for order, rho in zip(ORDERS, divergences, strict=True)
    )


def epsilon(composition: Composition) -> tuple[float, float]:
    """Epsilon of the composition by `convert` and by `convert_as_paper`, biases included; inf if infinite losses exceed
    delta.

    >>> from rag_audit.mechanisms.accounting.pmf import Mechanism
    >>> [round(eps) for eps in epsilon(Composition([(Mechanism((1, 8, 64), 1024), 20)], 1e-6))]
    [400, 401]
    """
    budget = composition.finite_budget
    if budget <= 0:
        return math.inf, math.inf
    divergences = renyi_divergences(composition)
    return (
        convert(divergences, budget) + composition.shift,
        convert_as_paper(divergences, budget) + composition.shift,
    )
