"""Paraphrase as a defence: a query is rewritten before retrieval, so that it is less like a stored text.

The papers ask a chat model. Without one, a seed decides which words of each sentence are dropped, and in which order
its two halves appear. A static embedder can only notice these aspects of a paraphrase, and other words.
"""

from __future__ import annotations

import hashlib
from random import Random

from rag_audit.lab.attacks.text import STOP_WORDS, sentences

DROPPED = 0.35
"""The share of telling words that is dropped."""


def paraphrase(text: str) -> str:
    """The query with a third of its telling words dropped and the halves of its sentences swapped; a pure function."""
    random = Random(hashlib.sha256(text.encode()).digest())
    out = []
    for sentence in sentences(text):
        kept = [w for w in sentence.split() if w.lower() in STOP_WORDS or random.random() >= DROPPED]
        middle = len(kept) // 2
        out.append(" ".join(kept[middle:] + kept[:middle]))
    return " ".join(part for part in out if part) or text
