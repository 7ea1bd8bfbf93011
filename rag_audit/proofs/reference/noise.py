"""The run of a noise certificate, read along docs/scan/noise.md: everything is read and every challenge made.

The Schnorr proofs are held; lookups', Poseidon's and columns' claims are not made yet, so nothing is accepted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference import closing
from rag_audit.proofs.reference.group import Point
from rag_audit.proofs.reference.session import MESSAGE_VALUES, Session
from rag_audit.proofs.reference.transcript import Reader, Transcript
from rag_audit.relation.noise import alias_table

DRAWS, WORDS, LAYERS, FULL, CALLS = 80, 16, 76, 8, 2
LEAST_ROW_BITS = 10
RANGE, ALIAS_ROWS = 1 << 16, 512
DRAW_COLUMNS, WORD_COLUMNS = 8, 10
DRAW_LOOKUPS, WORD_LOOKUPS = 5, 10
PRODUCT_TRIPLES = 204 * 3


def bits(count: int) -> int:
    """The least b with count <= 2^b."""
    return (count - 1).bit_length()


@dataclass(frozen=True)
class Slot:
    context: bytes
    seed_commitment: int
    beacon: int
    slot: int
    capacity: int
    gains: Sequence[int]

    @property
    def blocks(self) -> int:
        return -(-self.capacity * len(self.gains) // DRAWS)

    @property
    def row_bits(self) -> int:
        n = bits(self.capacity)
        return max(LEAST_ROW_BITS, -(-n // 2) + 4 + (n >= 18))

    def rows(self, entries: int) -> int:
        return (entries - 1 >> self.row_bits) + 1

    @property
    def points(self) -> int:
        """How many row commitments all columns have."""
        per_draw, per_word = self.rows(DRAWS * self.blocks), self.rows(WORDS * self.blocks)
        tables = self.rows(RANGE) + self.rows(ALIAS_ROWS)
        return DRAW_COLUMNS * per_draw + WORD_COLUMNS * per_word + tables + self.rows(self.capacity)

    @property
    def depth(self) -> int:
        """Layers of the lookups' tree."""
        per_draw, per_word = 1 << bits(DRAWS * self.blocks), 1 << bits(WORDS * self.blocks)
        return bits(DRAW_LOOKUPS * per_draw + WORD_LOOKUPS * per_word + RANGE + ALIAS_ROWS)


def absorb(transcript: Transcript, slot: Slot) -> None:
    transcript.bytes("context", slot.context)
    transcript.scalar("seed commitment", slot.seed_commitment)
    transcript.scalar("beacon", slot.beacon)
    transcript.scalar("slot", slot.slot)
    transcript.integer("capacity", slot.capacity)
    transcript.integer("gain count", len(slot.gains))
    for gain in slot.gains:
        transcript.integer("gain", gain)
    table = alias_table()
    for threshold, alias in zip(table.thresholds, table.aliases, strict=True):
        transcript.integer("threshold", threshold)
        transcript.integer("alias", alias)


def _round(session: Session, label: str) -> int:
    session.message(label, MESSAGE_VALUES)
    return session.challenge(label)


def read(slot: Slot, transcript: Transcript, proof: bytes) -> tuple[Session, list[Point]]:
    """Reads a certificate to its end: the session with the equations so far, and the columns' points."""
    session = Session(Reader(transcript, proof))
    reader = session.reader
    absorb(transcript, slot)
    columns = [reader.point("noise columns") for _ in range(slot.points)]
    session.message("seed and key", MESSAGE_VALUES)
    session.challenge("lookup alpha")
    session.challenge("lookup beta")
    session.message("lookup root", MESSAGE_VALUES)
    for layer in range(slot.depth):
        session.challenge("lookup layer")
        for _ in range(layer):
            _round(session, "lookup layer")
        _round(session, "lookup children")
    session.challenge("lookup leaves")
    for _ in range(4):
        session.message("lookup columns", MESSAGE_VALUES)
    over_draws = bits(DRAWS * slot.blocks)
    session.challenges("choice", over_draws)
    for _ in range(over_draws):
        _round(session, "choice")
    session.message("choice", MESSAGE_VALUES)
    session.challenges("noise", bits(slot.capacity))
    session.message("noise", MESSAGE_VALUES)
    over_blocks = bits(slot.blocks + CALLS)
    session.challenges("words", 4 + over_blocks)
    session.challenge("upper parts")
    session.message("words", MESSAGE_VALUES)
    session.challenge("hash outputs")
    for layer in range(LAYERS):
        for _ in range(over_blocks):
            _round(session, "hash layer")
        full = layer < FULL // 2 or layer >= LAYERS - FULL // 2
        for _ in range(5 if full else 1):
            session.message("S-box inputs", MESSAGE_VALUES)
        session.challenge("hash functional")
    _close(session, slot)
    reader.end()
    return session, columns


def _close(session: Session, slot: Slot) -> None:
    reader = session.reader
    session.challenge("column claims")
    for _ in range(max(bits(RANGE), bits(DRAWS * slot.blocks))):
        _round(session, "column claims")
    session.message("columns at the point", MESSAGE_VALUES)
    session.challenge("column groups")
    session.single("opened value")
    products = bits(PRODUCT_TRIPLES + 2 * slot.depth + 2)
    session.challenges("products", products)
    for _ in range(products):
        _round(session, "products")
    for label in ("left factor", "right factor", "product"):
        session.single(label)
    session.challenge("constraints")
    point = []
    for _ in range(bits(len(session.messages)) + bits(MESSAGE_VALUES)):
        reader.point("constraint round")
        reader.point("constraint round")
        point.append(session.challenge("constraint round"))
    closing.message_opening(session, point)
    closing.product(session)
    for _ in range(2):
        reader.point("column opening")
    session.challenge("column opening")
    reader.scalar("column blinding")
    reader.scalar("value blinding")
    session.challenge("inner product")
    for _ in range(slot.row_bits):
        reader.point("fold")
        reader.point("fold")
        session.challenge("fold")
    reader.scalar("inner product")
    session.challenge("equation weight")
