"""An adversary as strong as the theory: the likelihood ratio of the lists, with everything known but one position.

It knows every other score, the noise table and the policy, and sees the K positions of m answers in their order. The
module compares three lower bounds on epsilon with the certified one. A second series has other scores, chosen by the
attacker to move the threshold that the target has to pass.

One answer's list is a discrete channel: with all other scores known, a list's likelihood ratio is a function of the
target's rank (exactly so if the others' scores are equal). The losses of m queries add up; their distribution is
computed on a grid by one FFT. Losses are split between grid points so that their mean is preserved, which is exact to
about m times the squared step. The result is a computed figure, and not a certified bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_audit.lab.empirical.lower_bounds import clopper_pearson_epsilon, gaussian_dp_epsilon, one_run_epsilon
from rag_audit.lab.experiments.certified import certified, mechanism
from rag_audit.lab.experiments.draws import Floats, Ints, ranks
from rag_audit.lab.experiments.model import (
    CONFIDENCE,
    Cell,
    Experiment,
    Figure,
    Results,
    Row,
    Size,
    Value,
    in_place,
)
from rag_audit.lab.experiments.plots import COLORS
from rag_audit.lab.experiments.statistics import attack
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import Mechanism

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
        result, chunk = np.empty(trials), 1 << 14
        order = np.argsort(law)
        for first in range(0, trials, chunk):
            counts: Ints = rng.multinomial(queries, law[order] / law.sum(), size=min(chunk, trials - first))
            result[first : first + chunk] = counts @ ratios[order]
        return result


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


POSITIONS = 64
LISTED = (1, 5, 16, 32, 64)
QUERIES = 4000
"""20 accounts with 200 queries each."""
DELTA = 1e-6
DELTA_COUNTED = 1e-2
"""A delta that allows 10^6 trials to count enough events for a bound without any assumption."""
CHOSEN = (0, 1, 2, 4, 8, 16, 32, 63)
"""Number of the other positions with the largest score; the rest has the smallest."""
NARROW = ((1, 8), 64, 16)
"""Noise of two sensitivities and 16 queries, for other scores that move the threshold by half of the noise."""
CANARIES = 20_000
GUESSED = 0.25
"""The share of each end of the scores that is guessed: with fewer guesses delta hides the effect, with more guesses
errors do."""


def cells(size: Size) -> list[Cell]:
    """Lists of 1 to all 64 positions; and lists of 5 and 32 among other scores that the attacker chose."""
    trials = 1_000_000 if size == "full" else 10_000
    listed, chosen = (LISTED, CHOSEN) if size == "full" else ((5, 64), (0, 8))
    narrow: dict[str, Value] = {
        "gains": ",".join(map(str, NARROW[0])),
        "lattice": NARROW[1],
        "queries": NARROW[2],
    }
    grid = [
        Cell(f"K{k}-eps{eps}", "engine",
             {"series": "listed", "K": k, "eps": eps, "queries": QUERIES, "trials": trials, "high": 0})
        for eps in ((4, 16) if size == "full" else (16,)) for k in listed
    ]  # fmt: skip
    grid += [
        Cell(f"chosen-K{k}-high{high}", "engine",
             {"series": "chosen", "K": k, "trials": trials // 5, "high": high, **narrow})
        for k in ((5, 32) if size == "full" else (5,)) for high in chosen
    ]  # fmt: skip
    return grid


def noise_of(cell: Cell) -> Mechanism:
    """The policy's noise."""
    if cell["series"] == "listed":
        return mechanism(cell["eps"], 200)
    return Mechanism(tuple(map(int, cell["gains"].split(","))), cell["lattice"])


