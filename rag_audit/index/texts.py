"""A provider's own texts, read from a folder that has a folder of text files or a JSON Lines file for each tenant."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_audit.encoding.canonical import Json
from rag_audit.encoding.characters import refuse_nul
from rag_audit.encoding.jsonlines import parse_row, text_lines
from rag_audit.errors import EncodingError, RagAuditError, SchemaError
from rag_audit.formats.models import Identifier
from rag_audit.formats.passage import Passage
from rag_audit.index.chunks import Cutting, chunks
from rag_audit.index.metadata import plain
from rag_audit.index.readers import MAX_NAME, SUFFIXES, DocumentsError, FileReader, NoTextError, Section

DEFAULT_CUTTING = Cutting()
Unreadable = Callable[[RagAuditError], None]
DEFAULT_TENANT = "default"


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
    path: Path,
    *,
    text_alone: bool = True,
    cutting: Cutting = DEFAULT_CUTTING,
    unreadable: Unreadable | None = None,
) -> dict[str, list[Document]]:
    """Read the documents of each tenant: ``<tenant>.jsonl`` files at the top of `path` with one ``{"text": ..}`` a
    line, which are not cut, and whose other fields (and those of `metadata`, an object) are the metadata; or, if there
    are none, the files below it whose names end in one of `SUFFIXES`, which are cut into chunks of whole paragraphs. A
    chunk is a part of its file's text, line for line; its metadata are an `id`, the file as `source`, and what the file
    tells: a page, a title, the headings above it.

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
        return {tenant_id(file.stem, file): list(_lines(file, text_alone, unreadable)) for file in lists}
    before = None
    with FileReader() as reader:
        for file in _text_files(path):
            inside = file.relative_to(path)
            tenant = inside.parts[0] if len(inside.parts) > 1 else DEFAULT_TENANT
            tenant_id(tenant, path / tenant)
            if tenant != before:
                reader.close()  # a file that takes over the reader's process changes no other tenant's texts
                before = tenant
            try:
                sections = reader.read(file).sections
            except (DocumentsError, EncodingError) as exc:
                _leave_out(exc, unreadable)
                continue
            tenants.setdefault(tenant, []).extend(
                _cut(sections, inside.as_posix(), tenant, text_alone, cutting)
            )
    tenants = {tenant: documents for tenant, documents in tenants.items() if documents}
    if not tenants:
        raise DocumentsError(
            "the folder holds no text",
            field=str(path),
            expected=f"files ending in {', '.join(sorted(SUFFIXES))}",
        )
    return tenants


def _cut(
    sections: Iterable[Section], source: str, tenant: str, text_alone: bool, cutting: Cutting
) -> Iterator[Document]:
    """The documents of a file."""
    found = ((section, chunk) for section in sections for chunk in chunks(section.text, cutting))
    for number, (section, chunk) in enumerate(found, 1):
        title = f"{source}#{number}"
        fields: dict[str, Json] = {**section.fields, "id": title, "source": source}
        if chunk.headings:
            fields["headings"] = [heading[:MAX_NAME] for heading in chunk.headings]
        metadata = None if text_alone else Passage.of(chunk.text, fields, field=title).metadata
        yield Document(title, tenant, title, chunk.text, metadata)


def has_text(text: str) -> bool:
    """Whether a text has a visible character, without which there is nothing to embed."""
    return any(character.isprintable() and not character.isspace() for character in text)


def tenant_id(name: str, place: Path | str) -> str:
    """A name as a tenant's id.

    :raises DocumentsError: it cannot be one
    """
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


def _lines(file: Path, text_alone: bool, unreadable: Unreadable | None) -> Iterator[Document]:
    for place, number, line in text_lines(file):
        try:
            document = _line(file.stem, f"{file.name}#{number}", place, line, text_alone)
        except RagAuditError as exc:
            _leave_out(exc, unreadable)
            continue
        yield document


def _line(tenant: str, name: str, place: str, line: bytes, text_alone: bool) -> Document:
    value = parse_row(line, source=place)
    text = value.pop("text", None)
    if not isinstance(text, str):
        raise SchemaError("the line is not a document", field=place, expected='{"text": ".."}',
                          found=f"fields {', '.join(value)}" if value else None)  # fmt: skip
    if not has_text(text):
        raise NoTextError("the line holds no text", field=place, expected="text with a visible character",
                          hint="remove the line, or leave it out: --skip-unreadable")  # fmt: skip
    refuse_nul(text, source=place)
    fields = {} if text_alone else _metadata(value, place)
    return Document(name, tenant, name, text, Passage.of(text, fields, field=place).metadata)


def _leave_out(exc: RagAuditError, unreadable: Unreadable | None) -> None:
    if unreadable is None:
        raise exc
    unreadable(exc)


def _metadata(others: dict[str, object], place: str) -> dict[str, Json]:
    """The metadata of a line: the fields of its object `metadata`, and the line's own."""
    inner = others.pop("metadata", None) or {}
    if not isinstance(inner, dict):
        raise SchemaError("a document's metadata is not an object", field=f"{place}.metadata")
    if twice := sorted(inner.keys() & others.keys()):
        raise SchemaError("a document has a field twice", field=place,
                          expected="each beside `metadata` or inside it", found=", ".join(twice))  # fmt: skip
    return {name: plain(value, f"{place}.{name}") for name, value in {**others, **inner}.items()}


def left_out(path: Path) -> Counter[str]:
    """How many files below a folder have an ending that nothing here reads, by ending."""
    return Counter(file.suffix.lower() for file in _files(path) if file.suffix.lower() not in SUFFIXES)


def _text_files(path: Path) -> Iterator[Path]:
    return (file for file in _files(path) if file.suffix.lower() in SUFFIXES)


def _files(path: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise DocumentsError(
            "the folder cannot be read", field=error.filename, found=error.strerror
        ) from error

    if not path.is_dir():
        raise DocumentsError("there is no such folder", field=str(path))
    for folder, names, members in os.walk(path, onerror=refuse):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for member in sorted(members):
            if not member.startswith("."):
                yield Path(folder, member)
