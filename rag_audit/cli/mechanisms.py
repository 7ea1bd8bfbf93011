"""The option of `policy new` that names tenants' mechanisms."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from rag_audit._internal.errors import PolicyError
from rag_audit.commit.draft import Mechanism
from rag_audit.mechanisms.accounting.coins import coin_of
from rag_audit.mechanisms.listing import ListingRules
from rag_audit.models import defaults
from rag_audit.models.tenants import THRESHOLDS, default_listing
from rag_audit.relation.coins import COIN_RANGE

LISTING_KEEP = "0.7"
DEFAULT_DIMENSION = 256
"""Components of the default embedder's vectors, for which a threshold is known."""
_FORMS = (
    "noise, noise:KEEP, sampling, sampling:KEEP, listing, listing:KEEP[:CHANCE:THRESHOLD[:MOST]] or none, alone or as"
    " ID=.., each id once"
)


def _listing(keep: str | None, rest: str, capacity: int, dimension: int, item: str) -> Mechanism:
    """Read a listing mechanism, KEEP[:CHANCE:THRESHOLD[:MOST]], with the default embedder's constants where they
    are left out."""
    form = re.fullmatch(r"(?::([0-9.e-]{1,30}):([0-9]{1,9})(?::([0-9]{1,9}))?)?", rest)
    if form is None:
        raise PolicyError("not a mechanism", field="--mechanism", expected=_FORMS, found=item)
    if form[2] is None and dimension != DEFAULT_DIMENSION:
        raise PolicyError("no threshold is known for this embedder", field="--mechanism", found=item,
                          expected=f"listing:{keep or LISTING_KEEP}:CHANCE:THRESHOLD, measured")  # fmt: skip
    chance, most = default_listing(capacity)
    rules = ListingRules(
        coin_of(form[1], "--mechanism: CHANCE")
        if form[1]
        else math.floor(chance * COIN_RANGE + Fraction(1, 2)),
        int(form[3] or most),
        int(form[2] or THRESHOLDS["wordllama-256"]),
    )
    return Mechanism(False, coin_of(keep or LISTING_KEEP, "--mechanism: KEEP"), rules)


def read_mechanisms(
    items: Sequence[str], capacities: Mapping[str, int], dimension: int
) -> dict[str, Mechanism] | None:
    """Read the mechanisms by tenant; None where all have the noise alone, which policies of version 1 say too."""
    made = dict.fromkeys(capacities, Mechanism())
    named: set[str] = set()
    for item in sorted(items, key=lambda item: "=" in item):  # one for all tenants first, then those of one
        match = re.fullmatch(r"(?:([^=]+)=)?(noise|sampling|none|listing)(?::([0-9.]{1,30}))?(:.+)?", item)
        tenant = match[1] if match is not None else None
        if match is None or (match[4] and match[2] != "listing"):
            raise PolicyError("not a mechanism", field="--mechanism", expected=_FORMS, found=item)
        if tenant is not None and tenant not in made:
            raise PolicyError(
                f"no --tenant is named {tenant}", field="--mechanism", expected=" or ".join(made), found=item
            )
        if (tenant or "") in named:
            whose = "all tenants" if tenant is None else tenant
            raise PolicyError(
                "a mechanism is given twice",
                field="--mechanism",
                expected=f"one --mechanism for {whose}",
                found=item,
            )
        named.add(tenant or "")
        kind, keep = match[2], match[3]
        if kind == "listing":
            for name in [*made] if tenant is None else [tenant]:
                made[name] = _listing(keep, match[4] or "", capacities[name], dimension, item)
            continue
        if kind == "none" and keep is not None:
            raise PolicyError("a share of kept positions makes it sampling", field="--mechanism",
                              expected=f"sampling:{keep}", found=item)  # fmt: skip
        if kind == "sampling":
            keep = keep or defaults.KEEP
        mechanism = Mechanism(kind == "noise", None if keep is None else coin_of(keep, "--mechanism: KEEP"))
        made |= dict.fromkeys([*made] if tenant is None else [tenant], mechanism)
    return None if all(m == Mechanism() for m in made.values()) else made
