"""What noise and coins share: a slot's key, and draws that are words of its stream (docs/scan/noise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.reference.extensions import Functional, below, evaluation, log2
from rag_audit.proofs.reference.poseidon import Call, Stream, permutations
from rag_audit.proofs.reference.session import Column, Expr, Pairs, Session
from rag_audit.proofs.reference.transcript import Transcript
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import TAG_NOISE, TAG_SEED

DRAWS, WORDS, DRAW_BITS, WORD_DRAWS = 80, 16, 40, 5
UPPER = 160


@dataclass(frozen=True)
class Seed:
    """A slot and the commitment to the seed that its key is made of."""

    commitment: int
    beacon: int
    slot: int

    def absorb(self, transcript: Transcript) -> None:
        transcript.scalar("seed commitment", self.commitment)
        transcript.scalar("beacon", self.beacon)
        transcript.scalar("slot", self.slot)


def seed_and_key(session: Session, seed: Seed) -> tuple[Expr, list[Call]]:
    s0, s1, key = session.send("seed and key", 3)
    return key, [
        Call([TAG_SEED, s0, s1], seed.commitment),
        Call([TAG_NOISE, s0, s1, seed.beacon, seed.slot], key),
    ]


def word_claims(
    session: Session,
    blocks: int,
    draw: Pairs,
    high: Sequence[Column],
    rest: Sequence[Column],
    key: Expr,
    calls: Sequence[Call],
) -> None:
    words = WORDS * blocks
    a = session.challenges("words", 4 + log2(blocks + len(calls)))
    zeta = session.challenge("upper parts")
    d, h, r = session.send("words", 3)
    shifts = [1 << DRAW_BITS * k for k in range(WORD_DRAWS)]
    shifts[-1] += zeta
    session.claim("words", Functional(tuple(a), tuple(shifts), words), draw, d)
    for columns, value in ((high, h), (rest, r)):
        session.claim("words", evaluation(a, words), [(c, 1 << 16 * k) for k, c in enumerate(columns)], value)
    last = ((MODULUS >> UPPER) - 1) * below(a, words) - r - (1 << DRAW_BITS) * h
    value = d - zeta * last + (1 << 5 * DRAW_BITS) * h
    permutations(session, calls, Stream([key], blocks, a[:4], [], a[4:], value))
