"""The tlog-tiles layout: paths, contents, and folders that were changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_audit.errors import EncodingError, InvalidProof, SizeError, StoreError
from rag_audit.log import tiles
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import leaf_hash, root_of
from rag_audit.log.note import Note
from rag_audit.log.signing import SigningKey

LOG = SigningKey("log.example/a", 1, bytes(range(32)))


def ledger(size: int) -> tuple[list[bytes], Note]:
    entries = [b"%d" % i * (i % 3) for i in range(size)]
    root = root_of(leaf_hash(e) for e in entries)
    return entries, Checkpoint("log.example/a", size, root).sign(LOG)


def files(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_the_paths_are_the_documented_ones() -> None:
    # c2sp.org/tlog-tiles: index 1234067, and the tiles of a tree of 70,000.
    assert tiles.tile_path(0, 1234067, 256) == "tile/0/x001/x234/067"
    assert tiles.tile_path(0, 273, 112) == "tile/0/273.p/112"
    assert tiles.entries_path(0, 1) == "tile/entries/000.p/1"
    assert list(tiles._tiles(70_000))[-2:] == [(272, 256), (273, 112)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, set()),
        (1, {"tile/0/000.p/1", "tile/entries/000.p/1"}),
        (256, {"tile/0/000", "tile/1/000.p/1", "tile/entries/000"}),
        (
            600,
            {
                "tile/0/000",
                "tile/0/001",
                "tile/0/002.p/88",
                "tile/1/000.p/2",
                "tile/entries/000",
                "tile/entries/001",
                "tile/entries/002.p/88",
            },
        ),
    ],
)
def test_a_ledger_is_written_and_read(tmp_path: Path, size: int, expected: set[str]) -> None:
    entries, note = ledger(size)
    tiles.export_tiles(tmp_path, entries, note)
    assert files(tmp_path) == expected | {"checkpoint"}
    assert tiles.read_tiles(tmp_path) == (note, entries)


def test_contents_are_as_documented(tmp_path: Path) -> None:
    entries, note = ledger(300)
    tiles.export_tiles(tmp_path, entries, note)
    hashes = [leaf_hash(e) for e in entries]
    assert (tmp_path / "tile/0/000").read_bytes() == b"".join(hashes[:256])
    assert (tmp_path / "tile/1/000.p/1").read_bytes() == root_of(hashes[:256])
    assert (tmp_path / "tile/entries/001.p/44").read_bytes().startswith(b"\x00\x03256\x00\x06257257")


def test_a_level_above_a_full_one() -> None:
    hashes = [bytes([i % 251]) * 32 for i in range(256 * 257)]
    levels = list(tiles._levels(hashes))
    assert [len(nodes) for nodes in levels] == [256 * 257, 257, 1]
    assert levels[2] == [root_of(hashes[: 256 * 256])]


def test_a_grown_ledger_is_written_over_the_old_one(tmp_path: Path) -> None:
    for size in (3, 260):
        entries, note = ledger(size)
        tiles.export_tiles(tmp_path, entries, note)
        assert tiles.read_tiles(tmp_path) == (note, entries)
    assert "tile/0/000.p/3" in files(tmp_path)


def test_entries_under_another_root_are_not_written_as_a_ledger(tmp_path: Path) -> None:
    entries, note = ledger(5)
    for wrong in (entries[:4], [*entries, b""], [b"forged", *entries[1:]]):
        with pytest.raises(InvalidProof):
            tiles.export_tiles(tmp_path, wrong, note)
    assert "checkpoint" not in files(tmp_path)


def test_an_entry_above_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SizeError):
        tiles.export_tiles(tmp_path, [bytes(65_536)], ledger(1)[1])


@pytest.mark.parametrize("name", ["tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/001.p/44"])
def test_a_changed_or_missing_file_is_found(tmp_path: Path, name: str) -> None:
    tiles.export_tiles(tmp_path, *ledger(300))
    path = tmp_path / name
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InvalidProof):
        tiles.read_tiles(tmp_path)
    path.write_bytes(data[:-1])
    with pytest.raises((InvalidProof, EncodingError)):
        tiles.read_tiles(tmp_path)
    path.unlink()
    with pytest.raises(EncodingError, match="cannot be read"):
        tiles.read_tiles(tmp_path)


def test_a_bundle_with_another_number_of_entries_is_found(tmp_path: Path) -> None:
    tiles.export_tiles(tmp_path, *ledger(3))
    path = tmp_path / "tile/entries/000.p/3"
    path.write_bytes(path.read_bytes() + b"\x00\x00")
    with pytest.raises(EncodingError, match="3 entries"):
        tiles.read_tiles(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "tile").write_bytes(b"a file")
    with pytest.raises(StoreError):
        tiles.export_tiles(tmp_path, *ledger(3))
