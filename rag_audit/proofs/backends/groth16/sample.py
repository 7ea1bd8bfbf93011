"""The proof that a tenant's column contains the Bernoulli bits of the window's seed, by the circuit `kept`
(docs/circuits.md)."""

from __future__ import annotations

from collections.abc import Mapping

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.instance import SampleInstance
from rag_audit.proofs.backends.groth16.job import ColumnJob, sampled_positions
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.shared import bound, pinned_key
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_proof
from rag_audit.proofs.interface import FileProof, Pins
from rag_audit.proofs.statements.column import ColumnPublic, OpenedColumn
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.private import ColumnPrivate, DocumentTablePrivate
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic
from rag_audit.relation.field import digest_to_field, from_hex


def no_tables() -> PolicyError:
    """The error for samples by document."""
    return PolicyError(
        "this proof system proves samples by position only",
        field="proof_system",
        expected="scan",
        actual="groth16",
    )


def _by_position(statement: ColumnPublic) -> None:
    if isinstance(statement, DocumentTablePublic):
        raise no_tables()


class BernoulliColumn:
    """The proofs about a column of Bernoulli bits (`ColumnProofs`)."""

    def instance(self, constants: Constants) -> SampleInstance:
        """The circuit for a tenant's constants."""
        return SampleInstance(constants.capacity)

    def circuit(self, constants: Constants) -> str:
        """See `ColumnProofs.circuit`."""
        if constants.by_document:
            raise no_tables()
        return self.instance(constants).digest()

    def prove(self, statement: ColumnPublic, witness: ColumnPrivate | DocumentTablePrivate) -> ColumnJob:
        """See `ColumnProofs.prove`."""
        _by_position(statement)
        if isinstance(witness, DocumentTablePrivate):
            raise no_tables()
        instance, s0, s1 = self.instance(statement.tenant.constants), witness.s0, witness.s1
        salt = digest_to_field(witness.salt)
        _, commitment = sampled_positions(
            instance.capacity,
            s0=s0,
            s1=s1,
            beacon=statement.beacon,
            slot=statement.slot,
            keep=statement.bound,
            salt=salt,
        )
        return bound(ColumnJob(instance, SampleStatement.of(statement, commitment), s0, s1, salt))

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
        _by_position(statement)
        circuit = self.circuit(statement.tenant.constants)
        opened = pinned_key(circuit, published, pins)
        public = SampleStatement.of(statement, from_hex(digest, field=statement.name))
        parsed = parse_proof(proof.value, circuit, field=proof.field)
        if bad := failures(opened.key, [parsed], [public], engine=engine):
            raise bad[0]
        return OpenedColumn(ColumnCommitment(digest), opened.setup)

    def published_keys(self, tenant: TenantPublic) -> dict[str, Json]:
        """See `ColumnProofs.published_keys`."""
        instance = self.instance(tenant.constants)
        return {instance.digest(): proving_key(instance).vk}


COLUMN = BernoulliColumn()
"""The proofs about a tenant's sampled positions."""
