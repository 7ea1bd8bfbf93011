"""The figures of one membership attack, and the paper's formulas that predict them."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rag_audit.lab.empirical.rates import delong
from rag_audit.lab.experiments.model import Figure
from rag_audit.mechanisms.accounting import Membership

FALSE_ALARM_RATE = 0.01
NORMAL = NormalDist()


def attack(
    inside: npt.ArrayLike,
    outside: npt.ArrayLike,
    *,
    prefix: str = "",
    paper: float | None = None,
    paper_trials: int = 0,
    theory: float | None = None,
    bound: Membership | None = None,
) -> list[Figure]:
    """The AUC with DeLong's error, and where there are bounds, the true-positive rate at a false-positive rate of 1 %.

    :param inside: the attack's statistic in worlds with the target, shape (trials,)
    :param paper: the paper's AUC, measured with `paper_trials` trials
    :param theory: the AUC that theory predicts
    """
    area = delong(inside, outside)
    figures = [
        Figure(
            f"{prefix}auc",
            area.value,
            area.error,
            paper=paper,
            paper_error=0.0 if paper is None else auc_error(paper, paper_trials),
            theory=theory,
            bound=None if bound is None else bound.auc_bound,
        )
    ]
    if bound is not None:
        rate = true_positives(inside, outside, FALSE_ALARM_RATE)
        error = _rate_error(inside, outside, rate)
        figures.append(Figure(f"{prefix}tpr_at_fpr_1pct", rate, error, bound=bound.tpr_at_fpr_1pct))
    return figures


def true_positives(inside: npt.ArrayLike, outside: npt.ArrayLike, false_positives: float) -> float:
    """The true-positive rate at exactly that false-positive rate: scores at the threshold are accepted by a coin.

    Counts of hits have few values. Without the coin the rate would jump by whole values from run to run; bounds also
    cover tests with coins.
    """
    x, y = np.asarray(inside), np.sort(np.asarray(outside))
    threshold = y[max(0, len(y) - 1 - math.floor(false_positives * len(y)))]
    above, at = float((y > threshold).mean()), float((y == threshold).mean())
    share = min(1.0, (false_positives - above) / at)
    return float((x > threshold).mean()) + share * float((x == threshold).mean())


def _rate_error(inside: npt.ArrayLike, outside: npt.ArrayLike, rate: float) -> float:
    """The standard error of a true-positive rate with a threshold from the same trials: the binomial error of both
    rates, where the false-positive rate's is multiplied by the ROC's local slope. The slope is computed over a factor
    of two.
    """
    x, y = np.asarray(inside), np.asarray(outside)
    low, high = (true_positives(x, y, f * FALSE_ALARM_RATE) for f in (2 / 3, 4 / 3))
    slope = max(1.0, (high - low) / (FALSE_ALARM_RATE * 2 / 3))
    spread = FALSE_ALARM_RATE * (1 - FALSE_ALARM_RATE) / len(y)
    at_least = max(rate, 1 / len(x))  # no hit among the trials is no certainty
    return math.sqrt(at_least * max(1 - rate, 1 / len(x)) / len(x) + slope * slope * spread)


def auc_error(auc: float, trials: int) -> float:
    """DeLong's standard error for two Gaussians of equal variance with that AUC, from this number of trials of each
    world.

    The paper prints its AUC without errors; this function gives the error from its number of trials (0.0041 at 10^4, as
    the paper states). The placements' variance is P(both of two others are beaten) - AUC^2 (Bamber 1975), here by
    quadrature.
    """
    shift = math.sqrt(2) * NORMAL.inv_cdf(auc)
    grid = np.linspace(-8, 8, 2001)
    weights = np.exp(-grid * grid / 2) * (grid[1] - grid[0]) / math.sqrt(2 * math.pi)
    beaten = np.array([NORMAL.cdf(float(z) + shift) for z in grid])
    variance = float((weights * beaten**2).sum()) - auc * auc
    return math.sqrt(2 * variance / trials)


def gaussian_auc(gap: float, sigma: float, queries: int) -> float:
    """Equation (3.10): the AUC of the mean of that many noised scores."""
    return NORMAL.cdf(gap * math.sqrt(queries) / (math.sqrt(2) * sigma))


def paper_sigma(eps_acc: float, n: int, delta_acc: float = 1e-6) -> float:
    """Equation (3.4) for scores of sensitivity 1."""
    log_query = 2 * math.log(1.25 * n / delta_acc)
    return math.sqrt(2 * n * math.log(1 / delta_acc) * log_query) / eps_acc


def equation_3_11(eps_acc: float, k: int, n: int) -> float:
    """The paper's prediction of the scalar mechanism's AUC."""
    return gaussian_auc(1.0, paper_sigma(eps_acc, n), k * n)


def growth(few: Figure, many: Figure, *, paper: float | None = None) -> Figure:
    """The ratio of two attacks' advantages. Its error is computed at the theory's ratio, since it would be
    uninformative at a small measured denominator.
    """
    small, large = ((few.theory or few.value) - 0.5, (many.theory or many.value) - 0.5)
    error = abs(large / small) * math.hypot(few.error / small, many.error / large)
    value = (many.value - 0.5) / (few.value - 0.5) if few.value != 0.5 else math.inf
    return Figure(
        "ratio", value, error, paper=paper, paper_error=0.0 if paper is None else error, theory=large / small
    )
