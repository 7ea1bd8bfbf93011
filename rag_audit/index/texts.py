"""A provider's own texts, read from a folder that has a folder of text files or a JSON Lines file for each tenant."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_audit.encoding.canonical import Json, parse_json, read_bytes
from rag_audit.encoding.durable import open_regular
from rag_audit.errors import EncodingError, RagAuditError, SchemaError
from rag_audit.formats.models import Identifier
from rag_audit.formats.passage import Passage

MAX_LINES_BYTES = 4 << 30
MAX_CHUNK = 800
"""The most characters of a chunk, well below the 512 tokens at which documents are cut."""
CUTS = (
    re.compile(r"\r?\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)
"""Patterns between which a text is cut: paragraphs, lines, sentences, words."""
SUFFIXES = frozenset({".md", ".rst", ".txt"})
DEFAULT_TENANT = "default"


class DocumentsError(RagAuditError):
    """A folder of documents cannot be used, since it is absent, unreadable, or without text."""


@dataclass(frozen=True)
class Document:
    """One text that can be retrieved.

    :param id: unique in its collection
    :param group: the tenant it belongs to
    :param title: its name for people; for a docstring that of the object, `str.rsplit`
    :param metadata: what goes into an answer beside the text, as `Passage` has it
    """

    id: str
    group: str
    title: str
    text: str
    metadata: bytes | None = None

    @property
    def passage(self) -> Passage:
        """The document as it is committed to."""
        return Passage(self.text, self.metadata)


def load_directory(
    path: Path, *, text_alone: bool = True, unreadable: Callable[[RagAuditError], None] | None = None
) -> dict[str, list[Document]]:
    """Read the documents of each tenant: ``<tenant>.jsonl`` files at the top of `path` with one ``{"text": ..}`` a
    line, which are not cut, and whose other fields (and those of `metadata`, an object) are the metadata; or, if there
    are none, the .txt, .md and .rst files below it, which are cut into chunks of whole paragraphs. A chunk is a part of
    its file's text, line for line; its metadata are an `id` and the file as `source`.

    Each folder at the top is a tenant; files at the top belong to the tenant `default`. Hidden files and
    folders are passed over, links to folders are not followed.

    :param text_alone: whether documents go without metadata
    :param unreadable: called with the error of a file or line that cannot be read, which is then left out; without it
        the error is raised
    :raises DocumentsError: the folder is missing, unreadable or without text, or a folder's name is not a tenant's id
    :raises EncodingError: a file is not UTF-8, or a line is not JSON
    :raises SchemaError: a line has no text, or a field both beside `metadata` and inside it
    :raises SizeError: a document's metadata is larger than `MAX_METADATA_BYTES`
    """
    tenants: dict[str, list[Document]] = {}
    if lists := sorted(path.glob("*.jsonl")):
        return {_tenant(file.stem, file): list(_lines(file, text_alone, unreadable)) for file in lists}
    for file in _text_files(path):
        inside = file.relative_to(path)
        tenant = inside.parts[0] if len(inside.parts) > 1 else DEFAULT_TENANT
        _tenant(tenant, path / tenant)
        try:
            whole = _read(file)
        except RagAuditError as exc:
            _leave_out(exc, unreadable)
            continue
        for number, text in enumerate(_chunks(whole), 1):
            title = f"{inside.as_posix()}#{number}"
            fields: dict[str, Json] = {} if text_alone else {"id": title, "source": inside.as_posix()}
            metadata = Passage.of(text, fields, field=title).metadata
            tenants.setdefault(tenant, []).append(Document(title, tenant, title, text, metadata))
    if not tenants:
        raise DocumentsError(
            "the folder holds no text",
            field=str(path),
            expected=f"files ending in {', '.join(sorted(SUFFIXES))}",
        )
    return tenants


def _tenant(name: str, place: Path) -> str:
    try:
        TypeAdapter(Identifier).validate_python(name)
    except ValidationError:
        raise DocumentsError(
            "the name cannot be a tenant's id",
            field=str(place),
            expected="letters, digits and . _ @ : - only, a letter or digit first",
            found=name,
        ) from None
    return name


def _lines(
    file: Path, text_alone: bool, unreadable: Callable[[RagAuditError], None] | None
) -> Iterator[Document]:
    for number, line in enumerate(read_bytes(file, max_bytes=MAX_LINES_BYTES).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            document = _line(file, f"{file.name}#{number}", line, text_alone)
        except RagAuditError as exc:
            _leave_out(exc, unreadable)
            continue
        yield document


def _line(file: Path, place: str, line: bytes, text_alone: bool) -> Document:
    value = parse_json(line, source=place, reals=text_alone)
    text = value.pop("text", None) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(text, str):
        raise SchemaError("the line is not a document", field=place, expected='{"text": ".."}')
    fields = {} if text_alone else _metadata(value, place)
    return Document(place, file.stem, place, text, Passage.of(text, fields, field=place).metadata)


def _leave_out(exc: RagAuditError, unreadable: Callable[[RagAuditError], None] | None) -> None:
    if unreadable is None:
        raise exc
    unreadable(exc)


def _metadata(others: dict[str, Json], place: str) -> dict[str, Json]:
    """The metadata of a line: the fields of its object `metadata`, and the line's own."""
    inner = others.pop("metadata", None) or {}
    if not isinstance(inner, dict):
        raise SchemaError("a document's metadata is not an object", field=f"{place}.metadata")
    if twice := sorted(inner.keys() & others.keys()):
        raise SchemaError("a document has a field twice", field=place,
                          expected="each beside `metadata` or inside it", found=", ".join(twice))  # fmt: skip
    return {**others, **inner}


