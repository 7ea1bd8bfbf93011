"""Cheating provers of `listing`. Each carries one lie through a full assignment; the untouched circuit must break at
the constraint meant for that lie and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import disclosed_commitment, list_commitment, sample_commitment
from rag_audit.relation.poseidon import hash_list
from rag_audit.relation.tags import TAG_DISCLOSED, TAG_TOPK
from rag_audit.relation.vectors import pack_bits
from tests.circuits.forger import Patch, assert_accepted, forge, literal_system
from tests.circuits.forger import assert_caught as judged
from tests.circuits.randomized_response_case import (
    PAIR,
    TINY,
    RandomizedResponseCase,
    randomized_response_case,
)
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits

LIBRARY = "lib/listing.circom"
NONE, ALL = [False] * 8, [True] * 8
assert_caught = partial(judged, TINY)


def forged(case: RandomizedResponseCase, *patches: Patch, **overrides: Any) -> list[int]:
    """A forged assignment whose commitments are to what the forger's circuit lists and holds."""
    inputs = {**case.job().inputs(), **overrides}
    wires = literal_system(case.instance).wires
    first = forge(case.instance, inputs, *patches)

    result = {
        "htopk": [
            hash_list(TAG_TOPK, [requested.salt_k, 8, first[wires[f"record[{k}].packed.element[0]"]]])
            for k, requested in enumerate(case.requested)
        ],
        "held_after": hash_list(TAG_DISCLOSED, [case.after_salt, first[wires["after.packed.element[0]"]]]),
    }
    return forge(case.instance, {**inputs, **result}, *patches)


def listed(witness: list[int]) -> list[bool]:
    wires = literal_system(TINY).wires
    return [bool(witness[wires[f"record[0].first.listed[{i}]"]]) for i in range(8)]


@pytest.fixture(scope="module")
def case() -> RandomizedResponseCase:
    """Everything is relevant; half is kept, a quarter held, and nothing is listed by chance."""
    base = randomized_response_case(TINY, 1, chance=1, most=8, threshold=1)
    q = base.requested[0].q
    return replace(base, rows=[q] * 8, kept=[True, False] * 4, before=[True, True, *[False] * 6])


@pytest.fixture(scope="module")
def crowded(case: RandomizedResponseCase) -> RandomizedResponseCase:
    """Four winners, of which a list takes three."""
    result = replace(case, before=NONE, most=3)
    assert result.lists()[0] == [[True, False, True, False, True, False, False, False]]
    return result


@pytest.mark.parametrize("seed", range(3))
def test_the_honest_witness_of_the_forger_is_accepted(seed: int) -> None:
    witness = forged(randomized_response_case(TINY, seed))
    assert_accepted(TINY, witness)


@lies("listing")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str], case: RandomizedResponseCase) -> None:
    assert_caught(forged(case, lie), breaks)


# Who wins

FRESH = "fresh[i] <== shared.kept[i] * (1 - held[i]);"
WINNER = "winner[i] <== chance.coin[i] + wanted[i] - chance.coin[i] * wanted[i];"


def test_unkept_position_listed(case: RandomizedResponseCase) -> None:
    witness = forged(case, (LIBRARY, FRESH, "fresh[i] <-- 1 - held[i];"))
    assert listed(witness) != case.lists()[0][0]
    assert_caught(witness, {"record[].fresh[]"})


@pytest.mark.full
def test_held_position_listed_again(case: RandomizedResponseCase) -> None:
    witness = forged(case, (LIBRARY, FRESH, "fresh[i] <-- shared.kept[i];"))
    assert listed(witness) != case.lists()[0][0]
    assert_caught(witness, {"record[].fresh[]"})


@pytest.mark.full
def test_chance_dropped(case: RandomizedResponseCase) -> None:
    lucky = replace(case, chance=PROBABILITY_RANGE - 1)
    assert lucky.lists()[0] == [ALL]
    assert_caught(forged(lucky, (LIBRARY, WINNER, "winner[i] <-- wanted[i];")), {"record[].winner[]"})


