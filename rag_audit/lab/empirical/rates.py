"""How well scores distinguish two worlds: AUC with DeLong's error, true-positive rate, Kolmogorov-Smirnov distance.

`inside` are an attack's scores in worlds with the target, `outside` in worlds without it; a larger score indicates
membership. Ties count half, as for a test that breaks them by a coin.

Ranks and distributions come from scipy. Three statistics are implemented here: no release of scikit-learn or scipy has
DeLong's variance; `sklearn.metrics.roc_auc_score` sorts and validates labels in each of the thousands of calls of a
bootstrap; and `scipy.stats.ks_2samp` computes a p-value that this package does not use. Tests compare `auc` and
`kolmogorov_smirnov` with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from rag_audit._internal.errors import SizeError

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class Estimate:
    """A figure from trials and its standard error."""

    value: float
    error: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The normal interval at a two-sided confidence."""
        width = float(stats.norm.ppf((1 + confidence) / 2)) * self.error
        return self.value - width, self.value + width


def scores(values: npt.ArrayLike, field: str) -> Floats:
    """An attack's scores as floats, shape (trials,).

    :raises SizeError: there are no scores, or one is not a number
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0 or bool(np.isnan(array).any()):
        raise SizeError(
            "scores of an attack", field=field, expected="a row of numbers", actual=repr(array.shape)
        )
    return array


def placements(inside: npt.ArrayLike, outside: npt.ArrayLike) -> tuple[Floats, Floats]:
    """For each score of one world the share of the other's that it beats, ties half (DeLong, DeLong and
    Clarke-Pearson 1988, in the rank form of Sun and Xu 2014): O(n log n).
    """
    x, y = scores(inside, "inside"), scores(outside, "outside")
    ranks = stats.rankdata(np.concatenate([x, y]))
    of_x = (ranks[: x.size] - stats.rankdata(x)) / y.size
    of_y = 1 - (ranks[x.size :] - stats.rankdata(y)) / x.size
    return of_x, of_y


def auc(inside: npt.ArrayLike, outside: npt.ArrayLike) -> float:
    """Area under the ROC curve: the chance that a score from inside is above one from outside.

    It is the mean of `placements`, to the digit, without the ranks: a bootstrap asks for it thousands of times.
    """
    x, y = scores(inside, "inside"), np.sort(scores(outside, "outside"))
    beaten = (np.searchsorted(y, x, "left") + np.searchsorted(y, x, "right")) / 2
    return float((beaten / y.size).mean())


def delong(inside: npt.ArrayLike, outside: npt.ArrayLike) -> Estimate:
    """The AUC with DeLong's standard error."""
    of_x, of_y = placements(inside, outside)
    return Estimate(float(of_x.mean()), math.sqrt(_variance(of_x) + _variance(of_y)))


def delong_paired(
    first: tuple[npt.ArrayLike, npt.ArrayLike], second: tuple[npt.ArrayLike, npt.ArrayLike]
) -> Estimate:
    """The AUC of the first test minus the AUC of the second on the same trials, with the error of the difference.

    :raises SizeError: the tests differ in their numbers of trials
    """
    (ax, ay), (bx, by) = placements(*first), placements(*second)
    if ax.shape != bx.shape or ay.shape != by.shape:
        raise SizeError("paired tests", field="trials", expected=f"{ax.size} and {ay.size}",
                        actual=f"{bx.size} and {by.size}")  # fmt: skip
    return Estimate(float(ax.mean() - bx.mean()), math.sqrt(_variance(ax - bx) + _variance(ay - by)))


def tpr_at_fpr(inside: npt.ArrayLike, outside: npt.ArrayLike, fpr: float = 0.01) -> float:
    """The true-positive rate of the best threshold with a false-positive rate of at most `fpr`."""
    x, y = scores(inside, "inside"), np.sort(scores(outside, "outside"))
    allowed = math.floor(fpr * y.size + 1e-9)
    threshold = y[y.size - 1 - allowed] if allowed < y.size else -math.inf
    return float((x > threshold).mean())


def accuracy(inside: npt.ArrayLike, outside: npt.ArrayLike) -> float:
    """The largest balanced accuracy over all thresholds, either direction being the attack's to choose beforehand:
    a score below the threshold speaks for absence.
    """
    x, y = np.sort(scores(inside, "inside")), np.sort(scores(outside, "outside"))
    cuts = np.concatenate([x, y])
    above = 1 - np.searchsorted(x, cuts, "left") / x.size
    false = 1 - np.searchsorted(y, cuts, "left") / y.size
    return float(max(0.5, (0.5 + (above - false) / 2).max()))


def kolmogorov_smirnov(inside: npt.ArrayLike, outside: npt.ArrayLike) -> float:
    """The largest distance between the two distribution functions: scipy's `ks_2samp`, without its p-value, which costs
    more than the statistic.
    """
    x, y = np.sort(scores(inside, "inside")), np.sort(scores(outside, "outside"))
    both = np.concatenate([x, y])
    apart = np.searchsorted(x, both, "right") / x.size - np.searchsorted(y, both, "right") / y.size
    return float(max(apart.max(), -apart.min()))


def bootstrap(
    statistic: Statistic,
    inside: npt.ArrayLike,
    outside: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    repeats: int = 1000,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of a statistic, from trials of both worlds resampled with replacement."""
    x, y = scores(inside, "inside"), scores(outside, "outside")
    values = [
        statistic(x[rng.integers(0, x.size, x.size)], y[rng.integers(0, y.size, y.size)])
        for _ in range(repeats)
    ]
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _variance(placed: Floats) -> float:
    return float(placed.var(ddof=1)) / placed.size if placed.size > 1 else math.inf
