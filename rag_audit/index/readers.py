"""The texts of files: plain text and Markdown as they are, HTML and PDF as far as they are text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit.encoding.canonical import Json
from rag_audit.encoding.durable import open_regular
from rag_audit.errors import EncodingError, RagAuditError
from rag_audit.errors.extras import missing

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import Tag

MAX_DOCUMENT_BYTES = 1 << 30
MAX_NAME = 500
"""The most characters of a title or heading that are kept beside a text."""


class DocumentsError(RagAuditError):
    """A provider's documents cannot be used, since they are absent, unreadable, or without text."""


class NoTextError(DocumentsError):
    """A file of a supported format holds no text, so it yields no document."""


@dataclass(frozen=True)
class Section:
    """A part of a file.

    :param fields: what is known of it beside the text: a page, a title
    """

    text: str
    fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Omission:
    """A part of a file that yields no text although the rest of the file is read.

    :param reason: why, as the end of a sentence about the part: "has no text (a scanned page?)"
    :param page: the number of the page, from 1, if the part is a page
    :param part: the name of the part if the part is something else: "the attachment offer.pdf"
    """

    reason: str
    page: int | None = None
    part: str | None = None

    @property
    def place(self) -> str:
        """The part's name for people: "page 3", "the attachment offer.pdf"."""
        return f"page {self.page}" if self.page is not None else self.part or "a part"


@dataclass(frozen=True)
class ReadFile:
    """What a reader found in one file.

    :param sections: the texts, each with what the file tells about it; at least one has a letter or digit
    :param omitted: the parts of the file that yield no text, in the order of the file
    """

    sections: tuple[Section, ...]
    omitted: tuple[Omission, ...] = ()


def read_file(file: Path) -> ReadFile:
    """Read the texts of a file, by the ending of its name (`SUFFIXES`).

    :raises DocumentsError: the file cannot be read, or its format is not supported (`UNSUPPORTED`)
    :raises NoTextError: the file is read and holds no text: it is empty, or it holds pictures alone
    :raises EncodingError: a text is not UTF-8
    :raises SetupError: the package that reads such a file is not installed
    """
    suffix = file.suffix.lower()
    if remedy := UNSUPPORTED.get(suffix):
        raise DocumentsError("files of this format are not supported", field=str(file), found=suffix,
                             hint=f"{remedy}, or leave the file out: --skip-unreadable")  # fmt: skip
    try:
        with open_regular(file) as handle:
            data = handle.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as exc:
        raise DocumentsError("the file cannot be read", field=str(file), found=exc.strerror) from exc
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentsError(
            "the file is too large", field=str(file), expected=f"at most {MAX_DOCUMENT_BYTES} bytes"
        )
    found = _READERS[suffix](data, file)
    if not any(map(str.isalnum, "".join(section.text for section in found.sections))):
        raise NoTextError("the file holds no text", field=str(file), expected="at least one letter or digit",
                          found=f"{len(data)} bytes without text",
                          hint="remove the file, or leave it out: --skip-unreadable")  # fmt: skip
    return found


def _plain(data: bytes, file: Path) -> ReadFile:
    try:
        return ReadFile((Section(data.decode("utf-8-sig")),))
    except UnicodeDecodeError as exc:
        raise EncodingError(
            "the file is not UTF-8", field=str(file), found=f"byte {exc.start}: {exc.reason}"
        ) from exc


_BLOCKS = [
    *("address", "article", "aside", "blockquote", "dd", "details", "dialog", "div", "dl", "dt", "fieldset"),
    *(
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
    ),
    *("nav", "ol", "p", "pre", "section", "table", "tr", "ul"),
]
"""Elements that stand on lines of their own."""
_UNSEEN = ["script", "style", "template", "noscript", "head"]
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_AROUND = {
    **dict.fromkeys(_BLOCKS, "\n\n"),
    **dict.fromkeys(["li", "tr", "dt", "dd"], "\n"),
    **dict.fromkeys(["td", "th"], " "),
}
"""What stands before and after an element; only after a cell."""


def _html(data: bytes, file: Path) -> ReadFile:
    """What a browser would show as text: blocks as paragraphs, headings with the marks of Markdown."""
    try:
        from bs4 import BeautifulSoup
    except ImportError as exc:
        raise missing("bs4") from exc
    page = BeautifulSoup(data, "html.parser")
    title = " ".join(page.title.get_text().split()) if page.title else ""
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in _flattened(page).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return ReadFile((Section(text, {"title": title[:MAX_NAME]} if title else {}),))


