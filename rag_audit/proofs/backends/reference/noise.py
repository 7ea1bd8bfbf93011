"""Noise certificates: columns are DGS-1 under committed seeds, of one slot or several (docs/scan/noise.md).

A slot's key and the draws that are words of its stream are what coins have too.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from rag_audit.relation.poseidon import TAG_NOISE, TAG_SEED

RUN, SEVERAL = "noise certificate", "noise certificates"
ALIAS_TAG, ALIAS_ROWS, BYTE, BINS = 2, 512, 256, 128
DRAWS, WORDS, DRAW_BITS, WORD_DRAWS = 80, 16, 40, 5
HIGH_LIMBS, REST_LIMBS, UPPER = 4, 6, 160


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
    """The draws of one slot and what its words have above them."""

    blocks: int
    draw: Pairs
    upper: Sequence[Column]

    def in_ranges(self, of_draws: Sequence[Column]) -> list[Segment]:
        """Limbs of draws and of words, each in its range."""
        draws, words = DRAWS * self.blocks, WORDS * self.blocks
        return [in_range(c, draws) for c in of_draws] + [in_range(c, words) for c in self.upper]


def sizes(draws: int) -> tuple[int, list[int]]:
    """Blocks for so many draws, and the entries of the columns above them."""
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
    a = session.challenges("words", 4 + log2(blocks + len(calls) // len(records)))
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
    most = ((MODULUS >> UPPER) - 1) * below(a, words) * sum(weights) % MODULUS
    last = most - r - (1 << DRAW_BITS) * h
    value = d - zeta * last + (1 << WORD_DRAWS * DRAW_BITS) * h
    permutations(session, calls, Stream(keys, blocks, a[:4], p, a[4:], value))


@dataclass(frozen=True)
class Slots:
    """What certificates are made for: one slot, or several in one run."""

    context: bytes
    seeds: Sequence[Seed]
    capacity: int
    gains: Sequence[int]
    several: bool = False

    def __post_init__(self) -> None:
        count = len(self.seeds)
        limits.require(capacity=limits.positions(self.capacity), gains=limits.noised(self.gains))
        most = limits.together(count, self.capacity, self.gains) if self.several else count == 1
        limits.require(slots=most)

    @property
    def run(self) -> str:
        return SEVERAL if self.several else RUN


def _statement(reader: Reader, slots: Slots) -> None:
    said = reader.transcript
    said.raw("context", slots.context)
    if slots.several:
        said.integer("slot count", len(slots.seeds))
    for seed in slots.seeds:
        seed.absorb(said)
    said.integers(("capacity", slots.capacity), ("gain count", len(slots.gains)))
    said.integers(*(("gain", gain) for gain in slots.gains))
    known = alias_table()
    for threshold, alias in zip(known.thresholds, known.aliases, strict=True):
        said.integers(("threshold", threshold), ("alias", alias))


def _alias_rows() -> list[list[int]]:
    """Byte, choice, threshold and value of the 512 rows."""
    known, rows = alias_table(), []
    for v in range(ALIAS_ROWS):
        byte, choice = v % BYTE, v // BYTE
        j = byte % BINS
        magnitude = j if choice else known.aliases[j]
        rows.append([byte, choice, known.thresholds[j], -magnitude if byte >= BINS else magnitude])
    return [list(part) for part in zip(*rows, strict=True)]


@dataclass(frozen=True)
class _Drawn:
    """The columns of one slot."""

    z: Column
    draw: Sequence[Column]
    """Byte, choice, threshold, value."""
    t: Sequence[Column]
    d: Sequence[Column]
    words: Words


def read(slots: Slots, reader: Reader) -> tuple[Session, list[Column]]:
    """The whole run: what it claims, and each slot's column of noise."""
    _statement(reader, slots)
    count, lanes = len(slots.seeds), log2(len(slots.seeds))
    session = Session(reader, row_bits(slots.capacity, count))
    blocks, upper = sizes(slots.capacity * len(slots.gains))
    draws = DRAWS * blocks
    entries = [slots.capacity, *[draws] * 8, *upper]
    sent = session.commit("noise columns", entries * count + [RANGE, ALIAS_ROWS])
    *own, in_ranges, in_aliases = sent
    records = []
    for i in range(0, len(own), len(entries)):
        z, *columns = own[i : i + len(entries)]
        byte, t = columns[0], columns[4:6]
        held = Words(blocks, [(byte, 1), *limbs(t, 8)], columns[8:])
        records.append(_Drawn(z, columns[:4], t, columns[6:8], held))
    keys, calls = seed_and_key(session, slots.seeds)
    look_up(
        session,
        [
            *(Segment(ALIAS_TAG, r.draw, draws) for r in records),
            ranges(in_ranges),
            Segment(ALIAS_TAG, _alias_rows(), ALIAS_ROWS, in_aliases),
            *(segment for r in records for segment in r.words.in_ranges([*r.t, *r.d])),
        ],
    )
    tau = session.challenges("choice", lanes + log2(draws))
    p, claim = session.reduce("choice", tau, 0, 2)
    c, threshold, low, distance, chosen = session.send("choice", 5)
    session.product("choice", 2 * c - 1, threshold - low, chosen)
    session.constraint("choice", chosen - c - distance - claim)
    weights, at = eq_table(p[:lanes], count), evaluation(p[lanes:])
    for pairs, value in (
        ([[(r.draw[1], 1)] for r in records], c),
        ([[(r.draw[2], 1)] for r in records], threshold),
        ([limbs(r.t) for r in records], low),
        ([limbs(r.d) for r in records], distance),
    ):
        session.claim(at, joined(weights, pairs), value)
    a = session.challenges("noise", log2(slots.capacity))
    weights = eq_table(session.challenges("noise", lanes), count)
    (y,) = session.send("noise", 1)
    session.claim(evaluation(a), joined(weights, [[(r.z, 1)] for r in records]), y)
    strided = Functional(tuple(a), tuple(slots.gains), slots.capacity)
    session.claim(strided, joined(weights, [[(r.draw[3], 1)] for r in records]), y)
    word_claims(session, [r.words for r in records], keys, calls)
    close(session)
    return session, [r.z for r in records]
