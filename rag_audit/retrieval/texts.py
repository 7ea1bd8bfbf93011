"""A provider's own texts, read from a folder that has a folder of text files or a JSON Lines file for each tenant."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_audit._internal.canonical import Json
from rag_audit._internal.characters import refuse_nul
from rag_audit._internal.errors import RagAuditError, SchemaError, SetupError
from rag_audit._internal.jsonlines import JsonNumber, parse_row, text_lines
from rag_audit.models.models import Identifier
from rag_audit.models.names import key_of_content
from rag_audit.models.passage import Passage
from rag_audit.retrieval.chunks import Cutting, chunks
from rag_audit.retrieval.inventory import Inventory, NoDocumentsError
from rag_audit.retrieval.metadata import plain
from rag_audit.retrieval.readers import (
    MAX_NAME,
    SUFFIXES,
    UNSUPPORTED,
    DocumentsError,
    FileReader,
    NoTextError,
    Omission,
)

DEFAULT_CUTTING = Cutting()
DEFAULT_TENANT = "default"
DOCUMENT_COLUMN = "id"
"""The field of a line that names its document by default."""
LINES = ".jsonl"
PROGRESS_LINES = 1000
"""Lines of a list between two reports of progress."""
_PARTS = ("page", "slide", "sheet")
"""The name of a file's section in errors."""


class NoFolderError(DocumentsError):
    """The folder that should contain the documents is missing."""


@dataclass(frozen=True)
class DocumentPart:
    """The text of one position: a whole document, or a part of one.

    :param id: unique in its collection
    :param group: the tenant it belongs to
    :param title: its name for people; for a docstring the name of the object, `str.rsplit`
    :param document: the key of its document, which all parts of the document share: the path of a file, or the value
        of a column (`load_directory`)
    :param metadata: the metadata returned with the text in an answer, in the form of `Passage`
    :param place: the place it was read from, for errors: the file with the line, the page or the chunk
    """

    id: str
    group: str
    title: str
    text: str
    document: str
    metadata: bytes | None = None
    place: str | None = None

    @property
    def passage(self) -> Passage:
        """The part as it is committed to."""
        return Passage(self.text, self.metadata, self.place or self.title, self.document)


def load_directory(
    path: Path,
    *,
    text_alone: bool = True,
    document_column: str = DOCUMENT_COLUMN,
    cutting: Cutting = DEFAULT_CUTTING,
    skip_unreadable: bool = False,
    one_tenant: str | None = None,
    inventory: Inventory | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[DocumentPart]]:
    """Read the documents of each tenant in parts; each part gets a position of the index.

    If `path` has ``<tenant>.jsonl`` files at its top, each of their lines ``{"text": ..}`` is one part, which is not
    cut; the line's other fields (and the fields of `metadata`, an object) are its metadata. Lines with the same value
    in the field `document_column` are one document. A line without the field `id` is a document whose key is its text.

    Otherwise the function reads the files below `path` with a suffix in `SUFFIXES`. Each file is one document, and the
    function cuts it into chunks of whole paragraphs. A chunk is a part of its file's text, line for line. Its metadata
    are an `id`, the file as `source`, and the data in the file: a page, a title, the headings above it.

    Each folder at the top is a tenant; files at the top belong to the tenant `default`. The inventory names everything
    else in the folder: hidden files and folders, links to folders, files of other kinds, and other files in a folder
    with ``<tenant>.jsonl`` files.

    :param text_alone: whether to drop the metadata of documents
    :param document_column: the field of a line that names its document; every line must have a field other than `id`
    :param skip_unreadable: whether to omit a file, folder or line that is unreadable or contains no text; otherwise the
        error is raised
    :param one_tenant: the tenant of all files, also of files in folders; it excludes ``<tenant>.jsonl`` files
    :param inventory: records the documents that were read and the parts that were omitted
    :param progress: called with the number of files read and of all files, before each file, and within a list
        after each `PROGRESS_LINES` lines; an exception that it raises ends the reading
    :raises DocumentsError: the folder is missing or unreadable, or a folder's name is not a tenant's id
    :raises NoDocumentsError: the folder contains no text; the error names the omitted parts
    :raises NoTextError: a file or a line contains no text
    :raises EncodingError: a file is not UTF-8, or a line is not JSON
    :raises SchemaError: a line has no text, or has a field both inside and outside `metadata`
    :raises SizeError: a document's metadata is larger than `MAX_METADATA_BYTES`
    """
    return _Loading(
        path,
        text_alone,
        document_column,
        cutting,
        skip_unreadable,
        one_tenant,
        inventory or Inventory(),
        progress or _no_progress,
    ).load()


