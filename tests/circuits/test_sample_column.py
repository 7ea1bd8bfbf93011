"""`kept` against the Python reference: its assignment exists for the commitment to the seed's coins and for no
other."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from rag_audit._internal.canonical import Json
from rag_audit.errors import InvalidProof, PolicyError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import SAMPLE_INPUTS, SampleInstance
from rag_audit.proofs.backends.groth16.job import sampled_positions
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_proof, verify
from rag_audit.proofs.statements.private import CommittedColumn
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import sample_commitment
from rag_audit.relation.field import MODULUS, to_bytes, to_hex
from tests.circuits.forger import satisfiable
from tests.circuits.sample_column_case import TINY, SampleCase, random_kept

pytestmark = pytest.mark.circuits

N64 = SampleInstance(64)
N256 = SampleInstance(256)


def satisfied(case: SampleCase, bits: list[bool] | None = None) -> bool:
    """Whether there is an assignment for the commitment to these bits, those of the reference unless given."""
    inputs = dict(case.job().inputs())
    if bits is not None:
        inputs["c_kept"] = sample_commitment(case.salt, bits)
    return satisfiable(case.instance, inputs)


@pytest.mark.parametrize(
    "instance", [TINY, N64, pytest.param(N256, marks=pytest.mark.full)], ids=lambda i: i.name
)
def test_the_coins_of_the_reference_and_no_others(instance: SampleInstance) -> None:
    for seed in range(6):
        case = random_kept(instance, seed)
        bits = case.bits()
        assert satisfied(case)
        place = seed * 7 % instance.capacity
        assert not satisfied(case, [bit ^ (i == place) for i, bit in enumerate(bits)])


@pytest.mark.parametrize("instance", [TINY, N64], ids=lambda i: i.name)
@pytest.mark.parametrize("keep, kept", [(1, False), (PROBABILITY_RANGE - 1, True)])
def test_all_kept_and_none_kept(instance: SampleInstance, keep: int, kept: bool) -> None:
    case = random_kept(instance, 20, keep)
    assert case.bits() == [kept] * instance.capacity
    assert satisfied(case)
    assert not satisfied(case, [not kept] * instance.capacity)


def test_a_draw_at_the_bound_is_not_kept() -> None:
    case = random_kept(TINY, 21)
    for place, draw in enumerate(case.draws()):
        at, above = replace(case, keep=draw), replace(case, keep=draw + 1)
        assert (at.bits()[place], above.bits()[place]) == (False, True)
        assert satisfied(at) and satisfied(above)


def test_probability_beyond_forty_bits_has_no_assignment() -> None:
    case = random_kept(TINY, 22, PROBABILITY_RANGE - 1)
    inputs = dict(case.job().inputs())
    for keep in (PROBABILITY_RANGE, MODULUS - 1):
        with pytest.raises(WitnessError):
            compute_witness(compile_circuit(TINY), {**inputs, "keep": keep})


def test_field_elements_at_the_edge() -> None:
    top = MODULUS - 1
    assert satisfied(replace(random_kept(TINY, 23), ctx=top, s0=top, s1=top, beacon=top, slot=top, salt=top))


def test_constraints_are_the_documented_ones() -> None:
    assert compile_circuit(N64).constraints == 8_238


@pytest.mark.full
def test_constraints_of_the_large_instance_are_the_documented_ones() -> None:
    assert compile_circuit(N256).constraints == 27_711


@pytest.mark.parametrize("capacity", [0, 4, 12, 1 << 18])
def test_capacities_that_no_circuit_fits(capacity: int) -> None:
    with pytest.raises(PolicyError) as caught:
        SampleInstance(capacity)
    assert caught.value.field == "capacity"


# -- proofs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case() -> SampleCase:
    return random_kept(N64, 24)


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(N64).vk, field="vk")


@pytest.fixture(scope="module")
def value(case: SampleCase) -> dict[str, Json]:
    result: CommittedColumn = pickle.loads(pickle.dumps(case.job())).run()
    assert result.commitment.digest == to_hex(case.statement().c_kept)
    assert result.opening == to_bytes(case.salt)
    return result.proof


@pytest.mark.parametrize("engine", ["native", "py_ecc"])
def test_proof_verifies(key: VerificationKey, value: Json, case: SampleCase, engine: str) -> None:
    proof = parse_proof(value, N64.digest(), field="proof")
    assert key.inputs == len(SAMPLE_INPUTS)
    assert verify(key, proof, case.statement(), engine=engine)


@pytest.mark.parametrize("name", SAMPLE_INPUTS)
def test_proof_of_another_statement(key: VerificationKey, value: Json, case: SampleCase, name: str) -> None:
    proof = parse_proof(value, N64.digest(), field="proof")
    statement: SampleStatement = replace(case.statement(), **{name: getattr(case.statement(), name) ^ 1})
    assert isinstance(failures(key, [proof], [statement])[0], InvalidProof)


def test_commitment_and_positions_are_the_reference(case: SampleCase) -> None:
    kept, c_kept = sampled_positions(
        64, s0=case.s0, s1=case.s1, beacon=case.beacon, slot=case.slot, keep=case.keep, salt=case.salt
    )
    assert [bool(bit) for bit in kept] == case.bits()
    assert c_kept == case.statement().c_kept


def test_job_does_not_show_its_secrets(case: SampleCase) -> None:
    for secret in (case.s0, case.s1, case.salt):
        assert str(secret) not in repr(case.job())
