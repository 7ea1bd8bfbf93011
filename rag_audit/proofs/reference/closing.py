"""Closing a run: everything that it has claimed is proved at once (docs/scan/closing.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_audit.proofs.reference.extensions import (
    HALF,
    Functional,
    dot,
    eq_table,
    log2,
    powers,
)
from rag_audit.proofs.reference.group import G, H, Point, Term, U
from rag_audit.proofs.reference.session import MESSAGE_VALUES, Column, Expr, Session
from rag_audit.proofs.reference.session import total as combined
from rag_audit.relation.field import MODULUS


@dataclass
class Opening:
    """One vector that is opened at the end: what it is made of, at which point, to which single."""

    point: Sequence[int]
    terms: list[Term] = field(default_factory=list)
    value: Point = None


def close(session: Session) -> None:
    """Reads the end of a proof: the session then has all equations of the run."""
    opening = _columns(session) if session.claims else None
    factors = _products(session) if session.products else None
    _constraints(session)
    if factors is not None:
        _product(session, *factors)
    if opening is not None:
        _open(session, opening)
    session.weight = session.challenge("equation weight")
    session.reader.end()


def _columns(session: Session) -> Opening:
    """Step 1: all column claims become one about one value at one point."""
    gamma = powers(session.challenge("column claims"), len(session.claims))
    groups: dict[Functional, dict[Column, int]] = {}
    for power, (_, functional, pairs, _) in zip(gamma, session.claims, strict=True):
        group = groups.setdefault(functional, {})
        for column, factor in pairs:
            group[column] = (group.get(column, 0) + power * factor) % MODULUS
    claim = combined((power, value) for power, (_, _, _, value) in zip(gamma, session.claims, strict=True))
    variables = max([session.row_bits, *(c.variables for group in groups.values() for c in group)])
    rho, claim = session.plain("column claims", variables, claim, 2)
    values = session.send("columns at the point", len(groups))
    weights = [functional.at(rho) for functional in groups]
    session.constraint("column claims", claim - combined(zip(weights, values, strict=True)))
    delta = powers(session.challenge("column groups"), len(groups))
    opened = session.single("opened value")
    session.constraint("opened value", combined(zip(delta, values, strict=True)) - opened)
    opening = Opening(rho[: session.row_bits], value=session.singles[-1])
    heights = eq_table(rho[session.row_bits :])
    for power, group in zip(delta, groups.values(), strict=True):
        for column, factor in group.items():
            opening.terms += [
                (power * factor * heights[a] % MODULUS, point) for a, point in enumerate(column.rows)
            ]
    return opening


def _products(session: Session) -> tuple[Point, Point, Point]:
    """Step 3: all products become one of three singles."""
    tau = session.challenges("products", log2(len(session.products)))
    p, claim = session.reduce("products", tau, 0, 2)
    weights = eq_table(p, len(session.products))
    sides = zip(*session.products, strict=True)
    left, right, out = (combined(zip(weights, side, strict=True)) for side in sides)
    singles = [session.single(label) for label in ("left factor", "right factor", "product")]
    session.constraint("left factor", left - singles[0])
    session.constraint("right factor", right - singles[1])
    session.constraint("products", claim - singles[2] + out)
    first, second, third = session.singles[-3:]
    return first, second, third


def _constraints(session: Session) -> None:
    """Step 4: all constraints become one about the messages' values, and that is opened."""
    z = powers(session.challenge("constraints"), len(session.constraints))
    whole: Expr = combined((power, expr) for power, (_, expr) in zip(z, session.constraints, strict=True))
    places = {place: k for place, k in whole.terms.items() if place >= 0}
    held: list[Term] = [(-whole.constant, U)]
    held += [(-k, session.singles[-1 - place]) for place, k in whole.terms.items() if place < 0]
    width = max(log2(len(session.messages)) + 4, 4)
    point: list[int] = []
    for _ in range(width):
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
    """A Schnorr proof that what `out` holds is the product of what `left` and `right` hold."""
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
            raise ArithmeticError("a fold's challenge is 0")  # one proof in 2^254, which is false
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
