"""The probabilities of Bernoulli bits, integers over 2^40 (docs/relation.md, "Coins"); `draws` draws the bits."""

from __future__ import annotations

from rag_audit._internal.errors import PolicyError
from rag_audit.relation.noise import DRAW_BYTES

PROBABILITY_BITS = 8 * DRAW_BYTES
PROBABILITY_RANGE = 1 << PROBABILITY_BITS


def check_probability(value: object, field: str) -> int:
    """A probability as a policy writes it, an integer over 2^40, neither 0 nor 1.

    :raises PolicyError: it is not an integer in 1..2^40 - 1
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < PROBABILITY_RANGE:
        raise PolicyError(
            "not a probability over 2^40 strictly between 0 and 1",
            field=field,
            expected=f"1..{PROBABILITY_RANGE - 1}",
            actual=repr(value),
        )
    return value
