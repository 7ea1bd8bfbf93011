"""The end of a window: its coalition estimate, and the coalition proof that the closing record names."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit.attest.context import Context
from rag_audit.attest.publishing import CoalitionProof
from rag_audit.estimate import Estimate, coalition_private, coalition_statement, estimate_window
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.models.records import CoalitionEstimate, QueryRecord
from rag_audit.proofs.coalition import coalition_system
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.query import OpenedQuery


def estimate_of(context: Context) -> Estimate:
    """The coalition estimate over the window's queries so far. It names accounts, so it is for the provider only.

    :raises StoreError: a retained query cannot be opened
    """
    records, queries = _asked(context)
    return estimate_window(records, [q.vector for q in queries], context.policy)


def declare(
    context: Context,
    executor: concurrent.futures.Executor | None,
    progress: Callable[[int, int], None] | None,
    *,
    certify: bool,
) -> CoalitionEstimate:
    """The estimate that the closing record declares, with the digest of its coalition proof, which is durable by then.

    :param certify: False leaves the proof out even if the policy asks for it
    :raises WitnessError: the window has more records than the proof covers
    """
    records, queries = _asked(context)
    vectors = [q.vector for q in queries]
    estimate = estimate_window(records, vectors, context.policy)
    replace_file(context.layout.estimate, jcs(estimate.evidence()), mode=PRIVATE_MODE)
    declared, asked = estimate.public(), context.policy.estimator.certificate
    if asked is None or not certify or not records:
        return declared
    size = len(context.state.entries)
    statement = coalition_statement(
        records,
        declared,
        opening_digest=context.opening_digest,
        head=Checkpoint(context.opening.log, size, context.state.tree.root(size)),
        dimension=context.embedder.dimension,
        capacity=asked.records,
    )
    path, ctx = context.layout.coalition, to_hex(statement.ctx)
    kept = CoalitionProof.load(path) if path.exists() else None
    if kept is None or kept.ctx != ctx:
        witness = coalition_private(records, estimate, vectors, [q.salts.vector for q in queries])
        system = coalition_system(asked.system)
        certificate = system.certify(statement, witness, executor=executor, progress=progress)
        kept = CoalitionProof(ctx=ctx, certificate=certificate)
        replace_file(path, kept.canonical())
    return declared.model_copy(update={"certificate": digest_hex(kept.certificate)})


def _asked(context: Context) -> tuple[list[QueryRecord], list[OpenedQuery]]:
    """The window's records so far, with their questions."""
    records = context.state.records
    return records, [context.retained(record).opened(context.embedder) for record in records]
