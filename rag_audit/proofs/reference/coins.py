"""Coin certificates: a column of bits is the coins of a slot under a bound (docs/scan/coins.md)."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.proofs.reference import limits
from rag_audit.proofs.reference.closing import close
from rag_audit.proofs.reference.extensions import below, evaluation, log2
from rag_audit.proofs.reference.lookup import column, look_up, looked_up, public, ranges, table
from rag_audit.proofs.reference.session import Column, Session, limbs, row_bits
from rag_audit.proofs.reference.transcript import Reader
from rag_audit.proofs.reference.words import DRAW_BITS, DRAWS, Seed, Words, seed_and_key, word_claims

RUN = "coin certificate"
BYTES_TAG, BYTES_BITS, BYTE = 2, 9, 256


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
    reader.transcript.integer("capacity", coins.capacity)
    reader.transcript.integer("bound", coins.bound)
    session, words = Session(reader, row_bits(coins.capacity)), Words.sizes(coins.capacity)
    draws, (high, low) = DRAWS * words.blocks, divmod(coins.bound, BYTE)
    entries = [coins.capacity, *[draws] * 7, *words.entries, 1 << 16, 1 << BYTES_BITS]
    b, byte, coin, smaller, *rest, in_ranges, in_bytes = session.commit("coin columns", entries)
    t, d = rest[:2], rest[2:4]
    words = words.of([(byte, 1), *limbs(t, 8)], rest[4:])
    keys, calls = seed_and_key(session, [coins.seed])
    rows = [(x % BYTE, x // BYTE, int(x % BYTE < low)) for x in range(1 << BYTES_BITS)]
    look_up(
        session,
        [
            looked_up(BYTES_TAG, [column(c) for c in (byte, coin, smaller)], draws),
            ranges(in_ranges),
            table(BYTES_BITS, BYTES_TAG, [public(part) for part in zip(*rows, strict=True)], in_bytes),
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
