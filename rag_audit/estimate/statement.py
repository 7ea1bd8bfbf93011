"""The statement of a coalition proof, which prover and verifier both build from published entries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, Protocol

from rag_audit._internal.canonical import Json, jcs
from rag_audit._internal.errors import EncodingError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.models.records import CoalitionEstimate, QueryRecord
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.relation.field import digest_to_field

TauUnit = Literal["positions", "seconds"]


class Asked(Protocol):
    """The part of a query record that the estimator reads."""

    @property
    def seq(self) -> int:
        """Ledger index."""

    @property
    def ts(self) -> int:
        """Milliseconds since the Unix epoch."""

    @property
    def account(self) -> str:
        """The account that asked."""

    @property
    def tenant(self) -> str:
        """The account's tenant."""


def coalition_statement(
    records: Sequence[QueryRecord],
    declared: CoalitionEstimate,
    *,
    header_digest: str,
    head: Checkpoint,
    dimension: int,
    capacity: int,
) -> CoalitionStatement:
    """The statement of a coalition proof, which prover and verifier both build here from published entries only.

    :param records: the window's query records, in ledger order; at least one
    :param declared: c, c_tenant, theta and tau of the window trailer; its `coalition_proof` is not read
    :param head: the tree of the entries before the window trailer, which names the proof
    :param capacity: maximum records of the policy's coalition proof
    :raises EncodingError: an account is in two tenants
    """
    tenants = tenants_of(records)
    accounts = {account: number for number, account in enumerate(sorted(tenants))}
    numbers = {tenant: number for number, tenant in enumerate(sorted(set(tenants.values())))}
    p, q = declared.theta
    return CoalitionStatement(
        ctx=digest_to_field(_context(declared, header_digest, head)),
        cq=tuple(int(record.cq, 16) for record in records),
        account=tuple(accounts[record.account] for record in records),
        tenant=tuple(numbers[tenants[account]] for account in accounts),
        first=tuple(first_within(records, declared.tau, declared.tau_unit)),
        theta=(p, q),
        c=declared.c,
        c_tenant=declared.c_tenant,
        dimension=dimension,
        capacity=capacity,
    )


def _context(declared: CoalitionEstimate, header_digest: str, head: Checkpoint) -> bytes:
    estimate = {k: v for k, v in declared.dump().items() if k != "coalition_proof"}
    ledger: Json = {"origin": head.origin, "size": head.size, "root": head.root.hex()}
    return b"rag-audit/coalition/v1" + jcs({"header": header_digest, "ledger": ledger, "estimate": estimate})


def tenants_of(queries: Sequence[Asked]) -> dict[str, str]:
    """The tenant of each account."""
    tenants: dict[str, str] = {}
    for query in queries:
        if tenants.setdefault(query.account, query.tenant) != query.tenant:
            raise EncodingError("an account is in two tenants", field=query.account,
                                actual=[tenants[query.account], query.tenant])  # fmt: skip
    return tenants


def first_within(queries: Sequence[Asked], tau: int, unit: TauUnit) -> list[int]:
    """For each query, the first query that is within tau before it."""
    if tau == 0:
        return [0] * len(queries)
    if unit == "positions":
        return [max(0, j - tau) for j in range(len(queries))]
    times = [query.ts for query in queries]
    return [bisect_left(times, ts - 1000 * tau) for ts in times]
