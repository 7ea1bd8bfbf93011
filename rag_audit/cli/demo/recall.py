"""A measurement of how many questions still find their passage under each tenant's mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_audit.cli.demo.corpus import Question
from rag_audit.mechanisms.accounting.figures import TenantFigures
from rag_audit.mechanisms.listing import Listing
from rag_audit.models.policy import Policy
from rag_audit.relation.field import random_element
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import TenantIndex, build_index, draw_coins, draw_noise, no_noise, select
from rag_audit.retrieval.listing import select_listed
from rag_audit.retrieval.texts import Document

DRAWS = 20
"""Fresh draws of noise and samples for each question."""


@dataclass(frozen=True)
class Found:
    """How many of a tenant's questions find their passage among the K documents.

    :param asked: questions
    :param exact: how many find it without any mechanism
    :param hits: how often they find it with the tenant's, over `DRAWS` draws of each question
    """

    asked: int
    exact: int
    hits: int

    @property
    def expected(self) -> float:
        """The number of questions that find their passage with the mechanism, on average."""
        return self.hits / DRAWS


def recall(
    policy: Policy,
    embedder: Embedder,
    tenants: Mapping[str, Sequence[Document]],
    questions: Sequence[Question],
) -> dict[str, Found]:
    """What the tenants' questions find, with fresh draws each time; tenants without questions are left out."""
    found = {}
    for tenant, texts in tenants.items():
        mine = [q for q in questions if q.tenant == tenant]
        part = policy.tenant(tenant)
        assert part is not None
        rules, k = policy.mechanism(part), policy.top_k
        index = build_index(embedder.embed_documents([d.text for d in texts]), part.capacity)
        asked = exact = hits = 0
        if isinstance(rules, Listing):
            found[tenant] = _listed(index, rules, mine, texts, embedder, k)
            continue
        for question in mine:
            targets = {index.positions[i] for i, d in enumerate(texts) if d.title == question.answer}
            if not targets:
                continue
            asked += 1
            vector, silent = embedder.embed_query(question.question), no_noise(part.capacity)
            exact += bool(targets & set(select(index, vector, silent, rules.window, k)))
            for _ in range(DRAWS):
                gains, keep = rules.gains, rules.keep
                noise = draw_noise(random_element(), part.capacity, gains) if gains else silent
                kept = None if keep is None else draw_coins(random_element(), part.capacity, keep)
                selected = select(index, vector, noise, rules.window, k, kept)
                hits += bool(targets.intersection(p for p in selected if kept is None or kept[p]))
        if asked:
            found[tenant] = Found(asked, exact, hits)
    return found


def _listed(
    index: TenantIndex,
    rules: Listing,
    questions: Sequence[Question],
    texts: Sequence[Document],
    embedder: Embedder,
    k: int,
) -> Found:
    """What one account finds among the best of what it holds, that asks all questions one after another in a window."""
    assert rules.keep is not None
    asked = [
        (embedder.embed_query(q.question), targets)
        for q in questions
        if (targets := {index.positions[i] for i, d in enumerate(texts) if d.title == q.answer})
    ]
    exact = ScoreWindow(0, 1 << 14, 1 << 14)
    silent = no_noise(index.capacity)
    plain = sum(bool(t & set(select(index, v, silent, exact, k))) for v, t in asked)
    hits = 0
    for _ in range(DRAWS):
        kept = draw_coins(random_element(), index.capacity, rules.keep)
        held = np.zeros(index.capacity, np.int8)
        for vector, targets in asked:
            chance = draw_coins(random_element(), index.capacity, rules.rules.chance)
            listed = select_listed(index, vector, rules.rules, kept=kept, held=held, chance=chance)
            held[listed] = 1
            mine = np.flatnonzero(held & kept)  # other positions are returned without a text
            best = mine[np.argsort(-index.scores(vector)[mine], kind="stable")[:k]]
            hits += bool(targets & set(best.tolist()))
    return Found(len(asked), plain, hits)


def table(
    found: Mapping[str, Mapping[str, Found]], figures: Mapping[str, TenantFigures], top_k: int
) -> list[str]:
    """What each tenant promises and finds, a line for each set of questions.

    :param found: by the name of the set of questions, then by tenant
    """
    lines = [
        f"{'tenant':12} {'mechanism':10} {'eps':>7} {'odds_unlisted':>13} {'all accounts':>12}"
        f"  finds its passage among {top_k}"
    ]
    for tenant, part in figures.items():
        for name, of_set in found.items():
            if (one := of_set.get(tenant)) is None:
                continue
            share = f" ({one.expected / one.exact:.0%} of that)" if one.exact else ""
            lines.append(
                f"{tenant:12} {part['mechanism']:10} {part['eps']:>7} {part['odds_unlisted'] or 'none':>13}"
                f" {part['odds_unlisted_all_accounts'] or 'none':>12}"
                f"  {name}: {one.exact} of {one.asked} without it, {one.expected:.1f} with it{share}"
            )
    return lines
