"""The constants, shapes, scales and tables of the integer encoder (docs/minilm-int.md).

A value v with f fraction bits stands for v / 2^f. Everything here is exact: the tables are decimal arithmetic with 50
digits, rounded to the nearest integer, so all machines generate the same tables.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cache
from hashlib import sha256
from math import isqrt

from rag_audit._internal.errors import EncodingError, RagAuditError, SchemaError, SetupError

WEIGHT_BITS = 12
"""Fraction bits of every parameter: the integer of w is w 2^12, rounded half to even."""
WEIGHT_LIMIT = 1 << 15
"""Integers of parameters are in -2^15..2^15 - 1."""
ACTIVATION_LIMIT = 1 << 11
"""Activations are in -2^11..2^11 - 1."""
DISTANCES = 1 << 13
"""Rows of the table of exp. A row's distance is its number in steps of 2^-5."""
DISTANCE_BITS = 5
EXP_BITS = 12
"""Fraction bits of the table of exp."""
SCORE_BITS = 14
"""Further fraction bits of the factor of a score."""
ROOT_BITS = 42
"""K: fraction bits of the reciprocal deviation in a LayerNorm."""
SUM_BITS = 30
"""Fraction bits of the reciprocal of a row's sum in a softmax."""
ACCUMULATOR_LIMIT = 1 << 31
"""Sums of products of a dense layer are below this in magnitude, for every input within the activations' range."""

MAX_WIDTH = 1 << 10
MAX_INNER = 1 << 12
MAX_LAYERS = 48
MAX_PLACES = 1 << 9
MAX_VOCABULARY = 1 << 18

# A LayerNorm's accumulator has 63 bits: |d| R <= sqrt(width) 2^K because |d| <= sqrt(V), the gain has 15 bits, and the
# bias is below 2^(15 + K).
assert isqrt(MAX_WIDTH) * 2 ** (ROOT_BITS + 15) + 2 ** (15 + ROOT_BITS) + 2**ROOT_BITS * 2**11 < 2**63
# A score times its factor, and a weighted sum of values times its reciprocal, have 63 bits.
assert MAX_WIDTH * ACTIVATION_LIMIT**2 * 2 ** (SCORE_BITS + DISTANCE_BITS) < 2**63
assert ACTIVATION_LIMIT * 2**SUM_BITS < 2**63
assert MAX_PLACES * 2**EXP_BITS <= 2**SUM_BITS


class OutOfRange(RagAuditError):
    """A text has a value outside the ranges of the integer encoder, so that it has no vector.

    :param layer: 0 for the embedding layer, else the number of the encoder's layer
    :param part: the name of the value (docs/minilm-int.md, "The encoder")
    :param value: the first such value
    """

    def __init__(self, layer: int, part: str, value: int) -> None:
        low, high = limits_of(part)
        super().__init__(
            "the text leaves the ranges of the integer encoder",
            expected=f"layer {layer}, {part}: {low}..{high}",
            actual=value,
            hint="change the text; the float model may embed it",
        )
        self.layer, self.part, self.value = layer, part, value


def limits_of(part: str) -> tuple[int, int]:
    """The least and the greatest permitted value of a part."""
    if part == "distance":
        return 0, DISTANCES - 1
    if part == "variance":
        return 1, (1 << 128) - 1
    return -ACTIVATION_LIMIT, ACTIVATION_LIMIT - 1


