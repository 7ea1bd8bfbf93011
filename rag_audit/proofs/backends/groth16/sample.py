"""The proof that a tenant's column contains the Bernoulli bits of the window's seed, by the circuit `kept`, or
`documents` for a tenant with a document table (docs/circuits.md)."""

from __future__ import annotations

from collections.abc import Mapping

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import WitnessError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.documents import DocumentTableJob, read_proof
from rag_audit.proofs.backends.groth16.instance import DocumentsInstance, SampleInstance
from rag_audit.proofs.backends.groth16.job import ColumnJob, sampled_positions
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.shared import bound, pinned_key
from rag_audit.proofs.backends.groth16.statements import DocumentsStatement
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_proof
from rag_audit.proofs.interface import FileProof, Pins
from rag_audit.proofs.statements.column import ColumnPublic, OpenedColumn
from rag_audit.proofs.statements.document_table import DocumentTablePublic, OpenedTable
from rag_audit.proofs.statements.private import ColumnPrivate, DocumentTablePrivate
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic
from rag_audit.relation.field import digest_to_field, from_hex, to_hex


class BernoulliColumn:
    """The proofs about a column of Bernoulli bits (`ColumnProofs`)."""

    def instance(self, constants: Constants) -> SampleInstance | DocumentsInstance:
        """The circuit for a tenant's constants.

        :raises PolicyError: no circuit can be built for the constants
        """
        if constants.rows is None:
            return SampleInstance(constants.capacity)
        return DocumentsInstance(constants.capacity, constants.rows)

    def circuit(self, constants: Constants) -> str:
        """See `ColumnProofs.circuit`."""
        return self.instance(constants).digest()

    def prove(
        self, statement: ColumnPublic, witness: ColumnPrivate | DocumentTablePrivate
    ) -> ColumnJob | DocumentTableJob:
        """See `ColumnProofs.prove`."""
        if isinstance(statement, DocumentTablePublic) and isinstance(witness, DocumentTablePrivate):
            return bound(DocumentTableJob.of(statement, witness))
        if isinstance(statement, DocumentTablePublic) or isinstance(witness, DocumentTablePrivate):
            raise WitnessError("statement and private inputs disagree on whether there is a document table",
                               field=statement.name)  # fmt: skip
        instance, s0, s1 = SampleInstance(statement.tenant.constants.capacity), witness.s0, witness.s1
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
        opened = pinned_key(self.circuit(statement.tenant.constants), published, pins)
        public, parsed = self.read(statement, digest, proof)
        if bad := failures(opened.key, [parsed], [public], engine=engine):
            raise bad[0]
        commitment = ColumnCommitment(digest)
        if isinstance(public, DocumentsStatement):
            return OpenedTable(commitment, opened.setup, ColumnCommitment(to_hex(public.c_carried)))
        return OpenedColumn(commitment, opened.setup)

    def read(
        self, statement: ColumnPublic, digest: str, proof: FileProof
    ) -> tuple[SampleStatement | DocumentsStatement, bytes]:
        """The circuit's public values for a proof in a file, and the proof, 256 bytes in EIP-197 order.

        :param digest: the commitment in the ledger
        :raises PolicyError, SchemaError, EncodingError: as `documents.read_proof`
        """
        circuit = self.circuit(statement.tenant.constants)
        if isinstance(statement, DocumentTablePublic):
            return read_proof(statement, digest, proof.value, circuit, field=proof.field)
        public = SampleStatement.of(statement, from_hex(digest, field=statement.name))
        return public, parse_proof(proof.value, circuit, field=proof.field)

    def published_keys(self, tenant: TenantPublic) -> dict[str, Json]:
        """See `ColumnProofs.published_keys`."""
        instance = self.instance(tenant.constants)
        return {instance.digest(): proving_key(instance).vk}


COLUMN = BernoulliColumn()
"""The proofs about a tenant's sampled positions."""
