"""Cheating provers of `kept`. Each carries one lie through a full assignment; the untouched circuit must break at the
constraint meant for that lie and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import sample_commitment
from tests.circuits.forger import WORD_NOT_BELOW_R, Patch, assert_accepted, forge, literal_system
from tests.circuits.forger import assert_caught as judged
from tests.circuits.sample_column_case import TINY, SampleCase, random_kept
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits

COINS = "lib/coins.circom"
assert_caught = partial(judged, TINY)


@pytest.fixture(scope="module")
def case() -> SampleCase:
    return random_kept(TINY, 1, PROBABILITY_RANGE // 2)


def forged(case: SampleCase, *patches: Patch, **overrides: int) -> list[int]:
    """A forged assignment whose commitment is to the forged bits."""
    inputs = {**case.job().inputs(), **overrides}
    wires = literal_system(TINY).wires
    first = forge(TINY, inputs, *patches)
    bits = [bool(first[wires[f"coins.coin[{i}]"]]) for i in range(TINY.capacity)]
    return forge(TINY, {**inputs, "c_kept": sample_commitment(case.salt, bits)}, *patches)


def test_the_honest_witness_of_the_forger_is_accepted(case: SampleCase) -> None:
    witness = forged(case)
    assert_accepted(TINY, witness)


@lies("kept")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str], case: SampleCase) -> None:
    assert_caught(forged(case, lie), breaks)


def test_kept_bit_flipped(case: SampleCase) -> None:
    lie = (COINS, "coin[i] <== less[i].below;", "coin[i] <-- i == 3 ? 1 - less[i].below : less[i].below;")
    assert_caught(forged(case, lie), {"coins.coin[]"})


def test_committed_bit_is_not_the_coin(case: SampleCase) -> None:
    """The coins are right, and the commitment is to others."""
    bits = [bit ^ (i == 3) for i, bit in enumerate(case.bits())]
    inputs = {**case.job().inputs(), "c_kept": sample_commitment(case.salt, bits)}
    assert_caught(forge(TINY, inputs), {"c_kept"})


def test_commitment_under_another_salt(case: SampleCase) -> None:
    inputs = {**case.job().inputs(), "salt": case.salt ^ 1}
    assert_caught(forge(TINY, inputs), {"c_kept"})


@pytest.mark.full
def test_packed_bit_is_not_the_coin(case: SampleCase) -> None:
    lie = (COINS, "        element[n] <== sum;", "        element[n] <-- sum + 1 - 2 * bit[0];")
    bits = [bit ^ (i == 0) for i, bit in enumerate(case.bits())]
    witness = forge(TINY, {**case.job().inputs(), "c_kept": sample_commitment(case.salt, bits)}, lie)
    assert_caught(witness, {"hash.packed.element[]"})


def test_draw_that_is_not_of_the_stream(case: SampleCase) -> None:
    lie = (COINS, "        u[i] <== sum;", "        u[i] <-- i == 3 ? sum + 1 : sum;")
    assert_caught(forged(case, lie), {"coins.uniforms.u[]"})


def test_word_not_below_r(case: SampleCase) -> None:
    """word + r has the same residue as word and other bits, so other coins."""
    witness = forged(case, *WORD_NOT_BELOW_R)
    wires = literal_system(TINY).wires
    assert [bool(witness[wires[f"coins.coin[{i}]"]]) for i in range(8)] != case.bits()
    assert_caught(witness, {"coins.uniforms.split[].high.in"})


@pytest.mark.parametrize(
    "at, name",
    [
        pytest.param(1, "seed.s0", marks=pytest.mark.full),
        pytest.param(2, "seed.s1", marks=pytest.mark.full),
        pytest.param(3, "beacon", marks=pytest.mark.full),
        (4, "slot"),
    ],
)
def test_coins_of_another(case: SampleCase, at: int, name: str) -> None:
    """The coins of another seed than the committed one, of another beacon or of another slot."""
    lie = (COINS, f"hash.in[{at}] <== {name};", f"hash.in[{at}] <-- {name} + 1;")
    assert_caught(forged(case, lie), {f"key.{name}"})


def test_other_seed_opened_for_the_commitment(case: SampleCase) -> None:
    other = replace(case, s0=case.s0 ^ 1)
    assert_caught(forged(other, c_seed=case.statement().c_seed), {"c_seed"})


def test_probability_beyond_forty_bits(case: SampleCase) -> None:
    """With keep of 2^40 + k the difference's top digit would say the wrong thing: keep is a number of 40 bits."""
    assert_caught(forged(case, keep=PROBABILITY_RANGE + 5), {"bound.digits.in"})


def test_public_values_of_another_entry(case: SampleCase) -> None:
    witness = forged(case)
    witness[literal_system(TINY).wires["ctx"]] += 1
    assert_caught(witness, {"ctx"})
