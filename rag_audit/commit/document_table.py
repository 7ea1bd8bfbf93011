"""The document table of a tenant: which positions belong to one document, and which documents keep their sample bit.

A table has a fixed number of rows, and each row belongs to at most one document. One Bernoulli bit of a row decides
for all positions of the row whether they are in the sample. A document keeps its row, and so its bit, from window to
window: with a new bit in every window, an observer of several windows could combine the draws.

Each window after the first replaces exactly `fresh_rows` rows by new rows with new bits, whether documents need the new
rows or not. A number that depends on the documents would disclose an added document. Only rows that had no position in
the window before are replaced, so a document in use cannot draw a second bit. New documents take new rows only, so the
provider cannot choose an old bit for a document.

In every table at least `fresh_rows` rows never had a document, so the next window can replace these and every document
of the chain keeps its row, absent or not. A chain thus has room for `rows - fresh_rows` documents in total, and later
ones wait. A provider can give up a document that left for good: its row counts as one that never had a document, and
the document may not return, because it would draw a second bit.

The first `fresh_rows` rows of a table are the new rows (in the first window of a chain, all rows), and row r has draw r
of the window's stream. Row numbers are never published, so their order discloses nothing.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from random import Random, SystemRandom

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import PolicyError, RagAuditError, SchemaError, brief
from rag_audit.mechanisms.base import TableShape
from rag_audit.models.names import MAX_KEY, document_name, is_visible
from rag_audit.retrieval.engine import Int8Array

SALT_BYTES = 32


class DocumentSizeError(RagAuditError):
    """A document needs more positions than the policy permits."""


class TableCapacityError(RagAuditError):
    """A tenant has more documents than its table has room for."""


@dataclass(frozen=True)
class Row:
    """One row of a table. All of it is secret, except that an account with a passage of the document gets the name.

    :param key: the key of the row's document; None for a row that never had a document
    :param salt: the salt of the row's name
    :param sampled: the row's Bernoulli bit; None until the beacon of the window that drew the row
    :param positions: the number of positions of the document in the window
    """

    key: str | None = field(repr=False)
    salt: bytes = field(repr=False)
    sampled: bool | None = field(default=None, repr=False)
    positions: int = field(default=0, repr=False)

    @property
    def name(self) -> bytes:
        """The row's name, 32 bytes: a salted hash of the document's key. The salt hides the key, and the names of
        equal keys in different rows differ."""
        return document_name(self.salt, self.key or "")


@dataclass(frozen=True)
class DocumentTable:
    """A tenant's table in one window.

    :param rows: `shape.rows` rows; the first ones are new in this window
    :param carried: for each row of the previous window's table, whether it is in this table; empty in the first window
    """

    shape: TableShape
    rows: tuple[Row, ...] = field(repr=False)
    carried: tuple[bool, ...] = field(default=(), repr=False)

    @property
    def drawn(self) -> int:
        """The number of new rows, whose bits this window's stream draws."""
        return len(self.rows) - sum(self.carried)

    def row_of_document(self) -> dict[str, int]:
        """The row of each document that has a row, also of documents without positions in this window."""
        return {row.key: number for number, row in enumerate(self.rows) if row.key is not None}

    def row_of_position(
        self, documents: Sequence[str], positions: Sequence[int], capacity: int
    ) -> npt.NDArray[np.int64]:
        """The row of each position, shape (capacity,). A position without a passage has the value `shape.rows`.

        :param documents: the document of each passage, by key
        :param positions: the position of each passage, below `capacity`
        """
        rows = self.row_of_document()
        result = np.full(capacity, self.shape.rows, np.int64)
        result[list(positions)] = [rows[document] for document in documents]
        return result

    def with_bits(self, drawn: Int8Array) -> DocumentTable:
        """The table after the beacon: row r < `drawn` has bit r of the window's stream.

        :param drawn: shape (`drawn`,), 0 or 1
        """
        bits = [bool(bit) for bit in drawn]
        if len(bits) != self.drawn:
            raise ValueError(f"the table has {self.drawn} new rows, not {len(bits)}")
        new = tuple(replace(row, sampled=bit) for row, bit in zip(self.rows, bits, strict=False))
        return replace(self, rows=new + self.rows[len(new) :])

    def sampled_positions(self, row_of_position: npt.NDArray[np.int64]) -> Int8Array:
        """Whether each position is in the sample, 0 or 1. A position without a row is outside the sample."""
        bits = [1 if row.sampled else 0 for row in self.rows]
        return np.array([*bits, 0], np.int8)[row_of_position]


