"""`names`: its assignment exists for opened positions whose rows have the opened names, and for no others. Each cheating
prover carries one lie through a full assignment, and breaks one constraint only."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag_audit._internal.canonical import Json
from rag_audit.cli import setup as commands
from rag_audit.errors import InvalidProof, PolicyError, RagAuditError, SchemaError, WitnessError
from rag_audit.models.names import document_name
from rag_audit.models.trust import Groth16Pin, Pins
from rag_audit.proofs.backends.groth16.circuit import Inputs, compile_circuit
from rag_audit.proofs.backends.groth16.documents import commit_table
from rag_audit.proofs.backends.groth16.instance import NAMES_INPUTS, EmbedInstance, NamesInstance
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.row_names import Groth16RowNames, numbered
from rag_audit.proofs.backends.groth16.statements import NamesStatement
from rag_audit.proofs.backends.groth16.verifiers import parse_proof, verify
from rag_audit.proofs.row_names import row_names_of
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.relation.document_table import names_list, opened_list, pack_rows, rows_list
from rag_audit.relation.field import digest_to_field, from_hex
from rag_audit.relation.poseidon import hash_list
from tests.circuits.forger import (
    Patch,
    assert_accepted,
    forge,
    literal_system,
    satisfiable,
    shipped_system,
    shipped_witness,
)
from tests.circuits.forger import assert_caught as judged
from tests.circuits.r1cs import signal_class
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits

TINY = NamesInstance(8, 5)
ROWS = TINY.rows
ROW_OF_POSITION = (2, ROWS, 3, 0, 2, ROWS, 1, 4)
TABLE_NAMES = (11, 22, 33, 44, 0)
"""Row 4 has no name, and position 7 belongs to it: no honest table has such a position."""
OPENED = {0: 0, 2: 1, 4: 0, 6: 2}
"""The document of each opened position: rows 2, 3, 2 and 1."""

NAME = {"opened[]", "found[].out"}
ROW = {"documents.bit[][]", "expected[].out", "rows.bit[][]"}
HAS_ROW = {"documents.bit[][]", "rows.bit[][]"}
OPENED_HASH = {"c_opened", "hash.out"}
TABLE_HASH = {"c_table", "rows.out"}


def inputs(
    opened: dict[int, int] = OPENED,
    names: tuple[int, ...] = (33, 44, 22),
    number: tuple[int, ...] = (2, 3, 1),
    *,
    rows: tuple[int, ...] = ROW_OF_POSITION,
    table_names: tuple[int, ...] = TABLE_NAMES,
    slots: dict[int, int] | None = None,
    row_slots: dict[int, int] | None = None,
    **changes: int,
) -> Inputs:
    """The circuit's inputs with consistent hashes. `slots` and `row_slots` are added to the packed lists, by position."""
    documents = pack_rows(ROWS, [opened.get(position, ROWS) for position in range(8)])
    documents[0] += sum(value << 4 * position for position, value in (slots or {}).items())
    row = pack_rows(ROWS, rows)
    row[0] += sum(value << 4 * position for position, value in (row_slots or {}).items())
    listed = [*names, *[0] * (ROWS - len(names))]
    tag, _ = opened_list([ROWS] * 8, listed)
    table_tag, _ = rows_list(5, 0, ROWS, rows)
    return {
        "ctx": 7,
        "c_table": hash_list(table_tag, [5, hash_list(*names_list(6, table_names)), *row]),
        "c_opened": hash_list(tag, [*documents, *listed]),
        "names_salt": 6,
        "name": list(table_names),
        "table_salt": 5,
        "row": row,
        "document": documents,
        "opened": listed,
        "number": [*number, *[0] * (ROWS - len(number))],
        **changes,
    }


def assert_caught(values: Inputs, *constraints: set[str]) -> None:
    """The witness of a prover without checks breaks these constraints only, by their signals, and the shipped circuit
    refuses it: without them it would be accepted."""
    witness = forge(TINY, values)
    broken = {
        frozenset(map(signal_class, signals)) for signals in literal_system(TINY).broken_signals(witness)
    }
    assert broken == set(map(frozenset, constraints))
    assert list(shipped_system(TINY).broken(shipped_witness(TINY, witness)))
    assert not satisfiable(TINY, values)


def test_honest_openings_are_accepted() -> None:
    assert_accepted(TINY, forge(TINY, inputs()))
    for opened, names, number in (
        ({}, (), ()),
        ({3: 0}, (11,), (0,)),
        ({0: 0, 4: 0}, (33,), (2,)),
        ({0: 3, 2: 1}, (0, 44, 0, 33), (0, 3, 0, 2)),
    ):
        assert satisfiable(TINY, inputs(opened, names, number))
    for capacity, rows in ((8, 1), (8, 2), (8, 8)):
        size = NamesInstance(capacity, rows)
        assert satisfiable(size, _of_size(size))


