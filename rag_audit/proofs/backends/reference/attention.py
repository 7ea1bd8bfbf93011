"""Proofs of an attention block of the integer encoder (docs/scan/attention.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    MAX_ROW_BITS,
    MAX_SCALE,
    MAX_WIDTH,
    ROOT_ENTRIES,
    Blocks,
    Dense,
    Norm,
    Remainder,
    activations,
    allowed,
    derived,
    extension,
    halved,
    in_limbs,
    in_range,
    layer_norm,
    limb_tables,
    number,
    of_limbs,
    parts,
    placed,
    say_matrices,
    take,
    weights_at,
    weights_digest,
    widths,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import (
    HALF,
    below,
    dot,
    eq_table,
    evaluation,
    log2,
    powers,
)
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.lookup import Said, Segment, look_up
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

RUN, EXP_TAG = "attention", 15
MAX_HEADS, MAX_HEAD, DISTANCES, ONE = 32, 256, 1 << 13, 1 << 12
HEAD_ENTRIES = 16
MAXIMUM, QUOTIENT, REST, SLACK = range(3), range(3, 5), range(5, 7), range(7, 9)
"""Entries of m + 2^35, N, e and f among the entries of a head at a place."""


@dataclass(frozen=True)
class Weights:
    """The weights of a block with its scales; `exp` has a result for each distance 0..8191.

    :param row_bits: rows of all columns of a run have 2^`row_bits` values
    """

    row_bits: int
    heads: int
    scale_x: int
    scale_q: int
    scale_v: int
    scale_o: int
    queries: Dense
    keys: Dense
    values: Dense
    output: Dense
    norm: Norm
    exp: Sequence[int]

    def __post_init__(self) -> None:
        d, scales = self.width, (self.scale_x, self.scale_q, self.scale_v, self.scale_o)
        limits.require(
            width=2 <= d <= MAX_WIDTH,
            heads=1 <= self.heads <= min(MAX_HEADS, d) and d % self.heads == 0,
            scales=all(0 <= scale <= MAX_SCALE for scale in scales) and self.norm.scale == self.scale_x,
        )
        limits.require(
            components=self.components.bit_count() == 1 and self.components <= MAX_HEAD,
            row_bits=1 <= self.row_bits <= MAX_ROW_BITS,
            queries=self.queries.fits(d, d, self.row_bits),
            keys=self.keys.fits(d, d, self.row_bits),
            values=self.values.fits(d, d, self.row_bits),
            output=self.output.fits(d, d, self.row_bits),
            norm=self.norm.fits(d),
            exp=len(self.exp) == DISTANCES and self.exp[0] == ONE and all(0 <= e <= ONE for e in self.exp),
        )

    @property
    def width(self) -> int:
        return len(self.output.bias)

    @property
    def components(self) -> int:
        """D: components of a head."""
        return self.width // self.heads

    @property
    def residual(self) -> int:
        """The power of two of x in r."""
        return 12 + self.scale_o - self.scale_x

    @property
    def factor(self) -> int:
        """M: 2^19 divided by the root of D, rounded."""
        return isqrt((1 << 40) // self.components) + 1 >> 1

    @property
    def remainders(self) -> list[int]:
        """The bits of the remainders of q, k, v, scores, o and y."""
        of_q, of_v = (self.scale_x + 12 - scale for scale in (self.scale_q, self.scale_v))
        of_o = 30 + self.scale_v - self.scale_o
        return [of_q, of_q, of_v, 2 * self.scale_q + 14, of_o, self.norm.bits]

    @cached_property
    def digest(self) -> bytes:
        scales = (self.scale_x, self.scale_q, self.scale_v, self.scale_o)
        sizes = (self.width, self.heads, *scales, self.row_bits)
        layers = (self.queries, self.keys, self.values, self.output)
        return weights_digest("attention", sizes, layers, self.norm, self.exp)

    def of_head(self, by_head: Sequence[int]) -> list[int]:
        """The value of its head for each component."""
        return [by_head[c // self.components] for c in range(self.width)]


@dataclass(frozen=True)
class Attention:
    """The public values of one block.

    :param marks: the commitment to a mark for each place
    :param inputs: the rows of each column of x
    :param outputs: the rows of each column of y
    """

    context: int
    weights: Weights
    places: int
    marks: Point
    inputs: Sequence[Sequence[Point]]
    outputs: Sequence[Sequence[Point]]

    def __post_init__(self) -> None:
        limits.require(places=allowed(self.places, self.weights.row_bits))
        size = self.weights.width, self.places, self.weights.row_bits
        limits.require(inputs=placed(self.inputs, *size), outputs=placed(self.outputs, *size))


def read_marks(session: Session, column: Column, places: int, texts: int = 1) -> list[Expr]:
    """The hidden marks of the places of each text: 1 up to a place and 0 from there on, if the last is a bit."""
    marks = session.send("marks", places * texts)
    for at_text in range(0, len(marks), places):
        for mark, after in pairwise(marks[at_text : at_text + places]):
            session.product("used places", mark, after, after)
    a = session.challenges("marks", log2(len(marks)))
    session.claim(evaluation(a), [(column, 1)], at(marks, a))
    return marks


def at(values: Sequence[Expr], point: Sequence[int]) -> Expr:
    """The extension of hidden values at a point."""
    return total(zip(eq_table(point, len(values)), values, strict=True))


@dataclass(frozen=True)
class Parts:
    """The columns of a block, without multiplicities; `rests` has the remainders in their order."""

    weights: Weights
    keys: int
    """The places of one text: those that one query attends to."""
    marks: Sequence[Expr]
    """Of all places of all texts."""
    x: Sequence[Column]
    y: Sequence[Column]
    projections: Sequence[Sequence[Column]]
    """q, k, v and o."""
    distances: Sequence[Column]
    exps: Sequence[Column]
    hot: Sequence[Column]
    rests: Sequence[Remainder]
    heads: Sequence[Column]
    roots: Column
    used: Sequence[Said]
    """The derived marks of keys."""

    @property
    def places(self) -> int:
        return len(self.marks)

    @staticmethod
    def entries(weights: Weights, keys: int, texts: int = 1) -> list[int]:
        """The entries of the columns that a prover commits to, for so many texts of `keys` places each."""
        places = keys * texts
        of_places, heads = Blocks(weights.width).entries(places), Blocks(weights.heads)
        of_scores = heads.entries(keys * places)
        sizes = [of_places * 4, of_scores * 3]
        for kind, bits in enumerate(weights.remainders):
            sizes += [of_scores if kind == 3 else of_places] * (len(widths(bits)) - 1)
        sizes += [heads.entries(HEAD_ENTRIES * places), [ROOT_ENTRIES * places]]
        return [size for each in sizes for size in each]

    @classmethod
    def of(
        cls,
        weights: Weights,
        marks: Sequence[Expr],
        x: Sequence[Column],
        y: Sequence[Column],
        sent: Iterator[Column],
        texts: int = 1,
    ) -> Parts:
        """The next columns, in the order of `entries`."""
        width, heads = Blocks(weights.width).count, Blocks(weights.heads).count
        keys = len(marks) // texts
        projections = [take(sent, width) for _ in range(4)]
        distances, exps, hot = (take(sent, heads) for _ in range(3))
        rests = [
            Remainder.of(bits, heads if kind == 3 else width, sent)
            for kind, bits in enumerate(weights.remainders)
        ]
        of_heads, roots, used = take(sent, heads), next(sent), [derived() for _ in range(heads)]
        return cls(
            weights, keys, marks, x, y, projections, distances, exps, hot, rests, of_heads, roots, used
        )  # fmt: skip

    def lookups(self) -> list[Segment]:
        """The lookups of the columns but the range of x."""
        t = log2(self.places)
        m, n = (Blocks(count).variables for count in (self.weights.width, self.weights.heads))
        of_scores = log2(self.keys) + t + n
        segments = [
            Segment(EXP_TAG, [u, e, mark], 1 << of_scores)
            for u, e, mark in zip(self.distances, self.exps, self.used, strict=True)
        ]
        *rests, norm_rest = self.rests
        for kind, rest in enumerate(rests):
            segments += rest.segments(of_scores if kind == 3 else t + m)
        for columns in (*self.projections, self.y):
            segments += in_range(columns, t + m)
        segments += norm_rest.segments(t + m)
        segments += [in_limbs(column, HEAD_ENTRIES * self.places << n) for column in self.heads]
        return [*segments, in_limbs(self.roots, ROOT_ENTRIES * self.places)]

    def claims(self, session: Session) -> None:
        """All claims after the lookup, up to the closing."""
        weights = self.weights
        width, heads = Blocks(weights.width), Blocks(weights.heads)
        point, scores = self.rests[0].tops[0].point, self.rests[3].tops[0].point
        p_t, (s_j, _, s_k, s_a) = point[width.variables :], self._cut(scores)
        by_block = powers(session.challenge("attention blocks"), max(width.count, heads.count))
        by_width, by_heads = by_block[: width.count], by_block[: heads.count]

        labels = ("queries", "keys", "values", "scores", "heads")
        *projections, o_columns = self.projections
        quotients = (*projections, self.distances, o_columns)
        dividends = []
        for kind, (label, columns, rest) in enumerate(zip(labels, quotients, self.rests, strict=False)):
            of_scores = kind == 3
            of_kind, where = (by_heads, scores) if of_scores else (by_width, point)
            scale = -(1 << rest.bits) if of_scores else 1 << rest.bits
            dividend = rest.dividend(session, label, evaluation(where), of_kind, columns, scale)
            half = 0 if of_scores else 1 << rest.bits - 1
            dividends.append(dividend - half * sum(of_kind))
        of_q, of_k, of_v, of_scores_, of_o = dividends
        g = weights_at(width, by_width, point)
        eta = weights_at(heads, by_heads, s_a)
        for mark in self.used:
            session.constraint("key", mark.value - at(self.marks, [*s_j, *s_k]))

        self._maximum(session, scores, by_heads)
        self._scores(session, of_scores_, by_heads, eta)
        b_point, value_place, of_value = self._heads(session, of_o, g, p_t)
        end = layer_norm(session, weights.norm, by_width, point, self.y, self.rests[5], self.roots)

        c = log2(weights.width)
        m, scale = width.variables, weights.scale_x
        layers = (weights.queries, weights.keys, weights.values)
        nu = powers(session.challenge("matrices"), 5)
        projected = (
            of_layer - (dot(g, layer.bias) << scale)
            for of_layer, layer in zip((of_q, of_k, of_v), layers, strict=True)
        )
        residual = end.value - (dot(end.weights, weights.output.bias) << weights.scale_o)
        joint = total(zip(nu, (*projected, residual, of_value), strict=True))
        o, claim = session.reduce("matrices", [HALF] * c, halved(c, joint), 2)
        sent = session.send("matrices", 9)
        x_dense, x_norm, of_heads, of_values, first, weighed, all_, of_first, of_last = sent
        session.product("projections", first, x_dense, of_first)
        last = end.rows(session, weights.output.matrix, o, (weighed, all_))
        session.product("output matrix", last, of_heads, of_last)
        residual_at = extension(end.weights, o) << weights.residual
        by_head = eq_table(b_point, weights.heads)
        of_component = [w * e % MODULUS for w, e in zip(weights.of_head(by_head), g, strict=True)]
        session.constraint(
            "matrices",
            claim
            - of_first
            - nu[3] * of_last
            - nu[3] * residual_at % MODULUS * x_norm
            - nu[4] * extension(of_component, o) % MODULUS * of_values,
        )
        of_matrices = [
            part
            for layer, factor in zip(layers, nu, strict=False)
            for part in layer.matrix.parts(o[m:], by_width, factor)
        ]
        session.claim(evaluation([*point[:m], *o[:m]]), of_matrices, first)
        for columns, place, value in (
            (self.x, p_t, x_dense),
            (self.x, end.place, x_norm),
            (o_columns, end.place, of_heads),
            (projections[2], value_place, of_values),
        ):
            session.claim(evaluation([*o[:m], *place]), parts(columns, o[m:]), value)

    def _cut(self, point: Sequence[int]) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]:
        """A point of scores as coordinates of the key, of the query, of the text and of the head.

        Key and query are places of one text.
        """
        t, n = log2(self.keys), log2(self.places)
        return point[:t], point[t : 2 * t], point[2 * t : t + n], point[t + n :]

    def _maximum(self, session: Session, scores: Sequence[int], by_heads: Sequence[int]) -> None:
        """Entries of hot other than 0 have a used place and the distance 0."""
        count = len(by_heads)
        both, claim = session.reduce("maximum", [*scores, *[HALF] * log2(count)], 0, 2)
        o, o_b = both[: len(scores)], both[len(scores) :]
        hot, distance, out = session.send("maximum", 3)
        o_j, _, o_k, _ = self._cut(o)
        unused = 1 - at(self.marks, [*o_j, *o_k])
        session.product("maximum", hot, distance + below(o_b, count) * unused, out)
        session.constraint("maximum", out - claim)
        weighted = zip(parts(self.hot, o_b), by_heads, strict=True)
        session.claim(evaluation(o), [(column, e * w % MODULUS) for (column, e), w in weighted], hot)
        session.claim(evaluation(o), parts(self.distances, o_b), distance)

    def _scores(
        self,
        session: Session,
        dividend: Expr,
        by_heads: Sequence[int],
        eta: Sequence[int],
    ) -> None:
        """The division of scores at the point of the lookup, reduced to one value of q and one of k."""
        weights, (s_j, s_i, s_k, s_a) = self.weights, self._cut(self.rests[3].tops[0].point)
        width, bits = Blocks(weights.width), self.rests[3].bits

        def read_maxima(text: Sequence[int]) -> Expr:
            (maxima,) = session.send("maxima", 1)
            pairs = list(zip(self.heads, by_heads, strict=True))
            session.claim(number([*s_i, *text, *s_a], HEAD_ENTRIES, MAXIMUM), pairs, maxima)
            return maxima

        several = self.keys < self.places
        maxima = Expr() if several else read_maxima([])
        both, claim = session.reduce("marked scores", [*s_j, *s_k], dividend, 2)
        t = log2(self.keys)
        j, text = both[:t], both[t:]
        if several:
            maxima = read_maxima(text)
        (y,) = session.send("marked scores", 1)
        session.product("marked score", at(self.marks, both), y, claim)
        sum_ = sum(eta)
        known = (sum_ << bits - 1) - (1 << bits) * (maxima - (sum_ << 35))
        c = log2(weights.width)
        share = pow(weights.factor, -1, MODULUS) * halved(c, y - known)
        both, claim = session.reduce("products of heads", [*[HALF] * c, *text], share, 3)
        o, text = both[:c], both[c:]
        query, key, out = session.send("products of heads", 3)
        session.product("score", query, key, out)
        session.constraint("products of heads", extension(weights.of_head(eta), o) * out - claim)
        m = width.variables
        for columns, place, value in (
            (self.projections[0], s_i, query),
            (self.projections[1], j, key),
        ):
            session.claim(evaluation([*o[:m], *place, *text]), parts(columns, o[m:]), value)

    def _heads(
        self, session: Session, dividend: Expr, g: Sequence[int], p_t: Sequence[int]
    ) -> tuple[list[int], list[int], Expr]:
        """The division of o and the normalisers, reduced to one row of v: the coordinates of its heads, its place, and
        the value."""
        h, t = self.weights.heads, log2(self.keys)
        c, n, all_places = log2(h), Blocks(h).variables, log2(self.places)
        chi = session.challenge("normalisers")
        x = powers(chi, h + 1)[1:]
        joint = halved(c, dividend + (sum(x) << 30))
        both, claim = session.reduce("normalisers", [*p_t, *[HALF] * c], joint, 3)
        i, a = both[:all_places], both[all_places:]
        xi = extension(x, a)
        quotient, sums, length, rest, slack, out = session.send("normalisers", 6)
        session.product("normaliser", quotient, sums + xi * length, out)
        session.constraint("normalisers", out + xi * rest - claim)
        used = below(a, h)
        session.constraint("remainders of normalisers", length - used - rest - slack)
        for entries, value in ((QUOTIENT, quotient), (REST, rest), (SLACK, slack)):
            session.claim(number([*i, *a[:n]], HEAD_ENTRIES, entries), parts(self.heads, a[n:]), value)
        row = evaluation([*[HALF] * t, *i, *a[:n]])
        for columns, value in ((self.exps, length), (self.hot, Expr(used))):
            pairs = [(column, (e << t) % MODULUS) for column, e in parts(columns, a[n:])]
            session.claim(row, pairs, value)

        both, claim = session.reduce("weighted sums", [*[HALF] * t, *i[t:], *a], halved(t, sums), 2)
        j, b = both[:all_places], both[all_places:]
        exp, value, out = session.send("weighted sums", 3)
        session.product("weighted sum", exp, value, out)
        session.constraint("weighted sums", out - claim)
        session.claim(evaluation([*j[:t], *i[:t], *j[t:], *b[:n]]), parts(self.exps, b[n:]), exp)
        return b, j, value


def exp_table(exp: Sequence[int], multiplicities: Column) -> Segment:
    """Each distance with its result and the mark 1, and the row of an unused place."""
    return Segment(EXP_TAG, [range(DISTANCES), exp, [1] * DISTANCES], DISTANCES + 1, multiplicities)


def _statement(reader: Reader, claim: Attention) -> None:
    said, weights = reader.transcript, claim.weights
    said.scalar("context", claim.context)
    said.raw("weights", weights.digest)
    said.integers(("places", claim.places), ("width", weights.width), ("heads", weights.heads))
    said.integers(("scale x", weights.scale_x), ("scale q", weights.scale_q))
    said.integers(("scale v", weights.scale_v), ("scale o", weights.scale_o))
    said.points("marks of places", [claim.marks])
    say_matrices(said, claim.inputs, claim.outputs)


def read(claim: Attention, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    _statement(reader, claim)
    weights, places = claim.weights, claim.places
    session = Session(reader, weights.row_bits)
    of_marks = session.column([claim.marks], places)
    entries = places << Blocks(weights.width).variables
    x, y = ([session.column(rows, entries) for rows in columns] for columns in (claim.inputs, claim.outputs))
    limb_bits = of_limbs(weights.remainders)
    tables = [DISTANCES + 1, len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    sent = iter(session.commit("attention columns", Parts.entries(weights, places) + tables))
    marks = read_marks(session, of_marks, places)
    block = Parts.of(weights, marks, x, y, sent)
    of_exp, of_activations, *of_widths = sent
    look_up(
        session,
        [
            *in_range(x, log2(entries)),
            *block.lookups(),
            exp_table(weights.exp, of_exp),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    block.claims(session)
    close(session)
    return session
