"""Folders of HTML, PDF and Markdown: what becomes a document, and what is named as unreadable."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, BinaryIO

import pytest

from rag_audit.errors import SetupError
from rag_audit.retrieval.chunks import Chunk, Cutting, chunks
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.readers import (
    SUFFIXES,
    UNSUPPORTED,
    DocumentsError,
    FileReader,
    NoTextError,
    read_file,
)
from rag_audit.retrieval.texts import load_directory
from tests.sources.pdfs import pdf

LONG = "Bail is money that a defendant pays, and a bond is a promise to pay it when the court asks for it at last."
PAGE = """<!doctype html><html><head><title> Bail &amp;
 bonds </title><style>p {color: red}</style></head><body><script>var a = "no text";</script>
<!-- nor this --><h1>Bail</h1><p>Bail is   <b>money</b>
that is paid.<br>It is returned.</p><ul><li>One</li><li>Two</li></ul>
<h2>Bonds <i>of</i> others</h2><table><tr><td>a</td><td>b</td></tr></table><pre>x
  y</pre></body></html>"""


def encrypted() -> bytes:
    """A PDF file whose password nobody has: its standard encryption is of revision 3, with a user's entry of zeros."""
    entry = f"<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <{'00' * 32}> /U <{'00' * 32}> >>"
    result = pdf("a").replace(b"/Info 4 0 R", b"/Info 4 0 R /ID [<00><00>] /Encrypt " + entry.encode())
    assert entry.encode() in result
    return result


def test_html_is_read_as_a_browser_shows_it(tmp_path: Path) -> None:
    (tmp_path / "bail.html").write_text(PAGE)
    [result] = read_file(tmp_path / "bail.html").sections
    assert result.fields == {"title": "Bail & bonds"}
    expected = """\
        # Bail

        Bail is money that is paid.
        It is returned.

        One
        Two

        ## Bonds of others

        a\tb

        x
          y"""
    assert result.text == dedent(expected)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1><div>Bail</div></h1><p>money", "# Bail\n\nmoney"),
        ("<h1>Bail<h2>Bonds</h2></h1>of others", "# Bail\n\n## Bonds\n\nof others"),
        ("<head><noscript><style>no</style></noscript></head>text", "text"),
        ("<p>a" * 20_000, "\n\n".join("a" * 20_000)),  # nobody has to close a paragraph
    ],
    ids=["block in a heading", "heading in a heading", "style in noscript", "paragraphs that nobody closes"],
)
def test_html_is_read_however_its_elements_are_nested(tmp_path: Path, page: str, text: str) -> None:
    (tmp_path / "page.html").write_text(page)
    [result] = read_file(tmp_path / "page.html").sections
    assert result.text == text


def test_pages_of_a_pdf_name_their_number(tmp_path: Path) -> None:
    (tmp_path / "law").mkdir()
    (tmp_path / "law" / "book.PDF").write_bytes(pdf("Bail is money.", "", "A bond is a promise."))
    result = load_directory(tmp_path, text_alone=False)["law"]
    assert [(d.text, d.passage.fields) for d in result] == [
        ("Bail is money.", {"id": "law/book.PDF#1", "source": "law/book.PDF", "page": 1, "title": "A handbook"}),
        ("A bond is a promise.", {"id": "law/book.PDF#2", "source": "law/book.PDF", "page": 3, "title": "A handbook"}),
    ]  # fmt: skip


def test_pages_of_a_pdf_without_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf("", LONG, "", "..."))
    result = read_file(tmp_path / "book.pdf")
    assert [(s.text, s.fields["page"]) for s in result.sections] == [(LONG, 2)]
    assert [o.place for o in result.omitted] == ["page 1", "page 3", "page 4"]


