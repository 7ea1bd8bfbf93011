"""The laws by which cells are drawn, against the engine itself and against direct draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_audit.commit.explore.simulate import base_draws, weighted_sum
from rag_audit.lab.experiments import harness
from rag_audit.lab.experiments.draws import above, noise_sums, ranks
from rag_audit.lab.experiments.statistics import auc_error, equation_3_11, true_positives
from rag_audit.lab.experiments.toy import counted, toy
from rag_audit.mechanisms.accounting import Mechanism
from rag_audit.retrieval.engine import select

NOISE = Mechanism((1, 3), 16)


def table_noise(rng: np.random.Generator, queries: int, positions: int) -> np.ndarray:
    """Noise as the published table gives it, a draw for each component of each position, shape (queries, positions)."""
    words = rng.bit_generator.random_raw(queries * positions * len(NOISE.gains))
    return weighted_sum(NOISE.gains, base_draws(words).reshape(len(NOISE.gains), -1)).reshape(
        queries, positions
    )


def test_sums_of_noise_have_the_distribution_of_summed_draws() -> None:
    rng = np.random.default_rng(5)
    direct = table_noise(rng, 4000, 8).sum(axis=1)
    by_counts = noise_sums(rng, NOISE, 8, 4000)
    assert stats.ks_2samp(direct, by_counts).pvalue > 1e-3
    one = noise_sums(rng, NOISE, 1, 20_000)
    half = len(NOISE.pmf) // 2
    observed, expected = [], []
    for low, high in ((-half, -60), (-60, -20), (-20, 0), (0, 20), (20, 60), (60, half + 1)):
        observed.append(int(((one >= low) & (one < high)).sum()))
        expected.append(20_000 * float(NOISE.pmf[low + half : high + half].sum()))
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_the_tail_of_the_noise() -> None:
    half = len(NOISE.pmf) // 2
    values = np.array([-half - 1, -half, -1, 0, half - 1, half, half + 5])
    direct = [float(NOISE.pmf[np.arange(-half, half + 1) > v].sum()) for v in values]
    assert above(NOISE, values) == pytest.approx(direct, abs=1e-12)
    assert above(NOISE, np.array([-half - 1, half])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("inside", [True, False])
def test_ranks_have_the_distribution_that_selection_gives(inside: bool) -> None:
    """The engine's `select` on the toy index, its noise from the table; ties count, so the noise is narrow."""
    index, window, queries = toy().index(inside=inside), toy().window(NOISE.lattice), 4000
    noise = table_noise(np.random.default_rng(7), queries, index.capacity).astype(np.int32)
    result = np.full(queries, 8)
    for number, row in enumerate(noise):
        listed = select(index, toy().query, row, window, 8)
        if 0 in listed:
            result[number] = listed.index(0)
    target, *others = toy().lattice_scores(NOISE.lattice, inside=inside)
    law = ranks(NOISE, target, counted(others), 8)
    assert law.sum() == pytest.approx(1)
    assert stats.chisquare(np.bincount(result, minlength=9), queries * law).pvalue > 1e-3
    alone = ranks(NOISE, target, {0: 50}, 8)
    assert np.abs(alone - law).max() > 1e-4  # the other documents' scores count


def test_the_gap_of_the_toy_corpus_is_the_whole_lattice() -> None:
    assert toy().lattice_scores(16, inside=True)[0] == 16
    assert toy().lattice_scores(16, inside=False)[0] == 0
    assert toy().lattice_scores(16, inside=True)[1:] == toy().lattice_scores(16, inside=False)[1:]


def test_hits_of_the_gaussian_harness_follow_their_chance() -> None:
    rng = np.random.default_rng(11)
    others = toy().background
    for queries, trials in ((3, 2000), (9000, 2)):
        hits = harness.gaussian_hits(rng, 1.0, others, 2.0, queries, trials)
        chance = harness.gaussian_chance(1.0, others, 2.0)
        spread = math.sqrt(chance * (1 - chance) * queries * trials)
        assert abs(hits.sum() - chance * queries * trials) < 4 * spread
        assert hits.max() <= queries


def test_formulas_of_the_paper() -> None:
    assert equation_3_11(4, 1, 10_000) == pytest.approx(0.531, abs=6e-4)
    assert equation_3_11(4, 20, 10_000) == pytest.approx(0.638, abs=6e-4)
    assert auc_error(0.5, 10_000) == pytest.approx(math.sqrt(1 / 60_000), rel=1e-6)  # the paper's 0.004
    assert auc_error(0.9, 10_000) < auc_error(0.6, 10_000)


def test_true_positives_of_counts_do_not_jump() -> None:
    """A coin at the threshold: of 100 scores outside two are 3 and five are 2, and 4 % lies between."""
    outside = np.repeat([3, 2, 0], [2, 5, 93])
    inside = np.repeat([3, 2, 0], [20, 40, 40])
    assert true_positives(inside, outside, 0.02) == pytest.approx(0.20)
    assert true_positives(inside, outside, 0.04) == pytest.approx(0.20 + 0.40 * 2 / 5)
    assert true_positives(inside, outside, 0.07) == pytest.approx(0.60)
    assert true_positives(outside, outside, 0.01) == pytest.approx(0.01)