def _of_size(size: NamesInstance) -> Inputs:
    row = [position % size.rows for position in range(size.capacity)]
    names = [*range(101, 101 + size.rows)]
    return {
        "ctx": 1,
        "c_table": hash_list(*rows_list(5, hash_list(*names_list(6, names)), size.rows, row)),
        "c_opened": hash_list(*opened_list(row, names)),
        "names_salt": 6,
        "name": names,
        "table_salt": 5,
        "row": pack_rows(size.rows, row),
        "document": pack_rows(size.rows, row),
        "opened": names,
        "number": [*range(size.rows)],
    }


def test_a_name_that_the_row_does_not_have() -> None:
    assert_caught(inputs(names=(34, 44, 22)), NAME)


def test_two_documents_have_each_other_s_names() -> None:
    """Under the rows of the positions, and under the rows of the names."""
    assert_caught(inputs(names=(44, 33, 22)), NAME)
    assert_caught(inputs(names=(44, 33, 22), number=(3, 2, 1)), ROW)


def test_a_position_of_another_row() -> None:
    assert_caught(inputs({**OPENED, 3: 1}), ROW)


def test_a_position_without_a_row() -> None:
    """Its slot has the bits of row 3, and 0 as its last bit."""
    assert_caught(inputs({**OPENED, 1: 1}, row_slots={1: 3}), HAS_ROW)


def test_a_row_beyond_the_table() -> None:
    """Row 5 of 5 has the name 0, and no document has it; the slot of position 1 has row 5."""
    assert_caught(
        inputs({1: 0}, (33,), (5,), row_slots={1: 8 + 5}),
        NAME,
    )


def test_a_row_without_a_name() -> None:
    """A document with the name 0 has no row: the position would have the row 8 of 5."""
    assert_caught(inputs({7: 0}, (0,), (4,)), ROW)


def test_a_position_of_a_document_that_is_not_listed() -> None:
    """Numbers in the padding, and numbers beyond all documents."""
    assert_caught(inputs({**OPENED, 3: 4}), ROW)
    assert_caught(inputs(slots={3: 8 + 7}), ROW)


def test_equal_names_in_two_rows() -> None:
    """Rows 0 and 2 have one name; the positions of both are opened as one document, under either row."""
    both = (33, 22, 33, 44, 0)
    for number in (0, 2):
        assert_caught(inputs({0: 0, 3: 0}, (33,), (number,), table_names=both), ROW)
    assert satisfiable(TINY, inputs({3: 0}, (33,), (0,), table_names=both))


def test_a_number_that_no_row_has() -> None:
    """2 + 8 has the digits of row 2."""
    for number in (10, 8):
        values = inputs(number=(number, 3, 1))
        assert not satisfiable(TINY, values)
    classes = {
        frozenset(map(signal_class, signals))
        for signals in literal_system(TINY).broken_signals(forge(TINY, inputs(number=(10, 3, 1))))
    }
    assert frozenset({"digits[].digits.in", "digits[].digits.bit[]"}) in classes


@lies("names")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str]) -> None:
    judged(TINY, forge(TINY, inputs(), lie), breaks)


def test_another_table_or_list() -> None:
    assert_caught(inputs(c_table=1), TABLE_HASH)
    assert_caught(inputs(c_opened=1), OPENED_HASH)


def test_constraints_are_the_documented_ones() -> None:
    assert compile_circuit(NamesInstance(64, 64)).constraints == 16_329


@pytest.mark.parametrize("capacity, rows", [(12, 5), (8, 0), (8, 9), (2048, 256)], ids=str)
def test_sizes_that_no_circuit_fits(capacity: int, rows: int) -> None:
    with pytest.raises(PolicyError):
        NamesInstance(capacity, rows)


# -- proofs --------------------------------------------------------------------------------------------------------

NAMES = [document_name(bytes([n]) * 32, key) for n, key in ((1, "a"), (1, "a"), (2, "b"), (3, "c"), (4, "d"))]
"""Rows 0 and 1 have one name."""
TABLE = TablePrivate(b"k" * 32, np.array(ROW_OF_POSITION, "<i4").tobytes(), NAMES)


def statement(*opened: tuple[int, int]) -> RowNamesPublic:
    """Positions, each with the row of its name."""
    positions, of = zip(*opened, strict=True)
    return RowNamesPublic("0" * 64, "law", 8, ROWS, commit_table(8, TABLE), positions, [NAMES[n] for n in of])


HONEST = statement((0, 2), (2, 3), (3, 0), (4, 2))


