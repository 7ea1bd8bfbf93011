"""Mechanisms: each is one file with the interface of `base`, and this module is their registry.

`accounting/` has the privacy accountant, the source of every mechanism's figures.
"""

from __future__ import annotations

from rag_audit.mechanisms.base import (
    SAMPLE,
    Mechanism,
    MechanismName,
    NoiseFields,
    Tenant,
    TenantFields,
    need,
)
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.relation.bernoulli import check_probability

__all__ = ["ALL", "COLUMNS", "Mechanism", "MechanismName", "named", "of_policy"]

ALL: tuple[type[Mechanism], ...] = (Noise, Sampling, PooledListing, Exact)
"""Every mechanism, in the order of texts that list them."""
COLUMNS: tuple[str, ...] = (SAMPLE, *(name for mechanism in ALL for name in mechanism.own_columns))
"""Every column that a window may commit to for a tenant (`Mechanism.columns`)."""
_BY_NAME: dict[str, type[Mechanism]] = {mechanism.name: mechanism for mechanism in ALL}


def named(name: str) -> type[Mechanism]:
    """The mechanism of a name.

    >>> named("sampling").limit
    'max_exclusion_factor'

    :raises KeyError: no mechanism has the name, which the models of every file exclude
    """
    return _BY_NAME[name]


def of_policy(part: TenantFields, noise: NoiseFields | None, tenant: Tenant) -> Mechanism:
    """The mechanism that a tenant's part of a policy names.

    :param noise: the policy's noise
    :raises PolicyError: the tenant's fields contradict one another, or are out of range; the field is named
    """
    keep = None if part.keep is None else check_probability(part.keep, f"policy.tenants.{part.tenant}.keep")
    (result,) = (mechanism for mechanism in ALL if mechanism.is_named_by(part))
    own: dict[str, int | None] = {}
    for mechanism in ALL:
        for field in mechanism.own_fields:
            own[field] = value = getattr(part, field)
            if field not in result.own_fields:
                need(value is None, part, field, f"null, which belongs to {mechanism.name}", value)
    by_document = part.documents is None or result.takes_table
    owners = " and ".join(mechanism.name for mechanism in ALL if mechanism.takes_table)
    need(by_document, part, "documents", f"null, which belongs to {owners}", part.documents)
    return result.read(part, own, noise, tenant, keep)
