"""Figures in plain words, for readers without prior knowledge. Each function rounds to the provider's disadvantage.

`say` is the language of the words.
"""

from __future__ import annotations

import html
import math

from markupsafe import Markup

from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.report.strength import tier

KNOWN = (
    marked("The provider chose this policy with the help of its own documents; no bound covers this choice."),
    marked("operated by the provider, with a key that `rag-audit init` made beside the provider's key"),
)
"""Texts of other packages that a page shows in its language: a note of the verdict, and the relation of a pilot's
witnesses."""
_LARGE = 9
"""Minimum digits of a number that is written as a power of ten."""


def factor(eps: float, say: Say = PLAIN) -> str:
    """e to the epsilon, rounded up: the maximum factor by which odds change."""
    if eps > 700 / math.log10(math.e) or math.isinf(eps):
        return say.text("without any limit")
    digits = eps * math.log10(math.e)
    if digits >= _LARGE:
        return say.text("10 to the power %(digits)s", digits=math.ceil(digits))
    value = math.exp(eps)
    return say.number(f"{math.ceil(value * 100) / 100:.2f}" if value < 10 else f"{math.ceil(value):,}")


def belief(eps: float, say: Say = PLAIN) -> str:
    """The maximum change of even odds, as a clause."""
    if math.isinf(eps):
        return say.text("from even odds to certainty")
    sure = 1 / (1 + math.exp(-eps)) if eps < 700 else 1.0
    if sure <= 0.99:
        return say.text(
            "from even odds (50 in 100) to at most %(share)s in 100", share=math.ceil(100 * sure - 1e-9)
        )
    digits = eps * math.log10(math.e)
    wrong = (
        say.text("10 to the power %(digits)s", digits=math.ceil(digits))
        if digits >= _LARGE
        else say.number(f"{math.ceil(math.exp(eps)) + 1:,}")
    )
    return say.text(
        "from even odds (1 in 2 to be wrong) to a certainty that is wrong only 1 time in %(wrong)s",
        wrong=wrong,
    )


def strength(eps: float, say: Say = PLAIN) -> str:
    """The name for an epsilon of that size (`report.strength`)."""
    return {
        "strong": say.text("strong protection"),
        "moderate": say.text("moderate protection"),
        "weak": say.text("weak protection: a figure of this size promises little by itself"),
        "none": say.text("no protection"),
    }[tier(eps)]


def one_in(probability: float, say: Say = PLAIN) -> str:
    """A small probability as ``1 in 100,000``, rounded up."""
    if probability <= 0:
        return "0"
    if probability >= 0.5:
        return say.text("%(share)s in 100", share=say.number(f"{100 * probability:.3g}"))
    inverse = math.floor(1 / probability * (1 + 1e-9))
    if inverse < 10**_LARGE:
        return say.text("1 in %(inverse)s", inverse=inverse)
    return say.text("1 in 10 to the power %(digits)s", digits=math.floor(math.log10(inverse)))


def in_hundred(share: float, say: Say = PLAIN) -> str:
    """A share as ``52 in 100``, rounded up to three digits."""
    return say.text("%(share)s in 100", share=say.number(f"{_up(share):g}"))


def at_most(share: float, say: Say = PLAIN) -> str:
    """A share as ``52 %``, rounded up to three digits."""
    return say.number(f"{_up(share):g} %")


def _up(share: float) -> float:
    """A share in hundredths, rounded up: to tenths from 10 on and to hundredths below and near the whole."""
    parts = 10 if 0.1 <= share <= 0.99 else 100
    return min(math.ceil(100 * parts * share - 1e-9) / parts, 100.0)


def clip(text: str, limit: int) -> str:
    """The text, or its beginning with a note of its full length."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [{len(text):,} characters; see the report in JSON]"


def shortened(text: str, limit: int) -> str:
    """A text or markup of at most a number of letters, as `clip`; markup that is too long loses its elements."""
    if isinstance(text, Markup) and len(text) > limit:
        return clip(html.unescape(str(text.striptags())), limit)
    return clip(text, limit)


def sentence(text: str) -> str:
    """The text with a capital at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
