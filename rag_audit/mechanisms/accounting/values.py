"""Reading the accountant's numbers and rounding its results."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import overload

from rag_audit._internal.errors import PolicyError, brief

Real = Decimal | str | int | float
"""A real parameter. Policies contain decimal strings; a float means its shortest decimal form."""

EPSILON_RANGE = (Decimal("1e-9"), Decimal("1e9"))
MIN_PROBABILITY = Decimal("1e-100")
"""Limits of epsilon and delta, beyond which the formulas leave the range of floats; no policy needs such values."""
_WRITTEN = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?\Z")
SIGNIFICANT_DIGITS = 5
_UP = Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_CEILING)


def decimal(value: Real, field: str) -> Decimal:
    """A finite real, exactly as written, in the digits 0 to 9. Python itself would accept the digits of any script.

    >>> decimal("1e-5", "delta")
    Decimal('0.00001')

    :raises PolicyError: the value is not a number, or not finite
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, str) and not _WRITTEN.match(value):
            raise ValueError
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except (InvalidOperation, TypeError, ValueError) as exc:
        raise PolicyError("the value is not a decimal number", field=field, actual=brief(value)) from exc
    if not number.is_finite() or not math.isfinite(float(number)):
        raise PolicyError("the value is not a finite number", field=field, actual=str(value))
    return number


def epsilon(value: Real, field: str) -> float:
    """A privacy parameter epsilon, within `EPSILON_RANGE`.

    >>> epsilon("4", "eps_acc")
    4.0

    :raises PolicyError: the value is not a number in that range
    """
    number = decimal(value, field)
    if number <= 0:
        raise PolicyError("the epsilon is not above 0", field=field, expected="> 0", actual=str(value))
    low, high = EPSILON_RANGE
    if not low <= number <= high:
        raise PolicyError(
            "the epsilon is out of range", field=field, expected=f"{low} .. {high}", actual=str(value)
        )
    return float(number)


def probability(value: Real, field: str) -> float:
    """A probability, such as delta or f, strictly between 0 and 1 and at least `MIN_PROBABILITY`.

    >>> probability("1e-6", "delta_acc")
    1e-06

    :raises PolicyError: the value is not a number in that range
    """
    exact = decimal(value, field)
    number = float(exact)
    if not 0 < exact < 1 or number == 1:
        raise PolicyError(
            "the probability is not strictly between 0 and 1",
            field=field,
            expected="more than 0 and less than 1",
            actual=str(value),
        )
    if exact < MIN_PROBABILITY:
        raise PolicyError(
            "the delta is out of range",
            field=field,
            expected=f"at least {MIN_PROBABILITY}",
            actual=str(value),
        )
    return number


def count(value: object, field: str) -> int:
    """A positive integer.

    >>> count(200, "n")
    200

    :raises PolicyError: the value is not an integer, or is below 1
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PolicyError(
            "the value is not a positive integer", field=field, expected="an integer >= 1", actual=repr(value)
        )
    return value


def check_delta_split(delta_policy: Real, k_max: int, delta_acc: Real) -> None:
    """Check that delta_policy exceeds the total delta of k_max accounts. Decimals make the equality exact.

    >>> check_delta_split("1e-5", 4, "1e-6")

    :raises PolicyError: delta_policy <= k_max delta_acc, or one of them is not a number
    """
    total, spent = decimal(delta_policy, "delta_policy"), k_max * decimal(delta_acc, "delta_acc")
    if total <= spent:
        raise PolicyError(
            "delta_policy does not exceed k_max delta_acc, so composition has no delta left",
            field="delta_policy",
            expected=f"> {spent}",
            actual=str(total),
        )


def round_up(value: float, margin: float = 1e-9) -> float:
    """A bound as it is printed: rounded up to five significant digits.

    The relative margin is far above any difference between two machines' arithmetic and below the digits that
    are printed, so a provider and a verifier print the same number (but for values within 1e-9 of a
    multiple of the last digit).

    >>> round_up(3.141592)
    3.1416
    """
    if not math.isfinite(value) or value <= 0:
        return max(value, 0.0)
    return float(_UP.create_decimal(Decimal(value * (1 + margin))))


@overload
def text(value: float) -> str: ...
@overload
def text(value: None) -> None: ...
def text(value: float | None) -> str | None:
    """A real as policies and reports carry it: a plain decimal string, or `inf` where there is no bound.

    >>> text(4.0), text(None), text(float("inf"))
    ('4', None, 'inf')
    """
    if value is None:
        return None
    if math.isinf(value):
        return "inf"
    digits = Decimal(repr(value))
    plain = format(digits, "f") if 1e-6 <= abs(value) < 1e9 or value == 0 else format(digits, "e")
    return plain[:-2] if plain.endswith(".0") else plain
