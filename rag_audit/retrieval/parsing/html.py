"""The text of an HTML page as a browser shows it (HTML Standard, "Rendering", and "The innerText getter")."""

from __future__ import annotations

import re
from typing import BinaryIO

import webencodings
from selectolax.lexbor import LexborHTMLParser, LexborNode

from rag_audit._internal.characters import MARKS, refuse_nul
from rag_audit.retrieval.parsing.results import NoTextError, Omission, ReadFile, Section, has_letters, titled


def _names(*words: str) -> frozenset[str]:
    return frozenset(name for some in words for name in some.split())


_PARAGRAPHS = _names(
    "address article aside blockquote body center details dialog div dl fieldset figcaption figure footer form h1 h2",
    "h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section summary table ul",
)
"""A blank line precedes and follows these elements."""
_LINES = _names("caption dd dt legend li optgroup option tr")
"""Elements on lines of their own."""
_CELLS = _names("td th")
_HEADINGS = _names("h1 h2 h3 h4 h5 h6")
_NOT_SHOWN = _names(
    # "Hidden elements" of the standard, with scripting on,
    "area base basefont datalist head link meta noembed noframes noscript param rp script style template title",
    # elements with content for browsers that do not support the element,
    "audio canvas iframe object video",
    # and the elements that SVG and MathML do not draw.
    "annotation annotation-xml desc metadata",
)
_HIDDEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\s*(?:!\s*important\s*)?(?:;|$)",
    re.I,
)
_CHARSET = re.compile(r"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", re.I)
_SCRIPTS = frozenset(("", "module", "text/javascript", "application/javascript"))
SPARSE_PAGE = 100
"""If a page has scripts and fewer letters and digits than this, the reader assumes that scripts make its text."""


def read(file: BinaryIO) -> ReadFile:
    """The text of a page: blocks as paragraphs, rows of tables as lines with tabs between the cells, headings with
    the marks of Markdown.

    :raises NoTextError: scripts make all of the page's text
    """
    return read_page(*decode(file.read()))


def read_page(page: str, encoding: str = "", broken: int = 0) -> ReadFile:
    """The text of a decoded page.

    :param encoding: the encoding that the page was decoded from, and `broken`, how many of its characters were not
        valid
    """
    refuse_nul(page, source="page")
    parsed = LexborHTMLParser(page, scripting=True)
    text = _shown(parsed)
    titles = (t.text() for t in parsed.css("title") if t.parent is None or t.parent.tag != "svg")
    omitted: list[Omission] = []
    if broken:
        omitted.append(
            Omission(f"are not valid {encoding} and were replaced by U+FFFD", part=f"{broken} characters")
        )
    if sum(map(str.isalnum, text)) < SPARSE_PAGE and any(map(_runs, parsed.css("script"))):
        if not has_letters(text):
            raise NoTextError("the page holds no text: scripts make it", expected="text in the page itself",
                              hint="save the page from a browser after its scripts ran, or leave it out:"
                              " --skip-unreadable")  # fmt: skip
        omitted.append(
            Omission("is not read, and the page has little other text", part="what its scripts show")
        )
    return ReadFile((Section(text, titled(next(titles, None))),), tuple(omitted))


def _runs(script: LexborNode) -> bool:
    return (script.attributes.get("type") or "").strip().lower() in _SCRIPTS


