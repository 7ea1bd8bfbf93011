"""Noise: a provider draws discrete Gaussian noise for every position of a slot (docs/relation.md, "Noise")."""

from __future__ import annotations

from rag_audit.retrieval.engine import Int32Array, draw_noise
from rag_audit.retrieval.serving.base import Ranking


class NoiseServing(Ranking):
    """Ranks of noised scores."""

    draws = True

    def draw(self, kappa: int, capacity: int) -> Int32Array:
        """The noise of a slot, int32, shape (capacity,)."""
        return draw_noise(kappa, capacity, self.mechanism.gains)


SERVING = NoiseServing
