"""Lookups: every tuple is a row of its table, as one sum of fractions in a tree (docs/scan/lookup.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rag_audit.proofs.backends.reference.digits import Digit, extension, from_the_top, of, regroup
from rag_audit.proofs.backends.reference.extensions import (
    Functional,
    below,
    eq_at,
    eq_table,
    evaluation,
    log2,
    numbers,
)
from rag_audit.proofs.backends.reference.session import Column, Expr, Pairs, Session, total
from rag_audit.relation.field import MODULUS

MAX_SEVERAL, MIN_ALONE, TOGETHER = 12, 9, 3
"""For a tree's variables: the maximum bound in one step, the minimum left unbound, and the number bound at once."""
RANGE_TAG, RANGE = 1, 1 << 16


@dataclass(frozen=True)
class Columns:
    """The sum of factor times column."""

    pairs: Pairs


@dataclass
class Said:
    """An entry with an extension that the prover states: before the last challenge, or by `say` in its turn."""

    say: Callable[[Session], Expr] | None = None
    point: Sequence[int] = ()
    """The point and the stated value, once the lookup is read."""
    value: Expr = field(default_factory=Expr)


Entry = Column | Columns | Said | Sequence[int | Expr] | Sequence[int] | Sequence[Expr]
"""Values are known to both parties, by rows; rows behind them have 0. A range is the rows' own numbers."""


@dataclass(frozen=True)
class Segment:
    """Tuples that are looked up, or the table that they are rows of: with a column of multiplicities, or 1 for a table
    with rows that are each looked up once.

    :param among: the rows of the segment, of which the first `rows` count; 0 if all count
    """

    tag: int
    entries: Sequence[Entry]
    rows: int
    multiplicities: Column | Literal[1] | None = None
    among: int = 0

    @property
    def variables(self) -> int:
        return log2(max(self.rows, self.among))


def in_range(column: Entry, rows: int) -> Segment:
    return Segment(RANGE_TAG, [column], rows)


def ranges(multiplicities: Column) -> Segment:
    """The table of 0..2^16 - 1."""
    return Segment(RANGE_TAG, [range(RANGE)], RANGE, multiplicities)


def _known(values: Sequence[int | Expr], point: Sequence[int], rows: int) -> Expr | int:
    """The extension of the values, over the counting rows."""
    rows = min(rows, len(values))
    if isinstance(values, range):
        return numbers(point, rows)
    return total(zip(eq_table(point, rows), values, strict=False))


def _tree(session: Session, depth: int) -> tuple[list[int], Expr, Expr]:
    """From the root to the leaves: a point, and the values of numerators and denominators there."""
    q, inverse = session.send("lookup root", 2)
    session.product("lookup root", q, inverse, 1)
    several = max(0, min(MAX_SEVERAL, depth - MIN_ALONE))
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
    return [*(x for _, x in known[:1]), *point], p, q


def look_up(session: Session, named: Sequence[Segment]) -> None:
    segments = sorted(named, key=lambda segment: -segment.variables)
    alpha, beta = session.challenge("lookup alpha"), session.challenge("lookup beta")
    point, p, q = _tree(session, log2(sum(1 << segment.variables for segment in segments)))
    claim = [e for segment in segments for e in segment.entries if isinstance(e, Said) and e.say is None]
    for said, value in zip(claim, session.send("query lookups", len(claim)), strict=True):
        said.value = value
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
        if isinstance(segment.multiplicities, Column):
            share.append((segment.multiplicities, -place % MODULUS))
        else:
            parts.append((segment.multiplicities or -1, rows))
        weight = kappa * place
        for entry in segment.entries:
            weight = weight * beta % MODULUS
            if isinstance(entry, Column):
                share.append((entry, -weight % MODULUS))
            elif isinstance(entry, Columns):
                share += [(c, -weight * factor % MODULUS) for c, factor in entry.pairs]
            elif isinstance(entry, Said):
                entry.point, entry.value = low, entry.say(session) if entry.say else entry.value
                parts.append((weight, entry.value))
            else:
                parts.append((weight, _known(entry, low, segment.rows)))
    for functional, pairs in shares.items():
        if pairs:
            (value,) = session.send("lookup columns", 1)
            parts.append((-1, value))
            session.claim(functional, pairs, value)
    session.constraint("lookup leaves", total(parts))
