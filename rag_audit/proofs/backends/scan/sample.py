"""The proof that a tenant's column contains the Bernoulli bits of the window's seed, one for each position
(docs/scan/bernoulli-bits.md) or one for each document (docs/scan/document-table.md)."""

from __future__ import annotations

from collections.abc import Mapping

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.scan.column import ColumnJob, column_digest, context_of, slot_of
from rag_audit.proofs.backends.scan.document_table import DocumentTableJob, open_table
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.key import (
    BERNOULLI_PROTOCOL,
    DOCUMENT_TABLE_PROTOCOL,
    POOLED_TABLE_PROTOCOL,
)
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.interface import FileProof, Pins
from rag_audit.proofs.statements.column import ColumnPublic, OpenedColumn
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.private import ColumnPrivate, DocumentTablePrivate
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic


class BernoulliColumn:
    """The proofs about a column of Bernoulli bits (`ColumnProofs`)."""

    def circuit(self, constants: Constants) -> str:
        """See `ColumnProofs.circuit`: one protocol is for every capacity."""
        if constants.pools:
            return POOLED_TABLE_PROTOCOL
        return DOCUMENT_TABLE_PROTOCOL if constants.by_document else BERNOULLI_PROTOCOL

    def prove(
        self, statement: ColumnPublic, witness: ColumnPrivate | DocumentTablePrivate
    ) -> ColumnJob | DocumentTableJob:
        """See `ColumnProofs.prove`."""
        if isinstance(statement, DocumentTablePublic) and isinstance(witness, DocumentTablePrivate):
            return DocumentTableJob.of(statement, witness)
        if isinstance(statement, DocumentTablePublic) or isinstance(witness, DocumentTablePrivate):
            raise WitnessError(
                "only one of statement and private inputs is of a document table", field=statement.name
            )
        return ColumnJob.of(statement, witness)

    def open(
        self,
        statement: ColumnPublic,
        digest: str,
        proof: FileProof,
        published: Mapping[str, Json],
        pins: Pins,
        *,
        engine: str = "native",
    ) -> OpenedColumn:
        """See `ColumnProofs.open`."""
        check_pin(pins)
        if isinstance(statement, DocumentTablePublic):
            return open_table(statement, digest, proof, engine=engine)
        what = f"a proof of {statement.name} positions"
        [part] = parse_parts(proof.value, ("proof",), BERNOULLI_PROTOCOL, what=what, field=proof.field)
        capacity = statement.tenant.constants.capacity
        try:
            rows = engine_of(engine).sample_rows(
                capacity, context_of(statement), slot_of(statement), statement.bound, part
            )
        except ValueError as exc:
            raise refused(exc) from exc
        if (actual := column_digest(statement.name, rows, capacity)) != digest:
            raise InvalidProof(
                "the proof is of another commitment", field=proof.field, expected=digest, actual=actual
            )
        return OpenedColumn(ColumnCommitment(digest, rows), None)

    def published_keys(self, tenant: TenantPublic) -> dict[str, Json]:
        """See `ColumnProofs.published_keys`: the proof itself contains the commitments."""
        return {}


COLUMN = BernoulliColumn()
"""The proofs about a tenant's sampled positions."""
