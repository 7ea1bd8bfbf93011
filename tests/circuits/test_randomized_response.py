"""`listing` against the Python reference: an assignment exists for the reference's lists and for no others."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag_audit._internal.canonical import Json
from rag_audit.errors import InvalidProof, PolicyError, SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import RANDOMIZED_RESPONSE_INPUTS, RandomizedResponseInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.statements import RandomizedResponseStatement
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_records_proof, public_inputs, verify
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import disclosed_commitment, list_commitment
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import dot
from tests.circuits.forger import satisfiable
from tests.circuits.randomized_response_case import (
    PAIR,
    TINY,
    RandomizedResponseCase,
    randomized_response_case,
)

pytestmark = pytest.mark.circuits

N64 = RandomizedResponseInstance(64, 16)
LARGE = [RandomizedResponseInstance(64, 256), RandomizedResponseInstance(256, 256)]


def satisfied(case: RandomizedResponseCase, lists: Sequence[Sequence[bool]] | None = None) -> bool:
    """Whether there is an assignment for these lists and what the account then holds, those of the reference unless
    given.
    """
    inputs = dict(case.job().inputs())
    if lists is not None:
        held = list(case.before)
        for listed in lists:
            held = [a or b for a, b in zip(held, listed, strict=True)]
        salts = [requested.salt_k for requested in case.requested]
        inputs["htopk"] = [list_commitment(s, listed) for s, listed in zip(salts, lists, strict=True)]
        inputs["held_after"] = disclosed_commitment(case.after_salt, held)
    return satisfiable(case.instance, inputs)


def flipped(bits: Sequence[bool], place: int) -> list[bool]:
    return [bit ^ (i == place) for i, bit in enumerate(bits)]


@pytest.mark.parametrize("instance", [TINY, PAIR, N64], ids=lambda i: i.name)
def test_the_reference_s_lists_and_no_others(instance: RandomizedResponseInstance) -> None:
    rng = random.Random(instance.name)
    for seed in range(12 if instance.capacity == 8 else 4):
        case = randomized_response_case(instance, seed)
        lists, _ = case.lists()
        assert satisfied(case)
        record, place = rng.randrange(instance.queries), rng.randrange(instance.capacity)
        wrong = [flipped(bits, place) if k == record else bits for k, bits in enumerate(lists)]
        assert not satisfied(case, wrong)


@pytest.mark.full
def test_the_reference_s_lists_two_hundred_times() -> None:
    for seed in range(200):
        case = randomized_response_case(TINY, 1000 + seed)
        (listed,), _ = case.lists()
        assert satisfied(case)
        assert not satisfied(case, [flipped(listed, seed % 8)])


@pytest.mark.full
@pytest.mark.parametrize("instance", LARGE, ids=lambda i: i.name)
def test_agreement_of_shipped_instances(instance: RandomizedResponseInstance) -> None:
    assert satisfied(randomized_response_case(instance, 1))


@pytest.mark.full
def test_constraints_are_the_documented_ones() -> None:
    assert [compile_circuit(i).constraints for i in LARGE] == [90_922, 346_812]


NONE, ALL = [False] * 8, [True] * 8


@pytest.mark.parametrize("most", [1, 3, 8])
def test_everything_wins_by_chance(most: int) -> None:
    case = randomized_response_case(TINY, 30, chance=PROBABILITY_RANGE - 1, most=most)
    assert case.lists()[0] == [[True] * most + [False] * (8 - most)]
    assert satisfied(case)
    if most < 8:
        assert not satisfied(case, [[False] + [True] * most + [False] * (7 - most)])
        assert not satisfied(case, [[True] * (most + 1) + [False] * (7 - most)])
    assert not satisfied(case, [[True] * (most - 1) + [False] * (9 - most)])


@pytest.mark.parametrize("change", [{"kept": NONE}, {"before": ALL}, {"threshold": 49 * 16}])
def test_nothing_wins(change: dict[str, Any]) -> None:
    case = randomized_response_case(TINY, 31, chance=1, **change)
    assert case.lists()[0] == [NONE]
    assert satisfied(case)
    assert not satisfied(case, [flipped(NONE, 4)])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_as_many_winners_as_a_list_has_places(more: int) -> None:
    """One place left over, none, and one too few."""
    for seed in range(40, 60):
        case = randomized_response_case(TINY, seed)
        winning = case.winners(case.requested[0], case.before)
        if 2 <= sum(winning) <= 6 and not winning[7]:
            break
    case = replace(case, most=sum(winning) - more)
    (listed,), _ = case.lists()
    assert sum(listed) == sum(winning) - max(more, 0)
    assert satisfied(case)
    if more > 0:
        assert not satisfied(case, [winning])
    else:
        last = max(i for i, bit in enumerate(winning) if bit)
        assert not satisfied(case, [flipped(winning, last)])


def test_scores_at_the_threshold() -> None:
    case = randomized_response_case(TINY, 61, kept=ALL, before=NONE, chance=1, most=8)
    scores = [dot(case.requested[0].q, row) for row in case.rows]
    for score in {s for s in scores if s > 0}:
        for threshold in (score, score + 1):
            at = replace(case, threshold=threshold)
            assert at.lists()[0] == [[s >= threshold for s in scores]]
            assert satisfied(at)


@pytest.mark.parametrize("q, e", [(-8, -8), (-8, 7), (7, 7), (7, -8)])
@pytest.mark.parametrize("threshold", [0, 1, 49 * 16, 64 * 16])
def test_extreme_scores_and_thresholds(q: int, e: int, threshold: int) -> None:
    """Slots hold the largest and smallest scores beside one another; the circuit takes what the policy does, and 0."""
    base = randomized_response_case(TINY, 62, kept=ALL, before=NONE, chance=1, most=8, threshold=threshold)
    case = replace(base, rows=[[e] * 16, [0] * 16] * 4, requested=[replace(base.requested[0], q=[q] * 16)])
    assert case.lists()[0] == [[16 * q * e >= threshold, threshold <= 0] * 4]
    assert satisfied(case)


@pytest.mark.parametrize(
    "name, value",
    [
        ("chance", PROBABILITY_RANGE),
        ("threshold", 64 * 16 + 1),
        ("most", 9),
        ("threshold", MODULUS - 1),
        ("most", MODULUS - 1),
    ],
)
def test_rules_beyond_their_ranges_have_no_assignment(name: str, value: int) -> None:
    inputs = dict(randomized_response_case(TINY, 63, chance=1, most=8).job().inputs())
    with pytest.raises(WitnessError):
        compute_witness(compile_circuit(TINY), {**inputs, name: value})


def test_the_first_record_of_an_account_holds_nothing() -> None:
    case = randomized_response_case(TINY, 64, before=NONE, before_salt=0)
    assert case.statement().held_before == disclosed_commitment(0, NONE)
    assert satisfied(case)


def test_what_the_first_record_lists_the_second_does_not() -> None:
    case = randomized_response_case(PAIR, 65, kept=ALL, before=NONE, chance=1, most=8, threshold=1)
    case = replace(case, requested=[case.requested[0], replace(case.requested[1], q=case.requested[0].q)])
    first, second = case.lists()[0]
    assert any(first) and not any(second)
    assert satisfied(case)
    assert not satisfied(case, [first, first])


def test_field_elements_at_the_edge() -> None:
    top = MODULUS - 1
    names = ("s0", "s1", "index_salt", "kept_salt", "before_salt", "after_salt")
    case = randomized_response_case(TINY, 66, **dict.fromkeys(names, top))
    edge = replace(case.requested[0], ctx=top, beacon=top, slot=top, salt_c=top, salt_k=top)
    assert satisfied(replace(case, requested=[edge]))


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": 0},
        {"capacity": 12},
        {"capacity": 264},
        {"dimension": 0},
        {"dimension": 4097},
        {"queries": 0},
        {"queries": 17},
    ],
)
def test_parameters_that_no_circuit_fits(change: dict[str, int]) -> None:
    with pytest.raises(PolicyError):
        replace(TINY, **change)


def test_private_inputs_that_do_not_fit() -> None:
    (record,) = randomized_response_case(TINY, 67).records()
    for field, change in (
        ("rows", {"rows": b""}),
        ("sample", {"sample": (bytes(7), 1)}),
        ("before", {"before": (bytes(9), 1)}),
        ("vector", {"vector": b""}),
    ):
        with pytest.raises(WitnessError) as caught:
            RecordsJob(TINY, (replace(record, **change),)).inputs()
        assert caught.value.field == field
    with pytest.raises(SchemaError) as unfit:
        RecordsJob(TINY, ()).inputs()
    assert unfit.value.field == "records"


# -- proofs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case() -> RandomizedResponseCase:
    return randomized_response_case(PAIR, 70, most=2)


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(PAIR).vk, field="vk")


@pytest.fixture(scope="module")
def value(case: RandomizedResponseCase) -> dict[str, Json]:
    result: dict[str, Json] = pickle.loads(pickle.dumps(case.job())).run()
    return result


def single_part(value: Json) -> bytes:
    [part] = parse_records_proof(value, PAIR.digest(), 2, field="proof").parts or (b"",)
    return part


def test_proof_verifies(key: VerificationKey, value: Json, case: RandomizedResponseCase) -> None:
    statement = case.statement()
    names, _ = public_inputs(statement)
    assert key.inputs == len(names) == 8 + 5 * 2 and names[-3:] == ["chance", "threshold", "most"]
    assert verify(key, single_part(value), statement)


@pytest.mark.parametrize("name", RANDOMIZED_RESPONSE_INPUTS)
def test_proof_of_another_statement(
    key: VerificationKey, value: Json, case: RandomizedResponseCase, name: str
) -> None:
    proof = single_part(value)
    statement = case.statement()
    result = getattr(statement, name)
    changed = (
        [result ^ 1] if isinstance(result, int) else [(result[1], result[0]), (result[0], result[1] ^ 1)]
    )
    for other in changed:
        stated: RandomizedResponseStatement = replace(statement, **{name: other})
        assert isinstance(failures(key, [proof], [stated])[0], InvalidProof)


def test_job_does_not_show_its_secrets(case: RandomizedResponseCase) -> None:
    text = repr(case.job())
    for secret in (case.s0, case.kept_salt, case.before_salt, case.after_salt, case.requested[0].salt_k):
        assert str(secret) not in text
