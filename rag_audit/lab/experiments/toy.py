"""The paper's toy corpus: random unit vectors, one target and its decoy, seen by both mechanisms."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rag_audit.lab.experiments.draws import Floats
from rag_audit.relation.scores import MAX_COMPONENT, ScoreWindow
from rag_audit.retrieval.engine import Int8Array, TenantIndex

BACKGROUND = 50
DIMENSION = 32
SCALE = Fraction(round(1000 * 3 / math.sqrt(DIMENSION)), 1000)
"""One global scale, three standard deviations of a component, as the project's embedders have."""
_SEED = 20260531
"""The corpus is the same in every cell and run. As in the paper, trials differ only in their noise."""


@dataclass(frozen=True, eq=False)
class Toy:
    """A probe that is the target's own vector, scores without noise, and the same corpus as the engine stores it.

    :param background: the other documents' cosines to the probe, shape (50,)
    :param decoy: the decoy's cosine to the probe; the target's is 1
    :param query: the probe in int4
    :param rows: int4 vectors of decoy (row 0) and background
    """

    background: Floats
    decoy: float
    query: Int8Array
    rows: Int8Array
    scale: Fraction

    def index(self, *, inside: bool) -> TenantIndex:
        """The engine's index in the world with the target, or in the one with the decoy, at position 0."""
        rows = self.rows.copy()
        if inside:
            rows[0] = self.query
        return TenantIndex(rows, tuple(range(len(rows))))

    def window(self, lattice: int) -> ScoreWindow:
        """The policy's score window, which is the default of the embedder's scale."""
        return ScoreWindow.for_scale(self.scale, lattice)

    def lattice_scores(self, lattice: int, *, inside: bool) -> list[int]:
        """The engine's lattice scores, with the target's or the decoy's first."""
        window = self.window(lattice)
        return [window.quantise(int(s)) for s in self.index(inside=inside).scores(self.query)]


@lru_cache(maxsize=1)
def toy() -> Toy:
    """The corpus. The decoy is orthogonal to the probe, so that the gap is 1, as in Section 3.5's construction."""
    rng = np.random.default_rng(_SEED)
    unit = rng.standard_normal((BACKGROUND + 2, DIMENSION))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    probe, decoy = unit[0], unit[1] - (unit[1] @ unit[0]) * unit[0]
    decoy /= np.linalg.norm(decoy)
    return Toy(unit[2:] @ probe, 0.0, int4(probe), int4(np.vstack([decoy, unit[2:]])), SCALE)


def int4(vectors: npt.NDArray[np.floating]) -> Int8Array:
    """Unit vectors of the toy's dimension as the engine stores them."""
    scaled = np.rint(vectors * (MAX_COMPONENT / float(SCALE)))
    return np.asarray(np.clip(scaled, -MAX_COMPONENT, MAX_COMPONENT), np.int8)


def counted(scores: list[int]) -> dict[int, int]:
    """How many positions have each lattice score."""
    return dict(Counter(scores))
