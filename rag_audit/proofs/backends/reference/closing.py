"""Closing a run: one proof of all of its claims (docs/scan/closing.md, index-commitment.md, batch.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_audit._internal.errors import InvalidProof
from rag_audit.proofs.backends.reference.extensions import (
    HALF,
    Entries,
    Functional,
    dot,
    eq_table,
    log2,
    powers,
)
from rag_audit.proofs.backends.reference.group import G, H, Point, Q, Term, U
from rag_audit.proofs.backends.reference.index import IndexLink, Table
from rag_audit.proofs.backends.reference.session import MESSAGE_VALUES, Column, Expr, Session, total
from rag_audit.relation.field import MODULUS


@dataclass(frozen=True)
class Opening:
    """A vector that is opened at the end: its components, its point, and the single with its value."""

    terms: Sequence[Term]
    point: Sequence[int]
    value: Point


def close(session: Session, link: IndexLink | None = None, table: Table | None = None) -> None:
    """Reads the end of a proof: the session then has all equations of the run."""
    openings = _columns(session, link, table) if session.claims else []
    factors = _products(session) if session.products else None
    _constraints(session)
    if factors is not None:
        _product(session, *factors)
    for opening in openings:
        _open(session, opening)
    session.weight = session.challenge("equation weight")
    session.reader.end()


def _columns(session: Session, link: IndexLink | None, table: Table | None) -> list[Opening]:
    """Steps 1 and 2: all column claims become one about one value at one point."""
    gamma = powers(session.challenge("column claims"), len(session.claims) + 1)
    groups: dict[Functional | Entries | None, dict[Column, int]] = {}
    parts: list[tuple[int, Expr | int]] = []
    for power, (functional, pairs, value) in zip(gamma, session.claims, strict=False):
        parts.append((power, value))
        group = groups.setdefault(functional, {})
        for column, factor in pairs:
            group[column] = (group.get(column, 0) + power * factor) % MODULUS
    variables = max([session.row_bits, *(c.variables for group in groups.values() for c in group)])
    if table:
        parts.append((gamma[-1], table.value))
        groups[None] = {table.column: gamma[-1]}
        variables = max(variables, log2(table.index.capacity))
    rho, claim = session.plain("column claims", variables, total(parts), 2)
    values = session.send("columns at the point", len(groups))
    known = session.reader.scalar("table") if table else 0
    weights = [functional.at(rho) if functional else known for functional in groups]
    session.constraint("column claims", claim - total(zip(weights, values, strict=True)))
    delta = powers(session.challenge("column groups"), len(groups) + 1)
    factors: dict[Column, int] = {}
    for power, group in zip(delta, groups.values(), strict=False):
        for column, factor in group.items():
            factors[column] = (factors.get(column, 0) + power * factor) % MODULUS
    opened = total(zip(delta, values, strict=False)) + (delta[-1] * known if table else 0)
    apart: list[Expr] = []
    if link:
        apart = session.send("columns apart", len(link.scores))
        opened -= total((factors.pop(c), s) for c, s in zip(link.scores, apart, strict=True))
    pinned = {column: factors.pop(column, 0) for column in session.pinned}
    if pinned:
        opened -= session.single("pinned value")
    session.constraint("opened value", opened - session.single("opened value"))
    *_, single = session.singles
    opening = _rows(factors, rho, session.row_bits, single)
    if table:
        known_terms = [(delta[-1] * k, point) for k, point in table.index.at(rho, table.weights)]
        opening = replace(opening, terms=[*opening.terms, *known_terms])
    openings = [opening]
    if pinned:
        openings.append(_rows(pinned, rho, session.pinned_bits, session.singles[-2]))
    if link:
        openings.append(_linked(session, link, rho, apart))
    return openings


def _rows(factors: dict[Column, int], rho: Sequence[int], row_bits: int, value: Point) -> Opening:
    """Columns with their factors, in rows of 2^`row_bits` values."""
    low, high = rho[:row_bits], rho[row_bits:]
    terms = [
        (factor * height, point)
        for column, factor in factors.items()
        for height, point in zip(eq_table(high, len(column.rows)), column.rows, strict=True)
    ]
    return Opening(terms, low, value)


def _linked(session: Session, link: IndexLink, rho: Sequence[int], apart: Sequence[Expr]) -> Opening:
    """All queries, combined under powers of one challenge."""
    weights = powers(session.challenge("linked records"), len(link.queries))
    singles = []
    for parts in (apart, *(values for _, values in link.functionals())):
        single = session.single("linked value")
        session.constraint("linked value", total(zip(weights, parts, strict=True)) - single)
        singles.append(session.singles[-1])
    value, *others = singles
    query = list(zip(weights, link.queries, strict=True))
    scores = _link(session, link, rho, query, others)
    return Opening([(1, scores)], rho[: link.index.row_bits], value)


def _link(
    session: Session, link: IndexLink, rho: Sequence[int], query: Sequence[Term], singles: Sequence[Point]
) -> Point:
    """The query's commitment, the scores' row and the singles commit to one vector; returns the row's commitment."""
    reader, d = session.reader, link.index.dimension
    for i in range(len(singles)):
        reader.transcript.claim(f"link: {i}")
    scores = reader.point("scores")
    masks = [reader.point("link") for _ in range(len(singles) + 2)]
    e = session.challenge("link")
    x = [reader.scalar("link") for _ in range(d + 3 + len(singles))]
    session.equations.append(
        [(x[j], Q(j)) for j in range(d + 1)]
        + [(x[d + 1], H), (-1, masks[0])]
        + [(-e * k, point) for k, point in query]
    )
    components = link.index.at(rho, x[:d])
    session.equations.append([*components, (x[d + 2], H), (-e, scores), (-1, masks[1])])
    for i, ((weights, _), single) in enumerate(zip(link.functionals(), singles, strict=True)):
        response = dot(weights, x[: d + 1])
        session.equations.append([(response, U), (x[d + 3 + i], H), (-e, single), (-1, masks[2 + i])])
    return scores