def _text_files(path: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise DocumentsError(
            "the folder cannot be read", field=error.filename, found=error.strerror
        ) from error

    if not path.is_dir():
        raise DocumentsError("there is no such folder", field=str(path))
    for folder, names, members in os.walk(path, onerror=refuse):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for member in sorted(members):
            if not member.startswith(".") and Path(member).suffix.lower() in SUFFIXES:
                yield Path(folder, member)


def _read(file: Path) -> str:
    try:
        with open_regular(file) as handle:
            return handle.read().decode("utf-8-sig")
    except OSError as exc:
        raise DocumentsError("the file cannot be read", field=str(file), found=exc.strerror) from exc
    except UnicodeDecodeError as exc:
        raise EncodingError(
            "the file is not UTF-8", field=str(file), found=f"byte {exc.start}: {exc.reason}"
        ) from exc


def _chunks(text: str) -> Iterator[str]:
    """Cut a text into chunks of up to `MAX_CHUNK` characters: neighbouring paragraphs are kept together, a longer
    paragraph is cut between lines, a longer line between sentences, a longer sentence between words.

    Parts without a letter or digit are left out at the edges of a chunk.
    """
    start = end = 0
    for first, last in _parts(text, 0, len(text), CUTS):
        if not any(map(str.isalnum, text[first:last])):
            continue
        if end and last - start > MAX_CHUNK:
            yield text[start:end]
            end = 0
        start, end = (start if end else first), last
    if end:
        yield text[start:end]


def _parts(text: str, start: int, end: int, cuts: Sequence[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Begin and end of each part of text[start:end], without the space around it; no part exceeds `MAX_CHUNK`."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    if not cuts:
        yield from ((at, min(at + MAX_CHUNK, end)) for at in range(start, end, MAX_CHUNK))
        return
    if end - start <= MAX_CHUNK and cuts is not CUTS:
        if start < end:
            yield start, end
        return
    # A whole text is always cut into paragraphs; `_chunks` decides whether they are joined again.
    edges = [(m.start(), m.end()) for m in cuts[0].finditer(text, start, end)]
    for first, last in zip([start, *(e for _, e in edges)], [*(s for s, _ in edges), end], strict=True):
        yield from _parts(text, first, last, cuts[1:])
