"""Noise certificates: columns are DGS-1 under committed seeds, of one slot or several (docs/scan/noise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference import limits
from rag_audit.proofs.reference.closing import close
from rag_audit.proofs.reference.extensions import Functional, eq_table, evaluation, log2
from rag_audit.proofs.reference.lookup import column, look_up, looked_up, public, ranges, table
from rag_audit.proofs.reference.session import Column, Session, joined, limbs, row_bits
from rag_audit.proofs.reference.transcript import Reader
from rag_audit.proofs.reference.words import DRAWS, Seed, Words, seed_and_key, word_claims
from rag_audit.relation.noise import alias_table

RUN, SEVERAL = "noise certificate", "noise certificates"
ALIAS_TAG, ALIAS_BITS, BYTE, BINS = 2, 9, 256, 128


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
    said.integer("capacity", slots.capacity)
    said.integers("gain count", "gain", slots.gains)
    known = alias_table()
    for threshold, alias in zip(known.thresholds, known.aliases, strict=True):
        said.integer("threshold", threshold)
        said.integer("alias", alias)


def _alias_rows() -> list[list[int]]:
    """Byte, choice, threshold and value of the 512 rows."""
    known, rows = alias_table(), []
    for v in range(1 << ALIAS_BITS):
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
    words = Words.sizes(slots.capacity * len(slots.gains))
    draws = DRAWS * words.blocks
    entries = [slots.capacity, *[draws] * 8, *words.entries]
    sent = session.commit("noise columns", entries * count + [1 << 16, 1 << ALIAS_BITS])
    *own, in_ranges, in_aliases = sent
    records = []
    for i in range(0, len(own), len(entries)):
        z, *columns = own[i : i + len(entries)]
        byte, t = columns[0], columns[4:6]
        held = words.of([(byte, 1), *limbs(t, 8)], columns[8:])
        records.append(_Drawn(z, columns[:4], t, columns[6:8], held))
    keys, calls = seed_and_key(session, slots.seeds)
    look_up(
        session,
        [
            *(looked_up(ALIAS_TAG, [column(c) for c in r.draw], draws) for r in records),
            ranges(in_ranges),
            table(ALIAS_BITS, ALIAS_TAG, [public(part) for part in _alias_rows()], in_aliases),
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
