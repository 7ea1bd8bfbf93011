"""Lookups: every tuple is a row of its table, as one sum of fractions in a tree (docs/scan/lookup.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference.digits import Digit, extension, from_the_top, of, regroup
from rag_audit.proofs.reference.extensions import (
    Functional,
    below,
    eq_at,
    eq_table,
    evaluation,
    log2,
    numbers,
)
from rag_audit.proofs.reference.session import Column, Expr, Pairs, Session, total
from rag_audit.relation.field import MODULUS

MOST_SEVERAL, LEAST_ALONE, TOGETHER = 12, 9, 3
"""Of a tree's variables: how many at most are bound together, how many at least are not, and how many at once."""
RANGE_TAG, RANGE_BITS = 1, 16


@dataclass(frozen=True)
class Columns:
    """The sum of factor times column."""

    pairs: Pairs


@dataclass(frozen=True)
class Known:
    """What rows hold that both parties know: the extension at a point, over the rows that count."""

    at: Callable[[Sequence[int], int], Expr | int]


@dataclass(frozen=True)
class Sent:
    """What a prover sends for it in its turn."""

    send: Callable[[Session, Sequence[int], int], Expr]


@dataclass(frozen=True)
class Asked:
    """What a prover sends for it at the point, before the last challenge; it is noted for the link."""

    note: Callable[[Sequence[int], int, Expr], None]


Entry = Columns | Known | Sent | Asked


def column(*columns: Column) -> Columns:
    return Columns([(c, 1) for c in columns])


def public(values: Sequence[int]) -> Known:
    def at(point: Sequence[int], rows: int) -> int:
        weights = eq_table(point, min(rows, len(values)))
        return sum(w * v for w, v in zip(weights, values, strict=False)) % MODULUS

    return Known(at)


def hidden(values: Sequence[Expr]) -> Known:
    def at(point: Sequence[int], rows: int) -> Expr:
        return total(zip(eq_table(point, min(rows, len(values))), values, strict=False))

    return Known(at)


ROW = Known(numbers)


def row_below(m: int) -> Known:
    return Known(lambda point, rows: numbers(point, min(rows, m)))


def mark_below(m: int) -> Known:
    return Known(lambda point, rows: below(point, min(rows, m)))


@dataclass(frozen=True)
class Segment:
    """Tuples that are looked up, or with a column of multiplicities the table that they are rows of."""

    variables: int
    tag: int
    entries: Sequence[Entry]
    rows: int
    multiplicities: Column | None = None


def looked_up(tag: int, entries: Sequence[Entry], rows: int, variables: int | None = None) -> Segment:
    return Segment(log2(rows) if variables is None else variables, tag, entries, rows)


def table(
    variables: int, tag: int, entries: Sequence[Entry], multiplicities: Column, rows: int = -1
) -> Segment:
    return Segment(variables, tag, entries, 1 << variables if rows < 0 else rows, multiplicities)


def ranges(multiplicities: Column) -> Segment:
    """The table of 0..2^16 - 1."""
    return table(RANGE_BITS, RANGE_TAG, [ROW], multiplicities)


def look_up(session: Session, named: Sequence[Segment]) -> None:
    segments = sorted(named, key=lambda segment: -segment.variables)
    depth = log2(sum(1 << segment.variables for segment in segments))
    alpha, beta = session.challenge("lookup alpha"), session.challenge("lookup beta")
    q, inverse = session.send("lookup root", 2)
    session.product("lookup root", q, inverse, 1)
    join = 0
    several = max(0, min(MOST_SEVERAL, depth - LEAST_ALONE))
    p, known, point = Expr(), list[Digit](), list[int]()
    for k in range(depth):
        mu = session.challenge("lookup layer")
        alone, scale = max(k - several, 0), 1
        if k < depth - 1:
            sizes = [1] * alone + from_the_top(min(k, several), TOGETHER)
            known, claim = session.reduce_digits("lookup layer", regroup(known, sizes), mu * p + 2 * q, 2)
        else:
            low, claim = session.reduce_digits("lookup layer", known[:alone], mu * p + 2 * q, 2)
            high, claim = session.plain("lookup layer", k - alone, claim, 3)
            scale = extension(known[alone:], high)
            point = [*(x for _, x in low), *high]
        p0, p1, q0, q1, f0, f1 = session.send("lookup children", 6)
        session.product("lookup layer", mu * p0 + q0, q1, f0)
        session.product("lookup layer", mu * p1 + q1, q0, f1)
        session.constraint("lookup layer", claim - scale * (f0 + f1))
        join = session.challenge("lookup children")
        p, q = ((1 - join) * a + join * b for a, b in ((p0, p1), (q0, q1)))
        known = [*of([join]), *known]
    _leaves(session, segments, [join, *point][:depth], p, q, alpha, beta)


def _leaves(
    session: Session,
    segments: Sequence[Segment],
    point: Sequence[int],
    p: Expr,
    q: Expr,
    alpha: int,
    beta: int,
) -> None:
    count = sum(isinstance(entry, Asked) for segment in segments for entry in segment.entries)
    asked = iter(session.send("query lookups", count))
    kappa = session.challenge("lookup leaves")
    parts: list[tuple[int, Expr | int]] = [(1, p), (kappa, q), (-kappa, 1)]
    shares: dict[Functional, list[tuple[Column, int]]] = {}
    start = 0
    for segment in segments:
        low, high = point[: segment.variables], point[segment.variables :]
        place = eq_at(high, start >> segment.variables)
        start += 1 << segment.variables
        rows = place * below(low, segment.rows) % MODULUS
        parts += [(rows, kappa), (-kappa * rows, alpha - segment.tag)]
        share = shares.setdefault(evaluation(low, segment.rows), [])
        if segment.multiplicities is None:
            parts.append((-rows, 1))
        else:
            share.append((segment.multiplicities, -place % MODULUS))
        weight = kappa * place
        for entry in segment.entries:
            weight = weight * beta % MODULUS
            if isinstance(entry, Columns):
                share += [(c, -weight * factor % MODULUS) for c, factor in entry.pairs]
            elif isinstance(entry, Asked):
                parts.append((weight, value := next(asked)))
                entry.note(low, segment.rows, value)
            elif isinstance(entry, Sent):
                parts.append((weight, entry.send(session, low, segment.rows)))
            else:
                parts.append((weight, entry.at(low, segment.rows)))
    for functional, pairs in shares.items():
        if pairs:
            (value,) = session.send("lookup columns", 1)
            parts.append((-1, value))
            session.claim(functional, pairs, value)
    session.constraint("lookup leaves", total(parts))
