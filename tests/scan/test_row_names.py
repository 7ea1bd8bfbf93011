"""Names of rows, by both verifiers: tables of a provider, the published proof and wrong proofs (docs/scan/row-names.md)."""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from rag_audit import _native
from rag_audit.commit.document_table import document_name
from rag_audit.errors import EncodingError
from rag_audit.proofs.backends.reference.row_names import MAX_OPENED, RUN, RowNames, read
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.proofs.statements.document_table import name_element
from rag_audit.relation.field import MODULUS, to_bytes
from tests.scan.known_answers import published, wrong_row_names
from tests.scan.test_reference_blocks import omitted

CONTEXT, KEY = bytes(range(32)), bytes([9]) * 32
WRONG = list(wrong_row_names())


@dataclass(frozen=True)
class Provider:
    """A table as its provider has it.

    :param row: the row of each position, the number of rows for none
    :param names: the name of each row as an element; None for a row without a name
    """

    row: tuple[int, ...]
    names: tuple[int | None, ...]

    @property
    def private(self) -> tuple[bytes, bytes, bytes, bytes]:
        """Rows of positions, names, marks and key."""
        names = b"".join(to_bytes(name or 0) for name in self.names)
        marks = bytes(name is not None for name in self.names)
        return int32(self.row), names, marks, KEY

    @property
    def points(self) -> bytes:
        return _native.scan_documents_commit(len(self.row), *self.private)

    def opened(self, positions: list[int]) -> list[int]:
        """The names of positions; 0 for a position without one."""
        names = [*self.names, None]
        return [names[self.row[position]] or 0 for position in positions]

    def statement(self, positions: list[int], names: list[int] | None = None) -> Opened:
        return Opened(
            CONTEXT,
            len(self.row),
            len(self.names),
            self.points,
            positions,
            self.opened(positions) if names is None else names,
        )

    def prove(self, opened: Opened) -> bytes:
        return _native.scan_row_names_prove(*opened.native, self.private)


@dataclass(frozen=True)
class Opened:
    """A statement as both verifiers take it."""

    context: bytes
    capacity: int
    rows: int
    table: bytes
    positions: list[int]
    names: list[int]

    @property
    def native(self) -> tuple[bytes, int, int, bytes, bytes, bytes]:
        names = b"".join(map(to_bytes, self.names))
        return self.context, self.capacity, self.rows, self.table, int32(self.positions), names

    def verify(self, proof: bytes) -> bool:
        """What both verifiers say.

        :raises EncodingError: the reference refuses a public value
        """
        statement = RowNames.decode(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)})
        holds = read(statement, Reader(Transcript(RUN), proof)).holds()
        try:
            _native.scan_row_names_verify(*self.native, proof)
        except ValueError as error:
            assert not holds, error
        else:
            assert holds
        return holds


def int32(values: Any) -> bytes:
    return np.array(values, "<i4").tobytes()


@cache
def provider() -> Provider:
    """Ten documents in 12 rows, the last of which has no name; every seventh position has no row."""
    names = [name_element(document_name(bytes([k]) * 32, f"document {k}")) for k in range(11)]
    row = [12 if position % 7 == 6 else position * 5 % 10 for position in range(60)]
    return Provider(tuple(row), (*names, None))


def test_an_account_checks_the_names_of_its_positions() -> None:
    """Positions of one document, of all documents, and one position alone."""
    placed = [position for position, row in enumerate(provider().row) if row < 12]
    for positions in (placed, [0, 2, 4], [59]):
        opened = provider().statement(positions)
        proof = provider().prove(opened)
        assert opened.verify(proof)


def test_a_proof_is_for_its_statement_only() -> None:
    opened = provider().statement([0, 2, 4])
    proof = provider().prove(opened)
    for other in (
        replace(opened, context=bytes(32)),
        replace(opened, positions=[2, 4, 5]),
        replace(opened, names=[*opened.names[:-1], opened.names[-1] + 1]),
        replace(opened, table=opened.table[32:64] + opened.table[:32] + opened.table[64:]),
    ):
        assert not other.verify(proof)


def test_more_positions_than_a_row_of_commitments_holds() -> None:
    names = tuple(range(1, 1101))
    row = tuple(position * 7 % 1101 for position in range(3000))
    opened = (large := Provider(row, names)).statement(
        [position for position in range(0, 3000, 2) if row[position] < 1100]
    )
    assert len(opened.positions) > 1024
    assert opened.verify(large.prove(opened))


