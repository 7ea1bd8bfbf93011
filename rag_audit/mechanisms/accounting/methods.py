"""The methods that compare noise with a target: the formula of each, and whether a mechanism meets it.

The paper uses two noise scales under one name: equation (3.4), and in the proof of Theorem 3.9 one that is smaller by
sqrt(2 ln(1.25/delta_q)). This module has both, as `classical` and `theorem-3.9`.
"""

from __future__ import annotations

import math

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting import closed_form, gaussian
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.pmf import Mechanism

METHODS = ("classical", "split", "theorem-3.9", "analytic", "exact")
RELATIVE_SLACK = 1e-9
"""The share of a formula's sigma that rounding may take."""


def required_sigma_over_delta(method: str, *, n: int, eps_acc: float, delta_acc: float) -> float:
    """The sigma/Delta such that n queries are (eps_acc, delta_acc)-DP by a method's formula.

    >>> round(required_sigma_over_delta("analytic", n=200, eps_acc=4.0, delta_acc=1e-6), 2)
    16.88

    - `classical`: equation (3.4); its strictest reading is (eps_acc, 2 delta_acc)
    - `split`: footnote 2, half of delta_acc for the queries and half for their composition
    - `theorem-3.9`: sqrt(2 n ln(1/delta_acc)) / eps_acc, without the residual eps^2 / (4 ln(1/delta))
    - `analytic`: the Gaussian mechanism exactly (Balle and Wang 2018)
    - `exact`: the analytic value; the exact bound of the real noise is met near it

    :raises PolicyError: the method is unknown
    """
    if method in ("classical", "split"):
        share = delta_acc if method == "classical" else delta_acc / 2
        eps_q = closed_form.query_epsilon(eps_acc, share, n)
        return math.sqrt(2 * math.log(1.25 * n / share)) / eps_q
    if method == "theorem-3.9":
        return 1 / closed_form.query_epsilon(eps_acc, delta_acc, n)
    if method in ("analytic", "exact"):
        return gaussian.sigma(eps_acc, delta_acc) * math.sqrt(n)
    raise PolicyError(
        "unknown calibration", field="calibration", expected=", ".join(METHODS), actual=repr(method)
    )


def meets(method: str, mechanism: Mechanism, *, n: int, eps_acc: float, delta_acc: float) -> bool:
    """Whether a mechanism's noise meets a method's requirement for one account's n queries.

    >>> meets("analytic", Mechanism((1, 8, 64), 1024), n=10, eps_acc=4.0, delta_acc=1e-6)
    False
    """
    if method == "exact":
        return eps_at(mechanism, n, delta_acc) <= eps_acc
    needed = required_sigma_over_delta(method, n=n, eps_acc=eps_acc, delta_acc=delta_acc)
    return mechanism.sigma_over_delta >= needed * (1 - RELATIVE_SLACK)