def test_chance_forced(case: RandomizedResponseCase) -> None:
    """A position that the coin does not give, listed as if it did."""
    lie = ("lib/coins.circom", "coin[i] <== less[i].below;", "coin[i] <-- i == 5 ? 1 : less[i].below;")
    witness = forged(case, lie, c_kept=sample_commitment(case.kept_salt, case.kept))
    assert listed(witness)[5] and not case.lists()[0][0][5]
    assert_caught(witness, {"record[].chance.coin[]"})


@pytest.mark.full
def test_chance_of_another_slot(case: RandomizedResponseCase) -> None:
    lie = ("lib/coins.circom", "hash.in[4] <== slot;", "hash.in[4] <-- slot + 1;")
    assert_caught(forged(replace(case, chance=PROBABILITY_RANGE // 2), lie), {"record[].key.slot"})


@pytest.mark.full
def test_vector_of_another_commitment(case: RandomizedResponseCase) -> None:
    other = replace(case, requested=[replace(case.requested[0], q=[-x for x in case.requested[0].q])])
    assert_caught(forged(other, cq=case.statement().cq), {"record[].cq"})


@pytest.mark.full
def test_index_of_another_tenant(case: RandomizedResponseCase) -> None:
    other = replace(case, rows=[[-x for x in row] for row in case.rows])
    assert_caught(forged(other, c_idx=case.statement().c_idx), {"c_idx"})


@pytest.mark.full
def test_kept_positions_of_another_commitment(case: RandomizedResponseCase) -> None:
    other = replace(case, kept=ALL)
    assert_caught(forged(other, c_kept=case.statement().c_kept), {"c_kept"})


# The first M

INSIDE = "inside[i] <-- within(winner, i, most);"


@pytest.mark.full
def test_listed_bit_of_a_position_that_did_not_win(case: RandomizedResponseCase) -> None:
    lie = (LIBRARY, "listed[i] <== winner[i] * inside[i];", "listed[i] <-- inside[i];")
    witness = forged(case, lie)
    assert listed(witness) == ALL
    assert_caught(witness, {"record[].first.listed[]"})


def test_cap_that_is_not_at_the_first(crowded: RandomizedResponseCase) -> None:
    """The first winner is passed over for one behind the cap: the places inside would have to increase."""
    lie = (LIBRARY, INSIDE, "inside[i] <-- i > 0 ? within(winner, i, most + winner[0]) : 0;")
    witness = forged(crowded, lie)
    assert listed(witness) == [False, False, True, False, True, False, True, False]
    assert_caught(witness, {"record[].first.inside[]"})


def test_one_more_than_the_cap(crowded: RandomizedResponseCase) -> None:
    witness = forged(crowded, (LIBRARY, INSIDE, "inside[i] <-- 1;"))
    assert sum(listed(witness)) == 4
    assert_caught(witness, {"record[].first.left.in"})


@pytest.mark.full
def test_winner_within_the_cap_left_out(crowded: RandomizedResponseCase) -> None:
    """The list ends after two of the three."""
    witness = forged(crowded, (LIBRARY, INSIDE, "inside[i] <-- within(winner, i, most - 1);"))
    assert sum(listed(witness)) == 2
    assert_caught(witness, {"record[].first.most"})


@pytest.mark.full
def test_place_that_is_no_bit(crowded: RandomizedResponseCase) -> None:
    """Two of four winners listed, one of them counted twice: the sum is the cap, and the packed list reads as
    another."""
    lie = (LIBRARY, INSIDE, "inside[i] <-- i == 0 ? 2 : within(winner, i, most - 1);")
    assert_caught(forged(crowded, lie), {"record[].first.inside[]"})


@pytest.mark.full
def test_cap_of_another_policy(crowded: RandomizedResponseCase) -> None:
    """The rules' upper ends in the place of the rules; only the cap differs from them."""
    lie = (LIBRARY, "    out.max = most;\n    out <== in;", "    out.max = most;\n    out <-- most;")
    assert_caught(forged(replace(crowded, threshold=16 * 64), lie), {"checked.most_range.out"})


# What an account holds

AFTER = "after[i] <== held[i] + first.listed[i] - held[i] * first.listed[i];"


def test_held_bit_cleared(case: RandomizedResponseCase) -> None:
    assert_caught(forged(case, (LIBRARY, AFTER, "after[i] <-- first.listed[i];")), {"record[].after[]"})


@pytest.mark.full
def test_held_bit_set(case: RandomizedResponseCase) -> None:
    """So that a relevant position is not listed the next time."""
    assert_caught(forged(case, (LIBRARY, AFTER, "after[i] <-- 1;")), {"record[].after[]"})


@pytest.mark.full
def test_listed_bit_that_is_not_held_afterwards(case: RandomizedResponseCase) -> None:
    assert_caught(forged(case, (LIBRARY, AFTER, "after[i] <-- held[i];")), {"record[].after[]"})


@pytest.mark.parametrize("before", [NONE, ALL])
def test_other_held_positions_before(case: RandomizedResponseCase, before: list[bool]) -> None:
    """The chain is forked: the account is said to hold less, or more, than its last record left."""
    other = replace(case, before=before)
    assert_caught(forged(other, held_before=case.statement().held_before), {"held_before"})


@pytest.mark.full
def test_held_positions_under_another_salt(case: RandomizedResponseCase) -> None:
    assert_caught(forged(case, before_salt=case.before_salt ^ 1), {"held_before"})


def test_commitment_to_other_held_positions(case: RandomizedResponseCase) -> None:
    witness = forge(TINY, {**case.job().inputs(), "held_after": disclosed_commitment(case.after_salt, NONE)})
    assert_caught(witness, {"held_after"})


@pytest.mark.full
def test_packed_held_bits_beyond_the_positions(case: RandomizedResponseCase) -> None:
    result = {
        "before": [pack_bits(case.before)[0] + (1 << 8)],
        "held_before": disclosed_commitment(case.before_salt, [*case.before, True]),
    }
    assert_caught(forged(case, **result), {"opened_before.digits[].digits.in"})


@pytest.mark.full
def test_second_record_after_another_first() -> None:
    """The second record is given as held what the account held before the first."""
    case = randomized_response_case(PAIR, 2, kept=ALL, before=NONE, chance=1, most=8, threshold=1)
    literal = literal_system(PAIR)
    witness = forged(case)
    assert list(literal.broken(witness)) == []
    (first, _), _ = case.lists()
    assert any(first)
    for i in range(8):
        witness[literal.wires[f"record[1].held[{i}]"]] = 0
    cut = {f"record[0].after[{i}]" for i, bit in enumerate(first) if bit}
    assert {name for signals in literal.broken_signals(witness) for name in signals} & cut == cut


# What is published


def test_list_of_another_record(case: RandomizedResponseCase) -> None:
    other = list_commitment(case.requested[0].salt_k, ALL)
    assert_caught(forge(TINY, {**case.job().inputs(), "htopk": [other]}), {"record[].htopk"})


@pytest.mark.parametrize(
    "name, value, check",
    [
        ("chance", PROBABILITY_RANGE + 1, "checked.chance_range.digits.in"),
        ("threshold", 64 * 16 + 1, "checked.threshold_range.range.in"),
        ("most", 9, "checked.most_range.range.in"),
    ],
)
def test_rules_beyond_their_ranges(case: RandomizedResponseCase, name: str, value: int, check: str) -> None:
    assert_caught(forged(case, **{name: value}), {check})


@pytest.mark.full
def test_other_seed_opened_for_the_commitment(case: RandomizedResponseCase) -> None:
    other = replace(case, s0=case.s0 ^ 1)
    assert_caught(forged(other, c_seed=case.statement().c_seed), {"c_seed"})


def test_public_values_of_another_record(case: RandomizedResponseCase) -> None:
    witness = forged(case)
    witness[literal_system(TINY).wires["ctx[0]"]] += 1
    assert_caught(witness, {"ctx[]"})
