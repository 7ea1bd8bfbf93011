"""The comparison of rankings with the float model's."""

from __future__ import annotations

import numpy as np
import pytest

from bench import minilm
from rag_audit.commit.explore.collections import Collection

TEXTS = Collection("four", ["a", "b", "c"], ["1", "2", "3", "4"], [frozenset({i}) for i in (0, 1, 2, 0)])
FIRST = [[0, 1], [1, 0], [2, 0], [0, 2]]
SECOND = [[1, 0], [0, 1], [2, 0], [1, 2]]  # the first two questions' passages second, the last one's absent


def test_differences_are_between_the_same_questions() -> None:
    result = minilm.figures({minilm.FLOAT: FIRST, "other": SECOND}, TEXTS)
    assert result[minilm.FLOAT]["recall@5"] == {"mean": 100, "standard_error": 0}
    assert "less_float" not in result[minilm.FLOAT]
    assert result["other"]["recall@5"]["mean"] == 75
    less = result["other"]["less_float"]
    assert less["recall@5"]["mean"] == -25
    assert less["recall@5"]["standard_error"] == pytest.approx((100**2 * 3 / 16 / 4) ** 0.5)
    second = 100 * 0.6309297535714575  # 1 / log2(3)
    assert less["ndcg@10"]["mean"] == pytest.approx((2 * (second - 100) - 100) / 4)


def test_the_table_has_a_row_for_each_ranking_and_each_difference() -> None:
    result = {"collection": "four", "passages": 3, "questions": 4}
    rankings = minilm.figures({minilm.FLOAT: FIRST, "other": SECOND}, TEXTS)
    lines = minilm.table([{**result, "rankings": rankings}]).splitlines()
    assert lines[0] == "| ranking | four: 3 passages, 4 questions |"
    assert lines[2:4] == [
        f"| {minilm.FLOAT} | 100.0, 100.0, 100.0 (± 0.0) |",
        "| other | 56.5, 75.0, 75.0 (± 21.7) |",
    ]
    assert lines[5:] == [
        "| less the float model | four |",
        "|---|---|",
        "| other | -43.45 ± 17.98, -25.00 ± 21.65 |",
    ]
    without = {**result, "rankings": minilm.figures({"other": SECOND}, TEXTS)}
    assert "less the float model" not in minilm.table([without])
    both = minilm.table([without, {**result, "rankings": rankings}]).splitlines()
    assert both[2] == f"| {minilm.FLOAT} | not measured | 100.0, 100.0, 100.0 (± 0.0) |"
    assert both[-1] == "| other | not measured | -43.45 ± 17.98, -25.00 ± 21.65 |"


def test_the_lower_number_is_first_among_equal_scores() -> None:
    passages = np.random.default_rng(1).integers(0, 3, (200, 2)).astype(np.float32)
    queries = np.array([[1, 1], [1, -1]], np.float32)
    expected = [sorted(range(200), key=lambda i: (-(q @ passages[i]), i))[: minilm.DEPTH] for q in queries]
    assert minilm.ranking(queries, passages) == expected
