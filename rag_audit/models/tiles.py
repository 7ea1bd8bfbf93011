"""Entries and proofs of a large window in tiles: files named by their SHA-256 in a folder next to window.json
(docs/protocol.md, "Tiles").

A tile states its window, its part and its number, so that each wrong tile gets an error with its own name. Entries are
read at once. Proofs are read on demand, a tile at a time, so memory does not limit a window's size. Each read checks
the tile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rag_audit._internal.canonical import MAX_VALUES, Json, count_values, jcs, parse_json, read_bytes, sha256
from rag_audit._internal.errors import (
    AlteredTile,
    ForeignTile,
    MissingTile,
    RagAuditError,
    ReorderedTile,
    SchemaError,
    SizeError,
    VersionError,
)
from rag_audit.models.models import Count, Hex32, Model, Positive, repeated

TILE = "application/vnd.rag-audit.tile+json;version=1"
FOLDER = "tiles"
MAX_TILE_BYTES = 64 << 20
MAX_TILES = 1 << 17
"""Maximum tiles of one part."""
MIN_ENTRY_BYTES = 32
"""Minimum bytes of a ledger entry in a tile. The type field takes more than half of them."""
UNSEEN_ENTRIES = 1 << 17
"""Maximum total of declared entries in tiles with missing or truncated files."""
MAX_ENTRIES_BYTES = 1 << 30
"""Maximum total bytes of all tiles of entries, which are read into memory."""
_AT_HAND = 2
"""How many tiles of proofs stay in memory."""

RECEIPTS = "application/vnd.rag-audit.receipts+json;version=1"

PartName = Literal["entries", "proofs", "receipts"]


class EntryTile(Model):
    """A tile of the ledger's entries, as window.json names it."""

    sha256: Hex32
    count: Positive
    """how many entries it has"""


class ProofTile(Model):
    """A tile of proofs, as window.json names it."""

    sha256: Hex32
    seqs: Annotated[list[Count], Field(min_length=1)]
    """the entries that the proofs belong to, in order, by `seq`"""


class EntryTiles(Model):
    """The ledger's entries, in order."""

    tiles: Annotated[list[EntryTile], Field(max_length=MAX_TILES)]


class ProofTiles(Model):
    """The proofs, by tenants and `seq`."""

    tiles: Annotated[list[ProofTile], Field(max_length=MAX_TILES)]


class ReceiptTiles(Model):
    """receipts.json: countersigned receipts of one window in tiles, as a verifier collects them."""

    mediaType: str
    header: Hex32
    """SHA-256 over entry 0 of the window"""
    tiles: Annotated[list[EntryTile], Field(max_length=MAX_TILES)]


class Tile(Model):
    """A tile's content."""

    mediaType: str
    header: Hex32
    """SHA-256 over entry 0 of the window"""
    part: PartName
    number: Count
    """its place among the tiles of its part, from 0"""
    values: list[Json]
    """entries, pairs of a `seq` and its proofs, or pairs of a name and a receipt"""


