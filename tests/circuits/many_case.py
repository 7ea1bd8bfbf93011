"""Cases of several records that share a seed and an index, by the Python reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from rag_audit.errors import InvalidProof
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordInputs, RecordsJob
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.shared import RetrieveProofs
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.records import Group, verify_records
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


def record_inputs(case: Case) -> RecordInputs:
    """One record's private inputs."""
    return RecordInputs(
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


def part(proof: Group) -> bytes:
    """The proof itself, 256 bytes."""
    [result] = proof.parts or (b"",)
    return result


def reasons(
    key: VerificationKey,
    proof: Group,
    records: Sequence[Statement],
    *,
    engine: str = "native",
    instance: RetrieveInstance = PAIR,
) -> Failures:
    """Why the proof, which all records of a ledger carry, does not prove them."""
    proofs = [proof] * len(records)
    return verify_records(RetrieveProofs(instance), key, proofs, records, records, engine=engine)


def refused(
    key: VerificationKey, proof: Group, records: Sequence[Statement], *, engine: str = "native"
) -> list[int]:
    """The records of `reasons` that the proof is false for."""
    bad = reasons(key, proof, records, engine=engine)
    return [i for i, reason in bad.items() if isinstance(reason, InvalidProof)]
