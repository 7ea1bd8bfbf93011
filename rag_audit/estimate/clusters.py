"""The exact estimator: clusters of accounts that near queries join, and the largest of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import EncodingError, PolicyError
from rag_audit.estimate.statement import Asked, TauUnit, first_within, tenants_of
from rag_audit.models.policy import Policy
from rag_audit.models.records import CoalitionEstimate, QueryRecord
from rag_audit.proofs.statements.private import CoalitionPrivate
from rag_audit.retrieval.engine import check_vectors

MAX_DENOMINATOR = 1000


@dataclass(frozen=True)
class Join:
    """The reason why two accounts share a cluster: two near queries, by ledger index. It is for the provider only."""

    earlier: int
    later: int
    accounts: tuple[str, str]
    """the accounts of the earlier and of the later query"""


@dataclass(frozen=True)
class Estimate:
    """The estimate of one window. Only `public()` may leave the provider, since the rest names accounts."""

    theta: tuple[int, int]
    tau: int
    tau_unit: TauUnit
    records: int
    clusters: tuple[tuple[str, ...], ...]
    """the connected components of two or more accounts, over all tenants; sorted, largest first"""
    joins: tuple[Join, ...]
    """a spanning forest of the clusters, of the first near pairs in ledger order"""
    c: int
    """accounts of the largest cluster; 1 without clusters, 0 without records"""
    c_tenant: int
    """maximum number of accounts of one cluster in one tenant; 1 without clusters, 0 without records"""

    def public(self) -> CoalitionEstimate:
        """The part that the window trailer states."""
        return CoalitionEstimate(
            c=self.c, c_tenant=self.c_tenant, theta=list(self.theta), tau=self.tau, tau_unit=self.tau_unit,
            coalition_proof=None,
        )  # fmt: skip

    def evidence(self) -> dict[str, Json]:
        """The whole estimate as a JSON value, for the provider's abuse team."""
        joins: list[Json] = [
            {"earlier": j.earlier, "later": j.later, "accounts": list(j.accounts)} for j in self.joins
        ]
        clusters: list[Json] = [list(cluster) for cluster in self.clusters]
        return {**self.public().dump(), "records": self.records, "clusters": clusters, "joins": joins}


def estimate_window(
    records: Sequence[Asked], vectors: Sequence[npt.NDArray[np.int8]], policy: Policy
) -> Estimate:
    """The estimate that a window's policy asks for.

    :param vectors: the records' opened query vectors in the same order, each of shape (d,), int8 in -7..7
    :raises EncodingError: the records or vectors are not one window's
    """
    shapes = {vector.shape for vector in vectors}
    if len(shapes) > 1:
        raise EncodingError("the vectors have several shapes", field="query vectors", actual=sorted(shapes))
    part = policy.estimator
    p, q = part.theta
    rows = np.stack(list(vectors)) if shapes else np.zeros((0, 1), np.int8)
    return estimate(records, rows, theta=(p, q), tau=part.tau, tau_unit=part.tau_unit)


def estimate(
    records: Sequence[Asked],
    vectors: npt.NDArray[np.int8],
    *,
    theta: tuple[int, int],
    tau: int = 0,
    tau_unit: TauUnit = "positions",
) -> Estimate:
    """Cluster accounts by their queries (docs/estimator.md). The result depends neither on the records' order nor on
    threads.

    :param vectors: shape (records, d), int8 in -7..7
    :param theta: the cosine threshold p/q, 0 < p < q <= 1000
    :param tau: the maximum distance of two queries, in query records or in seconds; 0 means the whole window
    :raises PolicyError: theta or tau is out of range
    :raises EncodingError: the number of vectors is wrong, a ledger index occurs twice, an account is in two tenants, or
        timestamps contradict the ledger's order
    """
    p, q = theta
    if not 0 < p < q <= MAX_DENOMINATOR:
        raise PolicyError("theta is not a fraction in (0, 1)", field="estimator.theta",
                          expected=f"0 < p < q <= {MAX_DENOMINATOR}", actual=f"{p}/{q}")  # fmt: skip
    if tau < 0:
        raise PolicyError(
            "tau is negative", field="estimator.tau", expected="0 (whole window) or more", actual=tau
        )
    check_vectors(vectors, dimensions=2, field="query vectors")
    if len(vectors) != len(records):
        raise EncodingError("there is not one vector for each record", field="query vectors",
                            expected=len(records), actual=len(vectors))  # fmt: skip
    order = sorted(range(len(records)), key=lambda i: records[i].seq)
    queries = [records[i] for i in order]
    _check_order(queries)
    tenants = tenants_of(queries)
    numbers = {account: number for number, account in enumerate(sorted(tenants))}
    pairs = _native.joining_pairs(
        vectors[order].tobytes(),
        vectors.shape[1],
        [numbers[query.account] for query in queries],
        first_within(queries, tau, tau_unit),
        p,
        q,
    )
    joins = [Join(queries[i].seq, queries[j].seq, (queries[i].account, queries[j].account)) for i, j in pairs]
    clusters = components(join.accounts for join in joins)
    alone = min(1, len(queries))
    within = (max(Counter(tenants[a] for a in cluster).values()) for cluster in clusters)
    return Estimate(
        theta=theta,
        tau=tau,
        tau_unit=tau_unit,
        records=len(queries),
        clusters=clusters,
        joins=tuple(joins),
        c=max(map(len, clusters), default=alone),
        c_tenant=max(within, default=alone),
    )


def components(edges: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The connected components of a graph given by its edges, largest first, then by name."""
    cluster_of: dict[str, set[str]] = {}
    for a, b in edges:
        large, small = cluster_of.get(a, {a}), cluster_of.get(b, {b})
        if len(large) < len(small):
            large, small = small, large
        large |= small
        cluster_of.update(dict.fromkeys([*small, a, b], large))
    distinct = {id(cluster): tuple(sorted(cluster)) for cluster in cluster_of.values()}
    return tuple(sorted(distinct.values(), key=lambda cluster: (-len(cluster), cluster)))


def _check_order(queries: Sequence[Asked]) -> None:
    for before, after in pairwise(queries):
        if before.seq == after.seq:
            raise EncodingError("a ledger index occurs twice", field="records", actual=after.seq)
        if before.ts > after.ts:
            raise EncodingError("the timestamps run backwards", field=f"record {after.seq}",
                                expected=f"at least {before.ts}", actual=after.ts)  # fmt: skip


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
