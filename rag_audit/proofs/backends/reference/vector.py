"""The int4 vector of integer sums, with its hash cq (docs/scan/embed.md, encoder-output.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

from rag_audit.proofs.backends.reference.extensions import Functional, eq_table, evaluation, log2
from rag_audit.proofs.backends.reference.index import NIBBLES, PACKED
from rag_audit.proofs.backends.reference.lookup import Segment
from rag_audit.proofs.backends.reference.poseidon import Call, list_calls
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, limbs, total
from rag_audit.relation.field import MODULUS
from rag_audit.relation.tags import TAG_VECTOR

LIMB_BITS, NORM_BITS, MAX_FACTOR = 12, 16, 1 << 20


@dataclass(frozen=True)
class Size:
    """The public values of a vector.

    :param norm_factor: A
    :param largest: the bound of a sum's magnitude
    """

    dimension: int
    norm_factor: int
    largest: int

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
        """The number of hidden values without the salt."""
        return 3 * self.limbs + 1 + self.elements

    def entries(self) -> list[int]:
        """The entries of e, v, a, b and of the limbs of both distances."""
        return [1 << log2(self.dimension)] * (4 + 2 * self.limbs)


@dataclass(frozen=True)
class Vector:
    """The columns of a vector and its hidden values, each in the order of the page."""

    size: Size
    columns: Sequence[Column]
    hidden: Sequence[Expr]

    def calls(self, session: Session, salt: Expr, cq: int) -> list[Call]:
        """The calls of cq, and the claims about w."""
        shift = 8 * sum(16**i for i in range(PACKED))
        calls = list_calls(session, TAG_VECTOR, [salt, *(x + shift for x in self._packed)], cq)
        session.product("root", self._w, self._w, self._square)
        session.constraint("root", self._number(1) + self._number(2) - 2 * self._w)
        return calls

    def _number(self, which: int) -> Expr:
        """w - 1, the remainder under the root, or its distance from 2 w."""
        m = self.size.limbs
        return total((1 << LIMB_BITS * k, x) for k, x in enumerate(self.hidden[which * m : (which + 1) * m]))

    @property
    def _w(self) -> Expr:
        return self._number(0) + 1

    @property
    def _square(self) -> Expr:
        return self.hidden[3 * self.size.limbs]

    @property
    def _packed(self) -> Sequence[Expr]:
        return self.hidden[3 * self.size.limbs + 1 :]

    def steps(self, tag: int, multiplicities: Column) -> list[Segment]:
        """The lookup of v with both slacks, and its table."""
        rows, slack = 1 << log2(self.size.dimension), self.size.slack
        low = [slack * (x == -7) - (x <= 0) for x in NIBBLES]
        high = [slack * (x == 7) - (x >= 0) for x in NIBBLES]
        return [
            Segment(tag, list(self.columns[1:4]), rows),
            Segment(tag, [NIBBLES, low, high], len(NIBBLES), multiplicities),
        ]

    def limbs(self, tag: int) -> list[Segment]:
        """The lookups of all limbs."""
        rows, of_root = 1 << log2(self.size.dimension), self.hidden[: 3 * self.size.limbs]
        of_columns = (Segment(tag, [limb], rows) for limb in self.columns[4:])
        return [Segment(tag, [of_root], len(of_root)), *of_columns]

    def claims(
        self, session: Session, of_sums: Callable[[Sequence[int], Expr], None] = lambda point, sums: None
    ) -> tuple[list[int], Expr]:
        """All claims after the lookup but those about the origin of e; returns a point of components and e there.

        :param of_sums: makes a claim about e at this point, after the claim about the column e
        """
        d, m = self.size.dimension, self.size.limbs
        e, v, a, b, *each = self.columns
        lower, upper = each[:m], each[m:]
        point = session.challenges("components", log2(d))
        sums, steps, scaled = session.send("components", 3)
        at, double, w = evaluation(point), 2 * self.size.norm_factor, self._w
        session.claim(at, [(e, 1)], sums)
        of_sums(point, sums)
        session.claim(at, [(v, 1)], steps)
        session.product("steps", w, steps, scaled)
        session.claim(at, [*limbs(lower, bits=LIMB_BITS), (a, -1), (e, -double)], w - 2 * scaled)
        session.claim(at, [*limbs(upper, bits=LIMB_BITS), (b, -1), (e, double)], w + 2 * scaled)

        weights = eq_table(session.challenges("packed vector", log2(self.size.elements)), self.size.elements)
        digits = tuple(weights[j // PACKED] * 16 ** (j % PACKED) % MODULUS for j in range(d))
        packed = total(zip(weights, self._packed, strict=True))
        session.claim(Functional((), digits, 1), [(v, 1)], packed)

        norm = pow(1 << NORM_BITS, -1, MODULUS) * (self._square + self._number(1))
        p, claim = session.plain("squares", log2(d), norm, 2)
        (value,) = session.send("squares", 1)
        session.claim(evaluation(p), [(e, 1)], value)
        session.product("squares", value, value, claim)
        return point, sums
