"""window.json while its ledger grows, with the entries that witnesses read and without proofs.

Entries only follow one another: a full tile of them stays as it is, so that what one publication writes does not depend
on how many entries there are. Proofs stand by tenant, and one more moves those after it. Nobody verifies a window that
is not closed, so they wait until it is (docs/decisions/0045-large-windows-are-in-tiles.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.models.records import Entry
from rag_audit.models.tiles import FOLDER, EntryTile, EntryTiles, ProofTiles, write_entries
from rag_audit.models.windowfile import TiledParts, WindowFile

OPEN_TILE_BYTES = 256 << 10
"""A tile of an open window ends with the entry that brings its entries to so many bytes. Fewer stand in the file."""


class GrowingFile:
    """The writer of an open window's file, which looks at the entries after the last full tile only.

    :param path: window.json
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._full: list[EntryTile] = []
        self._covered = 0
        self._ends: list[str] = []
        self.size = 0
        """how many entries the file has that this process wrote last"""

    def save(self, head: WindowFile, entries: Sequence[Entry]) -> None:
        """Write the file.

        :param head: all of it but entries and proofs
        :param entries: the ledger's, from the first on, and at least as many as the last time
        """
        rest = [e.dump() for e in entries[self._covered :]]
        if not self._full and sum(len(jcs(e)) for e in rest) < OPEN_TILE_BYTES:
            head.model_copy(update={"entries": rest}).save(self._path)
        else:
            folder, opening = self._path.parent / FOLDER, digest_hex(entries[0].dump())
            first, full = len(self._full), self._full
            more = write_entries(rest, folder, opening, number=first, tile_bytes=OPEN_TILE_BYTES).tiles
            parts = EntryTiles(tiles=full + more)
            head.save(self._path, TiledParts(opening=opening, entries=parts, proofs=ProofTiles(tiles=[])))
            # Whether the last one is full does not matter: it is made again, and is then the same file.
            self._full, end = parts.tiles[:-1], parts.tiles[-1].sha256
            self._covered = sum(tile.count for tile in self._full)
            self._forget(folder, end, {tile.sha256 for tile in more})
        self.size = len(entries)

    def _forget(self, folder: Path, end: str, written: set[str]) -> None:
        """Delete last tiles of earlier files, but for the one before: a reader may have begun with that file."""
        self._ends = [e for e in self._ends if e not in written] + [end]
        for digest in self._ends[:-2]:
            (folder / f"{digest}.json").unlink(missing_ok=True)
        self._ends = self._ends[-2:]
