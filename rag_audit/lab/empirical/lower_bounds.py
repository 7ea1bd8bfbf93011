"""Lower bounds on epsilon that an attack proves, each at a stated confidence.

A mechanism that is (epsilon, delta)-indistinguishable allows no test with TPR > e^epsilon FPR + delta, nor with
TNR > e^epsilon FNR + delta; so a test's measured rates, at the ends of their intervals, refute every smaller epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

from rag_audit._internal.errors import PolicyError
from rag_audit.lab.empirical.rates import Floats, scores
from rag_audit.mechanisms.accounting.values import Real, probability

CONFIDENCE = 0.95
_BISECTIONS = 60
_LARGEST = 200.0
_CUTS = 400


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Both one-sided limits of a proportion (Clopper and Pearson 1934), each at the confidence.

    :raises PolicyError: the confidence is not strictly between 0 and 1, or there are more successes than trials
    """
    rest = 1 - _confidence(confidence)
    if not 0 <= successes <= trials or trials < 1:
        raise PolicyError(
            "successes of trials", field="trials", expected=f"at least {successes}", actual=trials
        )
    low = float(stats.beta.ppf(rest, successes, trials - successes + 1)) if successes else 0.0
    high = float(stats.beta.ppf(1 - rest, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def epsilon_of_rates(true: tuple[int, int], false: tuple[int, int], delta: Real, confidence: float) -> float:
    """The epsilon that one fixed test refutes, from (positives, trials) inside and outside; at least 0.

    Both directions use the lower limit of TPR and the upper limit of FPR only, each at 1 - (1 - confidence)/2. The
    larger of the two bounds is therefore valid at the confidence.
    """
    tpr_low, fpr_high = _limits(true, false, confidence)
    d = 0.0 if delta == 0 else probability(delta, "delta")
    return max(0.0, _log_ratio(tpr_low - d, fpr_high), _log_ratio(1 - fpr_high - d, 1 - tpr_low))


def clopper_pearson_epsilon(
    inside: npt.ArrayLike, outside: npt.ArrayLike, *, delta: Real = 0, confidence: float = CONFIDENCE
) -> float:
    """The best epsilon that thresholds on a score refute (Jagielski, Ullman and Oprea 2020).

    Every other trial chooses the threshold, the rest measures it: a threshold chosen on the trials that measure it
    would overstate the bound.
    """
    x, y = scores(inside, "inside"), scores(outside, "outside")
    if x.size < 2 or y.size < 2:
        return 0.0
    threshold = _best_threshold(x[::2], y[::2], delta, confidence)
    return epsilon_of_rates(_above(x[1::2], threshold), _above(y[1::2], threshold), delta, confidence)


def counted_epsilon(
    true: tuple[int, int],
    false: tuple[int, int],
    repeats: int,
    *,
    delta: Real = 0,
    confidence: float = CONFIDENCE,
) -> float:
    """The epsilon that many independent questions refute, from the rates of one.

    Each of `repeats` answers is yes with the same probability, independently given the world, as answers with
    independent noise are. A binomial's tails grow with its probability. The lower limit of the true rate and the upper
    limit of the false one, which are jointly valid at the confidence, therefore bound the rates of every test by the
    count.

    :param true: the number of yes answers and of all answers, inside; `false` likewise outside
    :param repeats: total number of questions of the coalition
    """
    low, high = _limits(true, false, confidence)
    d = 0.0 if delta == 0 else probability(delta, "delta")
    cut = np.arange(repeats)
    more = _ratio(stats.binom.logsf(cut, repeats, low), stats.binom.logsf(cut, repeats, high), d)
    fewer = _ratio(stats.binom.logcdf(cut, repeats, high), stats.binom.logcdf(cut, repeats, low), d)
    return max(0.0, float(more.max()), float(fewer.max()))


def counted_roc(true: float, false: float, repeats: int) -> tuple[Floats, Floats]:
    """False- and true-positive rates of the tests by the count of `repeats` independent answers, from (0, 0) to (1, 1).

    :param true: the probability of a yes answer inside; `false` likewise outside
    """
    cut = np.arange(repeats, -2, -1)
    return stats.binom.sf(cut, repeats, false), stats.binom.sf(cut, repeats, true)


def gaussian_mu(inside: npt.ArrayLike, outside: npt.ArrayLike, *, confidence: float = CONFIDENCE) -> float:
    """The mu of Gaussian differential privacy that a threshold refutes (Nasr et al. 2023): a mechanism that is mu-GDP
    has Phi^-1(TPR) - Phi^-1(FPR) <= mu at every threshold. The threshold is chosen as above.
    """
    x, y = scores(inside, "inside"), scores(outside, "outside")
    if x.size < 2 or y.size < 2:
        return 0.0
    cuts = _cuts(x[::2], y[::2])
    low, high = _limits_at(x[::2], y[::2], cuts, confidence)
    best = float(cuts[int(np.argmax(_mu(low, high)))])
    low, high = _limits_at(x[1::2], y[1::2], np.array([best]), confidence)
    return max(0.0, float(_mu(low, high)[0]))


def gaussian_dp_epsilon(
    inside: npt.ArrayLike, outside: npt.ArrayLike, *, delta: Real, confidence: float = CONFIDENCE
) -> float:
    """The epsilon at delta of the Gaussian curve with the refuted mu (Balle and Wang 2018, theorem 8).

    It is a lower bound on epsilon only for a mechanism with a Gaussian trade-off curve. For other mechanisms it is the
    epsilon of a Gaussian mechanism with the attack's rates.
    """
    mu, d = gaussian_mu(inside, outside, confidence=confidence), probability(delta, "delta")
    if mu == 0 or _gaussian_delta(0.0, mu) <= d:
        return 0.0
    return _bisect(lambda eps: _gaussian_delta(eps, mu) > d)


def one_run_epsilon(
    correct: int, guesses: int, canaries: int, *, delta: Real = 0, confidence: float = CONFIDENCE
) -> float:
    """The epsilon that one run with many canaries refutes (Steinke, Nasr and Jagielski 2023, theorem 5.2).

    Each canary is in or out by a fair coin of its own; the auditor guesses some of them and abstains from the rest.
    Under (epsilon, delta) the number of correct guesses is, up to delta, no larger than a binomial's with success
    e^epsilon/(1 + e^epsilon).

    :raises PolicyError: not 0 <= correct <= guesses <= canaries
    """
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise PolicyError("guesses about canaries", field="guesses", expected="correct <= guesses <= canaries",
                          actual=f"{correct}, {guesses}, {canaries}")  # fmt: skip
    rest, d = 1 - _confidence(confidence), 0.0 if delta == 0 else probability(delta, "delta")

    def refuted(eps: float) -> bool:
        share = 1 / (1 + math.exp(-eps))
        tail = float(stats.binom.sf(correct - 1, guesses, share))
        if d:
            below = np.cumsum(stats.binom.pmf(np.arange(correct - 1, -1, -1), guesses, share))
            slope = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
            tail += 2 * canaries * d * slope
        return tail < rest

    return _bisect(refuted) if refuted(0.0) else 0.0


def _cuts(x: Floats, y: Floats) -> Floats:
    """Thresholds to choose from: every score, or 400 of them by rank."""
    cuts = np.unique(np.concatenate([x, y]))
    return np.asarray(cuts if cuts.size <= _CUTS else np.unique(np.quantile(cuts, np.linspace(0, 1, _CUTS))))


def _limits_at(x: Floats, y: Floats, cuts: Floats, confidence: float) -> tuple[Floats, Floats]:
    """`_limits` of all thresholds at once, shape (thresholds,)."""
    each = 1 - (1 - _confidence(confidence)) / 2
    true = x.size - np.searchsorted(np.sort(x), cuts, "left")
    false = y.size - np.searchsorted(np.sort(y), cuts, "left")
    low = np.where(true == 0, 0.0, stats.beta.ppf(1 - each, np.maximum(true, 1), x.size - true + 1))
    high = np.where(false == y.size, 1.0, stats.beta.ppf(each, false + 1, np.maximum(y.size - false, 1)))
    return low, high


def _best_threshold(x: Floats, y: Floats, delta: Real, confidence: float) -> float:
    cuts, d = _cuts(x, y), 0.0 if delta == 0 else probability(delta, "delta")
    low, high = _limits_at(x, y, cuts, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.fmax(np.log((low - d) / high), np.log((1 - high - d) / (1 - low)))
    return float(cuts[int(np.argmax(np.nan_to_num(result, nan=-np.inf)))])


def _limits(true: tuple[int, int], false: tuple[int, int], confidence: float) -> tuple[float, float]:
    """The lower limit of TPR and the upper limit of FPR, jointly valid at the confidence."""
    each = 1 - (1 - _confidence(confidence)) / 2
    return clopper_pearson(*true, each)[0], clopper_pearson(*false, each)[1]


def _above(values: Floats, threshold: float) -> tuple[int, int]:
    return int((values >= threshold).sum()), values.size


def _mu(low: Floats, high: Floats) -> Floats:
    """The mu that each pair of limits refutes; 0 if a limit is uninformative."""
    said = (low > 0) & (high < 1)
    return np.where(
        said, stats.norm.ppf(np.where(said, low, 0.5)) - stats.norm.ppf(np.where(said, high, 0.5)), 0.0
    )


def _gaussian_delta(eps: float, mu: float) -> float:
    upper = stats.norm.cdf(mu / 2 - eps / mu)
    return float(upper - math.exp(eps + stats.norm.logcdf(-mu / 2 - eps / mu)))


def _bisect(refuted: Callable[[float], bool]) -> float:
    """The largest epsilon up to `_LARGEST` that a test refutes; refutation is monotone."""
    low, high = 0.0, _LARGEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _ratio(log_above: Floats, log_below: Floats, delta: float) -> Floats:
    """ln((e^above - delta) / e^below) at every cut; minus infinity if delta by itself allows the rate."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rest = np.log1p(-delta * np.exp(np.minimum(-log_above, 700.0)))
        result = log_above + rest - log_below
    return np.where(np.isfinite(result), result, -np.inf)


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else 0.0


def _confidence(value: float) -> float:
    if not 0 < value < 1:
        raise PolicyError("the confidence is not strictly between 0 and 1", field="confidence", actual=value)
    return value
