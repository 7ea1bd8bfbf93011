"""The recall of pooled listing by threshold, on scores with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from bench.thresholds import best, found

SCORES = np.zeros((20, 64), np.int32)
SCORES[:, :40] = 100
SCORES[np.arange(20), np.arange(20)] = 700
RELEVANT = [frozenset({n}) for n in range(20)]


def recall(threshold: int, *, keep: float = 1.0, flip: float = 0.0) -> float:
    mean, error = found(SCORES, RELEVANT, threshold=threshold, keep=keep, flip=flip, queries=20, top_k=5, windows=40,
                        seed=3)  # fmt: skip
    assert error >= 0
    return mean


def test_a_threshold_above_a_passage_s_score_does_not_find_it() -> None:
    assert recall(700) == 1 and recall(701) == 0
    # Chance lists every document at each question.
    assert recall(701, flip=1.0) == 1


def test_the_sample_limits_the_recall() -> None:
    assert recall(700, keep=0.5) == pytest.approx(0.5, abs=0.06)


def test_a_position_without_a_score_is_never_returned() -> None:
    assert best(SCORES[0], np.ones(64, np.bool_), 50) == list(range(40))
    assert best(SCORES[3], np.ones(64, np.bool_), 1) == [3]