@pytest.fixture(scope="module")
def proof() -> dict[str, Any]:
    return row_names_of("groth16").prove(HONEST, TABLE)


def test_a_proof_verifies_with_and_without_a_pin(proof: dict[str, Any]) -> None:
    system, circuit = Groth16RowNames(), TINY.digest()
    assert system.verify(HONEST, proof) == "unpinned"
    assert system.verify(HONEST, proof, Pins()) == "unpinned"
    key = VerificationKey.parse(proof["key"], field="key")
    assert key.inputs == len(NAMES_INPUTS)
    for setup in ("unsafe", "ceremony"):
        pin = Groth16Pin(circuit=circuit, vk=key.digest, setup=setup)
        assert system.verify(HONEST, proof, Pins(groth16=[pin])) == setup
    other = Groth16Pin(circuit=circuit, vk="0" * 64, setup="ceremony")
    with pytest.raises(InvalidProof, match="not the pinned one"):
        system.verify(HONEST, proof, Pins(groth16=[other]))


def test_a_proof_of_another_statement(proof: dict[str, Any]) -> None:
    system = Groth16RowNames()
    for other in (
        statement((0, 2), (2, 3), (3, 0)),
        statement((0, 3), (2, 2), (3, 0), (4, 3)),
        statement((0, 2), (2, 3), (3, 0), (5, 2)),
        replace(HONEST, header="1" * 64),
        replace(HONEST, tenant="medicine"),
        replace(HONEST, table=replace(HONEST.table, digest="0" * 64)),
    ):
        with pytest.raises(InvalidProof, match="the proof is refused"):
            system.verify(other, proof)


@pytest.mark.parametrize("name", NAMES_INPUTS)
def test_a_proof_under_another_public_value(proof: dict[str, Any], name: str) -> None:
    value = {part: proof[part] for part in ("system", "circuit", "a", "b", "c")}
    documents, opened = numbered(HONEST)
    public = NamesStatement(
        ctx=digest_to_field(HONEST.context),
        c_table=from_hex(HONEST.table.digest, field="c_table"),
        c_opened=hash_list(*opened_list(documents, opened)),
    )
    key = VerificationKey.parse(proof["key"], field="key")
    found = parse_proof(value, TINY.digest(), field="proof")
    assert verify(key, found, public)
    changed: dict[str, Any] = {name: getattr(public, name) ^ 1}
    assert not verify(key, found, replace(public, **changed))


def test_malformed_answers(proof: dict[str, Any]) -> None:
    system = Groth16RowNames()
    malformed: tuple[Json, ...] = (
        {},
        [],
        {**proof, "circuit": "0" * 64},
        {**proof, "key": {**proof["key"], "circuit": "0" * 64}},
        {**proof, "key": {**proof["key"], "ic": proof["key"]["ic"][:3]}},
        {**proof, "a": ["0x1", "0x1"]},
        {name: value for name, value in proof.items() if name != "key"},
    )
    for wrong in malformed:
        with pytest.raises(RagAuditError) as caught:
            system.verify(HONEST, wrong)
        assert not isinstance(caught.value, InvalidProof)


def test_false_openings_have_no_proof() -> None:
    """Two rows of one name, a position without a row, and another row's name."""
    system = Groth16RowNames()
    for opened in (((3, 0), (6, 1)), ((1, 0),), ((0, 3),)):
        with pytest.raises(WitnessError, match="no valid proof") as caught:
            system.prove(statement(*opened), TABLE)
        assert caught.value.actual is None, "row numbers are secret"


def test_documents_are_numbered_by_name() -> None:
    assert numbered(HONEST)[0] == [0, ROWS, 1, 2, 0, ROWS, ROWS, ROWS]
    for positions in ((0, 4, 3, 2), (0, 0, 1, 2), (0, 1, 2, 8), (-1, 1, 2, 3), (0, 1, 2)):
        with pytest.raises(SchemaError):
            numbered(replace(HONEST, positions=positions))
    many = [bytes([n]) * 32 for n in range(6)]
    with pytest.raises(InvalidProof, match="no table"):
        numbered(replace(HONEST, positions=(0, 1, 2, 3, 4, 5), names=many))


def test_an_unsafe_key_is_described_to_those_who_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Accounts check names, and `account names` has no option that accepts an unsafe key."""
    files: Any = SimpleNamespace(manifest={"setup": "unsafe"}, vk_digest="ab" * 32)
    commands._show([(TINY, files)], as_json=False)
    said = capsys.readouterr().err
    assert "account names" in said and "forge" in said and "--allow-unsafe-setup" not in said
    commands._show([(EmbedInstance(8), files)], as_json=False)
    assert "--allow-unsafe-setup" in capsys.readouterr().err
