"""PDF files: their text as it is printed, the pages without text, and hostile files."""

from __future__ import annotations

import os
import signal
import sys
import zlib
from pathlib import Path

import pytest

from rag_audit.errors import RagAuditError
from rag_audit.retrieval.readers import DocumentsError, FileReader, Limits, NoTextError, Omission, read_file
from tests.sources.pdfs import PICTURE, SCAN, SCANNED, document, line, pdf, stream, written

SENTENCE = "Dm-crypt facilitates automatic data encryption when each block is written."
LONG = "The tenant pays for heating from October to April, and the landlord pays for repairs."


def texts(tmp_path: Path, data: bytes) -> list[str]:
    (tmp_path / "a.pdf").write_bytes(data)
    return [section.text for section in read_file(tmp_path / "a.pdf").sections]


def omitted(tmp_path: Path, data: bytes) -> list[tuple[str, str]]:
    (tmp_path / "a.pdf").write_bytes(data)
    return [(o.place, o.reason) for o in read_file(tmp_path / "a.pdf").omitted]


def test_words_that_only_kerning_parts_have_spaces(tmp_path: Path) -> None:
    """TeX writes no space characters: it moves by a third of the font's size between words, and kerns inside them."""
    words = [
        "(" + word[:2] + ")-12(" + word[2:] + ")" if len(word) > 3 else f"({word})"
        for word in SENTENCE.split()
    ]
    shown = "BT /F1 6 Tf 10 100 Td [" + "-333".join(words) + "] TJ ET"
    assert texts(tmp_path, document(shown)) == [SENTENCE]


def test_justified_lines_of_placed_words_are_lines(tmp_path: Path) -> None:
    """Each word has a place of its own, with wide gaps, as XeTeX and justified text have it."""
    shown = "BT /F1 10 Tf\n"
    for y, row in ((150, ("The", "tenant", "pays", "for")), (138, ("heating", "in", "all", "winters."))):
        shown += "".join(f"1 0 0 1 {10 + 70 * n} {y} Tm ({word}) Tj\n" for n, word in enumerate(row))
    assert texts(tmp_path, document(shown + "ET")) == ["The tenant pays for\nheating in all winters."]


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [line(f"left line {n}", 10, 150 - 14 * n) for n in range(3)]
    right = [line(f"right line {n}", 160, 150 - 14 * n) for n in range(3)]
    expected = [f"{side} line {n}" for side in ("left", "right") for n in range(3)]
    assert texts(tmp_path, document("".join(left + right))) == ["\n".join(expected)]


def test_a_word_that_a_line_end_divides_is_whole(tmp_path: Path) -> None:
    shown = line("The agree-", 10, 150) + line("ment ends.", 10, 136)
    assert texts(tmp_path, document(shown)) == ["The agreement ends."]


def test_ligatures_are_letters(tmp_path: Path) -> None:
    """Fonts map the glyph of a ligature to U+FB01, in which no question is asked."""
    table = ("/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange"
             " 1 beginbfchar <41> <fb01> endbfchar 1 beginbfrange <61> <7a> <0061> endbfrange endcmap end")  # fmt: skip
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 5 0 R >>"
    data = document("BT /F2 12 Tf 10 100 Td (Aeld) Tj ET", more=[stream(table), font])
    assert texts(tmp_path, data.replace(b"/F1 3 0 R", b"/F1 3 0 R /F2 6 0 R")) == ["field"]


