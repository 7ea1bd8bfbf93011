"""The relevance of a returned passage to the account's own question: a threshold of the policy, and a score band.

A mechanism with noise, or with random bits, also returns passages that have nothing to do with the question. The
account knows the question and the returned text, so it computes their score itself, with the embedder of the window.
The result is a function of these two texts only. It therefore reveals nothing about the index beyond the answer
(post-processing of a differentially private result).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rag_audit.models.requests import AnsweredDocument
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.embedders.base import Vectors

BANDS = 10
"""Number of score bands from cosine 0 to 1; band k begins at the cosine k/10."""


def relevant(
    documents: Sequence[AnsweredDocument], question: str, embedder: Embedder, threshold: int
) -> list[tuple[AnsweredDocument, int]]:
    """The passages that reach the policy's relevance threshold, in the order of the answer, each with its score band.

    A passage that the embedder cannot embed is not relevant.

    :param threshold: minimum raw score, the product of the int4 vectors of question and passage
    :raises NothingToEmbed: the question has no direction
    """
    query = embedder.embed_query(question)
    result = []
    for document in documents:
        try:
            passage = embedder.embed_documents([document.text])[0]
        except NothingToEmbed:
            continue
        if raw_score(query, passage) >= threshold:
            result.append((document, band(query, passage)))
    return result


def raw_score(query: Vectors, passage: Vectors) -> int:
    """The raw score of a passage: the exact product of two int4 vectors of shape (d,).

    >>> raw_score(np.array([1, -2], np.int8), np.array([3, 4], np.int8))
    -5
    """
    return int(query.astype(np.int64) @ passage.astype(np.int64))


def band(query: Vectors, passage: Vectors) -> int:
    """The score band, 0 to 10: the number of tenths in the cosine of two int4 vectors, 0 for a negative cosine.

    Integer arithmetic decides the edge, so the band does not depend on the machine.

    >>> band(np.array([3, 4], np.int8), np.array([3, 4], np.int8))
    10
    >>> band(np.array([1, 0], np.int8), np.array([1, 1], np.int8))
    7
    """
    score = max(raw_score(query, passage), 0)
    norms = raw_score(query, query) * raw_score(passage, passage)
    return 0 if norms == 0 else math.isqrt(BANDS**2 * score**2 // norms)
