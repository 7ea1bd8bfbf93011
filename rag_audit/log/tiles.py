"""A ledger as static files (c2sp.org/tlog-tiles): ``checkpoint``, hash tiles and entry bundles under ``tile/``.

Any static web server can publish the folder. A client can fetch the tiles that a proof needs; a monitor can fetch all
tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_audit._internal.canonical import read_bytes
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import EncodingError, InvalidProof, SizeError, StoreError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import HASH_SIZE, leaf_hash, root_of
from rag_audit.log.note import MAX_NOTE_BYTES, Note, parse_note

TILE_WIDTH = 256
MAX_ENTRY_BYTES = 65_535
MAX_BUNDLE_BYTES = TILE_WIDTH * (2 + MAX_ENTRY_BYTES)


def export_tiles(directory: Path, entries: Iterable[bytes], checkpoint: Note) -> None:
    """Write a ledger of exactly the checkpoint's size. Files of an earlier, smaller size remain.

    :param entries: the ledger's entries in order
    :raises InvalidProof: the entries are not the ones under the checkpoint's root
    :raises SizeError: an entry is larger than 65,535 bytes
    :raises StoreError: the folder contains another log or a longer log, or a file cannot be written
    """
    head = Checkpoint.parse(checkpoint.text)
    _check_folder(directory / "checkpoint", head)
    hashes: list[bytes] = []
    bundle: list[bytes] = []
    for entry in entries:
        if len(entry) > MAX_ENTRY_BYTES:
            raise SizeError(
                "entry too large", field=f"entry {len(hashes)}", expected=f"at most {MAX_ENTRY_BYTES} bytes"
            )
        hashes.append(leaf_hash(entry))
        bundle.append(len(entry).to_bytes(2, "big") + entry)
        if len(bundle) == TILE_WIDTH:
            _write(directory / entries_path(len(hashes) // TILE_WIDTH - 1, TILE_WIDTH), b"".join(bundle))
            bundle.clear()
    _check_root(hashes, head)
    if bundle:
        _write(directory / entries_path(len(hashes) // TILE_WIDTH, len(bundle)), b"".join(bundle))
    for level, nodes in enumerate(_levels(hashes)):
        for number, tile in enumerate(_chunks(nodes)):
            _write(directory / tile_path(level, number, len(tile)), b"".join(tile))
    # The checkpoint is written last, so that whatever it covers can be fetched.
    _write(directory / "checkpoint", str(checkpoint).encode())


def read_tiles(directory: Path) -> tuple[Note, list[bytes]]:
    """Read a folder that `export_tiles` wrote, and check every file in it that its checkpoint needs.

    The checkpoint's signatures are not verified here (`open_checkpoint`).

    :returns: the checkpoint's note and the entries
    :raises EncodingError: a file is missing or malformed
    :raises InvalidProof: an entry or a tile does not belong to the tree under the checkpoint's root
    """
    path = directory / "checkpoint"
    note = parse_note(read_bytes(path, max_bytes=MAX_NOTE_BYTES), field=str(path))
    head = Checkpoint.parse(note.text, field=str(path))
    entries: list[bytes] = []
    for number, width in _tiles(head.size):
        path = directory / entries_path(number, width)
        bundle = parse_bundle(read_bytes(path, max_bytes=MAX_BUNDLE_BYTES), str(path))
        if len(bundle) != width:
            raise EncodingError(
                "an entry bundle has the wrong size", field=str(path), expected=f"{width} entries"
            )
        entries += bundle
    hashes = [leaf_hash(e) for e in entries]
    _check_root(hashes, head)
    for level, nodes in enumerate(_levels(hashes)):
        for number, tile in enumerate(_chunks(nodes)):
            path = directory / tile_path(level, number, len(tile))
            if read_bytes(path, max_bytes=TILE_WIDTH * HASH_SIZE) != b"".join(tile):
                raise InvalidProof("a tile does not belong to the tree", field=str(path))
    return note, entries


def tile_path(level: int, number: int, width: int) -> str:
    """Relative path of a hash tile of `width` hashes; a full tile has 256."""
    return f"tile/{level}/{_number_path(number, width)}"


def entries_path(number: int, width: int) -> str:
    """Relative path of an entry bundle of `width` entries; a full bundle has 256."""
    return f"tile/entries/{_number_path(number, width)}"


def _number_path(number: int, width: int) -> str:
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03d}")
    return "/".join(groups) + ("" if width == TILE_WIDTH else f".p/{width}")


def _tiles(size: int) -> Iterator[tuple[int, int]]:
    """Number and width of every tile over `size` hashes."""
    full, rest = divmod(size, TILE_WIDTH)
    yield from ((n, TILE_WIDTH) for n in range(full))
    if rest:
        yield full, rest


def _levels(hashes: list[bytes]) -> Iterator[list[bytes]]:
    """The hashes of every tile level; above level 0 these are the roots of the full tiles below."""
    while hashes:
        yield hashes
        hashes = [root_of(tile) for tile in _chunks(hashes) if len(tile) == TILE_WIDTH]


def _chunks(hashes: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(hashes), TILE_WIDTH):
        yield hashes[start : start + TILE_WIDTH]


def parse_bundle(data: bytes, field: str) -> list[bytes]:
    entries = []
    at = 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if end > len(data):
            raise EncodingError("an entry bundle is truncated", field=field, actual=f"{len(data)} bytes")
        entries.append(data[at + 2 : end])
        at = end
    return entries


def _check_folder(path: Path, head: Checkpoint) -> None:
    """Refuse a folder that publishes another log, or a longer state of this one: a log never shrinks."""
    if not path.exists():
        return
    there = Checkpoint.parse(parse_note(read_bytes(path, max_bytes=MAX_NOTE_BYTES), field=str(path)).text)
    if there.origin != head.origin or there.size > head.size:
        raise StoreError(
            "the folder contains another log, or a longer log",
            field=str(path),
            expected=f"{head.origin}, at most {head.size} entries",
            actual=f"{there.origin}, {there.size} entries",
        )


def _check_root(hashes: list[bytes], head: Checkpoint) -> None:
    if len(hashes) != head.size or (root := root_of(hashes)) != head.root:
        raise InvalidProof(
            "the entries do not match the checkpoint",
            field="checkpoint",
            expected=f"size {head.size}, root {head.root.hex()}",
            actual=f"size {len(hashes)}" + (f", root {root.hex()}" if len(hashes) == head.size else ""),
        )


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError("cannot be made", field=str(path.parent), actual=exc.strerror or str(exc)) from exc
    replace_file(path, data)
