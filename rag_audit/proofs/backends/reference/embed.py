"""Proofs of A1: the query's vector follows from its tokens by the pinned table (docs/scan/embed.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import Functional, eq_table, evaluation, log2
from rag_audit.proofs.backends.reference.index import NIBBLES, PACKED, Index, Table
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import Call, list_calls, permutations
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, limbs, row_bits, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_elements
from rag_audit.relation.tags import TAG_LIST, TAG_QUERY, TAG_VECTOR

RUN = "embed"
TOKENS_TAG, LIMBS_TAG, STEPS_TAG = 1, 2, 3
MAX_TOKENS, MAX_WORDS, MAX_FACTOR = 208, 1 << 15, 1 << 20
LIMB_BITS, TOKEN_BITS, TOKENS_PACKED, NORM_BITS = 12, 15, 16, 16


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
    def slack(self) -> int:
        return 2 * self.norm_factor * 7 * self.tokens

    @property
    def limbs(self) -> int:
        maximum = 2 * isqrt((1 << NORM_BITS) * self.table.dimension * (7 * self.tokens) ** 2) + self.slack
        return -(-maximum.bit_length() // LIMB_BITS)


def _statement(reader: Reader, claim: Embedded) -> None:
    said = reader.transcript
    said.scalar("context", claim.context)
    said.raw("table", claim.table.digest)
    said.integers(("vocabulary", claim.table.capacity - 1), ("dimension", claim.table.dimension))
    said.integers(("tokens", claim.tokens), ("norm factor", claim.norm_factor))
    said.scalars(("hq", claim.hq), ("cq", claim.cq))


def _number(values: Sequence[Expr]) -> Expr:
    return total((1 << LIMB_BITS * k, value) for k, value in enumerate(values))


def _query_call(tokens: Sequence[Expr], used: Sequence[Expr], salt: Expr, hq: int) -> Call:
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
    _statement(reader, claim)
    rows, m, maximum = claim.table, claim.limbs, claim.tokens
    vocabulary, d = rows.capacity - 1, rows.dimension
    n, c = log2(rows.capacity), log2(d)
    session = Session(reader, row_bits(rows.capacity))
    entries = [1 << n, *[1 << c] * (4 + 2 * m), 1 << LIMB_BITS, len(NIBBLES)]
    h, e, v, a, b, *rest, in_limbs, in_steps = session.commit("embedding columns", entries)
    lower, upper = rest[:m], rest[m:]
    elements = -(-d // PACKED)
    sent = session.send("query", 2 + 2 * maximum + 3 * m + 1 + elements)
    salt_q, salt_c = sent[:2]
    tokens, used, sent = sent[2 : 2 + maximum], sent[2 + maximum : 2 + 2 * maximum], sent[2 + 2 * maximum :]
    of_root, square, packed = sent[: 3 * m], sent[3 * m], sent[3 * m + 1 :]
    for u, after in pairwise(used):
        session.product("used places", u, after, after)
    shift = 8 * sum(16**i for i in range(PACKED))
    calls = [_query_call(tokens, used, salt_q, claim.hq)]
    calls += list_calls(session, TAG_VECTOR, [salt_c, *(x + shift for x in packed)], claim.cq)
    w = _number(of_root[:m]) + 1
    left, lacks = _number(of_root[m : 2 * m]), _number(of_root[2 * m :])
    session.product("root", w, w, square)
    session.constraint("root", left + lacks - 2 * w)
    norm = pow(1 << NORM_BITS, -1, MODULUS) * (square + left)
    slack = claim.slack
    low = [slack * (x == -7) - (x <= 0) for x in NIBBLES]
    high = [slack * (x == 7) - (x >= 0) for x in NIBBLES]
    look_up(
        session,
        [
            Segment(TOKENS_TAG, [tokens, used], maximum),
            Segment(TOKENS_TAG, [range(vocabulary), [1] * vocabulary], 1 << n, h),
            Segment(STEPS_TAG, [v, a, b], 1 << c),
            Segment(STEPS_TAG, [NIBBLES, low, high], len(NIBBLES), in_steps),
            Segment(LIMBS_TAG, [range(1 << LIMB_BITS)], 1 << LIMB_BITS, in_limbs),
            Segment(LIMBS_TAG, [of_root], 3 * m),
            *(Segment(LIMBS_TAG, [limb], 1 << c) for limb in (*lower, *upper)),
        ],
    )
    point = session.challenges("components", c)
    sums, steps, scaled = session.send("components", 3)
    at, double = evaluation(point), 2 * claim.norm_factor
    session.claim(at, [(e, 1)], sums)
    known = Table.claim(session, rows, eq_table(point, d), h, sums)
    session.claim(at, [(v, 1)], steps)
    session.product("steps", w, steps, scaled)
    below_it = [*limbs(lower, bits=LIMB_BITS), (a, -1), (e, -double)]
    above_it = [*limbs(upper, bits=LIMB_BITS), (b, -1), (e, double)]
    session.claim(at, below_it, w - 2 * scaled)
    session.claim(at, above_it, w + 2 * scaled)
    weights = eq_table(session.challenges("packed vector", log2(elements)), elements)
    digits = tuple(weights[j // PACKED] * 16 ** (j % PACKED) % MODULUS for j in range(d))
    session.claim(Functional((), digits, 1), [(v, 1)], total(zip(weights, packed, strict=True)))
    _squares(session, e, c, norm)
    permutations(session, calls)
    close(session, table=known)
    return session


def _squares(session: Session, e: Column, variables: int, norm: Expr) -> None:
    """The sum of all squares."""
    p, claim = session.plain("squares", variables, norm, 2)
    (value,) = session.send("squares", 1)
    session.claim(evaluation(p), [(e, 1)], value)
    session.product("squares", value, value, claim)