def decode(data: bytes) -> tuple[str, str, int]:
    """Decode a page by the rules of the HTML Standard ("Determining the character encoding"): by its byte order mark,
    or by the encoding that it declares in a `meta` element; without either as UTF-8 if all of its bytes are valid
    UTF-8, and otherwise as windows-1252.

    :return: the text, the encoding's name, and how many characters were not valid and are U+FFFD
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return decoded(data[len(mark) :], name.replace("16-", "16"))
    declared = _declared(data)
    if declared is None:
        try:
            return data.decode("utf-8"), "utf-8", 0
        except UnicodeDecodeError:
            declared = "windows-1252"
    return decoded(data, declared)


def decoded(data: bytes, name: str) -> tuple[str, str, int]:
    """Decode by an encoding of the Encoding Standard, with one of its labels as the name, as `decode` does."""
    result = webencodings.lookup(name)
    assert result is not None
    text = str(result.codec_info.decode(data, "replace")[0])
    try:
        result.codec_info.decode(data, "strict")
    except UnicodeError:
        return text, result.name, max(1, text.count("\ufffd"))
    return text, result.name, 0


def _declared(data: bytes) -> str | None:
    """The encoding that the first `meta` element with a known one declares. A declaration is ASCII, so the page is
    parsed for it as windows-1252. A declaration of UTF-16 means UTF-8, as in the standard."""
    if b"charset" not in data.lower():
        return None
    for meta in LexborHTMLParser(data.decode("cp1252", "replace").replace("\0", " "), scripting=True).css(
        "meta"
    ):
        attributes = meta.attributes
        label = attributes.get("charset")
        if label is None and (attributes.get("http-equiv") or "").strip().lower() == "content-type":
            match = _CHARSET.search(attributes.get("content") or "")
            label = next(filter(None, match.groups()), None) if match else None
        if label and (encoding := webencodings.lookup(label)) is not None:
            if encoding.name.startswith("utf-16"):
                return "utf-8"
            return "windows-1252" if encoding.name == "x-user-defined" else str(encoding.name)
    return None


class _Flow:
    """Text that is laid out: runs of white space become one space, and blocks begin on lines of their own."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._breaks = 0  # line breaks before the next text
        self._space = False  # whether a space does
        self._cells = 0  # cells on this line

    def _begin(self) -> None:
        if self._parts and self._breaks:
            self._parts.append("\n" * self._breaks)
        self._breaks = 0

    def words(self, text: str) -> None:
        """Add text of a paragraph."""
        words = text.split()
        if not words:
            self._space = self._space or bool(text)
            return
        spaced = (self._space or text[0].isspace()) and not self._breaks and self._parts
        self._begin()
        self._parts.append((" " if spaced else "") + " ".join(words))
        self._space = text[-1].isspace()

    def lines(self, text: str) -> None:
        """Add text with its white space unchanged."""
        if text:
            self._begin()
            self._parts.append(text)
            self._space = False

    def cell(self, text: str) -> None:
        """Add a cell of a table's row."""
        self._begin()
        self._parts.append("\t" + text if self._cells else text)
        self._cells += 1
        self._space = False

    def end(self, breaks: int) -> None:
        """End the line; the next text follows after at least this number of line breaks."""
        while self._parts:  # `pre` may end with line breaks
            if last := self._parts.pop().rstrip("\n"):
                self._parts.append(last)
                break
        self._breaks = max(self._breaks, breaks)
        self._space = False
        self._cells = 0

    def broken(self) -> None:
        """Add another line break, like `br`."""
        self.end(min(self._breaks + 1, 2))

    def text(self) -> str:
        """All of it, without white space at the ends of lines."""
        return re.sub(r"[^\S\n]+(?=\n|\Z)", "", "".join(self._parts)).strip("\n")


def _shown(page: LexborHTMLParser) -> str:
    """The text that a browser shows, in one pass: elements may be nested, thousands deep."""
    flows = [_Flow()]
    above: list[tuple[LexborNode, str, bool]] = []  # open elements, and whether each has a flow of its own
    preformatted = headings = 0
    node = page.body or page.root
    while node is not None or above:
        if node is None:
            closed, tag, own = above.pop()
            preformatted -= tag in ("pre", "textarea")
            headings -= own and tag in _HEADINGS
            if own:
                _close(tag, flows.pop().text(), flows[-1])
            elif breaks := _breaks(tag):
                flows[-1].end(breaks)
            elif tag in _CELLS:  # inside a heading
                flows[-1].words(" ")
            node = closed.next if above else None
            continue
        tag = node.tag or ""
        if node.is_text_node:
            text = (node.text_content or "").replace("\xad", "")  # soft hyphens are not shown
            (flows[-1].lines if preformatted else flows[-1].words)(text)
        elif node.is_element_node and tag == "br":
            flows[-1].broken()
        elif node.is_element_node and not _hidden(node, tag):
            own = not headings and (tag in _CELLS or tag in _HEADINGS)
            above.append((node, tag, own))
            if breaks := _breaks(tag):
                flows[-1].end(breaks)
            if own:
                flows.append(_Flow())
            preformatted += tag in ("pre", "textarea")
            headings += own and tag in _HEADINGS
            node = node.child
            continue
        node = node.next
    return flows[0].text()


def _close(tag: str, text: str, flow: _Flow) -> None:
    """Add the text of a heading or a cell to the text around it."""
    if tag in _HEADINGS:
        if name := " ".join(text.split()):
            flow.end(2)
            flow.lines(f"{'#' * int(tag[1])} {name}")
        flow.end(2)
    elif "\n\n" in text:  # a table that lays out a page
        flow.end(2)
        flow.lines(text)
        flow.end(2)
    else:
        flow.cell(" ".join(text.split()))


def _breaks(tag: str) -> int:
    return 2 if tag in _PARAGRAPHS else 1 if tag in _LINES else 0


def _hidden(node: LexborNode, tag: str) -> bool:
    if tag in _NOT_SHOWN:
        return True
    attributes = node.attributes
    return (
        "hidden" in attributes
        or "popover" in attributes
        or (tag == "dialog" and "open" not in attributes)
        or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))
    )
