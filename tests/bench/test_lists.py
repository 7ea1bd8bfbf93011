"""Attacks on lists: they come near the bounds, stay below them, and rise above the bound of a stronger mechanism."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from bench import lists
from rag_audit.commit.explore.simulate import Noise
from rag_audit.lab.empirical.lower_bounds import counted_epsilon, counted_roc
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import curves
from rag_audit.mechanisms.accounting.absence import log_noise_exclusion_factor
from rag_audit.mechanisms.accounting.bernoulli import ChanceListing, Sampling
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.accounting.documents import pooled_epsilon, pooled_factor
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import build_index

DELTA = "1e-5"
RNG = np.random.default_rng(3)
VECTORS = RNG.integers(-2, 3, (24, 32)).astype(np.int8)
TEXT = (RNG.integers(0, 2, 32) * 14 - 7).astype(np.int8)
OTHER = np.where(np.arange(32) % 2, TEXT, -TEXT).astype(np.int8)
WINDOW = (0, 1024)


@pytest.fixture(scope="module")
def target() -> lists.Target:
    index = build_index(np.concatenate([TEXT[None], VECTORS]), 32, Random(1))
    return lists.Target(index, index.positions[0], OTHER, {"repeated": TEXT[None], "questions": VECTORS[:3]})


def _noise(lattice: int) -> Noise:
    return Noise((1,), ScoreWindow(*WINDOW, lattice))


def _certified(lattice: int, queries: int) -> float:
    mechanism = accounting.Mechanism((1,), lattice)
    return accounting.audit_bounds(
        mechanism, n=queries, eps_acc=4, delta_acc="1e-7", k=1, delta=DELTA
    ).best.eps


def test_counting_lists_stays_below_the_noise_s_bound_and_finds_weaker_noise(target: lists.Target) -> None:
    queries = 20
    counts = lists.count_noised(target, [_noise(16), _noise(64)], top_k=1, lists=800, seed=1)
    honest = lists.by_counting("repeated", counts[0, "repeated"], 800, queries, DELTA)
    weaker = lists.by_counting("repeated", counts[1, "repeated"], 800, queries, DELTA)
    assert 1 < honest.eps < _certified(16, queries) < weaker.eps
    assert 0.9 < honest.auc <= accounting.membership(accounting.Mechanism((1,), 16), queries).auc_bound
    assert set(counts) == {(row, name) for row in (0, 1) for name in ("repeated", "questions")}


def test_sampling_shows_its_factor_and_no_more(target: lists.Target) -> None:
    window = ScoreWindow(*WINDOW, 512)
    result = {
        keep: lists.sampled(
            target, Sampling(probability_over_range(keep, "keep")), window, top_k=3, windows=2000, seed=2
        )
        for keep in ("0.5", "0.9")
    }
    half, more = (result[keep]["repeated"] for keep in ("0.5", "0.9"))
    assert 1.8 < half.odds < 2.0 < more.odds < 10.0
    assert half.tpr < curves.roc(Sampling(probability_over_range("0.5", "keep")), 0.01) < more.tpr
    assert result["0.9"]["questions"].odds <= more.odds


def test_pooled_listing_shows_its_bound_and_no_more(target: lists.Target) -> None:
    keep = probability_over_range("0.7", "keep")
    honest, less = (lists.Pool(keep, probability_over_range(q, "chance"), 600, 5) for q in ("0.02", "0.0002"))
    bound = pooled_epsilon(keep, honest.flip_probability)
    result = [
        lists.pooled(target, pool, strategy="repeated", windows=1200, chance_windows=50, top_k=3, seed=3)
        for pool in (honest, less)
    ]
    (attack, odds), (stronger, _) = result
    assert 0.75 * bound < attack.eps < bound < stronger.eps
    assert attack.auc <= curves.auc_for(ChanceListing(keep, honest.flip_probability), 1)
    factor = pooled_factor(keep, honest.flip_probability, queries=5)
    assert 0.85 * factor < odds < factor


def test_a_text_that_no_list_contains_is_absent_by_the_rate_of_one_list() -> None:
    assert lists.factor_by_counting(0, 1000, 200) == 1
    assert lists.factor_by_counting(500, 1000, 2) == pytest.approx(4, rel=0.15)
    assert lists.factor_by_counting(500, 1000, 2) < 4
    assert lists.factor_by_counting(1000, 1000, 2000) == math.inf


def test_keys_of_draws_differ_and_are_field_elements() -> None:
    assert lists.key(1, "kept", 2) != lists.key(1, "kept", 12) != lists.key(11, "kept", 2)
    assert 0 < lists.key(1) < 1 << 254


def test_counts_are_bounded_by_the_rates_of_one_answer() -> None:
    """Against the binomial itself, and against trials of the whole coalition."""
    eps = counted_epsilon((900, 1000), (100, 1000), 10)
    exact = 10 * math.log(9)
    assert 0.7 * exact < eps < exact
    assert counted_epsilon((900, 1000), (100, 1000), 10, delta=DELTA) < eps
    assert counted_epsilon((100, 1000), (100, 1000), 500) == 0
    fpr, tpr = counted_roc(0.9, 0.1, 3)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    inside, outside = RNG.binomial(3, 0.9, 20_000), RNG.binomial(3, 0.1, 20_000)
    assert tpr[2] == pytest.approx((inside >= 2).mean(), abs=0.01)
    assert fpr[2] == pytest.approx((outside >= 2).mean(), abs=0.01)


def test_a_document_of_several_positions_shows_more_than_one_and_less_than_its_bound(
    target: lists.Target,
) -> None:
    """Four positions with one text, against the bound of the losses of all four."""
    vectors = np.concatenate([np.repeat(TEXT[None], 4, axis=0), VECTORS])
    index = build_index(vectors, 32, Random(1))
    others, probes = np.repeat(OTHER[None], 4, axis=0), {"repeated": TEXT[None]}
    document = lists.DocumentTarget(index, index.positions[:4], others, probes)
    first, second = document.scores(TEXT)
    assert sorted(np.flatnonzero(first != second)) == sorted(index.positions[:4])
    assert set(second[list(index.positions[:4])]) == {int(OTHER.astype(int) @ TEXT.astype(int))}
    queries, drawn, mechanism = 20, 2000, accounting.Mechanism((1,), 16)
    attacks, shown = [], []
    for one in (target, document):
        counts = lists.count_noised(one, [_noise(16)], top_k=1, lists=drawn, seed=1)[0, "repeated"]
        attacks.append(lists.by_counting("repeated", counts, drawn, queries, DELTA).eps)
        shown.append(lists.factor_by_counting(counts[0], drawn, queries))
    bound = accounting.audit_bounds(
        mechanism, n=queries, eps_acc=4, delta_acc="1e-7", k=1, delta=DELTA, positions=4
    ).best.eps
    assert attacks[0] < attacks[1] < bound
    factors = [
        math.exp(log_noise_exclusion_factor(mechanism, listed=1, capacity=32, queries=queries, positions=s))
        for s in (1, 4)
    ]
    assert 1 < shown[0] < shown[1] < factors[1] and shown[0] < factors[0]
