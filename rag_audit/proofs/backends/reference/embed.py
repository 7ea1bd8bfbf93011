"""Proofs of A1: the query's vector follows from its tokens by the pinned table (docs/scan/embed.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import eq_table, log2
from rag_audit.proofs.backends.reference.index import NIBBLES, Index, Table
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import Call, permutations
from rag_audit.proofs.backends.reference.session import Expr, Session, row_bits, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.proofs.backends.reference.vector import LIMB_BITS, MAX_FACTOR, Size, Vectors
from rag_audit.relation.poseidon import hash_elements
from rag_audit.relation.tags import TAG_LIST, TAG_QUERY

RUN = "embed"
TOKENS_TAG, LIMBS_TAG, STEPS_TAG = 1, 2, 3
MAX_TOKENS, MAX_WORDS = 208, 1 << 15
TOKEN_BITS, TOKENS_PACKED = 15, 16


@dataclass(frozen=True)
class Embedded:
    """The public values of one proof of A1; the table has a row more than the vocabulary."""

    context: int
    table: Index
    tokens: int
    norm_factor: int
    hq: int
    cq: int

    def __post_init__(self) -> None:
        limits.require(
            tokens=1 <= self.tokens <= MAX_TOKENS,
            vocabulary=2 <= self.table.capacity <= MAX_WORDS + 1,
            dimension=limits.components(self.table.dimension),
            norm_factor=1 <= self.norm_factor <= MAX_FACTOR,
        )

    @property
    def vector(self) -> Size:
        """The size of the vector."""
        return Size(self.table.dimension, self.norm_factor, 7 * self.tokens)


def _statement(reader: Reader, claim: Embedded) -> None:
    said = reader.transcript
    said.scalar("context", claim.context)
    said.raw("table", claim.table.digest)
    said.integers(("vocabulary", claim.table.capacity - 1), ("dimension", claim.table.dimension))
    said.integers(("tokens", claim.tokens), ("norm factor", claim.norm_factor))
    said.scalars(("hq", claim.hq), ("cq", claim.cq))


def query_call(tokens: Sequence[Expr], used: Sequence[Expr], salt: Expr, hq: int) -> Call:
    """hq as one call. The number of elements in the list selects its start."""
    count = -(-len(tokens) // TOKENS_PACKED)
    starts = [hash_elements(TAG_LIST, TAG_QUERY, 2 + k) for k in range(1, count + 1)]
    start = total(
        [(1, starts[0])] + [(starts[k] - starts[k - 1], used[TOKENS_PACKED * k]) for k in range(1, count)]
    )
    packed = [
        total((1 << TOKEN_BITS * i, t) for i, t in enumerate(tokens[at : at + TOKENS_PACKED]))
        for at in range(0, len(tokens), TOKENS_PACKED)
    ]
    return Call([start, salt, total((1, u) for u in used), *packed], hq)


def read(claim: Embedded, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    _statement(reader, claim)
    rows, size, maximum = claim.table, claim.vector, claim.tokens
    vocabulary, n = rows.capacity - 1, log2(rows.capacity)
    session = Session(reader, row_bits(rows.capacity))
    entries = [1 << n, *size.entries(), 1 << LIMB_BITS, len(NIBBLES)]
    h, *columns, of_limbs, of_steps = session.commit("embedding columns", entries)
    sent = session.send("query", 2 + 2 * maximum + size.hidden)
    salt_q, salt_c = sent[:2]
    tokens, used = (sent[at : at + maximum] for at in (2, 2 + maximum))
    for u, after in pairwise(used):
        session.product("used places", u, after, after)
    vector = Vectors(size, columns, sent[2 + 2 * maximum :])
    calls = [query_call(tokens, used, salt_q, claim.hq), *vector.calls(session, [salt_c], [claim.cq])]
    look_up(
        session,
        [
            Segment(TOKENS_TAG, [tokens, used], maximum),
            Segment(TOKENS_TAG, [range(vocabulary), [1] * vocabulary], 1 << n, h),
            *vector.steps(STEPS_TAG, of_steps),
            Segment(LIMBS_TAG, [range(1 << LIMB_BITS)], 1 << LIMB_BITS, of_limbs),
            *vector.limbs(LIMBS_TAG),
        ],
    )
    known: list[Table] = []

    def of_table(point: Sequence[int], sums: Expr) -> None:
        weights = eq_table(point, rows.dimension)
        known.append(Table.claim(session, rows, weights, h, sums))

    vector.claims(session, of_table)
    permutations(session, calls)
    close(session, table=known[0])
    return session
