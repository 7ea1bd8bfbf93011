"""Noise certificates: a column is DGS-1 under a committed seed (docs/scan/noise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference.closing import close
from rag_audit.proofs.reference.extensions import Functional, evaluation, log2
from rag_audit.proofs.reference.group import Point
from rag_audit.proofs.reference.lookup import Segment, column, look_up, looked_up, public, ranges, table
from rag_audit.proofs.reference.session import Column, Session, row_bits
from rag_audit.proofs.reference.transcript import Reader, Transcript
from rag_audit.proofs.reference.words import DRAWS, WORDS, Seed, seed_and_key, word_claims
from rag_audit.relation.noise import alias_table

ALIAS_TAG, ALIAS_BITS, BYTE, BINS = 2, 9, 256, 128


@dataclass(frozen=True)
class Slot:
    context: bytes
    seed: Seed
    capacity: int
    gains: Sequence[int]

    @property
    def blocks(self) -> int:
        return -(-self.capacity * len(self.gains) // DRAWS)


def _statement(transcript: Transcript, slot: Slot) -> None:
    transcript.raw("context", slot.context)
    slot.seed.absorb(transcript)
    transcript.integer("capacity", slot.capacity)
    transcript.integer("gain count", len(slot.gains))
    for gain in slot.gains:
        transcript.integer("gain", gain)
    known = alias_table()
    for threshold, alias in zip(known.thresholds, known.aliases, strict=True):
        transcript.integer("threshold", threshold)
        transcript.integer("alias", alias)


def _alias_rows() -> list[list[int]]:
    """Byte, choice, threshold and value of the 512 rows."""
    known, rows = alias_table(), []
    for v in range(1 << ALIAS_BITS):
        byte, choice = v % BYTE, v // BYTE
        j = byte % BINS
        magnitude = j if choice else known.aliases[j]
        rows.append([byte, choice, known.thresholds[j], -magnitude if byte >= BINS else magnitude])
    return [list(part) for part in zip(*rows, strict=True)]


def limbs(columns: Sequence[Column], shift: int = 0) -> list[tuple[Column, int]]:
    return [(c, 1 << shift + 16 * k) for k, c in enumerate(columns)]


def verify(slot: Slot, proof: bytes, transcript: Transcript | None = None) -> tuple[bool, Sequence[Point]]:
    """Whether a certificate holds, and the commitments to the slot's noise.

    :raises EncodingError: the bytes are no proof of this length
    """
    session, rows = read(slot, Reader(transcript or Transcript("noise certificate"), proof))
    return session.holds(), rows


def read(slot: Slot, reader: Reader) -> tuple[Session, Sequence[Point]]:
    """The whole run: what it claims, and the commitments to the slot's noise."""
    _statement(reader.transcript, slot)
    session = Session(reader, row_bits(slot.capacity))
    z = _claims(session, slot)
    close(session)
    return session, z.rows


def _claims(session: Session, slot: Slot) -> Column:
    draws, words = DRAWS * slot.blocks, WORDS * slot.blocks
    entries = [slot.capacity] + [draws] * 8 + [words] * 10 + [1 << 16, 1 << ALIAS_BITS]
    z, byte, choice, threshold, value, *rest = session.commit("noise columns", entries)
    t, d, high, rest_high, (in_ranges, in_aliases) = rest[:2], rest[2:4], rest[4:8], rest[8:14], rest[14:]
    key, calls = seed_and_key(session, slot.seed)
    segments: list[Segment] = [
        looked_up(ALIAS_TAG, [column(c) for c in (byte, choice, threshold, value)], draws),
        ranges(in_ranges),
        table(ALIAS_BITS, ALIAS_TAG, [public(part) for part in _alias_rows()], in_aliases),
        *(looked_up(1, [column(c)], draws) for c in (*t, *d)),
        *(looked_up(1, [column(c)], words) for c in (*high, *rest_high)),
    ]
    look_up(session, segments)
    tau = session.challenges("choice", log2(draws))
    p, claim = session.reduce("choice", tau, 0, 2)
    at = evaluation(p)
    c, t_value, low, distance, chosen = session.send("choice", 5)
    session.product("choice", 2 * c - 1, t_value - low, chosen)
    session.constraint("choice", chosen - c - distance - claim)
    session.claim("choice", at, [(choice, 1)], c)
    session.claim("choice", at, [(threshold, 1)], t_value)
    session.claim("choice", at, limbs(t), low)
    session.claim("choice", at, limbs(d), distance)
    point = session.challenges("noise", log2(slot.capacity))
    (y,) = session.send("noise", 1)
    session.claim("noise", evaluation(point), [(z, 1)], y)
    session.claim("noise", Functional(tuple(point), tuple(slot.gains), slot.capacity), [(value, 1)], y)
    word_claims(session, slot.blocks, [(byte, 1), *limbs(t, 8)], high, rest_high, key, calls)
    return z
