"""Proofs of drawn columns: noise is DGS-1 and Bernoulli bits are draws below a bound, under committed seeds
(docs/scan/noise.md, docs/scan/bernoulli-bits.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import Functional, below, eq_table, evaluation, log2
from rag_audit.proofs.backends.reference.lookup import RANGE, Segment, in_range, look_up, ranges
from rag_audit.proofs.backends.reference.poseidon import Call, Stream, permutations
from rag_audit.proofs.backends.reference.session import Column, Expr, Pairs, Session, joined, limbs, row_bits
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.relation.field import MODULUS
from rag_audit.relation.noise import alias_table
from rag_audit.relation.tags import TAG_NOISE, TAG_SEED

TABLE_TAG, TABLE_ROWS, BYTE, BINS = 2, 512, 256, 128
DRAWS, WORDS, DRAW_BITS, WORD_DRAWS = 80, 16, 40, 5
HIGH_LIMBS, REST_LIMBS, UPPER = 4, 6, 160
KEY_CALLS = 2
"""The calls that make a slot's key."""


@dataclass(frozen=True)
class Seed:
    """A slot and the commitment to the seed that its key is made of."""

    commitment: int
    beacon: int
    slot: int

    def absorb(self, transcript: Transcript) -> None:
        named = ("seed commitment", self.commitment), ("beacon", self.beacon), ("slot", self.slot)
        transcript.scalars(*named)


@dataclass(frozen=True)
class Words:
    """The draws of one slot, and the columns with the upper parts of its words."""

    blocks: int
    draw: Pairs
    upper: Sequence[Column]

    def in_ranges(self, of_draws: Sequence[Column]) -> list[Segment]:
        """Limbs of draws and of words, each in its range."""
        draws, words = DRAWS * self.blocks, WORDS * self.blocks
        return [in_range(c, draws) for c in of_draws] + [in_range(c, words) for c in self.upper]


