"""The choice of a tenant's mechanism from the answers to `rag-audit init`."""

from __future__ import annotations

import math
from fractions import Fraction

from rag_audit._internal.errors import SetupError
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.descriptions import randomized_response
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

UNREQUESTED = Fraction(1, 10)
"""The probability that random bits list a given position to some account of the tenant, over all questions of a
window."""


def coalition(accounts: int) -> int:
    """The largest coalition that a policy for this number of accounts covers."""
    return min(accounts, defaults.K_MAX)


def choose_mechanism(*, rights: bool, accounts: int, questions: int, capacity: int, embedder: str) -> str:
    """The value of the option --mechanism for a tenant.

    If users have individual rights, the mechanism is sampling: its figure is valid for every number of accounts, and
    no account's questions change the answers to another account. Otherwise it is randomized response, which has an
    epsilon for lists.

    >>> choose_mechanism(rights=True, accounts=16, questions=200, capacity=64, embedder="wordllama-lexical-768")
    'sampling:0.9'
    >>> choose_mechanism(rights=False, accounts=4, questions=50, capacity=64, embedder="wordllama-lexical-768")
    'randomized-response:0.7:0.00052666384272:900'

    :param rights: whether users of a tenant have individual rights
    :param accounts: the maximum accounts of the tenant
    :param questions: the maximum questions of an account in a window
    :param capacity: the tenant's positions
    :raises SetupError: the mechanism needs a threshold, and none was measured for the embedder
    """
    if rights:
        return f"sampling:{defaults.KEEP}"
    threshold = randomized_response.THRESHOLDS.get(embedder)
    if threshold is None:
        raise SetupError(
            "lists need the score of a relevant passage, which is not known for this embedder",
            field="--embedder", expected=" or ".join(randomized_response.THRESHOLDS), actual=embedder,
            hint="choose such an embedder, or sampling (--rights); `rag-audit provider policy new --mechanism"
                 " randomized-response:KEEP:FLIP_PROBABILITY:THRESHOLD` takes a measured threshold",
        )  # fmt: skip
    flip = _flip_probability(accounts, questions, capacity)
    return f"randomized-response:{randomized_response.KEEP}:{flip:.12g}:{threshold}"


def _flip_probability(accounts: int, questions: int, capacity: int) -> float:
    """The probability q that a position is listed at a question whatever its content.

    Over m = accounts x questions, 1 - (1 - q)^m is `UNREQUESTED`. If epsilon of the coalition would then exceed the
    default limit of a trust file, q is the value with this epsilon. In every case random bits fill at most half of a
    list.
    """
    shared = -math.expm1(math.log1p(-float(UNREQUESTED)) / (accounts * questions))
    pi = float(randomized_response.KEEP)
    # epsilon = ln((pi q^-k + 1 - pi)/(1 - pi)) for k accounts (docs/accounting.md), solved for q.
    # The figure of a verdict is rounded up to five digits, which the margin covers.
    limit = float(defaults.EPS_RANDOMIZED_RESPONSE) * (1 - 1e-4)
    least: float = (pi / ((1 - pi) * math.expm1(limit))) ** (1 / coalition(accounts))
    _, longest = randomized_response.default_randomized_response(capacity)
    chosen = min(max(shared, least), longest / 2 / capacity)
    return math.ceil(chosen * PROBABILITY_RANGE) / PROBABILITY_RANGE
