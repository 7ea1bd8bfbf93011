"""The runs over pairs of a coalition proof: near records have one label (docs/scan/coalition.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference.closing import close
from rag_audit.proofs.reference.coalition import (
    PAIRS_A_RUN,
    Coalition,
    Committed,
    numbers,
    statement,
    sum_of_products,
)
from rag_audit.proofs.reference.extensions import dot, eq_at, eq_table, evaluation, log2, powers
from rag_audit.proofs.reference.lookup import ROW, Sent, look_up, looked_up, table
from rag_audit.proofs.reference.session import Expr, Session, total
from rag_audit.proofs.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

RUN = "coalition pairs"
DISTANCES_TAG = 4


@dataclass(frozen=True)
class _Blocks:
    """Weights of the run's pairs of blocks: sums over records of two blocks go block by block."""

    weights: dict[tuple[int, int], int]
    variables: int

    def bilinear(self, session: Session, inner: int, value: Expr) -> tuple[list[int], list[int], Expr, Expr]:
        """From a weighted sum over pairs of blocks of X times Y: points of both, and what X and Y have there."""
        p, (left, right) = sum_of_products(session, "earlier records", inner + self.variables, value)
        at = p[inner:]
        row = [0] * (1 << self.variables)
        for (i, j), weight in self.weights.items():
            row[j] = (row[j] + eq_at(at, i) * weight) % MODULUS
        later, claim = session.plain("later records", self.variables, right, 2)
        (found,) = session.send("later records", 1)
        session.constraint("later records", dot(row, eq_table(later)) * found - claim)
        return p, later, left, found


def read(
    asked: Coalition, committed: Committed, records_digest: bytes, number: int, reader: Reader
) -> Session:
    """One run over pairs, `number` from 0, behind the run over records whose proof has this digest."""
    statement(reader, asked)
    reader.transcript.raw("records", records_digest)
    reader.transcript.integer("run", number)
    session, s = Session(reader, asked.row_bits), asked.s
    distances = log2(4 * asked.reach + 1)
    (counted,) = session.commit("pairs", [1 << distances])
    pairs = asked.blocks[number * PAIRS_A_RUN : (number + 1) * PAIRS_A_RUN]
    values: list[Expr] = []
    point: list[int] = []

    def derived(session: Session, at: Sequence[int], rows: int) -> Expr:
        point[:] = at
        values.append(session.send("derived entry", 1)[0])
        return values[-1]

    named = [table(distances, DISTANCES_TAG, [ROW], counted)]
    named += [looked_up(DISTANCES_TAG, [Sent(derived)], 1 << 2 * s) for _ in pairs]
    look_up(session, named)
    earlier, later = point[:s], point[s:]
    rho = powers(session.challenge("blocks"), len(pairs))
    blocks = _Blocks(dict(zip(pairs, rho, strict=True)), asked.r - s)
    of_thresholds, of_products, of_labels = session.send("pairs", 3)
    outside = [
        (weight, value - asked.reach * (1 - _compared(asked, i, j, earlier, later)))
        for weight, (i, j), value in zip(rho, pairs, values, strict=True)
    ]
    session.constraint("pairs", of_thresholds - of_products + asked.reach * of_labels - total(outside))
    _products(session, asked, committed, blocks, earlier, later, of_products)
    _labels(session, asked, committed, blocks, earlier, later, of_labels)
    _thresholds(session, asked, committed, blocks, earlier, later, of_thresholds)
    close(session)
    return session


def _compared(
    asked: Coalition, i_block: int, j_block: int, earlier: Sequence[int], later: Sequence[int]
) -> int:
    """The sum of eq over the records of two blocks that are compared."""
    size = 1 << asked.s
    x, y = eq_table(earlier), eq_table(later)
    start, found = i_block * size, 0
    for j in range(j_block * size, min((j_block + 1) * size, len(asked.cq))):
        inside = range(max(asked.first[j], start), min(j, start + size))
        found += y[j - j_block * size] * sum(x[i - start] for i in inside)
    return found % MODULUS


def _products(
    session: Session,
    asked: Coalition,
    committed: Committed,
    blocks: _Blocks,
    earlier: Sequence[int],
    later: Sequence[int],
    value: Expr,
) -> None:
    p, at, left, right = blocks.bilinear(session, asked.k, value)
    inner, outer = p[: asked.k], p[asked.k :]
    for where, found in (([*earlier, *outer], left), ([*later, *at], right)):
        session.claim(evaluation([*inner, *where]), [(committed.vectors, 1)], found)


def _labels(
    session: Session,
    asked: Coalition,
    committed: Committed,
    blocks: _Blocks,
    earlier: Sequence[int],
    later: Sequence[int],
    value: Expr,
) -> None:
    p, at, left, right = blocks.bilinear(session, asked.a, value)
    inner, outer = p[: asked.a], p[asked.a :]
    terms = []
    for where, found in (([*earlier, *outer], left), ([*later, *at], right)):
        weights = [0] * len(asked.tenants)
        for account, weight in zip(asked.accounts, eq_table(where), strict=False):
            weights[account] = (weights[account] + weight) % MODULUS
        terms.append((weights, inner, found))
    numbers(session, committed.labels, asked.a, terms, proved=False)


def _thresholds(
    session: Session,
    asked: Coalition,
    committed: Committed,
    blocks: _Blocks,
    earlier: Sequence[int],
    later: Sequence[int],
    value: Expr,
) -> None:
    p, (found, classes) = sum_of_products(session, "thresholds of pairs", 2 * asked.u, value)
    session.claim(evaluation(p), [(committed.thresholds, 1)], found)
    outer, at, left, right = blocks.bilinear(session, 0, classes)
    terms = [
        (eq_table([*earlier, *outer]), p[: asked.u], left),
        (eq_table([*later, *at]), p[asked.u :], right),
    ]
    numbers(session, committed.classes, asked.r, terms, proved=False)