@dataclass(frozen=True)
class Part:
    """One part of a window in its tiles.

    :param folder: the tiles' folder
    :param header: SHA-256 over the window's entry 0, in hexadecimal
    :param digests: the tiles in order
    """

    name: PartName
    folder: Path
    header: str
    digests: Sequence[str]

    def require(self, first: int = 0) -> None:
        """Check that every tile is there, from a number on, before any is read.

        :raises MissingTile: one is not; the first ones are named
        """
        lost = [digest for digest in self.digests[first:] if not self._path(digest).exists()]
        if lost:
            raise MissingTile(
                f"{len(lost)} of {len(self.digests)} tiles are missing", field=self.name,
                expected=", ".join(f"{digest}.json" for digest in lost[:3]), actual=f"no such files in {self.folder}",
                hint="copy the folder `tiles` from the provider's public folder into the folder of window.json",
            )  # fmt: skip

    def read(self, number: int) -> list[Json]:
        """The values of a tile.

        :raises MissingTile: the file does not exist
        :raises AlteredTile: the content does not have the digest in the tile's name
        :raises ForeignTile: the tile belongs to another window
        :raises ReorderedTile: the tile belongs to another place
        :raises RagAuditError: the file is no tile of this version, or exceeds a tile's maximum size
        """
        digest = self.digests[number]
        path, field = self._path(digest), f"{self.name}.tiles[{number}]"
        if not path.exists():
            raise MissingTile(
                "a tile is missing", field=field, expected=path.name, actual=f"no such file in {self.folder}"
            )
        data = read_bytes(path, max_bytes=MAX_TILE_BYTES)
        if (actual := sha256(data).hex()) != digest:
            raise AlteredTile(
                "the content of a tile does not match its name", field=field, expected=digest, actual=actual
            )
        value = parse_json(data, source=path.name)
        if not isinstance(value, dict) or value.get("mediaType") != TILE:
            found_type = value.get("mediaType") if isinstance(value, dict) else None
            raise VersionError("the tile's format is unknown", field=field, expected=TILE, actual=found_type)
        tile = Tile.parse(value, field=field)
        if tile.header != self.header:
            raise ForeignTile(
                "a tile belongs to another window", field=field, expected=self.header, actual=tile.header
            )
        if (tile.part, tile.number) != (self.name, number):
            raise ReorderedTile("a tile is at the place of another tile", field=field,
                                expected=f"{self.name} {number}", actual=f"{tile.part} {tile.number}")  # fmt: skip
        return tile.values

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"


def check_counts(entries: EntryTiles, proofs: Json, folder: Path, *, field: str) -> None:
    """Refuse an index of tiles that names more proofs than the bytes of its tiles have entries. The check precedes the
    parsing of the index, because a number in a list takes two bytes of window.json and 100 times as many in memory.

    :param proofs: the part of window.json that names the tiles of proofs, as it was read
    :param field: the window file's name
    :raises SchemaError: the proofs are more than the entries
    """
    held = unseen = 0
    for tile in entries.tiles:
        size = 0
        with suppress(OSError):
            size = (folder / f"{tile.sha256}.json").stat().st_size
        maximum = size // MIN_ENTRY_BYTES
        held, unseen = held + min(tile.count, maximum), unseen + max(0, tile.count - maximum)
    # A missing or truncated tile gets its own error. Its declared number of entries counts here within a limit.
    maximum = held + min(unseen, UNSEEN_ENTRIES)
    tiles = proofs.get("tiles") if isinstance(proofs, dict) else None
    if isinstance(tiles, list):
        named = (tile.get("seqs") for tile in tiles if isinstance(tile, dict))
        actual = sum(len(seqs) for seqs in named if isinstance(seqs, list))
        if actual > maximum:
            raise SchemaError("the window file names more proofs than its ledger has entries",
                              field=f"{field}.proofs.tiles", expected=f"at most {maximum}", actual=actual)  # fmt: skip


def read_entries(
    tiles: EntryTiles,
    folder: Path,
    header: str,
    first: int = 0,
    unreadable: list[RagAuditError] | None = None,
) -> list[Json]:
    """The ledger's entries.

    :param first: the number of tiles to skip, with their entries
    :param unreadable: receives the error of the first unreadable tile, which ends the entries; None raises the error
    :raises SizeError: the entries exceed the memory limit
    :raises SchemaError: a tile's number of entries differs from the declared number
    :raises RagAuditError: as `Part.read`
    """
    part = Part("entries", folder, header, [tile.sha256 for tile in tiles.tiles])
    if unreadable is None:
        part.require(first)
    entries: list[Json] = []
    total = values = 0
    for number, tile in enumerate(tiles.tiles[first:], first):
        try:
            result = part.read(number)
            if len(result) != tile.count:
                raise SchemaError("a tile has another number of entries", field=f"entries.tiles[{number}]",
                                  expected=tile.count, actual=len(result))  # fmt: skip
        except RagAuditError as exc:
            if unreadable is None:
                raise
            unreadable.append(exc)
            break
        data = jcs(result)
        total, values = total + len(data), values + count_values(data)
        if total > MAX_ENTRIES_BYTES or values > MAX_VALUES:
            raise SizeError("the entries are too large in total", field="entries",
                            expected=f"at most {MAX_ENTRIES_BYTES} bytes and {MAX_VALUES} JSON values",
                            actual=f"more by tile {number}")  # fmt: skip
        entries += result
    return entries


