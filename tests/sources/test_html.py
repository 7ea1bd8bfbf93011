"""HTML: what a browser shows, in the encoding that the HTML Standard determines, independent of other packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rag_audit.retrieval.parsing import html
from rag_audit.retrieval.readers import FileReader, NoTextError, ReadFile, read_file

FILLED = "<p>" + "The tenant pays for the heating. " * 5


@pytest.fixture(scope="module")
def reader() -> FileReader:
    return FileReader()


@pytest.fixture(scope="module", autouse=True)
def _closed(reader: FileReader) -> object:
    yield
    reader.close()


def shown(reader: FileReader, tmp_path: Path, page: str | bytes) -> ReadFile:
    (tmp_path / "a.html").write_bytes(page.encode() if isinstance(page, str) else page)
    return reader.read(tmp_path / "a.html")


def text(reader: FileReader, tmp_path: Path, page: str | bytes) -> str:
    [section] = shown(reader, tmp_path, page).sections
    return section.text


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Rent</title><h1>Rent</h1><p>It is due.<p>Pay"
        " it.",
        "<!doctype html><html><head><title>Rent</title><body><h1>Rent</h1><p>It is due.</p><p>Pay it.</p></html>",
        "<title>Rent</title><h1>Rent</h1><p>It is due.<p>Pay it.",
        "<html><head><title>Rent</title></head><h1>Rent</h1><p>It is due.</p>Pay it.</body></html>",
        "<html><body><title>Rent</title><h1>Rent<p>It is due.<p>Pay it.".replace("Rent<p>", "Rent</h1><p>"),
    ],
)
def test_tags_that_may_be_omitted_may_be_omitted(page: str, tmp_path: Path, reader: FileReader) -> None:
    [section] = shown(reader, tmp_path, page).sections
    assert section.text == "# Rent\n\nIt is due.\n\nPay it."
    assert section.fields == {"title": "Rent"}


HIDDEN = {
    "the attribute hidden": "<p hidden>no</p>",
    "hidden until found": "<p hidden=until-found>no</p>",
    "hidden below": "<div hidden><p>no<span>no</span></p></div>",
    "display none": '<p style="color: red; display:none">no</p>',
    "important": '<p style="DISPLAY: NONE !important;">no</p>',
    "visibility": '<span style="visibility : hidden">no</span>',
    "template": "<template><p>no</p></template>",
    "noscript": "<noscript><p>no</p></noscript>",
    "script": "<script type=text/plain>no</script>",
    "style": "<style>p {content: 'no'}</style>",
    "comment": "<!-- no -->",
    "dialog": "<dialog>no</dialog>",
    "popover": "<div popover>no</div>",
    "datalist": "<datalist><option>no</datalist>",
    "iframe": "<iframe src=a.html>no</iframe>",
    "video": "<video src=a.mp4>no</video>",
    "object": "<object data=a.swf>no</object>",
    "a ruby parenthesis": "<ruby><rp>no</rp></ruby>",
    "a title of a drawing": "<svg><title>no</title><desc>no</desc></svg>",
    "a soft hyphen": "\xad",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_a_browser_hides_is_left_out(kind: str, tmp_path: Path, reader: FileReader) -> None:
    result = text(reader, tmp_path, f"<p>before</p>{HIDDEN[kind]}<p>after</p>")
    assert [word for word in result.split() if word != "\xad"] == ["before", "after"] and "\xad" not in result


@pytest.mark.parametrize(
    "part",
    [
        '<p style="display: block">yes</p>',
        '<p style="background: url(display:none.png)">yes</p>',
        "<p aria-hidden=true>yes</p>",
        "<dialog open>yes</dialog>",
        "<details><summary></summary>yes</details>",
        "<svg><text>yes</text></svg>",
        "<textarea>yes</textarea>",
        "<select><option>yes</select>",
    ],
)
def test_what_a_browser_shows_is_read(part: str, tmp_path: Path, reader: FileReader) -> None:
    assert text(reader, tmp_path, f"<p>before</p>{part}<p>after</p>").split() == ["before", "yes", "after"]


def test_rows_are_lines_with_tabs_between_the_cells(tmp_path: Path, reader: FileReader) -> None:
    table = """<table><caption>Rents</caption><thead><tr><th>Flat<th>Rent, cold</thead>
    <tr><td>1</td><td><p>500 €</p></td></tr>
    <tr><td>2<td>two<br>lines<td hidden>no
    </table>after"""
    expected = "Rents\nFlat\tRent, cold\n1\t500 €\n2\ttwo lines\n\nafter"
    assert text(reader, tmp_path, table) == expected


def test_a_table_that_lays_out_a_page_stands_as_paragraphs(tmp_path: Path, reader: FileReader) -> None:
    page = "<table><tr><td>Menu<td><h1>Rent</h1><p>It is due.<p>Pay it.</table>"
    assert text(reader, tmp_path, page) == "Menu\n\n# Rent\n\nIt is due.\n\nPay it."


def test_white_space_stays_where_it_is_preformatted(tmp_path: Path, reader: FileReader) -> None:
    page = "<p> a \n b </p><pre>\nif x:\n    y\n\n\n    z\n</pre><p>c<br>d <b> e</b>f"
    assert text(reader, tmp_path, page) == "a b\n\nif x:\n    y\n\n\n    z\n\nc\nd ef"


def test_cells_in_a_heading_and_lists_in_cells(tmp_path: Path, reader: FileReader) -> None:
    page = "<h2><table><tr><td>A<td>B</table></h2><table><tr><td><ul><li>one<li>two</ul><td>x</table>"
    assert text(reader, tmp_path, page) == "## A B\n\none two\tx"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("<p>Größe".encode("cp1252"), "Größe"),
        ("<p>The tenant’s deposit – £50 or €60".encode("cp1252"), "The tenant’s deposit – £50 or €60"),
        ("<p>Página política".encode("cp1252"), "Página política"),
        ("<p>Größe".encode(), "Größe"),
        ("<meta charset=iso-8859-1><p>5 €".encode("cp1252"), "5 €"),
        ('<meta http-equiv=Content-Type content="text/html; charset=koi8-r"><p>дом'.encode("koi8-r"), "дом"),
        ("<meta charset=Shift_JIS><p>家賃".encode("shift_jis"), "家賃"),
        ("<meta charset=gb2312><p>租金".encode("gb18030"), "租金"),
        ("<meta charset=windows-1251><p>дом".encode("cp1251"), "дом"),
        ("<meta charset=utf-16><p>Größe".encode(), "Größe"),
        ("<meta charset=no-such-thing><p>Größe".encode("cp1252"), "Größe"),
        ("<meta charset=koi8-r><p>Größe".encode("utf-8-sig"), "Größe"),
        (b"<!-- <meta charset=koi8-r> --><p>" + "Größe".encode("cp1252"), "Größe"),
        (b"<!--" + b" " * 5000 + b"--><meta charset=koi8-r><p>" + "дом".encode("koi8-r"), "дом"),
    ],
)
def test_the_encoding_is_the_standard_s(
    data: bytes, expected: str, tmp_path: Path, reader: FileReader
) -> None:
    result = shown(reader, tmp_path, data)
    assert result.sections[0].text == expected and result.omitted == ()


def test_no_other_package_changes_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that guess encodings come with others that have nothing to do with documents."""

    class Guessing:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} was asked for")

    for name in ("charset_normalizer", "chardet", "cchardet"):
        monkeypatch.setitem(sys.modules, name, Guessing())
    assert html.decode("<p>Größe".encode("cp1252"))[:2] == ("<p>Größe", "windows-1252")
    [section] = html.read_page(html.decode("<p>Größe".encode("cp1252"))[0]).sections
    assert section.text == "Größe"


