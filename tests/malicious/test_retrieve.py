"""Cheating provers of `retrieve`. Each carries one lie through a full witness, so that everything that
depends on it is consistent; the untouched circuit must break at the constraint meant for that lie and
nowhere else: without that one check the forged witness would be accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rag_audit.relation.selection import top_k
from tests.circuits.forger import WORD_NOT_BELOW_R, Patch, assert_accepted, forge, literal_system, selected
from tests.circuits.forger import assert_caught as judged
from tests.circuits.retrieve_case import TINY, Case, random_case
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits


def forged(case: Case, *patches: Patch, overrides: Mapping[str, Any] | None = None) -> list[int]:
    """A forged witness whose positions are the top K of the forged scores and noise."""
    return selected({**case.inputs(), **(overrides or {})}, [case], TINY, *patches)


assert_caught = partial(judged, TINY)


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(TINY, 1)


def test_the_honest_witness_of_the_forger_is_accepted(case: Case) -> None:
    witness = forge(TINY, case.inputs())
    assert_accepted(TINY, witness)


@lies("retrieve")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str], case: Case) -> None:
    assert_caught(forged(case, lie), breaks)


# A2: noise


def test_wrong_noise_draw_by_a_flipped_comparison(case: Case) -> None:
    flip = (
        "utils/bits.circom",
        "        bit[i] <-- rest & 1;",
        "        bit[i] <-- n == 17 && i == 16 ? 1 - ((in >> i) & 1) : (in >> i) & 1;",
    )
    assert_caught(forged(case, flip), {"answer[].noise.draw[].not_below.in"})


def test_non_canonical_decomposition(case: Case) -> None:
    """word + r has the same residue as word and other bits: the classic forgery."""
    witness = forged(case, *WORD_NOT_BELOW_R)
    assert_caught(witness, {"answer[].noise.split[].high.in"})
    # The residue is right, and some words' high parts fit 54 plain bits: Num2Bits(254) would have let it pass.
    wires = literal_system(TINY).wires
    words = sum(name.startswith("answer[0].noise.split[") and name.endswith(".word") for name in wires)
    parts = [witness[wires[f"answer[0].noise.split[{n}].high.in"]] for n in range(words)]
    assert any(part < 1 << 54 for part in parts)


@pytest.mark.parametrize(
    "at, name",
    [
        ("4", "slot"),
        pytest.param("3", "beacon", marks=pytest.mark.full),
        ("1", "s0"),
        pytest.param("2", "s1", marks=pytest.mark.full),
    ],
)
def test_noise_of_another(case: Case, at: str, name: str) -> None:
    """Another slot, another beacon, another seed than the committed one."""
    lie = ("lib/retrieve.circom", f"key.in[{at}] <== {name};", f"key.in[{at}] <-- {name} + 1;")
    assert_caught(forged(case, lie), {f"answer[].{name}"})


def test_other_seed_opened_for_the_commitment(case: Case) -> None:
    other = replace(case, s0=case.s0 ^ 1)
    assert_caught(forged(other, overrides={"c_seed": case.public()["c_seed"]}), {"c_seed"})


# A3: scores and selection


def test_vector_of_another_commitment(case: Case) -> None:
    other = replace(case, q=[-x for x in case.q])
    assert_caught(forged(other, overrides={"cq": case.public()["cq"]}), {"answer[].cq"})


def test_query_element_longer_than_its_components(case: Case) -> None:
    inputs = case.inputs()
    query = [inputs["query"][0] + (1 << 252)]  # type: ignore[index]
    witness = forged(case, overrides={"query": query})
    assert_caught(witness, {"answer[].scores.q[].digits.in", "answer[].cq"})


def not_listed(case: Case) -> list[int]:
    return [i for i in range(TINY.capacity) if i not in case.positions]


Change = Callable[[Case], tuple[int, ...]]


def with_positions(case: Case, change: Change) -> Case:
    return replace(case, positions=change(case))


def test_top_k_not_maximal(case: Case) -> None:
    """The K-th position is replaced by a worse one: the dropped position is better than the last listed."""
    cheat = with_positions(case, lambda c: (*c.positions[:-1], not_listed(c)[0]))
    assert_caught(forge(TINY, cheat.inputs()), {"answer[].top_k.not_better[].in"})


def test_dropped_position_hidden_from_the_comparison(case: Case) -> None:
    """Positions better than the last listed are all marked as chosen, though the list omits one."""
    cheat = with_positions(case, lambda c: (*c.positions[:-1], not_listed(c)[0]))
    lie = (
        "lib/top_k.circom",
        "chosen[i] <-- contains(position, K, i);",
        "chosen[i] <-- offset_y[i] + before[i] > listed[K - 1] ? 1 : contains(position, K, i);",
    )
    assert_caught(forge(TINY, cheat.inputs(), lie), {"answer[].top_k.equal[].packed"})


@pytest.mark.parametrize("at", range(TINY.top_k - 1))
def test_top_k_in_another_order(case: Case, at: int) -> None:
    def swap(c: Case) -> tuple[int, ...]:
        p = list(c.positions)
        p[at], p[at + 1] = p[at + 1], p[at]
        return tuple(p)

    witness = forge(TINY, with_positions(case, swap).inputs())
    # With another last position, T itself is another: the true last one is then not chosen before it.
    assert_caught(witness, {"answer[].top_k.decreasing[].in", "answer[].top_k.not_better[].in"})


def test_duplicate_position(case: Case) -> None:
    """A list that names its first position twice and its last not at all."""
    cheat = with_positions(case, lambda c: (c.positions[0], *c.positions[:-1]))
    assert_caught(
        forge(TINY, cheat.inputs()),
        {"answer[].top_k.decreasing[].in", "answer[].top_k.equal[].packed", "answer[].top_k.not_better[].in"},
    )


@pytest.mark.full
def test_listed_score_that_is_not_the_positions(case: Case) -> None:
    lie = (
        "lib/top_k.circom",
        "listed[k] <-- pick(offset_y, N, position[k]);",
        "listed[k] <-- pick(offset_y, N, position[k]) + (k == 0 ? 1 : 0);",
    )
    assert_caught(forge(TINY, case.inputs(), lie), {"answer[].top_k.equal[].packed"})


def test_position_beyond_the_capacity(case: Case) -> None:
    cheat = with_positions(case, lambda c: (*c.positions[:-1], TINY.capacity))
    witness = forge(TINY, cheat.inputs())
    assert_caught(
        witness, {"answer[].top_k.group[][]", "answer[].top_k.place[].in", "answer[].top_k.not_better[].in"}
    )


def tied_at_the_end() -> Case:
    """A case whose K-th and (K+1)-th have equal y."""
    for seed in range(1000):
        case = random_case(TINY, seed)
        order = top_k(case.keys(), TINY.top_k + 1)
        if case.keys()[order[-1]] == case.keys()[order[-2]]:
            return case
    raise AssertionError("no tie found")


def test_tie_resolved_for_the_larger_position() -> None:
    case = tied_at_the_end()
    rival = top_k(case.keys(), TINY.top_k + 1)[-1]
    cheat = with_positions(case, lambda c: (*c.positions[:-1], rival))
    assert_caught(forge(TINY, cheat.inputs()), {"answer[].top_k.not_better[].in"})


def test_tie_rule_switched_off() -> None:
    case = tied_at_the_end()
    rival = top_k(case.keys(), TINY.top_k + 1)[-1]
    cheat = with_positions(case, lambda c: (*c.positions[:-1], rival))
    lie = ("lib/top_k.circom", "before[i] <-- i < position[K - 1] ? 1 : 0;", "before[i] <-- 0;")
    assert_caught(
        forge(TINY, cheat.inputs(), lie), {"answer[].top_k.before[]", "answer[].top_k.equal[].packed"}
    )


# A4: index


def test_index_of_another_tenant(case: Case) -> None:
    other = random_case(TINY, 2)
    cheat = replace(case, rows=other.rows, index_salt=other.index_salt)
    assert_caught(forged(cheat, overrides={"c_idx": case.public()["c_idx"]}), {"c_idx"})


def test_index_scored_is_not_the_index_hashed(case: Case) -> None:
    lie = (
        "lib/retrieve.circom",
        "        index_hash.in[1 + i] <== index[i];",
        "        index_hash.in[1 + i] <-- index[i] + (i == 0 ? 1 : 0);",
    )
    scored, committed = case.raised()
    assert_caught(forged(scored, lie, overrides={"c_idx": committed.public()["c_idx"]}), {"index[]"})


def test_public_values_of_another_record(case: Case) -> None:
    """A proof's witness under another ctx: bound although nothing else uses it."""
    witness = forge(TINY, case.inputs())
    literal = literal_system(TINY)
    witness[literal.wires["ctx[0]"]] += 1
    assert_caught(witness, {"ctx[]"})
