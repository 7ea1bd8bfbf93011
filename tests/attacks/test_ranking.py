"""Selection under mechanisms and Mirabel, against the engine's own and against the distributions they promise."""

import math

import numpy as np
import pytest

from rag_audit.errors import PolicyError
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.interface import Probe, YesNo
from rag_audit.lab.attacks.mechanisms import Attacked, Ranking, parse
from rag_audit.lab.attacks.mechanisms.base import gumbel_threshold
from rag_audit.lab.attacks.split import Split
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import build_index, no_noise, select

WINDOW = ScoreWindow(20, 160, 64)


def attacked(written: str, capacity: int = 64) -> Attacked:
    return parse(written, WINDOW, capacity, 601)


def ranking(written: str, capacity: int = 64, top_k: int = 4, defence: str = "none") -> Ranking:
    return Ranking(attacked(written, capacity), capacity, np.arange(capacity), top_k, defence, 3)  # type: ignore[arg-type]


def test_without_noise_the_engine_selects_the_same() -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(-7, 8, (50, 16)).astype(np.int8)
    index = build_index(rows, 64)
    for _ in range(20):
        query = rng.integers(-7, 8, 16).astype(np.int8)
        result = ranking("none").window(1).select(index.scores(query), 0).positions
        exact = ScoreWindow(0, 1 << 14, 1 << 14)
        scores = np.maximum(index.scores(query), 0)
        want = select(index, query, no_noise(64), exact, 4)
        assert [scores[p] for p in result] == [scores[p] for p in want]


def test_a_window_repeats_by_its_name() -> None:
    scores = np.random.default_rng(1).integers(0, 160, 64).astype(np.int32)
    r = ranking("noise:1,8:64")
    assert r.window(4).select(scores, 0) == r.window(4).select(scores, 0)
    assert len({r.window(name).select(scores, 0).positions for name in range(8)}) > 1


def test_sampling_keeps_a_share_of_positions_for_the_whole_window() -> None:
    scores = np.arange(64, dtype=np.int32) + 100
    tops = [ranking("sampling:0.7", top_k=1).window(name) for name in range(600)]
    first = [w.select(scores, 0).positions for w in tops]
    assert first == [w.select(scores, 1).positions for w in tops]
    share = sum(p == (63,) for p in first) / 600
    assert abs(share - 0.7) < 4 * math.sqrt(0.21 / 600)


def test_pooled_listing_lists_for_all_accounts_in_the_order_of_the_requests() -> None:
    """A document is listed by the account whose question reaches the threshold, and then ranks for every account."""
    near, far = np.full(64, 5, np.int32), np.full(64, 5, np.int32)
    near[7], far[7] = 700, 20
    pool = "pooled-listing:0.999999:0.000001:601"
    window = ranking(pool, top_k=2).window(5)
    assert window.select(far, 1).positions == (), "below the threshold, and not yet listed"
    assert window.select(near, 0).positions == (7,), (
        "other documents are not listed, and their places stay empty"
    )
    assert window.select(far, 1).positions == (7,)
    assert ranking(pool, top_k=2).window(6).select(far, 1).positions == (), (
        "a window begins without listed documents"
    )
    far[7] = 0
    assert window.select(far, 1).positions == (), "a place without a positive score stays empty"


def test_pooled_listing_lists_by_chance_as_often_as_f_says() -> None:
    scores = np.full(64, 5, np.int32)
    asked = 0
    for name in range(40):
        window = ranking("pooled-listing:0.5:0.3:601:50", top_k=64).window(name)
        for account in range(49):
            window.select(scores, account % 3)
        asked += len(window.select(scores, 0).positions)
    assert asked / (40 * 64) == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / (40 * 64)))


def test_pooled_listing_has_one_epsilon_for_any_coalition_and_more_for_more_questions() -> None:
    few, many = (attacked(f"pooled-listing:0.9:0.1:601:{m}") for m in (200, 2000))
    eps = {few.certified(k, n, "1e-5")[0] for k, n in ((1, 1), (4, 50))}
    assert eps == {9.7463} and many.certified(1, 1, "1e-5")[0] == 12.049
    assert attacked("pooled-listing:0.9").parameters == few.parameters, "the default f, threshold and m"
    assert few.certified(1, 1, "1e-5")[1] == pytest.approx(0.995, abs=1e-4)


