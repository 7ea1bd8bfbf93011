"""Sessions: hidden messages, singles, columns, and the claims that a run leaves (docs/scan/session.md, sumcheck.md).

A hidden value has a place: 16 i + k is value k of message i, -1 - j is single j.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rag_audit.proofs.backends.reference import digits
from rag_audit.proofs.backends.reference.digits import Digit
from rag_audit.proofs.backends.reference.extensions import HALF, Entries, Functional, log2, powers
from rag_audit.proofs.backends.reference.group import Point, Term
from rag_audit.proofs.backends.reference.group import total as sum_of
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

MESSAGE_VALUES = 16
MIN_ROW_BITS, LONGEST_ROW_BITS = 10, 17


@dataclass(frozen=True)
class Expr:
    """constant + sum of coefficient times hidden value."""

    constant: int = 0
    terms: dict[int, int] = field(default_factory=dict)

    def __add__(self, other: Expr | int) -> Expr:
        return total([(1, self), (1, other)])

    def __mul__(self, k: int) -> Expr:
        return total([(k, self)])

    def __sub__(self, other: Expr | int) -> Expr:
        return total([(1, self), (-1, other)])

    def __rsub__(self, other: int) -> Expr:
        return total([(1, other), (-1, self)])

    __radd__, __rmul__ = __add__, __mul__


def total(parts: Iterable[tuple[int, Expr | int]]) -> Expr:
    """The sum of factor times expression."""
    constant, terms = 0, dict[int, int]()
    for k, part in parts:
        if isinstance(part, int):
            constant += k * part
            continue
        constant += k * part.constant
        for place, c in part.terms.items():
            terms[place] = (terms.get(place, 0) + k * c) % MODULUS
    return Expr(constant % MODULUS, terms)


@dataclass(frozen=True, eq=False)
class Column:
    """Committed numbers: one point for each row, and the variables of their index."""

    rows: Sequence[Point]
    variables: int


Pairs = Sequence[tuple[Column, int]]


def row_bits(capacity: int, records: int = 1) -> int:
    """l: rows of all columns of a run have 2^l values."""
    n = log2(capacity)
    alone = max(MIN_ROW_BITS, -(-n // 2) + 4 + (n >= 18))
    return min(alone + (log2(records) + 1) // 2, max(LONGEST_ROW_BITS, alone))


def limbs(columns: Sequence[Column], shift: int = 0, bits: int = 16) -> list[tuple[Column, int]]:
    """The number that columns of limbs encode, times 2^shift, the lowest limb first."""
    return [(c, 1 << shift + bits * k) for k, c in enumerate(columns)]


def joined(weights: Sequence[int], records: Iterable[Pairs]) -> Pairs:
    """The pairs of all records, each multiplied by its record's weight."""
    return [
        (c, e * factor % MODULUS) for e, pairs in zip(weights, records, strict=True) for c, factor in pairs
    ]


@dataclass
class Session:
    """The values that a run has read and its claims; closing proves all of them."""

    reader: Reader
    row_bits: int
    messages: list[Point] = field(default_factory=list)
    singles: list[Point] = field(default_factory=list)
    constraints: list[Expr] = field(default_factory=list)
    products: list[tuple[Expr, Expr, Expr]] = field(default_factory=list)
    claims: list[tuple[Functional | Entries, Pairs, Expr]] = field(default_factory=list)
    equations: list[list[Term]] = field(default_factory=list)
    """Sums of known points that have to vanish."""
    pinned: list[Column] = field(default_factory=list)
    """Columns with rows of 2^`pinned_bits` values, where the run's own rows have another length."""
    pinned_bits: int = 0
    weight: int = 0
    """The last challenge; its powers weight the claims."""

    def send(self, label: str, count: int) -> list[Expr]:
        """Values that the prover sends here, 16 in a message."""
        first = MESSAGE_VALUES * len(self.messages)
        self.messages += [self.reader.point(label) for _ in range(-(-count // MESSAGE_VALUES))]
        return [Expr(0, {first + k: 1}) for k in range(count)]

    def single(self, label: str) -> Expr:
        self.singles.append(self.reader.point(label))
        return Expr(0, {-len(self.singles): 1})

    def commit(self, label: str, entries: Sequence[int]) -> list[Column]:
        """Columns with these numbers of entries, one after another."""
        return [self.column([self.reader.point(label) for _ in range(self.rows(m))], m) for m in entries]

    def rows(self, entries: int) -> int:
        return (entries - 1 >> self.row_bits) + 1

    def column(self, rows: Sequence[Point], entries: int) -> Column:
        return Column(rows, log2(entries))

    def challenge(self, label: str) -> int:
        return self.reader.transcript.challenge(label)

    def challenges(self, label: str, count: int) -> list[int]:
        return [self.challenge(label) for _ in range(count)]

    def constraint(self, name: str, expr: Expr) -> None:
        self.reader.transcript.claim(f"constraint: {name}")
        self.constraints.append(expr)

    def product(self, name: str, left: Expr, right: Expr, out: Expr | int) -> None:
        self.reader.transcript.claim(f"product: {name}")
        self.products.append((left, right, total([(1, out)])))

    def claim(self, functional: Functional | Entries, pairs: Pairs, value: Expr) -> None:
        self.reader.transcript.claim(f"column claim: {self.reader.transcript.label}")
        self.claims.append((functional, pairs, value))

    def reduce(
        self, label: str, tau: Sequence[int], claim: Expr | int, degree: int
    ) -> tuple[list[int], Expr]:
        """The sumcheck of eq(tau, x) g(x): its point, and the value of g there (docs/scan/sumcheck.md)."""
        result, value = self.reduce_digits(label, digits.of(tau), claim, degree)
        return [s for _, s in result], value

    def reduce_digits(
        self, label: str, weights: Sequence[Digit], claim: Expr | int, degree: int
    ) -> tuple[list[Digit], Expr]:
        """As `reduce`, over digits: the new digits, and the value of g at them."""
        result: list[Digit] = []
        parts: list[tuple[int, Expr | int]] = [(1, claim)]
        for digit in weights:
            sent = self.send(label, degree * (len(digit) - 1))
            s = self.challenge(label)
            parts += [(pow(s, j, MODULUS) - digits.moment(digit, j), c) for j, c in enumerate(sent, 1)]
            result.append(digits.bound(len(digit), s))
        return result, total(parts)

    def plain(self, label: str, variables: int, claim: Expr | int, degree: int) -> tuple[list[int], Expr]:
        """The sumcheck of a plain sum."""
        share = total([(pow(HALF, variables, MODULUS), claim)])
        return self.reduce(label, [HALF] * variables, share, degree)

    def holds(self) -> bool:
        """Whether the equations vanish, in one sum under powers of the last challenge."""
        scalars: dict[Point | str, int] = {}
        for weight, terms in zip(powers(self.weight, len(self.equations)), self.equations, strict=True):
            for k, point in terms:
                scalars[point] = (scalars.get(point, 0) + weight * k) % MODULUS
        return sum_of((k, point) for point, k in scalars.items()) is None
