"""Word, PowerPoint, Excel and e-mail files: their text, and what is named as omitted."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.chart import BarChart, Reference
from pptx.util import Inches

from rag_audit.retrieval.readers import DocumentsError, FileReader, Limits, NoTextError, ReadFile


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    with FileReader() as result:
        yield result


def places(actual: ReadFile) -> list[tuple[str, str]]:
    return [(o.place, o.reason) for o in actual.omitted]


def test_a_word_file_is_read_in_its_order(tmp_path: Path, reader: FileReader) -> None:
    document = docx.Document()
    document.core_properties.title = "A lease"
    document.add_heading("Rent", 1)
    paragraph = document.add_paragraph("The rent is ")
    paragraph.add_run("due").bold = True
    paragraph._p.append(
        parse_xml(
            f'<w:ins {nsdecls("w")} w:id="1" w:author="a"><w:r><w:t xml:space="preserve"> on the first</w:t></w:r></w:ins>'
        )
    )
    paragraph._p.append(
        parse_xml(
            f'<w:del {nsdecls("w")} w:id="2" w:author="a"><w:r><w:delText>never</w:delText><w:t>never</w:t></w:r></w:del>'
        )
    )
    table = document.add_table(2, 2)
    for cell, text in zip(
        (c for row in table.rows for c in row.cells), ("Flat", "Rent", "1", "500 €"), strict=True
    ):
        cell.text = text
    document.element.body.insert(
        -1,
        parse_xml(
            f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>In a field.</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        ),
    )
    boxed = document.add_paragraph("Beside it.")
    boxed._p.append(
        parse_xml(
            f'<w:r {nsdecls("w")} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:AlternateContent>'
            "<mc:Choice><w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></mc:Choice>"
            "<mc:Fallback><w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></mc:Fallback>"
            "</mc:AlternateContent></w:r>"
        )
    )
    document.add_heading("Heating", 2)
    document.add_paragraph("It is warm.")
    document.sections[0].header.paragraphs[0].text = "Confidential"
    document.save(tmp_path / "a.docx")
    result = reader.read(tmp_path / "a.docx")
    [section] = result.sections
    assert section.text.split("\n\n") == [
        "# Rent",
        "The rent is due on the first",
        "Flat\tRent\n1\t500 €",
        "In a field.",
        "Beside it.",
        "In a box.",
        "## Heating",
        "It is warm.",
    ]
    assert section.fields == {"title": "A lease"}
    assert places(result) == [("headers and footers", "are not read: they repeat on each page")]


def test_footnotes_of_a_word_file_are_read(tmp_path: Path, reader: FileReader) -> None:
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    document = docx.Document()
    document.add_paragraph("The rent is due.")
    notes = f'<w:footnotes {nsdecls("w")}><w:footnote w:id="1"><w:p><w:r><w:t>Unless it is paid.</w:t></w:r></w:p></w:footnote></w:footnotes>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, notes.encode(), document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    document.save(tmp_path / "a.docx")
    [section] = reader.read(tmp_path / "a.docx").sections
    assert section.text == "The rent is due.\n\nUnless it is paid."


def test_slides_are_read_with_their_numbers(tmp_path: Path, reader: FileReader) -> None:
    show = pptx.Presentation()
    show.core_properties.title = "Heating"
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "Heating"
    first.placeholders[1].text = "Pay\nit"
    grid = first.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(2)).table
    for place, text in (((0, 0), "Month"), ((0, 1), "Cost"), ((1, 0), "May"), ((1, 1), "5 €")):
        grid.cell(*place).text = text
    group = first.shapes.add_group_shape()
    group.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1)).text_frame.text = "grouped"
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    show.slides.add_slide(show.slide_layouts[6])  # blank
    third = show.slides.add_slide(show.slide_layouts[5])
    third.shapes.title.text = "Secret"
    third.element.set("show", "0")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    fourth = show.slides.add_slide(show.slide_layouts[5])
    fourth.shapes.title.text = "A chart"
    data = CategoryChartData()
    data.categories = ["a"]
    data.add_series("s", (1,))
    fourth.shapes.add_chart(XL_CHART_TYPE.PIE, Inches(1), Inches(1), Inches(1), Inches(1), data)
    show.save(tmp_path / "a.pptx")
    result = reader.read(tmp_path / "a.pptx")
    assert [(s.text, s.fields) for s in result.sections] == [
        ("Heating\n\nPay\nit\n\nMonth\tCost\nMay\t5 €\n\ngrouped\n\nSpeak slowly.", {"title": "Heating", "slide": 1}),
        ("A chart", {"title": "Heating", "slide": 4}),
    ]  # fmt: skip
    assert places(result) == [
        ("slide 2", "has no text (a picture?)"),
        ("slide 3", "is hidden"),
        ("the chart on slide 4", "is not read"),
    ]


def test_sheets_are_read_with_their_names(tmp_path: Path, reader: FileReader) -> None:
    book = openpyxl.Workbook()
    rents = book.active
    assert rents is not None
    rents.title = "Rents"
    rents.append(["Flat", "Rent", "Due", None, "Paid"])
    rents.append([1, 500.5, datetime.date(2026, 1, 1), None, True])
    rents.append([])
    rents.append([2, "two\nlines", datetime.datetime(2026, 1, 1, 8, 30)])
    rents["A9"] = "=1+1"
    book.create_sheet("Empty")
    hidden = book.create_sheet("Salaries")
    hidden.append(["secret"])
    hidden.sheet_state = "hidden"
    chart = BarChart()
    chart.add_data(Reference(rents, min_col=1, min_row=1, max_row=4), titles_from_data=True)
    book.create_chartsheet("Picture").add_chart(chart)
    book.save(tmp_path / "a.xlsx")
    result = reader.read(tmp_path / "a.xlsx")
    [section] = result.sections
    assert (
        section.text
        == "Flat\tRent\tDue\t\tPaid\n1\t500.5\t2026-01-01\t\tTrue\n2\ttwo lines\t2026-01-01T08:30:00"
    )
    assert section.fields == {"sheet": "Rents"}
    assert places(result) == [
        ("1 formulas of the sheet Rents", "have no stored result: save the file with a spreadsheet program"),
        ("the sheet Empty", "has no text"),
        ("the sheet Salaries", "is hidden"),
        ("the chart sheet Picture", "is not read"),
    ]


def test_a_message_is_read_with_its_header(tmp_path: Path, reader: FileReader) -> None:
    message = EmailMessage()
    message["From"], message["To"] = "Mieterin <a@example.org>", "b@example.org"
    message["Subject"] = "Die Heizung wärmt nicht"
    message["X-Mailer"] = "no"
    message.set_content("Bitte prüfen.\n", charset="iso-8859-15")
    message.add_alternative("<p>not this: the plain text is preferred</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Angebot.pdf")
    inner = EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("not read")
    message.add_attachment(inner)
    (tmp_path / "a.eml").write_bytes(bytes(message))
    result = reader.read(tmp_path / "a.eml")
    [section] = result.sections
    assert section.text == (
        "From: Mieterin <a@example.org>\nTo: b@example.org\nSubject: Die Heizung wärmt nicht\n\nBitte prüfen."
    )
    assert section.fields == {"title": "Die Heizung wärmt nicht"}
    assert places(result) == [
        ("the attachment Angebot.pdf", "is not read: save it as a file of its own"),
        ("the attachment of type message/rfc822", "is not read: save it as a file of its own"),
    ]


def test_html_of_a_message_is_read_as_a_page(tmp_path: Path, reader: FileReader) -> None:
    html = "<h1>Größe</h1><p hidden>no</p><p>Fünf €"
    for charset in ("utf-8", "windows-1252"):
        raw = (f"Subject: s\nMIME-Version: 1.0\nContent-Type: text/html; charset={charset}\n"
               "Content-Transfer-Encoding: 8bit\n\n").encode()  # fmt: skip
        (tmp_path / "a.eml").write_bytes(raw + html.encode(charset))
        [section] = reader.read(tmp_path / "a.eml").sections
        assert section.text == "Subject: s\n\n# Größe\n\nFünf €"


def test_all_texts_of_a_message_are_read(tmp_path: Path, reader: FileReader) -> None:
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content("one")
    message.make_mixed()
    footer = EmailMessage()
    footer.set_content("two")
    message.attach(footer)
    (tmp_path / "a.eml").write_bytes(bytes(message))
    assert reader.read(tmp_path / "a.eml").sections[0].text == "Subject: s\n\none\n\ntwo"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"no header here", "not an e-mail message"),
        (b"Subject: s\nContent-Type: text/plain; charset=x-nothing\n\nabc", "encoding is not known"),
    ],
)
def test_a_message_that_cannot_be_read_is_refused(
    raw: bytes, message: str, tmp_path: Path, reader: FileReader
) -> None:
    (tmp_path / "a.eml").write_bytes(raw)
    with pytest.raises(DocumentsError, match=message) as caught:
        reader.read(tmp_path / "a.eml")
    assert caught.value.field == str(tmp_path / "a.eml")


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx"])
@pytest.mark.parametrize(
    "data", [b"", b"\xd0\xcf\x11\xe0 encrypted", b"PK\x05\x06" + bytes(18)], ids=["empty", "other", "zip"]
)
def test_what_is_no_office_file_is_refused(
    suffix: str, data: bytes, tmp_path: Path, reader: FileReader
) -> None:
    (tmp_path / f"a{suffix}").write_bytes(data)
    with pytest.raises(DocumentsError, match="cannot be read") as caught:
        reader.read(tmp_path / f"a{suffix}")
    assert caught.value.field == str(tmp_path / f"a{suffix}") and "--skip-unreadable" in str(
        caught.value.hint
    )


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx"])
def test_an_office_file_without_text_is_refused(suffix: str, tmp_path: Path, reader: FileReader) -> None:
    file = tmp_path / f"a{suffix}"
    {".docx": docx.Document, ".pptx": pptx.Presentation, ".xlsx": openpyxl.Workbook}[suffix]().save(file)
    with pytest.raises(NoTextError, match="holds no text"):
        reader.read(file)


def swollen(file: Path, part: str, before: bytes, after: bytes) -> None:
    """Replace a part of an archive by one of 600 MB, which takes some kilobytes in it."""
    data = io.BytesIO(file.read_bytes())
    with (
        zipfile.ZipFile(data) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for name in old.namelist():
            if name != part:
                new.writestr(name, old.read(name))
        with new.open(part, "w", force_zip64=True) as target:
            target.write(before)
            for _ in range(600):
                target.write(b"a" * 1_000_000)
            target.write(after)


def test_a_bomb_is_refused_and_the_next_file_read(tmp_path: Path) -> None:
    docx.Document().save(tmp_path / "bomb.docx")
    swollen(tmp_path / "bomb.docx", "word/document.xml",
            f'<w:document {nsdecls("w")}><w:body><w:p><w:r><w:t>'.encode(),
            b"</w:t></w:r></w:p></w:body></w:document>")  # fmt: skip
    assert (tmp_path / "bomb.docx").stat().st_size < 10_000_000
    document = docx.Document()
    document.add_paragraph("Bail is money.")
    document.save(tmp_path / "good.docx")
    with FileReader(Limits(memory=512 << 20)) as reader:
        with pytest.raises(
            DocumentsError, match=r"too much memory|process that reads the file ended"
        ) as caught:
            reader.read(tmp_path / "bomb.docx")
        assert (caught.value.field, caught.value.expected) == (str(tmp_path / "bomb.docx"), "at most 512 MiB")
        assert reader.read(tmp_path / "good.docx").sections[0].text == "Bail is money."
