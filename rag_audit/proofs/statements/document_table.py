"""The public values of sampling by document: all positions of a document share one Bernoulli bit, which persists from
window to window (docs/scan/document-table.md)."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import PolicyError
from rag_audit.proofs.statements.column import ColumnPublic, OpenedColumn
from rag_audit.proofs.statements.tenant import ColumnCommitment
from rag_audit.relation.field import digest_to_field

MAX_ROWS = 1 << 20
"""The largest number of rows of a table, whatever the capacity."""
NAME_COLUMNS = 5
"""The number of columns that hold the parts of names, 51 bits each."""


@dataclass(frozen=True)
class DocumentTablePublic(ColumnPublic):
    """The public values of a tenant's sample by document. They exist once the window's beacon is drawn. The window
    header names `table` and `previous` before.

    :param rows: D, the number of rows of the table
    :param positions_per_document: s, the maximum number of positions of a row
    :param drawn: F, the number of rows whose bits this window draws, which are the first rows. It is `rows` in the
        first window of a chain, and in every window of a tenant that draws all bits anew
    :param table: the commitment to this window's table: the row of each position, whether each row has a name, and the
        five columns of names. A verifier has only the digest
    :param previous: the commitment to the table before, `OpenedTable.carried` of the window before: whether each row
        has a name, the five columns of names, the bits, the numbers of positions, and with pooled listing the rows that
        were listed when that window began. None in the first window of a chain. A verifier has only the digest
    :param pooled: whether the tenant has pooled listing, so that rows stay listed
    :param listed: with pooled listing, the commitment in the tenant's last record of the window before. None if that
        window has no record of the tenant: the rows that were listed when it began are still the listed ones
    """

    rows: int
    positions_per_document: int
    drawn: int
    table: ColumnCommitment
    previous: ColumnCommitment | None
    pooled: bool = False
    listed: ColumnCommitment | None = None

    @property
    def context(self) -> bytes:
        """32 bytes that bind the proof to window header, tenant, both tables and every public number."""
        bound: dict[str, Json] = {
            "header": self.tenant.header,
            "tenant": self.tenant.tenant,
            "capacity": self.tenant.constants.capacity,
            "rows": self.rows,
            "positions_per_document": self.positions_per_document,
            "drawn": self.drawn,
            "bound": self.bound,
            "table": self.table.digest,
            "previous": None if self.previous is None else self.previous.digest,
        }
        if self.pooled:
            bound["listed"] = None if self.listed is None else self.listed.digest
        return sha256(f"rag-audit/{self.name}-by-document/v1".encode() + jcs(bound))

    def check(self) -> None:
        """Return if no number is out of range.

        :raises PolicyError: one is; the error names it
        """
        capacity = self.tenant.constants.capacity
        for name, actual, minimum, maximum in (
            ("rows", self.rows, 1, min(MAX_ROWS, capacity)),
            ("positions_per_document", self.positions_per_document, 1, capacity),
            ("drawn", self.drawn, self.rows if self.previous is None else 1, self.rows),
        ):
            if not minimum <= actual <= maximum:
                raise PolicyError(
                    "a number of the document table is out of range",
                    field=name,
                    expected=f"{minimum} to {maximum}",
                    actual=actual,
                )


@dataclass(frozen=True)
class OpenedTable(OpenedColumn):
    """A tenant's sample by document as a verifier accepted it.

    :param carried: the commitment to this window's table with its bits, and with pooled listing to the rows that are
        listed when the window begins, which the next window of the chain names as `DocumentTablePublic.previous`
    """

    carried: ColumnCommitment


def name_element(name: bytes | None) -> int:
    """The name of a row as the field element in the table: f(name) of docs/relation.md, the first 31 bytes of the
    name's SHA-256. Column k of the names holds the bits 51 k to 51 k + 50 of this integer.

    :param name: `models.names.document_name`, 32 bytes; None for a row without a name, which has the element 0
    """
    return 0 if name is None else digest_to_field(name)
