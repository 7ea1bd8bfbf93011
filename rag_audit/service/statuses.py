"""HTTP statuses of refusals."""

from __future__ import annotations

import math

from rag_audit.models.records import Opening
from rag_audit.models.requests import REFUSALS

STATUSES = {
    "malformed": 400,
    "wrong-window": 409,
    "unknown-account": 403,
    "unknown-tenant": 403,
    "wrong-tenant": 403,
    "bad-signature": 403,
    "query-mismatch": 422,
    "empty-query": 422,
    "slot-used": 409,
    "out-of-order": 409,
    "limit": 403,
    "in-flight": 429,
    "not-open": 503,
    "closed": 410,
    "unavailable": 503,
}
"""The status of a refusal by its reason. After 429 and 503 the same request may succeed later, after 410 none will."""
assert set(STATUSES) == set(REFUSALS)

RETRY_S = 1
"""Seconds after which a request may be repeated that was refused for want of time, disk or a free place."""
MAX_RETRY_S = 3600


def retry_after(reason: str, opening: Opening, now: int) -> int | None:
    """The seconds after which a refused request may be repeated as it is, or None if that is in vain.

    :param now: milliseconds since the epoch
    """
    if reason == "not-open":
        wait = math.ceil((opening.opens_at - now) / 1000)
        return max(RETRY_S, min(wait, MAX_RETRY_S))
    return RETRY_S if reason in ("in-flight", "unavailable") else None
