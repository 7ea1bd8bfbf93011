"""Searches in one variable, for functions that rise or fall throughout.

scipy has more of them. Importing it costs more than everything else that a verifier does for a small window.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (math.sqrt(5) - 1) / 2


def crossing(function: Callable[[float], float], low: float, high: float, *, rtol: float = 1e-13) -> float:
    """The argument where a monotone function changes its sign, within rtol of the larger end's magnitude.

    The method is regula falsi with the Illinois rule, which halves the weight of an unmoved end. It bisects if a value
    is infinite, and if two steps have not halved the interval. It needs about ten evaluations; bisection needs forty.

    >>> round(crossing(lambda x: x * x - 2, 0.0, 2.0), 6)
    1.414214

    :param low: the lower end of the interval
    :param high: the upper end; the function's signs differ at the two, or it is 0 at one of them
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0:
        return low
    stayed, steps, halved = 0, 0, high - low
    while (width := high - low) > (least_step := rtol * max(abs(low), abs(high))):
        middle = low + width / 2
        if width <= halved / 2:
            steps, halved = 0, width
        steps += 1
        if steps <= 2 and math.isfinite(at_low) and math.isfinite(at_high) and at_low != at_high:
            step = low + width * (at_low / (at_low - at_high))
            # Never onto an end: the root is enclosed from both sides.
            middle = min(max(step, low + least_step / 2), high - least_step / 2)
        if not low < middle < high:
            break
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_low > 0):
            low, at_low = middle, value
            at_high = at_high / 2 if stayed == 1 else at_high
            stayed = 1
        else:
            high, at_high = middle, value
            at_low = at_low / 2 if stayed == -1 else at_low
            stayed = -1
    return low + (high - low) / 2


def minimum(function: Callable[[float], float], low: float, high: float, *, atol: float) -> float:
    """Where a function that falls and then rises is near its minimum, by golden sections down to a width of atol.

    >>> round(minimum(lambda x: (x - 1) ** 2, 0.0, 3.0, atol=1e-6), 3)
    1.0
    """
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
