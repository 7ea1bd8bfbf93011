"""A provider's cache of document vectors: what it knows is not embedded again, and what is damaged is never used."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import SetupError
from rag_audit.retrieval.embedders import NothingToEmbed, get_embedder
from rag_audit.retrieval.embedders.base import Vectors
from rag_audit.retrieval.embedders.wordllama import WordLlama
from rag_audit.retrieval.vectors import CachedEmbedder

TEXTS = [
    "A contract is an agreement.",
    "A tort is a civil wrong.",
    "Bail is money.",
    "A tort is a civil wrong.",
]


class Counting(WordLlama):
    """Counts the texts that are really embedded."""

    def __init__(self, **limits: int) -> None:
        super().__init__(**limits)
        self.requested: list[str] = []

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        self.requested += texts
        return super().embed_documents(texts, first=first)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


def embed(
    path: Path, texts: Sequence[str] = TEXTS, *, maximum: int = 100, **limits: int
) -> tuple[list[str], list[str]]:
    """The texts that were embedded, and what was said; the vectors must be the embedder's own."""
    said: list[str] = []
    counting = Counting(**limits)
    with CachedEmbedder(counting, path, say=said.append, maximum=maximum) as cached:
        result = cached.embed_documents(texts)
        assert cached.manifest() == counting.manifest() and cached.table is counting.table
    assert np.array_equal(result, WordLlama(**limits).embed_documents(texts))
    return counting.requested, said


def test_known_texts_are_not_embedded_again(path: Path) -> None:
    assert embed(path) == (TEXTS[:3], [])
    assert path.stat().st_mode & 0o777 == 0o600
    assert embed(path) == ([], [])
    assert embed(path, [*TEXTS, "A new one."]) == (["A new one."], [])
    assert embed(path, document_tokens=2)[0] == TEXTS[:3]  # other limits make other vectors
    said: list[str] = []
    with CachedEmbedder(get_embedder(), path, say=said.append) as cached:
        assert cached.unknown(["Bail is money.", "Another."]) == ["Another."]


def test_a_damaged_vector_is_said_and_embedded_anew(path: Path) -> None:
    embed(path)
    with sqlite3.connect(path) as db:
        key, components = db.execute("SELECT key, components FROM vector LIMIT 1").fetchone()
        altered = bytes([(components[0] + 1) % 7, *components[1:]])
        db.execute("UPDATE vector SET components = ? WHERE key = ?", (altered, key))
        db.execute("UPDATE vector SET components = x'00' WHERE key = (SELECT max(key) FROM vector)")
    requested, said = embed(path)
    assert len(requested) == 2 and len(said) == 1 and "2 vectors" in said[0] and "damaged" in said[0]
    assert embed(path) == ([], [])


def test_a_vector_of_another_text_is_not_taken(path: Path) -> None:
    """Two entries that are whole by themselves, exchanged."""
    embed(path, TEXTS[:2])
    with sqlite3.connect(path) as db:
        (a, *first), (b, *second) = db.execute("SELECT key, digest, components FROM vector").fetchall()
        db.executemany(
            "UPDATE vector SET digest = ?, components = ? WHERE key = ?", [(*second, a), (*first, b)]
        )
    requested, said = embed(path, TEXTS[:2])
    assert requested == TEXTS[:2] and "damaged" in said[0]


@pytest.mark.parametrize("kind", ["no database", "torn", "another program's"])
def test_a_file_that_is_no_cache_is_said_and_left_alone(path: Path, kind: str) -> None:
    path.parent.mkdir(mode=0o700)
    if kind == "no database":
        path.write_bytes(b"\0" * 4096)
    elif kind == "torn":
        embed(path, [f"A text of its own, number {n}." for n in range(200)])
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 8 * 4096)
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine (x)")
    path.chmod(0o600)
    before = path.read_bytes()
    requested, said = embed(path)
    assert requested == TEXTS[:3]
    assert said and str(path) in said[0] and "is not used" in said[0]
    assert path.read_bytes() == before


def test_the_cache_is_bounded_and_drops_what_was_used_longest_ago(path: Path) -> None:
    embed(path, ["one", "two"])
    embed(path, ["two", "three"], maximum=2)
    assert embed(path, ["two", "three"])[0] == []
    assert embed(path, ["one"])[0] == ["one"]


def test_a_full_cache_is_not_searched_for_each_run_of_texts(path: Path) -> None:
    passes: list[str] = []
    with CachedEmbedder(get_embedder(), path, say=print, maximum=800) as cached:
        assert cached._db is not None
        cached._db.set_trace_callback(lambda said: passes.append(said) if said.startswith("DELETE") else None)
        for first in range(0, 1200, 20):
            cached.embed_documents([f"text {n}" for n in range(first, first + 20)])
        assert 1 <= len(passes) <= 5
        assert 700 <= cached._db.execute("SELECT count(*) FROM vector").fetchone()[0] <= 800


def test_an_error_names_the_document_by_its_own_number(path: Path) -> None:
    embed(path)
    with CachedEmbedder(get_embedder(), path, say=print) as cached, pytest.raises(NothingToEmbed) as caught:
        cached.embed_documents([*TEXTS, ""], first=10)
    with pytest.raises(NothingToEmbed) as plain:
        get_embedder().embed_documents([*TEXTS, ""], first=10)
    assert str(caught.value) == str(plain.value) and "14" in str(plain.value)


@pytest.mark.parametrize("place", ["file", "folder", "link"])
def test_a_cache_that_others_can_access_or_replace_is_refused(path: Path, place: str) -> None:
    embed(path)
    if place == "file":
        path.chmod(0o640)
    elif place == "folder":
        path.parent.chmod(0o777)
    else:
        target = path.rename(path.with_name("elsewhere"))
        path.symlink_to(target)
    with pytest.raises(SetupError, match="others"):
        CachedEmbedder(get_embedder(), path, say=print)