def test_a_file_of_another_producer_is_read(tmp_path: Path) -> None:
    """matplotlib's own PDF writer embeds the font and places each run of glyphs."""
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    for kind in (3, 42):
        figure = Figure(figsize=(8, 2))
        figure.text(0.05, 0.6, SENTENCE)
        figure.text(0.05, 0.3, "AVAST: To Warsaw, Yvonne. Äpfel für 5 €.")
        with mpl.rc_context({"pdf.fonttype": kind}):
            FigureCanvasPdf(figure).print_pdf(
                tmp_path / "a.pdf", metadata={"Title": "A figure", "CreationDate": None}
            )
        [section] = read_file(tmp_path / "a.pdf").sections
        assert section.text == f"{SENTENCE}\nAVAST: To Warsaw, Yvonne. Äpfel für 5 €."
        assert section.fields == {"title": "A figure", "page": 1}


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    data = document(line(LONG), SCAN, line(LONG), "", more=[PICTURE], resources=SCANNED)
    assert omitted(tmp_path, data) == [
        ("page 2", "has no text (a scanned page?)"),
        ("page 4", "has no text (a scanned page?)"),
    ]


def test_a_scanned_page_with_a_stamp_is_named_and_its_stamp_kept(tmp_path: Path) -> None:
    data = document(
        line(LONG),
        SCAN + line("Page 2"),
        line("Page 3") + line(LONG, y=80),
        more=[PICTURE],
        resources=SCANNED,
    )
    assert omitted(tmp_path, data) == [("page 2", "is a picture with almost no text (a scanned page?)")]
    assert texts(tmp_path, data)[1] == "Page 2"


def test_an_almost_empty_text_layer_is_named(tmp_path: Path) -> None:
    numbers = pdf(*(f"Page {n}" for n in range(1, 6)))
    assert omitted(tmp_path, numbers) == [
        ("the text layer", "is almost empty: 25 letters and digits on 5 pages (scanned pages?)")
    ]
    assert omitted(tmp_path, pdf("Bail")) == omitted(tmp_path, pdf(LONG, LONG)) == []


def test_characters_without_a_meaning_are_named(tmp_path: Path) -> None:
    data = document(line(LONG + r"\001\002\003\004\005\006\001\002\003\004\005\006"))
    [(place, reason)] = omitted(tmp_path, data)
    assert place == "page 1" and "characters that its fonts give no meaning" in reason
    assert all(ch.isprintable() or ch in "\n\ufffd" for ch in texts(tmp_path, data)[0])


def test_a_page_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(document(line(LONG), line(LONG), count=4))
    result = read_file(tmp_path / "a.pdf")
    assert [s.fields["page"] for s in result.sections] == [1, 2]
    assert set(result.omitted) <= {
        Omission("cannot be read: it is damaged or missing", page=n) for n in (3, 4)
    }


def bomb(size: int) -> bytes:
    """A page whose content stream becomes `size` bytes, from some thousand."""
    content = zlib.compress(zlib.compress(b" " * size, 1), 9)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R >>",
               stream(content, "/Filter [/FlateDecode /FlateDecode]")]  # fmt: skip
    return written(objects)


def doubling(levels: int) -> bytes:
    """A page whose form calls another one twenty times, which calls another one twenty times, and so on."""
    forms = [
        stream(
            "/N Do " * 20,
            f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /N {6 + n} 0 R >> >>",
        )
        for n in range(levels)
    ]
    last = stream(
        line("x"), "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> >>"
    )
    return document("/N Do", resources="/XObject << /N 5 0 R >>", more=[*forms, last])


def loop() -> bytes:
    """A page tree that contains itself."""
    return written(
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count 9 >>"]
    )


