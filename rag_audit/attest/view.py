"""The read-only view of a provider's window."""

from __future__ import annotations

from pathlib import Path

from rag_audit.attest.context import Context
from rag_audit.attest.proving import Prover
from rag_audit.attest.publishing import Publisher
from rag_audit.attest.state import LedgerState
from rag_audit.commit.commitment import Commitment
from rag_audit.log.keys import VerifierKey
from rag_audit.models.policy import Policy
from rag_audit.models.records import Opening, QueryRecord


class WindowView:
    """The part of a `Window` that changes no state, but may write files that follow from the ledger."""

    state: LedgerState
    context: Context
    publisher: Publisher
    prover: Prover

    def export(self, path: Path | None = None) -> Path:
        """Write window.json as it stands (to public/ by default): entries, checkpoints, proofs, keys."""
        return self.publisher.export(path)

    def checkpoint(self, size: int | None = None) -> str:
        """The signed checkpoint note of the ledger's first `size` entries (all by default)."""
        return self.publisher.checkpoint(size)

    @property
    def opening(self) -> Opening:
        """The opening, entry 0 of the ledger."""
        return self.context.opening

    @property
    def opening_digest(self) -> str:
        """The digest of entry 0, which names the window."""
        return self.context.opening_digest

    @property
    def commitment(self) -> Commitment:
        """The commitment: the documents that the opening commits to, with the secrets behind it."""
        return self.context.commitment

    @property
    def policy(self) -> Policy:
        """The window's policy."""
        return self.context.policy

    @property
    def witnesses(self) -> tuple[VerifierKey, ...]:
        """The witnesses whose cosignatures the window waits for."""
        return self.context.witnesses

    @property
    def status(self) -> str:
        """``committed`` (waits for quorum and beacon), ``active``, ``closed`` (waits for cosignatures) or ``final``."""
        if self.state.ended:
            return "final" if self.publisher.fully_cosigned(len(self.state.entries)) else "closed"
        return "active" if 0 in self.state.beacons else "committed"

    @property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return self.state.records

    @property
    def low_memory(self) -> bool:
        """Whether scan tenants' proofs and noise certificates, which stay the same, are made in less memory and more
        time. It may be set at any time."""
        return self.prover.low_memory

    @low_memory.setter
    def low_memory(self, value: bool) -> None:
        self.prover.low_memory = value
