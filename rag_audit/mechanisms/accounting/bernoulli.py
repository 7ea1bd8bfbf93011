"""The guarantees of mechanisms based on Bernoulli bits: sampling the index, and listing by chance.

Both draw Bernoulli bits for documents instead of noise for scores, and both have closed forms (docs/accounting.md,
"Sampling" and "Listing by chance"). Probabilities are fractions of 2^40, as in policies: `keep` is the probability
that a document is sampled, `flip_probability` is the probability that a query lists a document whatever its content.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rag_audit.mechanisms.accounting.values import count, round_up
from rag_audit.relation.bernoulli import PROBABILITY_RANGE, check_probability

BERNOULLI_BIAS = 2.0**-52
"""Maximum difference of ln of a Bernoulli bit's probability from ln of the policy's: stream words are residues."""
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Sampling:
    """A tenant with sampling. Each position is sampled for a whole window with probability pi = keep / 2^40, or scores
    0.

    :param keep: pi over 2^40
    :raises PolicyError: keep is not in 1..2^40 - 1
    """

    keep: int

    def __post_init__(self) -> None:
        check_probability(self.keep, "keep")

    @property
    def dropped(self) -> Fraction:
        """1 - pi, exactly."""
        return Fraction(PROBABILITY_RANGE - self.keep, PROBABILITY_RANGE)

    def exclusion_factor(self, queries: int, positions: int = 1) -> float:
        """The maximum factor by which the absence of a document becomes more likely for accounts that never received
        it, rounded up; infinite if there is no finite factor (docs/accounting.md, "Exclusion factor").

        :param queries: total queries of all these accounts; the factor of a sample without lists by chance ignores them
        :param positions: the positions that the document fills
        :raises PolicyError: queries or positions is not a positive integer
        """
        return exclusion_factor_over_windows([(self, queries)], positions)

    def log_listed(self, queries: int, positions: int) -> float:
        """The negative logarithm of the least probability that none of a document's positions is listed although the
        window samples none of them: 0 for a sample of exact scores, whose answers return no text of such a position.

        :param queries: total number of queries of all accounts
        :param positions: the positions that the document fills
        """
        return 0.0


@dataclass(frozen=True)
class ChanceListing(Sampling):
    """A tenant with a sample whose queries list documents. A query lists a relevant sampled document at once, and each
    other document with probability q = flip_probability / 2^40.

    :param flip_probability: q over 2^40
    :raises PolicyError: keep or flip_probability is not in 1..2^40 - 1
    """

    flip_probability: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability(self.flip_probability, "flip_probability")

    @property
    def log_flip(self) -> float:
        """ln q."""
        return math.log1p(-(PROBABILITY_RANGE - self.flip_probability) / PROBABILITY_RANGE)

    def epsilon(self, sets: int) -> float:
        """ln((pi q^-k + 1 - pi)/(1 - pi)), rounded up: the bound for k sets of listed documents that share the sample,
        with any number of queries, delta = 0.

        :raises PolicyError: sets is not a positive integer
        """
        k = count(sets, "k")
        return round_up(self.log_most(k) - self.log_dropped + (k + 1) * BERNOULLI_BIAS)

    def log_listed(self, queries: int, positions: int) -> float:
        """-queries positions ln(1 - q): chance lists each position at each query whether it is sampled or not."""
        return queries * positions * (BERNOULLI_BIAS - math.log1p(-self.flip_probability / PROBABILITY_RANGE))

    def list_without_relevance(self, queries: int) -> float:
        """1 - (1 - q)^queries: the probability that chance without relevance lists a given document in at least one of
        several queries, rounded up.

        :raises PolicyError: queries is not a positive integer
        """
        missed = count(queries, "queries") * math.log1p(-self.flip_probability / PROBABILITY_RANGE)
        return min(1.0, round_up(-math.expm1(missed)))

    @property
    def log_dropped(self) -> float:
        """ln(1 - pi)."""
        return math.log1p(-self.keep / PROBABILITY_RANGE)

    def log_most(self, k: int) -> float:
        """ln(pi q^-k + 1 - pi), by the form that preserves the digits."""
        exponent = -k * self.log_flip
        pi = self.keep / PROBABILITY_RANGE
        if exponent < _LARGEST_EXPONENT:
            return math.log1p(pi * math.expm1(exponent))
        return math.log(pi) + exponent + math.log1p(float(self.dropped) / pi * math.exp(-exponent))


@dataclass(frozen=True)
class NoisedSampling(Sampling):
    """A tenant with a sample and noise: the scores of sampled positions, and the zeros of all others, get noise.

    :param listed: K, the positions of an answer
    :param capacity: N
    """

    listed: int
    capacity: int

    def log_listed(self, queries: int, positions: int) -> float:
        """-queries ln(C(N - s, K) / C(N, K)) for s positions: where every score is 0, the noise lists any K of the N
        positions alike, and higher scores elsewhere only lower the probability that it lists one of the s.
        """
        if self.listed + positions > self.capacity:
            return math.inf
        return -queries * math.fsum(
            math.log1p(-self.listed / (self.capacity - taken)) for taken in range(positions)
        )


def exclusion_factor_over_windows(
    windows: Sequence[tuple[Sampling, int]],
    positions: int = 1,
    *,
    continuing: Sequence[tuple[Sampling, int]] = (),
) -> float:
    """The product of the windows' factors (`Sampling.exclusion_factor`). Each window draws and places its positions
    anew. The result is rounded up, and inf if it exceeds every float.

    The product for samples without lists by chance is exact, so no margin is added: all machines get the same result.

    >>> exclusion_factor_over_windows([(Sampling(keep=1 << 39), 100), (Sampling(keep=1 << 39), 100)])
    4.0001

    :param windows: each window's mechanism, with the queries of all accounts in it
    :param positions: the positions that the document fills
    :param continuing: the windows in which the document keeps the bit of one of `windows`, in the same form: their
        chance counts, and no further bit
    :raises PolicyError: positions or a number of queries is not a positive integer
    """
    s = count(positions, "positions")
    listed = math.fsum(w.log_listed(count(queries, "queries"), s) for w, queries in (*windows, *continuing))
    if listed > 0:
        unkept = math.fsum(BERNOULLI_BIAS - math.log1p(-w.keep / PROBABILITY_RANGE) for w, _ in windows)
        total = s * unkept + listed
        return math.inf if total > _LARGEST_EXPONENT else round_up(math.exp(total))
    product = math.prod((w.dropped for w, _ in windows), start=Fraction(1)) ** s
    bias = 1 + s * len(windows) * Fraction(BERNOULLI_BIAS)
    try:
        return round_up(float(bias / product), margin=0)
    except OverflowError:
        return math.inf
