"""The document tables of a window: their commitment, their file, and the table that the next window continues.

A window's folder has one file for each tenant with a document table. The file is encrypted with a key of its own, which
`delete_secrets` keeps: the next window of the chain needs the rows, their bits and the blindings of some columns after
the window's other secrets are deleted. The file also has the table before, which the window's proof needs. A window
that the provider abandons before its beacon therefore hands the table before on to its successor.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_audit._internal.canonical import Json, jcs, parse_json, read_bytes
from rag_audit._internal.durable import PRIVATE_MODE, read_private, replace_file
from rag_audit._internal.errors import EncodingError, StoreError
from rag_audit._internal.parts import joined, separated
from rag_audit._internal.sealed import seal, unseal
from rag_audit._internal.words import counted
from rag_audit.commit.document_table import (
    SALT_BYTES,
    DocumentTable,
    Row,
)
from rag_audit.mechanisms.base import ChainConstants, TableShape
from rag_audit.models.layout import Layout
from rag_audit.models.names import key_of_content
from rag_audit.models.passage import Passage
from rag_audit.models.records import PreviousTable, TableEntry
from rag_audit.proofs.proving import Backend
from rag_audit.proofs.statements.private import (
    CommittedTable,
    DocumentTablePrivate,
    PreviousTablePrivate,
    TablePrivate,
)
from rag_audit.proofs.statements.tenant import ColumnCommitment

MAX_TABLE_BYTES = 1 << 30
KEY_BYTES = 32


@dataclass(frozen=True)
class ListedRows:
    """The listed rows of a tenant with pooled listing at the end of a window, which the next window of the chain begins
    with. All of it is secret except the commitment.

    :param bits: one byte 0 or 1 for each row
    :param opening: the blindings of their commitment
    :param commitment: the commitment of the tenant's last record, with its points; None if the window has no record of
        the tenant, so that the rows and their commitment are those at the window's beginning
    """

    bits: bytes = field(repr=False)
    opening: bytes = field(repr=False)
    commitment: ColumnCommitment | None = field(repr=False)

    @property
    def digest(self) -> str | None:
        """The digest in the tenant's last record."""
        return None if self.commitment is None else self.commitment.digest


@dataclass(frozen=True)
class CarriedTable:
    """The table of an earlier window with its bits, which a later window continues. All of it is secret except the
    digests.

    :param window: the window's id; `header` is the digest of its header
    :param constants: the numbers that are constant in a chain (`Policy.chain_constants`)
    :param pools: whether the tenant has pooled listing, which is constant in a chain too
    :param key: `TablePrivate.key` of that window
    :param commitment: the columns that the next window's header names
    :param opening: `CommittedTable.carried_opening`
    :param listed: with pooled listing, the listed rows at the end of that window; None until it has ended
    """

    window: str
    header: str
    constants: ChainConstants
    pools: bool
    table: DocumentTable = field(repr=False)
    key: bytes = field(repr=False)
    commitment: ColumnCommitment = field(repr=False)
    opening: bytes = field(repr=False)
    listed: ListedRows | None = field(default=None, repr=False)

    def entry(self) -> PreviousTable:
        """The reference to this table in the entry of the next window's table."""
        return PreviousTable(
            window=self.window,
            header=self.header,
            carried=self.commitment.digest,
            listed=None if self.listed is None else self.listed.digest,
        )


