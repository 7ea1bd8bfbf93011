"""What one answer's list says about one position, as a discrete channel, and what m answers say together.

With all other scores known, a list's likelihood ratio is a function of the target's rank (exactly so where the others'
scores are equal). The losses of m queries add up; their distribution is computed on a grid by one FFT. Losses are split
between grid points so that their mean stays, which is exact to about m times the squared step: a computed figure, and
not a certified bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rag_audit.lab.experiments.draws import Floats, Ints

_CELLS = 1 << 17
_WIDTH = 14.0


@dataclass(frozen=True, eq=False)
class Channel:
    """The distributions of one answer's outcome in the world with the target and in the other, shape (outcomes,)."""

    inside: Floats
    outside: Floats

    def ratios(self) -> Floats:
        """The log likelihood ratio of each outcome."""
        ratios: Floats = np.log(self.inside) - np.log(self.outside)
        return ratios

    def scores(self, rng: np.random.Generator, *, inside: bool, queries: int, trials: int) -> Floats:
        """The log likelihood ratio of `queries` answers, in `trials` independent trials."""
        law, ratios = (self.inside if inside else self.outside), self.ratios()
        found, chunk = np.empty(trials), 1 << 14
        order = np.argsort(law)
        for first in range(0, trials, chunk):
            counts: Ints = rng.multinomial(queries, law[order] / law.sum(), size=min(chunk, trials - first))
            found[first : first + chunk] = counts @ ratios[order]
        return found


@dataclass(frozen=True, eq=False)
class Losses:
    """The distribution of the summed log likelihood ratio in both worlds, on a common grid."""

    grid: Floats
    inside: Floats
    outside: Floats

    def delta(self, eps: float) -> float:
        """The least delta at eps, the larger of both directions."""
        with np.errstate(over="ignore"):
            forth = float((self.inside * np.clip(-np.expm1(eps - self.grid), 0, None)).sum())
            back = float((self.outside * np.clip(-np.expm1(eps + self.grid), 0, None)).sum())
        return max(forth, back)

    def epsilon(self, delta: float) -> float:
        """The least epsilon at delta."""
        low, high = 0.0, float(self.grid[-1])
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def auc(self) -> float:
        """The area under the ROC curve of the likelihood ratio, ties counting half."""
        below = np.cumsum(self.outside) - self.outside / 2
        return float((self.inside * below).sum())


def composed(channel: Channel, queries: int) -> Losses:
    """The losses of `queries` answers."""
    ratios = channel.ratios()
    worlds = (channel.inside, channel.outside)
    means = [queries * float((law * ratios).sum()) for law in worlds]
    variances = [queries * float((law * ratios**2).sum() - (law * ratios).sum() ** 2) for law in worlds]
    reach = max(abs(m) for m in means) + _WIDTH * math.sqrt(max(variances)) + float(np.abs(ratios).max())
    step = 2 * reach / _CELLS
    grid: Floats = np.arange(-_CELLS // 2, _CELLS // 2, dtype=np.float64) * step
    laws: list[Floats] = []
    for law in worlds:
        one = np.zeros(_CELLS)
        below = np.floor(ratios / step)
        share = ratios / step - below
        place = below.astype(np.int64)
        np.add.at(one, place % _CELLS, law * (1 - share))
        np.add.at(one, (place + 1) % _CELLS, law * share)
        sums = np.fft.irfft(np.fft.rfft(one) ** queries, _CELLS)
        laws.append(np.asarray(np.clip(np.roll(sums, _CELLS // 2), 0.0, None), np.float64))
    return Losses(grid, laws[0], laws[1])
