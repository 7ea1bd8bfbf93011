"""The proof that a tenant's sample follows documents (docs/scan/document-table.md), and the commitment to its table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import EncodingError, InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import column_digest, context_of, slot_of
from rag_audit.proofs.backends.scan.engine import TableNumbers
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.key import DOCUMENT_TABLE_PROTOCOL
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.interface import FileProof
from rag_audit.proofs.statements.document_table import DocumentTablePublic, OpenedTable, name_element
from rag_audit.proofs.statements.private import (
    CommittedTable,
    DocumentTablePrivate,
    PreviousTablePrivate,
    TablePrivate,
)
from rag_audit.proofs.statements.tenant import ColumnCommitment, TableCommitment
from rag_audit.relation.field import to_bytes

TABLE = "document-table"
CARRIED = "carried-document-table"


def points_digest(kind: str, points: bytes, capacity: int, rows: int) -> str:
    """The digest that a window header names of a table: SHA-256 over the kind, the capacity, the number of rows and
    the points, 64 hexadecimal digits.

    :param kind: `TABLE` for a window's table, or `CARRIED` for a table with its bits
    :param points: the points of the columns, in the order of `DocumentTablePublic.table` or `.previous`
    """
    named: Json = {"capacity": capacity, "points": base64.b64encode(points).decode(), "rows": rows}
    return sha256(f"rag-audit/scan/{kind}/v1".encode() + jcs(named)).hex()


def commit_table(capacity: int, table: TablePrivate) -> ColumnCommitment:
    """See `Backend.commit_document_table`."""
    rows = len(table.names)
    memory.require(memory.table_bytes(capacity, rows), "document table")
    try:
        points = _native.scan_documents_commit(
            capacity, table.row_of_position, *_names(table.names), table.key
        )
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the document table is refused", field="table", actual=str(exc)) from exc
    return ColumnCommitment(points_digest(TABLE, points, capacity, rows), points)


def _names(names: Sequence[bytes | None]) -> tuple[bytes, bytes]:
    """The elements of names, 0 for a row without a name, and a byte 1 for each row with a name."""
    elements = b"".join(to_bytes(0 if name is None else name_element(name)) for name in names)
    return elements, bytes(name is not None for name in names)


@dataclass(frozen=True)
class DocumentTableJob:
    """The job that proves a tenant's sample by document. It is picklable. It contains the seed, both tables and their
    keys, which `repr` omits.

    :param name: the column's name
    :param context: 32 bytes that bind the proof to window, tenant, both tables and protocol
    :param slot: c_seed, f(beacon) and the column's slot, 32 bytes each
    :param numbers: the public numbers, in the native core's order
    :param table: the points of the table
    :param previous: the points of the table before, if there is one
    """

    name: str
    context: bytes
    slot: bytes
    numbers: TableNumbers
    table: bytes
    previous: bytes | None
    private: DocumentTablePrivate = field(repr=False)
    keys: ClassVar[dict[str, str]] = {}

    @classmethod
    def of(cls, column: DocumentTablePublic, private: DocumentTablePrivate) -> DocumentTableJob:
        """The job for a statement with the points of its tables.

        :raises PolicyError: a public number is out of range
        :raises WitnessError: the points of a table do not have its digest, or statement and private inputs disagree on
            whether there is a table before
        """
        column.check()
        _check_points(column)
        if (column.previous is None) != (private.previous is None):
            raise WitnessError(
                "the statement and the private inputs disagree",
                field="previous",
                expected="no table before" if column.previous is None else "a table before",
                actual="none" if private.previous is None else "one",
            )
        previous = None if column.previous is None else column.previous.points
        return cls(
            column.name,
            context_of(column, DOCUMENT_TABLE_PROTOCOL),
            slot_of(column),
            _numbers(column),
            column.table.points,
            previous,
            private,
        )

    def run(self) -> CommittedTable:
        """The commitment with its proof and its blindings.

        :raises WitnessError: the private inputs do not satisfy the statement: the seed does not match `c_seed`, a
            table is not the committed one, a row has too many positions, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        capacity, rows, _, drawn, _ = self.numbers
        memory.require_proof(
            lambda low: memory.table_proof_bytes(capacity, rows, drawn, low_memory=low),
            f"proof of the {self.name} positions",
            low_memory=self.private.low_memory,
        )
        seed = to_bytes(self.private.s0) + to_bytes(self.private.s1)
        table, before = self.private.table, self.private.previous
        try:
            proof, columns, blindings = _native.scan_documents_prove(
                self.context,
                self.slot,
                self.numbers,
                self.table,
                self.previous,
                (seed, table.row_of_position, *_names(table.names), table.key),
                None if before is None else _before(before),
                self.private.low_memory,
            )
        except ValueError as exc:
            raise WitnessError(
                f"there is no proof of the {self.name} positions", field=self.name, actual=str(exc)
            ) from exc
        value: dict[str, Json] = {
            "system": "scan",
            "protocol": DOCUMENT_TABLE_PROTOCOL,
            "proof": base64.b64encode(proof).decode(),
            "table": base64.b64encode(self.table).decode(),
        }
        if self.previous is not None:
            value["previous"] = base64.b64encode(self.previous).decode()
        carried = _carried(self.table, columns, capacity, rows)
        return CommittedTable(
            _sample(column_digest(self.name, columns[0], capacity), self.table, columns, carried),
            value,
            blindings[0],
            carried,
            b"".join(blindings[1:]),
        )


