"""The exclusion factor of noise on every score: the factor by which the absence of a document becomes more likely for
accounts that never received it. docs/accounting.md, "Exclusion factor of noise", has the proof.
"""

from __future__ import annotations

import math

from rag_audit.mechanisms.accounting.bernoulli import NoisedSampling
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.documents import noise_compositions
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.values import round_up
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

_DELTAS = 40
"""The deltas that are tried, each half of the one before; every one of them gives a bound."""


def noise_exclusion_factor(
    mechanism: Mechanism, *, listed: int, capacity: int, queries: int, positions: int = 1
) -> float:
    """The exclusion factor min over delta of e^eps(delta) / (c - delta), c = (C(N - s, K) / C(N, K))^m, rounded up.

    Theorem: if the s positions of X are uniformly random, no list contains one of them with probability at least 1/F,
    for any number of accounts and adaptive queries. Assumption: noise is independent for each position and query.

    >>> noise_exclusion_factor(Mechanism((1, 8), 16), listed=5, capacity=64, queries=2)
    1.3052

    :param listed: K, the positions of an answer
    :param capacity: N, the positions of the index
    :param queries: m, the queries of all accounts
    :param positions: s, the positions of the document
    :return: inf if the factor exceeds e^700, or every list contains a position of the document
    :raises PolicyError: a number is not a positive integer
    """
    losses = noise_compositions(accounts=1, queries=queries, positions=positions)
    exponent = NoisedSampling(PROBABILITY_RANGE // 2, listed, capacity).log_listed(queries, positions)
    if exponent > 700:
        return math.inf
    unlisted = math.exp(-exponent)
    least = min(
        eps_at(mechanism, losses, unlisted / 2**half) - math.log1p(-(0.5**half))
        for half in range(1, _DELTAS + 1)
    )
    return math.inf if exponent + least > 700 else round_up(math.exp(exponent + least))
