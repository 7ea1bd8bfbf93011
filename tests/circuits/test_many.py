"""Several records in one proof: what verifies, how a bad record is named, and what cannot be moved between them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.errors import EncodingError, PolicyError, SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.policy import SHIPPED
from rag_audit.proofs.backends.groth16.statements import ManyStatement
from rag_audit.proofs.backends.groth16.verifiers import (
    ENGINES,
    parse_proof,
    parse_records_proof,
    record_digest,
    verify,
    verify_batch,
)
from rag_audit.proofs.records import Group
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.field import MODULUS
from rag_audit.relation.selection import top_k
from tests.circuits.many_case import PAIR, STATEMENT, many_job, part, record_inputs, refused, shared_cases
from tests.circuits.r1cs import System, read_witness
from tests.circuits.retrieve_case import SMALL, TINY, Case

pytestmark = pytest.mark.circuits

OWN = [name for name in STATEMENT if name not in ("c_seed", "c_idx")]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return shared_cases(PAIR, 31)


@pytest.fixture(scope="module")
def records(cases: list[Case]) -> list[Statement]:
    return [Statement(**case.public()) for case in cases]


@pytest.fixture(scope="module")
def value(cases: list[Case]) -> dict[str, Any]:
    return many_job(PAIR, cases).run()


@pytest.fixture(scope="module")
def proof(value: dict[str, Any]) -> Group:
    return parse_records_proof(value, PAIR.digest(), 2, field="proof")


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(PAIR).vk, field="vk")


def named(proof: Group, records: list[Statement]) -> Group:
    """The proof with the names of these records: a prover may write what it likes there."""
    return replace(proof, records=tuple(map(record_digest, records)))


def test_public_inputs_are_laid_out_as_documented(key: VerificationKey, records: list[Statement]) -> None:
    """The names of `retrieve` in its order, a list's values one after the other."""
    a, b = records
    values = [
        a.ctx,
        b.ctx,
        a.c_seed,
        a.beacon,
        b.beacon,
        a.slot,
        b.slot,
        a.c_idx,
        a.cq,
        b.cq,
        a.htopk,
        b.htopk,
    ]
    expected = b"".join(value.to_bytes(32, "big") for value in values)
    assert ManyStatement.of(records, 2).encode(PAIR.public_inputs) == expected
    assert key.inputs == len(values) == 2 + 5 * PAIR.queries


@pytest.mark.parametrize("engine", ENGINES)
def test_proof_verifies_and_no_record_can_be_another(
    key: VerificationKey, proof: Group, records: list[Statement], engine: str
) -> None:
    assert refused(key, proof, records, engine=engine) == []
    for other in ([records[1], records[0]], [records[0], records[0]], [records[1], records[1]]):
        assert refused(key, named(proof, other), other, engine=engine) == [0, 1]


@pytest.mark.parametrize("name", OWN)
def test_value_of_one_record_given_to_the_other(
    key: VerificationKey, proof: Group, records: list[Statement], name: str
) -> None:
    """Swapped between the two, and copied from one to the other: spoiled, and named from what the proof names."""
    a, b = records
    x, y = getattr(a, name), getattr(b, name)
    swapped = [replace(a, **{name: y}), replace(b, **{name: x})]
    copied = [a, replace(b, **{name: x})]
    for changed, result in ((swapped, [0, 1]), (copied, [1])):
        assert refused(key, proof, changed) == result
        assert refused(key, named(proof, changed), changed) == [0, 1]


@pytest.mark.parametrize("name", ["c_seed", "c_idx"])
def test_shared_value_changed(
    key: VerificationKey, proof: Group, records: list[Statement], name: str
) -> None:
    changed = [replace(record, **{name: getattr(record, name) ^ 1}) for record in records]
    assert refused(key, named(proof, changed), changed) == [0, 1]


def test_bad_record_among_good_ones_is_named(
    key: VerificationKey, proof: Group, records: list[Statement]
) -> None:
    for number in range(2):
        changed = list(records)
        changed[number] = replace(records[number], cq=records[number].cq ^ 1)
        assert refused(key, proof, changed) == [number]


def test_fewer_records_than_places(cases: list[Case], key: VerificationKey, records: list[Statement]) -> None:
    """The last record fills up; such a proof holds for no second record."""
    value = many_job(PAIR, cases[:1]).run()
    proof = parse_records_proof(value, PAIR.digest(), 2, field="proof")
    assert refused(key, proof, records[:1]) == []
    assert refused(key, proof, records) == [1]
    assert refused(key, named(proof, records), records) == [0, 1]


def test_batch_takes_them_as_any_other(key: VerificationKey, proof: Group, records: list[Statement]) -> None:
    good, bad = (ManyStatement.of(order, 2) for order in (records, records[::-1]))
    assert verify_batch(key, [part(proof)] * 3, [good, bad, good]) == [1]
    assert verify(key, part(proof), good)


def test_job_crosses_processes_and_shows_no_secrets(cases: list[Case]) -> None:
    job = many_job(PAIR, cases)
    assert pickle.loads(pickle.dumps(job)).inputs() == job.inputs()
    for case in cases:
        for name in ("s0", "s1", "index_salt", "salt_c", "salt_k"):
            assert str(getattr(case, name)) not in repr(job)