def channel(noise: Mechanism, listed: int, high: int) -> Channel:
    """The target's rank in one answer, in both worlds: its score is R or 0, of the others `high` have R."""
    others = {0: POSITIONS - 1 - high, noise.lattice: high}
    laws = [ranks(noise, score, others, listed) for score in (noise.lattice, 0)]
    # If all positions are listed, the ranks are the only outcomes; any remaining mass is rounding.
    kept = np.minimum(*laws) > 1e-14
    inside, outside = (law[kept] / law[kept].sum() for law in laws)
    return Channel(inside, outside)


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack's rates, the computed leakage of the lists, and three lower bounds with the certified one."""
    noise, m, trials = noise_of(cell), cell["queries"], cell["trials"]
    seen = channel(noise, cell["K"], cell["high"])
    losses = composed(seen, m)
    inside = seen.scores(rng, inside=True, queries=m, trials=trials)
    outside = seen.scores(rng, inside=False, queries=m, trials=trials)
    figures = attack(inside, outside, theory=losses.auc(), bound=certified(noise, m))
    exact = accounting.eps_at(noise, m, DELTA)
    counted = accounting.eps_at(noise, m, DELTA_COUNTED)
    by_lists, by_lists_counted = losses.epsilon(DELTA), losses.epsilon(DELTA_COUNTED)
    gaussian = gaussian_dp_epsilon(inside, outside, delta=DELTA, confidence=CONFIDENCE)
    return [
        *figures,
        Figure("eps_list", by_lists, bound=exact, note=f"computed, delta {DELTA:g}"),
        Figure("eps_gaussian_dp", gaussian, theory=by_lists, bound=exact,
               note=f"delta {DELTA:g}, {gaussian / exact:.0%} of the bound"),
        Figure("eps_one_run", _one_run(inside, outside), bound=exact, note=f"delta {DELTA:g}, {CANARIES} canaries"),
        Figure("eps_list_counted", by_lists_counted, bound=counted, note=f"computed, delta {DELTA_COUNTED:g}"),
        Figure("eps_clopper_pearson",
               clopper_pearson_epsilon(inside, outside, delta=DELTA_COUNTED, confidence=CONFIDENCE),
               theory=by_lists_counted, bound=counted, note=f"delta {DELTA_COUNTED:g}"),
    ]  # fmt: skip


def _one_run(inside: Floats, outside: Floats) -> float:
    """The trials as canaries of one run, half of them in: the highest and the lowest scores are guessed."""
    half = min(CANARIES // 2, len(inside))
    scores = np.concatenate([inside[:half], outside[:half]])
    order = np.argsort(scores, kind="stable")
    each = max(1, int(GUESSED * half))
    correct = int((order[-each:] < half).sum() + (order[:each] >= half).sum())
    return one_run_epsilon(correct, 2 * each, 2 * half, delta=DELTA, confidence=CONFIDENCE)


def derive(results: Results) -> list[Row]:
    """How tight the certified bound is at best, by each lower bound."""
    rows = []
    for name in ("eps_list", "eps_gaussian_dp", "eps_clopper_pearson", "eps_one_run"):
        shares = [
            (f.value / f.bound, cell.key) for cell, figures in results["lists"] for f in figures
            if f.name == name and f.bound
        ]  # fmt: skip
        if shares:
            share, where = max(shares)
            rows.append(
                Row(
                    f"largest share of the bound, {name}",
                    Figure("share", share, note=f"at {where}"),
                    "engine",
                )
            )
    return rows


def draw(results: Results, picture: Any) -> None:
    """The lower bounds against K, and the lists' epsilon against the chosen scores."""
    result = in_place(results, "lists")
    left, right = picture.subplots(1, 2)
    shown = [(k, result[key]) for k in LISTED if (key := f"K{k}-eps4") in result]
    for (name, label), color in zip(
        (("eps_list", "the lists, computed"), ("eps_gaussian_dp", "Gaussian DP"), ("eps_one_run", "one run")),
        COLORS, strict=False,
    ):  # fmt: skip
        left.plot(
            [k for k, _ in shown],
            [f[name].value for _, f in shown],
            "o-",
            color=color,
            markersize=3,
            label=label,
        )
    left.plot([k for k, _ in shown], [f["eps_list"].bound for _, f in shown], "k:", label="certified bound")
    left.set(
        xscale="log",
        xlabel=f"positions listed, of {POSITIONS}",
        ylabel=r"$\varepsilon$ at $\delta = 10^{-6}$",
    )
    for k, color in zip((5, 32), COLORS, strict=False):
        at = [(h, result[key]["eps_list"]) for h in CHOSEN if (key := f"chosen-K{k}-high{h}") in result]
        right.plot(
            [h for h, _ in at], [f.value for _, f in at], "o-", color=color, markersize=3, label=f"K = {k}"
        )
        right.plot([h for h, _ in at], [f.bound for _, f in at], "k:")
    right.set(
        xlabel="other positions with the largest score", ylabel=r"$\varepsilon$ at $\delta = 10^{-6}$", ylim=0
    )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "lists", "beyond the paper", "the likelihood ratio of the engine's lists, all known but one position", cells, run,
    derive, draw,
)  # fmt: skip
