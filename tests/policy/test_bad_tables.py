"""Policies with document tables that no window can have: each is a named error with the expected and the actual value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit.commit.document_table import place_documents
from rag_audit.errors import ExitCode, RagAuditError
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.header import check_roster
from rag_audit.models.policy import Policy
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from tests.window.simulator import Service

HALF, N = PROBABILITY_RANGE // 2, 16
Draft = Callable[..., Policy]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


@pytest.fixture
def checked(service: Service) -> Draft:
    """A policy with a mechanism of the tenant law, which is well-formed."""

    def policy(law: Mechanism, **changes: Any) -> Policy:
        mechanisms = {"law": law, "medicine": Sampling(keep=HALF)}
        values = {
            "system": "scan",
            "capacities": {"law": N, "medicine": N},
            "mechanisms": mechanisms,
            **changes,
        }
        result = service.policy(**values)
        check_policy(result, 64)
        return result

    return policy


def table(rows: int = 8, positions: int = 2, fresh_rows: int | None = 2) -> Sampling:
    return Sampling(keep=HALF, documents=TableShape(rows, positions, fresh_rows))


def pooled(f: str) -> PooledListing:
    return PooledListing(keep=HALF, rules=PoolRules(0, 60, f), documents=TableShape(8, 2, 2))


@pytest.mark.parametrize(
    ("law", "expected", "actual"),
    [
        (table(rows=0, fresh_rows=None), "at least 1", "0"),
        (table(rows=N + 1), f"1 to {N}", f"{N + 1}"),
        (table(positions=0), "at least 1", "0"),
        (table(positions=N + 1), f"1 to {N}", f"{N + 1}"),
        (table(fresh_rows=0), "at least 1", "0"),
        (table(fresh_rows=8), "1 to 7", "8"),
        (table(rows=1, fresh_rows=1), "at least 2", "1"),
        *((pooled(f), "more than 0 and less than 1", f) for f in ("0", "1", "-0.1", "1.5")),
    ],
)
def test_numbers_outside_of_their_range_are_named(
    checked: Draft, law: Mechanism, expected: str, actual: str
) -> None:
    with pytest.raises(RagAuditError) as caught:
        checked(law)
    error = caught.value
    assert error.exit_code is ExitCode.MALFORMED and error.field
    assert str(error.expected).startswith(expected) and str(error.actual) == actual
    assert "delta" not in error.message


def test_a_table_of_a_mechanism_without_one_is_refused(checked: Draft) -> None:
    policy = checked(table())
    law = policy.tenants[0].model_copy(update={"noise": True, "keep": None, "scores": None})
    with pytest.raises(RagAuditError) as caught:
        check_policy(policy.model_copy(update={"tenants": [law, *policy.tenants[1:]]}), 64)
    assert caught.value.exit_code is ExitCode.MALFORMED


def test_a_roster_with_more_accounts_than_m_counts_is_refused(service: Service, checked: Draft) -> None:
    policy = checked(pooled("0.1"), accounts_max=1)
    with pytest.raises(RagAuditError) as caught:
        check_roster([a.roster_entry for a in service.accounts.values()], policy)
    assert (caught.value.expected, caught.value.actual) == ("at most 1", 2)


def test_an_index_of_one_document_and_one_query_has_a_policy(checked: Draft) -> None:
    law = PooledListing(keep=HALF, rules=PoolRules(0, 60, "0.1"), documents=TableShape(1, 1, None))
    policy = checked(law, n=1, accounts_max=1, k_max=1, top_k=1, capacities={"law": 1, "medicine": N})
    assert policy.mechanism_of("law").documents_max == 1
    assert policy.figures()["tenants"]["law"]["exclusion_factor"] == "2.2223"


def test_a_table_of_the_largest_size(checked: Draft) -> None:
    maximum = 1 << 20
    checked(table(maximum, 2, 1 << 10), capacities={"law": maximum, "medicine": N})
    with pytest.raises(RagAuditError) as caught:
        checked(table(maximum + 1, 2, 1 << 10), capacities={"law": 2 * maximum, "medicine": N})
    assert (caught.value.expected, caught.value.actual) == (f"1 to {maximum}", maximum + 1)


@pytest.mark.full
def test_documents_of_the_largest_table_are_placed() -> None:
    shape = TableShape(1 << 20, 2, 1 << 10)
    placement = place_documents(shape, {f"d{n}": 1 for n in range(shape.documents)})
    assert len(placement.table.rows) == 1 << 20 and placement.waiting == ()
