"""Index commitments, and the link of a run to a hidden query (docs/scan/index-commitment.md, batch.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.reference.extensions import eq_table, log2
from rag_audit.proofs.backends.reference.group import POINT_BYTES, Point, decode
from rag_audit.proofs.backends.reference.lookup import Said, Segment
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, row_bits

NIBBLES_TAG, PACKED = 3, 63
NIBBLES = [min(row - 7, 7) for row in range(16)]


@dataclass(frozen=True)
class Index:
    """Committed components of all positions: point j R + a is row a of component j."""

    capacity: int
    dimension: int
    points: Sequence[Point]
    digest: bytes

    @classmethod
    def decode(cls, data: bytes, dimension: int, capacity: int) -> Index:
        """:raises EncodingError: another number of points, or one off the curve"""
        rows = (capacity - 1 >> row_bits(capacity)) + 1
        if len(data) != POINT_BYTES * rows * dimension:
            raise EncodingError(
                "the commitment has another length",
                field="points",
                expected=f"{POINT_BYTES * rows * dimension} bytes",
                actual=len(data),
            )
        points = [decode(data[i : i + POINT_BYTES]) for i in range(0, len(data), POINT_BYTES)]
        sizes = capacity.to_bytes(8, "big") + dimension.to_bytes(8, "big")
        return cls(capacity, dimension, points, hashlib.sha256(sizes + data).digest())

    @property
    def row_bits(self) -> int:
        return row_bits(self.capacity)

    def at(self, rho: Sequence[int], weights: Sequence[int]) -> list[tuple[int, Point]]:
        """The sum of weight times component, each at the row point of rho."""
        rows = len(self.points) // self.dimension
        heights = eq_table(rho[self.row_bits :], rows)
        return [
            (w * height, self.points[j * rows + a])
            for j, w in enumerate(weights)
            for a, height in enumerate(heights)
        ]


@dataclass(frozen=True)
class Table:
    """A claim about a column under a combination of a published table's columns (docs/scan/embed.md)."""

    index: Index
    weights: Sequence[int]
    column: Column
    value: Expr

    @classmethod
    def claim(
        cls, session: Session, index: Index, weights: Sequence[int], column: Column, value: Expr
    ) -> Table:
        session.reader.transcript.claim(f"table claim: {session.reader.transcript.label}")
        return cls(index, weights, column, value)


@dataclass
class IndexLink:
    """A run's claims about one hidden query, or about several: commitments, scores, and functionals of (query,
    salt)."""

    index: Index
    queries: Sequence[Point]
    scores: Sequence[Column]
    claims: list[tuple[list[int], list[Expr]]] = field(default_factory=list)
    """Weights of the components and the salt, and the value of each query."""
    said: list[Said] = field(default_factory=list)
    """The lookup entries of each query's components."""

    @classmethod
    def read(cls, session: Session, index: Index, queries: int) -> IndexLink:
        points = [session.reader.point("query") for _ in range(queries)]
        return cls(index, points, [session.column([], index.capacity) for _ in points])

    def lists(self, session: Session) -> list[list[Expr]]:
        """The list of each cq: the salt and the packed elements."""
        d, count = self.index.dimension, len(self.queries)
        places = [range(i, min(i + PACKED, d)) for i in range(0, d, PACKED)]
        sent = session.send("packed queries", count * (1 + len(places)))
        lists = [sent[i : i + 1 + len(places)] for i in range(0, len(sent), 1 + len(places))]
        weights = [[0] * d + [1]]
        weights += [[16 ** (j - own[0]) if j in own else 0 for j in range(d + 1)] for own in places]
        for k, w in enumerate(weights):
            self.claims.append((w, [result[k] for result in lists]))
        shift = 8 * sum(16**i for i in range(PACKED))
        return [[salt, *(element + shift for element in packed)] for salt, *packed in lists]

    def components(self) -> list[Segment]:
        """Segments that look up each query's components."""
        self.said += [Said() for _ in self.queries]
        return [Segment(NIBBLES_TAG, [said], 1 << log2(self.index.dimension)) for said in self.said]

    def functionals(self) -> list[tuple[list[int], list[Expr]]]:
        """The claims. The last one is the extension of the components at the point of the lookup."""
        weights = eq_table(self.said[0].point, self.index.dimension)
        return [*self.claims, ([*weights, 0], [said.value for said in self.said])]


def nibbles(multiplicities: Column) -> Segment:
    return Segment(NIBBLES_TAG, [NIBBLES], len(NIBBLES), multiplicities)
