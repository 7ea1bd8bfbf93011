"""The number of documents that the accounts of a window read (docs/accounting.md, "Exposure").

Honest accounts ask random questions of a collection. `documents_read` counts the distinct documents with a returned
text, averaged over simulated windows; a document fills one position or several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit.commit.explore.bernoulli import BernoulliMechanism
from rag_audit.commit.explore.samples import Sample
from rag_audit.commit.explore.simulate import Noise, base_draws, weighted_sum
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

Scores = npt.NDArray[np.int32]
Answer = Callable[[Scores], Iterable[int]]
"""The positions whose texts an account receives for a question with these raw scores."""
Window = Callable[[np.random.Generator], Answer]
"""The answers of one window; the generator draws what a window draws once."""


def exact(top_k: int) -> Window:
    """Exact retrieval."""
    return lambda random: lambda scores: np.argsort(-scores, kind="stable")[:top_k].tolist()


def noised(noise: Noise, top_k: int) -> Window:
    """Noise on every score."""

    def window(random: np.random.Generator) -> Answer:
        def answer(scores: Scores) -> Sequence[int]:
            words = random.integers(0, 1 << 64, len(noise.gains) * len(scores), np.uint64)
            z = weighted_sum(noise.gains, base_draws(words).reshape(len(noise.gains), -1))
            lo, hi, lattice = noise.window.lo, noise.window.hi, noise.window.lattice
            return _native.noised_top_k(scores.tobytes(), lo, hi, lattice, z.tobytes(), top_k)

        return answer

    return window


def with_bits(mechanism: BernoulliMechanism, top_k: int) -> Window:
    """Sampling or pooled listing."""

    def window(random: np.random.Generator) -> Answer:
        kept: npt.NDArray[np.bool_] | None = None
        listed = np.zeros(0, np.bool_)  # one set of listed documents for all accounts

        def answer(scores: Scores) -> Sequence[int]:
            nonlocal kept, listed
            if kept is None:
                kept = random.random(len(scores)) < mechanism.sampling.keep / PROBABILITY_RANGE
                listed = np.zeros(len(scores), np.bool_)
            positions: Sequence[int] = mechanism.answer(scores, kept, listed, random, top_k).tolist()
            return positions

        return answer

    return window


def documents_read(
    sample: Sample,
    window: Window,
    sizes: Sequence[int],
    *,
    queries: int,
    windows: int,
    seed: int,
    document_of: Mapping[int, int] | None = None,
) -> dict[int, float]:
    """The mean number of documents that the first k accounts of a window read, for each size k of `sizes`.

    :param queries: questions of an account, drawn with replacement
    :param document_of: the document of each position with a text; by default each position is a document
    """
    document_of = document_of or {position: position for position in sample.index.positions}
    totals = dict.fromkeys(sizes, 0)
    for number in range(windows):
        random = np.random.default_rng([seed, number])
        answer, read = window(random), set[int]()
        for k in range(1, max(sizes) + 1):
            for question in random.integers(0, len(sample.queries), queries):
                read.update(answer(sample.index.scores(sample.queries[question])))
            if k in totals:
                totals[k] += len({document_of[p] for p in read if p in document_of})
    return {k: total / windows for k, total in totals.items()}
