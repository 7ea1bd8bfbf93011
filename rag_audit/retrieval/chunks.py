"""Cutting a text into passages that an embedder reads whole: between paragraphs, lines, sentences, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_audit._internal.errors import SetupError

MAX_CHUNK = 800
"""Default maximum of characters in a chunk, well below the 512 tokens at which documents are truncated."""
SHORTEST_CHUNK, LONGEST_CHUNK = 64, 65_536
CUTS = (
    re.compile(r"\r?\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)
"""Patterns between which a text is cut: paragraphs, lines, sentences, words."""
_LINE = re.compile(
    r"^(?:(?P<level>#{1,6})[ \t]+(?P<name>[^\n]*)$| {0,3}(?P<fence>`{3,}|~{3,}))",
    re.MULTILINE,
)
"""A heading of Markdown, or the edge of a block of code (CommonMark, "ATX headings", "Fenced code blocks"). Texts of
HTML are given such headings as well."""
_WORD = re.compile(r"(?<=\s)\S")


@dataclass(frozen=True)
class Cutting:
    """How texts are cut.

    :param size: maximum characters of a chunk
    :param overlap: maximum characters at a chunk's begin that repeat the end of the previous chunk; whole words
    :param headings: whether a chunk also ends before each heading, and names the headings above it
    :raises SetupError: the sizes are out of range
    """

    size: int = MAX_CHUNK
    overlap: int = 0
    headings: bool = False

    def __post_init__(self) -> None:
        if not SHORTEST_CHUNK <= self.size <= LONGEST_CHUNK:
            raise SetupError("a chunk cannot have this size", field="chunk",
                             expected=f"{SHORTEST_CHUNK} .. {LONGEST_CHUNK} characters", actual=self.size)  # fmt: skip
        if not 0 <= self.overlap <= self.size // 2:
            raise SetupError("chunks cannot overlap so far", field="overlap",
                             expected=f"0 .. {self.size // 2}, half a chunk", actual=self.overlap)  # fmt: skip


@dataclass(frozen=True)
class Chunk:
    """A part of a text, line for line.

    :param headings: the headings above it, the outermost first
    """

    text: str
    headings: tuple[str, ...] = ()


def chunks(text: str, cutting: Cutting) -> Iterator[Chunk]:
    """Cut a text. Neighbouring paragraphs stay in one chunk up to the size; a longer paragraph is cut between lines, a
    longer line between sentences, a longer sentence between words.

    The function drops parts without a letter or digit at the edges of a chunk.
    """
    if not cutting.headings:
        yield from (Chunk(part) for part in _cut(text, cutting))
        return
    for section, headings in _sections(text):
        yield from (Chunk(part, headings) for part in _cut(section, cutting))


def _sections(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a text, each of which begins with a heading, with the headings above each part."""
    above: dict[int, str] = {}
    start, fence = 0, ""
    for match in _LINE.finditer(text):
        if match["fence"]:  # the lines between two of them are code
            fence = "" if fence and match["fence"].startswith(fence) else fence or match["fence"]
        if match["fence"] or fence:
            continue
        yield text[start : match.start()], tuple(above.values())
        start, level, name = match.start(), len(match["level"]), match["name"].rstrip(" \t")
        if (marked := name.rstrip("#")) != name and (not marked or marked[-1] in " \t"):
            name = marked.rstrip(" \t")  # a heading may end with such marks as well
        above = {depth: above[depth] for depth in above if depth < level} | {level: name}
    yield text[start:], tuple(above.values())


def _cut(text: str, cutting: Cutting) -> Iterator[str]:
    start = end = 0
    for first, last in _parts(text, 0, len(text), CUTS, cutting.size - cutting.overlap):
        if not any(map(str.isalnum, text[first:last])):
            continue
        if end and last - start > cutting.size:
            yield text[start:end]
            start = _back(text, start, end, min(cutting.overlap, cutting.size - (last - first)), first)
        elif not end:
            start = first
        end = last
    if end:
        yield text[start:end]


def _back(text: str, start: int, end: int, overlap: int, following: int) -> int:
    """The start of a chunk that repeats at most the given number of characters before `end`, from the start of a
    word."""
    result = _WORD.search(text, max(start + 1, following - overlap), end) if overlap else None
    return following if result is None else result.start()


def _parts(
    text: str, start: int, end: int, cuts: Sequence[re.Pattern[str]], size: int
) -> Iterator[tuple[int, int]]:
    """Begin and end of each part of text[start:end], without the space around it; no part exceeds `size`."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    if not cuts:
        yield from ((at, min(at + size, end)) for at in range(start, end, size))
        return
    if end - start <= size and cuts is not CUTS:
        if start < end:
            yield start, end
        return
    # The function always cuts a whole text into paragraphs; `_cut` decides which of them to join.
    edges = [(m.start(), m.end()) for m in cuts[0].finditer(text, start, end)]
    for first, last in zip([start, *(e for _, e in edges)], [*(s for s, _ in edges), end], strict=True):
        yield from _parts(text, first, last, cuts[1:], size)
