"""The comparison of paraphrases, on vectors whose cosines are known."""

from __future__ import annotations

import numpy as np

from bench.paraphrases import compare, with_common


def test_pairs_share_an_element_and_are_different_questions() -> None:
    questions = ["a", "b", "a ", "c"]
    groups = [frozenset({1}), frozenset({1, 2}), frozenset({1}), frozenset({3})]
    assert with_common(groups, questions) == [(0, 1), (1, 2)]


def test_a_pair_at_theta_is_near() -> None:
    """Cosines 1, 4/5, 3/5, 0 and -1: the end of the interval is included."""
    one = np.array([[5, 0], [5, 0], [5, 0], [5, 0], [5, 0]], np.int8)
    other = np.array([[7, 0], [4, 3], [3, 4], [0, 7], [-7, 0]], np.int8)
    result = compare(one, other)
    assert result["pairs"] == 5
    assert result["near"] == {"0.8": 0.4, "0.9": 0.2, "0.95": 0.2}
    assert result["median_cosine"] == 0.6
