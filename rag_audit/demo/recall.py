"""A measurement of how many questions still find their passage under the window's noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_audit.demo.corpus import Question
from rag_audit.formats.policy import Policy
from rag_audit.index.embedders import Embedder
from rag_audit.index.engine import build_index, draw_noise, select
from rag_audit.index.texts import Document
from rag_audit.relation.field import random_element


def recall(
    policy: Policy,
    embedder: Embedder,
    tenants: Mapping[str, Sequence[Document]],
    questions: Sequence[Question],
    draws: int = 20,
) -> tuple[float, int, int]:
    """(recall without noise, noised hits, noised trials) over the tenants' questions, with fresh noise each time."""
    k = policy.top_k
    plain, noised, asked = 0, 0, 0
    for tenant, texts in tenants.items():
        part = policy.tenant(tenant)
        assert part is not None
        rules = policy.rules(part)
        window = rules.window
        index = build_index(embedder.embed_documents([d.text for d in texts]), part.capacity)
        for question in (q for q in questions if q.tenant == tenant):
            targets = {index.positions[i] for i, d in enumerate(texts) if d.title == question.answer}
            if not targets:
                continue
            asked += 1
            vector = embedder.embed_query(question.question)
            silent = np.zeros(part.capacity, np.int32)
            plain += bool(targets & set(select(index, vector, silent, window, k)))
            for _ in range(draws):
                fresh = draw_noise(random_element(), part.capacity, rules.gains)
                noised += bool(targets & set(select(index, vector, fresh, window, k)))
    return plain / max(asked, 1), noised, max(asked, 1) * draws
