"""The demo's policies and its table: what each mechanism finds and reads, measured with the provider's own functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from rag_audit.cli.demo.corpus import Question, collect
from rag_audit.cli.demo.recall import Asks, exact, measure, table
from rag_audit.cli.demo.run import MECHANISMS, demo_policy, table_shape
from rag_audit.mechanisms.base import Mechanism
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.engine import TenantIndex
from rag_audit.retrieval.texts import DocumentPart

pytest.importorskip("wordllama")
TENANT = "stdlib"


def texts(documents: int = 12, parts: int = 3) -> list[DocumentPart]:
    """Each part has words of its own."""
    return [
        DocumentPart(f"{d}-{p}", TENANT, f"{d}-{p}", f"word{d}x{p} of chapter {d}, part {p}", f"book {d}")
        for d in range(documents)
        for p in range(parts)
    ]


def mechanisms(own: Sequence[DocumentPart]) -> list[Mechanism]:
    return [demo_policy({TENANT: own}, make).mechanism_of(TENANT) for make in MECHANISMS]


def test_a_third_of_the_documents_have_four_positions_and_all_fit_the_table() -> None:
    own = collect()
    positions = Counter(text.document for text in own)
    assert sum(count >= 4 for count in positions.values()) * 3 >= len(positions)
    shape = table_shape(own)
    assert len(positions) <= shape.documents and max(positions.values()) <= shape.positions_per_document


def test_the_window_s_epsilon_is_at_most_ten_for_any_number_of_accounts() -> None:
    policy = demo_policy({TENANT: collect()}, MECHANISMS[0])
    mechanism = policy.mechanism_of(TENANT)
    assert 0 < mechanism.epsilon(1, None) == mechanism.epsilon(1000, None) <= 10
    assert mechanism.name == "pooled-listing" and policy.unit == "document"


def unit_index(documents: int) -> Asks:
    """One position for each document, whose vector only its own question has."""
    vectors = np.zeros((64, 768), np.int8)
    for n in range(documents):
        vectors[2 * n, n * 40 : n * 40 + 40] = 7
    document = np.full(64, documents, np.int64)
    document[: 2 * documents : 2] = np.arange(documents)
    return Asks(
        TenantIndex(vectors, tuple(range(0, 2 * documents, 2))),
        [vectors[2 * n] for n in range(documents)],
        [{2 * n} for n in range(documents)],
        document,
        documents,
    )


def test_exact_retrieval_finds_and_reads_every_document() -> None:
    asks = unit_index(10)
    assert exact(asks, 5).found == 10 and exact(asks, 5).read == 10
    assert exact(asks, 5).error == 0


def test_samples_hide_documents_at_the_rate_of_the_policy() -> None:
    """Sampling and pooled listing with a share of 0.95 find about 19 of 20 documents; their texts alone are read."""
    asks = unit_index(10)
    by_name = {m.name: m for m in mechanisms(texts())}
    for name in ("sampling", "pooled-listing"):
        result = measure(by_name[name], asks, 5, windows=100)
        # 1,000 draws of a bit: six standard errors are 0.042. Chance of pooled listing adds at most f = 0.1 of the rest.
        assert 9.5 - 0.42 <= result.found <= 9.55 + 0.42, name
        assert 0 < result.error < 0.2
    assert measure(by_name["none"], asks, 5, windows=2).found == 10


def test_pooled_listing_returns_no_text_of_an_empty_or_unlisted_position() -> None:
    asks = unit_index(3)
    pooled = next(m for m in mechanisms(texts()) if m.name == "pooled-listing")
    result = measure(pooled, asks, 5, windows=20)
    # A question scores 0 at every other document, so each answer has at most its own.
    assert result.read == pytest.approx(result.found)


def test_the_table_has_a_line_for_each_mechanism_and_the_comparisons() -> None:
    own, embedder = texts(), get_embedder(query_tokens=24)
    policies = [demo_policy({TENANT: own}, make) for make in MECHANISMS]
    asked = [Question("word3x1 of chapter 3, part 1", TENANT, "3-1")]
    head, names, *lines = table(policies, embedder, {TENANT: own}, asked, windows=3)
    assert "1 questions, means of 3 windows; exact retrieval finds 1 passages" in head
    assert "of 12 documents, blind chance finds 0.1" in head
    assert names.split()[0] == "mechanism"
    assert [line.split()[0] for line in lines] == [
        "pooled-listing",
        "sampling",
        "noise",
        "none",
    ]
    assert "a document, any number of accounts" in lines[0] and "a document, 2 accounts" in lines[2]
    assert "no document" in lines[3] and "(100%)" in lines[3]
