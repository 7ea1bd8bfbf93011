"""Cases of `retrieve` of tenants that are sampled, or without noise, by the Python reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordInputs, RecordsJob
from rag_audit.proofs.statements.retrieve import SampledStatement, Statement
from rag_audit.relation import commitments
from rag_audit.relation.field import MODULUS
from rag_audit.relation.vectors import pack_bits
from tests.circuits.retrieve_case import Case, private_part, random_case

NOISY = RetrieveInstance(8, 16, 5, (1,), 20, 160, 64, True)
"""The smallest instances of the three variants."""
SAMPLED = replace(NOISY, gains=())
EXACT = replace(SAMPLED, sampled=False)


@dataclass(frozen=True)
class SampledCase(Case):
    """A record's secrets and public values. Without a sample, every position counts as sampled."""

    kind: RetrieveInstance = SAMPLED
    kept: Sequence[bool] = ()
    kept_salt: int = 0

    def noise(self) -> list[int]:
        return super().noise() if self.kind.gains else [0] * self.kind.capacity

    def scores(self) -> list[int]:
        return [bit * u for bit, u in zip(self.kept, super().scores(), strict=True)]

    def public(self) -> dict[str, int]:
        more = (
            {"c_kept": commitments.sample_commitment(self.kept_salt, self.kept)} if self.kind.sampled else {}
        )
        return super().public() | more

    def private(self) -> dict[str, int | list[int]]:
        result = super().private()
        if not self.kind.gains:
            del result["s0"], result["s1"]
        if self.kind.sampled:
            result |= {"kept": pack_bits(self.kept), "kept_salt": self.kept_salt}
        return result

    def record(self) -> RecordInputs:
        public = self.public()
        noisy = bool(self.kind.gains)
        return RecordInputs(
            instance=self.kind,
            statement=SampledStatement(**public) if self.kind.sampled else Statement(**public),
            s0=self.s0 if noisy else None,
            s1=self.s1 if noisy else None,
            **private_part(self.index_salt, self.rows, self.q, self.salt_c, self.salt_k),
            positions=self.positions,
            sample=(bytes(map(int, self.kept)), self.kept_salt) if self.kind.sampled else None,
        )

    def job(self) -> RecordsJob:
        return RecordsJob(self.kind, (self.record(),))


def sampled_case(
    kind: RetrieveInstance, seed: int, kept: Sequence[bool] | None = None, *, empty: int = 1
) -> SampledCase:
    """A case with the given sample, or with a random one."""
    rng = random.Random(f"kept {seed}")
    base = RetrieveInstance(
        kind.capacity, kind.dimension, kind.top_k, kind.gains or (1,), kind.lo, kind.hi, kind.lattice
    )
    case = random_case(base, seed, empty=empty)
    if kept is None:
        kept = [not kind.sampled or rng.random() < 0.6 for _ in range(kind.capacity)]
    values = {f.name: getattr(case, f.name) for f in fields(Case)}
    result = SampledCase(**values, kind=kind, kept=kept, kept_salt=rng.randrange(MODULUS)).solved()
    assert isinstance(result, SampledCase)
    return result


def shared_sampled(kind: RetrieveInstance, seed: int, count: int) -> list[SampledCase]:
    """Records over one index, seed and sample: other queries, slots, beacons, contexts and salts."""
    first, *others = [sampled_case(kind, seed + n) for n in range(count)]
    names = ("s0", "s1", "index_salt", "rows", "kept", "kept_salt")
    shared = {name: getattr(first, name) for name in names}
    return [first, *[replace(other, **shared).solved() for other in others]]  # type: ignore[list-item]
