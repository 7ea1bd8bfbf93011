"""The integer encoder in Python integers (docs/minilm-int.md). The definition: every other implementation agrees with
it on every value. It imports neither native code nor numpy.

Products with matrices would dominate its time. A row of a matrix is therefore one large integer with a digit of 64 bits
for each column, so that one multiplication of Python integers computes a row of products (Kronecker's substitution).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from math import isqrt
from operator import mul

from rag_audit._internal.errors import EncodingError
from rag_audit.retrieval.embedders.integer_bert.semantics import (
    ACTIVATION_LIMIT,
    DISTANCES,
    ROOT_BITS,
    SCORE_BITS,
    SUM_BITS,
    WEIGHT_BITS,
    IntegerModel,
    OutOfRange,
    exp_table,
    gelu_table,
)

Rows = list[list[int]]
"""A value of each token's components, shape (tokens, components)."""
See = Callable[[int, str, Rows], None]
"""Receives layer, part and values of each named value, in the order in which they are computed."""
_DIGIT = 64
_HALF_DIGIT = 1 << (_DIGIT - 1)


class Matrix:
    """A matrix whose products with vectors are sums of multiples of packed rows.

    :param rows: the entries, in -2^63..2^63 - 1
    """

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.columns = len(rows[0])
        self._offset = int.from_bytes(struct.pack("<Q", _HALF_DIGIT) * self.columns, "little")
        self._rows = [self._packed(row) for row in rows]

    def _packed(self, row: Sequence[int]) -> int:
        digits = struct.pack(f"<{self.columns}Q", *[entry + _HALF_DIGIT for entry in row])
        return int.from_bytes(digits, "little") - self._offset

    def product(self, vector: Sequence[int]) -> list[int]:
        """sum_i vector_i row_i, shape (columns,). Results have to be in -2^63..2^63 - 1."""
        total = sum(map(mul, vector, self._rows)) + self._offset
        digits = struct.unpack(f"<{self.columns}Q", total.to_bytes(8 * self.columns, "little"))
        return [digit - _HALF_DIGIT for digit in digits]


