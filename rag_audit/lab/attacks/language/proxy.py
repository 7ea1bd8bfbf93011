"""A language model as the attacker's proxy: it ranks the words of a text as the papers' GPT-2 XL does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from rag_audit.lab.attacks.language.model import LanguageModel, Scores, log_probabilities, within
from rag_audit.lab.attacks.proxy import RankOf


class LanguageProxy:
    """Ranks and probabilities of words after the whole text before them."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = f"language model {model.label}"

    def ranks(self, text: str) -> RankOf:
        """A function that ranks words in the places of a text. A word of the text has the largest rank of its tokens;
        another word (a correction) has the rank of its first token in the place.

        :raises AttackError: the text is longer than the model's context
        """
        read = _Read(self._model, text)

        def rank(start: int, word: str, before: str | None) -> int:
            places = read.places(start, len(word))
            if text[start : start + len(word)].lower() == word.lower():
                return max(read.rank(place, read.tokens[place]) for place in places)
            space = " " if start and text[start - 1].isspace() else ""
            return read.rank(places[0], self._model.tokens(space + word)[0])

        return rank

    def log_probabilities(self, of: Sequence[str]) -> list[float]:
        """ln p of each word after all words before it.

        :raises AttackError: the words are longer than the model's context
        """
        text = " ".join(of)
        read = _Read(self._model, text)
        starts = [0, *accumulate(len(word) + 1 for word in of)]
        return [
            sum(read.log_probability(place) for place in read.places(start, len(word)))
            for start, word in zip(starts, of, strict=False)
        ]


class _Read:
    """A text with the model's scores at each of its tokens."""

    def __init__(self, model: LanguageModel, text: str) -> None:
        self._text = text
        self.tokens = model.tokens(text)
        before = model.tokens(model.marks[0], special=True) if model.marks[0] else []
        before = before or self.tokens[:1]
        within(model, len(before) + len(self.tokens), "the document")
        read = [*before, *self.tokens]
        self._scores: Scores = model.scores(read[:-1], len(self.tokens))
        pieces = [model.piece(token) for token in self.tokens]
        # Some vocabularies put a space before the first word.
        extra = len(b"".join(pieces)) - len(text.encode())
        self._starts = [at - max(0, extra) for at in accumulate(map(len, pieces), initial=0)]

    def places(self, start: int, length: int) -> list[int]:
        """The tokens that write the characters from a place on; at least one."""
        first = len(self._text[:start].encode())
        last = first + len(self._text[start : start + length].encode())
        found = [
            place
            for place in range(len(self.tokens))
            if self._starts[place] < last and self._starts[place + 1] > first
        ]
        return found or [len(self.tokens) - 1]

    def rank(self, place: int, token: int) -> int:
        """How many tokens are likelier in a place, plus one."""
        row = self._scores[place]
        return 1 + int(np.count_nonzero(row > row[token]))

    def log_probability(self, place: int) -> float:
        """ln p of the text's own token."""
        return float(log_probabilities(self._scores[place])[self.tokens[place]])
