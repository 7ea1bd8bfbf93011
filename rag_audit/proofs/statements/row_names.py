"""The public values of the proof that the rows at some positions have the names that a provider opened
(docs/scan/row-names.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit.proofs.statements.tenant import ColumnCommitment


@dataclass(frozen=True)
class RowNamesPublic:
    """The public values: the row of each position in the committed document table has the name.

    :param header: the digest of the window header, 64 hexadecimal digits
    :param capacity: N, the positions of the index
    :param rows: D, the rows of the table
    :param table: the commitment to the table in the window header. An account has only the digest
    :param positions: strictly increasing, each below `capacity`
    :param names: the name at each position, 32 bytes each (`models.names.document_name`)
    """

    header: str
    tenant: str
    capacity: int
    rows: int
    table: ColumnCommitment
    positions: Sequence[int]
    names: Sequence[bytes]

    @property
    def context(self) -> bytes:
        """32 bytes that bind the proof to window header, tenant and table. Positions and names are part of the
        statement."""
        bound: dict[str, Json] = {
            "header": self.header,
            "tenant": self.tenant,
            "capacity": self.capacity,
            "rows": self.rows,
            "table": self.table.digest,
        }
        return sha256(b"rag-audit/row-names/v1" + jcs(bound))
