"""The demo window's policy: each tenant with a mechanism of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from rag_audit._internal.clock import now_ms
from rag_audit.cli.demo.own import capacity
from rag_audit.cli.demo.prepare import LISTED, SMALL_CAPACITY
from rag_audit.commit.draft import Mechanism, draft_policy
from rag_audit.mechanisms.accounting.coins import coin_of
from rag_audit.mechanisms.listing import ListingRules
from rag_audit.models.policy import Policy
from rag_audit.models.tenants import DEFAULT_LISTED_MAX, THRESHOLDS, UNRELATED, SystemName
from rag_audit.retrieval.texts import Document

CERTIFIED = 16
"""The number of records for which the coalition proof has places."""
KEEP = "0.9"
"""The share of positions that a sampled tenant keeps."""
LISTED_KEEP = "0.7"
"""The same of the tenant that lists by randomised response."""
QUERY_TOKENS = 24
"""The number of tokens at which questions are cut, since a proof of the embedding costs by the token."""
QUERIES_AN_ACCOUNT = 4
"""n of the policy."""
LASTS_MS = 3_600_000


def demo_policy(tenants: Mapping[str, Sequence[Document]], systems: Mapping[str, SystemName]) -> Policy:
    """The window's policy. Its dates are drafts: `open --opens-in` dates the window once everything is committed."""
    now = now_ms()
    # With these gains and this lattice some questions still find their passage; the table gives the cost in epsilon.
    return draft_policy(
        window="demo",
        opens_at=now,
        closes_at=now + LASTS_MS,
        capacities={
            name: SMALL_CAPACITY if systems[name] == "groth16" else capacity(len(texts))
            for name, texts in tenants.items()
        },
        n=QUERIES_AN_ACCOUNT,
        k_max=2,
        eps_acc="14",
        accounts_max=4,
        gains=(1, 4),
        lattice=64,
        tokens=(QUERY_TOKENS, 512),
        system=systems,
        certificate=("scan", CERTIFIED),
        # The small tenant has the paper's noise; the others sample, or list by randomised response, and stay useful.
        mechanisms={
            name: Mechanism() if system == "groth16" else _mechanism(name, capacity(len(tenants[name])))
            for name, system in systems.items()
        },
    )


def _mechanism(tenant: str, positions: int) -> Mechanism:
    """A scan tenant's mechanism."""
    if tenant != LISTED:
        return Mechanism(noise=False, keep=coin_of(KEEP, "keep"))
    chance = coin_of(Decimal(UNRELATED) / positions, "chance")
    rules = ListingRules(chance, min(DEFAULT_LISTED_MAX, positions), THRESHOLDS["wordllama-256"])
    return Mechanism(False, coin_of(LISTED_KEEP, "keep"), rules)
