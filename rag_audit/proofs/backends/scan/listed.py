"""Commitments to the listed rows of a tenant with pooled listing (docs/scan/pooled-listing.md)."""

from __future__ import annotations

from rag_audit import _native
from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.scan.column import record_blindings, rows_digest
from rag_audit.proofs.statements.tenant import ColumnCommitment


def listed_rows(capacity: int, listed: bytes, blindings: bytes) -> bytes:
    """The commitments to a tenant's listed rows, 32 bytes a point.

    :param listed: one byte 0 or 1 for each row of the document table
    :param blindings: 32 bytes for each point
    :raises EncodingError: the number of rows is out of range, or a byte is no bit
    """
    try:
        return _native.scan_listed_rows(capacity, listed, blindings)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the listed rows are refused", field="listed", actual=str(exc)) from exc


def listed_blindings(capacity: int, rows: int, secret: bytes) -> bytes:
    """The blindings of a tenant's listed rows after a record (`record_blindings`).

    :param secret: the record's own 32 bytes
    :raises EncodingError: the number of rows is out of range
    """
    return record_blindings(b"rag-audit/listed/v1", secret, len(no_rows(capacity, rows)) // 32)


def listed_digest(capacity: int, rows: int, points: bytes) -> str:
    """The digest in a record: SHA-256 over capacity, number of rows and points, 64 hexadecimal digits."""
    return rows_digest(b"rag-audit/scan/listed/v1" + rows.to_bytes(4, "big"), capacity, points)


def no_rows(capacity: int, rows: int) -> bytes:
    """The commitments to no listed row, a public constant: values 0 under the blinding 1, 32 bytes a point.

    :raises EncodingError: the number of rows is out of range
    """
    try:
        return _native.scan_listed_empty(capacity, rows)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the listed rows are refused", field="listed", actual=str(exc)) from exc


def open_listed(capacity: int, listed: bytes, secret: bytes) -> tuple[ColumnCommitment, bytes]:
    """See `Backend.open_listed`."""
    blindings = listed_blindings(capacity, len(listed), secret)
    points = listed_rows(capacity, listed, blindings)
    return ColumnCommitment(listed_digest(capacity, len(listed), points), points), blindings
