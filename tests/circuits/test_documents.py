"""`documents` against the Python reference: its assignment exists for the tables of a chain and for no others."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from typing import Any

import pytest

from rag_audit._internal.canonical import Json
from rag_audit.errors import InvalidProof, PolicyError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.documents import DocumentTableJob, moves
from rag_audit.proofs.backends.groth16.instance import DOCUMENTS_INPUTS, DocumentsInstance
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_proof, verify
from rag_audit.proofs.statements.private import CommittedTable
from rag_audit.relation.document_table import row_bits
from rag_audit.relation.field import MODULUS, to_bytes, to_hex
from tests.circuits.documents_case import TINY, DocumentsCase, first_case, next_case, of_rows, small_chain
from tests.circuits.forger import satisfiable

pytestmark = pytest.mark.circuits

N64 = DocumentsInstance(64, 64)


def satisfied(case: DocumentsCase) -> bool:
    return satisfiable(case.instance, case.inputs())


@pytest.mark.parametrize(
    "instance, most",
    [(TINY, 2), (DocumentsInstance(8, 1), 3), (DocumentsInstance(16, 16), 1), (DocumentsInstance(24, 6), 24)],
    ids=lambda value: getattr(value, "name", value),
)
def test_tables_of_a_chain_have_an_assignment(instance: DocumentsInstance, most: int) -> None:
    rng = random.Random(instance.name)
    for seed in range(4):
        case = first_case(instance, seed, most)
        assert satisfied(case)
        for window in range(3):
            unused = case.table.positions.count(0)
            case = next_case(case, 10 * seed + window, rng.randrange(unused + 1))
            assert satisfied(case)


def test_the_bit_of_a_row_decides_for_every_position_of_it() -> None:
    _, case = small_chain()
    honest = case.sampled()
    assert satisfied(case)
    for place in range(TINY.capacity):
        flipped = tuple(bit ^ (i == place) for i, bit in enumerate(honest))
        assert not satisfied(replace(case, sample=flipped))
    for row in range(TINY.rows):
        flipped = tuple(bit ^ (i == row) for i, bit in enumerate(case.table.kept))
        assert not satisfied(replace(case, table=replace(case.table, kept=flipped)))


def test_a_row_has_at_most_the_number_of_positions_in_the_policy() -> None:
    _, case = small_chain()
    rows = TINY.rows
    full = of_rows(case, (2, 2, rows, 3, 3, 0, 0, rows))
    assert satisfied(full)
    for row in (0, 2, 3):
        more = of_rows(case, (2, 2, row, 3, 3, 0, 0, rows))
        assert not satisfied(more) and satisfied(replace(more, most=3))
    assert satisfied(replace(of_rows(case, (2,) * 8), most=8)), "all positions of one document"
    assert satisfied(of_rows(case, (rows,) * 8)), "no position has a row"


def test_public_numbers_out_of_range_have_no_assignment() -> None:
    first, case = small_chain()
    circuit = compile_circuit(TINY)
    for name, values in {
        "keep": (1 << 40, MODULUS - 1),
        "most": (16, MODULUS - 1),
        "drawn": (1, 3, 6, MODULUS - 1),
        "continued": (0, 2, MODULUS - 1),
        "c_previous": (0, 1),
    }.items():
        for value in values:
            with pytest.raises(WitnessError):
                compute_witness(circuit, {**case.inputs(), name: value})
    for changed in ({"drawn": 4}, {"continued": 1}, {"c_previous": 1}):
        with pytest.raises(WitnessError):
            compute_witness(circuit, {**first.inputs(), **changed})


@pytest.mark.parametrize("rows", [1, 2, 5, 8, 13])
def test_every_choice_of_carried_rows_has_moves(rows: int) -> None:
    """The moves of all subsets of rows bring each carried row to its place."""
    layers = row_bits(rows)
    for chosen in range(1 << rows) if rows <= 8 else random.Random(5).sample(range(1 << rows), 500):
        carried = [row for row in range(rows) if chosen >> row & 1]
        drawn = rows - len(carried)
        move, places = moves(rows, drawn, carried), list(range(rows))
        for layer in range(layers):
            bits = move[layer * rows : (layer + 1) * rows]
            assert not any(bits[: 1 << layer])
            places = [places[r - (1 << layer)] if bits[r] else places[r] for r in range(rows)]
        assert places[drawn:] == carried


def test_constraints_are_the_documented_ones() -> None:
    assert compile_circuit(N64).constraints == 25_016


@pytest.mark.full
def test_constraints_of_the_large_instance_are_the_documented_ones() -> None:
    assert compile_circuit(DocumentsInstance(256, 64)).constraints == 39_375


@pytest.mark.parametrize("capacity, rows", [(12, 5), (8, 0), (8, 9), (2048, 256), (1 << 18, 1)], ids=str)
def test_sizes_that_no_circuit_fits(capacity: int, rows: int) -> None:
    with pytest.raises(PolicyError) as caught:
        DocumentsInstance(capacity, rows)
    assert caught.value.field in ("capacity", "documents.rows")


# -- proofs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def job() -> DocumentTableJob:
    return small_chain()[1].job()


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(TINY).vk, field="vk")


@pytest.fixture(scope="module")
def proof(job: DocumentTableJob) -> bytes:
    result: CommittedTable = pickle.loads(pickle.dumps(job)).run()
    assert result.commitment.digest == to_hex(job.statement.c_kept)
    assert result.carried.digest == result.proof["carried"] == to_hex(job.statement.c_carried)
    assert (result.opening, result.carried_opening) == tuple(
        to_bytes(job.private[name])  # type: ignore[arg-type]
        for name in ("kept_salt", "carried_salt")
    )
    value: Json = {name: part for name, part in result.proof.items() if name != "carried"}
    return parse_proof(value, TINY.digest(), field="proof")


@pytest.mark.parametrize("engine", ["native", "py_ecc"])
def test_proof_verifies(key: VerificationKey, proof: bytes, job: DocumentTableJob, engine: str) -> None:
    assert key.inputs == len(DOCUMENTS_INPUTS)
    assert verify(key, proof, job.statement, engine=engine)


@pytest.mark.parametrize("name", DOCUMENTS_INPUTS)
def test_proof_of_another_statement(
    key: VerificationKey, proof: bytes, job: DocumentTableJob, name: str
) -> None:
    changed: dict[str, Any] = {name: getattr(job.statement, name) ^ 1}
    statement = replace(job.statement, **changed)
    assert isinstance(failures(key, [proof], [statement])[0], InvalidProof)


def test_a_job_does_not_show_its_secrets(job: DocumentTableJob) -> None:
    for name in ("s0", "s1", "kept_salt", "names_salt", "table_salt", "carried_salt", "before_salt"):
        assert str(job.private[name]) not in repr(job)