@dataclass(frozen=True)
class Placement:
    """A window's table, and the documents to which it gives no row.

    The exclusion factor of sampling by document assumes that one document decides nothing about the rows of others
    (docs/accounting.md, "Documents"). Two events break this assumption. If a document waits, another document took the
    last new row, or the chain's documents have all rows that may have one. If a document loses its row, the number of
    documents decided so, and the document draws a second bit when it returns.

    :param waiting: the keys of new documents that get no row, in the order in which they were read; the window does
        not contain them
    :param lost: the keys of absent documents whose rows this window replaces; none if fewer than `fresh_rows` rows of
        the previous table had a document, as in every table of `place_documents`
    :param given_up: the keys of documents that never return
    """

    table: DocumentTable
    waiting: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    given_up: Set[str] = frozenset()

    @property
    def full(self) -> bool:
        """Whether no later window of the chain admits a new document: `shape.documents` documents have rows."""
        return len(self.table.row_of_document().keys() - self.given_up) >= self.table.shape.documents

    @property
    def absent(self) -> list[str]:
        """The keys of documents that keep their rows without positions."""
        return [
            row.key
            for row in self.table.rows
            if row.key is not None and not row.positions and row.key not in self.given_up
        ]

    @property
    def independent(self) -> bool:
        """Whether no document waits or loses its row, so that the exclusion factor covers the window."""
        return not self.waiting and not self.lost


