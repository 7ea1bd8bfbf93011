"""The end of a log that grows, as whoever cosigns it reads it: at a cost that does not grow with what was read before.

A tile is named by the digest of its content. So a reader that has hashed the entries of some tiles once knows them
again by their names, and needs of them the peaks of their tree alone. A tile with a changed entry has another name:
then everything is read again, and the tree that follows is not one that extends what was cosigned.
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
    """What a reader keeps of the tiles that it has hashed."""

    tiles: Count
    names: Hex32
    """the digest of the window's opening, and of names and counts of those tiles in order"""
    entries: Count
    """how many entries they have"""
    peaks: list[Hex32]

    def skip(self, parts: TiledParts) -> int:
        """How many tiles of a window file are those that were read: all of them, or none."""
        tiles = parts.entries.tiles[: self.tiles]
        return self.tiles if self.names == _names(parts.opening, tiles) else 0

    def before(self) -> Peaks:
        """The peaks of the entries that were read.

        :raises EncodingError: there are more or fewer than so many entries have
        """
        return Peaks(self.entries, tuple(bytes.fromhex(root) for root in self.peaks))


NOTHING = ReadTiles(tiles=0, names=digest_hex([]), entries=0, peaks=[])


@dataclass(frozen=True)
class Ending:
    """A window file's checkpoint, and its log as far as a reader looks at it.

    :param size: the checkpoint's number of entries, which nobody has compared with the tree's
    :param root: the checkpoint's root, likewise
    :param tree: the log's, without its first leaves if they were read before
    :param last: the canonical bytes of the last entry
    :param query: the place and the canonical bytes of the first query record in the entries that were read now, if
        there is one
    :param read: what the next reading is told
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
    :param read: `Ending.read` of an earlier reading. If it does not lead to the checkpoint's root, everything is read:
        whoever keeps it can make a reading slow, and not wrong
    :param since: the least size from which the log's consistency will be asked for, if it will
    :raises SchemaError: the file has no entries
    :raises RagAuditError: as `WindowFile.load`
    """
    if read.entries and (since is None or read.entries <= since):
        file, parts = WindowFile.load_after(path, read.skip)
        if parts is not None and read.skip(parts) and file.entries:
            found = _ending(file, parts, read)
            if read.entries < found.size <= found.tree.size and found.tree.root(found.size) == found.root:
                return found
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
    return ReadTiles(tiles=len(tiles), names=_names(parts.opening, tiles), entries=peaks.size,
                     peaks=[root.hex() for root in peaks.roots])  # fmt: skip


def _names(opening: str, tiles: list[EntryTile]) -> str:
    names: list[Json] = [opening]
    for tile in tiles:
        names += [tile.sha256, tile.count]
    return digest_hex(names)


def entry_type(entry: bytes) -> Json:
    """The type that an entry says it has."""
    return _type_of(parse_json(entry, source="entry"))


def _type_of(value: Json) -> Json:
    return value.get("type") if isinstance(value, dict) else None
