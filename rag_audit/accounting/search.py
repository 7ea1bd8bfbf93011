"""Searches in one variable, for functions that rise or fall throughout.

scipy has better ones. Importing it costs more than everything else that a verifier does for a small window, and the
functions here take microseconds: halving an interval sixty times is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (math.sqrt(5) - 1) / 2


def crossing(function: Callable[[float], float], low: float, high: float, *, rtol: float = 1e-13) -> float:
    """Where a monotone function changes its sign, within rtol of the larger end's magnitude.

    :param low: an end of the interval
    :param high: the other end; the function's signs differ at the two, or it is 0 at one of them
    """
    at_low = function(low)
    if at_low == 0:
        return low
    while abs(high - low) > rtol * max(abs(low), abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def least(function: Callable[[float], float], low: float, high: float, *, atol: float) -> float:
    """Where a function that falls and then rises is near its minimum, by golden sections down to a width of atol."""
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = function(a), function(b)
    while high - low > atol:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = function(b)
    return (low + high) / 2
