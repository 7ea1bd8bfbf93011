"""The relevance threshold of an embedder, measured on public texts: the largest raw score that nearly every question
reaches with its own passage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_audit.commit.explore.samples import Sample

SHARE = 0.95
"""Share of questions whose own passage has to reach the threshold."""


@dataclass(frozen=True)
class Threshold:
    """One threshold and its effect.

    :param score: the threshold, a raw score
    :param own: share of questions whose own passage reaches it
    :param other: share of pairs of a question and a passage of another question that reach it
    """

    score: int
    own: float
    other: float


def measure(sample: Sample, share: float = SHARE) -> Threshold:
    """The largest threshold that the given share of questions reaches with its own passage.

    A question with several passages counts with the best of them. The method needs no noise, because the threshold is a
    property of the embedder.

    :param sample: public passages and questions with known answers
    :param share: in (0, 1]
    """
    scores = np.stack([sample.index.scores(query) for query in sample.queries])
    own = np.array([scores[i, [*places]].max() for i, places in enumerate(sample.relevant)])
    # The k-th largest own score, with k = share of the questions, rounded up.
    count = int(np.ceil(share * len(own)))
    score = max(1, int(np.sort(own)[::-1][count - 1]))
    return Threshold(score, float((own >= score).mean()), _others(scores, sample, score))


def _others(scores: npt.NDArray[np.int32], sample: Sample, score: int) -> float:
    """The share of passages of other questions that reach a score. Empty positions do not count."""
    others = np.broadcast_to(np.asarray(sample.index.rows).any(axis=1), scores.shape).copy()
    for i, places in enumerate(sample.relevant):
        others[i, [*places]] = False
    number = int(others.sum())
    return float((scores >= score)[others].sum() / number) if number else 0.0
