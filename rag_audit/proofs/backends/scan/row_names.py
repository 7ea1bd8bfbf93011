"""The proof that rows of a document table have opened names (docs/scan/row-names.md)."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from rag_audit import _native
from rag_audit._internal.canonical import Json, digest_hex, sha256
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.document_table import TABLE, names_of, points_digest
from rag_audit.proofs.backends.scan.key import DOCUMENT_TABLE_PROTOCOL
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.row_names import NamesSetup
from rag_audit.proofs.statements.document_table import name_element
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.relation.field import to_bytes

ROW_NAMES_PROTOCOL = digest_hex({"system": "scan", "run": "row names", "table": DOCUMENT_TABLE_PROTOCOL})
"""The digest that names the run. No window has a proof of it, so no verifier pins it."""


class ScanRowNames:
    """The scan argument's proofs of the names of rows (`proofs.row_names.RowNames`)."""

    def prove(self, statement: RowNamesPublic, private: TablePrivate) -> dict[str, Json]:
        """See `RowNames.prove`."""
        capacity, rows, points = statement.capacity, statement.rows, statement.table.points
        memory.require(memory.table_proof_bytes(capacity, rows, 1), "proof of the names of rows")
        try:
            proof = _native.scan_row_names_prove(
                _context(statement),
                capacity,
                rows,
                points,
                _positions(statement.positions),
                _elements(statement.names),
                (private.row_of_position, *names_of(private.names), private.key),
            )
        except (ValueError, OverflowError) as exc:
            # The reason may name a row, and row numbers are secret.
            raise WitnessError("the names of the rows have no valid proof", field=f"names of {statement.tenant}",
                               hint="restore the table of the window from a copy of its folder") from exc  # fmt: skip
        return {
            "system": "scan",
            "protocol": ROW_NAMES_PROTOCOL,
            "proof": base64.b64encode(proof).decode(),
            "table": base64.b64encode(points).decode(),
        }

    def verify(self, statement: RowNamesPublic, proof: Json, pins: Pins | None = None) -> NamesSetup:
        """See `RowNames.verify`: there is no setup."""
        found, table = parse_parts(
            proof,
            ("proof", "table"),
            ROW_NAMES_PROTOCOL,
            what="a proof of the names of rows",
            field="names.proof",
        )
        actual = points_digest(TABLE, table, statement.capacity, statement.rows)
        if actual != statement.table.digest:
            raise InvalidProof("the proof is of another document table", field="names.proof.table",
                               expected=statement.table.digest, actual=actual)  # fmt: skip
        try:
            _native.scan_row_names_verify(
                _context(statement),
                statement.capacity,
                statement.rows,
                table,
                _positions(statement.positions),
                _elements(statement.names),
                found,
            )
        except (ValueError, OverflowError) as exc:
            raise refused(exc) from exc
        return "none"


def _context(statement: RowNamesPublic) -> bytes:
    return sha256(
        b"rag-audit/scan/row-names-context/v1" + statement.context + bytes.fromhex(ROW_NAMES_PROTOCOL)
    )


def _positions(positions: Sequence[int]) -> bytes:
    return b"".join(position.to_bytes(4, "little") for position in positions)


def _elements(names: Sequence[bytes]) -> bytes:
    return b"".join(to_bytes(name_element(name)) for name in names)


SYSTEM = ScanRowNames()
"""The proofs that `proofs.row_names.row_names_of` returns."""
