"""The default noises of an exploration."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit.commit.choose import DEFAULT_GAINS, DEFAULT_LATTICE
from rag_audit.commit.explore.simulate import Noise
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder

# sigma/Delta from 0.08 to 32 in factors of about two. Components of one size have the longest support for their
# sigma, so that small noise has a finite bound at all.
DEFAULT_MECHANISMS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((1, 1, 1, 1, 1, 1), 512),
    ((1, 1, 1, 1, 1, 1), 256),
    ((1, 1, 1, 1), 128),
    ((1, 1, 1, 1), 64),
    ((1, 8), 128),
    ((1, 8), 64),
    ((1, 8), 32),
    ((1, 8, 64), 128),
    ((1, 8, 64), 64),
    ((1, 8, 64), 32),
)


def grid(
    gains: Sequence[tuple[int, ...]],
    lattices: Sequence[int],
    ranges: Sequence[tuple[int, int]],
    embedder: Embedder,
    own: Noise | None,
) -> list[Noise]:
    """The noises of a grid: all gains with all lattices, or the ladder, each with every score window, and a policy's
    own noise.
    """
    pairs = [(g, r) for g in gains or (DEFAULT_GAINS,) for r in lattices or (DEFAULT_LATTICE,)]
    result = [] if own is None else [own]
    for g, r in pairs if gains or lattices else DEFAULT_MECHANISMS:
        default = ScoreWindow(*embedder.score_window, r) if own is None else own.window
        for lo, hi in ranges or [(default.lo, default.hi)]:
            result.append(Noise(g, ScoreWindow(lo, hi, r)))
    return result
