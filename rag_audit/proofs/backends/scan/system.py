"""The scan argument as a proof system of windows: protocols by statement, jobs, and the index commitment as key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rag_audit._internal.errors import EncodingError, PolicyError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import ENCODER_ARTEFACT, EncoderConstants
from rag_audit.proofs.backends import column_module
from rag_audit.proofs.backends.scan import coalition, memory
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.document_table import commit_table, table_commitment
from rag_audit.proofs.backends.scan.embed import TABLE_ARTEFACT, EmbedProofs, embed_argument
from rag_audit.proofs.backends.scan.encoder import EncoderProofs, encoder_argument
from rag_audit.proofs.backends.scan.engine import engines
from rag_audit.proofs.backends.scan.key import MAX_LISTED, index_digest
from rag_audit.proofs.backends.scan.listed import open_listed
from rag_audit.proofs.backends.scan.pooled_listing import PooledProofs
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.retrieve import RetrieveProofs, max_batch, protocol_for, retrieve_key
from rag_audit.proofs.backends.scan.store import commit_index_file
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
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_CAPACITY = 1 << 24


@dataclass(eq=False)
class Scan:
    """The proof system of the scan argument (`Backend`)."""

    ARTEFACTS: ClassVar[tuple[str, ...]] = (TABLE_ARTEFACT, ENCODER_ARTEFACT)
    ENGINES: ClassVar[tuple[str, ...]] = engines()
    CIRCUITS = "Protocols"
    coalition: ClassVar[CoalitionProofs] = coalition.SYSTEM

    def check_pins(self, circuits: Sequence[str], pins: Pins) -> set[Setup]:
        """See `Backend.check_pins`: one digest pins all protocols of a release."""
        check_pin(pins)
        return {None}

    def artefact(self, constants: Constants) -> str:
        """See `Backend.artefact`."""
        return ENCODER_ARTEFACT if isinstance(constants.table, EncoderConstants) else TABLE_ARTEFACT

    def check_constants(self, constants: Constants) -> None:
        """See `Backend.check_constants`."""
        if constants.gains:
            check_gains(constants.gains)
        ScoreWindow(constants.lo, constants.hi, constants.lattice).check_reach(constants.dimension)
        for name, actual, maximum in (
            ("capacity", constants.capacity, MAX_CAPACITY),
            ("top_k", constants.top_k, min(MAX_LISTED, constants.capacity)),
        ):
            if not 1 <= actual <= maximum:
                raise PolicyError(
                    "the value is out of range", field=name, expected=f"1 to {maximum}", actual=actual
                )

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """See `Backend.commit_index`: `blinding` is the blinding key, and the points are stored."""
        capacity, dimension = rows.shape
        points = commit_index_file(path, rows, capacity, blinding, progress=progress)
        return IndexCommitment(index_digest(points, dimension, capacity), points)

    def circuits(self, constants: Constants) -> dict[str, str]:
        """See `Backend.circuits`."""
        self.check_constants(constants)
        result = {"retrieve": protocol_for(constants)}
        result |= {name: self.column(name).circuit(constants) for name in constants.columns}
        # Other embedders and limits do not fit the argument, and their A1 is not proved.
        with suppress(PolicyError):
            encoder = isinstance(constants.table, EncoderConstants)
            argument = encoder_argument(constants) if encoder else embed_argument(constants)
            result["embed"] = argument.digest()
        return result

    def batch(
        self,
        name: str,
        constants: Constants,
        wanted: int | None,
        *,
        low_memory: bool = False,
        at_a_time: int = 1,
    ) -> int:
        """See `Backend.batch`: for `retrieve` of tenants that sample all positions."""
        if name != "retrieve" or constants.sampled or wanted == 1:
            return 1
        maximum = max_batch(constants.capacity, len(constants.gains))
        if wanted is None:
            return memory.fitting_batch(
                constants.capacity, constants.gains, maximum, low_memory=low_memory, at_a_time=at_a_time
            )
        if not 2 <= wanted <= maximum:
            raise PolicyError("no proof is for that many records", field="batch",
                              expected=f"2..{maximum}", actual=wanted)  # fmt: skip
        return wanted

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        """See `Backend.records`."""
        if name == "embed" and isinstance(tenant.constants.table, EncoderConstants):
            return Records(EncoderProofs(tenant))
        if name == "embed":
            return Records(EmbedProofs(tenant))
        if tenant.constants.pools:
            return Records(PooledProofs(tenant))
        return Records(RetrieveProofs(tenant, self.batch(name, tenant.constants, places)))

    def commit_listed(self, constants: Constants, listed: bytes, secret: bytes) -> str:
        """See `Backend.commit_listed`."""
        if len(listed) != constants.rows:
            raise EncodingError("the listed rows have another number", field="listed",
                                expected=constants.rows, actual=len(listed))  # fmt: skip
        return open_listed(constants.capacity, listed, secret)[0].digest

    def open_listed(
        self, constants: Constants, listed: bytes, secret: bytes
    ) -> tuple[ColumnCommitment, bytes]:
        """See `Backend.open_listed`."""
        return open_listed(constants.capacity, listed, secret)

    def table_commitment(
        self,
        constants: Constants,
        sample: ColumnCommitment,
        table: ColumnCommitment,
        carried: ColumnCommitment,
    ) -> TableCommitment:
        """See `Backend.table_commitment`."""
        return table_commitment(constants.capacity, constants.rows or 0, sample, table, carried)

    def commit_document_table(self, capacity: int, table: TablePrivate) -> ColumnCommitment:
        """See `Backend.commit_document_table`."""
        return commit_table(capacity, table)

    def slot_proof_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> SlotProofJob | None:
        """See `Backend.slot_proof_job`: None without noise."""
        if not slot.tenant.constants.gains:
            return None
        return SlotProofJob.of(retrieve_key(slot.tenant), slot, s0, s1, low_memory=low_memory)

    def column(self, name: str) -> ColumnProofs:
        """See `Backend.column`."""
        proofs: ColumnProofs = column_module("scan", name).COLUMN
        return proofs


SYSTEM = Scan()
"""The system that `proofs.backends.backend` returns."""