def test_each_tenant_s_files_have_a_process_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that takes over the process that parses it cannot change the texts of another tenant."""
    parsed: dict[str, set[int]] = {}
    requested = FileReader._asked

    def spied(self: FileReader, handle: BinaryIO, suffix: str, file: Path) -> dict[str, Any]:
        reply = requested(self, handle, suffix, file)
        assert self._child is not None
        parsed.setdefault(file.parent.name, set()).add(self._child.pid)
        return reply

    monkeypatch.setattr(FileReader, "_asked", spied)
    for name in ("law/a.html", "law/b.html", "tax/a.html", "tax/b.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("<p>text")
    load_directory(tmp_path)
    assert [len(pids) for pids in parsed.values()] == [1, 1]
    assert not parsed["law"] & parsed["tax"]


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.rst", "a.html"])
@pytest.mark.parametrize("content", ["", " \n\n --- \n"])
def test_a_file_without_text_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(NoTextError, match="holds no text") as caught:
        read_file(tmp_path / name)
    assert caught.value.field == str(tmp_path / name)


@pytest.mark.parametrize("suffix", sorted(UNSUPPORTED))
def test_an_unsupported_format_is_named_with_its_remedy(tmp_path: Path, suffix: str) -> None:
    assert suffix not in SUFFIXES
    file = tmp_path / f"a{suffix.upper()}"
    file.write_text("text")
    with pytest.raises(DocumentsError, match="not supported") as caught:
        read_file(file)
    assert (caught.value.field, caught.value.actual) == (str(file), suffix)
    assert UNSUPPORTED[suffix] in str(caught.value.hint)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pdf("", ""), "holds no text"),
        (encrypted(), "cannot be read"),
        (pdf("some text")[:150], "cannot be read"),
        (b"", "cannot be read"),
        (b"not a PDF file at all", "cannot be read"),
    ],
    ids=["empty pages", "password", "cut", "empty", "no PDF"],
)
def test_what_cannot_be_read_is_named_and_left_out_only_if_asked(
    tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "bad.pdf").write_bytes(data)
    (tmp_path / "good.txt").write_text("Bail is money.")
    with pytest.raises(DocumentsError, match=message) as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "bad.pdf")
    inventory = Inventory()
    result = load_directory(tmp_path, skip_unreadable=True, inventory=inventory)["default"]
    assert [d.text for d in result] == ["Bail is money."]
    assert [entry.name for entry in inventory.omitted] == ["bad.pdf"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("# A ##  ", "A"),
        ("# A#", "A#"),
        ("# A #\tb #", "A #\tb"),
        ("#\tA \t#\t", "A"),
        ("# #", ""),
        ("# ##a", "##a"),
    ],
)
def test_a_heading_is_named_without_its_marks(line: str, name: str) -> None:
    assert [c.headings for c in chunks(f"{line}\nText.", Cutting(headings=True))] == [(name,)]


def test_spaces_inside_a_heading_are_passed_once() -> None:
    name = f"a{' ' * 200_000}b"  # it took half an hour to try each of them as the heading's end
    assert [c.headings for c in chunks(f"# {name}", Cutting(headings=True))] == [(name,)] * 2


def test_chunks_end_at_headings_and_name_them(tmp_path: Path) -> None:
    text = "Before.\n\n# A\n\nOne.\n\n## B ##\n\nTwo.\n\n```\n# no heading\n```\n\n# C\n\nThree.\n"
    assert list(chunks(text, Cutting(headings=True))) == [
        Chunk("Before."),
        Chunk("# A\n\nOne.", ("A",)),
        Chunk("## B ##\n\nTwo.\n\n```\n# no heading\n```", ("A", "B")),
        Chunk("# C\n\nThree.", ("C",)),
    ]
    (tmp_path / "a.md").write_text(text)
    result = load_directory(tmp_path, text_alone=False, cutting=Cutting(headings=True))["default"]
    assert [d.passage.fields.get("headings") for d in result] == [None, ["A"], ["A", "B"], ["C"]]


@pytest.mark.parametrize("size, overlap", [(64, 0), (64, 20), (200, 100), (800, 50)])
def test_chunks_overlap_by_whole_words_within_their_size(size: int, overlap: int) -> None:
    words = [f"word{n}" for n in range(600)]
    text = (
        " ".join(f"{w}." if n % 7 == 0 else w for n, w in enumerate(words))
        + "\n\n"
        + "".join(f"{n:05}" for n in range(3 * size // 5))
    )
    result = [c.text for c in chunks(text, Cutting(size, overlap))]
    assert max(map(len, result)) <= size
    place = end = 0
    for part in result:
        place = text.index(part, max(place, end - overlap))
        assert place >= end - overlap and (place == 0 or text[place - 1].isspace() or part[0].isdigit())
        assert not text[end:place].strip()  # nothing is lost between them
        end = place + len(part)
    assert end == len(text)
    repeated = sum(bool(set(a.split()) & set(b.split())) for a, b in pairwise(result))
    assert repeated > 2 if overlap else repeated == 0


@pytest.mark.parametrize("values", [{"size": 63}, {"size": 65_537}, {"overlap": 401}, {"overlap": -1}])
def test_sizes_out_of_range_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(SetupError):
        Cutting(**values)


def test_many_headings_are_cut_in_linear_time() -> None:
    """A quadratic loop would take minutes here."""
    text = "".join(f"# H{n}\n\nText {n}.\n\n```\ncode\n```\n\n" for n in range(30_000))
    assert sum(1 for _ in chunks(text, Cutting(headings=True))) == 30_000
