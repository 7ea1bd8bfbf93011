"""Cases of `listing`, by the Python reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_audit.proofs.backends.groth16.instance import RandomizedResponseInstance
from rag_audit.proofs.backends.groth16.job import RandomizedResponseInputs, RecordsJob
from rag_audit.proofs.backends.groth16.statements import RandomizedResponseStatement
from rag_audit.relation import commitments
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import dot
from rag_audit.relation.selection import first_winners, winners
from tests.circuits.retrieve_case import private_part

TINY = RandomizedResponseInstance(8, 16)
PAIR = RandomizedResponseInstance(8, 16, 2)


@dataclass(frozen=True)
class Asked:
    """One record's secrets and public values."""

    ctx: int
    beacon: int
    slot: int
    q: Sequence[int]
    salt_c: int
    salt_k: int


@dataclass(frozen=True)
class RandomizedResponseCase:
    """Successive records of an account."""

    instance: RandomizedResponseInstance
    s0: int
    s1: int
    index_salt: int
    rows: Sequence[Sequence[int]]
    kept: Sequence[bool]
    kept_salt: int
    before: Sequence[bool]
    before_salt: int
    after_salt: int
    chance: int
    threshold: int
    most: int
    requested: Sequence[Asked]

    def winners(self, requested: Asked, held: Sequence[bool]) -> list[bool]:
        """The positions that the record may list."""
        kappa = commitments.noise_key(self.s0, self.s1, requested.beacon, requested.slot)
        relevant = [dot(requested.q, row) >= self.threshold for row in self.rows]
        by_chance = bernoulli_bits(kappa, self.instance.capacity, self.chance)
        return winners(relevant, self.kept, held, by_chance)

    def lists(self) -> tuple[list[list[bool]], list[bool]]:
        """The list of each record, and the account's disclosed set after the last record."""
        held, lists = list(self.before), []
        for requested in self.requested:
            listed = first_winners(self.winners(requested, held), self.most)
            held = [a or b for a, b in zip(held, listed, strict=True)]
            lists.append(listed)
        return lists, held

    def statement(self) -> RandomizedResponseStatement:
        lists, after = self.lists()
        return RandomizedResponseStatement(
            ctx=tuple(a.ctx for a in self.requested),
            c_seed=commitments.seed_commitment(self.s0, self.s1),
            beacon=tuple(a.beacon for a in self.requested),
            slot=tuple(a.slot for a in self.requested),
            c_idx=commitments.index_commitment(self.index_salt, self.rows),
            cq=tuple(commitments.vector_commitment(a.salt_c, a.q) for a in self.requested),
            htopk=tuple(
                commitments.list_commitment(a.salt_k, listed)
                for a, listed in zip(self.requested, lists, strict=True)
            ),
            c_kept=commitments.sample_commitment(self.kept_salt, self.kept),
            held_before=commitments.disclosed_commitment(self.before_salt, self.before),
            held_after=commitments.disclosed_commitment(self.after_salt, after),
            chance=self.chance,
            threshold=self.threshold,
            most=self.most,
        )

    def records(self) -> tuple[RandomizedResponseInputs, ...]:
        """The private inputs of each record, with its statement as a single record."""
        one, held, salt = replace(self.instance, queries=1), self.before, self.before_salt
        result = []
        for number, requested in enumerate(self.requested):
            after = self.after_salt if number + 1 == len(self.requested) else 5000 + number
            alone = replace(
                self, instance=one, before=held, before_salt=salt, after_salt=after, requested=(requested,)
            )
            result.append(
                RandomizedResponseInputs(
                    instance=one,
                    statement=alone.statement(),
                    s0=self.s0,
                    s1=self.s1,
                    **private_part(
                        self.index_salt, self.rows, requested.q, requested.salt_c, requested.salt_k
                    ),
                    sample=(bytes(map(int, self.kept)), self.kept_salt),
                    before=(bytes(map(int, held)), salt),
                    after_salt=after,
                )
            )
            held, salt = alone.lists()[1], after
        return tuple(result)

    def job(self) -> RecordsJob:
        return RecordsJob(self.instance, self.records())


def randomized_response_case(
    instance: RandomizedResponseInstance, seed: int, **changes: object
) -> RandomizedResponseCase:
    """Random records with half of the positions near the queries. The changes apply to the case's fields."""
    rng = random.Random(seed)

    def element() -> int:
        return rng.randrange(MODULUS)

    def vector() -> list[int]:
        return [rng.randint(-7, 7) for _ in range(instance.dimension)]

    def bits(share: float) -> list[bool]:
        return [rng.random() < share for _ in range(instance.capacity)]

    q = vector()
    rows = [
        [a if rng.random() < 0.7 else b for a, b in zip(q, vector(), strict=True)] if near else vector()
        for near in bits(0.6)
    ]
    requested = []
    for _ in range(instance.queries):
        own = [a if rng.random() < 0.8 else b for a, b in zip(q, vector(), strict=True)]
        requested.append(Asked(element(), element(), element(), own, element(), element()))
    scores = sorted(dot(q, row) for row in rows)
    case = RandomizedResponseCase(
        instance,
        element(),
        element(),
        element(),
        rows,
        bits(0.7),
        element(),
        bits(0.3),
        element(),
        element(),
        chance=rng.choice([1, PROBABILITY_RANGE // instance.capacity, PROBABILITY_RANGE // 3]),
        threshold=max(1, scores[instance.capacity // 2]),
        most=rng.randint(1, instance.capacity),
        requested=tuple(requested),
    )
    return replace(case, **changes)  # type: ignore[arg-type]
