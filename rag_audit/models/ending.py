"""The end of a growing log, for a party that cosigns it. The cost does not grow with the part that was read earlier.

The digest of its content names a tile. A reader that has hashed the entries of some tiles once therefore recognises
them by name, and needs only the peaks of their tree. A tile with a changed entry has another name. The reader then
reads all tiles a second time, and the resulting tree does not extend the cosigned one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs, parse_json
from rag_audit._internal.errors import SchemaError
from rag_audit.log.merkle import HashTree, Peaks, leaf_hash
from rag_audit.models.models import Count, Hex32, Model
from rag_audit.models.tiles import EntryTile
from rag_audit.models.windowfile import TiledParts, WindowFile


class ReadTiles(Model):
    """The part of a reader's state that describes the hashed tiles."""

    tiles: Count
    names: Hex32
    """the digest of the window header, and of names and counts of those tiles in order"""
    entries: Count
    """how many entries they have"""
    peaks: list[Hex32]

    def skip(self, parts: TiledParts) -> int:
        """The number of a window file's tiles to skip: all tiles that were read, if the file begins with exactly
        these, else 0."""
        tiles = parts.entries.tiles[: self.tiles]
        return self.tiles if self.names == _names(parts.header, tiles) else 0

    def before(self) -> Peaks:
        """The peaks of the entries that were read.

        :raises EncodingError: the number of peaks does not match the number of entries
        """
        return Peaks(self.entries, tuple(bytes.fromhex(root) for root in self.peaks))


NOTHING = ReadTiles(tiles=0, names=digest_hex([]), entries=0, peaks=[])


@dataclass(frozen=True)
class Ending:
    """A window file's checkpoint, and the part of its log that a reader uses.

    :param size: the checkpoint's number of entries; `read_ending` does not compare it with the tree's
    :param root: the checkpoint's root; `read_ending` does not compare it with the tree's
    :param tree: the log's tree, without its first leaves if an earlier call read them
    :param last: the canonical bytes of the last entry
    :param query: the place and the canonical bytes of the first query record among the entries that this call read, or
        None
    :param read: the argument `read` of the next call
    """

    checkpoint: str
    size: int
    root: bytes
    tree: HashTree
    last: bytes
    query: tuple[int, bytes] | None
    read: ReadTiles


def read_ending(path: Path, read: ReadTiles = NOTHING, since: int | None = None) -> Ending:
    """Read the end of a window's log.

    :param path: window.json
    :param read: `Ending.read` of an earlier reading. If it does not lead to the checkpoint's root, the function reads
        everything. A false value can therefore make a reading slow, but not wrong
    :param since: the minimum size from which the caller will ask for the log's consistency, or None
    :raises SchemaError: the file has no entries
    :raises RagAuditError: as `WindowFile.load`
    """
    if read.entries and (since is None or read.entries <= since):
        file, parts = WindowFile.load_after(path, read.skip)
        if parts is not None and read.skip(parts) and file.entries:
            result = _ending(file, parts, read)
            if (
                read.entries < result.size <= result.tree.size
                and result.tree.root(result.size) == result.root
            ):
                return result
    file, parts = WindowFile.load_after(path, lambda _: 0)
    if not file.entries:
        raise SchemaError("the window file has no entries", field=path.name)
    return _ending(file, parts, NOTHING)


def _ending(file: WindowFile, parts: TiledParts | None, read: ReadTiles) -> Ending:
    entries = [jcs(entry) for entry in file.entries]
    head, tree = file.final_head(), HashTree(map(leaf_hash, entries), read.before())
    now = NOTHING if parts is None else _read(tree, parts)
    query = next(
        (
            (read.entries + at, entries[at])
            for at, value in enumerate(file.entries)
            if _type_of(value) == "query"
        ),
        None,
    )
    return Ending(file.final_checkpoint, head.size, head.root, tree, entries[-1], query, now)


def _read(tree: HashTree, parts: TiledParts) -> ReadTiles:
    """The tiles that stay as they are: all but the last, to which entries may come."""
    tiles = parts.entries.tiles[:-1]
    peaks = tree.peaks(sum(tile.count for tile in tiles))
    return ReadTiles(tiles=len(tiles), names=_names(parts.header, tiles), entries=peaks.size,
                     peaks=[root.hex() for root in peaks.roots])  # fmt: skip


def _names(header: str, tiles: list[EntryTile]) -> str:
    names: list[Json] = [header]
    for tile in tiles:
        names += [tile.sha256, tile.count]
    return digest_hex(names)


def entry_type(entry: bytes) -> Json:
    """The type that an entry declares."""
    return _type_of(parse_json(entry, source="entry"))


def _type_of(value: Json) -> Json:
    return value.get("type") if isinstance(value, dict) else None
