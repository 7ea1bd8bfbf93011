"""One proof for successive lists of one account, out of the records' own jobs: which records a verifier lets share
it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rag_audit.errors import SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.instance import RandomizedResponseInstance
from rag_audit.proofs.backends.groth16.job import RandomizedResponseInputs, RecordsJob
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.shared import RetrieveProofs
from rag_audit.proofs.backends.groth16.statements import RandomizedResponseStatement
from rag_audit.proofs.records import Group, verify_records
from rag_audit.relation.native_secrets import disclosed_commitment
from tests.circuits.randomized_response_case import PAIR, randomized_response_case

pytestmark = pytest.mark.circuits
SHARED = RetrieveProofs(PAIR)
NAMES = ("record 4", "record 6")


@dataclass(frozen=True)
class Made:
    key: VerificationKey
    proof: Group
    records: tuple[RandomizedResponseStatement, ...]

    def refused(
        self,
        own: Sequence[RandomizedResponseStatement] | None = None,
        every: Sequence[RandomizedResponseStatement] | None = None,
    ) -> dict[int, str]:
        """Why records that carry the proof, by default all that it names, are not proved by it."""
        own = self.records if own is None else own
        result = verify_records(
            SHARED, self.key, [self.proof] * len(own), own, self.records if every is None else every
        )
        return {i: error.message for i, error in result.items()}


@pytest.fixture(scope="module")
def jobs() -> tuple[RandomizedResponseInputs, ...]:
    return randomized_response_case(PAIR, 70, most=2).records()


def made_of(jobs: Sequence[RandomizedResponseInputs]) -> Made:
    keys = proving_key(PAIR)
    job = RecordsJob(PAIR, tuple(jobs), NAMES)
    value = pickle.loads(pickle.dumps(replace(job, vk=keys.vk_digest))).run()
    proof = SHARED.parse_proof(value, field="proof")
    return Made(VerificationKey.parse(keys.vk, field="vk"), proof, tuple(job.statement for job in jobs))


@pytest.fixture(scope="module")
def made(jobs: tuple[RandomizedResponseInputs, ...]) -> Made:
    return made_of(jobs)


def left_with(jobs: Sequence[RandomizedResponseInputs], commitment: int) -> list[RandomizedResponseInputs]:
    """The jobs of records of which the ledger says this after the first. The circuit has no such input."""
    first, second = jobs
    return [
        replace(first, statement=replace(first.statement, held_after=commitment)),
        replace(second, statement=replace(second.statement, held_before=commitment)),
    ]


def test_records_that_follow_one_another_share_a_proof(made: Made) -> None:
    assert SHARED.chained and made.refused() == {}
    assert (
        verify_records(SHARED, made.key, [made.proof] * 2, made.records, made.records, engine="py_ecc") == {}
    )


def test_the_ledger_s_other_values_are_the_proof_s(made: Made) -> None:
    first, second = made.records
    other = replace(second, held_after=second.held_after ^ 1)
    assert made.refused([first, other], [first, other]) == {
        0: "the proof is also for a record that the ledger does not have",
        1: "the proof is for other records",
    }


def test_a_record_of_the_proof_that_has_another_one(made: Made) -> None:
    """Two proofs that overlap would leave a commitment that neither opens."""
    for number in range(2):
        assert made.refused([made.records[number]], made.records) == {
            0: "a record that the proof names has another proof"
        }


def test_another_account_that_holds_the_same(made: Made) -> None:
    """The second record could be that other account's, which would forget its own first list."""
    first, second = made.records
    third = replace(first, slot=(first.slot[0] ^ 1,))
    said = "two records say that an account holds the same after them"
    assert made.refused(every=[first, second, third]) == {0: said, 1: said}


def test_nothing_held_after_a_list_is_where_every_account_begins(
    jobs: tuple[RandomizedResponseInputs, ...],
) -> None:
    nothing = disclosed_commitment(0, (), PAIR.capacity)
    with_nothing = made_of(left_with(jobs, nothing))
    said = "two records say that an account holds the same after them"
    assert with_nothing.refused() == {0: said, 1: said}


def test_records_in_another_order_or_of_other_rules(made: Made) -> None:
    first, second = made.records
    with pytest.raises(SchemaError, match="not successive ones of one account"):
        RandomizedResponseStatement.of([second, first], 2)
    with pytest.raises(SchemaError, match="the number of records does not fit"):
        RandomizedResponseStatement.of([first], 2)
    for name in ("c_seed", "c_idx", "c_kept", "chance", "threshold", "most"):
        other: Any = replace(second, **{name: getattr(second, name) ^ 1})
        with pytest.raises(SchemaError, match="several tenants or windows"):
            RandomizedResponseStatement.of([first, other], 2)


@pytest.mark.parametrize(
    ("change", "error", "field"),
    [
        (
            lambda j: replace(j, instance=RandomizedResponseInstance(16, 16)),
            WitnessError,
            "record 6.instance",
        ),
        (lambda j: replace(j, rows=bytes(len(j.rows))), WitnessError, "record 6.rows"),
        (lambda j: replace(j, before=(j.before[0], 1)), WitnessError, "record 6.before"),
        (
            lambda j: replace(j, statement=replace(j.statement, held_before=1)),
            SchemaError,
            "records[1].held_before",
        ),
        (
            lambda j: replace(j, salt_k=1),
            WitnessError,
            "record 6",
        ),
    ],
)
def test_jobs_that_do_not_belong_together(
    jobs: tuple[RandomizedResponseInputs, ...],
    change: Callable[[RandomizedResponseInputs], RandomizedResponseInputs],
    error: type[Any],
    field: str,
) -> None:
    with pytest.raises(error) as caught:
        RecordsJob(PAIR, (jobs[0], change(jobs[1])), NAMES).run()
    assert caught.value.field == field
