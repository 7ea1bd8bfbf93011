"""The demo's policies and its table: what each mechanism finds and reads, measured with the provider's own functions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.cli.demo import command
from rag_audit.cli.demo import embedder as demo_embedder
from rag_audit.cli.demo.corpus import Question, collect
from rag_audit.cli.demo.embedder import FOUND, Choice, choose, vectors_file, with_vectors
from rag_audit.cli.demo.recall import Asks, exact, measure, table
from rag_audit.cli.demo.run import MECHANISMS, demo_policy, table_shape
from rag_audit.cli.demo.stage import Demo
from rag_audit.errors import SetupError
from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.pooled_listing import PooledListing
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, published_constants
from rag_audit.retrieval.embedders.integer_bert import installed
from rag_audit.retrieval.engine import TenantIndex
from rag_audit.retrieval.texts import DocumentPart

pytest.importorskip("wordllama")
TENANT = "stdlib"
TABLE = Choice(DEFAULT_EMBEDDER, "the tests use it")


def texts(documents: int = 12, parts: int = 3) -> list[DocumentPart]:
    """Each part has words of its own."""
    return [
        DocumentPart(f"{d}-{p}", TENANT, f"{d}-{p}", f"word{d}x{p} of chapter {d}, part {p}", f"book {d}")
        for d in range(documents)
        for p in range(parts)
    ]


def mechanisms(own: Sequence[DocumentPart]) -> list[Mechanism]:
    return [demo_policy({TENANT: own}, make, TABLE).mechanism_of(TENANT) for make in MECHANISMS]


def test_a_third_of_the_documents_have_four_positions_and_all_fit_the_table() -> None:
    own = collect()
    positions = Counter(text.document for text in own)
    assert sum(count >= 4 for count in positions.values()) * 3 >= len(positions)
    shape = table_shape(own)
    assert len(positions) <= shape.documents and max(positions.values()) <= shape.positions_per_document


@pytest.mark.parametrize("name", FOUND)
def test_the_window_s_epsilon_is_at_most_ten_for_any_number_of_accounts(name: str) -> None:
    choice = Choice(name, "")
    policy = demo_policy({TENANT: collect()}, MECHANISMS[0], choice)
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
    own, embedder = texts(), TABLE.load()
    policies = [demo_policy({TENANT: own}, make, TABLE) for make in MECHANISMS]
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


def test_the_demo_prefers_minilm_int_if_its_files_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (demo_embedder, installed):
        monkeypatch.setattr(module, "installed_folder", lambda: Path("model"))
    assert choose(None).name == "minilm-int" == next(iter(FOUND))
    assert "installed" in choose(None).reason and "--embedder" in choose(None).reason
    for module in (demo_embedder, installed):
        monkeypatch.setattr(module, "installed_folder", lambda: None)
    table = choose(None)
    assert table.name == DEFAULT_EMBEDDER and installed.INSTALL in table.reason
    named = choose("minilm-int")
    assert named.name == "minilm-int" and "--embedder" in named.reason
    with pytest.raises(SetupError, match="needs the published files"):
        named.load()


def test_the_command_offers_the_embedders_of_the_demo() -> None:
    (option,) = (one for one in command.demo.params if one.name == "embedder")
    assert isinstance(option.type, click.Choice) and set(option.type.choices) == set(FOUND)


def test_the_demo_says_what_each_embedder_finds() -> None:
    for name, found in FOUND.items():
        first, second = Choice(name, "reason").lines()
        assert Choice(name, "reason").lines(own_texts=True) == [first]
        assert first == f"embedder {name}: reason"
        assert f"the passages of {found} of the demo's 60" in second
        assert all(f"{other} finds {FOUND[other]}" in second for other in FOUND if other != name)


def test_named_embedders_without_files_leave_an_earlier_demo_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, installed.PACKAGE, None)
    (tmp_path / ".rag-audit-demo").touch()
    report = tmp_path / "verifier" / "report.html"
    report.parent.mkdir()
    report.touch()
    done = CliRunner().invoke(main, ["demo", "--dir", str(tmp_path), "--embedder", "minilm-int"])
    assert done.exit_code == 2 and installed.INSTALL in done.stderr
    assert report.exists()


@pytest.mark.parametrize("name", FOUND)
def test_policies_have_the_constants_of_their_embedder(name: str) -> None:
    """Without files: the score window of the noise, the threshold of pooled listing, and proofs of A1."""
    choice, published = Choice(name, ""), published_constants(name)
    policies = {make: demo_policy({TENANT: texts()}, make, choice) for make in MECHANISMS}
    pooled, noise = policies[MECHANISMS[0]], policies[MECHANISMS[2]]
    assert noise.noise is not None and (noise.noise.lo, noise.noise.hi) == published.score_window
    mechanism = pooled.mechanism_of(TENANT)
    assert isinstance(mechanism, PooledListing) and mechanism.rules.threshold == published.relevance
    assert ("embed" in pooled.tenants[0].circuits) == (name != "minilm-int-lexical-768")
    assert pooled.tokens.query in (24, 32) and pooled.tokens.document == 64
    own = choose(name, own_texts=True)
    assert demo_policy({TENANT: texts()}, MECHANISMS[0], own).tokens.document == published.document_tokens


def test_vectors_of_a_person_s_texts_stay_in_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    demo, choice = Demo(tmp_path / "demo"), Choice("minilm-int", "")
    inside = demo.provider / "vectors" / "vectors.sqlite"
    assert vectors_file(demo, TABLE, None) is None
    assert vectors_file(demo, choice, tmp_path) == inside
    assert vectors_file(demo, choice, None) == tmp_path / "cache/rag-audit/demo/vectors.sqlite"
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # there can be no cache
    assert vectors_file(demo, choice, None) == inside
    with with_vectors(TABLE.load(), inside) as cached:
        assert (cached.embed_documents(["a law"]) == TABLE.load().embed_documents(["a law"])).all()
    assert inside.exists() and inside.stat().st_mode & 0o077 == 0
    with with_vectors(TABLE.load(), None) as plain:
        assert plain.manifest() == cached.manifest()
