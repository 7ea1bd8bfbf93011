"""The attacker's proxy model, its baseline of token statistics, and a speller that knows the same words.

The papers use GPT-2 XL and a trained corrector. `LanguageProxy` (`language/proxy.py`) is a language model in their
place. The baseline is an interpolated trigram model of texts that the attacker owns, and its name states this. A proxy
ranks a word by the number of likelier words in its place; the masks need no other function of a language model.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Protocol, TypeAlias

from rag_audit.lab.attacks.text import words

PROXY_NAME = "token-statistics"
PROXY_LABEL = "trigram baseline (token statistics of the attacker's own texts)"
RankOf: TypeAlias = Callable[[int, str, str | None], int]
"""The rank of a word in a place of a text, 1 for the likeliest: from the place of its first character, the word, and
the word before it."""
_WEIGHTS = (0.55, 0.3, 0.14, 0.01)
"""Shares of trigram, bigram, unigram and a uniform distribution."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Proxy(Protocol):
    """Which words of a text are hard to guess."""

    name: str
    """Its name in a report."""

    def ranks(self, text: str) -> RankOf:
        """A function that ranks words in the places of a text."""

    def log_probabilities(self, of: Sequence[str]) -> list[float]:
        """ln of each word's probability after those before it."""


class TokenStatistics:
    """An interpolated trigram model of the attacker's own texts.

    :param texts: texts that the attacker owns; they need not be in the service
    """

    name: str = PROXY_LABEL

    def __init__(self, texts: Iterable[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._pairs: dict[str, Counter[str]] = defaultdict(Counter)
        self._triples: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for text in texts:
            w = words(text)
            self.counts.update(w)
            for a, b in pairwise(w):
                self._pairs[a][b] += 1
            for a, b, c in zip(w, w[1:], w[2:], strict=False):
                self._triples[a, b][c] += 1
        self.total = sum(self.counts.values())
        self.vocabulary = [word for word, _ in self.counts.most_common()]
        self._places = {word: place for place, word in enumerate(self.vocabulary, 1)}
        self._pair_totals = {a: sum(c.values()) for a, c in self._pairs.items()}
        self._triple_totals = {ab: sum(c.values()) for ab, c in self._triples.items()}
        self._ranked: dict[str, dict[str, int]] = {}
        self._cumulative: dict[float, list[float]] = {}

    def probability(self, word: str, before: Sequence[str]) -> float:
        """The probability of a word after others, above 0."""
        tri, bi, uni, flat = _WEIGHTS
        p = flat / (len(self.vocabulary) + 1) + uni * self.counts[word] / max(1, self.total)
        if before and (total := self._pair_totals.get(before[-1], 0)):
            p += bi * self._pairs[before[-1]][word] / total
        else:
            p += bi * self.counts[word] / max(1, self.total)
        if len(before) > 1 and (total := self._triple_totals.get((before[-2], before[-1]), 0)):
            return p + tri * self._triples[before[-2], before[-1]][word] / total
        return p * (1 + tri / (1 - tri))

    def log_probabilities(self, of: Sequence[str]) -> list[float]:
        """ln of each word's probability after those before it."""
        return [math.log(self.probability(w, of[max(0, i - 2) : i])) for i, w in enumerate(of)]

    def perplexity(self, of: Sequence[str]) -> float:
        """exp of the average of -ln p; 1 for no words."""
        logs = self.log_probabilities(of)
        return math.exp(-sum(logs) / len(logs)) if logs else 1.0

    def rank(self, word: str, before: str | None) -> int:
        """How many words are likelier than this one after the word before it, plus one: 1 for the likeliest.

        Words that followed it in the texts come first, then all others by their frequency.
        """
        followers = self._followers(before) if before is not None else {}
        place = followers.get(word)
        return place if place is not None else len(followers) + self._places.get(word, len(self._places) + 1)

    def ranks(self, text: str) -> RankOf:
        """`rank`, which needs only the word before a place."""
        return lambda _, word, before: self.rank(word, before)

    def _followers(self, before: str) -> dict[str, int]:
        if before not in self._ranked:
            common = self._pairs[before].most_common() if before in self._pairs else []
            self._ranked[before] = {word: place for place, (word, _) in enumerate(common, 1)}
        return self._ranked[before]

    def unlikely_words(
        self, random: Random, count: int, before: Sequence[str], perplexity: float
    ) -> list[str]:
        """Words with a perplexity within a tenth of a target, by rejection; the nearest of 200 draws if none is that
        near.

        :param perplexity: the target, such as 2,000 for words that do not follow from each other
        """
        best, distance = [""], math.inf
        for attempt in range(200):
            flat = (attempt % 20) / 19  # from the frequent words to all alike
            weights = self._weights(round(1 - flat, 3))
            drawn = random.choices(self.vocabulary, cum_weights=weights, k=count)
            result = abs(math.log(self.perplexity([*before[-2:], *drawn]) / perplexity))
            if result < distance:
                best, distance = drawn, result
            if distance <= math.log(1.1):
                break
        return best

    def _weights(self, exponent: float) -> list[float]:
        if exponent not in self._cumulative:
            weights = (float(self.counts[word]) ** exponent for word in self.vocabulary)
            self._cumulative[exponent] = list(accumulate(weights))
        return self._cumulative[exponent]


class Speller:
    """Corrects a word that occurs in no text to the commonest known word at distance one (Norvig's corrector)."""

    def __init__(self, known: TokenStatistics, minimum: int = 5) -> None:
        self._counts = known.counts
        self._least = minimum

    def correct(self, word: str) -> str | None:
        """The correction of a misspelled word, or None if the word is known or short, or no known word is near."""
        w = word.lower()
        if len(w) < 5 or not w.isalpha() or self._counts[w] > 1:
            return None
        splits = [(w[:i], w[i:]) for i in range(len(w) + 1)]
        near = {a + b[1:] for a, b in splits if b}
        near |= {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
        near |= {a + c + b[1:] for a, b in splits if b for c in _LETTERS}
        near |= {a + c + b for a, b in splits for c in _LETTERS}
        best = max(near - {w}, key=lambda n: (self._counts[n], n))
        return best if self._counts[best] >= self._least else None
