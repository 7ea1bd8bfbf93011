"""A measurement of how many questions still find their passage under each tenant's mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_audit.accounting.figures import TenantFigures
from rag_audit.demo.corpus import Question
from rag_audit.formats.policy import Policy
from rag_audit.index.embedders import Embedder
from rag_audit.index.engine import build_index, draw_kept, draw_noise, no_noise, select
from rag_audit.index.texts import Document
from rag_audit.relation.field import random_element

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
        rules, k = policy.rules(part), policy.top_k
        index = build_index(embedder.embed_documents([d.text for d in texts]), part.capacity)
        asked = exact = hits = 0
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
                kept = None if keep is None else draw_kept(random_element(), part.capacity, keep)
                hits += bool(targets & set(select(index, vector, noise, rules.window, k, kept)))
        if asked:
            found[tenant] = Found(asked, exact, hits)
    return found


def table(
    found: Mapping[str, Mapping[str, Found]], figures: Mapping[str, TenantFigures], top_k: int
) -> list[str]:
    """What each tenant promises and finds, a line for each set of questions.

    :param found: by the name of the set of questions, then by tenant
    """
    lines = [
        f"{'tenant':12} {'mechanism':10} {'eps':>7} {'odds_unlisted':>13}  finds its passage among {top_k}"
    ]
    for tenant, part in figures.items():
        for name, of_set in found.items():
            if (one := of_set.get(tenant)) is None:
                continue
            share = f" ({one.expected / one.exact:.0%} of that)" if one.exact else ""
            lines.append(
                f"{tenant:12} {part['mechanism']:10} {part['eps']:>7} {part['odds_unlisted'] or 'none':>13}"
                f"  {name}: {one.exact} of {one.asked} without it, {one.expected:.1f} with it{share}"
            )
    return lines
