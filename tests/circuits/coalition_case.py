"""Windows for the circuit `coalition`: statement and private inputs from vectors and accounts, by brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_audit.proofs.backends.groth16.coalition import CoalitionJob
from rag_audit.proofs.backends.groth16.instance import CoalitionInstance
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.proofs.statements.private import CoalitionPrivate
from rag_audit.relation.commitments import vector_commitment

TINY = CoalitionInstance(8, 8)
Row = Sequence[int]
A: Row = [7, 1, 0, 0, 0, 0, 0, 2]
NEAR_A: Row = [7, 0, 1, 0, 0, 0, 0, 2]
B: Row = [0, 0, 7, 6, 0, 0, 1, 0]
C: Row = [0, 0, 0, 0, 5, -5, 0, 0]


def near(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], theta: tuple[int, int] = (4, 5)) -> bool:
    """Cosine at least theta, in integers."""
    p, q = theta
    dot = int(a @ b)
    return dot > 0 and (q * dot) ** 2 >= p * p * int(a @ a) * int(b @ b)


@dataclass(frozen=True)
class Window:
    """A statement with its private side, which a test may bend."""

    statement: CoalitionStatement
    private: CoalitionPrivate

    @property
    def job(self) -> CoalitionJob:
        return CoalitionJob.of(self.statement, self.private)

    def stating(self, **changes: object) -> Window:
        """The same private side with another statement."""
        return replace(self, statement=replace(self.statement, **changes))  # type: ignore[arg-type]

    def knowing(self, **changes: object) -> Window:
        """The same statement with another private side."""
        return replace(self, private=replace(self.private, **changes))  # type: ignore[arg-type]

    def with_rows(self, rows: Sequence[Row]) -> Window:
        """Other vectors, and their commitments."""
        data = np.array(rows, np.int8)
        cq = tuple(vector_commitment(s, r) for s, r in zip(self.private.salts, data.tolist(), strict=True))
        return self.knowing(vectors=data.tobytes()).stating(cq=cq)


def window(
    rows: Sequence[Row],
    account: Sequence[int],
    tenant: Sequence[int] | None = None,
    *,
    tau: int = 0,
    instance: CoalitionInstance = TINY,
) -> Window:
    """The honest window: labels and counts by brute force over all pairs.

    :param tenant: of each account; one tenant by default
    :param tau: in positions; 0 is the whole window
    """
    data = np.array(rows, np.int64)
    accounts = max(account) + 1
    tenant = tuple(tenant or [0] * accounts)
    first = tuple(max(0, j - tau) if tau else 0 for j in range(len(rows)))
    label = list(range(accounts))
    for j in range(len(rows)):
        for i in range(first[j], j):
            if near(data[i], data[j], instance.theta):
                old, new = label[account[j]], label[account[i]]
                label = [new if x == old else x for x in label]
    salts = tuple(7**40 + i for i in range(len(rows)))
    statement = CoalitionStatement(
        ctx=5**60,
        cq=tuple(vector_commitment(s, r) for s, r in zip(salts, data.tolist(), strict=True)),
        account=tuple(account),
        tenant=tenant,
        first=first,
        theta=instance.theta,
        c=max(Counter(label).values()),
        c_tenant=max(Counter(zip(label, tenant, strict=True)).values()),
        dimension=instance.dimension,
        capacity=instance.records,
    )
    return Window(statement, CoalitionPrivate(data.astype(np.int8).tobytes(), salts, tuple(label)))


def random_window(seed: int, instance: CoalitionInstance = TINY) -> Window:
    """Up to all places used, some vectors near to each other, a random tau."""
    rng = random.Random(seed)
    count = rng.randint(1, instance.records)
    probes = [[rng.randint(-7, 7) for _ in range(instance.dimension)] for _ in range(3)]
    rows = []
    for _ in range(count):
        row = (
            [max(-7, min(7, x + rng.choice([0, 0, 0, 1, -2]))) for x in rng.choice(probes)]
            if rng.random() < 0.6
            else [rng.randint(-7, 7) for _ in range(instance.dimension)]
        )
        rows.append(row if any(row) else [1] * instance.dimension)
    names = [rng.randrange(5) for _ in range(count)]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    tenant = [rng.randrange(2) for _ in numbers]
    return window(rows, [numbers[n] for n in names], tenant, tau=rng.choice([0, 0, 2, 4]), instance=instance)
