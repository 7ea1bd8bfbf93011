"""The int4 vector of integer sums, with its hash cq (docs/scan/embed.md, encoder-output.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

from rag_audit.proofs.backends.reference.extensions import HALF, Functional, eq_table, evaluation, log2
from rag_audit.proofs.backends.reference.index import NIBBLES, PACKED
from rag_audit.proofs.backends.reference.lookup import Segment
from rag_audit.proofs.backends.reference.poseidon import Call, list_calls
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, limbs, total
from rag_audit.relation.field import MODULUS
from rag_audit.relation.tags import TAG_VECTOR

LIMB_BITS, NORM_BITS, MAX_FACTOR = 12, 16, 1 << 20


@dataclass(frozen=True)
class Size:
    """The public values of vectors.

    :param norm_factor: A
    :param largest: the bound of a sum's magnitude
    :param count: the number of vectors, a power of two; component j of vector k is entry j + 2^c k of a column
    """

    dimension: int
    norm_factor: int
    largest: int
    count: int = 1

    @property
    def slack(self) -> int:
        """S."""
        return 2 * self.norm_factor * self.largest

    @property
    def limbs(self) -> int:
        """The number of limbs of w - 1, and of each distance."""
        maximum = 2 * isqrt((1 << NORM_BITS) * self.dimension * self.largest**2) + self.slack
        return -(-maximum.bit_length() // LIMB_BITS)

    @property
    def elements(self) -> int:
        """The number of packed elements."""
        return -(-self.dimension // PACKED)

    @property
    def hidden(self) -> int:
        """The number of hidden values of one vector without the salt."""
        return 3 * self.limbs + 1 + self.elements

    def entries(self) -> list[int]:
        """The entries of e, v, a, b and of the limbs of both distances."""
        return [self.count << log2(self.dimension)] * (4 + 2 * self.limbs)


@dataclass(frozen=True)
class Values:
    """The hidden values of one vector, in the order of the page."""

    size: Size
    hidden: Sequence[Expr]

    def number(self, which: int) -> Expr:
        """w - 1, the remainder under the root, or its distance from 2 w."""
        m = self.size.limbs
        return total((1 << LIMB_BITS * k, x) for k, x in enumerate(self.hidden[which * m : (which + 1) * m]))

    @property
    def w(self) -> Expr:
        return self.number(0) + 1

    @property
    def of_root(self) -> Sequence[Expr]:
        """The limbs of the three numbers."""
        return self.hidden[: 3 * self.size.limbs]

    @property
    def square(self) -> Expr:
        return self.hidden[3 * self.size.limbs]

    @property
    def packed(self) -> Sequence[Expr]:
        return self.hidden[3 * self.size.limbs + 1 :]

    def calls(self, session: Session, salt: Expr, cq: int) -> list[Call]:
        """The calls of cq, and the claims about w."""
        shift = 8 * sum(16**i for i in range(PACKED))
        calls = list_calls(session, TAG_VECTOR, [salt, *(x + shift for x in self.packed)], cq)
        session.product("root", self.w, self.w, self.square)
        session.constraint("root", self.number(1) + self.number(2) - 2 * self.w)
        return calls


@dataclass(frozen=True)
class Vectors:
    """The columns of vectors and their hidden values, one vector's after another's."""

    size: Size
    columns: Sequence[Column]
    hidden: Sequence[Expr]

    @property
    def each(self) -> list[Values]:
        n = self.size.hidden
        return [Values(self.size, self.hidden[k * n : (k + 1) * n]) for k in range(self.size.count)]

    def calls(self, session: Session, salts: Sequence[Expr], hashes: Sequence[int]) -> list[Call]:
        """The calls of each cq, and the claims about each w."""
        of = zip(self.each, salts, hashes, strict=True)
        return [call for values, salt, cq in of for call in values.calls(session, salt, cq)]

    def steps(self, tag: int, multiplicities: Column) -> list[Segment]:
        """The lookup of v with both slacks, and its table."""
        rows, slack = self.size.count << log2(self.size.dimension), self.size.slack
        low = [slack * (x == -7) - (x <= 0) for x in NIBBLES]
        high = [slack * (x == 7) - (x >= 0) for x in NIBBLES]
        return [
            Segment(tag, list(self.columns[1:4]), rows),
            Segment(tag, [NIBBLES, low, high], len(NIBBLES), multiplicities),
        ]

    def limbs(self, tag: int) -> list[Segment]:
        """The lookups of all limbs."""
        rows = self.size.count << log2(self.size.dimension)
        of_root = [limb for values in self.each for limb in values.of_root]
        of_columns = (Segment(tag, [limb], rows) for limb in self.columns[4:])
        return [Segment(tag, [of_root], len(of_root)), *of_columns]

    def claims(
        self, session: Session, of_sums: Callable[[Sequence[int], Expr], None] = lambda point, sums: None
    ) -> tuple[list[int], Expr]:
        """All claims after the lookup but those about the origin of e; returns a point of components and vectors, and e
        there.

        :param of_sums: makes a claim about e at this point, after the claim about the column e
        """
        d, m, count = self.size.dimension, self.size.limbs, self.size.count
        e, v, a, b, *each = self.columns
        lower, upper = each[:m], each[m:]
        point = session.challenges("components", log2(d))
        sent = session.send("components", 3 * count)
        among = session.challenges("vectors", log2(count))
        by_vector, all_values = eq_table(among, count), self.each
        sums, steps, scaled = (
            total(zip(by_vector, sent[k * count : (k + 1) * count], strict=True)) for k in range(3)
        )
        point = [*point, *among]
        at, double = evaluation(point), 2 * self.size.norm_factor
        session.claim(at, [(e, 1)], sums)
        of_sums(point, sums)
        session.claim(at, [(v, 1)], steps)
        for k, values in enumerate(all_values):
            session.product("steps", values.w, sent[count + k], sent[2 * count + k])
        w = total((share, values.w) for share, values in zip(by_vector, all_values, strict=True))
        session.claim(at, [*limbs(lower, bits=LIMB_BITS), (a, -1), (e, -double)], w - 2 * scaled)
        session.claim(at, [*limbs(upper, bits=LIMB_BITS), (b, -1), (e, double)], w + 2 * scaled)

        of_elements = log2(self.size.elements)
        both = session.challenges("packed vector", of_elements + log2(count))
        weights, vectors = eq_table(both[:of_elements], self.size.elements), both[of_elements:]
        digits = [weights[j // PACKED] * 16 ** (j % PACKED) % MODULUS for j in range(d)]
        if count > 1:
            digits += [0] * ((1 << log2(d)) - d)
        packed = total(
            (share * weight, element)
            for share, values in zip(eq_table(vectors, count), all_values, strict=True)
            for weight, element in zip(weights, values.packed, strict=True)
        )
        session.claim(Functional(tuple(vectors), tuple(digits), count), [(v, 1)], packed)

        norm = pow(1 << NORM_BITS, -1, MODULUS)
        squares = total(
            (share * norm, values.square + values.number(1))
            for share, values in zip(by_vector, all_values, strict=True)
        )
        c = log2(d)
        p, claim = session.reduce("squares", [*[HALF] * c, *among], halved(c, squares), 2)
        (value,) = session.send("squares", 1)
        session.claim(evaluation(p), [(e, 1)], value)
        session.product("squares", value, value, claim)
        return point, sums


def halved(variables: int, claim: Expr) -> Expr:
    """The share of one entry of a plain sum."""
    return pow(HALF, variables, MODULUS) * claim
