"""The commitments that production code calls against the reference, bit for bit."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError
from rag_audit.relation import commitments as slow
from rag_audit.relation import native as fast
from rag_audit.relation import native_secrets, poseidon
from rag_audit.relation.field import MODULUS, digest_to_field

EDGES = (0, 1, 2**253, MODULUS - 1)
VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "v1"


def cases() -> list[Any]:
    """A name of both modules, and arguments at the lengths where a list's runs end."""
    rng = random.Random(19)
    salts = [*EDGES, rng.randrange(MODULUS)]
    result: list[tuple[str, tuple[Any, ...]]] = [
        ("hash_elements", tuple(rng.randrange(MODULUS) for _ in range(length))) for length in (1, 15, 16)
    ]
    result += [("hash_list", (7, [rng.randrange(MODULUS) for _ in range(n)])) for n in (0, 1, 15, 16, 31)]
    result += [("seed_commitment", (a, b)) for a, b in zip(salts, reversed(salts), strict=True)]
    result += [("noise_key", tuple(rng.sample(salts, 4))) for _ in range(3)]
    result += [("slot_id", ("w-1", "tenant-a", "account-1", i)) for i in (1, 2, 2**53 - 1)]
    result += [("query_commitment", (salts[0], [rng.randrange(2**15) for _ in range(n)])) for n in (0, 1, 64)]
    result += [
        ("text_query_commitment", (salts[1], text.encode())) for text in ("", "What is bail?", "é" * 99)
    ]
    result += [("vector_commitment", (salts[2], [rng.randint(-7, 7) for _ in range(n)])) for n in (16, 256)]
    result += [("topk_commitment", (salts[3], rng.sample(range(10**5), n))) for n in (1, 5, 16)]
    return [pytest.param(name, arguments, id=f"{name}-{i}") for i, (name, arguments) in enumerate(result)]


@pytest.mark.parametrize(("name", "arguments"), cases())
def test_it_is_the_references_value(name: str, arguments: tuple[Any, ...]) -> None:
    reference = getattr(poseidon, name, None) or getattr(slow, name)
    native = fast if hasattr(fast, name) else native_secrets
    assert getattr(native, name)(*arguments) == reference(*arguments)


def test_a_published_slot() -> None:
    case = json.loads((VECTORS / "commitments.json").read_text())["slot"][1]
    result = fast.slot_id(case["window"], case["tenant"], case["account"], case["i"])
    assert result == int(case["result"], 16)


@pytest.mark.parametrize("wrong", [-1, MODULUS, MODULUS + digest_to_field(b"")])
def test_what_is_no_field_element_is_refused(wrong: int) -> None:
    with pytest.raises(EncodingError, match="not a field element"):
        native_secrets.seed_commitment(0, wrong)


def test_queries_are_counted_from_one() -> None:
    with pytest.raises(EncodingError, match="out of range"):
        fast.slot_id("w", "t", "a", 0)
