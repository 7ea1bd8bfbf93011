"""The public map from real vectors to int4 ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rag_audit.retrieval.embedders import NothingToEmbed
from rag_audit.retrieval.embedders.quantise import published_scale, quantise_unit, turned


@pytest.mark.parametrize(
    ("dimension", "scale"),
    [(9, "1.000"), (384, "0.153"), (768, "0.108"), (1024, "0.093"), (1536, "0.076"), (4096, "0.046")],
)
def test_the_scale_follows_from_the_dimension_alone(dimension: int, scale: str) -> None:
    assert published_scale(dimension) == scale
    assert 3 / dimension**0.5 - 0.001 < float(scale) <= 3 / dimension**0.5


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 384, 1025])
def test_a_turn_keeps_scores_and_spreads_one_component_over_all(dimension: int) -> None:
    x = np.random.default_rng(1).standard_normal((6, dimension))
    y = turned(x)
    assert np.allclose(y @ y.T, x @ x.T, rtol=1e-12, atol=1e-9)
    basis = turned(np.eye(dimension))
    assert np.allclose(basis @ basis.T, np.eye(dimension), atol=1e-12)
    if dimension >= 384:
        assert np.abs(basis).max() < 6 / dimension**0.5


def test_a_vector_is_turned_alike_alone_and_among_others() -> None:
    x = np.random.default_rng(2).standard_normal((5, 769))
    assert np.array_equal(turned(x)[3], turned(x[3]))


KNOWN = [-4.625, -4.875, 0.75, 0.625, -6.5, -1.625]
KNOWN_INT4 = [-3, -3, 0, 0, -4, -1]


def test_a_turn_is_one_that_others_can_compute() -> None:
    """Its first values are held here, since manifests name it: another map needs another name."""
    y = turned(np.arange(1.0, 7.0))
    assert np.round(y, 6).tolist() == KNOWN
    assert quantise_unit(np.arange(1.0, 7.0), Fraction("1.2"), turn=True).tolist() == KNOWN_INT4


def test_a_cut_comes_before_the_norm_and_the_turn() -> None:
    x = np.random.default_rng(3).standard_normal(48)
    for turn in (False, True):
        cut = quantise_unit(x, Fraction(1, 2), 20, turn=turn)
        assert cut.shape == (20,)
        assert cut.tolist() == quantise_unit(5 * x[:20], Fraction(1, 2), turn=turn).tolist()


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_what_has_no_direction_is_refused(value: float) -> None:
    with pytest.raises(NothingToEmbed):
        quantise_unit(np.full(8, value), Fraction(1), turn=True)
