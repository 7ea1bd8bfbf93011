"""The text layer of a PDF file, page by page, with PDFium."""

from __future__ import annotations

import re
from typing import BinaryIO

import pypdfium2 as pdfium
from pypdfium2 import raw

from rag_audit.retrieval.parsing.results import (
    DocumentsError,
    NoTextError,
    Omission,
    ReadFile,
    Section,
    has_letters,
    titled,
)

MAX_PAGES = 100_000
SPARSE_TEXT = 20
"""A file of several pages with fewer letters and digits a page than this has almost no text layer."""
SPARSE_SCAN = 50
"""A page that is mostly a picture, with fewer letters and digits than this, counts as a scanned page."""
_CAUSES = {
    raw.FPDF_ERR_PASSWORD: "it is encrypted with a password",
    raw.FPDF_ERR_SECURITY: "its encryption is not supported",
}
_NO_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\uffff]")
"""Character codes without a Unicode value, which PDFium returns for fonts without a ToUnicode table."""


def read(file: BinaryIO) -> ReadFile:
    """The pages that have text, with their numbers.

    :raises DocumentsError: the file is damaged or encrypted, or has too many pages
    :raises NoTextError: no page has text
    """
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as exc:
        cause = _CAUSES.get(getattr(exc, "err_code", None), "it is not a PDF file, or a damaged one")
        raise DocumentsError("the PDF file cannot be read", actual=cause) from exc
    count = len(document)
    if count > MAX_PAGES:
        raise DocumentsError("the PDF file has too many pages", expected=f"at most {MAX_PAGES}", actual=count)
    named = titled(_clean(document.get_metadata_value("Title")))
    sections: list[Section] = []
    omitted: list[Omission] = []
    letters = 0
    for number in range(1, count + 1):
        try:
            text, scanned = _page(document, number - 1)
        except pdfium.PdfiumError:
            omitted.append(Omission("cannot be read: it is damaged or missing", page=number))
            continue
        result = sum(map(str.isalnum, text))
        letters += result
        if not result:
            omitted.append(Omission("has no text (a scanned page?)", page=number))
            continue
        if scanned and result < SPARSE_SCAN:
            omitted.append(Omission("is a picture with almost no text (a scanned page?)", page=number))
        if 10 * (unknown := text.count("\ufffd")) > result:
            omitted.append(Omission(f"has {unknown} characters that its fonts give no meaning", page=number))
        sections.append(Section(text, {**named, "page": number}))
    if not sections:
        raise NoTextError("the PDF file holds no text", expected="text, not pictures of it", actual=f"{count} pages",
                          hint="make its text readable first (OCR), or leave it out: --skip-unreadable")  # fmt: skip
    if count > 1 and letters < SPARSE_TEXT * count:
        found_there = f"{letters} letters and digits on {count} pages"
        omitted.insert(0, Omission(f"is almost empty: {found_there} (scanned pages?)", part="the text layer"))
    return ReadFile(tuple(sections), tuple(omitted))


def _page(document: pdfium.PdfDocument, index: int) -> tuple[str, bool]:
    """A page's text, and whether one picture covers most of the page."""
    page = document[index]
    try:
        layer = page.get_textpage()
        try:
            text = _clean(layer.get_text_range())
        finally:
            layer.close()
        return text, sum(map(str.isalnum, text)) < SPARSE_SCAN and has_letters(text) and _pictured(page)
    finally:
        page.close()


def _pictured(page: pdfium.PdfPage) -> bool:
    area = page.get_width() * page.get_height()
    for picture in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]):
        left, bottom, right, top = picture.get_bounds()
        if (right - left) * (top - bottom) > area / 2:
            return True
    return False


def _clean(text: str) -> str:
    """A text with line feeds as line ends, without the hyphens that only divide a word between two lines. PDFium puts
    U+FFFE in the place of such a hyphen and its line end."""
    text = re.sub("\xad(?:\r?\n)?", "", text.replace("\ufffe\r\n", "").replace("\ufffe", ""))
    return _NO_CHARACTER.sub("\ufffd", text.replace("\r\n", "\n"))
