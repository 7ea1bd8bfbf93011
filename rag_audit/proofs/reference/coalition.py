"""Coalition proofs: one run over records, and runs over pairs of their blocks (docs/scan/coalition.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_audit.proofs.reference.closing import close
from rag_audit.proofs.reference.extensions import (
    HALF,
    Functional,
    below,
    dot,
    eq,
    eq_table,
    evaluation,
    log2,
    powers,
)
from rag_audit.proofs.reference.index import NIBBLE_BITS, NIBBLES_TAG, PACKED, nibbles
from rag_audit.proofs.reference.limits import require
from rag_audit.proofs.reference.lookup import (
    RANGE_TAG,
    ROW,
    column,
    look_up,
    looked_up,
    public,
    ranges,
    table,
)
from rag_audit.proofs.reference.poseidon import known_outputs
from rag_audit.proofs.reference.session import Column, Expr, Session, limbs, total
from rag_audit.proofs.reference.transcript import Reader
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import TAG_LIST, TAG_VECTOR, hash_elements

RUN = "coalition records"
BOUNDS_TAG = 2
SALT_LIMBS, SALT_BITS, BLOCK_BITS, PAIRS_A_RUN, REACH = 5, 52, 8, 63, 49
MOST_RECORDS, MOST_DIMENSION, MOST_THETA, MOST_LABEL_BITS = 65_535, 882, 1000, 22


def _variables(count: int) -> int:
    return max(1, log2(count))


@dataclass(frozen=True)
class Coalition:
    """The public values of a coalition proof; u is log2 of the norms that it has room for.

    :raises EncodingError: a value is out of range
    """

    context: bytes
    dimension: int
    cq: Sequence[int]
    accounts: Sequence[int]
    tenants: Sequence[int]
    first: Sequence[int]
    theta: tuple[int, int]
    largest: tuple[int, int]
    u: int

    def __post_init__(self) -> None:
        records, accounts = len(self.cq), len(self.tenants)
        (p, q), most = self.theta, _variables(records)
        rules = {
            "records": 1 <= records <= MOST_RECORDS and len(self.accounts) == len(self.first) == records,
            "dimension": 1 <= self.dimension <= MOST_DIMENSION,
            "accounts": 1 <= accounts <= records
            and all(0 <= k < accounts for k in (*self.accounts, *self.tenants)),
            "first": all(0 <= i <= j for j, i in enumerate(self.first)),
            "theta": 0 < p < q <= MOST_THETA,
            "largest": all(1 <= c <= accounts for c in self.largest),
            "class_variables": min(most, 9) <= self.u <= min(most, 11),
        }
        rules["tenants"] = rules["accounts"] and self.a + self.t <= MOST_LABEL_BITS
        require(**rules)

    @property
    def r(self) -> int:
        return _variables(len(self.cq))

    @property
    def k(self) -> int:
        return _variables(self.dimension)

    @property
    def a(self) -> int:
        return _variables(len(self.tenants))

    @property
    def t(self) -> int:
        return log2(max(self.tenants) + 1)

    @property
    def s(self) -> int:
        return min(BLOCK_BITS, self.r)

    @property
    def row_bits(self) -> int:
        return -(-max(self.r + self.k, 2 * self.u) // 2) + 3

    @property
    def reach(self) -> int:
        return REACH * self.dimension

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Pairs of blocks in which some records are compared."""
        size = 1 << self.s
        found = {(i, j // size) for j, first in enumerate(self.first) if first < j
                 for i in range(first // size, (j - 1) // size + 1)}  # fmt: skip
        return sorted(found, key=lambda pair: pair[::-1])

    @property
    def runs(self) -> int:
        return -(-len(self.blocks) // PAIRS_A_RUN)


def statement(reader: Reader, asked: Coalition) -> None:
    said = reader.transcript
    said.raw("context", asked.context)
    said.integer("dimension", asked.dimension)
    said.integer("records", len(asked.cq))
    said.integer("accounts", len(asked.tenants))
    for cq, account, first in zip(asked.cq, asked.accounts, asked.first, strict=True):
        said.scalar("cq", cq)
        said.integer("account", account)
        said.integer("first", first)
    for tenant in asked.tenants:
        said.integer("tenant", tenant)
    for label, value in zip(
        ("p", "q", "largest", "largest in a tenant"), (*asked.theta, *asked.largest), strict=True
    ):
        said.integer(label, value)
    said.integer("class variables", asked.u)


@dataclass(frozen=True)
class Committed:
    """The columns of the run over records that runs over pairs take."""

    vectors: Column
    thresholds: Column
    classes: Sequence[Column]
    labels: Sequence[Column]


def read(asked: Coalition, reader: Reader) -> tuple[Session, Committed]:
    statement(reader, asked)
    session, (r, k, a, t, u) = Session(reader, asked.row_bits), (asked.r, asked.k, asked.a, asked.t, asked.u)
    dots, count = log2(asked.reach + 1), len(asked.cq)
    entries = [
        1 << r + k,
        1 << log2(SALT_LIMBS * count),
        *[1 << r] * u,
        *[1 << a] * a,
        1 << u,
        *[1 << 2 * u] * 4,
    ]
    entries += [1 << a, 1 << a + t, 1 << 16, 1 << dots, 1 << NIBBLE_BITS]
    vectors, salts, *rest = session.commit("records", entries)
    classes, labels, rest = rest[:u], rest[u : u + a], rest[u + a :]
    norms, thresholds, bounds, *slack = rest[:5]
    lack, lack_of_tenants, in_ranges, in_bounds, in_nibbles = rest[5:]
    p, q = asked.theta
    bound = [min((q * x) ** 2 // p**2 + 1, asked.reach**2 + 1) if x else 0 for x in range(1 << dots)]
    look_up(
        session,
        [
            looked_up(NIBBLES_TAG, [column(vectors)], 1 << r + k),
            nibbles(in_nibbles),
            looked_up(BOUNDS_TAG, [column(thresholds), column(bounds)], 1 << 2 * u),
            table(dots, BOUNDS_TAG, [ROW, public(bound)], in_bounds),
            ranges(in_ranges),
            looked_up(RANGE_TAG, [column(lack)], 1 << a),
            looked_up(RANGE_TAG, [column(lack_of_tenants)], 1 << a + t),
            *(looked_up(RANGE_TAG, [column(limb)], 1 << 2 * u) for limb in slack),
        ],
    )
    y = session.challenges("thresholds", 2 * u)
    left, right, both = session.send("thresholds", 3)
    session.product("thresholds", left, right, both)
    session.claim(evaluation(y[:u]), [(norms, 1)], left)
    session.claim(evaluation(y[u:]), [(norms, 1)], right)
    session.claim(evaluation(y), [(bounds, 1), *limbs(slack)], both)
    _norms(session, asked, vectors, norms, classes)
    y = session.challenges("counts", a + t)
    (x,) = session.send("counts", 1)
    session.claim(evaluation(y[:a]), [(lack, 1)], x)
    (x_of_tenants,) = session.send("counts", 1)
    session.claim(evaluation(y), [(lack_of_tenants, 1)], x_of_tenants)
    c, c_tenant = asked.largest
    by_tenant = eq_table(y[a:])
    terms = [
        ([1] * len(asked.tenants), y[:a], c - x),
        ([by_tenant[tenant] for tenant in asked.tenants], y[:a], c_tenant - x_of_tenants),
    ]
    numbers(session, labels, a, terms, proved=True)
    _openings(session, asked, vectors, salts)
    close(session)
    return session, Committed(vectors, thresholds, classes, labels)


def _norms(
    session: Session, asked: Coalition, vectors: Column, norms: Column, classes: Sequence[Column]
) -> None:
    """The squares of a record's components sum to the norm of its class."""
    tau = session.challenges("norms", asked.r)
    (whole,) = session.send("norms", 1)
    share = pow(HALF, asked.k, MODULUS) * whole
    p, claim = session.reduce("norms", [HALF] * asked.k + tau, share, 2)
    value, square = session.send("component", 2)
    session.product("component", value, value, square)
    session.constraint("norms", claim - square)
    session.claim(evaluation(p), [(vectors, 1)], value)
    p, (norm, found) = sum_of_products(session, "norms of classes", asked.u, whole)
    session.claim(evaluation(p), [(norms, 1)], norm)
    numbers(session, classes, asked.r, [(eq_table(tau, len(asked.cq)), p, found)], proved=True)


def _openings(session: Session, asked: Coalition, vectors: Column, salts: Column) -> None:
    """cq are the hashes of salts and packed vectors."""
    count, d = len(asked.cq), asked.dimension
    p, words = known_outputs(session, asked.cq)
    elements, inside = -(-d // PACKED), below(p, count)
    session.constraint("hash padding", words[0])
    session.constraint(
        "start of a list", words[1] - inside * hash_elements(TAG_LIST, TAG_VECTOR, 1 + elements)
    )
    for word in words[3 + elements :]:
        session.constraint("end of a list", word)
    strided = Functional(tuple(p), tuple(1 << SALT_BITS * x for x in range(SALT_LIMBS)), count)
    session.claim(strided, [(salts, 1)], words[2])
    eta = session.challenge("elements")
    places = [range(i, min(i + PACKED, stop)) for start, stop in ((0, d), (d, 1 << asked.k))
              for i in range(start, stop, PACKED)]  # fmt: skip
    weights = powers(eta, len(places))
    digits = tuple(
        w * 16**x % MODULUS for w, own in zip(weights, places, strict=True) for x in range(len(own))
    )
    shift = 8 * sum(16**i for i in range(PACKED)) * inside
    value = total((w, word - shift) for w, word in zip(weights, words[3 : 3 + elements], strict=False))
    session.claim(Functional(tuple(p), digits, count), [(vectors, 1)], value)


Numbered = tuple[Sequence[int], Sequence[int], Expr]


def sum_of_products(
    session: Session, label: str, variables: int, value: Expr
) -> tuple[list[int], tuple[Expr, Expr]]:
    p, claim = session.plain(label, variables, value, 2)
    left, right, both = session.send(label, 3)
    session.product(label, left, right, both)
    session.constraint(label, claim - both)
    return p, (left, right)


def numbers(
    session: Session, bits: Sequence[Column], variables: int, terms: Sequence[Numbered], *, proved: bool
) -> None:
    """Sums of weight times eq of a point and the number that the bits make, the bits' own claim beside them."""
    n, z = len(terms), len(bits)
    chi = powers(session.challenge("numbers"), n + z)
    tau = session.challenges("bits", variables) if proved else []
    value = total((c, found) for c, (_, _, found) in zip(chi, terms, strict=False))
    p, claim = session.plain("numbers", variables, value, max(z + 1, 3))
    sent = session.send("numbers", z * (1 + proved + n))
    held, sent = sent[:z], sent[z:]
    parts: list[tuple[int, Expr | int]] = [(-1, claim)]
    if proved:
        squares, sent = sent[:z], sent[z:]
        weight = eq(tau, p)
        for c, f, square in zip(chi[n:], held, squares, strict=True):
            session.product("bits", f, f, square)
            parts.append((weight * c, square - f))
    at = eq_table(p)
    for i, (c, (weights, point, _)) in enumerate(zip(chi, terms, strict=False)):
        before = Expr(1)
        for f, x, after in zip(held, point, sent[i * z : (i + 1) * z], strict=True):
            session.product("numbers", before, (2 * x - 1) * f + (1 - x), after)
            before = after
        parts.append((c * dot(weights, at[: len(weights)]), before))
    session.constraint("numbers", total(parts))
    session.claimed(evaluation(p), bits, held)
