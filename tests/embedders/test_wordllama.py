"""wordllama-lexical-768: the pinned table, integer normalisation, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from math import isqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_audit._internal.canonical import jcs
from rag_audit.errors import EncodingError, SetupError
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.groth16.embed import table_tree
from rag_audit.proofs.backends.scan.embed import table_columns
from rag_audit.relation import field
from rag_audit.relation import table as tree
from rag_audit.relation.commitments import query_commitment
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import NothingToEmbed, get_embedder, wordllama
from rag_audit.retrieval.embedders.static import normalise

pytest.importorskip("wordllama", reason="the embedder's data comes with the extra [provider]")
DEPTH = tree.tree_depth(wordllama.VOCABULARY)


@pytest.fixture(scope="module")
def embedder() -> wordllama.WordLlama:
    return wordllama.WordLlama()


def test_float16_arithmetic_would_change_the_table() -> None:
    """The reason for float64, and an independent count of where it matters."""
    data = wordllama.package_data(wordllama.WEIGHTS, wordllama.WEIGHTS_SHA256)
    entries = np.frombuffer(data[-wordllama.VOCABULARY * wordllama.SEMANTIC * 2 :], "<f2")
    steps = np.rint(entries / np.float16(2.74) * np.float16(7))
    narrow = np.clip(steps, -7, 7).astype(np.int8)
    assert int(np.sum(narrow != wordllama.int4_table()[:, : wordllama.SEMANTIC].ravel())) == 7487


def test_table_is_int4_and_read_only() -> None:
    table = wordllama.int4_table()
    assert table.shape == (32000, 768)
    assert (int(table.min()), int(table.max())) == (-7, 7)
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


def test_altered_artefact_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="not the pinned one") as caught:
        wordllama.package_data(wordllama.TOKENIZER, wordllama.WEIGHTS_SHA256)
    assert caught.value.actual == wordllama.TOKENIZER_SHA256
    monkeypatch.setattr(wordllama, "TABLE_SHA256", "0" * 64)
    with pytest.raises(SetupError, match="the int4 table is not the pinned one"):
        wordllama.int4_table.__wrapped__()


def test_committed_table_is_the_pinned_one(embedder: wordllama.WordLlama) -> None:
    table = table_tree(wordllama.TABLE)
    assert field.to_hex(table.root) == wordllama.TABLE_ROOT
    assert table.tokens == wordllama.VOCABULARY and table.depth == DEPTH


@pytest.mark.parametrize("place", [0, 1, 12_345, 31_999, 32_000, 32_767])
def test_rows_open_under_the_pinned_root_by_the_reference(place: int) -> None:
    """A token's row, and the zero row that unused places open."""
    table = table_tree(wordllama.TABLE)
    rows = wordllama.int4_table()
    row = rows[place] if place < len(rows) else np.zeros(wordllama.DIMENSION, np.int8)
    assert table.row(place) == row.tobytes()
    current, path = tree.leaf([int(v) for v in row]), table.path(place)
    for level in range(DEPTH):
        eight = [int.from_bytes(path[32 * i : 32 * i + 32], "big") for i in range(8 * level, 8 * level + 8)]
        assert eight[place // 8**level % 8] == current
        current = tree.node(eight)
    assert field.to_hex(current) == wordllama.TABLE_ROOT


@pytest.mark.full
def test_whole_tree_is_the_reference_s() -> None:
    table = table_tree(wordllama.TABLE)
    built = tree.TableTree(wordllama.int4_table().tolist(), DEPTH)
    assert b"".join(x.to_bytes(32, "big") for level in built.levels for x in level) == table.nodes


def test_damaged_tree_in_the_cache_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf that nobody asked for yet, and the root left alone."""
    nodes = bytearray(table_tree(wordllama.TABLE).nodes)
    nodes[40] ^= 1
    folder = tmp_path / "rag-audit" / "tables" / wordllama.TABLE_SHA256
    folder.mkdir(parents=True)
    (folder / "nodes").write_bytes(nodes)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="differs from the pinned file") as caught:
        table_tree.__wrapped__(wordllama.TABLE)
    assert caught.value.hint is not None and str(folder) in caught.value.hint
    (folder / "nodes").unlink()
    with pytest.raises(SetupError, match="cannot be read"):
        table_tree.__wrapped__(wordllama.TABLE)


def test_damaged_columns_in_the_cache_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = bytearray(table_columns(wordllama.TABLE))
    points[40] ^= 1
    folder = tmp_path / "rag-audit" / "tables" / f"{wordllama.TABLE_SHA256}-columns"
    folder.mkdir(parents=True)
    (folder / "points").write_bytes(points)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="differs from the pinned file"):
        table_columns.__wrapped__(wordllama.TABLE)


def test_missing_package_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as caught:
        wordllama.package_data(wordllama.TOKENIZER, wordllama.TOKENIZER_SHA256)
    assert caught.value.hint == "pip install 'ragaudit-zk[provider]'"


def test_missing_file_is_named() -> None:
    with pytest.raises(SetupError, match="cannot be read") as caught:
        wordllama.package_data(Path("weights", "other.safetensors"), "0" * 64)
    assert str(caught.value.field).endswith("other.safetensors")


def test_known_tokens_and_vector(embedder: wordllama.WordLlama) -> None:
    assert embedder.tokenize("hello world") == [22172, 3186]
    vector = embedder.embed_query("hello world")
    assert vector[:20].tolist() == [2, 1, 1, -2, 0, 1, 0, -2, 1, 0, -1, 1, -1, -3, 0, 1, 2, 2, -1, -1]
    assert vector[256:272].tolist() == [4, 1, 4, -1, -1, -1, -4, -4, 4, -4, -1, 4, 4, 1, -4, 1]


def test_no_package_import_and_no_network() -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise SystemExit('network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from rag_audit.retrieval.embedders import get_embedder\n"
        "get_embedder().embed_query('hello')\n"
        "sys.exit('imported' if 'wordllama' in sys.modules else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def reference(e: list[int]) -> list[int]:
    w = isqrt(2**16 * sum(x * x for x in e))
    return [(1 if x > 0 else -1) * min(7, (2 * abs(x) * 16_593 + w) // (2 * w)) for x in e]


@given(st.lists(st.integers(-3584, 3584), min_size=1, max_size=800).filter(any))
def test_normalisation_is_the_integer_formula(e: list[int]) -> None:
    assert normalise(np.array(e, np.int64), DEFAULT_TABLE.norm_factor, field="x").tolist() == reference(e)


def test_normalisation_follows_the_unit_vector(embedder: wordllama.WordLlama) -> None:
    tokens = embedder.tokenize("how are records kept durable when the disk is full")
    e = wordllama.int4_table()[tokens].sum(axis=0, dtype=np.int64)
    unit = e / np.linalg.norm(e)
    ideal = np.clip(7 * unit / 0.108, -7, 7)
    assert np.max(np.abs(embedder.embed_tokens(tokens) - ideal)) < 0.501


def test_empty_query_is_refused(embedder: wordllama.WordLlama) -> None:
    with pytest.raises(NothingToEmbed, match="the text has no token to embed"):
        embedder.embed_query("")


def test_cancelling_rows_are_refused() -> None:
    with pytest.raises(NothingToEmbed, match="the text has no token to embed"):
        normalise(np.zeros(768, np.int64), DEFAULT_TABLE.norm_factor, field="query")


def test_document_without_text_is_named(embedder: wordllama.WordLlama) -> None:
    with pytest.raises(NothingToEmbed) as caught:
        embedder.embed_documents(["one", "", "three"])
    assert caught.value.field == "documents[1]"


@pytest.mark.parametrize("token", [-1, 32000])
def test_token_outside_the_vocabulary_is_refused(embedder: wordllama.WordLlama, token: int) -> None:
    with pytest.raises(EncodingError, match="outside the vocabulary"):
        embedder.embed_tokens([5, token])


def test_text_that_is_not_unicode_is_refused(embedder: wordllama.WordLlama) -> None:
    with pytest.raises(EncodingError, match="not Unicode"):
        embedder.embed_query("a\ud800")
    with pytest.raises(EncodingError) as caught:
        embedder.embed_documents(["a", "b\udfff"])
    assert caught.value.field == "documents[1]"


def test_queries_and_documents_are_cut_at_their_limits(embedder: wordllama.WordLlama) -> None:
    words = ["word", "disk", "tree"] * 300
    assert len(embedder.tokenize(" ".join(words))) == 64
    long, cut = embedder.embed_documents([" ".join(words), " ".join(words[:512])])
    assert embedder.cut_documents([" ".join(words), " ".join(words[:512])]) == 1
    assert long.tolist() == cut.tolist()
    assert len(get_embedder(query_tokens=24).tokenize(" ".join(words))) == 24


def test_documents_that_are_cut_are_counted(embedder: wordllama.WordLlama) -> None:
    whole = " ".join(["disk"] * 512)
    assert len(embedder._tokenizer.encode(whole, add_special_tokens=False).ids) == 512
    assert embedder.cut_documents([]) == embedder.cut_documents(["a short text", whole]) == 0
    assert embedder.cut_documents([whole + " disk", "a short text", whole * 3]) == 2


def test_documents_have_one_row_each(embedder: wordllama.WordLlama) -> None:
    texts = ["a short text", "the ledger is public"]
    rows = embedder.embed_documents(texts)
    assert rows.shape == (2, 768) and rows.dtype == np.int8
    assert [row.tolist() for row in rows] == [embedder.embed_documents([t])[0].tolist() for t in texts]
    assert embedder.embed_documents([]).shape == (0, 768)


def test_query_commitment_is_over_the_tokens(embedder: wordllama.WordLlama) -> None:
    assert embedder.query_commitment("hello world", 5) == query_commitment(5, [22172, 3186])
    assert embedder.query_commitment("hello world", 6) != embedder.query_commitment("hello world", 5)


def test_manifest_is_canonical_json_and_names_the_constants(embedder: wordllama.WordLlama) -> None:
    manifest = embedder.manifest()
    assert jcs(manifest)
    assert manifest["artefacts"]["table-int4"] == wordllama.TABLE_SHA256
    assert Fraction(manifest["quantiser"]["scale"]) == embedder.scale
    assert jcs(get_embedder(query_tokens=24).manifest()) != jcs(manifest)
    window = ScoreWindow(*embedder.score_window, 64)
    assert (window.lo, window.hi) == (420, 1680)