def test_bytes_that_are_not_valid_are_named(tmp_path: Path, reader: FileReader) -> None:
    result = shown(reader, tmp_path, b"<meta charset=utf-8>" + FILLED.encode() + b"Gr\xf6\xdfe")
    assert "Gr\ufffd\ufffde" in result.sections[0].text
    assert [(o.place, o.reason) for o in result.omitted] == [
        ("2 characters", "are not valid utf-8 and were replaced by U+FFFD")
    ]


SCRIPT = "<script src=app.js></script>"


@pytest.mark.parametrize(
    "page",
    [
        f"<!doctype html><html><head><title>App</title></head><body><div id=root></div>{SCRIPT}</body></html>",
        f"<noscript>Please enable JavaScript.</noscript>{SCRIPT}",
        "<script type=module>show()</script><p>...</p>",
    ],
)
def test_a_page_that_scripts_make_is_refused(page: str, tmp_path: Path) -> None:
    (tmp_path / "app.html").write_text(page)
    with pytest.raises(NoTextError, match="scripts make it") as caught:
        read_file(tmp_path / "app.html")
    assert caught.value.field == str(tmp_path / "app.html") and "browser" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("page", "named"),
    [
        (f"<p>Loading</p>{SCRIPT}", True),
        (f"{FILLED}{SCRIPT}", False),
        ('<p>Short.</p><script type="application/ld+json">{}</script>', False),
        ("<p>Short.</p>", False),
    ],
)
def test_a_page_with_scripts_and_little_text_is_named(
    page: str, named: bool, tmp_path: Path, reader: FileReader
) -> None:
    omitted = [o.place for o in shown(reader, tmp_path, page).omitted]
    assert omitted == (["what its scripts show"] if named else [])


def test_deep_pages_are_read(tmp_path: Path, reader: FileReader) -> None:
    page = "<b><table><tr><td>" * 300 + "deep" + "<div>" * 3000 + "deeper"
    assert text(reader, tmp_path, page).split() == ["deep", "deeper"]
