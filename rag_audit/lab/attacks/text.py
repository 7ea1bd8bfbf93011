"""Words of a text, and the similarity of two texts. This module does not depend on attacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:'[a-z]+)?|[^\sA-Za-z0-9]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
JOINERS = frozenset("-/")
"""The marks that join two parts into one fragmented word, such as `beta-blocker` (algorithm 2 of the paper on
masks)."""
_COMMON = """a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing don down during each few for from further had has have having
    he her here hers him his how i if in into is it its just may me might more most must my no nor not now of off
    on once only or other our out over own same shall she should so some such than that the their them then there
    these they this those through to too under until up us very was we were what when where which while who whom
    why will with would you your yes okay ok well doctor patient user system"""
STOP_WORDS = frozenset(_COMMON.split())
"""Words that say little of a document, the speakers' names of the dialogues among them."""


def tokens(text: str) -> list[str]:
    """Words and marks in the order of the text."""
    return _TOKEN.findall(text)


def words(text: str) -> list[str]:
    """Only the words, in lower case."""
    return [token.lower() for token in tokens(text) if token[0].isalnum()]


@lru_cache(1 << 12)
def words_of_document(text: str) -> tuple[str, ...]:
    """`words` of a frequently compared text: an attacked document, in every cell of a run."""
    return tuple(words(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, without empty ones."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def telling(text: str) -> list[str]:
    """The words that are no stop words and have at least three letters."""
    return [word for word in words(text) if len(word) > 2 and word not in STOP_WORDS]


def halves(text: str) -> tuple[str, str]:
    """A text split at a space into two parts with about the same number of words."""
    parts = text.split()
    middle = max(1, len(parts) // 2)
    return " ".join(parts[:middle]), " ".join(parts[middle:])


def grams(of: Sequence[str], size: int) -> set[tuple[str, ...]]:
    """The n-grams of a list of words."""
    return {tuple(of[i : i + size]) for i in range(len(of) - size + 1)}


def jaccard(document: str, text: str) -> float:
    """Shared words over all words of two texts; 0 where both are empty."""
    left, right = set(words_of_document(document)), set(words(text))
    return len(left & right) / len(left | right) if left | right else 0.0
