"""Attacks that ask for a document's second half: S2MIA in three forms, and Min-k%."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from rag_audit.lab.attacks.interface import (
    AttackError,
    Continue,
    Floats,
    Replies,
    Reply,
    Scorer,
    Task,
    Tasks,
    Tools,
)
from rag_audit.lab.attacks.methods.common import FirstFeature, learn, least_average, logs_of
from rag_audit.lab.attacks.text import halves

MAX_WORDS = 60
LOWEST = 0.2
"""k of Min-k%: the paper takes the best of 1 to 20 %."""


class _Halves(FirstFeature):
    """Asks for the rest of the document from its first half."""

    paper: ClassVar[str] = "S2MIA (baseline of papers 000, 002 and 004)"

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """The first half, to be continued."""
        first, second = halves(text)
        if len(second.split()) < 3:
            raise AttackError("the document is too short to be halved", expected="six words")
        return [Continue(first, min(MAX_WORDS, len(second.split())), probabilities=True)]


def similarity(text: str, replies: Sequence[Reply], tools: Tools) -> float:
    """The average cosine between the second half and the replies."""
    vectors = tools.embed([halves(text)[1], *(r.text for r in replies)])
    return float((vectors[1:] @ vectors[0]).mean())


def perplexity(replies: Sequence[Reply]) -> float:
    """ln of the perplexity of the replies."""
    logs = logs_of(replies)
    return -sum(logs) / max(1, len(logs))


class S2miaSimilarity(_Halves):
    """Compares the answer with the document's second half."""

    name: ClassVar[str] = "s2mia-s"
    about: ClassVar[str] = "similarity of the answer to the document's second half"
    embeds: ClassVar[bool] = True

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The cosine similarity."""
        return [similarity(text, replies, tools)]


class S2miaPerplexity(_Halves):
    """The perplexity of the answer, without other features."""

    name: ClassVar[str] = "s2mia-p"
    about: ClassVar[str] = "perplexity of the answer"
    probabilities: ClassVar[bool] = True

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """Minus ln of the perplexity."""
        return [-perplexity(replies)]


class S2miaThreshold(_Halves):
    """Similarity above one threshold and perplexity below another, chosen on documents of known membership."""

    name: ClassVar[str] = "s2mia-t"
    about: ClassVar[str] = "thresholds on similarity and perplexity"
    probabilities: ClassVar[bool] = True
    embeds: ClassVar[bool] = True
    learns: ClassVar[str] = "reference"

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """Similarity, and minus ln of the perplexity."""
        return [similarity(text, replies, tools), -perplexity(replies)]

    def fit(self, features: Floats, labels: Floats) -> Scorer:
        """The pair of thresholds with the best accuracy; a document's score is the lesser of its two distances."""
        grid = [np.unique(np.quantile(features[:, j], np.linspace(0, 1, 25))) for j in (0, 1)]
        spread = np.maximum(features.std(axis=0), 1e-9)
        best, chosen = -math.inf, (0.0, 0.0)
        for a in grid[0]:
            for b in grid[1]:
                said = (features[:, 0] >= a) & (features[:, 1] >= b)
                right = float((said == (labels > 0)).mean())
                if right > best:
                    best, chosen = right, (float(a), float(b))
        return lambda actual: np.min((actual - np.array(chosen)) / spread, axis=1)


class S2miaModel(S2miaThreshold):
    """A classifier of similarity and perplexity, learnt on documents of known membership."""

    name: ClassVar[str] = "s2mia-m"
    about: ClassVar[str] = "a classifier of similarity and perplexity"

    def fit(self, features: Floats, labels: Floats) -> Scorer:
        """A random forest where the paper has XGBoost."""
        return learn(features, labels, forest=True)


class MinK(_Halves):
    """The average of an answer's least likely fifth."""

    name: ClassVar[str] = "min-k"
    paper: ClassVar[str] = "Min-k% Prob (baseline of paper 000)"
    about: ClassVar[str] = "the least likely words of the answer"
    probabilities: ClassVar[bool] = True

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The average of the lowest log-probabilities."""
        return [least_average(logs_of(replies), LOWEST)]
