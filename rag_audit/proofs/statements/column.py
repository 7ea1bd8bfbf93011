"""Statements about a column that a window commits to once for a tenant, in addition to its index (`Mechanism.columns`).

The ledger names the commitment before the tenant's first query. A statement defines the column's content: the Bernoulli
bits of seed and beacon. Records' statements may also refer to the column, by its commitment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_audit._internal.canonical import jcs, sha256
from rag_audit.proofs.statements.tenant import ColumnCommitment, SlotPublic


@dataclass(frozen=True)
class ColumnPublic(SlotPublic):
    """The public values of a tenant's column, which exist once the window's beacon is drawn; `slot` is the column's.

    :param name: the column's name
    :param bound: Pi: the bit of a position is 1 if its draw is below it
    """

    name: str
    bound: int

    @property
    def context(self) -> bytes:
        """32 bytes that bind the proof to window header, tenant and column."""
        return sha256(
            f"rag-audit/{self.name}/v1".encode()
            + jcs({"header": self.tenant.header, "tenant": self.tenant.tenant})
        )


@dataclass(frozen=True)
class OpenedColumn:
    """A tenant's column as a verifier accepted it.

    :param commitment: the commitment that the ledger names, with its points
    :param setup: the kind of setup of the key; None where no setup has secrets
    """

    commitment: ColumnCommitment
    setup: Literal["unsafe", "ceremony"] | None
