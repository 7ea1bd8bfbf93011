"""What noise and coins share: a slot's key, and draws that are words of its stream (docs/scan/noise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_audit.proofs.reference.extensions import Functional, below, eq_table, evaluation, log2
from rag_audit.proofs.reference.lookup import RANGE_TAG, Segment, column, looked_up
from rag_audit.proofs.reference.poseidon import Call, Stream, permutations
from rag_audit.proofs.reference.session import Column, Expr, Pairs, Session, joined, limbs
from rag_audit.proofs.reference.transcript import Transcript
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import TAG_NOISE, TAG_SEED

DRAWS, WORDS, DRAW_BITS, WORD_DRAWS = 80, 16, 40, 5
HIGH_LIMBS, REST_LIMBS, UPPER = 4, 6, 160


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


@dataclass(frozen=True)
class Words:
    """The draws of one slot and what its words have above them."""

    blocks: int
    draw: Pairs = ()
    upper: Sequence[Column] = ()

    @classmethod
    def sizes(cls, draws: int) -> Words:
        return cls(-(-draws // DRAWS))

    @property
    def entries(self) -> list[int]:
        return [WORDS * self.blocks] * (HIGH_LIMBS + REST_LIMBS)

    def of(self, draw: Pairs, upper: Sequence[Column]) -> Words:
        return replace(self, draw=draw, upper=upper)

    def in_ranges(self, of_draws: Sequence[Column]) -> list[Segment]:
        """Limbs of draws and of words, each in its range."""
        sizes = [DRAWS * self.blocks] * len(of_draws) + self.entries
        return [
            looked_up(RANGE_TAG, [column(c)], rows)
            for c, rows in zip([*of_draws, *self.upper], sizes, strict=True)
        ]


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