def _no_progress(done: int, total: int) -> None:
    """Show nothing."""


@dataclass
class _Loading:
    """One call of `load_directory`, with its parameters."""

    path: Path
    text_alone: bool
    document_column: str
    cutting: Cutting
    skip_unreadable: bool
    one_tenant: str | None
    inventory: Inventory
    progress: Callable[[int, int], None]

    def load(self) -> dict[str, list[DocumentPart]]:
        files = list(self._files())
        lists = [file for file in files if file.suffix.lower() == LINES and file.parent == self.path]
        tenants: dict[str, list[DocumentPart]] = {}
        if lists and self.one_tenant is not None:
            raise DocumentsError("a JSON Lines file names its own tenant", field=str(lists[0]),
                                 expected=f"no {LINES} file at the top of a folder with one tenant",
                                 hint="omit the name of the one tenant, or move the file")  # fmt: skip
        if lists:
            read = set(lists)
            self._note_beside(file for file in files if file not in read)
            self._read_lists(lists, tenants)
        else:
            self._read_files(files, tenants)
            tenants = {tenant: documents for tenant, documents in tenants.items() if documents}
        self.progress(len(files), len(files))
        if not tenants:
            raise NoDocumentsError(
                "the folder contains no text",
                field=str(self.path),
                expected=f"<tenant>{LINES}, or files ending in {', '.join(sorted(SUFFIXES))}",
                actual=_not_read(len(self.inventory.omitted)),
                inventory=self.inventory,
            )
        for tenant, documents in tenants.items():
            self._note_read(tenant, documents)
        return tenants

    # -- one JSON Lines file for each tenant --------------------------------------------------------------------

    def _read_lists(self, lists: Sequence[Path], tenants: dict[str, list[DocumentPart]]) -> None:
        for done, file in enumerate(lists):
            tenant = tenant_id(file.stem, file)
            if tenant in tenants:
                raise DocumentsError(
                    "two files belong to one tenant", field=str(file), expected="one file a tenant"
                )
            try:
                result: list[DocumentPart] = []
                for document in self._lines(file):
                    if len(result) % PROGRESS_LINES == 0:
                        self.progress(done, len(lists))
                    result.append(document)
                if not result:
                    self._refuse(NoTextError("the file contains no documents", field=file.name,
                                             expected='a line {"text": ".."}',
                                             hint="remove the file, or omit it with --skip-unreadable"))  # fmt: skip
            except RagAuditError as exc:
                self._refuse(exc)
                continue
            tenants[tenant] = result
            self.inventory.sources[tenant] += 1

    def _lines(self, file: Path) -> Iterator[DocumentPart]:
        for place, number, line in text_lines(file):
            try:
                document = _line(file.stem, f"{file.name}#{number}", place, line, self)
            except RagAuditError as exc:
                self._refuse(exc)
                continue
            yield document

    def _note_beside(self, others: Iterable[Path]) -> None:
        for file in others:
            if _is_document(file):
                self.inventory.omit(
                    self._inside(file), f"the folder has <tenant>{LINES} files, and only these files are read"
                )
            else:
                self._omit_kind(file)

    # -- a folder of files for each tenant ----------------------------------------------------------------------

    def _read_files(self, files: Sequence[Path], tenants: dict[str, list[DocumentPart]]) -> None:
        before = None
        with FileReader() as reader:
            for done, file in enumerate(files):
                self.progress(done, len(files))
                inside = file.relative_to(self.path)
                if not _is_document(file):
                    self._omit_kind(file)
                    continue
                tenant = self.one_tenant or (inside.parts[0] if len(inside.parts) > 1 else DEFAULT_TENANT)
                tenant_id(tenant, self.path / tenant)
                if tenant != before:
                    reader.close()  # a file that takes over the reader's process changes no other tenant's texts
                    before = tenant
                try:
                    documents = list(self._file(reader, file, tenant))
                except SetupError:
                    raise  # a package is missing; the file is not at fault
                except RagAuditError as exc:
                    self._refuse(exc, self._inside(file))
                    continue
                tenants.setdefault(tenant, []).extend(documents)
                self.inventory.sources[tenant] += 1

    def _file(self, reader: FileReader, file: Path, tenant: str) -> Iterator[DocumentPart]:
        """The documents of a file."""
        source = file.relative_to(self.path).as_posix()
        if not _is_unicode(source):
            raise DocumentsError("the file's name is not UTF-8", field=str(file), expected="a name in UTF-8",
                                 hint="rename the file, or omit it with --skip-unreadable")  # fmt: skip
        if _is_list(file):
            raise DocumentsError("a JSON Lines file is read at the top of the folder only", field=str(file),
                                 expected=f"<tenant>{LINES} at the top of the folder",
                                 hint="move or unpack the file, or omit it with --skip-unreadable")  # fmt: skip
        read = reader.read(file)
        result = (
            (section, chunk) for section in read.sections for chunk in chunks(section.text, self.cutting)
        )
        for number, (section, chunk) in enumerate(result, 1):
            title = f"{source}#{number}"
            parts = [f"{name} {section.fields[name]}" for name in _PARTS if name in section.fields]
            place = ", ".join([source, *parts, f"chunk {number}"])
            fields: dict[str, Json] = {**section.fields, "id": title, "source": source}
            if chunk.headings:
                fields["headings"] = [heading[:MAX_NAME] for heading in chunk.headings]
            metadata = None
            if not self.text_alone:
                metadata = Passage.of(chunk.text, fields, field=place).metadata
                if any(len(heading) > MAX_NAME for heading in chunk.headings):
                    self.inventory.shorten(
                        place, f"a heading has more than {MAX_NAME} characters; metadata keep those"
                    )
            yield DocumentPart(title, tenant, title, chunk.text, source, metadata, place)
        self._note_parts(source, read.omitted)

    def _note_parts(self, source: str, omitted: Iterable[Omission]) -> None:
        """Note the parts of a file without text, with neighbouring pages in one entry."""
        for reason, parts in groupby(omitted, key=lambda part: part.reason):
            pages: list[int] = []
            for part in parts:
                if part.page is None:
                    self.inventory.omit(f"{source}, {part.place}", reason)
                else:
                    pages.append(part.page)
            if pages:
                word = "page" if len(pages) == 1 else "pages"
                self.inventory.omit(f"{source}, {word} {_ranges(pages)}", reason)

    # -- omitted parts --------------------------------------------------------------------------------------------

    def _refuse(self, exc: RagAuditError, name: str | None = None) -> None:
        """Raise an error, or record its subject as omitted."""
        if not self.skip_unreadable:
            raise exc
        self.inventory.omit(name or exc.field or str(self.path), exc.message, exc.actual)

    def _omit_kind(self, file: Path) -> None:
        kind = f"files ending in {file.suffix.lower()}" if file.suffix else "files without an ending"
        self.inventory.omit(self._inside(file), f"{kind} are not read")

    def _inside(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _note_read(self, tenant: str, documents: Iterable[DocumentPart]) -> None:
        for document in documents:
            self.inventory.count(tenant, document.passage)
        self.inventory.documents.setdefault(tenant, Counter())

    def _files(self) -> Iterator[Path]:
        """All files below the folder in the order of their names. The files of a folder come before the files of its
        subfolders.

        The method uses an explicit list of folders instead of recursion, so only the system limits their depth.
        """
        if not self.path.is_dir():
            raise NoFolderError("the folder of the documents does not exist", field=str(self.path),
                                hint="create the folder, or correct --docs or documents.folder in"
                                     " provider.toml")  # fmt: skip
        left = [self.path]
        while left:
            folder = left.pop()
            below = []
            for entry in self._entries(folder):
                path = folder / entry.name
                if entry.name.startswith("."):
                    self.inventory.omit(self._inside(path), "the name begins with a dot, which hides it")
                elif not _is_folder(entry):
                    yield path
                elif not entry.is_symlink():
                    below.append(path)
                else:
                    self.inventory.omit(self._inside(path), "links to folders are not followed")
            left += reversed(below)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as exc:
            error = DocumentsError.of_os_error(exc, "the folder cannot be read", field=folder)
            if folder == self.path:
                raise error from exc
            self._refuse(error, self._inside(folder))
            return []


def _not_read(count: int) -> str:
    """The number of files and folders that yield no document, in words."""
    if not count:
        return "an empty folder"
    return (
        "1 file or folder that is not read" if count == 1 else f"{count} files and folders that are not read"
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself; reading it as a file names it
        return False


def _is_document(file: Path) -> bool:
    """Whether a file looks like a document, by the ending of its name."""
    return file.suffix.lower() in SUFFIXES or file.suffix.lower() in UNSUPPORTED or _is_list(file)


def _is_list(file: Path) -> bool:
    return file.name.lower().endswith((LINES, f"{LINES}.gz"))


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers with neighbours joined: "2-4, 7"."""
    parts: list[str] = []
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number == last + 1:
            last = number
            continue
        parts.append(str(first) if first == last else f"{first}-{last}")
        if number is not None:
            first = last = number
    return ", ".join(parts)


def has_text(text: str) -> bool:
    """Whether a text has a visible character. A text without one cannot be embedded."""
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
            actual=name,
        ) from None
    return name


def _line(tenant: str, name: str, place: str, line: bytes, loading: _Loading) -> DocumentPart:
    value = parse_row(line, source=place)
    text = value.pop("text", None)
    if not isinstance(text, str):
        raise SchemaError("the line is not a document", field=place, expected='{"text": ".."}',
                          actual=f"fields {', '.join(value)}" if value else None)  # fmt: skip
    if not has_text(text):
        raise NoTextError("the line contains no text", field=place, expected="text with a visible character",
                          hint="remove the line, or omit it with --skip-unreadable")  # fmt: skip
    refuse_nul(text, source=place)
    document = document_key(value, text, loading.document_column, field=place)
    fields = {} if loading.text_alone else _metadata(value, place)
    metadata = Passage.of(text, fields, field=place).metadata
    return DocumentPart(name, tenant, name, text, document, metadata, place)


def document_key(line: Mapping[str, object], text: str, column: str = DOCUMENT_COLUMN, *, field: str) -> str:
    """The key of a line's document: the value of a column, or else the digest of the text.

    Only the default column may be missing. The line is then a document of its own: a copy of its text is the same
    document, and an edited text is another document.

    :param line: the fields of the line, which may have others in an object `metadata`
    :param field: the line's name in errors
    :raises DocumentsError: the column is missing, or its value is neither text nor a number
    """
    inner = line.get("metadata")
    value = line.get(column, inner.get(column) if isinstance(inner, Mapping) else None)
    if isinstance(value, str | int | JsonNumber) and not isinstance(value, bool):
        key = value.text if isinstance(value, JsonNumber) else str(value)
        if has_text(key):
            return key
    if column == DOCUMENT_COLUMN:
        return key_of_content(text.encode())
    raise DocumentsError("the line names no document", field=f"{field}.{column}",
                         expected="text with a visible character, or a number",
                         actual="no such field" if value is None else "another value",
                         hint="--document-column names the field with the key of a line's document")  # fmt: skip


def _metadata(others: dict[str, object], place: str) -> dict[str, Json]:
    """The metadata of a line: the fields of its object `metadata`, and the line's own."""
    inner = others.pop("metadata", None) or {}
    if not isinstance(inner, dict):
        raise SchemaError("a document's metadata is not an object", field=f"{place}.metadata")
    if twice := sorted(inner.keys() & others.keys()):
        raise SchemaError("a document has a field twice", field=place,
                          expected="each field once, in `metadata` or next to it", actual=", ".join(twice))  # fmt: skip
    return {name: plain(value, f"{place}.{name}") for name, value in {**others, **inner}.items()}
