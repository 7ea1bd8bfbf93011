"""Cases of several records that share a seed and an index, by the Python reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob, RetrieveInputs
from rag_audit.proofs.statements.retrieve import Statement
from tests.circuits.retrieve_case import TINY, Case, private_part, random_case

PAIR = replace(TINY, queries=2)
"""The smallest instance."""


def shared_cases(instance: RetrieveInstance, seed: int, count: int | None = None) -> list[Case]:
    """Records over one index and seed: other queries, slots, beacons, contexts and salts."""
    one = replace(instance, queries=1)
    first, *others = [random_case(one, seed + n) for n in range(count or instance.queries)]
    shared = {name: getattr(first, name) for name in ("s0", "s1", "index_salt", "rows")}
    return [first, *[replace(other, **shared).solved() for other in others]]


def record_inputs(case: Case) -> RetrieveInputs:
    """One record's private inputs."""
    return RetrieveInputs(
        instance=case.instance,
        statement=Statement(**case.public()),
        s0=case.s0,
        s1=case.s1,
        **private_part(case.index_salt, case.rows, case.q, case.salt_c, case.salt_k),
        positions=case.positions,
    )


def many_job(instance: RetrieveInstance, cases: Sequence[Case]) -> RecordsJob:
    """The records' job."""
    return RecordsJob(instance, tuple(map(record_inputs, cases)))


def proof_job(case: Case) -> RecordsJob:
    """One record's job."""
    return many_job(case.instance, [case])


STATEMENT = [f.name for f in fields(Statement)]
"""Names of a record's public values."""
