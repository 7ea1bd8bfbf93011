"""The selection of positions with its order, which is proved (docs/relation.md, "Selection")."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import PolicyError


def top_k(y: Sequence[int], k: int) -> list[int]:
    """The first k positions by larger y, then by smaller position.

    :raises PolicyError: k is not in 1..len(y)
    """
    if not 1 <= k <= len(y):
        raise PolicyError("K out of range", field="K", expected=f"1..{len(y)}", actual=k)
    return sorted(range(len(y)), key=lambda i: (-y[i], i))[:k]
