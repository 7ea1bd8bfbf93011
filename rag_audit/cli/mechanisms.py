"""The option of `provider policy new` that names tenants' mechanisms."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.descriptions import ALL, chosen

_FORMS = ", ".join(form for kind in ALL[:-1] for form in kind.forms) + (
    f" or {', '.join(ALL[-1].forms)}; ID=.. sets it for one tenant, each id once"
)


def read_mechanisms(
    items: Sequence[str], tenants: Collection[str], relevance: int | None
) -> dict[str, Mechanism]:
    """Read the mechanisms by tenant.

    :param relevance: the embedder's minimum raw score of a relevant passage, the default threshold of pooled listing
    :raises PolicyError: an item is malformed, or the items name no mechanism for a tenant, or two
    """
    result: dict[str, Mechanism] = {}
    named: set[str] = set()
    for item in sorted(items, key=lambda item: "=" in item):  # items for all tenants come first
        match = re.fullmatch(r"(?:([^=]+)=)?([^=]*)", item)
        if match is None:
            raise PolicyError(
                "the option names no mechanism", field="--mechanism", expected=_FORMS, actual=item
            )
        tenant, written = match[1], match[2]
        if tenant is not None and tenant not in tenants:
            raise PolicyError(
                f"no --tenant is named {tenant}",
                field="--mechanism",
                expected=" or ".join(tenants),
                actual=item,
            )
        if (tenant or "") in named:
            whose = "all tenants" if tenant is None else tenant
            raise PolicyError(
                "two options set a mechanism for the same tenants",
                field="--mechanism",
                expected=f"one --mechanism for {whose}",
                actual=item,
            )
        named.add(tenant or "")
        for name in [*tenants] if tenant is None else [tenant]:
            result[name] = chosen(
                written,
                whole=item,
                expected=_FORMS,
                relevance=relevance,
            )
    if missing := [tenant for tenant in tenants if tenant not in result]:
        raise PolicyError("no option names the tenant's mechanism", field="--mechanism", expected=_FORMS,
                          actual=f"none for {missing[0]}")  # fmt: skip
    return result
