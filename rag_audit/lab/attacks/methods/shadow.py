"""S-RAG: a shadow service teaches a classifier how probable next words are where the document is there."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from rag_audit.lab.attacks.interface import (
    AttackError,
    Floats,
    NextWord,
    Replies,
    Scorer,
    Task,
    Tasks,
    Tools,
)
from rag_audit.lab.attacks.methods.common import learn, logs_of
from rag_audit.lab.attacks.text import words

SEGMENTS = 6
"""Words of the second half that are asked for, the hardest first; the paper takes one in k of all."""
INTERVALS = 10
"""m: number of intervals of 0..1. Their counts are a document's features."""


class ShadowAudit:
    """Asks for the hardest next words of the second half, and classifies the distribution of their probabilities."""

    name: ClassVar[str] = "s-rag"
    paper: ClassVar[str] = "S-RAG (paper 002)"
    about: ClassVar[str] = "next-word probabilities, classified after a shadow service"
    probabilities: ClassVar[bool] = True
    embeds: ClassVar[bool] = False
    learns: ClassVar[str] = "shadow"

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """The text up to each of the hardest words of its second half."""
        w = words(text)
        middle = len(w) // 2
        if len(w) - middle < 3:
            raise AttackError("the document is too short to be halved", expected="six words")
        logs = tools.proxy.log_probabilities(w)[middle:]
        order = np.argsort(np.array(logs), kind="stable")[:SEGMENTS]
        return [NextWord(" ".join(w[: middle + int(i)]), w[middle + int(i)]) for i in sorted(order)]

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The share of probabilities in each interval."""
        result = [min(INTERVALS - 1, int(INTERVALS * math.exp(min(0.0, x)))) for x in logs_of(replies)]
        return [result.count(j) / len(result) for j in range(INTERVALS)]

    def fit(self, features: Floats, labels: Floats) -> Scorer:
        """A random forest where the paper has AutoGluon."""
        return learn(features, labels, forest=True)
