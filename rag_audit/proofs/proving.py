"""The interface of proof systems for providers: commitments to columns, and proofs of statements about them.

`Backend` adds the functions with private inputs to `interface.ProofSystem` (`statements.private`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rag_audit._internal.canonical import Json
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends import load
from rag_audit.proofs.interface import (
    CoalitionVerifiers,
    ColumnVerifiers,
    Job,
    Made,
    ProofSystem,
    RecordVerifiers,
)
from rag_audit.proofs.statements.coalition import CoalitionSize, CoalitionStatement
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.private import (
    CoalitionPrivate,
    ColumnPrivate,
    CommittedColumn,
    DocumentTablePrivate,
    NoiseProof,
    RecordPrivate,
    TablePrivate,
)
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import (
    ColumnCommitment,
    SlotPublic,
    TableCommitment,
    TenantPublic,
)

if TYPE_CHECKING:
    import concurrent.futures

    import numpy as np
    import numpy.typing as npt

MAX_BATCH = 64
"""Maximum records of one proof, in any system and for any tenant."""


class BoundJob(Job[Made], Protocol[Made]):
    """A job that is bound to verification keys of this machine's cache, wherever it runs."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The digests of these keys by circuit; empty for systems without keys."""


RecordJob: TypeAlias = BoundJob[dict[str, Json]]
"""A job that proves one statement about one or several records; the proof is as files carry it."""


@dataclass(frozen=True)
class IndexCommitment:
    """The commitment of a tenant's proof system to its index.

    :param digest: C_idx
    :param points: the points with digest C_idx; empty for systems without points
    """

    digest: bytes
    points: bytes = b""


class RecordProofs(RecordVerifiers, Protocol):
    """Proofs of one kind of statement about one tenant's records, each for up to the same number of records."""

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> RecordJob:
        """The job that proves the statement about these records, bound to the verification key of this machine's cache.

        :param statement: the records' public values by the record's name, which errors use
        :param witness: their private inputs, in the same order
        :raises WitnessError: the private inputs do not fit the statement
        """

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """The part of a proof made by `prove` that the record with this number carries: the proof, or a reference to
        the first record's."""

    def published_keys(self) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of these proofs, by digest."""


class CoalitionProofs(CoalitionVerifiers, Protocol):
    """The coalition proofs of one system."""

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of the coalition proof, by digest.

        :raises SetupError: a key is missing and cannot be made
        """

    def prove(
        self,
        statement: CoalitionStatement,
        witness: CoalitionPrivate,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Json]:
        """The coalition proof as JSON, with `system` and `circuit` among its fields. It is verified before it is
        returned, since the window trailer that names it is final.

        :param executor: where blocks are proved; in this process if None
        :param progress: called with (blocks done, blocks)
        :raises WitnessError: the claim is false, or the window has more records than the system takes
        :raises InvalidProof: the new proof does not verify, for example because the proving key is damaged
        """


class ColumnProofs(ColumnVerifiers, Protocol):
    """One system's proofs of the statement about a column that a window commits to once for a tenant."""

    def prove(
        self, statement: ColumnPublic, witness: ColumnPrivate | DocumentTablePrivate
    ) -> BoundJob[CommittedColumn]:
        """The job that commits to the column and proves the statement.

        :param witness: for a `DocumentTablePublic` a `DocumentTablePrivate`; the job's result is a `CommittedTable`
        :raises WitnessError: statement and witness disagree
        :raises PolicyError: a public number is out of range, or the system does not prove the statement
        """

    def published_keys(self, tenant: TenantPublic) -> dict[str, Json]:
        """As `RecordProofs.published_keys`."""


class Backend(ProofSystem, Protocol):
    """The interface of a proof system for provider and verifier."""

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """Commit to an index.

        :param rows: the index, shape (capacity, dimension), may be mapped from a file
        :param blinding: salt of the commitment, or its blinding key, 32 bytes
        :param path: the file of a slow commitment, which a later call reads for the same rows and blinding
        :param progress: called with (components done, dimension), for a slow commitment
        :raises StoreError: the stored file was altered, belongs to another index, or cannot be written
        :raises MemoryLimitError: the machine has too little memory for the work
        """

    def batch(
        self,
        name: str,
        constants: Constants,
        wanted: int | None,
        *,
        low_memory: bool = False,
        at_a_time: int = 1,
    ) -> int:
        """The number of records that one proof of the statement is made for; 1 if the system proves one at a time.

        :param wanted: the number; None selects the largest that this system proves without a further setup and that
            fits into this machine's free memory
        :param at_a_time: the number of proofs that are made at a time, and share this memory
        :raises PolicyError: no circuit can be built for the number of records, or it is beyond the argument's
        """

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        """See `ProofSystem.records`.

        :param places: the number of records that a proof is for (`batch`)
        """

    def slot_proof_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> Job[NoiseProof] | None:
        """The job that precomputes a slot's noise proof; None if the slot has none."""

    def commit_listed(self, constants: Constants, listed: bytes, secret: bytes) -> str:
        """The commitment to the listed rows of a tenant with pooled listing, for a record, 64 hexadecimal digits.

        :param listed: one byte 0 or 1 for each row of the document table
        :param secret: 32 secret bytes for only this record, from which the blindings follow
        :raises EncodingError: there is another number of rows, or a byte is no bit
        :raises PolicyError: the system does not prove pooled listing
        """

    def open_listed(
        self, constants: Constants, listed: bytes, secret: bytes
    ) -> tuple[ColumnCommitment, bytes]:
        """The same commitment with its points, and its secret blindings, for the next window's table.

        :raises EncodingError: as `commit_listed`
        :raises PolicyError: the system does not prove pooled listing
        """

    def table_commitment(
        self,
        constants: Constants,
        sample: ColumnCommitment,
        table: ColumnCommitment,
        carried: ColumnCommitment,
    ) -> TableCommitment:
        """The commitment to a sample by document with the columns that records of pooled listing use, from a provider's
        stored commitments.

        :param sample: `CommittedTable.commitment`
        :param table: the result of `commit_document_table`
        :param carried: `CommittedTable.carried`
        :raises PolicyError: the system does not prove pooled listing
        """

    def commit_document_table(self, capacity: int, table: TablePrivate) -> ColumnCommitment:
        """The commitment to a tenant's document table, before the beacon. It depends only on the arguments.

        :raises EncodingError: a row is not in the table, the number of rows is out of range, or there is another number
            of positions
        :raises PolicyError: the system does not prove samples by document
        :raises MemoryLimitError: the machine has too little memory for the work
        """

    def column(self, name: str) -> ColumnProofs:
        """See `ProofSystem.column`."""

    @property
    def coalition(self) -> CoalitionProofs:
        """The system's coalition proofs."""


def backend(name: str) -> Backend:
    """The proof system that a policy names, for a provider.

    >>> backend("scan").ENGINES[0]
    'native'

    :raises VersionError: this release does not have the system
    """
    result: Backend = load(name).SYSTEM
    return result
