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
    from bs4 import BeautifulSoup, Tag

MAX_DOCUMENT_BYTES = 1 << 30
MAX_NAME = 500
"""The most characters of a title or heading that are kept beside a text."""


class DocumentsError(RagAuditError):
    """A provider's documents cannot be used, since they are absent, unreadable, or without text."""


@dataclass(frozen=True)
class Section:
    """A part of a file.

    :param fields: what is known of it beside the text: a page, a title
    """

    text: str
    fields: Mapping[str, Json] = field(default_factory=dict)


def read_file(file: Path) -> list[Section]:
    """The texts of a file, by the ending of its name (`SUFFIXES`).

    :raises DocumentsError: it cannot be read, or holds pictures alone
    :raises EncodingError: a text is not UTF-8
    :raises SetupError: the package that reads such a file is not installed
    """
    try:
        with open_regular(file) as handle:
            data = handle.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as exc:
        raise DocumentsError("the file cannot be read", field=str(file), found=exc.strerror) from exc
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentsError(
            "the file is too large", field=str(file), expected=f"at most {MAX_DOCUMENT_BYTES} bytes"
        )
    return _READERS[file.suffix.lower()](data, file)


def _plain(data: bytes, file: Path) -> list[Section]:
    try:
        return [Section(data.decode("utf-8-sig"))]
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


def _html(data: bytes, file: Path) -> list[Section]:
    """What a browser would show as text: blocks as paragraphs, headings with the marks of Markdown."""
    try:
        from bs4 import BeautifulSoup
    except ImportError as exc:
        raise missing("bs4") from exc
    page = BeautifulSoup(data, "html.parser")
    title = " ".join(page.title.get_text().split()) if page.title else ""
    _flatten(page)
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in page.get_text().split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return [Section(text, {"title": title[:MAX_NAME]} if title else {})]


def _flatten(page: BeautifulSoup) -> None:
    """Leave line breaks of a page's text where a browser breaks lines."""
    from bs4.element import NavigableString, PreformattedString

    for element in page.find_all(_UNSEEN):
        element.decompose()
    for string in page.find_all(string=True):
        if isinstance(string, PreformattedString):  # a comment, or the type of the document
            string.extract()
        elif string.find_parent("pre") is None:
            string.replace_with(NavigableString(re.sub(r"\s+", " ", string)))
    for line in page.find_all("br"):
        line.replace_with("\n")
    for cell in page.find_all(["td", "th"]):
        cell.insert_after(" ")
    for block in page.find_all(_BLOCKS):
        _apart(block)


def _apart(block: Tag) -> None:
    if re.fullmatch("h[1-6]", block.name):
        block.string = f"{'#' * int(block.name[1])} {' '.join(block.get_text().split())}"
    around = "\n" if block.name in ("li", "tr", "dt", "dd") else "\n\n"
    block.insert_before(around)
    block.insert_after(around)


def _pdf(data: bytes, file: Path) -> list[Section]:
    """The pages that have text, with their numbers."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as exc:
        raise missing("pypdf") from exc
    try:
        reader = PdfReader(io.BytesIO(data))
        title = (reader.metadata.title if reader.metadata else None) or ""
        pages = [(number, page.extract_text()) for number, page in enumerate(reader.pages, 1)]
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as exc:
        # A damaged file breaks the reader in any of these ways.
        raise DocumentsError("the PDF file cannot be read", field=str(file), found=str(exc)[:200]) from exc
    found = [(number, _unbroken(text)) for number, text in pages if any(map(str.isalnum, text))]
    if not found:
        raise DocumentsError("the PDF file holds no text", field=str(file), expected="text, not pictures of it",
                             hint="make its text readable first (OCR), or leave it out: --skip-unreadable")  # fmt: skip
    named: dict[str, Json] = {"title": _unbroken(str(title))[:MAX_NAME]} if str(title).strip() else {}
    return [Section(text, {**named, "page": number}) for number, text in found]


def _unbroken(text: str) -> str:
    """A page's text without surrogates, which damaged fonts leave and no answer can hold."""
    return re.sub(r"[\ud800-\udfff\x00]", "\ufffd", text)


_READERS: Mapping[str, Callable[[bytes, Path], list[Section]]] = {
    ".htm": _html,
    ".html": _html,
    ".md": _plain,
    ".pdf": _pdf,
    ".rst": _plain,
    ".txt": _plain,
}
SUFFIXES = frozenset(_READERS)
"""Endings of names of the files that are read."""
