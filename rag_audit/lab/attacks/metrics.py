"""The figures of an attack's scores, each with its bootstrap interval."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rag_audit.lab.attacks.interface import Floats
from rag_audit.lab.empirical import rates

REPEATS = 200
"""Bootstrap samples of an interval."""
Figure: TypeAlias = tuple[float, float, float]
"""A figure, and both ends of its 95 % interval."""


@dataclass(frozen=True)
class Scored:
    """An attack's scores on the evaluation half, and the threshold that the reference half gave.

    :param inside: scores of members, shape (n,); `outside` scores of other documents
    """

    inside: Floats
    outside: Floats
    threshold: float

    def figures(self, seed: int = 0) -> dict[str, Figure]:
        """Every figure by its name."""
        cut = self.threshold
        statistics: Mapping[str, Callable[[Floats, Floats], float]] = {
            "auc": rates.auc,
            "tpr_at_1pct": rates.tpr_at_fpr,
            "accuracy": lambda x, y: float(((x >= cut).mean() + (y < cut).mean()) / 2),
            "adjusted_accuracy": lambda x, y: float(abs(((x >= cut).mean() + (y < cut).mean()) / 2 - 0.5)),
            "precision": lambda x, y: _ratio(
                float((x >= cut).mean()), float((x >= cut).mean() + (y >= cut).mean())
            ),
            "recall": lambda x, y: float((x >= cut).mean()),
            "f1": lambda x, y: _f1(x, y, cut),
            "ks": rates.kolmogorov_smirnov,
        }
        result = {}
        for name, statistic in statistics.items():
            random = np.random.default_rng([seed, zlib.crc32(name.encode())])
            low, high = rates.bootstrap(statistic, self.inside, self.outside, random, repeats=REPEATS)
            result[name] = (statistic(self.inside, self.outside), low, high)
        return result


def best_threshold(inside: Floats, outside: Floats, *, by: str = "accuracy") -> float:
    """The threshold on the reference half with the best accuracy or F1; of several the middle one, so that scores with
    few values (a count of masks) are cut between them.
    """
    cuts = np.unique(np.concatenate([inside, outside]))
    edges = np.concatenate([[cuts[0] - 1], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1]])
    x, y = np.sort(inside), np.sort(outside)
    tpr = 1 - np.searchsorted(x, edges, "left") / x.size
    fpr = 1 - np.searchsorted(y, edges, "left") / y.size
    value = (1 + tpr - fpr) / 2 if by == "accuracy" else 2 * tpr / np.maximum(1e-12, 1 + tpr + fpr)
    best = np.flatnonzero(value >= value.max() - 1e-12)
    return float(edges[best[len(best) // 2]])


def proportion(hits: Floats, seed: int = 0) -> Figure:
    """An average of zeros and ones, with its interval."""
    random = np.random.default_rng([seed, len(hits)])
    drawn = hits[random.integers(0, len(hits), (REPEATS, len(hits)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(hits.mean()), float(low), float(high)


def _f1(x: Floats, y: Floats, cut: float) -> float:
    tpr, fpr = float((x >= cut).mean()), float((y >= cut).mean())
    return _ratio(2 * tpr, 1 + tpr + fpr)


def _ratio(above: float, below: float) -> float:
    return above / below if below else 0.0
