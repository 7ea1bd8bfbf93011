"""Cheating provers of several records in one proof: what is new there is the links. Each lie cuts one, for one record
alone, and carries the rest through; the untouched circuit must break there and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.relation.commitments import topk_commitment
from tests.circuits.forger import Patch, assert_accepted, forge, literal_system, selected
from tests.circuits.forger import assert_caught as judged
from tests.circuits.many_case import PAIR, many_job, shared_cases
from tests.circuits.retrieve_case import Case
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return shared_cases(PAIR, 1)


def forged(inputs: Inputs, cases: list[Case], *patches: Patch) -> list[int]:
    return selected(inputs, cases, PAIR, *patches)


def assert_caught(witness: list[int], check: str) -> None:
    judged(PAIR, witness, {check})


def test_the_honest_witness_of_the_forger_is_accepted(cases: list[Case]) -> None:
    witness = forge(PAIR, many_job(PAIR, cases).inputs())
    assert_accepted(PAIR, witness)


@lies("many")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str], cases: list[Case]) -> None:
    judged(PAIR, forged(many_job(PAIR, cases).inputs(), cases, lie), breaks)


LIBRARY = "lib/retrieve.circom"


@pytest.mark.parametrize(
    "link",
    [
        "slot",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("beacon", "s0", "s1")),
    ],
)
def test_noise_of_another(cases: list[Case], link: str) -> None:
    """The second record under the first one's slot, or with noise of another beacon or seed."""
    source = link if link in ("s0", "s1") else f"{link}[k]"
    other = f"{link} + k" if link in ("s0", "s1") else f"{link}[0]"
    lie = (LIBRARY, f"answer[k].{link} <== {source};", f"answer[k].{link} <-- {other};")
    assert_caught(forged(many_job(PAIR, cases).inputs(), cases, lie), f"answer[].{link}")


def test_index_scored_is_not_the_index_hashed(cases: list[Case]) -> None:
    lie = (
        LIBRARY,
        "        index_hash.in[1 + i] <== index[i];",
        "        index_hash.in[1 + i] <-- index[i] + (i == 0 ? 1 : 0);",
    )
    rows = [list(row) for row in cases[0].rows]
    rows[0][0] = min(rows[0][0], 6)
    scored = [replace(case, rows=rows).solved() for case in cases]
    committed = [list(row) for row in rows]
    committed[0][0] += 1
    inputs = {
        **many_job(PAIR, scored).inputs(),
        "c_idx": replace(scored[0], rows=committed).public()["c_idx"],
    }
    assert_caught(forged(inputs, scored, lie), "index[]")


def test_vector_of_the_other_record(cases: list[Case]) -> None:
    """Both records answered for the first one's query, under their own commitments."""
    cheat = [cases[0], replace(cases[1], q=cases[0].q).solved()]
    honest = many_job(PAIR, cases).inputs()
    assert_caught(forge(PAIR, {**many_job(PAIR, cheat).inputs(), "cq": honest["cq"]}), "answer[].cq")


def test_list_of_the_other_record(cases: list[Case]) -> None:
    """The second record lists what the first one's query selects, and commits to it."""
    lists = [*cases[0].positions, *cases[0].positions]
    hashes = [topk_commitment(case.salt_k, cases[0].positions) for case in cases]
    witness = forge(PAIR, {**many_job(PAIR, cases).inputs(), "position": lists, "htopk": hashes})
    broken = {name for signals in literal_system(PAIR).broken_signals(witness) for name in signals}
    assert broken and {name.split(".")[0] for name in broken} == {"answer[1]"}
    assert {name.split(".")[1].split("[")[0] for name in broken} <= {"top_k"}


def test_context_of_another_record(cases: list[Case]) -> None:
    witness = forge(PAIR, many_job(PAIR, cases).inputs())
    witness[literal_system(PAIR).wires["ctx[1]"]] += 1
    assert_caught(witness, "ctx[]")
