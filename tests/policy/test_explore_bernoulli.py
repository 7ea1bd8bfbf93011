"""What sampling and listing find: against closed forms where there are some, and through the command."""

import math
from pathlib import Path

import numpy as np
import pytest

from rag_audit.commit.explore.bernoulli import (
    BernoulliMechanism,
    BernoulliPoint,
    PooledList,
    SampledTopK,
    default_mechanisms,
    measure,
    parse_mechanism,
)
from rag_audit.commit.explore.render import bernoulli_table, draw
from rag_audit.commit.explore.simulate import Grid, Noise, explore
from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting.bernoulli import Sampling
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow
from tests.policy.test_explore import ASKED, explored, files, random_sample, run

__all__ = ["files"]
HALF = PROBABILITY_RANGE // 2
NEVER, ALWAYS = 1, PROBABILITY_RANGE - 1


def measured(
    mechanism: BernoulliMechanism, *, n: int = 40, repeats: int = 1, seed: int = 3
) -> BernoulliPoint:
    return measure(random_sample(), mechanism, top_k=5, n=n, ks=(1, 2), repeats=repeats, seed=seed)


def self_scores() -> list[int]:
    sample = random_sample()
    return [int(sample.index.scores(q)[min(w)]) for q, w in zip(sample.queries, sample.relevant, strict=True)]


def test_a_document_is_found_as_often_as_it_is_kept() -> None:
    """Without noise each question of this sample finds its own document first."""
    assert measured(SampledTopK(Sampling(ALWAYS))).in_list.recall == 1
    assert measured(SampledTopK(Sampling(NEVER))).in_list.recall == 0
    result = measured(SampledTopK(Sampling(HALF)), repeats=50)
    assert abs(result.in_list.recall - 0.5) < 5 * 0.5 / math.sqrt(40 * 50)
    assert all(math.isinf(eps) for eps in result.eps.values())


def test_what_is_not_kept_in_a_window_is_missing_from_all_its_lists() -> None:
    """Every question twice, by two accounts: the same positions are found or missed."""
    sample = random_sample(questions=20)
    twice = type(sample)(sample.index, np.concatenate([sample.queries] * 2), [*sample.relevant] * 2)
    result = measure(twice, SampledTopK(Sampling(HALF)), top_k=5, n=20, ks=(1,), repeats=1)
    assert (result.in_list.recall * 40) % 2 == 0


def test_pooled_listing_finds_what_is_kept_and_keeps_one_set_for_a_window() -> None:
    minimum = min(self_scores())
    certain = measured(PooledList.of(ALWAYS, "0.000001", minimum, 40))
    assert certain.in_list.recall == 1
    kept = measured(PooledList.of(HALF, "0.000001", minimum, 40), repeats=50)
    assert abs(kept.in_list.recall - 0.5) < 5 * 0.5 / math.sqrt(40 * 50)
    # The bits of a window are those of all its questions: with one window for each question, recall varies less.
    each = [measured(PooledList.of(HALF, "0.000001", minimum, 1), seed=s).in_list.recall for s in range(30)]
    assert abs(float(np.mean(each)) - 0.5) < 5 * 0.5 / math.sqrt(40 * 30)
    assert certain.eps[1] == certain.eps[2] and certain.exclusion_factor[1] == certain.exclusion_factor[2]


def test_pooled_listing_returns_the_text_of_a_document_that_chance_lists() -> None:
    """The threshold is out of reach and the sample almost empty, so chance alone lists a document."""
    result = measured(PooledList.of(NEVER, "0.5", 10**6, 40), repeats=50)
    shares = 1 - 0.5 ** (
        np.arange(1, 41) / 40
    )  # a document is listed by question t of 40 with this probability
    assert result.in_list.recall == pytest.approx(shares.mean(), abs=5 * 0.5 / math.sqrt(40 * 50))


def test_figures_repeat_under_one_seed_and_move_under_another() -> None:
    mechanism = PooledList.of(HALF, "0.5", 10**6, 40)
    assert measured(mechanism) == measured(mechanism)
    assert measured(mechanism) != measured(mechanism, seed=4)


def test_mechanisms_are_read_as_they_are_written() -> None:
    assert parse_mechanism("sampling:0.9") == SampledTopK(Sampling(probability_over_range("0.9", "keep")))
    pool = PooledList.of(HALF, "0.2", 354, 800)
    assert parse_mechanism("pooled-listing:0.5:0.2:354", 800) == pool


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("sampling", "--mechanism"),
        ("noise:1", "--mechanism"),
        ("sampling:0", "--mechanism: keep"),
        ("sampling:1", "--mechanism: keep"),
        ("sampling:x", "--mechanism: keep"),
        ("pooled-listing:0.5", "--mechanism"),
        ("pooled-listing:2:0.1:354", "--mechanism: keep"),
        ("pooled-listing:0.5:1:354", "f"),
        ("pooled-listing:0.5:0.1:0", "--mechanism: threshold"),
    ],
)
def test_a_mechanism_that_is_none_is_refused(written: str, field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_mechanism(written)
    assert refused.value.field == field


def test_an_embedder_without_a_threshold_has_no_listing_by_default() -> None:
    assert [type(m) for m in default_mechanisms(None, 400)] == [SampledTopK] * 2
    rows = default_mechanisms(601, 400)
    assert [type(m) for m in rows] == [SampledTopK] * 2 + [PooledList] * 2
    assert rows[2].epsilon(1) == rows[2].epsilon(10) == 10.44


def test_the_command_shows_the_mechanisms_beside_noise(files: Path) -> None:
    result = explored(files, "--gains", "1,8", "--lattice", 64, "--mechanism", "sampling:0.5", "--k", 3)
    (row,) = result["mechanisms"]
    assert (row["n"], row["eps"], row["exclusion_factor"]) == (
        200, {"1": "inf", "3": "inf"}, {"1": "2.0001", "3": "2.0001"},
    )  # fmt: skip
    text = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--repeats", 5, "--gains", "1,8", "--lattice", 64, "--capacity", 64,
    ).stdout  # fmt: skip
    assert "sampling, keep 0.9" in text and "pooled listing, keep 0.9, m 2000" in text
    assert "the presence of a document that is asked for has no protection" in " ".join(text.split())
    assert len(ASKED) == result["questions"]


def test_a_bad_mechanism_ends_in_a_named_error(files: Path) -> None:
    result = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--mechanism", "pooled-listing:2",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "rag-audit: " in result.stderr
    assert "  at: --mechanism\n" in result.stderr


def test_table_and_picture_show_every_mechanism(tmp_path: Path) -> None:
    noises = [Noise((1, 8), ScoreWindow(101, 810, r)) for r in (128, 64)]
    result = explore(random_sample(), Grid(noises, [1], [1]), top_k=5, delta="1e-5", repeats=1)
    points = [measured(SampledTopK(Sampling(HALF))), measured(PooledList.of(HALF, "0.5", 354, 40))]
    text = bernoulli_table(points, result, 40)
    assert all(p.mechanism.label in text for p in points) and "inf" in text
    pytest.importorskip("matplotlib")
    draw(result, tmp_path / "x.svg", points)
    drawn = (tmp_path / "x.svg").read_text()
    assert "floor, k = 2" in drawn and "pooled listing, keep 0.5" in drawn
