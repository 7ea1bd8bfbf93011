"""The exclusion factor of noise on every score: the factor by which the absence of a document becomes more likely for
accounts that never received it. docs/accounting.md, "Exclusion factor of noise", has the proof.
"""

from __future__ import annotations

import math

from rag_audit.mechanisms.accounting.bernoulli import NoisedSampling
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.documents import noise_compositions
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.values import MIN_PROBABILITY
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

_DELTAS = 40
"""The deltas that are tried, each half of the one before; every one of them gives a bound."""
_MARGIN = 1e-9
"""Above the rounding of the sums and logarithms; each epsilon is rounded up by the accountant."""


def log_noise_exclusion_factor(
    mechanism: Mechanism, *, listed: int, capacity: int, queries: int, positions: int = 1
) -> float:
    """An upper bound on ln F of the exclusion factor F = min over delta of e^eps(delta) / (c - delta), where
    c = (C(N - s, K) / C(N, K))^m. F itself can exceed every float.

    Theorem: if the s positions of X are uniformly random, no list contains one of them with probability at least 1/F,
    for any number of accounts and adaptive queries. Assumption: noise is independent for each position and query.

    >>> round(log_noise_exclusion_factor(Mechanism((1, 8), 16), listed=5, capacity=64, queries=2), 5)
    0.2663

    :param listed: K, the positions of an answer
    :param capacity: N, the positions of the index
    :param queries: m, the queries of all accounts
    :param positions: s, the positions of the document
    :return: inf if there is no bound: every epsilon is infinite, or no delta of the accountant is below c
    :raises PolicyError: a number is not a positive integer
    """
    losses = noise_compositions(accounts=1, queries=queries, positions=positions)
    exponent = NoisedSampling(PROBABILITY_RANGE // 2, listed, capacity).log_listed(queries, positions)
    unlisted = math.exp(-exponent)
    deltas = [unlisted / 2**half for half in range(1, _DELTAS + 1)]
    logs = [
        eps_at(mechanism, losses, delta) - math.log1p(-delta / unlisted)
        for delta in deltas
        if delta >= MIN_PROBABILITY
    ]
    return exponent + min(logs, default=math.inf) + _MARGIN
