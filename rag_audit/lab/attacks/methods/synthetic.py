"""Scores of the paper on canaries and synthetic text, on the answers that a document draws from a service."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from rag_audit.lab.attacks.interface import AttackError, Continue, Replies, Reply, Task, Tasks, Tools
from rag_audit.lab.attacks.methods.common import FirstFeature
from rag_audit.lab.attacks.text import jaccard, words, words_of_document

CUTS = (0.25, 0.5, 0.75)
"""Number of places of the document at which its continuation is requested."""
MAX_WORDS = 60
BEST = 2
"""k: number of answers that are most similar to the document; their similarities are averaged."""
_PAPER = "Canaries and data-based scores (paper 003)"


class _Continuations(FirstFeature):
    """Asks for continuations from several places; the answers are the synthetic text that is scored."""

    paper: ClassVar[str] = _PAPER

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """Three beginnings of different lengths."""
        parts = text.split()
        if len(parts) < 8:
            raise AttackError("the document is too short to be continued", expected="eight words")
        return [Continue(" ".join(parts[: int(cut * len(parts))]), MAX_WORDS) for cut in CUTS]


def ngram_score(text: str, replies: Sequence[Reply]) -> float:
    """ln of the bigram model's probability of the document per word, fitted on the answers with add-one smoothing."""
    pairs: Counter[tuple[str, str]] = Counter()
    starts: Counter[str] = Counter()
    for reply in replies:
        w = words(reply.text)
        pairs.update(pairwise(w))
        starts.update(w[:-1])
    of = words_of_document(text)
    v = len(starts.keys() | set(of))
    steps = list(pairwise(of))
    return sum(math.log((pairs[s] + 1) / (starts[s[0]] + v)) for s in steps) / max(1, len(steps))


class NGramScore(_Continuations):
    """The probability of the document under a bigram model of the answers."""

    name: ClassVar[str] = "ngram"
    about: ClassVar[str] = "probability of the document under a bigram model of the answers"

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """ln of the probability per word."""
        return [ngram_score(text, replies)]


class JaccardScore(_Continuations):
    """The Jaccard similarity of the document to the answers most like it."""

    name: ClassVar[str] = "jaccard"
    about: ClassVar[str] = "shared words of the document and the answers"

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The average of the best similarities."""
        return [_mean_of_best([jaccard(text, r.text) for r in replies])]


class EmbeddingScore(_Continuations):
    """The cosine similarity of the document to the answers most like it."""

    name: ClassVar[str] = "embedding"
    about: ClassVar[str] = "cosine of the document and the answers"
    embeds: ClassVar[bool] = True

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The average of the best similarities."""
        vectors = tools.embed([text, *(r.text for r in replies)])
        return [_mean_of_best([float(x) for x in vectors[1:] @ vectors[0]])]


class Rmia(_Continuations):
    """The n-gram score relative to the score at services of the attacker's own without the document."""

    name: ClassVar[str] = "rmia"
    about: ClassVar[str] = "the n-gram score relative to shadow services without the document"
    learns: ClassVar[str] = "without"

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """ln of the ratio to the average over the reference services; without them the n-gram score itself."""
        result, others = ngram_score(text, replies), tools.reference.get(text)
        return [result - math.log(sum(map(math.exp, others)) / len(others)) if others else result]


def _mean_of_best(values: Sequence[float]) -> float:
    best = sorted(values, reverse=True)[:BEST]
    return sum(best) / len(best)
