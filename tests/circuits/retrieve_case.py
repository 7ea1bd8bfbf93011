"""Random cases of `retrieve`, by the Python reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypedDict

import numpy as np

from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.relation import commitments, draws
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from rag_audit.relation.vectors import pack_nibbles

TINY = RetrieveInstance(8, 16, 5, (1,), 20, 160, 64)
"""The smallest instance: every constraint class of the large ones, few of each."""
SMALL = RetrieveInstance(8, 256, 5, (1, 8, 64), 101, 810, 128)


class PrivatePart(TypedDict):
    """The common private inputs of every kind of record."""

    index_salt: int
    rows: bytes
    vector: bytes
    salt_c: int
    salt_k: int


def private_part(
    index_salt: int, rows: Sequence[Sequence[int]], q: Sequence[int], salt_c: int, salt_k: int
) -> PrivatePart:
    """The index and the query of a case as private inputs."""
    packed, vector = (np.array(part, dtype=np.int8).tobytes() for part in (rows, q))
    return PrivatePart(index_salt=index_salt, rows=packed, vector=vector, salt_c=salt_c, salt_k=salt_k)


@dataclass(frozen=True)
class Case:
    """A record's secrets and public values."""

    instance: RetrieveInstance
    s0: int
    s1: int
    beacon: int
    slot: int
    index_salt: int
    rows: Sequence[Sequence[int]]
    salt_c: int
    q: Sequence[int]
    salt_k: int
    ctx: int
    positions: Sequence[int] = field(default=())

    def noise(self) -> list[int]:
        kappa = commitments.noise_key(self.s0, self.s1, self.beacon, self.slot)
        return draws.draw(kappa, self.instance.capacity, self.instance.gains)

    def scores(self) -> list[int]:
        window = ScoreWindow(self.instance.lo, self.instance.hi, self.instance.lattice)
        return [window.quantise(dot(self.q, row)) for row in self.rows]

    def keys(self) -> list[int]:
        return [u + z for u, z in zip(self.scores(), self.noise(), strict=True)]

    def solved(self) -> Case:
        """The case with the positions that the reference selects."""
        return replace(self, positions=tuple(top_k(self.keys(), self.instance.top_k)))

    def public(self) -> dict[str, int]:
        return {
            "ctx": self.ctx,
            "c_seed": commitments.seed_commitment(self.s0, self.s1),
            "beacon": self.beacon,
            "slot": self.slot,
            "c_idx": commitments.index_commitment(self.index_salt, self.rows),
            "cq": commitments.vector_commitment(self.salt_c, self.q),
            "htopk": commitments.topk_commitment(self.salt_k, self.positions),
        }

    def private(self) -> dict[str, int | list[int]]:
        return {
            "s0": self.s0,
            "s1": self.s1,
            "index_salt": self.index_salt,
            "index": pack_nibbles(x for row in self.rows for x in row),
            "salt_c": self.salt_c,
            "query": pack_nibbles(self.q),
            "salt_k": self.salt_k,
            "position": list(self.positions),
        }

    def inputs(self) -> dict[str, int | list[int]]:
        return {**self.public(), **self.private()}

    def raised(self) -> tuple[Self, Self]:
        """The case, and the same case over an index with a first component that is larger by one."""
        lower, higher = ([list(row) for row in self.rows] for _ in range(2))
        lower[0][0] = min(lower[0][0], 6)
        higher[0][0] = lower[0][0] + 1
        return replace(self, rows=lower), replace(self, rows=higher)


def random_case(instance: RetrieveInstance, seed: int, *, empty: int = 1) -> Case:
    """A case with `empty` empty positions, and with scores in the whole window and beyond both of its ends."""
    rng = random.Random(seed)
    element = lambda: rng.randrange(MODULUS)  # noqa: E731

    def vector() -> list[int]:
        return [rng.randint(-7, 7) for _ in range(instance.dimension)]

    q = vector()
    reach = 1.3 * instance.hi / sum(x * x for x in q)
    rows: list[list[int]] = []
    for i in range(instance.capacity):
        share = reach * rng.random()
        rows.append(
            [0] * instance.dimension
            if i < empty
            else [a if rng.random() < share else b for a, b in zip(q, vector(), strict=True)]
        )
    rng.shuffle(rows)
    return Case(
        instance,
        element(),
        element(),
        element(),
        element(),
        element(),
        rows,
        element(),
        q,
        element(),
        element(),
    ).solved()
