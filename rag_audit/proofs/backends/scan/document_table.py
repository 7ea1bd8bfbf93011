"""The proof that a tenant's sample follows documents (docs/scan/document-table.md), and the commitment to its table."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import EncodingError, InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import column_digest, context_of, slot_of
from rag_audit.proofs.backends.scan.engine import TableNumbers
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.key import DOCUMENT_TABLE_PROTOCOL, POOLED_TABLE_PROTOCOL
from rag_audit.proofs.backends.scan.listed import listed_digest, no_rows
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
CARRIED_POOLED = "carried-pooled-document-table"


def points_digest(kind: str, points: bytes, capacity: int, rows: int) -> str:
    """The digest that a window header names of a table: SHA-256 over the kind, the capacity, the number of rows and
    the points, 64 hexadecimal digits.

    :param kind: `TABLE` for a window's table, `CARRIED` for a table with its bits, or with pooled listing
        `CARRIED_POOLED` for a table with its bits and the rows that are listed when the window begins
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
            capacity, table.row_of_position, *names_of(table.names), table.key
        )
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the document table is refused", field="table", actual=str(exc)) from exc
    return ColumnCommitment(points_digest(TABLE, points, capacity, rows), points)


def names_of(names: Sequence[bytes | None]) -> tuple[bytes, bytes]:
    """The elements of names, 0 for a row without a name, and a byte 1 for each row with a name."""
    elements = b"".join(to_bytes(name_element(name)) for name in names)
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
    :param pooled: whether rows stay listed
    :param listed: the points of the tenant's last record of the window before, if that window has one
    """

    name: str
    context: bytes
    slot: bytes
    numbers: TableNumbers
    table: bytes
    previous: bytes | None
    private: DocumentTablePrivate = field(repr=False)
    pooled: bool = False
    listed: bytes | None = None
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
        private.check(column)
        before = private.previous
        if before is not None and (before.listed is not None) != column.pooled:
            raise WitnessError(
                "the statement and the private inputs disagree",
                field="listed",
                expected="the listed rows of the table before" if column.pooled else "no listed rows",
                actual="none" if column.pooled else "listed rows",
            )
        return cls(
            column.name,
            context_of(column, _protocol(column.pooled)),
            slot_of(column),
            _numbers(column),
            column.table.points,
            None if column.previous is None else column.previous.points,
            private,
            column.pooled,
            None if column.listed is None else column.listed.points,
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
                _before_points(self.previous, self.listed),
                self.pooled and self.previous is not None,
                (seed, table.row_of_position, *names_of(table.names), table.key),
                None if before is None else _before(before),
                self.private.low_memory,
            )
        except ValueError as exc:
            raise WitnessError(
                f"there is no proof of the {self.name} positions", field=self.name, actual=str(exc)
            ) from exc
        value: dict[str, Json] = {"system": "scan", "protocol": _protocol(self.pooled)}
        for name, part in (
            ("proof", proof),
            ("table", self.table),
            ("previous", self.previous),
            ("listed", self.listed),
        ):
            if part is not None:
                value[name] = base64.b64encode(part).decode()
        columns = _with_listed(columns, capacity, rows, pooled=self.pooled)
        if len(blindings) < len(columns):
            blindings = [*blindings, to_bytes(1) * (len(columns[-1]) // 32)]
        carried = _carried(self.table, columns, capacity, rows)
        return CommittedTable(
            _sample(
                column_digest(self.name, columns[0], capacity),
                self.table,
                columns,
                carried.digest,
                (capacity, rows),
            ),
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
    given = {"previous": statement.previous, "listed": statement.listed}
    names = ("proof", "table", *(name for name, named in given.items() if named is not None))
    what, protocol = f"a proof of {statement.name} positions by document", _protocol(statement.pooled)
    parts = dict(
        zip(names, parse_parts(proof.value, names, protocol, what=what, field=proof.field), strict=True)
    )
    table, previous, listed = parts["table"], parts.get("previous"), parts.get("listed")
    capacity, rows, *_ = numbers = _numbers(statement)
    for name, actual, named in _digests(statement, table, previous, listed):
        if actual != named:
            raise InvalidProof(
                "the proof is of other listed rows"
                if name == "listed"
                else "the proof is of another document table",
                field=f"{proof.field}.{name}",
                expected=named,
                actual=actual,
            )
    if listed is not None and len(listed) != (size := len(no_rows(capacity, rows))):
        raise InvalidProof(
            "the commitment to the listed rows has another length",
            field=f"{proof.field}.listed",
            expected=f"{size} bytes",
            actual=f"{len(listed)} bytes",
        )
    try:
        columns = engine_of(engine).document_columns(
            context_of(statement, protocol),
            slot_of(statement),
            numbers,
            table,
            _before_points(previous, listed),
            statement.pooled and previous is not None,
            parts["proof"],
        )
    except (ValueError, OverflowError) as exc:
        raise refused(exc) from exc
    if (actual := column_digest(statement.name, columns[0], capacity)) != digest:
        raise InvalidProof(
            "the proof is of another commitment", field=proof.field, expected=digest, actual=actual
        )
    columns = _with_listed(columns, capacity, rows, pooled=statement.pooled)
    carried = _carried(table, columns, capacity, rows)
    return OpenedTable(_sample(digest, table, columns, carried.digest, (capacity, rows)), None, carried)


def _protocol(pooled: bool) -> str:
    return POOLED_TABLE_PROTOCOL if pooled else DOCUMENT_TABLE_PROTOCOL


def _before_points(previous: bytes | None, listed: bytes | None) -> bytes | None:
    """The points of the statement's table before: the last column of a table with listed rows has those that were
    listed when the window before began, and a record of that window replaces them."""
    return previous if previous is None or listed is None else previous[: -len(listed)] + listed


def _with_listed(columns: Sequence[bytes], capacity: int, rows: int, *, pooled: bool) -> list[bytes]:
    """The columns that a proof yields. In the first window of a tenant with pooled listing no row is listed at first,
    and the proof does not have this constant."""
    return [*columns, no_rows(capacity, rows)] if pooled and len(columns) == _WITHOUT_LISTED else [*columns]


_WITHOUT_LISTED = 3
"""The columns of a proof without listed rows: sample, bits, and numbers of positions."""


def _numbers(column: DocumentTablePublic) -> TableNumbers:
    capacity = column.tenant.constants.capacity
    return capacity, column.rows, column.positions_per_document, column.drawn, column.bound


def _digests(
    column: DocumentTablePublic, table: bytes, previous: bytes | None, listed: bytes | None
) -> Iterator[tuple[str, str, str]]:
    """The name of each given list of points, its digest, and the digest that the statement names."""
    capacity, rows, *_ = _numbers(column)
    yield "table", points_digest(TABLE, table, capacity, rows), column.table.digest
    if previous is not None and column.previous is not None:
        kind = CARRIED_POOLED if column.pooled else CARRIED
        yield "previous", points_digest(kind, previous, capacity, rows), column.previous.digest
    if listed is not None and column.listed is not None:
        yield "listed", listed_digest(capacity, rows, listed), column.listed.digest


def _check_points(column: DocumentTablePublic) -> None:
    previous, listed = (None if c is None else c.points for c in (column.previous, column.listed))
    for name, actual, named in _digests(column, column.table.points, previous, listed):
        _require_digest(name, actual, named)


def _require_digest(name: str, actual: str, named: str) -> None:
    """Compare the digest of points with the named one.

    :raises WitnessError: the digests differ
    """
    if actual != named:
        raise WitnessError(
            "the points of the document table do not have its digest",
            field=name,
            expected=named,
            actual=actual,
        )


def _before(
    before: PreviousTablePrivate,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, tuple[bytes, bytes] | None]:
    elements, named = names_of(before.names)
    carried = bytes(bool(row) for row in before.carried)
    # With pooled listing the opening has a third part, of the rows that were listed when the window before began.
    opening = before.opening if before.listed is None else before.opening[: len(before.opening) // 3 * 2]
    return elements, named, before.key, before.bits, before.positions, opening, carried, before.listed


def _sample(
    digest: str, table: bytes, columns: Sequence[bytes], carried: str, size: tuple[int, int]
) -> TableCommitment:
    """The commitment to a sample with the columns of its table.

    :param size: capacity and number of rows
    """
    sample, kept, _, *listed = columns
    of_listed = listed_digest(*size, listed[0]) if listed else ""
    return TableCommitment(digest, sample, table[: len(sample)], kept, carried, of_listed)


def table_commitment(
    capacity: int, rows: int, sample: ColumnCommitment, table: ColumnCommitment, carried: ColumnCommitment
) -> TableCommitment:
    """See `Backend.table_commitment`. A provider's store has the points of each commitment.

    :raises WitnessError: the points of a commitment do not have its digest
    """
    for name, kind, of in (("table", TABLE, table), ("carried", CARRIED_POOLED, carried)):
        _require_digest(name, points_digest(kind, of.points, capacity, rows), of.digest)
    start = len(table.points) - len(sample.points)  # behind the names
    size = (len(carried.points) - start) // 3
    columns = [sample.points, *(carried.points[start + k * size :][:size] for k in range(3))]
    return _sample(sample.digest, table.points, columns, carried.digest, (capacity, rows))


def _carried(table: bytes, columns: Sequence[bytes], capacity: int, rows: int) -> ColumnCommitment:
    """The commitment that the next window names: the table's names, its bits and its numbers of positions, and with
    pooled listing the rows that are listed when the window begins. The points of the names follow those of the row of
    each position, which are as many as the points of the sample."""
    sample, *rest = columns
    kind = CARRIED if len(columns) == _WITHOUT_LISTED else CARRIED_POOLED
    points = table[len(sample) :] + b"".join(rest)
    return ColumnCommitment(points_digest(kind, points, capacity, rows), points)
