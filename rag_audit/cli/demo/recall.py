"""A measurement of how many questions still find their passage under each mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_audit.cli.demo.corpus import Question
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.policy import Policy
from rag_audit.relation.field import random_element
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import (
    Int8Array,
    TenantIndex,
    build_index,
    draw_bernoulli_bits,
    no_noise,
    select,
)
from rag_audit.retrieval.serving import Asked, serving
from rag_audit.retrieval.texts import DocumentPart

DRAWS = 10
"""Number of windows with fresh draws of noise and samples. Each window asks every question."""
EXACT = ScoreWindow(0, 1 << 14, 1 << 14)
"""A score window that gives each positive score a separate step."""


@dataclass(frozen=True)
class Found:
    """How many of a tenant's questions find their passage among the K documents.

    :param requested: questions
    :param exact: how many find it without any mechanism
    :param hits: how often they find it with the tenant's, over `DRAWS` draws of each question
    """

    requested: int
    exact: int
    hits: int

    @property
    def expected(self) -> float:
        """The number of questions that find their passage with the mechanism, on average."""
        return self.hits / DRAWS


def _found(
    mechanism: Mechanism, index: TenantIndex, requested: Sequence[tuple[Int8Array, set[int]]], k: int
) -> Found:
    """The results of one account that asks all questions one after another in a window. The function counts passages in
    each answer. If an answer depends on earlier ones, it counts passages among the best of the account's disclosed set.

    :param requested: each question's vector, and the positions of its passage
    """
    silent, exact = no_noise(index.capacity), mechanism.window if mechanism.ranked else EXACT
    plain = sum(bool(targets & set(select(index, v, silent, exact, k))) for v, targets in requested)
    provider, hits = serving(mechanism), 0
    for _ in range(DRAWS):
        # An answer returns unsampled positions without a text.
        shown = np.ones(index.capacity, np.int8)
        if mechanism.sampled:
            shown = draw_bernoulli_bits(random_element(), index.capacity, mechanism.sampled_share)
        columns = {SAMPLE: shown} if mechanism.sampled else {}
        held = np.zeros(index.capacity, np.int8)
        for vector, targets in requested:
            drawn = provider.draw(random_element(), index.capacity)
            (listed,) = provider.select(index, [Asked(vector, drawn, held)], columns)
            if isinstance(listed, Exception):
                raise listed
            held[listed] = 1
            if mechanism.remembers:
                mine = np.flatnonzero(held & shown)
                listed = mine[np.argsort(-index.scores(vector)[mine], kind="stable")[:k]].tolist()
            hits += any(shown[p] for p in targets.intersection(listed))
    return Found(len(requested), plain, hits)


def table(
    policies: Sequence[Policy],
    embedder: Embedder,
    tenants: Mapping[str, Sequence[DocumentPart]],
    questions: Mapping[str, Sequence[Question]],
) -> list[str]:
    """The guarantee and the results of each tenant under each policy, a line for each set of questions.

    All policies are measured on one embedding and one placement of the texts. Tenants without questions are skipped.

    :param policies: policies over the same tenants and capacities
    :param questions: the sets of questions, by name
    """
    indices = {
        part.tenant: build_index(
            embedder.embed_documents([d.text for d in tenants[part.tenant]]), part.capacity
        )
        for part in policies[0].tenants
    }
    requested = {
        (name, tenant): _requested(index, tenants[tenant], [q for q in own if q.tenant == tenant], embedder)
        for name, own in questions.items()
        for tenant, index in indices.items()
    }
    lines = [
        f"{'tenant':12} {'mechanism':19} {'eps':>7} {'exclusion_factor':>16}"
        f"  finds its passage among {policies[0].top_k}: exact retrieval, with the mechanism"
    ]
    for policy in policies:
        figures = policy.figures()["tenants"]
        mechanisms = {part.tenant: policy.mechanism(part) for part in policy.tenants}
        for (name, tenant), own in requested.items():
            if not own:
                continue
            part, one = figures[tenant], _found(mechanisms[tenant], indices[tenant], own, policy.top_k)
            share = f" ({one.expected / one.exact:.0%} of that)" if one.exact else ""
            lines.append(
                f"{tenant:12} {part['mechanism']:19} {part['eps']:>7} {part['exclusion_factor'] or 'none':>16}"
                f"  {name}: {one.exact} of {one.requested}, {one.expected:.1f}{share}"
            )
    return lines


def _requested(
    index: TenantIndex, texts: Sequence[DocumentPart], questions: Sequence[Question], embedder: Embedder
) -> list[tuple[Int8Array, set[int]]]:
    """The vector of each question about the texts, and the positions of its passage."""
    return [
        (embedder.embed_query(q.question), targets)
        for q in questions
        if (targets := {index.positions[i] for i, d in enumerate(texts) if d.title == q.answer})
    ]
