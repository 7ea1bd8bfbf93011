"""Cases of `listing`, by the Python reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_audit.proofs.backends.groth16.instance import ListingInstance
from rag_audit.proofs.backends.groth16.job import ListingInputs, RecordsJob
from rag_audit.proofs.backends.groth16.statements import ListingStatement
from rag_audit.relation import commitments
from rag_audit.relation.coins import COIN_RANGE
from rag_audit.relation.draws import coins
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import dot
from rag_audit.relation.selection import first_winners, winners
from tests.circuits.retrieve_case import private_part

TINY = ListingInstance(8, 16)
PAIR = ListingInstance(8, 16, 2)


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
class ListingCase:
    """Successive records of an account."""

    instance: ListingInstance
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
    asked: Sequence[Asked]

    def winners(self, asked: Asked, held: Sequence[bool]) -> list[bool]:
        """The positions that the record may list."""
        kappa = commitments.noise_key(self.s0, self.s1, asked.beacon, asked.slot)
        relevant = [dot(asked.q, row) >= self.threshold for row in self.rows]
        by_chance = coins(kappa, self.instance.capacity, self.chance)
        return winners(relevant, self.kept, held, by_chance)

    def lists(self) -> tuple[list[list[bool]], list[bool]]:
        """The list of each record, and what the account holds after the last."""
        held, lists = list(self.before), []
        for asked in self.asked:
            listed = first_winners(self.winners(asked, held), self.most)
            held = [a or b for a, b in zip(held, listed, strict=True)]
            lists.append(listed)
        return lists, held

    def statement(self) -> ListingStatement:
        lists, after = self.lists()
        return ListingStatement(
            ctx=tuple(a.ctx for a in self.asked),
            c_seed=commitments.seed_commitment(self.s0, self.s1),
            beacon=tuple(a.beacon for a in self.asked),
            slot=tuple(a.slot for a in self.asked),
            c_idx=commitments.index_commitment(self.index_salt, self.rows),
            cq=tuple(commitments.vector_commitment(a.salt_c, a.q) for a in self.asked),
            htopk=tuple(
                commitments.list_commitment(a.salt_k, listed)
                for a, listed in zip(self.asked, lists, strict=True)
            ),
            c_kept=commitments.kept_commitment(self.kept_salt, self.kept),
            held_before=commitments.held_commitment(self.before_salt, self.before),
            held_after=commitments.held_commitment(self.after_salt, after),
            chance=self.chance,
            threshold=self.threshold,
            most=self.most,
        )

    def records(self) -> tuple[ListingInputs, ...]:
        """The private inputs of each record, with the ledger's statement of it alone."""
        one, held, salt = replace(self.instance, queries=1), self.before, self.before_salt
        made = []
        for number, asked in enumerate(self.asked):
            after = self.after_salt if number + 1 == len(self.asked) else 5000 + number
            alone = replace(
                self, instance=one, before=held, before_salt=salt, after_salt=after, asked=(asked,)
            )
            made.append(
                ListingInputs(
                    instance=one,
                    statement=alone.statement(),
                    s0=self.s0,
                    s1=self.s1,
                    **private_part(self.index_salt, self.rows, asked.q, asked.salt_c, asked.salt_k),
                    kept=(bytes(map(int, self.kept)), self.kept_salt),
                    before=(bytes(map(int, held)), salt),
                    after_salt=after,
                )
            )
            held, salt = alone.lists()[1], after
        return tuple(made)

    def job(self) -> RecordsJob:
        return RecordsJob(self.instance, self.records())


def listing_case(instance: ListingInstance, seed: int, **changes: object) -> ListingCase:
    """Random records, half of whose positions are near the queries; the changes are of the case's fields."""
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
    asked = []
    for _ in range(instance.queries):
        own = [a if rng.random() < 0.8 else b for a, b in zip(q, vector(), strict=True)]
        asked.append(Asked(element(), element(), element(), own, element(), element()))
    scores = sorted(dot(q, row) for row in rows)
    case = ListingCase(
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
        chance=rng.choice([1, COIN_RANGE // instance.capacity, COIN_RANGE // 3]),
        threshold=max(1, scores[instance.capacity // 2]),
        most=rng.randint(1, instance.capacity),
        asked=tuple(asked),
    )
    return replace(case, **changes)  # type: ignore[arg-type]
