"""Figures for documents that fill several positions: sampling by document, pooled listing, exposure.

docs/accounting.md, "Documents", has the assumptions and the proofs. One Bernoulli bit with probability
pi = keep / 2^40 decides for all positions of a document. Pooled listing adds a flip probability
q = flip_probability / 2^40 for each document and query, and one set of listed documents for all accounts of the tenant.
The figures are the same for any number of accounts; only the total number of their queries enters.

Results are rounded outwards to five significant digits: upper bounds up, and the lower bound down.

Source of the exclusion factor: Doudalis, Kotsogiannis, Haney, Machanavajjhala and Mehrotra, *One-sided Differential
Privacy* (arXiv 1712.05888), freedom from exclusion attacks; Takagi, Cao and Yoshikawa, *Asymmetric Differential
Privacy*.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.bernoulli import ChanceListing, NoisedSampling, Sampling
from rag_audit.mechanisms.accounting.values import (
    SIGNIFICANT_DIGITS,
    Real,
    count,
    decimal,
    epsilon,
    probability,
    round_up,
)
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

EXPOSURE_RATIO = Decimal("1.6")
"""The maximum ratio of the expected exposure to the expected exposure of exact retrieval without a warning."""
_DOWN = Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_FLOOR)
_DIGITS = 60
"""Decimal digits of q. Decimal rounds ln and exp correctly, so all machines get the same digits."""
_SLACK = Decimal("1e-30")
"""Above the error of q 2^40 with `_DIGITS` digits, below every difference that a policy can express."""


# -- exclusion factor --------------------------------------------------------------------------------------------


def sampling_factor(keep: int, *, bits: int = 1) -> float:
    """The exclusion factor 1/(1 - pi)^c of sampling by document.

    Theorem: for every transcript S without a text of X, (1 - pi)^c <= P_X(S) / P_0(S) <= 1, for any number of accounts
    and adaptive queries. Assumptions: one Bernoulli bit decides for all positions of a handle, a position of score 0 is
    returned without text, the public number of fresh handles does not depend on documents, and neither do the handles
    of other documents depend on X: no document waits for a handle, and no row that had a document is replaced.

    >>> sampling_factor(1 << 39), sampling_factor(1 << 39, bits=3)
    (2.0001, 8.0001)

    :param keep: pi over 2^40
    :param bits: c, the Bernoulli bits that decide about the content: its handles in the chain with persistent bits;
        with bits that each window draws anew, the sum of its handles over the windows
    :raises PolicyError: keep is not a probability over 2^40, or bits is not a positive integer
    """
    return Sampling(keep).exclusion_factor(queries=1, positions=bits)


def noised_sampling_factor(keep: int, *, listed: int, capacity: int, queries: int, positions: int) -> float:
    """The exclusion factor 1/((1 - pi) (C(N - s, K) / C(N, K))^m) of noise with sampling by document.

    Theorem: if s positions of X are uniformly random and answers contain the texts of all K listed positions, no
    account receives X with probability at least 1/F. If answers omit the texts of documents outside the sample, the
    factor is `sampling_factor`. Assumption: noise is independent for each position and query.

    >>> noised_sampling_factor(1 << 39, listed=5, capacity=64, queries=20, positions=1)
    10.177

    :param keep: pi over 2^40
    :param listed: K, the positions of an answer
    :param capacity: N, the positions of the index
    :param queries: m, the queries of all accounts
    :param positions: s, the positions of the document
    :return: inf if every list contains a position of the document
    :raises PolicyError: keep is not a probability over 2^40
    """
    sampling = NoisedSampling(keep, listed, capacity)
    exponent = sampling.log_listed(queries, positions)
    return math.inf if exponent > 700 else round_up(math.exp(exponent) / float(sampling.dropped))


def pooled_factor(keep: int, flip_probability: int, *, queries: int, handles: int = 1) -> float:
    """The exclusion factor 1/((1 - pi) (1 - q)^m)^c of pooled listing.

    Theorem: for every transcript S of answers without a text of X, ((1 - pi) (1 - q)^m)^c <= P_X(S) / P_0(S) <= 1, for
    any number of accounts and adaptive queries. Assumptions: those of `sampling_factor`; all listed positions compete
    for the K places of an answer, and no list has a maximum length; persistent bits if the chain has several windows.

    >>> pooled_factor(1 << 39, 1 << 38, queries=1)
    2.6667

    :param keep: pi over 2^40
    :param flip_probability: q over 2^40
    :param queries: m, the queries of all accounts in all windows of the chain
    :param handles: c, the handles that the content has in the chain
    :raises PolicyError: a probability is not one over 2^40, or a number is not a positive integer
    """
    return ChanceListing(keep, flip_probability).exclusion_factor(queries, handles)


def return_probability(factor: float) -> float:
    """The maximum probability 1 - 1/F that accounts receive a document X, for an exclusion factor F.

    Theorem: let E be the event that no account receives X. If P_0(E) = 1 and P_X(E) >= 1/F, X is returned with
    probability 1 - P_X(E) <= 1 - 1/F. Sampling by document attains equality for an X among the exact best K.

    >>> return_probability(4.0)
    0.75001

    :param factor: F, at least 1, or inf
    """
    return min(1.0, round_up(1 - 1 / factor))


# -- epsilon of pooled listing -----------------------------------------------------------------------------------


def flip_probability_for(listed: Real, *, queries: int) -> int:
    """q over 2^40, the largest with 1 - (1 - q)^m <= f, or the largest but one if both sides are equal.

    q is rounded down, so f stays a bound. `pooled_epsilon` and `pooled_factor` read the rounded q.

    >>> flip_probability_for("0.1", queries=1000)
    115839009

    :param listed: f, the maximum probability that chance lists a given document in any of the m queries
    :param queries: m, the queries of all accounts
    :raises PolicyError: f is not strictly between 0 and 1, m is not a positive integer, or q rounds to 0
    """
    probability(listed, "f")
    m = count(queries, "queries")
    with localcontext(Context(prec=_DIGITS)):
        q = 1 - ((1 - decimal(listed, "f")).ln() / m).exp()
        result = math.floor(q * PROBABILITY_RANGE - _SLACK)
    if result < 1:
        raise PolicyError(
            "the probability that chance lists a document at one query rounds to 0",
            field="f",
            expected=f"at least {m} x 2^-40, for {m} queries",
            actual=str(listed),
        )
    return result


def pooled_epsilon(keep: int, flip_probability: int, *, resets: int = 1) -> float:
    """Epsilon ln((pi q^-W + 1 - pi) / (1 - pi)) of pooled listing, with delta 0.

    Theorem: everything that all accounts see until a row is listed, and the fact that it is listed, has a ratio of at
    most e^eps between two documents in that row, for any number of accounts and adaptive queries. The sequence of newly
    listed rows has the same epsilon. Assumptions: a row gets one Bernoulli bit in the chain; requests take effect one
    by one; the set of listed rows is carried from window to window, or W windows start with an empty set.

    >>> pooled_epsilon(1 << 39, 1 << 38), pooled_epsilon(1 << 39, 1 << 38, resets=2)
    (1.6095, 2.8333)

    :param keep: pi over 2^40
    :param flip_probability: q over 2^40
    :param resets: W, the windows that start with an empty set of listed rows: 1 if each window carries the set
    :raises PolicyError: a probability is not one over 2^40, or resets is not a positive integer
    """
    return ChanceListing(keep, flip_probability).epsilon(resets)


def largest_queries(keep: int, listed: Real, *, eps: Real = 10) -> int:
    """The largest m with a printed epsilon of at most eps, where q follows from f and m; 0 if m = 1 exceeds it.

    >>> largest_queries(989560464998, "0.1")
    257

    :param keep: pi over 2^40
    :param listed: f, as in `flip_probability_for`
    :raises PolicyError: keep or f is not a probability, or eps is out of range
    """
    limit = epsilon(eps, "eps")
    probability(listed, "f")

    def fits(queries: int) -> bool:
        try:
            q = flip_probability_for(listed, queries=queries)
        except PolicyError:
            return False
        return pooled_epsilon(keep, q) <= limit

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def listing_lower_bound(*, queries: int, requested: float, unrequested: float, delta: float = 0.0) -> float:
    """The lower bound ln(m (p - f - delta) / f) on the epsilon of every mechanism that lists requested documents.

    Theorem: let document X_t be relevant only to question t, for t = 1 .. m. If X_t is listed by question t with
    probability at least p, and a row is listed at any of the m questions with probability at most f while no question
    asks for its document, every (eps, delta) of the sequence of newly listed rows satisfies the bound.

    >>> listing_lower_bound(queries=1000, requested=0.9, unrequested=0.1)
    8.9871

    :param queries: m
    :param requested: p
    :param unrequested: f, above 0
    :raises PolicyError: queries is not a positive integer
    """
    gap = requested - unrequested - delta
    if gap <= 0:
        return 0.0
    bound = math.log(count(queries, "queries")) + math.log(gap) - math.log(unrequested)
    return float(_DOWN.create_decimal(Decimal(max(0.0, bound) * (1 - 1e-9))))


def pooled_distance(keep: int, flip_probability: int, *, queries: int) -> float:
    """The difference between `pooled_epsilon` and `listing_lower_bound` at the same p and f, rounded up.

    A row with a requested document is listed at once with p = pi + (1 - pi) q, and one without with
    f = 1 - (1 - q)^m. For small q the difference is ln(1/(1 - pi)) + ln(pi / (pi - f)) - ln(ln(1/(1 - f)) / f).

    >>> pooled_distance(989560464998, 115839009, queries=1000)
    2.3689

    :param keep: pi over 2^40
    :param flip_probability: q over 2^40
    :param queries: m
    :raises PolicyError: a probability is not one over 2^40, or queries is not a positive integer
    """
    pooled = ChanceListing(keep, flip_probability)
    q = flip_probability / PROBABILITY_RANGE
    requested = 1 - float(pooled.dropped) * (1 - q)
    lower = listing_lower_bound(
        queries=queries, requested=requested, unrequested=pooled.list_without_relevance(queries)
    )
    return round_up(pooled.epsilon(1) - lower)


# -- exposure and noise ------------------------------------------------------------------------------------------


def exposure_limit(documents: int, *, queries: int, longest: int) -> int:
    """The maximum number min(d, m K) of documents that accounts can read: an answer has texts of at most K positions.

    >>> exposure_limit(2067, queries=2000, longest=5), exposure_limit(2067, queries=100, longest=5)
    (2067, 500)

    :param documents: d, the documents of the index
    :param queries: m, the queries of all accounts
    :param longest: K, the maximum length of an answer
    :raises PolicyError: a number is not a positive integer
    """
    return min(count(documents, "documents"), count(queries, "queries") * count(longest, "longest"))


def expected_by_flips(documents: int, flip_probability: int, *, queries: int) -> float:
    """An upper bound d (1 - (1 - q)^m) on the expected number of documents that chance lists, rounded up.

    >>> expected_by_flips(4096, 1342177280, queries=2000)
    3740.1

    :param documents: d, the documents of the index
    :param flip_probability: q over 2^40
    :param queries: m, the queries of all accounts
    :raises PolicyError: the probability is not one over 2^40, or a number is not a positive integer
    """
    listed = -math.expm1(count(queries, "queries") * math.log1p(-flip_probability / PROBABILITY_RANGE))
    return round_up(count(documents, "documents") * listed)


def exposes_more_than_exact(expected: Real, exact: Real) -> bool:
    """Whether the expected exposure exceeds `EXPOSURE_RATIO` times that of exact retrieval, compared as decimals.

    >>> exposes_more_than_exact(160, 100), exposes_more_than_exact("160.1", 100)
    (False, True)

    :param expected: the expected number of documents that accounts read
    :param exact: the same number for exact retrieval with the same questions
    :raises PolicyError: a value is not a number
    """
    return decimal(expected, "expected") > EXPOSURE_RATIO * decimal(exact, "exact")


def noise_compositions(*, accounts: int, queries: int, positions: int) -> int:
    """The losses k n s that compose for noise: a document changes the scores of up to s positions at each query.

    Theorem: with independent noise for each position, a query whose scores differ in s positions, each by at most R, is
    at least as private as s queries with one difference of R. Assumption: placements are uniform, so a replaced
    document may be taken to lie in positions of its predecessor (s is the larger number of the two).

    >>> noise_compositions(accounts=10, queries=200, positions=4)
    8000

    :param accounts: k
    :param queries: n, the queries of each account
    :param positions: s, the maximum number of positions of a document
    :raises PolicyError: a number is not a positive integer
    """
    return count(accounts, "accounts") * count(queries, "queries") * count(positions, "positions")
