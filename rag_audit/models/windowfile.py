"""window.json, the file that a verifier gets (docs/protocol.md, "window.json").

The window is one self-contained file, or a directory with large parts as siblings that are named by their SHA-256.
Above a stated size, entries and proofs are in tiles (`tiles`), and proofs are read on demand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag_audit._internal.canonical import (
    MAX_VALUES,
    Json,
    count_values,
    digest_hex,
    parse_json,
    read_bytes,
    sha256,
)
from rag_audit._internal.errors import EncodingError, RagAuditError, SchemaError, SizeError, VersionError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.note import parse_note
from rag_audit.models.models import Hex32, Model
from rag_audit.models.tiles import (
    FOLDER,
    EntryTiles,
    ProofTiles,
    TiledProofs,
    check_counts,
    read_entries,
)

MEDIA_TYPE = "application/vnd.rag-audit.window+json;version=1"
MAX_WINDOW_BYTES = 256 << 20
MAX_SIBLINGS_BYTES = 1 << 30
"""Maximum total bytes of all siblings; a sibling counts once for each part that names it."""
MAX_SIBLINGS_VALUES = MAX_VALUES
"""Maximum total JSON values of all siblings."""
MAX_CHALLENGES = 4096
"""Maximum challenges of a window file: each invalid one is a line of the report."""
SIBLING = re.compile(r"\A[0-9a-f]{64}\.json\Z")


def window_file(path: Path) -> Path:
    """The window file that a path means: of a folder, the file `window.json` in it."""
    return path / "window.json" if path.is_dir() else path


class WindowFile(Model):
    """The parsed window file. Entries, proofs and keys stay JSON values, which `verify` parses with their places."""

    mediaType: str
    entries: list[Json]
    """every ledger entry, in order"""
    header_checkpoint: Annotated[str, Field(max_length=65_536)]
    """the size-1 checkpoint with the witnesses' cosignatures"""
    final_checkpoint: Annotated[str, Field(max_length=65_536)]
    policy: dict[str, Json]
    embedder: dict[str, Json]
    """the manifest under C_emb"""
    roster: list[Json]
    tenants: list[Json]
    verification_keys: dict[Hex32, Json]
    """verification keys by circuit digest; the verifier uses only a key with a digest that trust.toml pins"""
    proofs: Mapping[str, Json]
    """proofs by the record's seq; of a window in tiles they are read as they are asked for"""
    challenges: Annotated[list[str], Field(max_length=MAX_CHALLENGES)]
    coalition_proof: Json

    @classmethod
    def load(cls, path: Path) -> WindowFile:
        """Read a window file, or `window.json` in a directory.

        :raises EncodingError: the file is unreadable or truncated, or has duplicate keys, values that are not canonical
            or bad sibling names
        :raises SchemaError: a field is missing or unknown
        :raises VersionError: the media type or version is not supported
        :raises SizeError: the file, or the total of its siblings, exceeds the stated limits
        """
        return cls.load_with_digests(path)[0]

    @classmethod
    def load_with_digests(cls, path: Path) -> tuple[WindowFile, dict[str, str]]:
        """`load`, with the SHA-256 of each file that was read by its name, `window.json`'s own first."""
        path = window_file(path)
        value, digests = cls._read(path)
        if not _in_tiles(value):
            return cls.parse(value, field=path.name), digests
        return cls._of_tiles(value, path)[0], digests

    @classmethod
    def load_to_judge(cls, path: Path) -> tuple[WindowFile, dict[str, str], list[RagAuditError]]:
        """`load_with_digests` for a verifier, which judges the readable parts: a missing tile must not hide other
        results.

        :returns: the file, the digests, and the error of the first tile of entries that cannot be read, before which
            the file's entries then end. A tile of proofs that cannot be read raises where its proofs are asked for
        """
        path = window_file(path)
        value, digests = cls._read(path)
        unreadable: list[RagAuditError] = []
        if not _in_tiles(value):
            return cls.parse(value, field=path.name), digests, unreadable
        return cls._of_tiles(value, path, unreadable=unreadable)[0], digests, unreadable

    @classmethod
    def load_after(
        cls, path: Path, known: Callable[[TiledParts], int]
    ) -> tuple[WindowFile, TiledParts | None]:
        """`load` for a reader of a growing ledger, without the entries in tiles that the reader has read earlier.

        :param known: returns the number of first tiles that are skipped
        :returns: the file, and its tiled parts, or None if it has no tiles and therefore all entries
        """
        value, _ = cls._read(path)
        if not _in_tiles(value):
            return cls.parse(value, field=path.name), None
        return cls._of_tiles(value, path, known)

    @classmethod
    def _read(cls, path: Path) -> tuple[dict[str, Json], dict[str, str]]:
        data = read_bytes(path, max_bytes=MAX_WINDOW_BYTES)
        value = parse_json(data, source=path.name)
        if not isinstance(value, dict):
            raise SchemaError("the file is not a window file", field=path.name, expected="a JSON object")
        if value.get("mediaType") != MEDIA_TYPE:
            raise VersionError(
                "the window file's format is unknown",
                field=f"{path.name}.mediaType",
                expected=MEDIA_TYPE,
                actual=value.get("mediaType"),
            )
        siblings = {name: name[:64] for _, name in named_siblings(value, path)}
        # `read_siblings` checks sizes first, so a window that is refused for its size costs no hashing.
        value.update(read_siblings(path, value))
        return value, {path.name: sha256(data).hex()} | siblings

    @classmethod
    def _of_tiles(
        cls,
        value: dict[str, Json],
        path: Path,
        known: Callable[[TiledParts], int] = lambda _: 0,
        unreadable: list[RagAuditError] | None = None,
    ) -> tuple[WindowFile, TiledParts]:
        """The window file, from a value with entries and proofs in tiles.

        :param unreadable: as in `read_entries`
        """
        own = {name: value.pop(name) for name in TiledParts.model_fields if name in value}
        folder = path.parent / FOLDER
        check_counts(
            EntryTiles.parse(own["entries"], field=f"{path.name}.entries"),
            own.get("proofs"),
            folder,
            field=path.name,
        )
        head = TiledParts.parse(own, field=path.name)
        proofs = TiledProofs(head.proofs, folder, head.header)
        if unreadable is None:
            proofs.require()
        first = known(head)
        entries = read_entries(head.entries, folder, head.header, first, unreadable)
        if unreadable and not entries:
            raise unreadable[0]
        if not first and (not entries or digest_hex(entries[0]) != head.header):
            raise SchemaError("the window header is not entry 0", field=f"{path.name}.header",
                              expected=head.header, actual=digest_hex(entries[0]) if entries else None)  # fmt: skip
        file = cls.parse({**value, "entries": entries, "proofs": {}}, field=path.name)
        return file.model_copy(update={"proofs": proofs}), head

    def final_head(self) -> Checkpoint:
        """The content of the final checkpoint. This method does not verify its signatures.

        :raises EncodingError: the final checkpoint is not a checkpoint note
        """
        note = parse_note(self.final_checkpoint, field="final_checkpoint")
        return Checkpoint.parse(note.text, field="final_checkpoint")

    def dump(self) -> dict[str, Json]:
        """The JSON value of the first form, with all proofs."""
        value: dict[str, Json] = {
            **self.model_copy(update={"proofs": {}}).model_dump(),
            "proofs": dict(self.proofs),
        }
        return value


