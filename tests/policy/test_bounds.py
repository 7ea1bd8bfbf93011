"""Each public constant at its ends and beyond them: what a policy may say, and what a circuit can be built for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting.exact import MAX_COMPOSITIONS
from rag_audit.models.policy import MAX_TOKENS, Policy
from rag_audit.proofs.backends.groth16.instance import (
    MAX_CAPACITY,
    MAX_NORM_FACTOR,
    CoalitionInstance,
    EmbedInstance,
    RetrieveInstance,
)
from rag_audit.proofs.backends.scan.key import EmbedArgument
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import MAX_DIMENSION, MAX_LATTICE, ScoreWindow
from tests.drafting import draft

DIMENSION = 768
BASE = draft(
    window="w-1",
    opens_at=1,
    closes_at=2,
    capacities={"law": 64, "medicine": 64},
    n=4,
    k_max=2,
    eps_acc="20",
    system={"law": "groth16", "medicine": "scan"},
).dump()


def changed(change: Callable[[dict[str, Any]], object]) -> Policy:
    """A policy with one value changed, in both tenants where they have it."""
    value = Policy.parse(BASE, field="policy").dump()
    change(value)
    return Policy.parse(value, field="policy")


def noise(**values: int) -> Callable[[dict[str, Any]], object]:
    return lambda policy: policy["noise"].update(values)


def tenant(at: int, **values: int) -> Callable[[dict[str, Any]], object]:
    return lambda policy: policy["tenants"][at].update(values)


def test_the_usual_policy_is_well_formed() -> None:
    Policy.parse(BASE, field="policy").check(DIMENSION)
    check_policy(Policy.parse(BASE, field="policy"), None)


@pytest.mark.parametrize(
    "change, field, expected",
    [
        (noise(lo=49_152, hi=50_000), "noise.hi", "at most 49152"),
        (noise(hi=49_153), "noise.hi", "at most 49152"),
        (noise(lo=1680), "noise.hi", "greater than lo"),
        (noise(lo=1679), "tenants.law (hi)", "at least 1681"),
        (noise(lattice=48), "noise.lattice", "power of two"),
        (noise(lattice=2 * MAX_LATTICE), "noise.lattice", "power of two"),
        (tenant(0, capacity=MAX_CAPACITY + 8), "tenants.law (capacity)", f"at most {MAX_CAPACITY}"),
        (tenant(0, capacity=60), "tenants.law (capacity)", "multiple of 8"),
        (tenant(1, capacity=(1 << 24) + 1), "tenants.medicine (capacity)", "1 to 16777216"),
        (tenant(1, accounts_max=MAX_COMPOSITIONS // 4 + 1), "tenants.medicine.accounts_max", "16777216"),
        (lambda p: p.update(top_k=65), "top_k", "capacity"),
        (lambda p: p.update(top_k=1), "tenants.law (top_k)", "2..64"),
        (lambda p: p.update(n=1, k_max=MAX_COMPOSITIONS + 1), "k_max", "16777216"),
        (lambda p: p["tokens"].update(query=MAX_TOKENS + 1), "tokens.query", "65536"),
        (lambda p: p["tokens"].update(document=MAX_TOKENS + 1), "tokens.document", "65536"),
        (lambda p: p["estimator"].update(theta=[1, 1001]), "estimator.theta", "q <= 1000"),
        (lambda p: p["estimator"].update(theta=[5, 5]), "estimator.theta", "(0, 1)"),
    ],
)  # fmt: skip
def test_constants_beyond_their_ends_are_refused(change: Any, field: str, expected: str) -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(changed(change), DIMENSION)
    assert caught.value.field == f"policy.{field}"
    assert expected in str(caught.value.expected)


@pytest.mark.parametrize(
    "change",
    [
        noise(hi=16_384),
        noise(lo=0),
        noise(lo=808),
        tenant(0, capacity=MAX_CAPACITY),
        tenant(1, capacity=1 << 24),
        tenant(1, capacity=5),
        tenant(1, accounts_max=MAX_COMPOSITIONS // 4),
        lambda p: p.update(top_k=2),
        lambda p: p.update(top_k=64),
        lambda p: p["tokens"].update(query=MAX_TOKENS, document=MAX_TOKENS),
        lambda p: p["estimator"].update(theta=[999, 1000]),
    ],
)
def test_constants_at_their_ends_are_taken(change: Any) -> None:
    check_policy(changed(change), DIMENSION)


def test_the_window_is_held_against_the_dimension() -> None:
    policy = changed(noise(lo=2000, hi=2200))
    check_policy(policy, DIMENSION)
    with pytest.raises(PolicyError, match="the policy is not well-formed") as caught:
        check_policy(policy, 16)
    assert (caught.value.field, caught.value.actual) == ("policy.noise.hi", 2200)
    for dimension in (0, -1, MAX_DIMENSION + 1):
        with pytest.raises(PolicyError) as caught:
            check_policy(policy, dimension)
        assert caught.value.field == "policy.dimension"
    # Without a manifest it is held against the largest dimension.
    check_policy(changed(noise(hi=64 * MAX_DIMENSION)), None)
    with pytest.raises(PolicyError):
        check_policy(changed(noise(hi=64 * MAX_DIMENSION + 1)), None)


TINY = RetrieveInstance(8, 16, 5, (1,), 20, 160, 64)


@pytest.mark.parametrize("name", ["capacity", "dimension", "top_k", "lo", "hi", "lattice"])
def test_no_constant_stands_for_its_residue(name: str) -> None:
    """The compiler would take r + x for x, and the accountant would not."""
    for value in (getattr(TINY, name) + MODULUS, getattr(TINY, name) - MODULUS):
        with pytest.raises(PolicyError):
            replace(TINY, **{name: value})
    with pytest.raises(PolicyError):
        replace(TINY, gains=(1, 8 + MODULUS))


@pytest.mark.parametrize(
    "change",
    [
        {"hi": 1024},
        {"lo": 0, "hi": 2},
        {"dimension": MAX_DIMENSION},
        {"capacity": MAX_CAPACITY},
        {"top_k": 2},
        {"top_k": 8},
        {"lattice": 1},
        {"gains": (1, 8, 64, 512)},
    ],
)
def test_circuits_at_the_ends_of_their_constants(change: dict[str, Any]) -> None:
    replace(TINY, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"hi": 1025},
        {"lo": 0, "hi": 1},
        {"lo": -1},
        {"dimension": MAX_DIMENSION + 1},
        {"capacity": MAX_CAPACITY + 8},
        {"top_k": 9},
        {"lattice": 2 * MAX_LATTICE},
        {"gains": (1, 8, 64, 512, 4096, 32768, 32768)},
    ],
)
def test_circuits_beyond_the_ends_of_their_constants(change: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        replace(TINY, **change)


@pytest.mark.parametrize("factor", [0, -1, MAX_NORM_FACTOR + 1, MODULUS + 8145])
def test_norm_factors_beyond_their_ends(factor: int) -> None:
    for result in (EmbedInstance, EmbedArgument):
        with pytest.raises(PolicyError) as caught:
            result(24, norm_factor=factor)
        assert (caught.value.field, caught.value.actual) == ("norm_factor", factor)
        result(24, norm_factor=MAX_NORM_FACTOR)


@pytest.mark.parametrize("theta", [(0, 5), (5, 5), (4, 1001), (8, 10), (MODULUS + 4, MODULUS + 5)])
def test_thetas_that_no_certificate_has(theta: tuple[int, int]) -> None:
    with pytest.raises(PolicyError):
        CoalitionInstance(16, theta=theta)


def test_lattices_of_score_windows() -> None:
    ScoreWindow(0, 1, MAX_LATTICE)
    for lattice in (0, -1, 3, 2 * MAX_LATTICE):
        with pytest.raises(PolicyError) as caught:
            ScoreWindow(0, 1, lattice)
        assert caught.value.field == "lattice"