def sizes(draws: int) -> tuple[int, list[int]]:
    """Number of blocks for the draws, and the entries of the columns above them."""
    blocks = -(-draws // DRAWS)
    return blocks, [WORDS * blocks] * (HIGH_LIMBS + REST_LIMBS)


def seed_and_key(session: Session, seeds: Sequence[Seed]) -> tuple[list[Expr], list[Call]]:
    sent = session.send("seed and key", 3 * len(seeds))
    calls: list[Call] = []
    for k, seed in enumerate(seeds):
        s0, s1, key = sent[3 * k : 3 * k + 3]
        calls += [
            Call([TAG_SEED, s0, s1], seed.commitment),
            Call([TAG_NOISE, s0, s1, seed.beacon, seed.slot], key),
        ]
    return sent[2::3], calls


def word_claims(
    session: Session, records: Sequence[Words], keys: Sequence[Expr], calls: Sequence[Call]
) -> None:
    blocks = records[0].blocks
    words = WORDS * blocks
    a = session.challenges("words", 4 + log2(blocks + KEY_CALLS))
    p = session.challenges("words", log2(len(records)))
    zeta = session.challenge("upper parts")
    d, h, r = session.send("words", 3)
    weights = eq_table(p, len(records))
    shifts = [1 << DRAW_BITS * k for k in range(WORD_DRAWS)]
    shifts[-1] += zeta
    strided = Functional(tuple(a), tuple(shifts), words)
    session.claim(strided, joined(weights, [record.draw for record in records]), d)
    high, rest = (
        [limbs(x.upper[part]) for x in records] for part in (slice(HIGH_LIMBS), slice(HIGH_LIMBS, None))
    )
    for columns, value in ((high, h), (rest, r)):
        session.claim(evaluation(a, words), joined(weights, columns), value)
    maximum = ((MODULUS >> UPPER) - 1) * below(a, words) * sum(weights) % MODULUS
    last = maximum - r - (1 << DRAW_BITS) * h
    value = d - zeta * last + (1 << WORD_DRAWS * DRAW_BITS) * h
    permutations(session, calls, Stream(keys, blocks, a[:4], p, a[4:], value))


@dataclass(frozen=True)
class Drawn:
    """The columns of one slot.

    :param column: the drawn values
    :param looked: each draw's byte, and the table's values for it
    :param t: limbs of the rest of each draw
    :param d: limbs of a distance that is not negative
    """

    column: Column
    looked: Sequence[Column]
    t: Sequence[Column]
    d: Sequence[Column]
    words: Words


Chosen = Sequence[tuple[Callable[[Drawn], Pairs], Expr]]
"""Columns of each slot, and the prover's claimed values of them at the point of the choice."""


@dataclass(frozen=True)
class Noise:
    """Noise of one slot, or of several in one run: DGS-1 by its alias table."""

    context: bytes
    seeds: Sequence[Seed]
    capacity: int
    gains: Sequence[int]
    RUN, CHOICE, LABEL, COLUMNS = "noise proof", "choice", "noise", "noise columns"
    LOOKED, VALUE = 4, 3
    """How many columns are looked up in the table, the byte among them, and which has the value of a draw."""

    def __post_init__(self) -> None:
        count = len(self.seeds)
        limits.require(capacity=limits.positions(self.capacity), gains=limits.noised(self.gains))
        limits.require(slots=limits.batch(count, self.capacity, self.gains))

    def absorb(self, said: Transcript) -> None:
        said.integers(("capacity", self.capacity), ("gain count", len(self.gains)))
        said.integers(*(("gain", gain) for gain in self.gains))
        known = alias_table()
        for threshold, alias in zip(known.thresholds, known.aliases, strict=True):
            said.integers(("threshold", threshold), ("alias", alias))

    def table(self) -> Sequence[tuple[int, ...]]:
        """Byte, choice, threshold and value."""
        known, rows = alias_table(), []
        for v in range(TABLE_ROWS):
            byte, choice = v % BYTE, v // BYTE
            j = byte % BINS
            magnitude = j if choice else known.aliases[j]
            rows.append((byte, choice, known.thresholds[j], -magnitude if byte >= BINS else magnitude))
        return rows

    def start(self, tau: Sequence[int], draws: int) -> int:
        return 0

    def choose(self, session: Session, claim: Expr) -> Chosen:
        c, threshold, low, distance, chosen = session.send("choice", 5)
        session.product("choice", 2 * c - 1, threshold - low, chosen)
        session.constraint("choice", chosen - c - distance - claim)
        return [
            (lambda slot: [(slot.looked[1], 1)], c),
            (lambda slot: [(slot.looked[2], 1)], threshold),
            (lambda slot: limbs(slot.t), low),
            (lambda slot: limbs(slot.d), distance),
        ]


@dataclass(frozen=True)
class BernoulliBits:
    """Coins of one slot: the draws that are below a bound."""

    context: bytes
    seed: Seed
    capacity: int
    bound: int
    RUN, CHOICE, LABEL, COLUMNS = "Bernoulli proof", "coins below the bound", "coins", "coin columns"
    LOOKED, VALUE = 3, 1
    gains = (1,)

    def __post_init__(self) -> None:
        limits.require(capacity=limits.positions(self.capacity), bound=1 <= self.bound < 1 << DRAW_BITS)

    @property
    def seeds(self) -> Sequence[Seed]:
        return [self.seed]

    def absorb(self, said: Transcript) -> None:
        said.integers(("capacity", self.capacity), ("bound", self.bound))

    def table(self) -> Sequence[tuple[int, ...]]:
        """Byte, coin, and whether the byte is smaller than the bound's."""
        return [(x % BYTE, x // BYTE, int(x % BYTE < self.bound % BYTE)) for x in range(TABLE_ROWS)]

    def start(self, tau: Sequence[int], draws: int) -> int:
        return self.bound // BYTE * below(tau, draws)

    def choose(self, session: Session, claim: Expr) -> Chosen:
        c, a, distance, chosen = session.send(self.CHOICE, 4)
        session.product(self.CHOICE, c, 2 * a + (2 * (self.bound // BYTE) - 1), chosen)
        session.constraint(self.CHOICE, chosen - a - distance - claim)
        return [
            (lambda slot: [(slot.looked[1], 1)], c),
            (lambda slot: [(slot.looked[2], 1), *((limb, -k) for limb, k in limbs(slot.t))], a),
            (lambda slot: limbs(slot.d), distance),
        ]


@dataclass(frozen=True)
class Drawing:
    """The draws of slots within a run; the run claims what the slots' columns have to do with them.

    :param tables: multiplicities of ranges and of the table
    """

    of: Noise | BernoulliBits
    blocks: int
    slots: Sequence[Drawn]
    tables: tuple[Column, Column]
    keys: Sequence[Expr]
    calls: Sequence[Call]

    @classmethod
    def sent(
        cls, session: Session, of: Noise | BernoulliBits, entries: int, given: Sequence[Column] = ()
    ) -> Drawing:
        """The columns, and the keys.

        :param entries: the number of entries of each slot's own column, if it is sent
        :param given: the slots' own columns, if the statement has them
        """
        blocks, upper = sizes(of.capacity * len(of.gains))
        own_column = [] if given else [entries]
        looked, each = of.LOOKED, [*own_column, *[DRAWS * blocks] * (of.LOOKED + 4), *upper]
        *own, in_ranges, in_table = session.commit(of.COLUMNS, each * len(of.seeds) + [RANGE, TABLE_ROWS])
        slots: list[Drawn] = []
        for i in range(0, len(own), len(each)):
            column, *rest = [*given[len(slots) : len(slots) + 1], *own[i : i + len(each)]]
            t, d, above = rest[looked : looked + 2], rest[looked + 2 : looked + 4], rest[looked + 4 :]
            words = Words(blocks, [(rest[0], 1), *limbs(t, 8)], above)
            slots.append(Drawn(column, rest[:looked], t, d, words))
        return cls(of, blocks, slots, (in_ranges, in_table), *seed_and_key(session, of.seeds))

    def segments(self) -> list[Segment]:
        """Every draw in the table, and every limb in its range."""
        in_ranges, in_table = self.tables
        return [
            *(Segment(TABLE_TAG, slot.looked, DRAWS * self.blocks) for slot in self.slots),
            ranges(in_ranges),
            Segment(TABLE_TAG, list(zip(*self.of.table(), strict=True)), TABLE_ROWS, in_table),
            *(segment for slot in self.slots for segment in slot.words.in_ranges([*slot.t, *slot.d])),
        ]

    def compare(self, session: Session) -> None:
        count, draws = len(self.slots), DRAWS * self.blocks
        lanes = log2(count)
        tau = session.challenges(self.of.CHOICE, lanes + log2(draws))
        start = self.of.start(tau[lanes:], draws) * sum(eq_table(tau[:lanes], count)) % MODULUS
        p, claim = session.reduce(self.of.CHOICE, tau, start, 2)
        chosen, weights = self.of.choose(session, claim), eq_table(p[:lanes], count)
        for of, value in chosen:
            session.claim(evaluation(p[lanes:]), joined(weights, map(of, self.slots)), value)

    def prove_words(self, session: Session, other_calls: Sequence[Call] = ()) -> None:
        """The draws are the streams', and the run's other calls have their outputs."""
        calls = [*self.calls, *other_calls]
        word_claims(session, [slot.words for slot in self.slots], self.keys, calls)


def read(drawing: Noise | BernoulliBits, reader: Reader) -> tuple[Session, list[Column]]:
    """The whole run: its claims, and each slot's column."""
    capacity, count = drawing.capacity, len(drawing.seeds)
    reader.transcript.raw("context", drawing.context)
    reader.transcript.integer("slot count", count)
    for seed in drawing.seeds:
        seed.absorb(reader.transcript)
    drawing.absorb(reader.transcript)
    session = Session(reader, row_bits(capacity, count))
    draws = Drawing.sent(session, drawing, capacity)
    look_up(session, draws.segments())
    draws.compare(session)
    a = session.challenges(drawing.LABEL, log2(capacity))
    weights = eq_table(session.challenges(drawing.LABEL, log2(count)), count)
    (y,) = session.send(drawing.LABEL, 1)
    session.claim(evaluation(a), joined(weights, [[(slot.column, 1)] for slot in draws.slots]), y)
    strided = Functional(tuple(a), tuple(drawing.gains), capacity)
    values: list[Pairs] = [[(slot.looked[drawing.VALUE], 1)] for slot in draws.slots]
    session.claim(strided, joined(weights, values), y)
    draws.prove_words(session)
    close(session)
    return session, [slot.column for slot in draws.slots]