def open_table(
    statement: DocumentTablePublic, digest: str, proof: FileProof, *, engine: str = "native"
) -> OpenedTable:
    """See `ColumnProofs.open`; the pins are checked."""
    statement.check()
    names = ("proof", "table", *(() if statement.previous is None else ("previous",)))
    what = f"a proof of {statement.name} positions by document"
    part, *tables = parse_parts(proof.value, names, DOCUMENT_TABLE_PROTOCOL, what=what, field=proof.field)
    table, previous = tables[0], tables[1] if len(tables) > 1 else None
    capacity, rows, *_ = numbers = _numbers(statement)
    for name, points, kind, named in (
        ("table", table, TABLE, statement.table),
        ("previous", previous, CARRIED, statement.previous),
    ):
        if points is not None and named is not None:
            actual = points_digest(kind, points, capacity, rows)
            if actual != named.digest:
                raise InvalidProof(
                    "the proof is of another document table",
                    field=f"{proof.field}.{name}",
                    expected=named.digest,
                    actual=actual,
                )
    context = context_of(statement, DOCUMENT_TABLE_PROTOCOL)
    try:
        columns = engine_of(engine).document_columns(
            context, slot_of(statement), numbers, table, previous, part
        )
    except (ValueError, OverflowError) as exc:
        raise refused(exc) from exc
    if (actual := column_digest(statement.name, columns[0], capacity)) != digest:
        raise InvalidProof(
            "the proof is of another commitment", field=proof.field, expected=digest, actual=actual
        )
    carried = _carried(table, columns, capacity, rows)
    return OpenedTable(_sample(digest, table, columns, carried), None, carried)


def _numbers(column: DocumentTablePublic) -> TableNumbers:
    capacity = column.tenant.constants.capacity
    return capacity, column.rows, column.positions_per_document, column.drawn, column.bound


def _check_points(column: DocumentTablePublic) -> None:
    capacity, rows, *_ = _numbers(column)
    for name, kind, named in (("table", TABLE, column.table), ("previous", CARRIED, column.previous)):
        if named is None:
            continue
        actual = points_digest(kind, named.points, capacity, rows)
        if actual != named.digest:
            raise WitnessError(
                "the points of the document table do not have its digest",
                field=name,
                expected=named.digest,
                actual=actual,
            )


def _before(before: PreviousTablePrivate) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]:
    elements, named = _names(before.names)
    carried = bytes(bool(row) for row in before.carried)
    return elements, named, before.key, before.bits, before.positions, before.opening, carried


def _sample(
    digest: str, table: bytes, columns: Sequence[bytes], carried: ColumnCommitment
) -> TableCommitment:
    sample, kept, _ = columns
    return TableCommitment(digest, sample, table[: len(sample)], kept, carried.digest)


def table_commitment(
    capacity: int, rows: int, sample: ColumnCommitment, table: ColumnCommitment, carried: ColumnCommitment
) -> TableCommitment:
    """See `Backend.table_commitment`. A provider's store has the points of each commitment.

    :raises WitnessError: the points of a commitment do not have its digest
    """
    for name, kind, of in (("table", TABLE, table), ("carried", CARRIED, carried)):
        if (actual := points_digest(kind, of.points, capacity, rows)) != of.digest:
            raise WitnessError(
                "the points of the document table do not have its digest",
                field=name,
                expected=of.digest,
                actual=actual,
            )
    of_names = table.points[len(sample.points) :]
    of_rows = (len(carried.points) - len(of_names)) // 2
    kept = carried.points[len(of_names) : len(of_names) + of_rows]
    return TableCommitment(
        sample.digest, sample.points, table.points[: len(sample.points)], kept, carried.digest
    )


def _carried(table: bytes, columns: Sequence[bytes], capacity: int, rows: int) -> ColumnCommitment:
    """The commitment that the next window names: the table's names, its bits and its numbers of positions. The points
    of the names follow those of the row of each position, which are as many as the points of the sample."""
    sample, kept, count = columns
    points = table[len(sample) :] + kept + count
    return ColumnCommitment(points_digest(CARRIED, points, capacity, rows), points)
