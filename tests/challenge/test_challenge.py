"""Challenges: the published draw, its fairness, and notes that are refused."""

import json
from collections import Counter
from decimal import Decimal
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import sha256
from rag_audit.errors import RagAuditError
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge, draw, sample_size

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "vectors/v1/challenge.json").read_text()
)


@pytest.mark.parametrize("case", VECTORS["draw"], ids=lambda c: f"{c['sample']} of {c['count']}")
def test_draw(case: dict[str, Any]) -> None:
    root, nonce = bytes.fromhex(case["root"]), bytes.fromhex(case["nonce"])
    drawn = draw(root, nonce, case["count"], case["sample"])
    assert drawn == case["result"]
    assert len(set(drawn)) == len(drawn) == min(case["count"], case["sample"])


def test_every_subset_is_equally_likely() -> None:
    trials = 3_000
    seen = Counter(
        tuple(sorted(draw(bytes(32), sha256(bytes([n % 256, n // 256])), 5, 2))) for n in range(trials)
    )
    assert set(seen) == set(combinations(range(5), 2))
    expected = trials / comb(5, 2)
    # 9 degrees of freedom; the draw is fixed, so this either holds or it does not: 27.9 is the 0.1 % point.
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 27.9


def test_root_and_nonce_both_decide() -> None:
    base = draw(bytes(32), bytes(32), 1000, 20)
    assert draw(bytes(31) + b"\1", bytes(32), 1000, 20) != base
    assert draw(bytes(32), bytes(31) + b"\1", 1000, 20) != base


@pytest.mark.parametrize("case", VECTORS["sample_size"], ids=lambda c: f"{c['beta']} {c['eta']} {c['count']}")
def test_sample_size(case: dict[str, Any]) -> None:
    assert sample_size(Decimal(case["beta"]), Decimal(case["eta"]), case["count"]) == case["result"]


@pytest.mark.parametrize("case", VECTORS["note"], ids=lambda c: str(c["sample"]))
def test_note(case: dict[str, Any]) -> None:
    challenge = Challenge.parse(case["text"], field="challenge")
    assert challenge.sample == case["sample"]
    assert challenge.text() == case["text"]


def test_positions_are_ledger_indices_in_order() -> None:
    challenge = Challenge.parse(VECTORS["note"][1]["text"], field="challenge")
    seqs = [2 + 3 * n for n in range(40)]
    positions = challenge.positions(seqs)
    assert positions == sorted(positions) and len(positions) == 7 and set(positions) <= set(seqs)
    everything = Challenge.parse(VECTORS["note"][0]["text"], field="challenge")
    assert everything.positions(seqs) == seqs


@pytest.mark.parametrize("case", VECTORS["negative"], ids=lambda c: c["name"])
def test_note_that_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(RagAuditError):
        Challenge.parse(case["text"], field="challenge")


def test_a_verifier_that_is_asked_twice_draws_the_same() -> None:
    """Else a provider that dislikes a draw loses the note, asks again, and publishes what it likes."""
    key = SigningKey.generate("v")
    over = ("o", "w", 3, bytes(32))
    one = Challenge.new(key, *over, 7)
    assert Challenge.new(key, *over, 7) == one
    seqs = list(range(50))
    larger = Challenge.new(key, *over, 20)
    assert set(one.positions(seqs)) < set(larger.positions(seqs))


def test_nobody_else_draws_the_same() -> None:
    key = SigningKey.generate("v")
    others = [
        Challenge.new(SigningKey.generate("v"), "o", "w", 3, bytes(32), 1),
        Challenge.new(key, "p", "w", 3, bytes(32), 1),
        Challenge.new(key, "o", "x", 3, bytes(32), 1),
        Challenge.new(key, "o", "w", 4, bytes(32), 1),
        Challenge.new(key, "o", "w", 3, bytes([1]) * 32, 1),
        Challenge.new(key, "o", "w", 3, bytes(32), 1),
    ]
    assert len({c.nonce for c in others}) == len(others)


def test_the_nonce_is_no_signature_of_anything_shown() -> None:
    """Known from the note alone, it would be known to whoever sees an earlier note."""
    key = SigningKey.generate("v")
    drawn = Challenge.new(key, "o", "w", 3, bytes(32), 1)
    shown = drawn.text().encode()
    assert drawn.nonce not in {sha256(key.sign(shown)), sha256(shown), key.sign(shown)[:32]}