def _flattened(page: BeautifulSoup) -> str:
    """A page's text with line breaks where a browser breaks lines, and headings with the marks of Markdown.

    One pass over all elements: those that nobody closes, such as `<p>`, are read as nested, thousands deep.
    """
    from bs4.element import NavigableString, PreformattedString, Tag

    out: list[str] = []
    above: list[Tag] = [page]
    unseen = preformatted = 0
    heading: Tag | None = None  # the outermost; what stands inside it is its text
    begun = 0  # where that begins in `out`

    def end(tag: Tag) -> None:
        nonlocal unseen, preformatted, heading
        unseen -= tag.name in _UNSEEN
        preformatted -= tag.name == "pre"
        if tag is heading:
            out[begun:] = [f"{'#' * int(tag.name[1])} {' '.join(''.join(out[begun:]).split())}"]
            heading = None
        out.append(_AROUND.get(tag.name, ""))

    for node in page.descendants:
        while above[-1] is not node.parent:
            end(above.pop())
        if isinstance(node, Tag):
            above.append(node)
            unseen += node.name in _UNSEEN
            preformatted += node.name == "pre"
            if node.name not in ("td", "th"):
                out.append("\n" if node.name == "br" else _AROUND.get(node.name, ""))
            if heading is None and node.name in _HEADINGS:
                heading, begun = node, len(out)
        elif not unseen and isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
            out.append(node if preformatted else re.sub(r"\s+", " ", node))  # the others are comments
    for tag in reversed(above):
        end(tag)
    return "".join(out)


def _pdf(data: bytes, file: Path) -> ReadFile:
    """The pages that have text, with their numbers."""
    try:
        from pypdf import PdfReader
    except ImportError as exc:
        raise missing("pypdf") from exc
    try:
        reader = PdfReader(io.BytesIO(data))
        title = (reader.metadata.title if reader.metadata else None) or ""
        pages = [(number, page.extract_text()) for number, page in enumerate(reader.pages, 1)]
    except Exception as exc:  # a damaged file breaks the reader in more ways than it has names for
        raise DocumentsError("the PDF file cannot be read", field=str(file), found=str(exc)[:200]) from exc
    found = [(number, _unbroken(text)) for number, text in pages if any(map(str.isalnum, text))]
    if not found:
        raise NoTextError("the PDF file holds no text", field=str(file), expected="text, not pictures of it",
                             hint="make its text readable first (OCR), or leave it out: --skip-unreadable")  # fmt: skip
    named: dict[str, Json] = {"title": _unbroken(str(title))[:MAX_NAME]} if str(title).strip() else {}
    kept = {number for number, _ in found}
    return ReadFile(
        tuple(Section(text, {**named, "page": number}) for number, text in found),
        tuple(Omission("has no text (a scanned page?)", page=n) for n, _ in pages if n not in kept),
    )


def _unbroken(text: str) -> str:
    """A page's text without surrogates, which damaged fonts leave and no answer can hold."""
    return re.sub(r"[\ud800-\udfff\x00]", "\ufffd", text)


_READERS: Mapping[str, Callable[[bytes, Path], ReadFile]] = {
    ".htm": _html,
    ".html": _html,
    ".md": _plain,
    ".pdf": _pdf,
    ".rst": _plain,
    ".txt": _plain,
}
SUFFIXES = frozenset(_READERS)
"""Endings of names of the files that are read."""
_WORD, _SLIDES, _SHEET = (f"save the file as {suffix} or .pdf" for suffix in (".docx", ".pptx", ".xlsx"))
_TABLE = "copy the table's rows into JSON Lines or Parquet (`rag-audit documents`)"
_MAIL = "export each message as .eml"
UNSUPPORTED: Mapping[str, str] = {
    **dict.fromkeys([".doc", ".dot", ".odt", ".rtf", ".pages"], _WORD),
    **dict.fromkeys([".ppt", ".odp"], _SLIDES),
    **dict.fromkeys([".xls", ".xlsb", ".ods", ".numbers"], _SHEET),
    **dict.fromkeys([".csv", ".tsv"], _TABLE),
    **dict.fromkeys([".msg", ".mbox", ".pst"], _MAIL),
    **dict.fromkeys([".djvu", ".epub", ".ps", ".xps"], "save the file as .pdf"),
    **dict.fromkeys([".mht", ".mhtml", ".xhtml"], "save the page as .html"),
    **dict.fromkeys([".docx", ".docm", ".pptx", ".xlsx", ".xlsm"], "save the file as .pdf"),
    ".eml": "save the message as .txt",
}
"""Endings of names of files that look like documents and that nothing here reads, with the remedy of each."""