def _products(session: Session) -> tuple[Point, Point, Point]:
    """Step 3: all products become one of three singles."""
    tau = session.challenges("products", log2(len(session.products)))
    p, claim = session.reduce("products", tau, 0, 2)
    weights = eq_table(p, len(session.products))
    sides = zip(*session.products, strict=True)
    left, right, out = (total(zip(weights, side, strict=True)) for side in sides)
    singles = [session.single(label) for label in ("left factor", "right factor", "product")]
    session.constraint("left factor", left - singles[0])
    session.constraint("right factor", right - singles[1])
    session.constraint("products", claim - singles[2] + out)
    first, second, third = session.singles[-3:]
    return first, second, third


def _constraints(session: Session) -> None:
    """Step 4: all constraints become one about the messages' values, and that is opened."""
    z = powers(session.challenge("constraints"), len(session.constraints))
    whole = total((power, expr) for power, expr in zip(z, session.constraints, strict=True))
    places = {place: k for place, k in whole.terms.items() if place >= 0}
    held: list[Term] = [(-whole.constant, U)]
    held += [(-k, session.singles[-1 - place]) for place, k in whole.terms.items() if place < 0]
    point: list[int] = []
    for _ in range(max(log2(len(session.messages)), 0) + 4):
        linear, square = (session.reader.point("constraint round") for _ in range(2))
        s = session.challenge("constraint round")
        held = [(k * HALF % MODULUS, x) for k, x in held] + [(s - HALF, linear), (s * s - HALF, square)]
        point.append(s)
    point.reverse()  # rounds go from the highest bit down
    weights = eq_table(point)
    at = sum(k * weights[place] for place, k in places.items()) % MODULUS
    first, second = (session.reader.point("message opening") for _ in range(2))
    c = session.challenge("message opening")
    x = [session.reader.scalar("message opening") for _ in range(MESSAGE_VALUES + 2)]
    heights = eq_table(point[4:], len(session.messages))
    session.equations.append(
        [(x[k], G(k)) for k in range(MESSAGE_VALUES)]
        + [(x[16], H), (-1, first)]
        + [(-c * e, m) for e, m in zip(heights, session.messages, strict=True)]
    )
    value = at * dot(eq_table(point[:4]), x[:MESSAGE_VALUES])
    session.equations.append([(value, U), (x[17], H), (-1, second)] + [(-c * k, p) for k, p in held])


def _product(session: Session, left: Point, right: Point, out: Point) -> None:
    """A Schnorr proof that the value in `out` is the product of the values in `left` and `right`."""
    masks = [session.reader.point("product") for _ in range(3)]
    c = session.challenge("product")
    x = [session.reader.scalar("product") for _ in range(5)]
    session.equations += [
        [(x[0], U), (x[1], H), (-c, left), (-1, masks[0])],
        [(x[0], right), (x[2], H), (-c, out), (-1, masks[1])],
        [(x[3], U), (x[4], H), (-c, right), (-1, masks[2])],
    ]


def _open(session: Session, opening: Opening) -> None:
    """Step 5: the combined rows, under a mask, by folds of half the length."""
    reader, rho = session.reader, opening.point
    masks = [reader.point("column opening") for _ in range(2)]
    c = session.challenge("column opening")
    blinding, value_blinding = reader.scalar("column blinding"), reader.scalar("value blinding")
    mu = session.challenge("inner product")
    terms: list[Term] = [(1, masks[0]), (mu, masks[1]), (-(blinding + mu * value_blinding), H)]
    terms += [(c * k, point) for k, point in opening.terms] + [(mu * c, opening.value)]
    folds = [0] * len(rho)
    for i in reversed(range(len(rho))):
        left, right = reader.point("fold"), reader.point("fold")
        folds[i] = session.challenge("fold")
        if not folds[i]:
            raise InvalidProof("a fold's challenge is 0", field="proof")  # one proof in 2^254
        terms += [(folds[i], left), (pow(folds[i], -1, MODULUS), right)]
    a = reader.scalar("inner product")
    scale = [1]
    for u in folds:
        scale += [s * u % MODULUS for s in scale]
    terms += [(-a * s, G(k)) for k, s in enumerate(scale)]
    functional = 1
    for x, u in zip(rho, folds, strict=True):
        functional = functional * (1 - x + u * x) % MODULUS
    session.equations.append([*terms, (-mu * a * functional, U)])