class Reference:
    """The forward pass of one model."""

    def __init__(self, model: IntegerModel) -> None:
        self.shape, self.scales = model.shape, model.scales
        self._weights = model.weights
        self._places: dict[str, tuple[int, int, int]] = {}
        start = 0
        for name, rows, columns in model.shape.parameters():
            self._places[name] = (start, rows, columns)
            start += 2 * rows * columns
        self._exp = struct.unpack(f"<{DISTANCES}h", exp_table())
        self._gelu = struct.unpack(f"<{2 * ACTIVATION_LIMIT}h", gelu_table(model.scales.z, model.scales.g))

    def _row(self, name: str, row: int = 0) -> tuple[int, ...]:
        start, rows, columns = self._places[name]
        if not 0 <= row < rows:
            raise EncodingError(
                "a row is outside a parameter", field=name, expected=f"0..{rows - 1}", actual=row
            )
        return struct.unpack_from(f"<{columns}h", self._weights, start + 2 * row * columns)

    @cached_property
    def _matrices(self) -> dict[str, Matrix]:
        return {
            f"{layer}.{name}": Matrix(
                [self._row(f"{layer}.{name}", i) for i in range(self._places[f"{layer}.{name}"][1])]
            )
            for layer in range(1, self.shape.layers + 1)
            for name in ("q", "k", "v", "a", "z", "f")
        }

    def embed(self, tokens: Sequence[int], see: See = lambda layer, part, values: None) -> list[int]:
        """The sum of the last layer's rows, shape (width,).

        :param tokens: 1 to `shape.places` tokens
        :param see: receives the named values
        :raises EncodingError: there are no tokens, too many, or one outside the vocabulary
        :raises OutOfRange: a value is outside its range
        """
        return [sum(column) for column in zip(*self.rows(tokens, see), strict=True)]

    def rows(self, tokens: Sequence[int], see: See = lambda layer, part, values: None) -> Rows:
        """The last layer's rows, shape (tokens, width); arguments and errors as `embed`."""
        if not 1 <= len(tokens) <= self.shape.places:
            raise EncodingError("the text has another number of tokens", field="tokens",
                                expected=f"1..{self.shape.places}", actual=len(tokens))  # fmt: skip
        x = [
            [word + at for word, at in zip(self._row("word", token), self._row("place", place), strict=True)]
            for place, token in enumerate(tokens)
        ]
        x = self._norm(0, "x0", x, "gain", "bias")
        see(0, "x0", x)
        for layer in range(1, self.shape.layers + 1):
            x = self._layer(layer, x, see)
        return x

    def _layer(self, layer: int, x: Rows, see: See) -> Rows:
        s = self.scales
        projected = []
        for name, bits in (("q", s.q), ("k", s.q), ("v", s.v)):
            y = self._dense(f"{layer}.{name}", x, s.x)
            projected.append(self._shifted(layer, name, y, s.x + WEIGHT_BITS - bits))
            see(layer, name, projected[-1])
        o = self._attention(layer, *projected)
        see(layer, "o", o)
        x = self._norm(
            layer, "x1", self._residual(x, self._dense(f"{layer}.a", o, s.o), s.o),
            f"{layer}.gain1", f"{layer}.bias1",
        )  # fmt: skip
        see(layer, "x1", x)
        z = self._shifted(layer, "z", self._dense(f"{layer}.z", x, s.x), s.x + WEIGHT_BITS - s.z)
        see(layer, "z", z)
        g = [[self._gelu[value + ACTIVATION_LIMIT] for value in row] for row in z]
        x = self._norm(
            layer, "x2", self._residual(x, self._dense(f"{layer}.f", g, s.g), s.g),
            f"{layer}.gain2", f"{layer}.bias2",
        )  # fmt: skip
        see(layer, "x2", x)
        return x

    def _dense(self, name: str, x: Rows, bits: int) -> Rows:
        """x W + b 2^bits, with 12 fraction bits more than x, which has `bits`."""
        bias = [entry << bits for entry in self._row(f"{name}.bias")]
        matrix = self._matrices[name]
        return [[a + b for a, b in zip(matrix.product(row), bias, strict=True)] for row in x]

    def _residual(self, x: Rows, y: Rows, bits: int) -> Rows:
        """x + y, where y has 12 + bits fraction bits."""
        factor = 1 << (WEIGHT_BITS + bits - self.scales.x)
        return [[a * factor + b for a, b in zip(*rows, strict=True)] for rows in zip(x, y, strict=True)]

    def _shifted(self, layer: int, part: str, y: Rows, shift: int) -> Rows:
        """y / 2^shift, rounded to the nearest integer, half up."""
        half = 1 << (shift - 1)
        return _in_range(layer, part, [[(value + half) >> shift for value in row] for row in y])

    def _norm(self, layer: int, part: str, r: Rows, gain: str, bias: str) -> Rows:
        """LayerNorm without an intermediate rounding.

        d = width r - sum r, V = sum d^2, R = isqrt(floor(width 2^(2 K) / V)),
        y = (d R g + b 2^K + half) >> (K + 12 - x)
        """
        gains, biases = self._row(gain), self._row(bias)
        shift = ROOT_BITS + WEIGHT_BITS - self.scales.x
        half = 1 << (shift - 1)
        out = []
        for row in r:
            total = sum(row)
            d = [self.shape.width * value - total for value in row]
            variance = sum(map(mul, d, d))
            if not variance:
                raise OutOfRange(layer, "variance", 0)
            root = isqrt((self.shape.width << (2 * ROOT_BITS)) // variance)
            out.append(
                [
                    (value * root * g + (b << ROOT_BITS) + half) >> shift
                    for value, g, b in zip(d, gains, biases, strict=True)
                ]
            )
        return _in_range(layer, part, out)

    def _attention(self, layer: int, q: Rows, k: Rows, v: Rows) -> Rows:
        """The softmax of the scores of each head, times the values.

        z = (q k factor + half) >> (2 q + 14), u = max z - z, E = table[u],
        o = (sum_j E_j v_j floor(2^30 / sum E) + half) >> (30 + v - o)
        """
        s, head = self.scales, self.shape.head
        factor = s.score_factor(head)
        score_shift, shift = 2 * s.q + SCORE_BITS, SUM_BITS + s.v - s.o
        score_half, half = 1 << (score_shift - 1), 1 << (shift - 1)
        out: Rows = [[] for _ in q]
        for start in range(0, self.shape.width, head):
            part = slice(start, start + head)
            keys, values = [row[part] for row in k], [row[part] for row in v]
            columns = list(zip(*values, strict=True))
            for row, result in zip(q, out, strict=True):
                query = row[part]
                scores = [(sum(map(mul, query, key)) * factor + score_half) >> score_shift for key in keys]
                greatest = max(scores)
                weights = []
                for score in scores:
                    if greatest - score >= DISTANCES:
                        raise OutOfRange(layer, "distance", greatest - score)
                    weights.append(self._exp[greatest - score])
                reciprocal = (1 << SUM_BITS) // sum(weights)
                result += [
                    (sum(map(mul, weights, column)) * reciprocal + half) >> shift for column in columns
                ]
        return _in_range(layer, "o", out)


def _in_range(layer: int, part: str, values: Rows) -> Rows:
    for row in values:
        if not -ACTIVATION_LIMIT <= min(row) <= max(row) < ACTIVATION_LIMIT:
            first = next(value for value in row if not -ACTIVATION_LIMIT <= value < ACTIVATION_LIMIT)
            raise OutOfRange(layer, part, first)
    return values