@dataclass(frozen=True)
class Shape:
    """The size of an encoder.

    :param layers: the number of layers
    :param width: components of a token's vector
    :param heads: the number of attention heads, a divisor of the width
    :param inner: components between the two dense layers of a feed-forward block
    :param vocabulary: the number of tokens
    :param places: maximum number of tokens of a text
    """

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    places: int

    def __post_init__(self) -> None:
        limits = {"layers": MAX_LAYERS, "width": MAX_WIDTH, "heads": MAX_WIDTH, "inner": MAX_INNER,
                  "vocabulary": MAX_VOCABULARY, "places": 1 << 16}  # fmt: skip
        for name, limit in limits.items():
            if not 1 <= getattr(self, name) <= limit:
                raise SetupError("the encoder's size is not supported", field=name,
                                 expected=f"1..{limit}", actual=getattr(self, name))  # fmt: skip
        if self.width % self.heads:
            raise SetupError("the encoder's heads do not divide its width", field="heads",
                             expected=f"a divisor of {self.width}", actual=self.heads)  # fmt: skip

    @property
    def head(self) -> int:
        """Components of one head."""
        return self.width // self.heads

    def parameters(self) -> Iterator[tuple[str, int, int]]:
        """Name, rows and columns of each parameter, in the order of the integer weights.

        A matrix has a row for each input and a column for each output; a vector has one row.
        """
        yield "word", self.vocabulary, self.width
        yield "place", self.places, self.width
        yield "gain", 1, self.width
        yield "bias", 1, self.width
        for layer in range(1, self.layers + 1):
            for name in ("q", "k", "v", "a"):
                yield f"{layer}.{name}", self.width, self.width
                yield f"{layer}.{name}.bias", 1, self.width
            yield f"{layer}.gain1", 1, self.width
            yield f"{layer}.bias1", 1, self.width
            yield f"{layer}.z", self.width, self.inner
            yield f"{layer}.z.bias", 1, self.inner
            yield f"{layer}.f", self.inner, self.width
            yield f"{layer}.f.bias", 1, self.width
            yield f"{layer}.gain2", 1, self.width
            yield f"{layer}.bias2", 1, self.width