class TiledProofs(Mapping[str, Json]):
    """Proofs by the `seq` of their entry. A few tiles at a time are in memory; iteration in order reads each tile once.

    :raises SchemaError: a `seq` occurs twice
    """

    def __init__(self, tiles: ProofTiles, folder: Path, header: str) -> None:
        self._part = Part("proofs", folder, header, [tile.sha256 for tile in tiles.tiles])
        self._seqs = [tile.seqs for tile in tiles.tiles]
        self._places = {
            str(seq): (number, place)
            for number, seqs in enumerate(self._seqs)
            for place, seq in enumerate(seqs)
        }
        if len(self._places) != sum(map(len, self._seqs)):
            twice = repeated(str(seq) for seqs in self._seqs for seq in seqs)
            raise SchemaError(
                "the proofs of an entry are in two places", field="proofs.tiles", actual=twice[:5]
            )
        self._at_hand: OrderedDict[int, list[Json]] = OrderedDict()
        self._unreadable: dict[int, RagAuditError] = {}

    def require(self) -> None:
        """`Part.require`."""
        self._part.require()

    def __getitem__(self, seq: str) -> Json:
        number, place = self._places[seq]
        if (known := self._unreadable.get(number)) is not None:
            raise known  # avoids one more read of the tile for each of its proofs
        try:
            return self._tile(number)[place]
        except RagAuditError as exc:
            self._unreadable[number] = exc
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, seq: object) -> bool:
        return seq in self._places

    def _tile(self, number: int) -> list[Json]:
        result = self._at_hand.get(number)
        if result is not None:
            self._at_hand.move_to_end(number)
            return result
        values: list[Json] = []
        expected = self._seqs[number]
        for place, value in enumerate(read := self._part.read(number)):
            seq = expected[place] if place < len(expected) else None
            if (
                not isinstance(value, list)
                or len(value) != 2
                or value[0] != seq
                or isinstance(value[0], bool)
            ):
                raise SchemaError("a tile has other proofs than the window file states",
                                  expected=f"the proofs of entry {seq}",
                                  field=f"proofs.tiles[{number}][{place}]")  # fmt: skip
            values.append(value[1])
        if len(read) != len(expected):
            raise SchemaError("a tile has other proofs than the window file states", field=f"proofs.tiles[{number}]",
                              expected=len(expected), actual=len(read))  # fmt: skip
        self._at_hand[number] = values
        if len(self._at_hand) > _AT_HAND:
            self._at_hand.popitem(last=False)
        return values


def read_receipts(value: Json, path: Path) -> Iterator[tuple[str, Json] | RagAuditError]:
    """The receipts of a receipts.json with their names, one tile at a time. For an unreadable tile the iterator yields
    its error, so that the other receipts can still be judged.

    :param value: the file's value
    :raises SchemaError: the file has other fields
    """
    index = ReceiptTiles.parse(value, field=path.name)
    part = Part("receipts", path.parent / FOLDER, index.header, [tile.sha256 for tile in index.tiles])
    for number, tile in enumerate(index.tiles):
        field = f"receipts.tiles[{number}]"
        try:
            values = part.read(number)
            if len(values) != tile.count:
                raise SchemaError("a tile has another number of receipts", field=field,
                                  expected=tile.count, actual=len(values))  # fmt: skip
        except RagAuditError as exc:
            yield exc
            continue
        for place, pair in enumerate(values):
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str):
                yield pair[0], pair[1]
            else:
                yield SchemaError("the value is not a receipt with a name", field=f"{field}[{place}]")
