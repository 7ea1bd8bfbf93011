"""Policies from flat values, which a test changes one at a time."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rag_audit.commit.draft import (
    Embedding,
    EstimatorParameters,
    NoiseParameters,
    Period,
    PrivacyTarget,
    Tenants,
    draft_policy,
)
from rag_audit.models.policy import Policy


def draft(**values: Any) -> Policy:
    """`draft_policy` with the fields of its groups as arguments."""

    def group(kind: Any) -> Any:
        return kind(**{f.name: values.pop(f.name) for f in fields(kind) if f.name in values})

    period, tenants, target = group(Period), group(Tenants), group(PrivacyTarget)
    noise, embedding, estimator = group(NoiseParameters), group(Embedding), group(EstimatorParameters)
    return draft_policy(
        period, tenants, target, noise=noise, embedding=embedding, estimator=estimator, **values
    )
