"""What each mechanism promises and costs at a policy's sizes, in a line each, for the person who chooses one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.coins import Listing, Sampling, coin_of
from rag_audit.models import defaults
from rag_audit.models.policy import Policy
from rag_audit.models.tenants import TenantPolicy, default_listing
from rag_audit.relation.coins import COIN_RANGE

LITTLE = 10.0
"""The epsilon from which a bound says little: a test may be right exp(10) times as often as it is wrong."""
SEVERAL = 4
"""Positions of a document for which a warning gives the figures: a file of two pages at the usual size of chunks."""
WITHOUT_NOISE = 76
"""How many of 100 SQuAD questions find their passage among five without noise (docs/accounting.md, "Retrieval quality
under noise"; wordllama-256)."""
SAMPLED = {"0.9": 70, "0.7": 55}
"""The same by the share of positions that a sample keeps."""
LISTED = 53
"""The same of listing with 0.7 kept: among the best five of what an account holds after 200 questions."""
NOISED = ((0.0, 76), (0.02, 75), (0.0625, 65), (0.125, 43), (0.25, 14), (0.5, 5), (1.0, 1), (4.0, 0))
"""The same by the noise's sigma/Delta."""


def comparison(policy: Policy, gains: Sequence[int], lattice: int) -> list[str]:
    """The mechanisms at this policy's n and k_max, a line each with the option that asks for it, and warnings.

    :param gains: the noise that was chosen, or would be
    """
    mechanism = accounting.Mechanism(tuple(gains), lattice)
    eps = accounting.eps_at(mechanism, policy.n * policy.k_max, policy.delta_policy)
    lines = [
        f"mechanisms at n = {policy.n}, k_max = {policy.k_max}; of 100 public questions (SQuAD) that many find their"
        f" passage among five, {WITHOUT_NOISE} without noise:",
        f"  --mechanism noise         {_noised(mechanism):>2}  eps_audit {accounting.text(eps)} over all lists",
    ]
    for keep, found in SAMPLED.items():
        odds = accounting.text(Sampling(coin_of(keep, "keep")).odds_unlisted(policy.n))
        lines.append(
            f"  --mechanism sampling:{keep}  {found:>2}  odds_unlisted {odds} for any accounts and queries, no eps"
        )
    capacity = max(t.capacity for t in policy.tenants)
    listing = Listing(coin_of("0.7", "keep"), math.floor(default_listing(capacity)[0] * COIN_RANGE))
    eps_listing = accounting.text(listing.epsilon(policy.k_max))
    odds = accounting.text(listing.odds_unlisted(policy.n * policy.k_max))
    lines.append(
        f"  --mechanism listing:0.7   {LISTED:>2}  eps {eps_listing} over all lists, for any number of queries;"
        f" odds_unlisted {odds}; accounts keep what they are handed"
    )
    lines.append(f"  --mechanism none          {WITHOUT_NOISE:>2}  nothing about privacy: integrity alone")
    return [*lines, *_warnings(policy, mechanism, eps)]


def _warnings(policy: Policy, mechanism: accounting.Mechanism, eps: float) -> list[str]:
    """What a reader of the policy should know: little retrieval is left, or a figure says little."""
    found = []
    for tenant in policy.tenants:
        own, name = policy.mechanism(tenant), tenant.tenant
        if own.gains and 2 * _noised(mechanism) < WITHOUT_NOISE:
            found.append(
                f"warning: {name}: this noise leaves less than half of retrieval on public collections"
            )
        if own.gains and eps >= LITTLE:
            found.append(
                f"warning: {name}: eps {accounting.text(eps)} for {policy.k_max} accounts promises little"
            )
        if own.remembers:
            listed = own.epsilon(policy.k_max, None)
            if listed >= LITTLE:
                found.append(
                    f"warning: {name}: eps {accounting.text(listed)} for {policy.k_max} accounts promises little"
                )
            if listed > float(defaults.EPS_LISTING):
                found.append(
                    f"warning: {name}: this epsilon is above the {defaults.EPS_LISTING} that `trust new` accepts by"
                    " default; a larger chance lowers it (--mechanism listing:KEEP:CHANCE:THRESHOLD)"
                )
        found += _of_documents(policy, tenant)
        if own.keep is not None and 2 * own.keep < COIN_RANGE:
            found.append(f"warning: {name}: the sample drops more than half of the positions")
        if not own.protects:
            found.append(f"warning: {name}: nothing hides what is in the index; verdicts say PASS-INTEGRITY")
    return found


def _of_documents(policy: Policy, tenant: TenantPolicy) -> list[str]:
    """What the figures of one position are for documents of several, and what they leave unprotected."""
    name, own = tenant.tenant, policy.mechanism(tenant)
    found = []
    if own.limit == "max_epsilon":
        found.append(
            f"warning: {name}: eps is for a document of one position; a document of {SEVERAL} positions loses up to"
            f" {SEVERAL} times as much"
        )
    if own.sample is None:
        return found
    by_size = [
        [
            accounting.text(own.sample.odds_unlisted(policy.n * accounts, positions))
            for accounts in (policy.k_max, tenant.accounts_max)
        ]
        for positions in (1, SEVERAL)
    ]
    (few, every), (few_of_several, every_of_several) = by_size
    return [
        *found,
        f"warning: {name}: odds_unlisted is {few} for {policy.k_max} accounts and {every} for all"
        f" {tenant.accounts_max}, for a document of one position; for a document of {SEVERAL} positions it is"
        f" {few_of_several} and {every_of_several}",
        f"warning: {name}: odds_unlisted bounds how much more likely the absence of a document becomes; the presence"
        " of a document that an account asks for has no protection",
    ]


def _noised(mechanism: accounting.Mechanism) -> int:
    """How many of 100 questions find their passage, by the measured noise that is next below this one."""
    return [found for least, found in NOISED if mechanism.sigma_over_delta >= least][-1]
