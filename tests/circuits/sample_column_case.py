"""Cases of the circuit `kept`, by the Python reference."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rag_audit.proofs.backends.groth16.instance import SampleInstance
from rag_audit.proofs.backends.groth16.job import ColumnJob
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.relation import commitments
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.draws import bernoulli_bits, uniforms
from rag_audit.relation.field import MODULUS

TINY = SampleInstance(8)


@dataclass(frozen=True)
class SampleCase:
    """A tenant's and window's secrets and public values."""

    instance: SampleInstance
    ctx: int
    s0: int
    s1: int
    beacon: int
    slot: int
    keep: int
    salt: int

    def kappa(self) -> int:
        return commitments.noise_key(self.s0, self.s1, self.beacon, self.slot)

    def draws(self) -> list[int]:
        return uniforms(self.kappa(), self.instance.capacity)

    def bits(self) -> list[bool]:
        return bernoulli_bits(self.kappa(), self.instance.capacity, self.keep)

    def statement(self) -> SampleStatement:
        return SampleStatement(
            ctx=self.ctx,
            c_seed=commitments.seed_commitment(self.s0, self.s1),
            beacon=self.beacon,
            slot=self.slot,
            keep=self.keep,
            c_kept=commitments.sample_commitment(self.salt, self.bits()),
        )

    def job(self) -> ColumnJob:
        return ColumnJob(self.instance, self.statement(), s0=self.s0, s1=self.s1, salt=self.salt)


def random_kept(instance: SampleInstance, seed: int, keep: int | None = None) -> SampleCase:
    """A case with random secrets, and with the given or a random probability."""
    rng = random.Random(seed)
    secrets = [rng.randrange(MODULUS) for _ in range(6)]
    ctx, s0, s1, beacon, slot, salt = secrets
    return SampleCase(
        instance,
        ctx,
        s0,
        s1,
        beacon,
        slot,
        rng.randrange(1, PROBABILITY_RANGE) if keep is None else keep,
        salt,
    )