@dataclass(frozen=True)
class Scales:
    """Fraction bits of each kind of activation, 0..11. They are set once for a model, on public texts.

    :param x: a LayerNorm's results
    :param q: queries and keys of the attention
    :param v: values of the attention
    :param o: the attention's results
    :param z: the input of GELU
    :param g: the results of GELU
    """

    x: int
    q: int
    v: int
    o: int
    z: int
    g: int

    def __post_init__(self) -> None:
        for field in fields(self):
            bits = getattr(self, field.name)
            if not 0 <= bits <= 11:
                raise SetupError("a scale of the encoder is out of range", field=f"scales.{field.name}",
                                 expected="0..11", actual=bits)  # fmt: skip

    @classmethod
    def parse(cls, value: object, *, field: str) -> Scales:
        """The scales of a JSON value with exactly these fields.

        :raises SchemaError: a field is missing, unknown or no integer
        """
        names = sorted(each.name for each in fields(cls))
        if not isinstance(value, Mapping) or sorted(value) != names:
            raise SchemaError("the scales are not well-formed", field=field, expected=", ".join(names))
        if any(type(bits) is not int for bits in value.values()):
            raise SchemaError("a scale is no integer", field=field, expected="0..11")
        return cls(**value)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the scales and of the constants of this module."""
        return sha256(
            json.dumps(
                {
                    **asdict(self), "distance": DISTANCE_BITS, "distances": DISTANCES, "exp": EXP_BITS,
                    "root": ROOT_BITS, "score": SCORE_BITS, "sum": SUM_BITS, "weight": WEIGHT_BITS,
                },
                sort_keys=True, separators=(",", ":"),
            ).encode()
        ).hexdigest()  # fmt: skip

    def score_factor(self, head: int) -> int:
        """round(2^(14 + 5) / sqrt(head)), by which scores are multiplied before a shift by 2 q + 14 bits."""
        return (isqrt((4 << (2 * (SCORE_BITS + DISTANCE_BITS))) // head) + 1) >> 1


@dataclass(frozen=True)
class IntegerModel:
    """An encoder's integers.

    :param weights: every parameter in the order of `Shape.parameters`, row by row, as int16, little-endian
    """

    shape: Shape
    scales: Scales
    weights: bytes

    def __post_init__(self) -> None:
        expected = 2 * sum(rows * columns for _, rows, columns in self.shape.parameters())
        if len(self.weights) != expected:
            raise EncodingError("the integer weights have another length", field="weights",
                                expected=f"{expected} bytes", actual=f"{len(self.weights)} bytes")  # fmt: skip

    def digest(self) -> str:
        """SHA-256 over the shape, as six integers of four bytes, little-endian, and the weights."""
        s = self.shape
        head = struct.pack("<6I", s.layers, s.width, s.heads, s.inner, s.vocabulary, s.places)
        return sha256(head + self.weights).hexdigest()

    def tables_digest(self) -> str:
        """SHA-256 over the table of exp and the table of GELU, as int16, little-endian."""
        return sha256(exp_table() + gelu_table(self.scales.z, self.scales.g)).hexdigest()


_DIGITS = 50
_GUARD = Decimal(10) ** -36


def _rounded(value: Decimal) -> int:
    """The nearest integer. The value is irrational, and far enough from the middle of two integers that an error in its
    last digits cannot matter.
    """
    floor = value.to_integral_value(ROUND_HALF_EVEN)
    if abs(abs(value - floor) - Decimal("0.5")) < _GUARD:
        raise ArithmeticError("a table's entry is too close to the middle of two integers")
    return int(floor)


@cache
def exp_table() -> bytes:
    """round(2^12 exp(-u / 2^5)) for u = 0..2^13 - 1, as int16, little-endian."""
    out = [0] * DISTANCES
    with localcontext(Context(prec=_DIGITS)):
        for u in range(DISTANCES):
            out[u] = _rounded((Decimal(-u) / (1 << DISTANCE_BITS)).exp() * (1 << EXP_BITS))
            if not out[u]:
                break  # exp decreases: all further entries are 0
    return struct.pack(f"<{DISTANCES}h", *out)


@cache
def gelu_table(z_bits: int, g_bits: int) -> bytes:
    """round(2^g GELU(z / 2^z_bits)) for z = -2^11..2^11 - 1, as int16, little-endian.

    GELU(t) = t Phi(t), with the normal distribution's Phi(t) = 1/2 + phi(t) (t + t^3/3 + t^5/(3 5) + ..), whose terms
    have one sign. For |t| >= 12, GELU(t) is max(t, 0), rounded half to even. Results above the activations' range
    become its greatest value: they only occur if the scale g is finer than the scale z.
    """
    out = [0] * (2 * ACTIVATION_LIMIT)
    with localcontext(Context(prec=_DIGITS)):
        pi = _pi()
        for magnitude in range(1, ACTIVATION_LIMIT + 1):
            t = Decimal(magnitude) / (1 << z_bits)
            for sign in (1, -1):
                place = sign * magnitude
                if place < ACTIVATION_LIMIT:
                    out[place + ACTIVATION_LIMIT] = _gelu(sign * t, pi, g_bits)
    return struct.pack(f"<{len(out)}h", *out)


def _gelu(t: Decimal, pi: Decimal, bits: int) -> int:
    if abs(t) >= 12:  # |t| Phi(-|t|) < 2.2e-32; max(t, 0) is in the middle of two integers only if g < z
        exact = max(t, Decimal(0)) * (1 << bits)
        result = int(exact.to_integral_value(ROUND_HALF_EVEN))
    else:
        term = total = t
        odd = 1
        while abs(term) > Decimal(10) ** -(_DIGITS - 5):
            odd += 2
            term = term * t * t / odd
            total += term
        density = (-t * t / 2).exp() / (2 * pi).sqrt()
        result = _rounded(t * (Decimal("0.5") + density * total) * (1 << bits))
    return min(result, ACTIVATION_LIMIT - 1)


def _pi() -> Decimal:
    """Pi by Machin's formula."""

    def arctan_of_inverse(n: int) -> Decimal:
        term = total = Decimal(1) / n
        odd, sign = 1, 1
        while term > Decimal(10) ** -(_DIGITS + 5):
            odd, sign = odd + 2, -sign
            term /= n * n
            total += sign * term / odd
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