def place_documents(
    shape: TableShape,
    documents: Mapping[str, int],
    previous: DocumentTable | None = None,
    rng: Random | None = None,
    given_up: Set[str] = frozenset(),
) -> Placement:
    """Assign a window's documents to the rows of its table.

    A document with a row in the previous table keeps the row, and a removed document keeps its row without positions.
    A new document gets a new row, and waits if there is none, or if fewer than `fresh_rows` rows that never had a
    document would remain for the next window. Rows that never had a document are replaced first. If the previous table
    has too few, which no table of this function has, rows of absent documents are replaced, and rows of documents that
    return only if no others are left. With rows enough for all present, removed and new documents, every window is
    independent (`Placement.independent`).

    :param documents: the number of positions of each document, by key, in the order in which they were read
    :param previous: the table of the latest window of the chain with its bits; None in the first window. A table whose
        windows draw all bits does not depend on it
    :param rng: chooses among rows that may be replaced; the operating system's generator, except in tests
    :param given_up: the keys of documents that never return: their rows count as rows that never had a document
    :raises SchemaError: a key is blank, or longer than `MAX_KEY`
    :raises DocumentSizeError: a document has more positions than `positions_per_document`
    :raises TableCapacityError: there are more documents than the table has room for
    :raises PolicyError: the previous table has another shape, or a document was given up
    """
    if shape.persistent and (back := [key for key in documents if key in given_up]):
        raise PolicyError("a document that was given up is present", field=brief(back[0]),
                          expected="a document with another key", actual="the key of a document that was given up",
                          hint="rename the document, which is then another document with a bit of its own: under the"
                               " same key it could draw a second bit, which doubles the exponent of its"
                               " factor")  # fmt: skip
    for key, count in documents.items():
        if len(key) > MAX_KEY or not is_visible(key):
            raise SchemaError("the key of a document is blank or too long", field=brief(key),
                                 expected=f"1 to {MAX_KEY:,} characters, one of them visible",
                                 actual=f"{len(key):,} characters",
                                 hint="answers open the key to accounts: name a column with short values"
                                      " (--document-column)")  # fmt: skip
        if count > shape.positions_per_document:
            raise DocumentSizeError(
                "a document needs more positions than the policy permits",
                field=brief(key),
                expected=f"at most {shape.positions_per_document} positions",
                actual=count,
                hint="increase positions_per_document in the policy (--positions-per-document), cut the text into"
                " longer chunks (--chunk, or documents.chunk in provider.toml), or divide the document into several"
                " documents, each of which then has figures of its own",
            )
    if len(documents) > shape.documents:
        raise TableCapacityError(
            "there are more documents than the table has room for",
            field="documents",
            expected=f"at most {shape.documents}: {shape.rows} rows (--documents), {shape.fresh_rows or 0} of them for"
            " later documents (--fresh-rows)",
            actual=len(documents),
            hint="make a policy with more rows (--documents); a chain of windows keeps its rows, so start another chain"
            " (another origin)",
        )
    if previous is None or shape.fresh_rows is None:
        rows = [Row(key, secrets.token_bytes(SALT_BYTES), None, count) for key, count in documents.items()]
        rows += [_unused() for _ in range(shape.rows - len(rows))]
        return Placement(DocumentTable(shape, tuple(rows)), given_up=given_up)
    if previous.shape != shape:
        raise PolicyError(
            "the previous window has a document table of another shape",
            field="document table",
            expected=_options(previous.shape),
            actual=_options(shape),
            hint="keep the numbers of the table in a chain of windows, or start another chain",
        )
    replaced = _replaced_rows(previous, documents, given_up, rng or SystemRandom())
    carried = [
        replace(row, positions=documents.get(row.key, 0) if row.key is not None else 0)
        for number, row in enumerate(previous.rows)
        if number not in replaced
    ]
    known = {row.key for row in carried}
    new = [key for key in documents if key not in known]
    room = max(0, min(shape.fresh_rows, shape.documents - sum(_occupied(row, given_up) for row in carried)))
    admitted, waiting = new[:room], new[room:]
    fresh = [Row(key, secrets.token_bytes(SALT_BYTES), None, documents[key]) for key in admitted]
    fresh += [_unused() for _ in range(shape.fresh_rows - len(fresh))]
    table = DocumentTable(
        shape,
        (*fresh, *carried),
        tuple(number not in replaced for number in range(shape.rows)),
    )
    lost = [
        old
        for number in sorted(replaced)
        if (old := previous.rows[number].key) is not None and old not in given_up
    ]
    return Placement(table, tuple(waiting), tuple(lost), given_up)


def _occupied(row: Row, given_up: Set[str]) -> bool:
    """Whether a row has a document that may return."""
    return row.key is not None and row.key not in given_up


def _replaced_rows(
    previous: DocumentTable, documents: Mapping[str, int], given_up: Set[str], rng: Random
) -> set[int]:
    """The numbers of the previous table's rows that the window replaces."""

    def reluctance(number: int) -> int:
        row = previous.rows[number]
        return 0 if not _occupied(row, given_up) else 2 if row.key in documents else 1

    unused = [number for number, row in enumerate(previous.rows) if not row.positions]
    rng.shuffle(unused)
    unused.sort(key=reluctance)
    return set(unused[: previous.shape.fresh_rows])


def _options(shape: TableShape) -> str:
    """The options of `policy new` for a table of this shape."""
    fresh = "--fresh-bits" if shape.fresh_rows is None else f"--fresh-rows {shape.fresh_rows}"
    return f"--documents {shape.rows} --positions-per-document {shape.positions_per_document} {fresh}"


def _unused() -> Row:
    return Row(None, secrets.token_bytes(SALT_BYTES))


def positions_by_document(documents: Sequence[str]) -> dict[str, int]:
    """The number of positions of each document, in the order of their first passages.

    :param documents: the document of each passage, by key
    """
    return dict(Counter(documents))
