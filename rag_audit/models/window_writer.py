"""window.json and tiles as they are written. Readers (`windowfile`, `tiles`) need none of this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from rag_audit._internal.canonical import Json, count_values, digest_hex, jcs, parse_json, read_bytes, sha256
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SizeError, StoreError
from rag_audit.models import tiles as tiles_
from rag_audit.models import windowfile
from rag_audit.models.tiles import (
    FOLDER,
    RECEIPTS,
    TILE,
    EntryTile,
    EntryTiles,
    PartName,
    ProofTile,
    ProofTiles,
    ReceiptTiles,
)
from rag_audit.models.windowfile import TiledParts, WindowFile

TILE_BYTES = 4 << 20
"""A value ends a written tile if it brings the tile's values to this number of bytes."""
TILED_BYTES = 256 << 20
"""A window is written in tiles once its entries and proofs have more bytes than this."""
INLINE_BYTES = 16 << 20
"""Parts larger than this are written as siblings."""
_TOO_LARGE = "only prove the records of a sampled challenge, or serve fewer queries in each window"


def save_window(file: WindowFile, path: Path, tiles: TiledParts | None = None) -> None:
    """Write the file atomically, so that a reader sees either the old file or the new one.

    :param tiles: entries and proofs, if they already are in tiles; the file's own must then be empty
    :raises SizeError: the file would exceed the limits of `load`; the parts written before the error are unreferenced
    """
    small = tiles is None and _small(file)
    value = (file if small else file.model_copy(update={"entries": [], "proofs": {}})).dump()
    large = {key: data for key, part in value.items() if isinstance(part, list | dict)
             and len(data := jcs(part)) > INLINE_BYTES}  # fmt: skip
    windowfile.limit(
        sum(map(len, large.values())), windowfile.MAX_SIBLINGS_BYTES, "bytes", path, hint=_TOO_LARGE
    )
    windowfile.limit(
        sum(map(count_values, large.values())),
        windowfile.MAX_SIBLINGS_VALUES,
        "JSON values",
        path,
        hint=_TOO_LARGE,
    )
    if not small:
        value |= (tiles or _tiles(file, path.parent / FOLDER)).dump()
    for key, data in large.items():
        name = f"{sha256(data).hex()}.json"
        replace_file(path.parent / name, data)
        value[key] = {"sibling": name}
    replace_file(path, jcs(value) + b"\n")


def _small(file: WindowFile) -> bool:
    """Whether entries and proofs are small enough for one file. Of a large window little more is read than that."""
    size = 0
    for part in chain(file.entries, file.proofs.values()):
        size += len(jcs(part))
        if size > TILED_BYTES:
            return False
    return True


def _tiles(file: WindowFile, folder: Path) -> TiledParts:
    """Write the tiles. The proofs are in the order of a verifier's requests, by tenant, independent of the order of
    the records."""
    header = digest_hex(file.entries[0])

    def of(seq: int) -> tuple[str, int]:
        entry = file.entries[seq] if seq < len(file.entries) else None
        tenant = entry.get("tenant") if isinstance(entry, dict) else None
        return str(tenant), seq

    order = sorted(map(int, file.proofs), key=of)
    return TiledParts(
        header=header,
        entries=write_entries(file.entries, folder, header),
        proofs=write_proofs(file.proofs, order, folder, header),
    )


def stray_siblings(path: Path) -> list[Path]:
    """The unreferenced files with a sibling's name, next to a window file and in its folder of tiles.

    :raises EncodingError: the window file cannot be read
    """
    value = parse_json(read_bytes(path, max_bytes=windowfile.MAX_WINDOW_BYTES), source=path.name)
    named = (
        {path.parent / name for _, name in windowfile.named_siblings(value, path)}
        if isinstance(value, dict)
        else set()
    )
    folder = path.parent / FOLDER
    if isinstance(value, dict) and "header" in value:
        value.update(windowfile.read_siblings(path, value))
        parts = TiledParts.parse(
            {n: value[n] for n in TiledParts.model_fields if n in value}, field=path.name
        )
        tiles: list[EntryTile | ProofTile] = [*parts.entries.tiles, *parts.proofs.tiles]
        named |= {folder / f"{tile.sha256}.json" for tile in tiles}
    beside = [*path.parent.iterdir(), *(folder.iterdir() if folder.is_dir() else ())]
    return sorted(p for p in beside if windowfile.SIBLING.match(p.name) and p not in named)


def write_entries(
    entries: Iterable[Json], folder: Path, header: str, *, number: int = 0, tile_bytes: int | None = None
) -> EntryTiles:
    """Write the tiles of a ledger's entries, as far as they are not there.

    :param number: how many tiles come before, with the entries before these
    :param tile_bytes: in place of `TILE_BYTES`, if it is given
    :raises StoreError: a tile cannot be written
    :raises SizeError: a single entry is larger than a tile may be
    """
    result = [EntryTile(sha256=digest, count=count)
            for digest, count in _written("entries", entries, folder, header, number, tile_bytes)]  # fmt: skip
    return EntryTiles(tiles=result)


def write_proofs(proofs: Mapping[str, Json], order: Iterable[int], folder: Path, header: str) -> ProofTiles:
    """Write the tiles of proofs, as `write_entries`.

    :param order: the `seq` of all that have proofs, in the order of the tiles
    """
    seqs = list(order)
    values: Iterator[Json] = ([seq, proofs[str(seq)]] for seq in seqs)
    tiles, start = [], 0
    for digest, count in _written("proofs", values, folder, header):
        tiles.append(ProofTile(sha256=digest, seqs=seqs[start : start + count]))
        start += count
    return ProofTiles(tiles=tiles)


def write_receipts(receipts: Iterable[tuple[str, Json]], folder: Path, header: str) -> Path:
    """Write receipts.json and its tiles, as `write_entries`.

    :param receipts: names and receipts
    """
    values: Iterator[Json] = ([name, receipt] for name, receipt in receipts)
    result = [EntryTile(sha256=digest, count=count)
            for digest, count in _written("receipts", values, folder / FOLDER, header)]  # fmt: skip
    path = folder / "receipts.json"
    replace_file(path, ReceiptTiles(mediaType=RECEIPTS, header=header, tiles=result).canonical())
    return path


def _written(
    part: PartName,
    values: Iterable[Json],
    folder: Path,
    header: str,
    number: int = 0,
    tile_bytes: int | None = None,
) -> Iterator[tuple[str, int]]:
    """Write tiles, and yield the digest of each and how many values it has."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as exc:
        raise StoreError("cannot be written", field=str(folder), actual=exc.strerror or str(exc)) from exc
    size = 0
    waiting: list[Json] = []

    def finished() -> tuple[str, int]:
        data = jcs({"mediaType": TILE, "header": header, "part": part, "number": number, "values": waiting})
        if len(data) > tiles_.MAX_TILE_BYTES:
            raise SizeError("a value is larger than a tile", field=f"{part}.tiles[{number}]",
                            expected=f"at most {tiles_.MAX_TILE_BYTES} bytes", actual=f"{len(data)}")  # fmt: skip
        digest = sha256(data).hex()
        path = folder / f"{digest}.json"
        # Tiles of a growing ledger stay as they are but for the last.
        if not path.exists() or path.stat().st_size != len(data):
            replace_file(path, data)
        return digest, len(waiting)

    for value in values:
        waiting.append(value)
        size += len(jcs(value))
        if size >= (tile_bytes or TILE_BYTES):
            yield finished()
            number, size, waiting = number + 1, 0, []
    if waiting:
        yield finished()
