"""An encoder of two layers and width 16 over a small prime: the claims of `docs/scan/encoder-embed.md` from the tokens to the
vector.

The claims have an order in which each new value of the prover follows earlier ones. `Search` tries, at each new value, all
elements that the claims about it admit, and follows every admitted element to the end. A value with a lookup is tried at all rows
of its table; a value without a table stands in a linear claim, which has one solution for each remainder. So the search is
complete over all values of all columns.

Sizes are smaller than on the pages: activations have 3 bits in place of 12, weights one fraction bit, scales are 0, the table of
exp has 32 rows, N has 6 fraction bits and R has 7. A text has at most two places, and the vocabulary has three words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import isqrt, sqrt
from random import Random

WIDTH, HEADS, INNER, LAYERS, PLACES, VOCABULARY = 16, 2, 32, 2, 2, 3
HEAD = WIDTH // HEADS
ACTIVATIONS = range(-4, 4)
WEIGHT_BITS, ROOT_BITS, NORMALISER_BITS, SCORE_BITS = 1, 8, 6, 3
MULTIPLIER = round(2 ** (SCORE_BITS + 1) / sqrt(HEAD))
NORM_SHIFT = ROOT_BITS + WEIGHT_BITS
TARGET = WIDTH << 2 * ROOT_BITS
ROOTS, SLACKS = 1 << 7, 1 << 22
MAXIMA = range(-(1 << 8), 1 << 8)
EXP = [round(4 * 2 ** (-u / 3)) for u in range(32)]
GELU = dict(zip(ACTIVATIONS, (0, 0, 0, -1, 0, 1, 2, 3), strict=True))
NORMALISERS = 1 << 7
"""The range of N, of its remainder, and of the distance of the remainder from L."""
STEP, FACTOR, SQUARE_SHIFT = 3, 24, 4
"""The largest component of the vector, A, and the shift of the sum of squares."""
VECTOR_ROOTS = 1 << 8
DIGITS = 2
"""Lower digits; as many upper ones."""

Row = tuple[int, ...]
Matrix = list[Row]
Place = tuple[int, ...]
"""Where a value is: the layer, the place, and further numbers."""
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Dense:
    """A matrix with a row for each input, and a bias."""

    matrix: Matrix
    bias: Row

    def of(self, row: Sequence[int]) -> Row:
        """The sums of a row, without rounding."""
        return tuple(
            sum(x * weights[j] for x, weights in zip(row, self.matrix, strict=True)) + b
            for j, b in enumerate(self.bias)
        )


@dataclass(frozen=True)
class Norm:
    gain: Row
    bias: Row


@dataclass(frozen=True)
class Layer:
    queries: Dense
    keys: Dense
    values: Dense
    output: Dense
    after_attention: Norm
    first: Dense
    second: Dense
    after_feed_forward: Norm


@dataclass(frozen=True)
class Model:
    words: Matrix
    places: Matrix
    norm: Norm
    layers: tuple[Layer, ...]

    @property
    def unused(self) -> Row:
        """The row of an unused place."""
        return added(self.words[0], self.places[0])


def random_model(seed: int) -> Model:
    """Weights with one or two entries in each column, so that most texts stay in range."""
    rng = Random(seed)

    def rows(count: int, maximum: int) -> Matrix:
        return [tuple(rng.randint(-maximum, maximum) for _ in range(WIDTH)) for _ in range(count)]

    def dense(inputs: int, outputs: int, entries: int) -> Dense:
        columns = []
        for _ in range(outputs):
            chosen = dict.fromkeys(rng.sample(range(inputs), entries), 0)
            columns.append([rng.choice((-1, 1)) if i in chosen else 0 for i in range(inputs)])
        return Dense(
            list(zip(*columns, strict=True)), tuple(rng.choice((-1, 0, 0, 0, 1)) for _ in range(outputs))
        )

    def norm() -> Norm:
        return Norm(
            tuple(rng.choice((1, 2, 2)) for _ in range(WIDTH)),
            tuple(rng.choice((-1, 0, 0, 0, 1)) for _ in range(WIDTH)),
        )

    def layer() -> Layer:
        queries, keys, values = (dense(WIDTH, WIDTH, 2) for _ in range(3))
        output, first, second = dense(WIDTH, WIDTH, 1), dense(WIDTH, INNER, 2), dense(INNER, WIDTH, 1)
        return Layer(queries, keys, values, output, norm(), first, second, norm())

    words, places = rows(VOCABULARY, 3), rows(PLACES, 1)
    return Model(words, places, norm(), tuple(layer() for _ in range(LAYERS)))


def added(*rows: Sequence[int]) -> Row:
    return tuple(map(sum, zip(*rows, strict=True)))


def shifted(value: int, bits: int) -> int:
    return value + (1 << bits - 1) >> bits


class Left(Exception):
    """A value outside its range: the text has no vector."""


def within(values: Iterable[int], allowed: range = ACTIVATIONS) -> Row:
    row = tuple(values)
    if not all(value in allowed for value in row):
        raise Left
    return row


def vector(model: Model, tokens: Tokens) -> Row | None:
    """The vector of a text as `docs/minilm-int.md` computes it, with these sizes; None if a value leaves its range."""

    def normed(row: Row, norm: Norm) -> Row:
        deviations = [WIDTH * r - sum(row) for r in row]
        variance = sum(a * a for a in deviations)
        if variance == 0:
            raise Left
        root = isqrt(TARGET // variance)
        return within(
            shifted(a * root * c + (e << ROOT_BITS), NORM_SHIFT)
            for a, c, e in zip(deviations, norm.gain, norm.bias, strict=True)
        )

    def rounded(dense: Dense, row: Row) -> Row:
        return within(shifted(total, WEIGHT_BITS) for total in dense.of(row))

    def attended(layer: Layer, rows: list[Row]) -> list[Row]:
        queries, keys, values = (
            [rounded(dense, row) for row in rows] for dense in (layer.queries, layer.keys, layer.values)
        )
        outputs = []
        for query in queries:
            output: list[int] = []
            for head in range(0, WIDTH, HEAD):
                part = slice(head, head + HEAD)
                scores = [
                    shifted(MULTIPLIER * sum(a * b for a, b in zip(query[part], key[part], strict=True)), SCORE_BITS)
                    for key in keys
                ]  # fmt: skip
                within(scores, MAXIMA)
                results = [EXP[u] for u in within((max(scores) - z for z in scores), range(len(EXP)))]
                normaliser = (1 << NORMALISER_BITS) // sum(results)
                for c in range(head, head + HEAD):
                    weighted = sum(e * value[c] for e, value in zip(results, values, strict=True))
                    output.append(shifted(normaliser * weighted, NORMALISER_BITS))
            outputs.append(within(output))
        return outputs

    try:
        rows = [
            normed(added(model.words[t], model.places[p]), model.norm)
            for p, t in enumerate(within(tokens, range(VOCABULARY)))
        ]
        for layer in model.layers:
            rows = [
                normed(residual(row, layer.output.of(output)), layer.after_attention)
                for row, output in zip(rows, attended(layer, rows), strict=True)
            ]
            inner = [rounded(layer.first, row) for row in rows]
            rows = [
                normed(residual(row, layer.second.of([GELU[z] for z in z_row])), layer.after_feed_forward)
                for row, z_row in zip(rows, inner, strict=True)
            ]
    except Left:
        return None
    total = added(*rows)
    root = isqrt(sum(e * e for e in total) << SQUARE_SHIFT)
    if root == 0:
        return None
    steps = (min(STEP, (2 * abs(e) * FACTOR + root) // (2 * root)) for e in total)
    return tuple(step if e >= 0 else -step for e, step in zip(total, steps, strict=True))


def residual(row: Sequence[int], sums: Sequence[int]) -> Row:
    return tuple((x << WEIGHT_BITS) + y for x, y in zip(row, sums, strict=True))


@dataclass(frozen=True)
class Search:
    """All statements that the claims admit.

    :param omitted: the name of a claim that is not made at the place `at`
    """

    model: Model
    p: int
    omitted: str | None = None
    at: Place = ()

    def check(self) -> None:
        """The pages' statements for these sizes: no side of an equation wraps around."""
        row = max(abs(x) for x in ACTIVATIONS)
        dense = [dense for layer in self.model.layers for dense in (layer.output, layer.second)]
        columns = [column for d in dense for column in zip(*d.matrix, strict=True)]
        sums = max(sum(map(abs, column)) * row + 1 for column in columns)
        largest = 2 * row + sums
        variance = WIDTH * WIDTH * WIDTH * largest * largest
        assert ROOTS * ROOTS * variance + SLACKS < self.p
        assert 2 * SLACKS + (2 * ROOTS + 1) * variance < self.p
        assert 2 * WIDTH * largest * ROOTS * 2 + (2 * row + 1 << NORM_SHIFT) < self.p
        assert self.p > 2 * VECTOR_ROOTS * (VECTOR_ROOTS + 1)

    def made(self, claim: str, at: Place) -> bool:
        return claim != self.omitted or at != self.at

    def quotients(self, name: str, at: Place, dividend: int, bits: int) -> list[int]:
        """The activations that are admitted as the quotient of a dividend by 2^bits."""
        step, half = 1 << bits, 1 << bits - 1
        if not self.made(f"{name}: equation", at) or not self.made(f"{name}: range of the remainder", at):
            return list(ACTIVATIONS)
        if not self.made(f"{name}: range of the quotient", at):
            return [(dividend + half - rest) * pow(step, -1, self.p) % self.p for rest in range(step)]
        return [y for y in ACTIVATIONS if (dividend + half - step * y) % self.p < step]

    def dense(self, name: str, at: Place, dense: Dense, rows: Matrix) -> Iterator[Matrix]:
        """The matrices that are admitted as the rounded results of a dense layer."""
        yield from self.each(
            [
                [
                    self.quotients(name, (*at, t, j), total, WEIGHT_BITS)
                    for j, total in enumerate(dense.of(row))
                ]
                for t, row in enumerate(rows)
            ]
        )

    @staticmethod
    def each(candidates: list[list[list[int]]]) -> Iterator[Matrix]:
        """All matrices of admitted entries."""
        width = len(candidates[0])
        for flat in product(*(entry for row in candidates for entry in row)):
            yield [flat[i : i + width] for i in range(0, len(flat), width)]

    def roots(self, at: Place, variance: int) -> Iterator[int]:
        """The values of R that are admitted for V."""
        for root in range(ROOTS):
            below = (TARGET - root * root * variance) % self.p
            above = ((2 * root + 1) * variance - 1 - below) % self.p
            if (below < SLACKS or not self.made("root: below", at)) and (
                above < SLACKS or not self.made("root: above", at)
            ):
                yield root

    def normed(self, at: Place, rows: Matrix, norm: Norm) -> Iterator[Matrix]:
        """The matrices that are admitted as LN of rows."""
        candidates: list[list[Row]] = []
        for t, row in enumerate(rows):
            candidates.append([])
            for changed in self.changed("residual", (*at, t), row):
                deviations = [WIDTH * r - sum(changed) for r in changed]
                true = sum(a * a for a in deviations)
                others = {TARGET // (root * root) for root in range(1, ROOTS)}
                for variance in {true} if self.made("variance", (*at, t)) else {true, *others}:
                    for root in self.roots((*at, t), variance % self.p):
                        entries = [
                            self.quotients("norm", (*at, t, j), a * root * c + (e << ROOT_BITS), NORM_SHIFT)
                            for j, (a, c, e) in enumerate(zip(deviations, norm.gain, norm.bias, strict=True))
                        ]
                        candidates[-1] += product(*entries)
        for chosen in product(*candidates):
            yield list(chosen)

    def changed(self, claim: str, at: Place, row: Row) -> Iterator[Row]:
        """The row, and rows with another first entry if the claim about it is not made."""
        yield row
        if not self.made(claim, at):
            for entry in range(-17, 18):
                yield (entry, *row[1:])

    def distances(self, at: Place, marks: Row, sums: Row) -> Iterator[Row]:
        """The rows of results of exp that are admitted for a row of sums of products."""
        half, step = 1 << SCORE_BITS - 1, 1 << SCORE_BITS
        for maximum in MAXIMA:
            candidates: list[list[tuple[int, int]]] = []
            for j, (w, total) in enumerate(zip(marks, sums, strict=True)):
                if self.made("key", (*at, j)):
                    allowed = [(0, 0)] if w == 0 else list(enumerate(EXP))
                else:
                    allowed = [(0, 0), *enumerate(EXP)]
                if not self.made("row of exp", (*at, j)) and w:
                    allowed = list(product(range(len(EXP)), range(EXP[0] + 1)))
                free = not self.made("score: range of the remainder", (*at, j))
                candidates.append([
                    (u, e) for u, e in allowed
                    if free or (w * (MULTIPLIER * total + half - step * maximum) + step * u) % self.p < step
                ])  # fmt: skip
            for chosen in product(*candidates):
                # Marks of the maximum exist, in the field, exactly if one of them may be other than 0.
                attained = any((u + 1 - w) % self.p == 0 for (u, _), w in zip(chosen, marks, strict=True))
                if attained or not self.made("maximum", at):
                    yield tuple(e for _, e in chosen)

    def normalisers(self, at: Place, total: int) -> Iterator[int]:
        """The values of N that are admitted for L."""
        for value in range(NORMALISERS):
            rest = ((1 << NORMALISER_BITS) - value * total) % self.p
            beyond = (total - 1 - rest) % self.p
            if (rest < NORMALISERS or not self.made("normaliser: range of the remainder", at)) and (
                beyond < NORMALISERS or not self.made("normaliser: below the sum", at)
            ):
                yield value

    def attended(self, number: int, marks: Row, matrices: list[Matrix]) -> Iterator[Matrix]:
        """The results of attention that are admitted for queries, keys and values."""
        queries, keys, values = matrices
        candidates: list[list[Row]] = []
        for i, query in enumerate(queries):
            for h in range(HEADS):
                part, at = range(h * HEAD, (h + 1) * HEAD), (number, i, h)
                sums = tuple(sum(query[c] * key[c] for c in part) for key in keys)
                found = set[Row]()
                for results in set(self.distances(at, marks, sums)):
                    for normaliser in self.normalisers(at, sum(results)):
                        weighted = [sum(e * v[c] for e, v in zip(results, values, strict=True)) for c in part]
                        found |= set(product(*(
                            self.quotients("head", (*at, c), normaliser * total, NORMALISER_BITS)
                            for c, total in enumerate(weighted)
                        )))  # fmt: skip
                candidates.append(sorted(found))
        for chosen in product(*candidates):
            yield [sum(chosen[i : i + HEADS], ()) for i in range(0, len(chosen), HEADS)]

    def layer(self, number: int, layer: Layer, marks: Row, rows: Matrix) -> Iterator[Matrix]:
        """The matrices that are admitted as the results of a layer."""
        three = (("query", layer.queries), ("key", layer.keys), ("value", layer.values))
        for matrices in product(*(list(self.dense(name, (number,), dense, rows)) for name, dense in three)):
            for outputs in self.attended(number, marks, list(matrices)):
                sums = [residual(row, layer.output.of(o)) for row, o in zip(rows, outputs, strict=True)]
                for between in self.normed((number, 0), sums, layer.after_attention):
                    yield from self.fed_forward(number, layer, between)

    def fed_forward(self, number: int, layer: Layer, rows: Matrix) -> Iterator[Matrix]:
        """The matrices that are admitted as the results of a feed-forward block."""
        for inner in self.dense("inner", (number,), layer.first, rows):
            for activated in self.each([
                [
                    [g for at_z, g in GELU.items() if at_z == z or not self.made("row of GELU", (number, t, j))]
                    for j, z in enumerate(row)
                ]
                for t, row in enumerate(inner)
            ]):  # fmt: skip
                sums = [residual(row, layer.second.of(g)) for row, g in zip(rows, activated, strict=True)]
                yield from self.normed((number, 1), sums, layer.after_feed_forward)

    def inputs(self) -> Iterator[tuple[Tokens, Row, Matrix]]:
        """Token lists with marks and rows of the embeddings that are admitted for them."""
        bits = range(2)
        for marks in product(bits, repeat=PLACES):
            # `encoder.USED` has the claims about marks.
            if marks[0] != 1 or any(a * b != b for a, b in pairwise(marks)):
                continue
            of_places: list[list[tuple[int, Row]]] = []
            for place, w in enumerate(marks):
                of_places.append([])
                for low, high in product(product(bits, repeat=DIGITS), repeat=2):
                    if (sum(low) != w or sum(high) != w) and self.made("one digit", (place,)):
                        continue
                    token = sum(
                        a * x + DIGITS * a * y for a, (x, y) in enumerate(zip(low, high, strict=True))
                    )
                    others = range(VOCABULARY)
                    for listed in [token] if self.made("digits", (place,)) else others:
                        rest = (VOCABULARY - 1 - listed) % self.p
                        if w and rest >= DIGITS * DIGITS and self.made("below the vocabulary", (place,)):
                            continue
                        of_places[-1].append((listed, self.row(place, w, low, high)))
            for chosen in product(*of_places):
                tokens = tuple(token for (token, _), w in zip(chosen, marks, strict=True) if w)
                yield tokens, marks, [row for _, row in chosen]

    def row(self, place: int, mark: int, low: Row, high: Row) -> Row:
        """The row of the embeddings for the digits of a place."""
        words = [*self.model.words, (0,) * WIDTH]
        rows = [tuple((1 - mark) * f for f in self.model.unused)]
        for a, x in enumerate(low):
            rows.append(tuple(x * g for g in self.model.places[place]))
            rows += [tuple(x * y * w for w in words[a + DIGITS * b]) for b, y in enumerate(high)]
        return added(*rows)

    def vectors(self, marks: Row, rows: Matrix) -> Iterator[Row]:
        """The vectors that are admitted for the rows of the last layer."""
        counted = marks if self.made("used rows", ()) else (1,) * PLACES
        total = [sum(w * row[j] for w, row in zip(counted, rows, strict=True)) for j in range(WIDTH)]
        square = sum(e * e for e in total) << SQUARE_SHIFT
        scaled = 2 * FACTOR * PLACES * -min(ACTIVATIONS)
        for root in range(1, VECTOR_ROOTS):
            left = (square - root * root) % self.p
            lacking = (2 * root - left) % self.p
            if left >= VECTOR_ROOTS * VECTOR_ROOTS and self.made("vector root: left", ()):
                continue
            if lacking >= VECTOR_ROOTS * VECTOR_ROOTS and self.made("vector root: lacking", ()):
                continue
            yield from product(*(list(self.steps(j, e, root, scaled)) for j, e in enumerate(total)))

    def steps(self, j: int, e: int, root: int, scaled: int) -> Iterator[int]:
        """The components that are admitted for a sum, as in `rounding`."""
        limb = 2 * VECTOR_ROOTS + scaled
        for v in range(-STEP, STEP + 1):
            lower = (2 * FACTOR * e - (2 * v - 1) * root + (v == -STEP) * scaled - (v <= 0)) % self.p
            upper = ((2 * v + 1) * root - 2 * FACTOR * e + (v == STEP) * scaled - (v >= 0)) % self.p
            if (lower < limb or not self.made("step: lower", (j,))) and (
                upper < limb or not self.made("step: upper", (j,))
            ):
                yield v

    def accepted(self) -> Iterator[tuple[Tokens, Row]]:
        """Every token list with every vector that is admitted for it."""
        for tokens, marks, rows in self.inputs():
            for embedded in self.normed((0,), rows, self.model.norm):
                yield from ((tokens, v) for v in self.through(0, marks, embedded))

    def through(self, number: int, marks: Row, rows: Matrix) -> Iterator[Row]:
        """The vectors that are admitted for the input of a layer."""
        if number == LAYERS:
            yield from self.vectors(marks, rows)
            return
        for after in self.layer(number, self.model.layers[number], marks, rows):
            yield from self.through(number + 1, marks, after)

    def false(self) -> Iterator[tuple[Tokens, Row]]:
        """The false statements that are admitted."""
        return ((tokens, v) for tokens, v in self.accepted() if v != vector(self.model, tokens))


LAST = LAYERS - 1, PLACES - 1
_DIVISIONS: dict[str, Place] = {
    "query": (*LAST, 11),
    "key": (*LAST, 14),
    "value": (*LAST, 15),
    "head": (*LAST, HEADS - 1, 7),
    "inner": (*LAST, 31),
    "norm": (LAYERS - 1, 1, PLACES - 1, 15),
}
_BLOCK: Place = (LAYERS - 1, 1, PLACES - 1)
_SCORE: Place = (*LAST, HEADS - 1, PLACES - 1)
CLAIMS: dict[str, Place] = {
    **{f"{name}: equation": at for name, at in _DIVISIONS.items()},
    **{f"{name}: range of the remainder": at for name, at in _DIVISIONS.items()},
    # The table of GELU is the range of its argument.
    **{f"{name}: range of the quotient": at for name, at in _DIVISIONS.items() if name != "inner"},
    **dict.fromkeys(("residual", "variance", "root: below", "root: above"), _BLOCK),
    **dict.fromkeys(("key", "row of exp", "score: range of the remainder"), _SCORE),
    **dict.fromkeys(
        ("maximum", "normaliser: range of the remainder", "normaliser: below the sum"), _SCORE[:-1]
    ),
    "row of GELU": (*LAST, 31),
    **dict.fromkeys(("one digit", "digits", "below the vocabulary"), (PLACES - 1,)),
    **dict.fromkeys(("used rows", "vector root: left", "vector root: lacking"), ()),
    **dict.fromkeys(("step: lower", "step: upper"), (WIDTH - 1,)),
}
"""The claims of the search, each with a place at which a false statement is admitted without it."""
