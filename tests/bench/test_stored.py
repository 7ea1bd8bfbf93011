"""Vectors that measurements keep between runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import stored
from bench.stored import Store, StoredEncoder

LISTS = [[1, 2, 3], [1, 23], [4], [1, 2, 3]]


class Encoder:
    """Returns the tokens' sum, and leaves a range at the token 9."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def embed(
        self, texts: Sequence[Sequence[int]], first: bool
    ) -> list[tuple[bytes | None, tuple[int, str, int] | None]]:
        self.seen += [list(text) for text in texts]
        return [(None, (1, "x1", 9)) if 9 in text else (bytes([sum(text)]), None) for text in texts]


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    calls: list[list[int]] = []

    def compute(part: Sequence[Sequence[int]]) -> list[bytes]:
        calls.extend(list(tokens) for tokens in part)
        return [bytes(tokens) for tokens in part]

    for _ in range(2):
        store = Store(tmp_path / "vectors", "model")
        assert store.fill(LISTS, compute, "step") == [bytes(tokens) for tokens in LISTS]
        assert calls == [[4], [1, 23], [1, 2, 3]], "each text once, the shortest first"
    Store(tmp_path / "vectors", "other model").fill(LISTS[:1], compute, "step")
    assert calls[3:] == [[1, 2, 3]], "a model has its own vectors"


def test_an_interrupted_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "BATCH", 1)
    store, calls = Store(tmp_path / "vectors", "model"), 0

    def compute(part: Sequence[Sequence[int]]) -> list[bytes]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return [bytes(tokens) for tokens in part]

    with pytest.raises(KeyboardInterrupt):
        store.fill(LISTS, compute, "step")
    assert store.fill(LISTS, compute, "step") == [bytes(tokens) for tokens in LISTS]
    assert calls == 4, "three texts, one of them twice"


def test_a_stored_encoder_gives_the_encoder_s_results_and_names_each_fault() -> None:
    encoder = Encoder()
    kept = StoredEncoder(encoder, Store(None, "model"))
    texts = [[1, 2], [9], [3]]
    for _ in range(2):
        assert kept.embed(texts, False) == Encoder().embed(texts, False)
    assert kept.embed([[3], [5]], False) == [(b"\3", None), (b"\5", None)]
    assert encoder.seen == [[1, 2], [9], [3], [9], [5]]
