"""The guarantee and the cost of each mechanism at a policy's sizes, one line each, for the person who chooses a
mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.descriptions import ALL, description
from rag_audit.mechanisms.descriptions.base import WITHOUT_NOISE, Sizes
from rag_audit.models.policy import Policy
from rag_audit.models.tenants import TenantPolicy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

SEVERAL = 4
"""Number of positions per document in a warning's figures: a file of two pages at the usual size of chunks."""


def comparison(policy: Policy, gains: Sequence[int], lattice: int) -> list[str]:
    """The mechanisms at this policy's n, k_max and m, a line each with the option that asks for it, and warnings.

    m is the number of questions of all accounts of the largest tenant: accounts_max times n.

    :param gains: the noise that was chosen, or would be
    """
    mechanism = accounting.Mechanism(tuple(gains), lattice)
    positions = policy.noised_positions
    eps = accounting.eps_at(mechanism, policy.n * policy.k_max * positions, policy.delta_policy)
    every = policy.n * max(t.accounts_max for t in policy.tenants)
    sizes = Sizes(mechanism, eps, policy.n, policy.k_max, every, max(t.capacity for t in policy.tenants))
    return [
        f"mechanisms at n = {policy.n}, k_max = {policy.k_max}, m = {every}; of 100 public questions (SQuAD) that many"
        f" find their passage among five, {WITHOUT_NOISE} without noise:",
        *(line for kind in ALL for line in kind.compared(sizes)),
        *_warnings(policy, sizes),
    ]


def _warnings(policy: Policy, sizes: Sizes) -> list[str]:
    """Warnings for a reader of the policy: little retrieval quality remains, or a figure has little meaning."""
    result = []
    for tenant in policy.tenants:
        own, name = policy.mechanism(tenant), tenant.tenant
        result += [f"warning: {name}: {words}" for words in description(own.name).warnings(own, sizes)]
        result += _of_documents(policy, tenant)
        if 2 * own.sampled_share < PROBABILITY_RANGE:
            result.append(f"warning: {name}: the sample drops more than half of the positions")
    return result


def _of_documents(policy: Policy, tenant: TenantPolicy) -> list[str]:
    """The figures for documents with several positions, derived from the figures of one position, and the risks that
    they leave."""
    name, own = tenant.tenant, policy.mechanism(tenant)
    result = []
    if own.limit == "max_epsilon" and own.table is None:
        result.append(
            f"warning: {name}: eps is for a document of one position; a document of {SEVERAL} positions loses at"
            f" most {SEVERAL} times as much{f', at {SEVERAL} times delta' if own.uses_delta else ''}"
        )
    if own.sample is None:
        return result
    by_size = [
        [
            accounting.text(own.exclusion_factor(policy.n * accounts, positions) or math.inf)
            for accounts in (policy.k_max, tenant.accounts_max)
        ]
        for positions in (1, SEVERAL)
    ]
    (few, every), (few_of_several, every_of_several) = by_size
    scope = (
        f"for a document of one position; for a document of {SEVERAL} positions it is {few_of_several} and"
        f" {every_of_several}"
        if own.table is None
        else f"for a document of at most {own.table.positions_per_document} positions"
    )
    return [
        *result,
        f"warning: {name}: exclusion_factor is {few} for {policy.k_max} accounts and {every} for all"
        f" {tenant.accounts_max}, {scope}",
        f"warning: {name}: exclusion_factor only bounds the factor for the likelihood of a document's absence;"
        " the presence of a document that an account asks for has no protection",
    ]
