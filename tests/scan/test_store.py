"""The index commitment on disk: made in parts, resumed, checked when it is read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import EncodingError, StoreError
from rag_audit.proofs.backends.scan import store as index_store
from rag_audit.proofs.backends.scan.key import commit_index
from rag_audit.proofs.backends.scan.store import FORMAT, RUN, TAG_BYTES, commit_index_file

POSITIONS, DIMENSION, CAPACITY = 30, 2 * RUN + 3, 40
KEY = bytes(range(32))
HEAD = len(FORMAT) + 16 + TAG_BYTES
ROWS = np.random.default_rng(3).integers(-7, 8, (POSITIONS, DIMENSION), dtype=np.int8)


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def points() -> bytes:
    return commit_index(ROWS.tobytes(), DIMENSION, CAPACITY, KEY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "acme.points"


def interrupt(path: Path, after: int) -> None:
    def stop(done: int, total: int) -> None:
        if done == after:
            raise Interrupted

    with pytest.raises(Interrupted):
        commit_index_file(path, ROWS, CAPACITY, KEY, progress=stop)


def committed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """First components of the runs that are computed from here on."""
    firsts: list[int] = []
    result = index_store._commit

    def watched(rows: np.ndarray, first: int, capacity: int, key: bytes) -> bytes:
        firsts.append(first)
        return result(rows, first, capacity, key)

    monkeypatch.setattr(index_store, "_commit", watched)
    return firsts


def test_the_file_holds_the_commitment_and_is_private(
    path: Path, points: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[int, int]] = []
    assert commit_index_file(path, ROWS, CAPACITY, KEY, progress=lambda *p: shown.append(p)) == points
    assert shown == [(0, DIMENSION), (RUN, DIMENSION), (2 * RUN, DIMENSION), (DIMENSION, DIMENSION)]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o077 == 0
    firsts = committed(monkeypatch)
    assert commit_index_file(path, ROWS, CAPACITY, KEY) == points
    assert firsts == []


def test_rows_may_be_mapped_from_a_file(path: Path, points: bytes, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert commit_index_file(path, mapped, CAPACITY, KEY) == points


def test_an_interrupted_commitment_goes_on_where_it_stopped(
    path: Path, points: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(path, 2 * RUN)
    assert not path.exists()
    assert (path.parent / "acme.points.part").stat().st_mode & 0o077 == 0
    firsts = committed(monkeypatch)
    assert commit_index_file(path, ROWS, CAPACITY, KEY) == points
    assert firsts == [2 * RUN]
    assert not (path.parent / "acme.points.part").exists()


@pytest.mark.parametrize("lost", [1, 32, 33, 100])
def test_a_torn_part_is_cut_back(
    path: Path, points: bytes, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    interrupt(path, 2 * RUN)
    part = path.with_name("acme.points.part")
    part.write_bytes(part.read_bytes()[:-lost])
    firsts = committed(monkeypatch)
    assert commit_index_file(path, ROWS, CAPACITY, KEY) == points
    assert firsts == [RUN, 2 * RUN]


def test_an_altered_part_is_made_again(path: Path, points: bytes) -> None:
    interrupt(path, 2 * RUN)
    part = path.with_name("acme.points.part")
    whole = part.read_bytes()
    for at in range(HEAD, len(whole), 97):
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert commit_index_file(path, ROWS, CAPACITY, KEY) == points
        path.unlink()
    for at in range(0, HEAD, 7):  # nothing says any more that the runs are these rows'
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=r"acme\.points\.part"):
            commit_index_file(path, ROWS, CAPACITY, KEY)


@pytest.mark.parametrize("length", [0, 5, HEAD - 1, HEAD])
def test_a_part_without_a_run_is_begun_again(path: Path, points: bytes, length: int) -> None:
    interrupt(path, RUN)
    os.truncate(path.with_name("acme.points.part"), length)
    assert commit_index_file(path, ROWS, CAPACITY, KEY) == points


@pytest.mark.parametrize("other", ["rows", "key", "capacity"])
def test_a_part_of_another_index_is_refused(
    path: Path, other: str, points: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blindings would hide other rows a second time, and their difference would say what changed."""
    interrupt(path, 2 * RUN)
    rows = -ROWS if other == "rows" else ROWS
    key = bytes(32) if other == "key" else KEY
    capacity = CAPACITY + 1 if other == "capacity" else CAPACITY
    firsts = committed(monkeypatch)
    with pytest.raises(StoreError, match="unfinished index commitment is not this index's"):
        commit_index_file(path, rows, capacity, key)
    assert firsts == []
    assert commit_index_file(path, ROWS, CAPACITY, KEY) == points
    assert firsts == [2 * RUN]


def test_a_file_altered_on_disk_is_named(path: Path) -> None:
    commit_index_file(path, ROWS, CAPACITY, KEY)
    whole = path.read_bytes()
    for at in [*range(0, len(whole), 101), len(whole) - 1]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=r"acme\.points"):
            commit_index_file(path, ROWS, CAPACITY, KEY)
    for cut in (b"", whole[:-1], whole[:40], whole + b"\0"):
        path.write_bytes(cut)
        with pytest.raises(StoreError, match="not this index's"):
            commit_index_file(path, ROWS, CAPACITY, KEY)


@pytest.mark.parametrize("other", ["rows", "key", "capacity"])
def test_a_file_of_another_index_is_named(path: Path, other: str) -> None:
    commit_index_file(path, ROWS, CAPACITY, KEY)
    rows = ROWS.copy()
    rows[0, 0] = -rows[0, 0] or 1
    with pytest.raises(StoreError, match="not this index's"):
        commit_index_file(
            path,
            rows if other == "rows" else ROWS,
            CAPACITY + 1 if other == "capacity" else CAPACITY,
            bytes(32) if other == "key" else KEY,
        )


def test_rows_that_are_no_index_are_refused(path: Path) -> None:
    for rows in (np.full((2, 3), 8, np.int8), np.zeros(3, np.int8), np.zeros((CAPACITY + 1, 3), np.int8)):
        with pytest.raises(EncodingError):
            commit_index_file(path, rows, CAPACITY, KEY)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        commit_index_file(tmp_path / "none" / "acme.points", ROWS, CAPACITY, KEY)