class TiledParts(Model):
    """The fields that replace entries and proofs in a window.json with tiles."""

    header: Hex32
    """SHA-256 over entry 0, which every tile names"""
    entries: EntryTiles
    proofs: ProofTiles


def read_siblings(path: Path, value: dict[str, Json]) -> dict[str, Json]:
    """The parts of a window file that are stored as siblings, by key."""
    named = named_siblings(value, path)
    if lost := [f"{key}: {name}" for key, name in named if not (path.parent / name).exists()]:
        raise EncodingError("parts of the window file are missing", field=str(path), expected=", ".join(lost),
                            actual=f"no such files in {path.parent}",
                            hint="copy the parts from the provider's public folder into the folder of the window"
                                 " file")  # fmt: skip
    try:
        total = sum((path.parent / name).stat().st_size for _, name in named)
    except OSError as exc:
        raise EncodingError.of_os_error(exc, "cannot be read", field=path.parent) from exc
    limit(total, MAX_SIBLINGS_BYTES, "bytes", path)
    raw: dict[str, bytes] = {}
    values = total = 0
    for key, name in named:
        data = read_bytes(path.parent / name, max_bytes=MAX_SIBLINGS_BYTES - total)
        if sha256(data).hex() != name[:64]:
            raise EncodingError("a sibling file does not match its name", field=f"{path.name}.{key}",
                                expected=name[:64], actual=sha256(data).hex())  # fmt: skip
        total, values = total + len(data), values + count_values(data)
        limit(values, MAX_SIBLINGS_VALUES, "JSON values", path)
        raw[key] = data
    return {key: parse_json(raw.pop(key), source=name) for key, name in named}


def named_siblings(value: Mapping[str, Json], path: Path) -> list[tuple[str, str]]:
    """The parts of a window file that are stored as siblings, with the names of their files."""
    return [
        (key, _sibling_name(part["sibling"], field=f"{path.name}.{key}"))
        for key, part in value.items()
        if isinstance(part, dict) and set(part) == {"sibling"}
    ]


def _in_tiles(value: Mapping[str, Json]) -> bool:
    """Whether a window file names tiles of entries instead of the entries themselves."""
    return isinstance(value.get("entries"), dict)


def limit(actual: int, maximum: int, unit: str, path: Path, hint: str | None = None) -> None:
    if actual > maximum:
        raise SizeError("the siblings are too large in total", field=path.name, expected=f"at most {maximum} {unit}",
                        actual=f"{actual}", hint=hint)  # fmt: skip


def _sibling_name(name: Json, *, field: str) -> str:
    if not isinstance(name, str) or not SIBLING.match(name):
        raise EncodingError(
            "the name of a sibling is not valid",
            field=field,
            expected="<sha256>.json beside window.json",
            actual=name,
        )
    return name
