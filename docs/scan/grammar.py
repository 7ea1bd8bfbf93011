"""Write docs/scan/grammar.md: the entries of each run, in the order in which the reference verifier reads them.

    python docs/scan/grammar.py          write the page
    python docs/scan/grammar.py --check  compare; exit 1 if the page is not what the reference reads

The reference (`rag_audit.proofs.backends.reference`) reads a proof of neutral points and zeros of any length, at the
sizes of the published traces (`vectors/v1/scan`). The page folds the entries: rounds of a sumcheck, repetitions, and
repetitions with one more round each time. It separates numbers that differ between the sizes by `|`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from rag_audit.proofs.backends.reference import (
    attention,
    coalition,
    document_table,
    drawn,
    embed,
    encoder,
    encoder_embed,
    encoder_input,
    encoder_output,
    feed_forward,
    pooled_listing,
    query,
    row_names,
)
from rag_audit.proofs.backends.reference.block import MAX_ROW_BITS, Blocks, Dense, Matrix, Norm
from rag_audit.proofs.backends.reference.digits import Digit
from rag_audit.proofs.backends.reference.drawn import BernoulliBits, Noise, Seed
from rag_audit.proofs.backends.reference.extensions import log2
from rag_audit.proofs.backends.reference.group import Point, encode
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.reference.session import Expr, Session, row_bits
from rag_audit.proofs.backends.reference.transcript import CHALLENGE, CLAIM, Reader, Transcript
from rag_audit.relation.scores import ScoreWindow

PAGE = Path(__file__).with_suffix(".md")
KINDS = "SBIFPC"
TIMES = "  x #"
CLOSES = f"{CHALLENGE} 0 column claims"
"""The entry that begins a run's end."""
LONGEST = 40
"""Entries of the longest step that is looked for more than once."""

Token = tuple[Any, ...]
Read = Callable[[Reader], object]


@dataclass
class Heard:
    """The messages and claims of a run, in their order."""

    entries: list[str] = field(default_factory=list)
    """As the published traces have it: kind, length and label of a message, or the claim's name."""
    tokens: list[Token] = field(default_factory=list)
    sent: int = 0
    """Points and scalars of the proof."""

    def message(self, kind: int, label: str, data: bytes, _state: bytes) -> None:
        """An entry of the transcript, or a claim, which is not absorbed."""
        if kind == CLAIM:
            self.entries.append(label)
            self.tokens.append(("claim", label))
            return
        length = 0 if kind == CHALLENGE else len(data)
        self.entries.append(f"{kind} {length} {label}")
        self.tokens.append(("say", kind, length, label, False))


class Blank(Reader):
    """A proof of neutral points and zeros, as long as it is read."""

    def __init__(self, transcript: Transcript, heard: Heard) -> None:
        super().__init__(transcript, b"")
        self._heard = heard

    def _sent(self) -> None:
        if self._heard.tokens:
            self._heard.tokens[-1] = (*self._heard.tokens[-1][:-1], True)
        self._heard.sent += 1

    def point(self, label: str) -> Point:
        """A neutral point."""
        self.transcript.point(label, encode(None))
        self._sent()
        return None

    def scalar(self, label: str) -> int:
        """Zero."""
        self.transcript.scalar(label, 0)
        self._sent()
        return 0


