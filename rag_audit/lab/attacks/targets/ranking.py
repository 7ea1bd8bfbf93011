"""Selection under a mechanism and a defence, from a query's raw scores, with draws that a seed repeats.

The lattice, the order and the alias table are the engine's; the draws come from numpy's PCG64 instead of a window's
committed seed, as in `commit.explore`, so that a hundred thousand answers take seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit.commit.explore.coins import RandomisedList, SampledTopK
from rag_audit.commit.explore.simulate import Noise, base_draws, weighted_sum
from rag_audit.lab.attacks.targets.mechanisms import Mechanism, Plain
from rag_audit.relation.coins import COIN_RANGE

Ints: TypeAlias = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.bool_]
Hiding = Literal["none", "plain", "noised"]
"""Whether Mirabel hides a position, and whether it looks at exact scores or at those with noise."""
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Selected:
    """The positions of an answer, best first.

    :param hidden: the position that Mirabel hid, or None
    """

    positions: tuple[int, ...]
    hidden: int | None = None


def gumbel_threshold(values: npt.NDArray[np.float64], significance: float = SIGNIFICANCE) -> float:
    """Mirabel's threshold on the largest similarity (its algorithm 1). Mean and deviation are computed from all values
    except the largest; n is the number of values.

    :param values: similarities of the documents to a query, at least three
    """
    n = len(values)
    rest = np.delete(values, int(np.argmax(values)))
    mean, deviation, root = float(rest.mean()), float(rest.std()), math.sqrt(2 * math.log(n))
    return mean + deviation * root - math.log(-math.log1p(-significance)) * deviation / root


@dataclass(frozen=True, eq=False)
class Ranking:
    """Selects positions as a tenant's engine does.

    :param filled: the positions with documents; Mirabel compares only these
    """

    mechanism: Mechanism
    capacity: int
    filled: npt.NDArray[np.intp]
    top_k: int
    hiding: Hiding
    seed: int

    @cached_property
    def silent(self) -> Ints:
        """No noise."""
        return np.zeros(self.capacity, np.int32)

    def window(self, *name: int) -> Window:
        """A fresh window of the service, with a sample and each account's disclosed set.

        :param name: numbers that name the window; equal names draw equally
        """
        return Window(self, np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, *name]))))


class Window:
    """One window: its draws, in the order of its queries."""

    def __init__(self, ranking: Ranking, random: np.random.Generator) -> None:
        self._r = ranking
        self._random = random
        self._kept: Bits | None = None
        self._held: dict[int, Bits] = {}
        if isinstance(ranking.mechanism, SampledTopK | RandomisedList):
            self._kept = random.random(ranking.capacity) < ranking.mechanism.sampling.keep / COIN_RANGE

    def select(self, scores: Ints, account: int, read: Ints | None = None) -> Selected:
        """The positions that answer one query of an account.

        :param scores: the raw score of every position, shape (capacity,), int32
        :param read: the scores that an account uses to rank its received texts; `scores` by default
        """
        r, m = self._r, self._r.mechanism
        if isinstance(m, RandomisedList):
            return self._list(scores, m, account, scores if read is None else read)
        if self._kept is not None:
            scores = scores * self._kept
        noise = self._noise(m) if isinstance(m, Noise) else r.silent
        hidden = self._hide(scores, noise, m)
        wanted = r.top_k + (hidden is not None)
        if isinstance(m, Noise):
            lo, hi, lattice = m.window.lo, m.window.hi, m.window.lattice
            found = _native.noised_top_k(scores.tobytes(), lo, hi, lattice, noise.tobytes(), wanted)
        else:
            found = _first(scores, wanted)
        return Selected(tuple([p for p in found if p != hidden][: r.top_k]), hidden)

    def _list(self, scores: Ints, m: RandomisedList, account: int, read: Ints) -> Selected:
        capacity = self._r.capacity
        held = self._held.setdefault(account, np.zeros(capacity, np.bool_))
        chance = self._random.random(capacity) < m.sampling.chance / COIN_RANGE
        assert self._kept is not None
        listed = np.flatnonzero(chance | ((scores >= m.threshold) & self._kept & ~held))[: m.most]
        held[listed] = True
        # An account stores the documents of earlier answers, and ranks them itself.
        mine = np.flatnonzero(held)
        best = mine[np.argsort(-read[mine], kind="stable")[: self._r.top_k]]
        return Selected(tuple(best.tolist()))

    def _noise(self, m: Noise) -> Ints:
        columns, capacity = len(m.gains), self._r.capacity
        bits = self._random.bit_generator.random_raw(capacity * columns)
        return weighted_sum(m.gains, base_draws(bits).reshape(columns, capacity))

    def _hide(self, scores: Ints, noise: Ints, m: Mechanism) -> int | None:
        r = self._r
        if r.hiding == "none" or len(r.filled) < 3:
            return None
        if r.hiding == "noised" and isinstance(m, Noise):
            # All positions, including empty ones: the set of filled positions is secret, and the bound on noised scores
            # covers every function of them.
            places = np.arange(r.capacity)
            w = m.window
            width = w.hi - w.lo
            clamped = np.clip(scores, w.lo, w.hi).astype(np.int64) - w.lo
            values = ((clamped * w.lattice + width // 2) // width + noise).astype(np.float64)
        else:
            places, values = r.filled, scores[r.filled].astype(np.float64)
        largest = int(np.argmax(values))
        return int(places[largest]) if values[largest] > gumbel_threshold(values) else None


def _first(scores: Ints, k: int) -> list[int]:
    """The first k positions: larger score, then smaller position."""
    k = min(k, len(scores))
    near = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    order = near[np.argsort(-scores[near], kind="stable")][:k]
    return [int(p) for p in order]


__all__ = ["Hiding", "Mechanism", "Plain", "Ranking", "Selected", "Window", "gumbel_threshold"]
