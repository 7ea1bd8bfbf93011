"""Coalition proofs: the statement from published entries, and the private inputs from an estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_audit._internal.canonical import Json, jcs
from rag_audit.estimate.clusters import Estimate, first_within, tenants_of
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.models.records import CoalitionEstimate, QueryRecord
from rag_audit.proofs.statements.coalition import CoalitionPrivate, CoalitionStatement
from rag_audit.relation.field import digest_to_field


def coalition_statement(
    records: Sequence[QueryRecord],
    declared: CoalitionEstimate,
    *,
    opening_digest: str,
    head: Checkpoint,
    dimension: int,
    capacity: int,
) -> CoalitionStatement:
    """The statement of a coalition proof, which prover and verifier both build here from published entries only.

    :param records: the window's query records, in ledger order; at least one
    :param declared: c, c_tenant, theta and tau of the closing record; its `certificate` is not read
    :param head: the tree of the entries before the closing record, which names the proof
    :param capacity: the most records that the policy's coalition proof covers
    :raises EncodingError: an account is in two tenants
    """
    tenants = tenants_of(records)
    accounts = {account: number for number, account in enumerate(sorted(tenants))}
    numbers = {tenant: number for number, tenant in enumerate(sorted(set(tenants.values())))}
    p, q = declared.theta
    return CoalitionStatement(
        ctx=digest_to_field(_context(declared, opening_digest, head)),
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


def _context(declared: CoalitionEstimate, opening_digest: str, head: Checkpoint) -> bytes:
    estimate = {k: v for k, v in declared.dump().items() if k != "certificate"}
    ledger: Json = {"origin": head.origin, "size": head.size, "root": head.root.hex()}
    return b"rag-audit/coalition/v1" + jcs(
        {"opening": opening_digest, "ledger": ledger, "estimate": estimate}
    )


def coalition_private(
    records: Sequence[QueryRecord],
    estimate: Estimate,
    vectors: Sequence[npt.NDArray[np.int8]],
    salts: Sequence[int],
) -> CoalitionPrivate:
    """The private inputs: vectors, salts, and as each account's label the number of its cluster's first account, or its
    own number.

    :param vectors: the records' vectors in the same order, each of shape (d,), int8 in -7..7
    :param salts: salt of each record's cq
    """
    accounts = {account: number for number, account in enumerate(sorted(tenants_of(records)))}
    labels = list(range(len(accounts)))
    for cluster in estimate.clusters:
        for account in cluster:
            labels[accounts[account]] = accounts[cluster[0]]
    return CoalitionPrivate(b"".join(v.tobytes() for v in vectors), tuple(salts), tuple(labels))