@contextmanager
def _watched(heard: Heard) -> Iterator[None]:
    """While it lasts, sessions tell which messages are the rounds of a sumcheck."""
    own = Session.reduce_digits

    def reduce_digits(
        session: Session, label: str, weights: Sequence[Digit], claim: Expr | int, degree: int
    ) -> tuple[list[Digit], Expr]:
        start = len(heard.tokens)
        result = own(session, label, weights, claim, degree)
        points = max((-(-degree * (len(digit) - 1) // 16) for digit in weights), default=1)
        assert len(heard.tokens) == start + len(weights) * (points + 1)
        heard.tokens[start:] = [("rounds", label, points, len(weights))]
        return result

    Session.reduce_digits = reduce_digits  # type: ignore[method-assign]
    try:
        yield
    finally:
        Session.reduce_digits = own  # type: ignore[method-assign]


def hear(run: str, read: Read) -> Heard:
    """The messages and claims of a run of the reference with these public values."""
    heard = Heard()
    with _watched(heard):
        read(Blank(Transcript(run, heard.message), heard))
    return heard


def _step(token: Token) -> tuple[Token, int] | None:
    """Rounds without their number, and their number."""
    return (token[:3], token[3]) if token[0] == "rounds" else None


def _alike(first: Sequence[Token], other: Sequence[Token], times: int) -> bool:
    """Whether these are the first ones with rounds that have grown by `times`."""
    for a, b in zip(first, other, strict=True):
        known, result = _step(a), _step(b)
        if known is None or result is None:
            if a != b:
                return False
        elif known[0] != result[0] or result[1] != known[1] + times:
            return False
    return True


def _repeated(tokens: Sequence[Token], at: int, length: int, growing: bool) -> int:
    """How often the next tokens follow each other."""
    first, times = tokens[at : at + length], 1
    if growing and not any(token[0] == "rounds" for token in first):
        return 1
    # A step begins with messages, and ends with claims about them.
    if first[0][0] == "claim" and any(token[0] != "claim" for token in first):
        return 1
    while True:
        other = tokens[at + times * length : at + (times + 1) * length]
        if len(other) < length or not _alike(first, other, times * growing):
            return times
        times += 1


def fold(tokens: Sequence[Token]) -> list[Token]:
    """Repetitions as one token, those of short steps first."""
    out = list(tokens)
    for length in range(1, LONGEST + 1):
        at, folded = 0, list[Token]()
        while at < len(out):
            for kind in ("times", "for"):
                times = _repeated(out, at, length, kind == "for")
                if times > (1 if kind == "times" else 2):
                    folded.append((kind, times, tuple(out[at : at + length])))
                    at += times * length
                    break
            else:
                folded.append(out[at])
                at += 1
        out = folded
    return out


Line = tuple[str, tuple[int, ...]]
"""A line with `#` for each of its numbers."""


def lines(tokens: Sequence[Token], indent: str = "", grows: bool = False) -> Iterator[Line]:
    """A grammar's lines."""
    for token in tokens:
        match token:
            case ("say", kind, length, label, sent):
                size = f" {length}" if kind == 1 else ""
                yield f"{'>' if sent else ' '} {indent}{KINDS[kind]}{size} {label}{TIMES}", (1,)
            case ("claim", name):
                yield f"  {indent}= {name}{TIMES}", (1,)
            case ("rounds", label, points, count):
                times = f"k + {count}" if grows and count else "k" if grows else "#"
                result = " ".join(f"P {label}," for _ in range(points))
                yield f"> {indent}{times} x {{ {result} C {label} }}", () if grows else (count,)
            case ("times", count, (("say", *_) | ("claim", *_) as only,)):
                ((text, _),) = lines([only], indent)
                yield text, (count,)
            case ("times", count, inner):
                yield f"  {indent}# x", (count,)
                yield from lines(inner, indent + "    ")
            case ("for", count, inner):
                yield f"  {indent}for k = 0, .., #", (count - 1,)
                yield from lines(inner, indent + "    ", grows=True)


def merged(sizes: Sequence[Sequence[Line]]) -> Iterator[str]:
    """The lines of several sizes, with a number for each; a `-` where a size has no such line."""
    rows: list[tuple[str, list[tuple[int, ...] | None]]] = [(text, [numbers]) for text, numbers in sizes[0]]
    for done, more in enumerate(sizes[1:], 1):
        matcher = SequenceMatcher(
            None, [text for text, _ in rows], [text for text, _ in more], autojunk=False
        )
        joined: list[tuple[str, list[tuple[int, ...] | None]]] = []
        for what, a, b, c, d in matcher.get_opcodes():
            if what == "equal":
                joined += [
                    (text, [*known, new[1]]) for (text, known), new in zip(rows[a:b], more[c:d], strict=True)
                ]
                continue
            joined += [(text, [*known, None]) for text, known in rows[a:b]]
            joined += [(text, [*[None] * done, numbers]) for text, numbers in more[c:d]]
        rows = joined
    for text, numbers in rows:
        if text.endswith(TIMES) and set(numbers) == {(1,)}:
            text = text.removesuffix(TIMES)
        for k in range(text.count("#")):
            each = ["-" if part is None else f"{part[k]:,}" for part in numbers]
            text = text.replace("#", each[0] if len(set(each)) == 1 else " | ".join(each), 1)
        yield text


@dataclass(frozen=True)
class Run:
    """A kind of run at published sizes.

    :param page: where its steps are explained
    """

    name: str
    page: str
    sizes: dict[str, Read]
    """By what the trace calls them."""
    called: str = ""
    """The run's name in the trace, where it is another."""

    after: str = ""
    """A run that its trace begins with, up to where that one is closed."""

    file: str = "trace"
    """The published file with the run's trace."""

    title: str = ""
    """The heading of the run, where it is not the run's name."""

    @property
    def traced(self) -> str:
        """The run's name in the trace."""
        return self.called or self.name

    def entries(self, size: str) -> list[str]:
        """The entries of the published trace of this size."""
        before: list[str] = []
        if self.after:
            (first,) = (run for run in RUNS if run.name == self.after)
            (of,) = (read for other, read in first.sizes.items() if size.endswith(other))
            before = hear(first.name, of).entries
            before = before[: before.index(CLOSES)]
        return before + hear(self.name, self.sizes[size]).entries


def _index(capacity: int, dimension: int) -> Index:
    rows = (capacity - 1 >> row_bits(capacity)) + 1
    return Index(capacity, dimension, [None] * (dimension * rows), bytes(32))


def _rows(capacity: int, records: int = 1) -> list[Point]:
    return [None] * ((capacity - 1 >> row_bits(capacity, records)) + 1)


def _slots(count: int, capacity: int, gains: Sequence[int]) -> Read:
    slots = Noise(bytes(32), [Seed(0, 0, 0)] * count, capacity, gains)
    return lambda reader: drawn.read(slots, reader)


def _queries(
    sizes: tuple[int, int, int], gains: Sequence[int], count: int = 1, *, kept: bool = False
) -> Read:
    """A run about `count` records."""
    capacity, dimension, listed = sizes
    requested = query.Asked(
        bytes(32),
        _index(capacity, dimension),
        gains,
        ScoreWindow(10, 90, 1 << 24),
        listed,
        [_rows(capacity, count)] * count if gains else [],
        _rows(capacity) if kept else None,
        [(0, 0)] * count,
    )
    return lambda reader: query.read(requested, reader)


def _coins(capacity: int) -> Read:
    return lambda reader: drawn.read(BernoulliBits(bytes(32), Seed(0, 0, 0), capacity, 1), reader)


def _table(sizes: tuple[int, int, int, int], *, before: Sequence[str] = ()) -> Read:
    """:param before: the labels of the columns of the table before"""
    capacity, rows, most, fresh = sizes
    column: list[Point] = [None] * ((rows - 1 >> row_bits(capacity)) + 1)
    table = document_table.DocumentTable(
        bytes(32),
        Seed(0, 0, 0),
        capacity,
        rows,
        most,
        fresh,
        1,
        _rows(capacity),
        [column] * len(document_table.NAMES),
        [column] * len(before) if before else None,
    )
    return lambda reader: document_table.read(table, reader)


def _row_names(capacity: int, rows: int, opened: int) -> Read:
    column: list[Point] = [None] * ((rows - 1 >> row_bits(capacity)) + 1)
    names = row_names.RowNames(
        bytes(32),
        capacity,
        rows,
        _rows(capacity),
        [column] * len(document_table.NAMES),
        range(opened),
        [j // 2 for j in range(opened)],
    )
    return lambda reader: row_names.read(names, reader)


def _pooled(sizes: tuple[int, int, int, int, int], count: int = 1) -> Read:
    """A run about `count` records."""
    capacity, dimension, rows, most, listed = sizes
    of_rows: list[Point] = [None] * ((rows - 1 >> row_bits(capacity)) + 1)
    pooled = pooled_listing.PooledListing(
        bytes(32),
        _index(capacity, dimension),
        rows,
        most,
        1,
        1,
        ScoreWindow(0, 128, 64),
        listed,
        _rows(capacity),
        of_rows,
        of_rows,
        [pooled_listing.Requested(Seed(0, 0, 0), 0, 0, of_rows)] * count,
    )
    return lambda reader: pooled_listing.read(pooled, reader)


def _embedded(tokens: int, vocabulary: int, dimension: int, norm_factor: int) -> Read:
    embedded = embed.Embedded(0, _index(vocabulary + 1, dimension), tokens, norm_factor, 0, 0)
    return lambda reader: embed.read(embedded, reader)


def coalition_of(records: int, dimension: int) -> coalition.Coalition:
    """A window of so many records, each compared with all before it."""
    maximum = range(records)
    return coalition.Coalition(
        bytes(32),
        dimension,
        [0] * records,
        maximum,
        [account % 64 for account in maximum],
        [0] * records,
        (4, 5),
        (1, 1),
        min(max(1, log2(records)), 11),
    )


def _records(records: int, dimension: int) -> Read:
    return lambda reader: coalition.read(coalition_of(records, dimension), reader)


def _pairs(records: int, dimension: int) -> Read:
    requested, heard = coalition_of(records, dimension), Heard()
    _, committed = coalition.read(requested, Blank(Transcript(coalition.RUN, heard.message), heard))
    return lambda reader: coalition.read_pairs(requested, committed, bytes(32), 0, reader)


def _dense(inputs: int, outputs: int, row_bits: int) -> Dense:
    left, right = Blocks(inputs), Blocks(outputs)
    rows = ((1 << left.variables + right.variables) - 1 >> row_bits) + 1
    points: list[list[Point]] = [[None] * rows] * (left.count * right.count)
    return Dense(Matrix(inputs, outputs, points), [0] * outputs)


def _norm(width: int, scale: int) -> Norm:
    return Norm([0] * width, [0] * width, scale)


def _places(width: int, places: int, row_bits: int) -> list[list[Point]]:
    """The commitments to a matrix with a row for each place."""
    blocks = Blocks(width)
    return [[None] * (((places << blocks.variables) - 1 >> row_bits) + 1)] * blocks.count


def _of_feed_forward(width: int, inner: int, scales: tuple[int, ...], row_bits: int) -> feed_forward.Weights:
    dense = _dense(width, inner, row_bits), _dense(inner, width, row_bits)
    return feed_forward.Weights(row_bits, *scales, *dense, _norm(width, scales[0]), [0] * 4096)


def _feed_forward(width: int, inner: int, places: int, scales: tuple[int, int, int] = (6, 6, 6)) -> Read:
    weights, rows = _of_feed_forward(width, inner, scales, MAX_ROW_BITS), _places(width, places, MAX_ROW_BITS)
    block = feed_forward.FeedForward(0, weights, places, rows, rows)
    return lambda reader: feed_forward.read(block, reader)


def _of_attention(width: int, heads: int, scales: tuple[int, ...], row_bits: int) -> attention.Weights:
    layers, exp = [_dense(width, width, row_bits)] * 4, [4096, *[0] * 8191]
    return attention.Weights(row_bits, heads, *scales, *layers, _norm(width, scales[0]), exp)


def _attention(width: int, heads: int, places: int, scales: tuple[int, int, int, int] = (6, 7, 8, 8)) -> Read:
    weights, rows = _of_attention(width, heads, scales, MAX_ROW_BITS), _places(width, places, MAX_ROW_BITS)
    block = attention.Attention(0, weights, places, None, rows, rows)
    return lambda reader: attention.read(block, reader)


def _layer(
    sizes: tuple[int, int, int],
    scales: tuple[int, ...] = (6, 7, 8, 8, 6, 6),
    row_bits: int = MAX_ROW_BITS,
) -> encoder.Layer:
    """:param sizes: width, heads and inner components"""
    (width, heads, inner), (x, q, v, o, z, g) = sizes, scales
    of_attention = _of_attention(width, heads, (x, q, v, o), row_bits)
    return encoder.Layer(of_attention, _of_feed_forward(width, inner, (x, z, g), row_bits))


def _encoder(places: int, layers: list[encoder.Layer]) -> Read:
    rows = _places(layers[0].attention.width, places, MAX_ROW_BITS)
    run = encoder.Encoder(0, layers, places, None, rows, rows)
    return lambda reader: encoder.read(run, reader)


def _output(width: int, places: int, norm_factor: int) -> Read:
    rows = _places(width, places, encoder_output.row_bits(width, places))
    run = encoder_output.Output(0, places, width, norm_factor, 0, None, rows)
    return lambda reader: encoder_output.read(run, reader)


def _embeddings(sizes: tuple[int, int, int], scale: int, row_bits: int) -> encoder_input.Embeddings:
    """:param sizes: words, width and place rows"""
    vocabulary, width, places = sizes
    words: list[list[Point]] = [[None] * ((vocabulary - 1 >> row_bits) + 1)] * width
    of_places, norm = _places(width, places, row_bits), _norm(width, scale)
    return encoder_input.Embeddings(vocabulary, places, row_bits, words, of_places, norm, [0] * width)


def _input(places: int, table: encoder_input.Embeddings) -> Read:
    rows = _places(table.width, places, table.row_bits)
    run = encoder_input.Input(0, table, places, 0, None, rows)
    return lambda reader: encoder_input.read(run, reader)


def _encoder_embed(
    places: int, table: encoder_input.Embeddings, layers: list[encoder.Layer], queries: int = 1
) -> Read:
    hashes = [encoder_embed.Hashes(0, 0, 0)] * queries
    run = encoder_embed.EncoderEmbedded(hashes, table, layers, places, 11_712)
    return lambda reader: encoder_embed.read(run, reader)


RUNS = [
    Run("noise proof", "noise", {
        "3 positions, gains 1": _slots(1, 3, [1]),
        "1,000 positions, gains 1, 8": _slots(1, 1_000, [1, 8]),
        "300,000 positions, gains 1, 8, 64": _slots(1, 300_000, [1, 8, 64]),
        "3 slots of 1,000 positions, gains 1, 8": _slots(3, 1_000, [1, 8]),
        "16 slots of 100,000 positions, gains 1, 8, 64": _slots(16, 100_000, [1, 8, 64]),
    }),
    Run("query", "query", {
        "3 positions of 2, 2 listed, gains 1": _queries((3, 2, 2), [1]),
        "1,000 positions of 256, 5 listed, gains 1, 8": _queries((1_000, 256, 5), [1, 8]),
        "300,000 positions of 70, 10 listed, gains 1, 8, 64": _queries((300_000, 70, 10), [1, 8, 64]),
        "3 positions of 2, 2 listed, kept": _queries((3, 2, 2), [], kept=True),
        "1,000 positions of 256, 5 listed": _queries((1_000, 256, 5), []),
        "1,000 positions of 256, 5 listed, kept, gains 1, 8": _queries((1_000, 256, 5), [1, 8], kept=True),
        "300,000 positions of 70, 10 listed, kept": _queries((300_000, 70, 10), [], kept=True),
        "3 records of 1,000 positions of 256, 5 listed": _queries((1_000, 256, 5), [], 3),
        "16 records of 100,000 positions of 256, 5 listed, gains 1, 8, 64": _queries((100_000, 256, 5), [1, 8, 64], 16),
        "5 records of 1,000 positions of 70, 10 listed, gains 1, 8": _queries((1_000, 70, 10), [1, 8], 5),
    }),
    Run("Bernoulli proof", "bernoulli-bits", {
        "3 positions": _coins(3),
        "1,000 positions": _coins(1_000),
        "300,000 positions": _coins(300_000),
    }),
    Run("document table", "document-table", {
        "3 positions, 2 rows of at most 2, all fresh": _table((3, 2, 2, 2)),
        "1,000 positions, 300 rows of at most 9, all fresh": _table((1_000, 300, 9, 300)),
        "1,000 positions, 300 rows of at most 9, 20 fresh": _table((1_000, 300, 9, 20), before=document_table.BEFORE),
        "300,000 positions, 40,000 rows of at most 50, 2,000 fresh":
            _table((300_000, 40_000, 50, 2_000), before=document_table.BEFORE),
    }),
    Run("pooled listing", "pooled-listing", {
        "3 positions of 2, 2 rows of at most 2, 2 listed": _pooled((3, 2, 2, 2, 2)),
        "1,000 positions of 256, 300 rows of at most 9, 5 listed": _pooled((1_000, 256, 300, 9, 5)),
        "3 records of 1,000 positions of 256, 300 rows of at most 9, 5 listed": _pooled((1_000, 256, 300, 9, 5), 3),
        "300,000 positions of 70, 40,000 rows of at most 50, 10 listed": _pooled((300_000, 70, 40_000, 50, 10)),
    }, file="pooled-listing"),
    Run("pooled document table", "document-table", {
        "1,000 positions, 300 rows of at most 9, 20 fresh":
            _table((1_000, 300, 9, 20), before=document_table.POOLED_BEFORE),
        "300,000 positions, 40,000 rows of at most 50, 2,000 fresh":
            _table((300_000, 40_000, 50, 2_000), before=document_table.POOLED_BEFORE),
    }, file="pooled-listing"),
    Run("row names", "row-names", {
        "3 positions, 2 rows, 2 opened": _row_names(3, 2, 2),
        "1,000 positions, 300 rows, 10 opened": _row_names(1_000, 300, 10),
        "300,000 positions, 40,000 rows, 200 opened": _row_names(300_000, 40_000, 200),
    }, file="row-names"),
    Run("embed", "embed", {
        "2 tokens of 8, 3 components, A 8,145": _embedded(2, 8, 3, 8_145),
        "64 tokens of 32,000, 256 components, A 8,145": _embedded(64, 32_000, 256, 8_145),
    }),
    Run("coalition records", "coalition", {
        "2 records of 3": _records(2, 3),
        "600 records of 256": _records(600, 256),
    }),
    Run("coalition pairs", "coalition", {
        "1 pair of blocks, 2 records of 3": _pairs(2, 3),
        "6 pairs of blocks, 600 records of 256": _pairs(600, 256),
    }, after="coalition records"),
    Run("feed forward", "feed-forward", {
        "2 places of 4, 8 inner": _feed_forward(4, 8, 2),
        "64 places of 12, 48 inner, scales 5, 6, 5": _feed_forward(12, 48, 64, (5, 6, 5)),
        "32 places of 384, 1,536 inner": _feed_forward(384, 1_536, 32),
    }, file="feed-forward"),
    Run("attention", "attention", {
        "4 places of 4, 2 heads": _attention(4, 2, 4),
        "16 places of 12, 6 heads, scales 5, 6, 6, 6": _attention(12, 6, 16, (5, 6, 6, 6)),
        "32 places of 384, 12 heads": _attention(384, 12, 32),
    }, file="attention"),
    Run("encoder", "encoder", {
        "2 layers, 4 places of 4, 2 heads, 8 inner": _encoder(4, [_layer((4, 2, 8))] * 2),
        "2 layers, 16 places of 12, 6 heads, 48 inner, scales 5, 6, 6, 7, 6, 5":
            _encoder(16, [_layer((12, 6, 48), (5, 6, 6, 7, 6, 5))] * 2),
        "6 layers, 32 places of 384, 12 heads, 1,536 inner": _encoder(32, [_layer((384, 12, 1_536))] * 6),
    }, file="encoder"),
    Run("encoder output", "encoder-output", {
        "4 places of 6, A 11,712": _output(6, 4, 11_712),
        "16 places of 96, A 11,712": _output(96, 16, 11_712),
        "32 places of 384, A 11,712": _output(384, 32, 11_712),
    }, file="encoder-output"),
    Run("encoder input", "encoder-input", {
        "4 of 4 places of 6, 21 words, rows of 64": _input(4, _embeddings((21, 6, 4), 6, 6)),
        "32 of 64 places of 12, 300 words, scale 5, rows of 512": _input(32, _embeddings((300, 12, 64), 5, 9)),
        "32 of 64 places of 384, 30,522 words, rows of 4,096": _input(32, _embeddings((30_522, 384, 64), 6, 12)),
    }, file="encoder-input"),
    Run("encoder embed", "encoder-embed", {
        "2 layers, 4 of 4 places of 4, 9 words, 2 heads, 4 inner, rows of 1,024":
            _encoder_embed(4, _embeddings((9, 4, 4), 6, 10), [_layer((4, 2, 4), row_bits=10)] * 2),
        "2 layers, 32 of 64 places of 384, 30,522 words, 12 heads, 1,536 inner, rows of 4,096":
            _encoder_embed(32, _embeddings((30_522, 384, 64), 6, 12), [_layer((384, 12, 1_536))] * 2),
    }, file="encoder-embed"),
    Run("encoder embed", "encoder-batch", {
        "2 queries, 2 layers, 4 of 4 places of 4, 9 words, 2 heads, 4 inner, rows of 1,024":
            _encoder_embed(4, _embeddings((9, 4, 4), 6, 10), [_layer((4, 2, 4), row_bits=10)] * 2, 2),
        "4 queries, 2 layers, 8 of 8 places of 6, 21 words, 3 heads, 4 inner, rows of 1,024":
            _encoder_embed(8, _embeddings((21, 6, 8), 6, 10), [_layer((6, 3, 4), row_bits=10)] * 2, 4),
    }, file="encoder-batch", title="encoder embed of several"),
]  # fmt: skip

HEAD = """# Messages and claims of each run

This page is for programmers of another verifier: it lists every transcript entry and every claim of each run,
in order. `python docs/scan/grammar.py` generates it from the second verifier, which follows these pages and not
the Rust code. A test compares the page with a fresh run, and compares the entries with the published traces
(`vectors/v1/scan`), which the Rust code makes: every message and claim, in order. A line is an entry of the
[transcript](transcript.md):

| | entry | bytes of its data |
|---|---|---|
| S | the start, under the run's name | `rag-audit/scan/v1` |
| B n | n bytes | unchanged |
| I | an integer | 8, little-endian |
| F | a field element | 32, big-endian |
| P | a point | 32, compressed |
| C | a challenge | none |
| = | a claim by its name, which is not absorbed | |

The label follows. `>` marks the entries that the verifier reads from the proof, 32 bytes each; all other
entries with data belong to the statement. `x n` gives the number of successive repetitions, `{ .. }` is a round
of a [sumcheck](sumcheck.md), over a variable or a digit, and `for k = 0, .., n` repeats with k rounds. If sizes
differ, `|` separates their numbers in the order of the sizes.
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for run in RUNS:
        result = {size: hear(run.name, read) for size, read in run.sizes.items()}
        text = "\n".join(
            line.rstrip() for line in merged([list(lines(fold(h.tokens))) for h in result.values()])
        )
        listed = "; ".join(
            f"{n}: {size} ({32 * h.sent:,} bytes)" for n, (size, h) in enumerate(result.items(), 1)
        )
        parts.append(
            f"\n## {run.title or run.name}\n[Specification]({run.page}.md#in-full). Sizes and proofs: {listed}.\n"
        )
        parts.append(f"\n```\n{text}\n```\n")
    return "".join(parts)


def main() -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
