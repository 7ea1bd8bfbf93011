"""Groth16 as a proof system of windows: the circuits for a tenant's constants, their statements, jobs and keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rag_audit import _native
from rag_audit._internal.errors import PolicyError, SetupError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import TableConstants
from rag_audit.proofs.backends import column_module
from rag_audit.proofs.backends.groth16 import coalition
from rag_audit.proofs.backends.groth16.documents import commit_table, no_listed_rows
from rag_audit.proofs.backends.groth16.instance import EmbedInstance, Instance
from rag_audit.proofs.backends.groth16.sample import BernoulliColumn
from rag_audit.proofs.backends.groth16.shared import (
    TABLE_ARTEFACT,
    EmbedProofs,
    RetrieveProofs,
    record_instance,
)
from rag_audit.proofs.backends.groth16.verifiers import ENGINES
from rag_audit.proofs.interface import Pins, Setup
from rag_audit.proofs.proving import CoalitionProofs, ColumnProofs, IndexCommitment, RecordProofs
from rag_audit.proofs.records import Records
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.tenant import (
    ColumnCommitment,
    SlotPublic,
    TableCommitment,
    TenantPublic,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def instances(constants: Constants) -> dict[str, Instance]:
    """The circuits for a tenant's constants, by statement.

    :raises PolicyError: `retrieve` cannot be built for the constants
    """
    result: dict[str, Instance] = {"retrieve": record_instance(constants)}
    result |= {name: column_of(name).instance(constants) for name in constants.columns}
    # Other embedders and limits have no such circuit, so their A1 is not proved.
    with suppress(PolicyError):
        result["embed"] = _embed(constants)
    return result


@dataclass(eq=False)
class Groth16:
    """The proof system of Groth16 over the circuits `retrieve`, `embed`, `kept` and `documents` (`Backend`)."""

    ARTEFACTS: ClassVar[tuple[str, ...]] = (TABLE_ARTEFACT,)
    ENGINES: ClassVar[tuple[str, ...]] = ENGINES
    CIRCUITS = "Circuits"
    coalition: ClassVar[CoalitionProofs] = coalition.SYSTEM

    def check_pins(self, circuits: Sequence[str], pins: Pins) -> set[Setup]:
        """See `Backend.check_pins`: each circuit has a key of its own."""
        kinds: set[Setup] = set()
        for circuit in circuits:
            pin = pins.key(circuit)
            if pin is None:
                raise SetupError("the circuit's key is not pinned", field="trust.pins.groth16", expected=circuit,
                                 actual="no pin")  # fmt: skip
            kinds.add(pin.setup)
        return kinds

    def artefact(self, constants: Constants) -> str:
        """See `Backend.artefact`."""
        return TABLE_ARTEFACT

    def check_constants(self, constants: Constants) -> None:
        """See `Backend.check_constants`."""
        if constants.pools:
            raise no_listed_rows()
        for name in constants.columns:
            column_of(name).instance(constants)
        record_instance(constants)

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """See `Backend.commit_index`: one hash, which is not stored."""
        return IndexCommitment(_native.index_commitment(blinding, rows.tobytes(), rows.shape[1]))

    def circuits(self, constants: Constants) -> dict[str, str]:
        """See `Backend.circuits`."""
        return {name: instance.digest() for name, instance in instances(constants).items()}

    def batch(
        self,
        name: str,
        constants: Constants,
        wanted: int | None,
        *,
        low_memory: bool = False,
        at_a_time: int = 1,
    ) -> int:
        """See `Backend.batch`: each number has a key of its own, so none is chosen unless it is named."""
        if name != "retrieve" or wanted is None or wanted == 1:
            return 1
        record_instance(constants, wanted)
        return wanted

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        """See `Backend.records`."""
        return Records(self.steps(name, tenant, places))

    def steps(self, name: str, tenant: TenantPublic, places: int = 1) -> EmbedProofs | RetrieveProofs:
        """This system's steps for `records`."""
        if name == "embed":
            return EmbedProofs(_embed(tenant.constants))
        return RetrieveProofs(record_instance(tenant.constants, places))

    def slot_proof_job(self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False) -> None:
        """See `Backend.slot_proof_job`: Groth16 has none."""

    def commit_document_table(self, capacity: int, table: TablePrivate) -> ColumnCommitment:
        """See `Backend.commit_document_table`."""
        return commit_table(capacity, table)

    def commit_listed(self, constants: Constants, listed: bytes, secret: bytes) -> str:
        """See `Backend.commit_listed`: no circuit proves pooled listing."""
        raise no_listed_rows()

    def open_listed(
        self, constants: Constants, listed: bytes, secret: bytes
    ) -> tuple[ColumnCommitment, bytes]:
        """See `Backend.open_listed`, as `commit_listed`."""
        raise no_listed_rows()

    def table_commitment(
        self,
        constants: Constants,
        sample: ColumnCommitment,
        table: ColumnCommitment,
        carried: ColumnCommitment,
    ) -> TableCommitment:
        """See `Backend.table_commitment`, as `commit_listed`."""
        raise no_listed_rows()

    def column(self, name: str) -> ColumnProofs:
        """See `Backend.column`."""
        return column_of(name)


def column_of(name: str) -> BernoulliColumn:
    """The proofs about a tenant's column by its name."""
    proofs: BernoulliColumn = column_module("groth16", name).COLUMN
    return proofs


SYSTEM = Groth16()
"""The system that `proofs.backends.backend` returns."""


def _embed(c: Constants) -> EmbedInstance:
    if not isinstance(c.table, TableConstants):
        raise PolicyError("the embedder's vectors cannot be proved by circuits", field="embedder")
    return EmbedInstance.of(c.query_tokens, c.dimension, c.table)
