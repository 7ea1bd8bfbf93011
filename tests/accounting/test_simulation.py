"""No bound lies below what an attack on the real sampler shows.

Draws come from the alias table as the engine's do: five bytes each, bin, sign and threshold.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from rag_audit.mechanisms.accounting import Mechanism, audit_bounds, eps_at, membership
from rag_audit.relation.noise import alias_table

CONFIDENCE = 1e-6


def draws(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    table = alias_table()
    thresholds, aliases = np.array(table.thresholds, dtype=np.int64), np.array(table.aliases, dtype=np.int64)
    head = rng.integers(0, 256, shape)
    t = rng.integers(0, 2**32, shape)
    bins = head & 0x7F
    magnitude = np.where(t < thresholds[bins], bins, aliases[bins])
    return np.where(head & 0x80, -magnitude, magnitude)


def noise(rng: np.random.Generator, gains: tuple[int, ...], trials: int, m: int) -> np.ndarray:
    total = np.zeros((trials, m), dtype=np.int64)
    for gain in gains:
        total += gain * draws(rng, (trials, m))
    return total


def adaptive_scores(z: np.ndarray, lattice: int, present: bool) -> np.ndarray:
    """An adversary whose next query depends on the last answer: it probes at R, or at R/2 when it saw little."""
    scores = np.zeros_like(z)
    shift = np.full(len(z), lattice)
    for j in range(z.shape[1]):
        scores[:, j] = z[:, j] + (shift if present else 0)
        shift = np.where(scores[:, j] > 0, lattice, lattice // 2)
    return scores


def statistic(mechanism: Mechanism, scores: np.ndarray) -> np.ndarray:
    """ln P(transcript | present) / P(transcript | absent)."""
    lattice, half = mechanism.lattice, mechanism.half_support
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([np.zeros(lattice), mechanism.pmf, np.zeros(2 * lattice)]))
    total = np.zeros(len(scores))
    shift = np.full(len(scores), lattice)
    for j in range(scores.shape[1]):
        at = scores[:, j] + half + lattice
        with np.errstate(invalid="ignore"):
            total += logs[at - shift] - logs[at]
        shift = np.where(scores[:, j] > 0, lattice, lattice // 2)
    return np.nan_to_num(total, posinf=1e9, neginf=-1e9)


def lower_bound(present: np.ndarray, absent: np.ndarray, delta: float) -> float:
    """The largest eps that some threshold test refutes (Clopper-Pearson on both rates)."""
    trials, best = len(present), 0.0
    for threshold in np.quantile(absent, [0.5, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999]):
        hits, alarms = int(np.sum(present > threshold)), int(np.sum(absent > threshold))
        low = beta.ppf(CONFIDENCE, hits, trials - hits + 1) if hits else 0.0
        high = beta.ppf(1 - CONFIDENCE, alarms + 1, trials - alarms)
        if low > delta:
            best = max(best, math.log((low - delta) / high))
    return best


CASES = [((1,), 16, 1), ((1,), 16, 4), ((1,), 8, 8), ((1, 2), 32, 3), ((1, 8), 128, 2)]


def attack(gains: tuple[int, ...], lattice: int, m: int, trials: int) -> None:
    mechanism = Mechanism(gains, lattice)
    rng = np.random.default_rng(20240607)
    present, absent = (
        statistic(mechanism, adaptive_scores(noise(rng, gains, trials, m), lattice, there))
        for there in (True, False)
    )
    for delta in (1e-5, 1e-2):
        shown = lower_bound(present, absent, delta)
        bounds = audit_bounds(mechanism, n=m, eps_acc=50, delta_acc=delta / 4, k=1, delta=delta)
        for bound in (bounds.closed_form, bounds.rdp, bounds.exact):
            assert not bound.valid or bound.eps >= shown
        assert shown > 0.3 * bounds.exact.eps - 1.5, "the attack is too weak to test anything"
        assert eps_at(mechanism, m, delta) == bounds.exact.eps
    result = membership(mechanism, m)
    ranks = np.searchsorted(np.sort(absent), present, side="left") / trials
    ties = np.searchsorted(np.sort(absent), present, side="right") / trials
    auc = float(np.mean((ranks + ties) / 2))
    assert result.auc_bound >= auc - 5 / math.sqrt(trials)
    assert result.auc_bound - auc < 0.1
    caught = float(np.mean(present > np.quantile(absent, 0.99)))
    assert result.tpr_at_fpr_1pct >= caught - 10 / math.sqrt(trials)


@pytest.mark.parametrize(("gains", "lattice", "m"), CASES)
def test_no_bound_is_below_an_attack_of_a_million_trials(
    gains: tuple[int, ...], lattice: int, m: int
) -> None:
    attack(gains, lattice, m, 1_000_000)


def test_the_attack_refutes_a_bound_that_is_too_low() -> None:
    """A cheater's accountant that spends half the shift would be caught here."""
    rng = np.random.default_rng(7)
    mechanism = Mechanism((1,), 16)
    present, absent = (
        statistic(mechanism, adaptive_scores(noise(rng, (1,), 200_000, 4), 16, there))
        for there in (True, False)
    )
    assert lower_bound(present, absent, 1e-2) > eps_at(Mechanism((1,), 8), 4, 1e-2)
