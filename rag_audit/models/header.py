"""The documents that a window header commits to: lists by their roots, and the roster's fit to the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import PolicyError
from rag_audit.log.merkle import leaf_hash, root_of
from rag_audit.models.models import repeated
from rag_audit.models.policy import Policy
from rag_audit.models.records import ListRoot, RosterEntry, TenantEntry, WindowHeader


def list_root(items: Sequence[RosterEntry] | Sequence[TenantEntry]) -> ListRoot:
    """The RFC 6962 root over the canonical JSON of the items, in order."""
    leaves = [leaf_hash(item.canonical()) for item in items]
    return ListRoot(root=root_of(leaves).hex(), count=len(leaves))


def compared(
    header: WindowHeader,
    *,
    policy: Json,
    embedder: Json,
    roster: Sequence[RosterEntry],
    tenants: Sequence[TenantEntry],
) -> list[tuple[str, str | ListRoot, str | ListRoot]]:
    """Compare a window header's commitments with the published or stored documents: (field, committed, actual) each.

    :param policy: the policy as JSON
    :param embedder: the embedder's manifest
    """
    return [
        ("c_policy", header.c_policy, digest_hex(policy)),
        ("c_emb", header.c_emb, digest_hex(embedder)),
        ("roster", header.roster, list_root(roster)),
        ("tenants", header.tenants, list_root(tenants)),
    ]


def check_roster(roster: Sequence[RosterEntry], policy: Policy) -> None:
    """Refuse a roster with a repeated id or key, an unknown tenant, or more accounts than a tenant's cap.

    :raises PolicyError: the roster has such a fault; the account or tenant is named
    """
    for what, values in (("account", (r.account for r in roster)), ("key", (r.key for r in roster))):
        if twice := repeated(values):
            raise PolicyError(
                f"the roster repeats an {what}", field="roster", expected="each once", actual=twice
            )
    for entry in roster:
        if policy.tenant(entry.tenant) is None:
            raise PolicyError(
                "the roster names an unknown tenant", field=f"roster.{entry.account}", actual=entry.tenant
            )
    counts = Counter(r.tenant for r in roster)
    for tenant in policy.tenants:
        if (enrolled := counts[tenant.tenant]) > tenant.accounts_max:
            raise PolicyError(
                "the roster has more accounts than the tenant's cap",
                field=f"roster.{tenant.tenant}",
                expected=f"at most {tenant.accounts_max}",
                actual=enrolled,
            )
