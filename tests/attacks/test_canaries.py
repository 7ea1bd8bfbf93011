"""Canaries: how they are made, that coins decide, and what a test of them proves."""

import math
import stat
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rag_audit.errors import SchemaError, StoreError
from rag_audit.lab.attacks import canaries
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.interface import AttackError
from rag_audit.lab.attacks.mechanisms.noise import STRONG_NOISE
from rag_audit.lab.attacks.split import Split


@pytest.fixture(scope="module")
def marked(split: Split) -> list[canaries.Canary]:
    return canaries.make(split.own, 48, perplexity=400.0, random=Random(2))


@pytest.fixture(scope="module")
def with_canaries(bench: Bench, split: Split, marked: list[canaries.Canary]) -> Bench:
    return Bench([*(c.text for c in marked), *split.members], bench.embedder, bench.tools, seed=1)


def test_a_canary_begins_like_a_document_and_ends_like_none(
    split: Split, marked: list[canaries.Canary]
) -> None:
    assert all(any(text.startswith(c.prefix) for text in split.own) for c in marked)
    assert 10 < sum(c.inserted for c in marked) < 38
    assert len({c.suffix for c in marked}) == len(marked)
    near = [c for c in marked if 360 <= c.perplexity <= 440]
    assert len(near) > len(marked) / 2


def test_the_file_is_private_and_comes_back(marked: list[canaries.Canary], tmp_path: Path) -> None:
    path = tmp_path / "canaries"
    canaries.save(marked, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert canaries.load(path) == marked
    with pytest.raises(StoreError):
        canaries.save(marked, path)
    path.chmod(0o600)
    path.write_text('{"id": "x", "prefix": "a", "suffix": "b", "inserted": 1, "perplexity": 3}\n')
    with pytest.raises(SchemaError, match="not a canary"):
        canaries.load(path)


def test_without_a_mechanism_nearly_every_guess_is_right(
    with_canaries: Bench, marked: list[canaries.Canary]
) -> None:
    result = canaries.test(marked, canaries.in_engine(with_canaries.engine(Cell("none")), marked))
    assert result.auc.value > 0.95
    assert result.correct >= result.guesses - 1
    assert result.lower > 1.5
    assert result.queries == 48


def test_coins_that_were_tossed_again_are_not_guessed(
    with_canaries: Bench, marked: list[canaries.Canary]
) -> None:
    """The score comes from the index and not from the file: other coins in the file leave half of the guesses right."""
    engine = canaries.in_engine(with_canaries.engine(Cell("none")), marked)
    random = Random(9)
    tossed = [replace(c, inserted=random.random() < 0.5) for c in marked]
    assert canaries.test(tossed, engine).lower < 1


def test_what_lists_say_stays_below_the_certificate(
    with_canaries: Bench, marked: list[canaries.Canary]
) -> None:
    engine = canaries.in_engine(with_canaries.engine(Cell(STRONG_NOISE)), marked)
    result = canaries.test(marked, engine, accounts=2)
    assert result.lower < engine.attacked.certified(2, 1, "1e-5")[0] < math.inf


def test_too_few_are_refused(split: Split, marked: list[canaries.Canary], bench: Bench) -> None:
    with pytest.raises(AttackError, match="too few documents"):
        canaries.make(split.own, len(split.own) + 1)
    with pytest.raises(AttackError, match="too few canaries"):
        canaries.test(marked[:8], bench.engine(Cell("none")))
