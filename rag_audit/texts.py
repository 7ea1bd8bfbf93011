"""A provider's own texts, read from a folder: one tenant a folder of text files, or a file of JSON lines."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_audit.canonical import parse_json, read_bytes
from rag_audit.durable import open_regular
from rag_audit.errors import EncodingError, RagAuditError, SchemaError
from rag_audit.models import Identifier

MAX_LINES_BYTES = 4 << 30
MAX_CHUNK = 800
"""Characters of a chunk of the user's own text: well below the 512 tokens at which documents are cut."""
SUFFIXES = frozenset({".md", ".rst", ".txt"})
DEFAULT_TENANT = "default"


class DocumentsError(RagAuditError):
    """A folder of documents cannot be used: absent, unreadable, or without text."""


@dataclass(frozen=True)
class Document:
    """One text to retrieve.

    :param id: unique in its collection
    :param group: the tenant it belongs to
    :param title: what a person calls it; for a docstring the object, `str.rsplit`
    """

    id: str
    group: str
    title: str
    text: str


def load_directory(path: Path) -> dict[str, list[Document]]:
    """Texts by tenant: ``<tenant>.jsonl`` files at the top of `path`, with one ``{"text": ..}`` a line and taken as
    they are; without any, .txt, .md and .rst files below it, cut into chunks of whole paragraphs.

    Each folder at the top is a tenant; files at the top belong to the tenant `default`. Hidden files and
    folders are passed over, links to folders are not followed.

    :raises DocumentsError: no such folder, not readable, no text, or a folder's name is not a tenant's id
    :raises EncodingError: a file is not UTF-8, or a line is not JSON
    :raises SchemaError: a line without a text
    """
    tenants: dict[str, list[Document]] = {}
    if lists := sorted(path.glob("*.jsonl")):
        return {_tenant(file.stem, file): list(_lines(file)) for file in lists}
    for file in _text_files(path):
        inside = file.relative_to(path)
        tenant = inside.parts[0] if len(inside.parts) > 1 else DEFAULT_TENANT
        _tenant(tenant, path / tenant)
        for number, text in enumerate(_chunks(_read(file)), 1):
            title = f"{inside.as_posix()}#{number}"
            tenants.setdefault(tenant, []).append(Document(title, tenant, title, text))
    if not tenants:
        raise DocumentsError(
            "folder holds no text", field=str(path), expected=f"files ending in {', '.join(sorted(SUFFIXES))}"
        )
    return tenants


def _tenant(name: str, place: Path) -> str:
    try:
        TypeAdapter(Identifier).validate_python(name)
    except ValidationError:
        raise DocumentsError(
            "name cannot be a tenant's id",
            field=str(place),
            expected="letters, digits and . _ @ : - only, a letter or digit first",
            found=name,
        ) from None
    return name


def _lines(file: Path) -> Iterator[Document]:
    for number, line in enumerate(read_bytes(file, max_bytes=MAX_LINES_BYTES).split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"{file.name}#{number}"
        value = parse_json(line, source=place)
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            raise SchemaError("not a document", field=place, expected='{"text": ".."}')
        yield Document(place, file.stem, place, value["text"])


def _text_files(path: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise DocumentsError("folder cannot be read", field=error.filename, found=error.strerror) from error

    if not path.is_dir():
        raise DocumentsError("no such folder", field=str(path))
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
        raise DocumentsError("file cannot be read", field=str(file), found=exc.strerror) from exc
    except UnicodeDecodeError as exc:
        raise EncodingError(
            "file is not UTF-8", field=str(file), found=f"byte {exc.start}: {exc.reason}"
        ) from exc


def _chunks(text: str) -> Iterator[str]:
    """Neighbouring paragraphs joined up to `MAX_CHUNK` characters; a longer paragraph is cut between words."""
    chunk = ""
    for paragraph in re.split(r"\n\s*\n", text):
        piece = paragraph.strip()
        if not any(character.isalnum() for character in piece):
            continue
        for part in [piece] if len(piece) <= MAX_CHUNK else textwrap.wrap(piece, MAX_CHUNK):
            if chunk and len(chunk) + 2 + len(part) > MAX_CHUNK:
                yield chunk
                chunk = ""
            chunk = f"{chunk}\n\n{part}" if chunk else part
    if chunk:
        yield chunk
