"""Cheating provers of `retrieve` of sampled tenants and of tenants without noise: what is new there is which positions
count, and that without noise nothing is added. Each lie is carried through a full assignment; the untouched circuit
must break at the constraint meant for it and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.relation.commitments import sample_commitment, topk_commitment
from rag_audit.relation.field import MODULUS
from rag_audit.relation.selection import top_k
from rag_audit.relation.vectors import pack_bits
from tests.circuits.forger import Patch, assert_accepted, assert_caught, forge, literal_system
from tests.circuits.sampled_case import EXACT, NOISY, SAMPLED, SampledCase, sampled_case, shared_sampled

pytestmark = pytest.mark.circuits

LIBRARY, COINS = "lib/sampled.circom", "lib/coins.circom"


def forged(case: SampledCase, *patches: Patch, **overrides: Any) -> list[int]:
    """A forged assignment whose positions are the top K of what the forger's circuit makes of scores and noise."""
    kind = case.kind
    inputs = {**case.inputs(), **overrides}
    first = forge(kind, inputs, *patches)
    wires = literal_system(kind).wires
    y = [first[wires[f"answers.answer[0].top_k.y[{i}]"]] for i in range(kind.capacity)]
    positions = top_k([x if x < MODULUS // 2 else x - MODULUS for x in y], kind.top_k)
    htopk = topk_commitment(case.salt_k, positions)
    return forge(kind, {**inputs, "position": positions, "htopk": htopk}, *patches)


@pytest.fixture(scope="module")
def case() -> SampledCase:
    """The best position is not kept, so that a prover who scores it lists another first."""
    result = sampled_case(SAMPLED, 1, [True] * 8, empty=0)
    solved = replace(result, kept=[i not in result.positions[:2] for i in range(8)]).solved()
    assert isinstance(solved, SampledCase)
    return solved


@pytest.mark.parametrize(
    "kind",
    [SAMPLED, *(pytest.param(kind, marks=pytest.mark.full) for kind in (NOISY, EXACT))],
    ids=lambda k: k.name,
)
def test_the_honest_witness_of_the_forger_is_accepted(kind: RetrieveInstance) -> None:
    witness = forged(sampled_case(kind, 2))
    assert_accepted(kind, witness)


def test_unkept_position_scored(case: SampledCase) -> None:
    lie = (LIBRARY, "scored[i] <== shared.kept[i] * scores.u[i];", "scored[i] <-- scores.u[i];")
    witness = forged(case, lie)
    listed = witness[literal_system(SAMPLED).wires["position[0][0]"]]
    assert not case.kept[listed]
    assert_caught(SAMPLED, witness, {"answers.answer[].scored[]"})


@pytest.mark.full
def test_kept_position_withheld(case: SampledCase) -> None:
    best = case.positions[0]
    lie = (
        LIBRARY,
        "scored[i] <== shared.kept[i] * scores.u[i];",
        f"scored[i] <-- i == {best} ? 0 : shared.kept[i] * scores.u[i];",
    )
    assert_caught(SAMPLED, forged(case, lie), {"answers.answer[].scored[]"})


def test_kept_bit_flipped(case: SampledCase) -> None:
    """The bits that count are not those that the commitment was opened to."""
    lie = (
        COINS,
        "bit[252 * n + i] <== digits[n].bit[i];",
        "bit[252 * n + i] <-- i < 6 ? digits[n].bit[i] : 1 - digits[n].bit[i];",
    )
    assert_caught(SAMPLED, forged(case, lie), {"opened_kept.bit[]"})


def test_kept_positions_of_another_commitment(case: SampledCase) -> None:
    """The sample of another window or tenant."""
    other = replace(case, kept=[not bit for bit in case.kept])
    assert_caught(SAMPLED, forged(other, c_kept=case.public()["c_kept"]), {"c_kept"})


def test_kept_positions_under_another_salt(case: SampledCase) -> None:
    assert_caught(SAMPLED, forged(case, kept_salt=case.kept_salt ^ 1), {"c_kept"})


def test_packed_bits_beyond_the_positions(case: SampledCase) -> None:
    element = pack_bits(case.kept)[0] + (1 << 8)
    inputs = {"kept": [element], "c_kept": sample_commitment(case.kept_salt, [*case.kept, True])}
    assert_caught(SAMPLED, forged(case, **inputs), {"opened_kept.digits[].digits.in"})


@pytest.mark.full
def test_bits_opened_are_not_the_bits_hashed(case: SampledCase) -> None:
    lie = (COINS, "hash.in[1 + n] <== element[n];", "hash.in[1 + n] <-- element[n] + 1;")
    flipped = [True, *case.kept[1:]]
    start = replace(case, kept=[False, *case.kept[1:]])
    witness = forged(start, lie, c_kept=sample_commitment(case.kept_salt, flipped))
    assert_caught(SAMPLED, witness, {"opened_kept.element[]"})


def test_noise_where_there_is_none(case: SampledCase) -> None:
    lie = (LIBRARY, "            z[k][i] <== 0;", "            z[k][i] <-- i == 3 ? 1 : 0;")
    assert_caught(SAMPLED, forged(case, lie), {"noise.z[][]"})


@pytest.mark.full
@pytest.mark.parametrize("name", ["ctx[0]", "c_seed", "beacon[0]", "slot[0]"])
@pytest.mark.parametrize("kind", [SAMPLED, EXACT], ids=lambda k: k.name)
def test_public_values_of_another_record(kind: RetrieveInstance, name: str) -> None:
    witness = forged(sampled_case(kind, 3))
    witness[literal_system(kind).wires[name]] += 1
    assert_caught(kind, witness, {name.replace("0", "")})


def test_top_k_not_maximal(case: SampledCase) -> None:
    left = next(i for i in range(8) if i not in case.positions)
    cheat = replace(case, positions=(*case.positions[:-1], left))
    assert_caught(SAMPLED, forge(SAMPLED, cheat.inputs()), {"answers.answer[].top_k.not_better[].in"})


@pytest.mark.full
def test_index_of_another_tenant(case: SampledCase) -> None:
    other = sampled_case(SAMPLED, 4)
    cheat = replace(case, rows=other.rows, index_salt=other.index_salt)
    assert_caught(SAMPLED, forged(cheat, c_idx=case.public()["c_idx"]), {"answers.c_idx"})


@pytest.mark.full
def test_rows_scored_are_not_the_rows_hashed(case: SampledCase) -> None:
    lie = (LIBRARY, "hash.in[1 + i] <== index[i];", "hash.in[1 + i] <-- index[i] + (i == 0 ? 1 : 0);")
    rows = [list(row) for row in case.rows]
    rows[0][0] = min(rows[0][0], 6)
    scored = replace(case, rows=rows)
    rows = [list(row) for row in rows]
    rows[0][0] += 1
    committed = replace(case, rows=rows)
    assert_caught(SAMPLED, forged(scored, lie, c_idx=committed.public()["c_idx"]), {"answers.opened.index[]"})


@pytest.mark.full
def test_vector_of_another_commitment(case: SampledCase) -> None:
    other = replace(case, q=[-x for x in case.q])
    assert_caught(SAMPLED, forged(other, cq=case.public()["cq"]), {"answers.answer[].cq"})


# -- with noise ----------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("at, name", [(1, "seed.s0"), (2, "seed.s1"), (3, "beacon"), (4, "slot")])
def test_noise_of_another(at: int, name: str) -> None:
    lie = (COINS, f"hash.in[{at}] <== {name};", f"hash.in[{at}] <-- {name} + 1;")
    assert_caught(NOISY, forged(sampled_case(NOISY, 5), lie), {f"noise.key[].{name}"})


@pytest.mark.full
def test_noise_left_out() -> None:
    lie = ("lib/dgs1.circom", "    x <== magnitude - 2 * bit[7] * magnitude;", "    x <-- 0;")
    assert_caught(NOISY, forged(sampled_case(NOISY, 6), lie), {"noise.noise[].draw[].x"})


@pytest.mark.full
def test_other_seed_opened_for_the_commitment() -> None:
    case = sampled_case(NOISY, 7)
    other = replace(case, s0=case.s0 ^ 1)
    assert_caught(NOISY, forged(other, c_seed=case.public()["c_seed"]), {"noise.c_seed"})


# -- several records -----------------------------------------------------------------------------------------


@pytest.mark.full
def test_one_record_of_two_scored_over_all_positions() -> None:
    """The second record counts what is not kept, while the first does not."""
    pair = replace(SAMPLED, queries=2)
    cases = shared_sampled(SAMPLED, 8, 2)
    inputs = RecordsJob(pair, tuple(case.record() for case in cases)).inputs()
    literal = literal_system(pair)
    witness = forge(pair, inputs)
    assert list(literal.broken(witness)) == []
    for i in range(8):
        witness[literal.wires[f"answers.answer[1].shared.kept[{i}]"]] = 1
    unkept = {f"answers.shared.kept[{i}]" for i, bit in enumerate(cases[0].kept) if not bit}
    links = {name for signals in literal.broken_signals(witness) for name in signals} & unkept
    assert links == unkept
