"""The text store: what was put is read back, tenants apart, for its owner only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rag_audit.errors import StoreError
from rag_audit.models.passage import Passage
from rag_audit.retrieval.documents import DocumentStore


def texts(*documents: tuple[int, str]) -> dict[int, Passage]:
    return {position: Passage(text) for position, text in documents}


def test_texts_survive_reopening_and_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "documents.sqlite"
    with DocumentStore(path) as store:
        store.replace("t1", texts((3, "drei"), (0, "zero"), (9, "später")))
        store.replace("t2", {0: Passage.of("other", {"id": 7, "source": "a/b"})})
    with DocumentStore(path) as store:
        assert list(store.passages("t1").items()) == list(
            texts((0, "zero"), (3, "drei"), (9, "später")).items()
        )
        assert store.passages("t2") == {0: Passage("other", b'{"id":7,"source":"a/b"}')}
        assert store.passages("t3") == {}


def test_replacing_forgets_the_former_texts(tmp_path: Path) -> None:
    with DocumentStore(tmp_path / "d") as store:
        store.replace("t", {0: Passage("old"), 1: Passage.of("old too", {"id": "1"})})
        store.replace("t", texts((1, "new")))
        assert store.passages("t") == texts((1, "new"))


def test_failed_replacement_changes_nothing(tmp_path: Path) -> None:
    with DocumentStore(tmp_path / "d") as store:
        store.replace("t", texts((0, "kept")))
        with pytest.raises(StoreError, match="cannot be stored"):
            store.replace("t", texts((1, "new"), (-1, "negative position")))
        with pytest.raises(StoreError, match="cannot be stored"):
            store.replace("t", texts((1, "lone surrogate \ud800")))
        assert store.passages("t") == texts((0, "kept"))


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "d"
    DocumentStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_unusable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        DocumentStore(tmp_path / "missing" / "d")
    assert str(caught.value.field).endswith("missing/d")
    (tmp_path / "text").write_text("this is not a database, " * 50)
    with pytest.raises(StoreError, match="cannot be opened"):
        DocumentStore(tmp_path / "text")