def test_the_threshold_is_exceeded_by_normal_maxima_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(0.3, 0.1, (1500, 1000))
    above = np.mean([row.max() > gumbel_threshold(row) for row in draws])
    # The paper's location sqrt(2 ln n) lies above the maximum's own, so its test is stricter than its level.
    assert above < 0.05
    draws[:, 0] = 0.95
    assert np.mean([row.max() > gumbel_threshold(row) for row in draws]) > 0.99


@pytest.mark.parametrize("written", ["none", "noise:1:64"])
def test_mirabel_hides_what_stands_out_and_answers_with_the_next(written: str) -> None:
    scores = np.random.default_rng(3).normal(60, 6, 512).astype(np.int32)
    plain = ranking(written, 512, 3, "mirabel-plain")
    assert plain.window(1).select(scores, 0).hidden is None
    scores[9] = 158
    result = plain.window(1).select(scores, 0)
    assert result.hidden == 9
    assert 9 not in result.positions
    assert len(result.positions) == 3


@pytest.mark.parametrize(
    "written",
    [
        "",
        "noise:64",
        "noise:1,8",
        "loud",
        "sampling:1.5",
        "noise:8,1:64",
        "none:0.7",
        "pooled-listing:0.9:0.1",
        "pooled-listing:0.9:0.1:601:0",
        "pooled-listing:0.9:0.1:601:x",
        "pooled-listing:0.9:1:601",
        "pooled-listing:0.9:0.1:601:200:9",
    ],
)
def test_a_mechanism_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(PolicyError):
        attacked(written)


def test_noise_that_no_bound_covers_is_certified_as_nothing() -> None:
    assert attacked("noise:1:256").certified(1, 1, "1e-5") == (math.inf, None)


def test_sampling_bounds_the_area_and_no_epsilon() -> None:
    epsilon, auc = attacked("sampling:0.7").certified(1, 1, "1e-5")
    assert epsilon == math.inf
    assert auc is not None and 0.5 < auc < 1


def test_only_noise_has_the_policy_s_delta() -> None:
    written = ("noise:1:64", "sampling:0.7", "pooled-listing:0.7", "none")
    assert [attacked(w).delta("1e-5") for w in written] == ["1e-5", 0, 0, 0]


def test_a_defence_that_is_not_defined_under_a_mechanism_is_refused(bench: Bench) -> None:
    with pytest.raises(PolicyError, match="not defined under the mechanism pooled-listing"):
        bench.engine(Cell("pooled-listing:0.7", "mirabel"))


def test_the_world_without_the_document_differs_in_its_place_alone(bench: Bench, split: Split) -> None:
    engine = bench.engine(Cell("none"))
    probes = [Probe(n, 0, 0, YesNo(text, text, presence=True)) for n, text in enumerate(split.members[:20])]
    assert all(answer.actual for answer in engine.ask(probes))
    assert not any(answer.actual for answer in engine.ask_without(probes))
    certain = bench.engine(Cell("pooled-listing:0.0001:0.5:354:1"))
    read = certain.ask_without(probes)
    assert any(a.actual and "Yes" in a.reply.text for a in read), (
        "chance lists the empty place, and the answer is made of the document's text all the same"
    )


def test_pooled_listing_answers_in_the_world_without_the_document_from_its_lists(
    bench: Bench, split: Split
) -> None:
    """The place is empty and its bit cannot list it, so only chance does; the answer then reads the document's text."""
    probes = [Probe(n, 0, 0, YesNo(text, text, presence=True)) for n, text in enumerate(split.members[:20])]
    never, often = (bench.engine(Cell(f"pooled-listing:0.9999:{f}:1:1")) for f in ("0.000001", "0.5"))
    assert all(answer.actual for answer in never.ask(probes))
    assert not any(answer.actual for answer in never.ask_without(probes))
    read = often.ask_without(probes)
    assert any(a.actual and "Yes" in a.reply.text for a in read)
    assert not all(a.actual for a in read)
