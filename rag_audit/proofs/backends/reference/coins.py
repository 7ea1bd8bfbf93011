"""Coin certificates: a column of bits is the coins of a slot under a bound (docs/scan/coins.md)."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import below, evaluation, log2
from rag_audit.proofs.backends.reference.lookup import RANGE, Segment, look_up, ranges
from rag_audit.proofs.backends.reference.noise import (
    DRAW_BITS,
    DRAWS,
    Seed,
    Words,
    seed_and_key,
    sizes,
    word_claims,
)
from rag_audit.proofs.backends.reference.session import Column, Session, limbs, row_bits
from rag_audit.proofs.backends.reference.transcript import Reader

RUN = "coin certificate"
BYTES_TAG, BYTES_ROWS, BYTE = 2, 512, 256


@dataclass(frozen=True)
class Coins:
    context: bytes
    seed: Seed
    capacity: int
    bound: int

    def __post_init__(self) -> None:
        limits.require(capacity=limits.positions(self.capacity), bound=1 <= self.bound < 1 << DRAW_BITS)


def read(coins: Coins, reader: Reader) -> tuple[Session, Column]:
    """The whole run: what it claims, and the column of bits."""
    reader.transcript.raw("context", coins.context)
    coins.seed.absorb(reader.transcript)
    reader.transcript.integers(("capacity", coins.capacity), ("bound", coins.bound))
    session, (blocks, upper) = Session(reader, row_bits(coins.capacity)), sizes(coins.capacity)
    draws, (high, low) = DRAWS * blocks, divmod(coins.bound, BYTE)
    entries = [coins.capacity, *[draws] * 7, *upper, RANGE, BYTES_ROWS]
    b, byte, coin, smaller, *rest, in_ranges, in_bytes = session.commit("coin columns", entries)
    t, d = rest[:2], rest[2:4]
    words = Words(blocks, [(byte, 1), *limbs(t, 8)], rest[4:])
    keys, calls = seed_and_key(session, [coins.seed])
    rows = [(x % BYTE, x // BYTE, int(x % BYTE < low)) for x in range(BYTES_ROWS)]
    look_up(
        session,
        [
            Segment(BYTES_TAG, [byte, coin, smaller], draws),
            ranges(in_ranges),
            Segment(BYTES_TAG, list(zip(*rows, strict=True)), BYTES_ROWS, in_bytes),
            *words.in_ranges([*t, *d]),
        ],
    )
    label = "coins below the bound"
    tau = session.challenges(label, log2(draws))
    p, claim = session.reduce(label, tau, high * below(tau, draws), 2)
    c, a, distance, chosen = session.send(label, 4)
    session.product(label, c, 2 * a + (2 * high - 1), chosen)
    session.constraint(label, chosen - a - distance - claim)
    at = evaluation(p)
    session.claim(at, [(coin, 1)], c)
    session.claim(at, [(smaller, 1), *((limb, -k) for limb, k in limbs(t))], a)
    session.claim(at, limbs(d), distance)
    point = session.challenges("coins", log2(coins.capacity))
    (y,) = session.send("coins", 1)
    session.claim(evaluation(point), [(b, 1)], y)
    session.claim(evaluation(point, coins.capacity), [(coin, 1)], y)
    word_claims(session, [words], keys, calls)
    close(session)
    return session, b