def test_a_proof_depends_on_new_randomness() -> None:
    opened = provider().statement([0, 2, 4])
    first, second = (provider().prove(opened) for _ in range(2))
    assert first != second and len(first) == len(second)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"positions": [0, 6], "names": [None, 0]}, "position 6 has no row, so no name"),
        ({"names": [None, None, 5]}, "the row of position 4 has another name"),
        ({"names": [None, 5, None]}, "the row of position 2 has another name"),
    ],
)
def test_a_position_without_a_proof_is_named(change: dict[str, list[Any]], reason: str) -> None:
    positions = change.get("positions", [0, 2, 4])
    true = provider().opened(positions)
    names = [name if other is None else other for name, other in zip(true, change["names"], strict=True)]
    with pytest.raises(ValueError, match=reason):
        provider().prove(provider().statement(positions, names))


def test_two_rows_of_one_name_are_named() -> None:
    """A provider that has two rows for one document."""
    names = list(provider().names)
    names[5] = names[0]
    twice = replace(provider(), names=tuple(names))
    assert (twice.row[0], twice.row[1]) == (0, 5)
    with pytest.raises(ValueError, match="position 1 and an earlier position have one name and two rows"):
        twice.prove(twice.statement([0, 1]))
    opened = twice.statement([1, 3])
    assert opened.verify(twice.prove(opened))
    unnamed = replace(provider(), names=(None, *provider().names[1:]))
    with pytest.raises(ValueError, match="the row of position 0 has no name"):
        unnamed.prove(unnamed.statement([0, 1]))


@pytest.mark.parametrize(
    ("change", "native", "reference"),
    [
        ({"context": bytes(31)}, "context", None),
        ({"capacity": 0}, "capacity", "capacity"),
        ({"capacity": (1 << 24) + 1}, "capacity", "capacity"),
        ({"rows": 0}, "rows", "rows"),
        ({"rows": 61}, "rows", "rows"),
        ({"table": bytes([64, *bytes(31)])}, "table", "table"),
        ({"positions": [], "names": []}, "opened positions", "positions"),
        ({"positions": [0, 2], "names": [1]}, "positions", "names"),
        ({"positions": [2, 0], "names": [1, 1]}, "opened position", "positions"),
        ({"positions": [2, 2], "names": [1, 1]}, "opened position", "positions"),
        ({"positions": [-1, 2], "names": [1, 1]}, "opened position", "positions"),
        ({"positions": [2, 60], "names": [1, 1]}, "opened position", "positions"),
        ({"positions": list(range(61)), "names": [1] * 61}, "opened positions", "positions"),
        ({"names": [1, MODULUS, 1]}, "names", "names"),
    ],
)
def test_public_values_beyond_their_limits_are_refused_by_name(
    change: dict[str, Any], native: str, reference: str | None
) -> None:
    opened = replace(provider().statement([0, 2, 4]), **change)
    names = b"".join(name.to_bytes(32, "big") for name in opened.names)
    given = (opened.context, opened.capacity, opened.rows, opened.table, int32(opened.positions), names)
    for refused in (
        lambda: _native.scan_row_names_verify(*given, b""),
        lambda: _native.scan_row_names_prove(*given, provider().private),
    ):
        with pytest.raises(ValueError, match=rf"^{native}\b"):
            refused()
    if reference:
        with pytest.raises(EncodingError) as refusal:
            RowNames.decode(*(getattr(opened, f.name) for f in dataclasses.fields(opened)))
        assert refusal.value.field == reference


def test_ten_thousand_positions_are_the_most() -> None:
    capacity = MAX_OPENED + 1
    base = Provider((0,) * capacity, (1,))
    opened = base.statement(list(range(capacity)))
    with pytest.raises(ValueError, match=r"opened positions: expected 1 to 10000, found 10001"):
        base.prove(opened)
    with pytest.raises(EncodingError):
        opened.verify(b"")
    most = replace(opened, positions=opened.positions[1:], names=opened.names[1:])
    proof = base.prove(most)
    _native.scan_row_names_verify(*most.native, proof)


def test_a_proof_has_one_length() -> None:
    opened = provider().statement([0, 2, 4])
    proof = provider().prove(opened)
    for bad in (b"", proof[:-32], proof[:-1], proof + bytes(32)):
        with pytest.raises(ValueError, match="malformed"):
            _native.scan_row_names_verify(*opened.native, bad)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_proof_is_refused_by_the_claim_of_its_name_alone(name: str) -> None:
    claim, wrong = wrong_row_names()[name]
    assert not wrong.holds(wrong.proof)
    with omitted(claim) as left_out:
        assert wrong.holds(wrong.proof)
    assert left_out
    doc = published("row-names")["row_names"]
    table, statement = base64.b64decode(wrong.part["table_points"]), wrong.statement
    opened = Opened(
        bytes.fromhex(doc["context"]),
        doc["capacity"],
        doc["rows"],
        table,
        statement.positions,
        statement.names,
    )
    with pytest.raises(ValueError, match="the proof is false"):
        _native.scan_row_names_verify(*opened.native, wrong.proof)
