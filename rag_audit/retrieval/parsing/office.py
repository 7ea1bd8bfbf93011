"""The text of Word, PowerPoint and Excel files (ECMA-376)."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from rag_audit._internal.canonical import Json
from rag_audit.retrieval.parsing.results import (
    DocumentsError,
    Omission,
    ReadFile,
    Section,
    has_letters,
    titled,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_NOTES = ("footnotes", "endnotes")
_HEADING = re.compile(r"heading ([1-6])", re.I)


def _archive(file: BinaryIO) -> None:
    """Report a file of another format before a library reports it in its own words. An encrypted file is not an
    archive."""
    if not zipfile.is_zipfile(file):
        raise DocumentsError("the file cannot be read", expected="an Office Open XML file",
                             actual="another format, a damaged file, or one with a password")  # fmt: skip
    file.seek(0)


def word(file: BinaryIO) -> ReadFile:
    """A Word file's text: paragraphs, headings with the marks of Markdown, rows of tables as lines with tabs between
    the cells; after it the footnotes and endnotes. Deleted text of tracked changes is omitted."""
    _archive(file)
    import docx
    from docx.oxml import parse_xml

    document = docx.Document(file)
    styles = {style.style_id: style.name or "" for style in document.styles}
    blocks = list(_blocks(document.element.body, styles))
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] in _NOTES:
            blocks.extend(_blocks(parse_xml(relation.target_part.blob), styles))
    margins = {part.text for section in document.sections for area in (section.header, section.footer)
               if not area.is_linked_to_previous for part in area.paragraphs if has_letters(part.text)}  # fmt: skip
    omitted = (
        [Omission("are not read: they repeat on each page", part="headers and footers")] if margins else []
    )
    text = "\n\n".join(blocks)
    return ReadFile((Section(text, titled(document.core_properties.title)),), tuple(omitted))


def _blocks(element: _Element, styles: dict[str, str]) -> Iterator[str]:
    """The paragraphs and tables below an element, also those inside content controls, insertions and text boxes."""
    for child in element:
        if child.tag == f"{_W}p":
            boxes: list[_Element] = []
            style = child.find(f"{_W}pPr/{_W}pStyle")
            text = _words(child, boxes).strip()
            level = _HEADING.fullmatch(styles.get(style.get(f"{_W}val"), "") if style is not None else "")
            if has_letters(text):
                yield f"{'#' * int(level[1])} {' '.join(text.split())}" if level else text
            for box in boxes:
                yield from _blocks(box, styles)
        elif child.tag == f"{_W}tbl":
            rows = ("\t".join(" ".join(" ".join(_blocks(cell, styles)).split()) for cell in row.iter(f"{_W}tc"))
                    for row in child.iter(f"{_W}tr"))  # fmt: skip
            yield "\n".join(filter(has_letters, rows))
        elif isinstance(child.tag, str) and child.tag not in (f"{_W}del", f"{_W}moveFrom", _FALLBACK):
            yield from _blocks(child, styles)


def _words(element: _Element, boxes: list[_Element]) -> str:
    """The text of a paragraph. Text boxes in it are appended to `boxes`."""
    out: list[str] = []
    for child in element:
        if child.tag == f"{_W}t":
            out.append(child.text or "")
        elif child.tag in (f"{_W}tab", f"{_W}br", f"{_W}cr"):
            out.append("\t" if child.tag == f"{_W}tab" else "\n")
        elif child.tag == f"{_W}noBreakHyphen":
            out.append("-")
        elif child.tag == f"{_W}txbxContent":
            boxes.append(child)
        elif isinstance(child.tag, str) and child.tag not in (
            f"{_W}del",
            f"{_W}moveFrom",
            f"{_W}pPr",
            _FALLBACK,
        ):
            out.append(_words(child, boxes))
    return "".join(out)


def slides(file: BinaryIO) -> ReadFile:
    """A presentation's slides that have text, with their numbers, each followed by its notes. Hidden slides, diagrams
    and charts are named as omitted."""
    _archive(file)
    import pptx

    presentation = pptx.Presentation(file)
    named = titled(presentation.core_properties.title)
    sections: list[Section] = []
    omitted: list[Omission] = []
    for number, slide in enumerate(presentation.slides, 1):
        if slide.element.get("show") in ("0", "false"):
            omitted.append(Omission("is hidden", part=f"slide {number}"))
            continue
        for frame in slide.element.iter(f"{_A}graphicData"):
            kind = str(frame.get("uri")).rpartition("/")[2]
            if kind in ("chart", "chartex", "diagram"):
                omitted.append(
                    Omission("is not read", part=f"the {kind.removesuffix('ex')} on slide {number}")
                )
        parts = list(_paragraphs(slide.element))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            parts.append(slide.notes_slide.notes_text_frame.text.replace("\v", "\n"))
        text = "\n\n".join(filter(has_letters, parts))
        if has_letters(text):
            sections.append(Section(text, {**named, "slide": number}))
        else:
            omitted.append(Omission("has no text (a picture?)", part=f"slide {number}"))
    return ReadFile(tuple(sections), tuple(omitted))


def _paragraphs(element: _Element) -> Iterator[str]:
    """The text of each text body and each table below an element of a slide."""
    for child in element:
        if child.tag == f"{_A}tbl":
            rows = ("\t".join(" ".join(" ".join(_paragraphs(cell)).split()) for cell in row.iter(f"{_A}tc"))
                    for row in child.iter(f"{_A}tr"))  # fmt: skip
            yield "\n".join(filter(has_letters, rows))
        elif isinstance(child.tag, str) and child.tag.endswith("}txBody"):
            yield "\n".join(
                "".join(
                    "\n" if run.tag == f"{_A}br" else run.text or ""
                    for run in paragraph.iter(f"{_A}t", f"{_A}br")
                )
                for paragraph in child.iter(f"{_A}p")
            ).strip()
        elif isinstance(child.tag, str) and child.tag != _FALLBACK:
            yield from _paragraphs(child)


def sheets(file: BinaryIO) -> ReadFile:
    """A workbook's visible sheets that have values, with their names: rows as lines with tabs between the cells, and of
    a formula the result that the file stores. Hidden sheets, and formulas without a result, are named as omitted."""
    _archive(file)
    import openpyxl

    values = openpyxl.load_workbook(file, read_only=True, data_only=True)
    file.seek(0)
    formulas = openpyxl.load_workbook(file, read_only=True, data_only=False)
    named = titled(values.properties.title)
    sections: list[Section] = []
    omitted: list[Omission] = []
    for name in values.sheetnames:
        sheet, other = values[name], formulas[name]
        if not hasattr(sheet, "iter_rows"):
            omitted.append(Omission("is not read", part=f"the chart sheet {name}"))
            continue
        if sheet.sheet_state != "visible":
            omitted.append(Omission("is hidden", part=f"the sheet {name}"))
            continue
        sheet.reset_dimensions()  # the size stated in the file may be wrong
        other.reset_dimensions()
        lines: list[str] = []
        lost = 0
        for row, written in zip(
            sheet.iter_rows(values_only=True), other.iter_rows(values_only=True), strict=True
        ):
            lost += sum(a is None and b is not None for a, b in zip(row, written, strict=True))
            line = "\t".join(map(_value, row)).rstrip("\t")
            if line:
                lines.append(line)
        if lost:
            omitted.append(Omission("have no stored result: save the file with a spreadsheet program",
                                    part=f"{lost} formulas of the sheet {name}"))  # fmt: skip
        text = "\n".join(lines)
        fields: dict[str, Json] = {**named, "sheet": name}
        if has_letters(text):
            sections.append(Section(text, fields))
        else:
            omitted.append(Omission("has no text", part=f"the sheet {name}"))
    return ReadFile(tuple(sections), tuple(omitted))


def _value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return " ".join(str(value).split())
