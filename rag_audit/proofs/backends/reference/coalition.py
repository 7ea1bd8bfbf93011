"""Coalition proofs: one run over records, and runs over pairs of their blocks (docs/scan/coalition.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import (
    HALF,
    Functional,
    below,
    dot,
    eq,
    eq_at,
    eq_table,
    evaluation,
    log2,
    powers,
)
from rag_audit.proofs.backends.reference.index import NIBBLES, NIBBLES_TAG, PACKED, nibbles
from rag_audit.proofs.backends.reference.limits import require
from rag_audit.proofs.backends.reference.lookup import RANGE, Said, Segment, in_range, look_up, ranges
from rag_audit.proofs.backends.reference.poseidon import known_outputs
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, limbs, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_elements
from rag_audit.relation.tags import TAG_LIST, TAG_VECTOR

RUN, PAIRS = "coalition records", "coalition pairs"
BOUNDS_TAG, DISTANCES_TAG = 2, 4
SALT_LIMBS, SALT_BITS, BLOCK_BITS, PAIRS_A_RUN, REACH = 5, 52, 8, 63, 49
MAX_RECORDS, MAX_DIMENSION, MAX_THETA, MAX_LABEL_BITS = 65_535, 882, 1000, 22


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
        (p, q), maximum = self.theta, _variables(records)
        rules = {
            "records": 1 <= records <= MAX_RECORDS and len(self.accounts) == len(self.first) == records,
            "dimension": 1 <= self.dimension <= MAX_DIMENSION,
            "accounts": 1 <= accounts <= records
            and all(0 <= k < accounts for k in (*self.accounts, *self.tenants)),
            "first": all(0 <= i <= j for j, i in enumerate(self.first)),
            "theta": 0 < p < q <= MAX_THETA,
            "largest": all(1 <= c <= accounts for c in self.largest),
            "class_variables": min(maximum, 9) <= self.u <= min(maximum, 11),
        }
        rules["tenants"] = rules["accounts"] and sum(self.sizes[2:]) <= MAX_LABEL_BITS
        require(**rules)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """r, k, a, t: variables of records, components, accounts and tenants."""
        r, k, a = (_variables(count) for count in (len(self.cq), self.dimension, len(self.tenants)))
        return r, k, a, log2(max(self.tenants) + 1)

    @property
    def s(self) -> int:
        return min(BLOCK_BITS, self.sizes[0])

    @property
    def row_bits(self) -> int:
        r, k, *_ = self.sizes
        return -(-max(r + k, 2 * self.u) // 2) + 3

    @property
    def reach(self) -> int:
        return REACH * self.dimension

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Pairs of blocks with compared records."""
        size = 1 << self.s
        result = {(i, j // size) for j, first in enumerate(self.first) if first < j
                 for i in range(first // size, (j - 1) // size + 1)}  # fmt: skip
        return sorted(result, key=lambda pair: pair[::-1])

    @property
    def runs(self) -> int:
        return -(-len(self.blocks) // PAIRS_A_RUN)


def statement(reader: Reader, claim: Coalition) -> None:
    said = reader.transcript
    said.raw("context", claim.context)
    (p, q), (largest, largest_in_tenant) = claim.theta, claim.largest
    said.integers(
        ("dimension", claim.dimension), ("records", len(claim.cq)), ("accounts", len(claim.tenants))
    )
    for cq, account, first in zip(claim.cq, claim.accounts, claim.first, strict=True):
        said.scalar("cq", cq)
        said.integers(("account", account), ("first", first))
    said.integers(*(("tenant", tenant) for tenant in claim.tenants), ("p", p), ("q", q))
    said.integers(
        ("largest", largest), ("largest in a tenant", largest_in_tenant), ("class variables", claim.u)
    )


@dataclass(frozen=True)
class Committed:
    """The columns of the run over records that runs over pairs take."""

    vectors: Column
    thresholds: Column
    classes: Sequence[Column]
    labels: Sequence[Column]


def read(claim: Coalition, reader: Reader) -> tuple[Session, Committed]:
    statement(reader, claim)
    session, (r, k, a, t), u = Session(reader, claim.row_bits), claim.sizes, claim.u
    dots, count = log2(claim.reach + 1), len(claim.cq)
    entries = [
        1 << r + k,
        1 << log2(SALT_LIMBS * count),
        *[1 << r] * u,
        *[1 << a] * a,
        1 << u,
        *[1 << 2 * u] * 4,
    ]
    entries += [1 << a, 1 << a + t, RANGE, 1 << dots, len(NIBBLES)]
    vectors, salts, *rest = session.commit("records", entries)
    classes, labels, rest = rest[:u], rest[u : u + a], rest[u + a :]
    norms, thresholds, bounds, *slack = rest[:5]
    lack, lack_of_tenants, in_ranges, in_bounds, in_nibbles = rest[5:]
    p, q = claim.theta
    bound = [min((q * x) ** 2 // p**2 + 1, claim.reach**2 + 1) if x else 0 for x in range(1 << dots)]
    look_up(
        session,
        [
            Segment(NIBBLES_TAG, [vectors], 1 << r + k),
            nibbles(in_nibbles),
            Segment(BOUNDS_TAG, [thresholds, bounds], 1 << 2 * u),
            Segment(BOUNDS_TAG, [range(1 << dots), bound], 1 << dots, in_bounds),
            ranges(in_ranges),
            in_range(lack, 1 << a),
            in_range(lack_of_tenants, 1 << a + t),
            *(in_range(limb, 1 << 2 * u) for limb in slack),
        ],
    )
    y = session.challenges("thresholds", 2 * u)
    left, right, both = session.send("thresholds", 3)
    session.product("thresholds", left, right, both)
    session.claim(evaluation(y[:u]), [(norms, 1)], left)
    session.claim(evaluation(y[u:]), [(norms, 1)], right)
    session.claim(evaluation(y), [(bounds, 1), *limbs(slack)], both)
    _norms(session, claim, vectors, norms, classes)
    y = session.challenges("counts", a + t)
    (x,) = session.send("counts", 1)
    session.claim(evaluation(y[:a]), [(lack, 1)], x)
    (x_of_tenants,) = session.send("counts", 1)
    session.claim(evaluation(y), [(lack_of_tenants, 1)], x_of_tenants)
    c, c_tenant = claim.largest
    by_tenant = eq_table(y[a:])
    terms = [
        ([1] * len(claim.tenants), y[:a], c - x),
        ([by_tenant[tenant] for tenant in claim.tenants], y[:a], c_tenant - x_of_tenants),
    ]
    numbers(session, labels, a, terms, proved=True)
    _openings(session, claim, vectors, salts)
    close(session)
    return session, Committed(vectors, thresholds, classes, labels)


def _norms(
    session: Session, requested: Coalition, vectors: Column, norms: Column, classes: Sequence[Column]
) -> None:
    """The squares of a record's components sum to the norm of its class."""
    r, k, *_ = requested.sizes
    tau = session.challenges("norms", r)
    (whole,) = session.send("norms", 1)
    share = pow(HALF, k, MODULUS) * whole
    p, claim = session.reduce("norms", [HALF] * k + tau, share, 2)
    value, square = session.send("component", 2)
    session.product("component", value, value, square)
    session.constraint("norms", claim - square)
    session.claim(evaluation(p), [(vectors, 1)], value)
    p, (norm, result) = sum_of_products(session, "norms of classes", requested.u, whole)
    session.claim(evaluation(p), [(norms, 1)], norm)
    numbers(session, classes, r, [(eq_table(tau, len(requested.cq)), p, result)], proved=True)


def _openings(session: Session, claim: Coalition, vectors: Column, salts: Column) -> None:
    """cq are the hashes of salts and packed vectors."""
    count, d = len(claim.cq), claim.dimension
    p, words = known_outputs(session, claim.cq)
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
    places = [range(i, min(i + PACKED, stop)) for start, stop in ((0, d), (d, 1 << claim.sizes[1]))
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
    """Sums of weight times eq of a point and the number formed by the bits, with the claim that the bits are bits."""
    n, z = len(terms), len(bits)
    chi = powers(session.challenge("numbers"), n + z)
    tau = session.challenges("bits", variables) if proved else []
    value = total((c, result) for c, (_, _, result) in zip(chi, terms, strict=False))
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
    for column, value in zip(bits, held, strict=True):
        session.claim(evaluation(p), [(column, 1)], value)


def read_pairs(
    requested: Coalition, committed: Committed, records_digest: bytes, number: int, reader: Reader
) -> Session:
    """One run over pairs, `number` from 0. It depends on the run over records, through the digest of that run's
    proof."""
    statement(reader, requested)
    reader.transcript.raw("records", records_digest)
    reader.transcript.integer("run", number)
    session, s, (r, k, a, _) = Session(reader, requested.row_bits), requested.s, requested.sizes
    distances = 1 << log2(4 * requested.reach + 1)
    (counted,) = session.commit("pairs", [distances])
    pairs = requested.blocks[number * PAIRS_A_RUN : (number + 1) * PAIRS_A_RUN]
    said = [Said(lambda session: session.send("derived entry", 1)[0]) for _ in pairs]
    looked_up = [Segment(DISTANCES_TAG, [entry], 1 << 2 * s) for entry in said]
    look_up(session, [Segment(DISTANCES_TAG, [range(distances)], distances, counted), *looked_up])
    earlier, later = said[0].point[:s], said[0].point[s:]
    rho = powers(session.challenge("blocks"), len(pairs))
    of_thresholds, of_products, of_labels = session.send("pairs", 3)
    outside = [
        (weight, entry.value - requested.reach * (1 - _compared(requested, *pair, earlier, later)))
        for weight, pair, entry in zip(rho, pairs, said, strict=True)
    ]
    session.constraint("pairs", of_thresholds - of_products + requested.reach * of_labels - total(outside))

    def bilinear(inner: int, value: Expr) -> tuple[Sequence[int], list[tuple[list[int], Expr]]]:
        """For a weighted sum over pairs of X times Y: the inner point, and for both factors the records' point and
        the value."""
        p, (left, right) = sum_of_products(session, "earlier records", inner + r - s, value)
        inside, at = p[:inner], p[inner:]
        row = [0] * (1 << r - s)
        for (i, j), weight in zip(pairs, rho, strict=True):
            row[j] = (row[j] + eq_at(at, i) * weight) % MODULUS
        outside, claim = session.plain("later records", r - s, right, 2)
        (result,) = session.send("later records", 1)
        session.constraint("later records", dot(row, eq_table(outside)) * result - claim)
        return inside, [([*earlier, *at], left), ([*later, *outside], result)]

    inner, both = bilinear(k, of_products)
    for records, value in both:
        session.claim(evaluation([*inner, *records]), [(committed.vectors, 1)], value)
    inner, both = bilinear(a, of_labels)
    terms = [(_by_account(requested, eq_table(records)), inner, value) for records, value in both]
    numbers(session, committed.labels, a, terms, proved=False)
    p, (threshold, classes) = sum_of_products(session, "thresholds of pairs", 2 * requested.u, of_thresholds)
    session.claim(evaluation(p), [(committed.thresholds, 1)], threshold)
    _, both = bilinear(0, classes)
    halves = p[: requested.u], p[requested.u :]
    terms = [(eq_table(records), half, value) for half, (records, value) in zip(halves, both, strict=True)]
    numbers(session, committed.classes, r, terms, proved=False)
    close(session)
    return session


def _by_account(claim: Coalition, weights: Sequence[int]) -> list[int]:
    """For each account the sum of its records' weights."""
    result = [0] * len(claim.tenants)
    for account, weight in zip(claim.accounts, weights, strict=False):
        result[account] = (result[account] + weight) % MODULUS
    return result


def _compared(
    claim: Coalition, i_block: int, j_block: int, earlier: Sequence[int], later: Sequence[int]
) -> int:
    """The sum of eq over the records of two blocks that are compared."""
    size = 1 << claim.s
    x, y = eq_table(earlier), eq_table(later)
    start, result = i_block * size, 0
    for j in range(j_block * size, min((j_block + 1) * size, len(claim.cq))):
        inside = range(max(claim.first[j], start), min(j, start + size))
        result += y[j - j_block * size] * sum(x[i - start] for i in inside)
    return result % MODULUS
