"""A passage with the values that a generator looks up in it, computed once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from rag_audit.lab.attacks.text import grams, tokens


@dataclass(frozen=True, eq=False)
class Passage:
    """A text that retrieval returned to a generator."""

    text: str

    @cached_property
    def tokens(self) -> list[str]:
        """Words and marks in the order of the text."""
        return tokens(self.text)

    @cached_property
    def small(self) -> list[str]:
        """The same in small letters."""
        return [token.lower() for token in self.tokens]

    @cached_property
    def words(self) -> list[str]:
        """Only the words, in lower case."""
        return [token for token in self.small if token[0].isalnum()]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The places of each word in `words`."""
        result: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            result.setdefault(word, []).append(place)
        return result

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word occurs."""
        return Counter(self.words)

    @cached_property
    def pairs(self) -> set[tuple[str, ...]]:
        """The bigrams of its words."""
        return grams(self.words, 2)

    @cached_property
    def triples(self) -> set[tuple[str, ...]]:
        """The trigrams of its words."""
        return grams(self.words, 3)