HOSTILE = {
    "nested arrays": lambda: written(["<< /Type /Catalog /Pages 2 0 R >>", b"[" * 300_000]),
    "nested dictionaries": lambda: written([b"<< /A " * 200_000 + b">>" * 200_000]),
    "a page tree in a circle": loop,
    "a thousand million pages": lambda: document(line("x"), count=1_000_000_000),
    "a negative number of pages": lambda: document("", count=-1),
    "a large content stream": lambda: bomb(300 << 20),
    "forms that double": lambda: doubling(8),
    "an xref beyond the file": lambda: pdf("x").replace(b"startxref\n", b"startxref\n99999999"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_by_name_and_the_next_one_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(HOSTILE[kind]())
    (tmp_path / "good.pdf").write_bytes(pdf("Bail is money."))
    with FileReader(Limits(seconds=2, memory=1 << 30)) as reader:
        try:
            result = reader.read(tmp_path / "bad.pdf")
        except RagAuditError as exc:
            assert isinstance(exc, DocumentsError) and exc.field == str(tmp_path / "bad.pdf")
        else:  # what stands in the file may be read
            assert [section.text for section in result.sections] == ["x"]
        assert [s.text for s in reader.read(tmp_path / "good.pdf").sections] == ["Bail is money."]


def test_too_many_pages_are_refused_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypdfium2")
    from rag_audit.retrieval.parsing import pdf as parser

    monkeypatch.setattr(parser, "MAX_PAGES", 2)
    (tmp_path / "a.pdf").write_bytes(pdf("a", "b", "c"))
    with (
        open(tmp_path / "a.pdf", "rb") as file,
        pytest.raises(DocumentsError, match="too many pages") as caught,
    ):
        parser.read(file)
    assert (caught.value.expected, caught.value.actual) == ("at most 2", 3)


def test_a_file_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    """The stopped child never answers."""
    (tmp_path / "a.pdf").write_bytes(pdf("a"))
    with FileReader(Limits(wait=600)) as reader:
        reader.read(tmp_path / "a.pdf")
        assert reader._child is not None
        first = reader._child
        os.kill(first.pid, signal.SIGSTOP)
        reader._limits = Limits(wait=0.1)
        with pytest.raises(DocumentsError, match="takes too long") as caught:
            reader.read(tmp_path / "a.pdf")
        assert (caught.value.field, caught.value.expected) == (str(tmp_path / "a.pdf"), "at most 0.1 seconds")
        assert first.returncode == -signal.SIGKILL
        reader._limits = Limits()
        assert reader.read(tmp_path / "a.pdf").sections[0].text == "a"


def test_a_file_beyond_its_processor_time_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(doubling(8))  # 20^8 forms
    with FileReader(Limits(seconds=1)) as reader, pytest.raises(DocumentsError) as caught:
        reader.read(tmp_path / "a.pdf")
    assert caught.value.message == "reading the file takes too long"
    assert caught.value.expected == "at most 1 seconds of processor time"


def test_a_crash_of_the_parser_is_an_error_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("a"))
    with FileReader() as reader:
        reader.read(tmp_path / "a.pdf")
        assert reader._child is not None
        os.kill(reader._child.pid, signal.SIGSEGV)
        with pytest.raises(DocumentsError, match="process that reads the file ended") as caught:
            reader.read(tmp_path / "a.pdf")
        assert (caught.value.field, caught.value.actual) == (str(tmp_path / "a.pdf"), "SIGSEGV")
        assert reader.read(tmp_path / "a.pdf").sections[0].text == "a"


@pytest.mark.skipif(sys.platform != "linux", reason="reads another process's limits under /proc")
def test_the_process_that_parses_has_limits_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "a.pdf").write_bytes(pdf("a"))
    with open(tmp_path / "secret"), FileReader(Limits(memory=1 << 30)) as reader:
        reader.read(tmp_path / "a.pdf")
        assert reader._child is not None
        of = Path("/proc", str(reader._child.pid))
        assert b"hunter2" not in (of / "environ").read_bytes()
        opened = {os.readlink(entry) for entry in (of / "fd").iterdir()}
        assert not any(str(tmp_path) in name for name in opened), opened
        limits = {row[:25].strip(): row[25:].split()[0] for row in (of / "limits").read_text().splitlines()}
    assert limits["Max address space"] == str(1 << 30)
    assert limits["Max file size"] == limits["Max core file size"] == "0"
    assert limits["Max cpu time"] != "unlimited"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("a"))
    with FileReader() as reader:
        reader.read(tmp_path / "a.pdf")
        child = reader._child
        assert child is not None and child.poll() is None
    assert child.returncode is not None
    with pytest.raises(NoTextError), FileReader() as reader:
        (tmp_path / "a.pdf").write_bytes(pdf(""))
        reader.read(tmp_path / "a.pdf")
