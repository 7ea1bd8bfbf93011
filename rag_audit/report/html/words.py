"""Figures in plain words, for readers without prior knowledge. Each function rounds to the provider's disadvantage."""

from __future__ import annotations

import math

from rag_audit.report.strength import tier

_LARGE = 9
"""Minimum digits of a number that is written as a power of ten."""


def factor(eps: float) -> str:
    """e to the epsilon, rounded up: the maximum factor by which odds change."""
    if eps > 700 / math.log10(math.e) or math.isinf(eps):
        return "without any limit"
    digits = eps * math.log10(math.e)
    if digits >= _LARGE:
        return f"10 to the power {math.ceil(digits)}"
    value = math.exp(eps)
    return f"{math.ceil(value * 100) / 100:.2f}" if value < 10 else f"{math.ceil(value):,}"


def belief(eps: float) -> str:
    """The maximum change of even odds, as a clause."""
    if math.isinf(eps):
        return "from even odds to certainty"
    sure = 1 / (1 + math.exp(-eps)) if eps < 700 else 1.0
    if sure <= 0.99:
        return f"from even odds (50 in 100) to at most {math.ceil(100 * sure - 1e-9)} in 100"
    digits = eps * math.log10(math.e)
    wrong = (
        f"10 to the power {math.ceil(digits)}" if digits >= _LARGE else f"{math.ceil(math.exp(eps)) + 1:,}"
    )
    return f"from even odds (1 in 2 to be wrong) to a certainty that is wrong only 1 time in {wrong}"


def strength(eps: float) -> str:
    """The name for an epsilon of that size (`report.strength`)."""
    level = tier(eps)
    if level == "none":
        return "no protection"
    return f"{level} protection" + (
        ": a figure of this size promises little by itself" if level == "weak" else ""
    )


def one_in(probability: float) -> str:
    """A small probability as ``1 in 100,000``, rounded up."""
    if probability <= 0:
        return "0"
    if probability >= 0.5:
        return f"{100 * probability:.3g} in 100"
    inverse = math.floor(1 / probability * (1 + 1e-9))
    return (
        f"1 in {inverse:,}"
        if inverse < 10**_LARGE
        else f"1 in 10 to the power {math.floor(math.log10(inverse))}"
    )


def in_hundred(share: float) -> str:
    """A share as ``52 in 100``, rounded up to three digits."""
    return f"{_up(share):g} in 100"


def at_most(share: float) -> str:
    """A share as ``52 %``, rounded up to three digits."""
    return f"{_up(share):g} %"


def _up(share: float) -> float:
    """A share in hundredths, rounded up: to tenths from 10 on and to hundredths below and near the whole."""
    parts = 10 if 0.1 <= share <= 0.99 else 100
    return min(math.ceil(100 * parts * share - 1e-9) / parts, 100.0)


def clip(text: str, limit: int) -> str:
    """The text, or its beginning with a note of its full length."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [{len(text):,} characters; see the report in JSON]"


def sentence(text: str) -> str:
    """The text with a capital at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