@dataclass(frozen=True)
class WindowTable:
    """A tenant's document table in one window. All of it is secret except the digests.

    :param table: its rows; the bits of rows that this window draws are None until the proof exists
    :param key: 32 bytes from which the blindings of the table's commitment are derived
    :param row_of_position: shape (capacity,); the number of rows for a position without a row
    :param previous: the table before; None in the first window of a chain
    :param proved: the columns that the next window continues, with their opening; None until the proof exists
    :param ended: with pooled listing, the listed rows at the end of the window; None until it ends
    """

    table: DocumentTable = field(repr=False)
    key: bytes = field(repr=False)
    row_of_position: npt.NDArray[np.int32] = field(repr=False)
    previous: CarriedTable | None
    proved: tuple[ColumnCommitment, bytes] | None = field(default=None, repr=False)
    ended: ListedRows | None = field(default=None, repr=False)

    def private(self) -> TablePrivate:
        """The table as its commitment takes it."""
        return TablePrivate(self.key, self.row_of_position.astype("<i4").tobytes(), _names(self.table))

    def require_rows(self, tenant: str, positions: Collection[int]) -> None:
        """Return if every position with a text has the row of a document. Another position scores 0 in every proof, and
        the figures for documents would not cover its text.

        :param positions: the positions with a text
        :raises StoreError: a text has no row
        """
        named = [*(row.key is not None for row in self.table.rows), False]
        without = sum(not named[self.row_of_position[position]] for position in positions)
        if without:
            raise StoreError("texts are at positions without a row of the document table", field=f"tenant {tenant}",
                             expected=f"a row for each of {counted(len(positions), 'position')} with a text",
                             actual=f"{counted(without, 'position')} without a row",
                             hint="`rag-audit provider open` in a new folder makes the table from the documents"
                             )  # fmt: skip

    def commit(self, system: Backend) -> ColumnCommitment:
        """The commitment to the table, a function of key and values."""
        return system.commit_document_table(len(self.row_of_position), self.private())

    def entry(self, system: Backend) -> TableEntry:
        """The commitment in the window header."""
        previous = None if self.previous is None else self.previous.entry()
        return TableEntry(c_table=self.commit(system).digest, previous=previous)

    def proof_inputs(self, s0: int, s1: int, *, low_memory: bool) -> DocumentTablePrivate:
        """The private inputs of the proof of the sample.

        :param s0: first half of the seed, as s1 is the second
        """
        before, previous = self.previous, None
        if before is not None:
            rows = before.table.rows
            previous = PreviousTablePrivate(
                key=before.key,
                names=_names(before.table),
                bits=bytes(bool(row.sampled) for row in rows),
                positions=np.array([row.positions for row in rows], "<i4").tobytes(),
                opening=before.opening,
                carried=self.table.carried,
                listed=None if before.listed is None else (before.listed.bits, before.listed.opening),
            )
        return DocumentTablePrivate(s0, s1, self.private(), previous, low_memory)

    def listed_at_first(self) -> npt.NDArray[np.int8]:
        """With pooled listing the rows that are listed when the window begins, shape (rows,), 0 or 1: rows of the table
        before that were listed when its window ended, and no new row."""
        result = np.zeros(len(self.table.rows), np.int8)
        if self.previous is not None and self.previous.listed is not None:
            before = np.frombuffer(self.previous.listed.bits, np.int8)
            result[self.table.drawn :] = before[np.array(self.table.carried, bool)]
        return result

    def sampled_positions(self, drawn: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """The sample, shape (capacity,), 0 or 1.

        :param drawn: the bits that the window draws
        """
        return self.table.with_bits(drawn).sampled_positions(self.row_of_position.astype(np.int64))

    def after_proof(self, drawn: npt.NDArray[np.int8], result: CommittedTable) -> WindowTable:
        """The table with the bits that the window drew, and the columns that its proof yields."""
        return replace(
            self, table=self.table.with_bits(drawn), proved=(result.carried, result.carried_opening)
        )


def _names(table: DocumentTable) -> list[bytes | None]:
    return [None if row.key is None else row.name for row in table.rows]


@dataclass(frozen=True)
class PlacedTable:
    """A tenant's table before positions are drawn."""

    table: DocumentTable
    previous: CarriedTable | None

    def at(self, documents: Sequence[Passage], positions: Sequence[int], capacity: int) -> WindowTable:
        """The table of an index.

        :param documents: the tenant's passages, without those of documents that wait
        :param positions: the position of each passage
        """
        rows = self.table.row_of_position([key_of(d) for d in documents], positions, capacity)
        return WindowTable(self.table, secrets.token_bytes(KEY_BYTES), rows.astype(np.int32), self.previous)


def key_of(passage: Passage) -> str:
    """The key of a passage's document; a passage without one is a document with the digest of its content as key."""
    if passage.document is not None:
        return passage.document
    return key_of_content(passage.data)


# -- the file ------------------------------------------------------------------------------------------------------


def store_table(folder: Path, tenant: str, table: WindowTable) -> None:
    """Write a tenant's table into its window's folder, encrypted, with mode 0600."""
    layout = Layout(folder)
    if not layout.table_key.exists():
        replace_file(layout.table_key, secrets.token_bytes(KEY_BYTES), mode=PRIVATE_MODE)
    plain = joined(
        [
            table.key,
            table.row_of_position.astype("<i4").tobytes(),
            bytes(table.table.carried),
            _pack(table.table),
            _pack_proved(table.proved),
            b"" if table.previous is None else _pack_carried(table.previous),
            _pack_listed(table.ended),
        ]
    )
    blob = seal(plain, _key(layout), _associated(tenant))
    replace_file(layout.table(tenant), blob, mode=PRIVATE_MODE)


def load_table(folder: Path, tenant: str, header: str | None = None) -> WindowTable:
    """Read a tenant's table back.

    :param header: digest of the window's header, for errors
    :raises StoreError: the table is missing, was altered, belongs to another tenant, or has the format of another
        version
    """
    layout = Layout(folder)
    path = layout.table(tenant)
    if not path.exists():
        raise StoreError("the document table of the window is missing", field=str(path),
                         expected=f"the table of tenant {tenant}" + (f" in window {header[:16]}.." if header else ""),
                         hint="restore the file from a copy of the window's folder, or start another"
                              " chain")  # fmt: skip
    plain = unseal(
        read_bytes(path, max_bytes=MAX_TABLE_BYTES), _key(layout), _associated(tenant),
        what=f"the document table of {tenant}",
    )  # fmt: skip
    try:
        return _unpack_window(plain)
    except (EncodingError, AssertionError, KeyError, TypeError, ValueError) as exc:
        # Only the holder of the key can have encrypted the file, so another version of this program wrote it.
        raise StoreError("the document table of the window has the format of another version", field=str(path),
                         expected="a table that this version stored", actual=str(exc) or type(exc).__name__,
                         hint="open the next window with the version that stored the table, or start another chain"
                              " (another origin)") from exc  # fmt: skip


def _unpack_window(plain: bytes) -> WindowTable:
    key, rows, carried, packed, proved, before, ended = separated(plain, 7, field="document table")
    own = replace(_unpack(packed), carried=tuple(bool(b) for b in carried))
    return WindowTable(
        own,
        key,
        np.frombuffer(rows, "<i4").astype(np.int32),
        _unpack_carried(before) if before else None,
        _unpack_proved(proved),
        _unpack_listed(ended),
    )


def _pack_carried(table: CarriedTable) -> bytes:
    named: Json = {
        "window": table.window,
        "header": table.header,
        "constants": {**table.constants},
        "pools": table.pools,
    }
    proved = (table.commitment, table.opening)
    packed = [_pack(table.table), _pack_proved(proved), _pack_listed(table.listed)]
    return joined([jcs(named), table.key, *packed])


def _unpack_carried(data: bytes) -> CarriedTable:
    named, key, packed, proved_before, listed = separated(data, 5, field="table before")
    value, proved = parse_json(named, source="table before"), _unpack_proved(proved_before)
    assert isinstance(value, dict) and proved is not None
    constants = value["constants"]
    assert isinstance(constants, dict)
    if missing := [name for name in ("mechanism", "capacity", "keep", "system") if name not in constants]:
        raise ValueError(f"the table before is stored without {' and '.join(missing)}")
    numbers = {
        name: one if one is None or isinstance(one, int) else str(one) for name, one in constants.items()
    }
    window, header, pools = str(value["window"]), str(value["header"]), value["pools"] is True
    of_table = (_unpack(packed), key, *proved)
    return CarriedTable(window, header, numbers, pools, *of_table, _unpack_listed(listed))


def _pack(table: DocumentTable) -> bytes:
    shape, rows = table.shape, table.rows
    return joined(
        [
            jcs([shape.rows, shape.positions_per_document, shape.fresh_rows]),
            json.dumps([row.key for row in rows]).encode(),
            b"".join(row.salt for row in rows),
            np.array([row.positions for row in rows], "<i4").tobytes(),
            bytes(2 if row.sampled is None else int(row.sampled) for row in rows),
        ]
    )


def _unpack(data: bytes) -> DocumentTable:
    numbers, keys, salts, positions, bits = separated(data, 5, field="document table")
    counts = np.frombuffer(positions, "<i4").tolist()
    rows = tuple(
        Row(key, salts[n * SALT_BYTES : (n + 1) * SALT_BYTES], None if bit == 2 else bool(bit), count)
        for n, (key, bit, count) in enumerate(zip(json.loads(keys), bits, counts, strict=True))
    )
    return DocumentTable(TableShape(*json.loads(numbers)), rows)


def _pack_proved(proved: tuple[ColumnCommitment, bytes] | None) -> bytes:
    return b"" if proved is None else joined([proved[0].digest.encode(), proved[0].points, proved[1]])


def _unpack_proved(data: bytes) -> tuple[ColumnCommitment, bytes] | None:
    if not data:
        return None
    digest, points, opening = separated(data, 3, field="columns of the proof")
    return ColumnCommitment(digest.decode(), points), opening


def _pack_listed(listed: ListedRows | None) -> bytes:
    if listed is None:
        return b""
    named = listed.commitment
    commitment = b"" if named is None else joined([named.digest.encode(), named.points])
    return joined([listed.bits, listed.opening, commitment])


def _unpack_listed(data: bytes) -> ListedRows | None:
    if not data:
        return None
    bits, opening, commitment = separated(data, 3, field="listed rows")
    named = None
    if commitment:
        digest, points = separated(commitment, 2, field="listed rows")
        named = ColumnCommitment(digest.decode(), points)
    return ListedRows(bits, opening, named)


def _key(layout: Layout) -> bytes:
    if not layout.table_key.exists():
        raise StoreError("the key of the window's document tables is missing", field=str(layout.table_key),
                         hint="restore the file from a copy of the window's folder")  # fmt: skip
    return read_private(layout.table_key, max_bytes=KEY_BYTES)


def _associated(tenant: str) -> bytes:
    return b"rag-audit/document-table-file/v1" + jcs({"tenant": tenant})
