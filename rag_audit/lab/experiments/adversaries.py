"""Other adversaries of the scalar mechanism (Appendix A.2): the likelihood ratio, and split coalitions."""

from __future__ import annotations

import math

import numpy as np

from rag_audit.commit.explore.simulate import base_draws, weighted_sum
from rag_audit.lab.empirical.rates import delong_paired
from rag_audit.lab.experiments import scalar
from rag_audit.lab.experiments.certified import certified, mechanism
from rag_audit.lab.experiments.draws import Floats, Ints, noise_sums
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Size
from rag_audit.lab.experiments.statistics import attack, equation_3_11, gaussian_auc, paper_sigma

EPS = 4
RHOS = (0.5, 0.25)
SPLIT_K = 20
PAPER_SPLIT = {0.5: 0.593, 0.25: 0.580}
ENGINE_N, ENGINE_TRIALS = 200, 2000
"""The likelihood ratio of the engine's noise needs every draw and not their sum, so its cells have the harness's n."""
_CHUNK = 1 << 20


def cells(size: Size) -> list[Cell]:
    """The likelihood ratio for each k, and both splits, in both columns."""
    n, trials = (scalar.N, scalar.TRIALS) if size == "full" else (100, 500)
    lr_n, lr_trials = (ENGINE_N, ENGINE_TRIALS) if size == "full" else (20, 100)
    grid = []
    for column in scalar.COLUMNS:
        m, t = (n, trials) if column == "paper" else (lr_n, lr_trials)
        grid += [
            Cell(f"{column}-lr-k{k}", column, {"test": "lr", "k": k, "n": m, "trials": t, "rho": 1.0})
            for k in scalar.KS
        ]
        grid += [
            Cell(f"{column}-split-{rho}", column,
                 {"test": "split", "k": SPLIT_K, "n": n, "trials": trials, "rho": rho}) for rho in RHOS
        ]  # fmt: skip
    return grid


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """One variant, with the pooled mean on the same trials for comparison."""
    if cell["test"] == "split":
        return _split(cell, rng)
    return _gaussian_ratio(cell, rng) if cell.column == "paper" else _engine_ratio(cell, rng)


def _gaussian_ratio(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The exact log likelihood ratio, summed over the accounts' mean scores, which are sufficient for each account."""
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    spread = paper_sigma(EPS, n) / math.sqrt(n)
    outside, inside = (spread * rng.standard_normal((trials, k)) + b for b in (0.0, 1.0))

    def ratio(means: Floats) -> Floats:
        logs: Floats = ((means**2 - (means - 1.0) ** 2) / (2 * spread * spread)).sum(axis=1)
        return logs

    full = n == scalar.N
    figures = attack(inside.mean(axis=1), outside.mean(axis=1), paper=scalar.PAPER.get((EPS, k)) if full else None,
                     paper_trials=scalar.TRIALS, theory=equation_3_11(EPS, k, n))  # fmt: skip
    gain = delong_paired((ratio(inside), ratio(outside)), (inside.mean(axis=1), outside.mean(axis=1)))
    return [*figures[:1], _gain(gain.value, gain.error)]


def _engine_ratio(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The same with the noise table's exact probabilities: ln p(z - R)/p(z) of every draw."""
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    noise = mechanism(EPS, n)
    table, half = _log_ratios(noise.pmf, noise.lattice), len(noise.pmf) // 2
    sums = {b: np.empty(trials, np.int64) for b in (0, 1)}
    logs = {b: np.empty(trials) for b in (0, 1)}
    step = max(1, _CHUNK // (k * n))
    for b in (0, 1):
        for first in range(0, trials, step):
            count = min(step, trials - first)
            words = rng.bit_generator.random_raw(count * k * n * len(noise.gains))
            draws = base_draws(words).reshape(len(noise.gains), -1)
            scores: Ints = weighted_sum(noise.gains, draws).reshape(count, k * n) + np.int64(
                b * noise.lattice
            )
            sums[b][first : first + count] = scores.sum(axis=1)
            logs[b][first : first + count] = table[scores + half].sum(axis=1)
    figures = attack(
        logs[1],
        logs[0],
        bound=certified(noise, k * n),
        theory=gaussian_auc(1.0, noise.sigma_over_delta, k * n),
    )
    gain = delong_paired((logs[1], logs[0]), (sums[1], sums[0]))
    return [*figures, Figure("lr_minus_mean", gain.value, gain.error)]


def _log_ratios(pmf: Floats, lattice: int) -> Floats:
    """ln p(y - R)/p(y) for y from the least z to the largest z + R; if one of the two is 0, a number beyond every
    sum."""
    padded = np.concatenate([pmf, np.zeros(lattice)])
    shifted = np.concatenate([np.zeros(lattice), pmf])
    with np.errstate(divide="ignore"):
        logs: Floats = np.clip(np.log(shifted) - np.log(padded), -1e9, 1e9)
    return logs


def _gain(value: float, error: float) -> Figure:
    return Figure("lr_minus_mean", value, error, paper=0.0, note="the paper: equal to four decimals")


def _split(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """A share rho of the accounts probes the target, the others orthogonal directions with uninformative scores.

    The paper does not state what it averages: all accounts' scores, or the scores of the accounts that probe the
    target. Both are measured. The second is the better test, and the paper's figures are near to it.
    """
    k, n, trials, rho = cell["k"], cell["n"], cell["trials"], cell["rho"]
    own = round(rho * k)
    if cell.column == "paper":
        sigma = paper_sigma(EPS, n)
        spreads = [sigma * math.sqrt(m * n) for m in (own, k - own)]
        draws = [[spread * rng.standard_normal(trials) for spread in spreads] for _ in range(2)]
        signal, ratio, bound = float(own * n), sigma, None
    else:
        noise = mechanism(EPS, n, scalar.LATTICE)
        draws = [
            [noise_sums(rng, noise, m * n, trials).astype(np.float64) for m in (own, k - own)]
            for _ in range(2)
        ]
        signal, ratio, bound = float(own * n * noise.lattice), noise.sigma_over_delta, certified(noise, k * n)
    (x, x_rest), (y, y_rest) = draws
    full = n == scalar.N
    paper = PAPER_SPLIT[rho] if full else None
    every = attack(x + signal + x_rest, y + y_rest, prefix="all_accounts_", bound=bound,
                   theory=gaussian_auc(rho, ratio, k * n))  # fmt: skip
    best = attack(x + signal, y, prefix="own_accounts_", paper=paper, paper_trials=scalar.TRIALS, bound=bound,
                  theory=gaussian_auc(1.0, ratio, own * n))  # fmt: skip
    return [every[0], *best]


EXPERIMENT = Experiment(
    "adversaries", "Appendix A.2", "likelihood ratio, and coalitions that split their probes", cells, run
)
