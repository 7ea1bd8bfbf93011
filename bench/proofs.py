"""Proofs of single records by key and public values, without a window: made, parsed and verified as in a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_audit.models.constants import Constants
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.scan.embed import EmbedProofs
from rag_audit.proofs.backends.scan.key import EmbedKey, ScanKey
from rag_audit.proofs.backends.scan.retrieve import RecordInputs, RecordsJob, RetrieveProofs
from rag_audit.proofs.batch import Failures, Lazy
from rag_audit.proofs.records import Group
from rag_audit.proofs.statements.tenant import PublicValues, TenantPublic

TENANT = TenantPublic(
    "law", "00" * 32, "00" * 32, Constants(64, 256, 5, (1,), 101, 810, 128, 64, DEFAULT_TABLE), {}
)
"""A tenant of which nothing is read: the keys are given."""


def job(record: RecordInputs) -> RecordsJob:
    """The job that proves one record."""
    return RecordsJob((record,), ("record",))


def steps(key: ScanKey | EmbedKey) -> RetrieveProofs | EmbedProofs:
    """The steps of the proofs under a key."""
    if isinstance(key, EmbedKey):
        return EmbedProofs(TENANT)
    return RetrieveProofs(TENANT)


def parts(key: ScanKey, value: Any) -> tuple[bytes, ...]:
    """The parts of a proof in a file."""
    result = steps(key).parse_proof(value, field="proof").parts
    assert result is not None
    return result


def failures(
    key: ScanKey | EmbedKey,
    proofs: Sequence[tuple[bytes, ...]],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> Failures:
    """The reasons for refusing proofs of single records, by number, whatever records they name."""
    own: Any = steps(key)
    read = own.reader(key, statements)
    if len(proofs) != len(statements):
        raise ValueError(f"{len(proofs)} proofs of {len(statements)} statements")
    items = Lazy(len(proofs), lambda i: read(Group((), b"", proofs[i]), [statements[i]], ()))
    refused: Failures = own.checker(key, engine).failures(items)
    return refused


def verify_batch(
    key: ScanKey | EmbedKey,
    proofs: Sequence[tuple[bytes, ...]],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> list[int]:
    """The indices of the proofs that do not verify, ascending."""
    return list(failures(key, proofs, statements, engine=engine))


def verify(key: ScanKey | EmbedKey, proof: tuple[bytes, ...], statement: PublicValues) -> None:
    """Raise the reason for refusing a proof, if there is one."""
    for reason in failures(key, [proof], [statement]).values():
        raise reason