@pytest.mark.parametrize("number", [0, 1])
def test_prover_is_told_which_record_is_bad(cases: list[Case], number: int) -> None:
    def with_record(**changes: object) -> list[Case]:
        changed = list(cases)
        changed[number] = replace(cases[number], **changes)  # type: ignore[arg-type]
        return changed

    other = top_k(cases[number].keys(), TINY.capacity)[1 : 1 + TINY.top_k]
    with pytest.raises(WitnessError) as caught:
        many_job(PAIR, with_record(positions=tuple(other))).run()
    assert caught.value.field == f"records[{number}].positions"
    for name, secret in (("cq", "salt_c"), ("htopk", "salt_k")):
        jobs = [record_inputs(case) for case in cases]
        jobs[number] = replace(jobs[number], **{secret: 1})
        with pytest.raises(WitnessError) as caught:
            replace(many_job(PAIR, cases), records=tuple(jobs)).run()
        assert caught.value.field == f"records[{number}].{name}"


def test_jobs_that_do_not_belong_together(cases: list[Case]) -> None:
    good = many_job(PAIR, cases)
    first, second = good.records
    stranger = replace(second.statement, c_idx=5)
    faults: list[tuple[Any, type[Exception], str]] = [
        ((first, replace(second, s0=1)), WitnessError, "records[1].s0"),
        ((first, replace(second, rows=second.rows[:-1] + b"\1")), WitnessError, "records[1].rows"),
        ((first, replace(second, positions=second.positions[1:])), WitnessError, "records[1].positions"),
        ((first, replace(second, instance=SMALL)), WitnessError, "records[1].instance"),
        ((first, replace(second, statement=stranger)), SchemaError, "records[1].c_idx"),
        ((first, second, second), SchemaError, "records"),
        ((), SchemaError, "records"),
    ]
    for jobs, error, place in faults:
        with pytest.raises(error) as caught:
            replace(good, records=jobs).run()
        assert caught.value.field == place  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "fault, change, error, place",
    [
        ("no records", lambda p: p.pop("records"), SchemaError, "proof"),
        ("extra field", lambda p: p.update(d=1), SchemaError, "proof"),
        ("one record", lambda p: p["records"].pop(), SchemaError, "proof.records"),
        ("too many", lambda p: p.update(records=p["records"] * 9), SchemaError, "proof.records"),
        ("no digest", lambda p: p["records"].__setitem__(1, "00"), EncodingError, "proof.records[1]"),
        ("other circuit", lambda p: p.update(circuit="00" * 32), SchemaError, "proof.circuit"),
        ("off the curve", lambda p: p["c"].reverse(), EncodingError, "proof.c"),
    ],
)
def test_proof_that_is_refused(
    value: dict[str, Any], fault: str, change: Any, error: type[Exception], place: str
) -> None:
    broken = copy.deepcopy(value)
    change(broken)
    with pytest.raises(error) as caught:
        parse_records_proof(broken, PAIR.digest(), 2, field="proof")
    assert caught.value.field == place, fault  # type: ignore[attr-defined]


def test_proof_of_one_record_is_none_of_several(value: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        parse_proof(value, PAIR.digest(), field="proof")


def test_sizes_say_nothing_about_the_records(value: dict[str, Any]) -> None:
    again = many_job(PAIR, shared_cases(PAIR, 77)).run()
    assert len(jcs(again)) == len(jcs(value)) and again["a"] != value["a"]


@pytest.mark.parametrize("queries", [0, 17])
def test_number_of_queries_that_no_circuit_fits(queries: int) -> None:
    with pytest.raises(PolicyError):
        replace(TINY, queries=queries)


def agree(instance: RetrieveInstance, cases: list[Case]) -> None:
    """The witness's order keys of the listed positions are the reference's, record by record."""
    circuit = compile_circuit(instance)
    values = read_witness(compute_witness(circuit, many_job(instance, cases).inputs()))
    wires = System.read_wires(circuit.symbols)
    low = -127 * sum(instance.gains)
    for number, case in enumerate(cases):
        listed = [
            values[wires[f"answer[{number}].top_k.listed[{k}]"]] + low for k in range(len(case.positions))
        ]
        keys = case.keys()
        assert [x if x < MODULUS // 2 else x - MODULUS for x in listed] == [keys[p] for p in case.positions]


def test_witness_agrees_with_the_reference() -> None:
    for seed in range(5):
        agree(PAIR, shared_cases(PAIR, 100 * seed))


def test_extreme_scores_agree_with_the_reference() -> None:
    """Largest and smallest inner products and component -8: the hint's slots hold them."""
    first, second = shared_cases(PAIR, 9)
    for q, e in ((-8, -8), (-8, 7), (7, 7), (7, -8)):
        rows = [[e] * TINY.dimension, [q] * TINY.dimension] * 4
        agree(PAIR, [replace(c, q=[q] * TINY.dimension, rows=rows).solved() for c in (first, second)])


@pytest.mark.full
def test_one_proof_of_four_costs_what_is_written() -> None:
    """The shipped instance: the ceiling that the specification gives, and its records one by one."""
    (instance,) = (i for i in SHIPPED if isinstance(i, RetrieveInstance) and i.queries > 1)
    constraints = compile_circuit(instance).constraints
    alone = compile_circuit(replace(instance, queries=1)).constraints
    assert alone < 421_000
    assert constraints <= 4 * 193_000
    agree(instance, shared_cases(instance, 1))
