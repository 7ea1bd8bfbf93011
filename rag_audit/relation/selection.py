"""The selection of positions with its order, which is proved (docs/relation.md, "Selection" and "Coins")."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import EncodingError, PolicyError


def top_k(y: Sequence[int], k: int) -> list[int]:
    """The first k positions by larger y, then by smaller position.

    :raises PolicyError: k is not in 1..len(y)
    """
    if not 1 <= k <= len(y):
        raise PolicyError("K out of range", field="K", expected=f"1..{len(y)}", actual=k)
    return sorted(range(len(y)), key=lambda i: (-y[i], i))[:k]


def winners(
    relevant: Sequence[bool], sampled: Sequence[bool], disclosed: Sequence[bool], flips: Sequence[bool]
) -> list[bool]:
    """The positions that may be listed: positions drawn by chance, and relevant sampled positions that the account has
    not received yet.

    :raises EncodingError: the numbers of positions differ
    """
    if not len(relevant) == len(sampled) == len(disclosed) == len(flips):
        raise EncodingError(
            "the numbers of positions differ",
            field="winners",
            expected=len(relevant),
            actual=[len(sampled), len(disclosed), len(flips)],
        )
    return [c or (r and k and not h) for r, k, h, c in zip(relevant, sampled, disclosed, flips, strict=True)]


def first_winners(winning: Sequence[bool], maximum: int) -> list[bool]:
    """The listed positions: the first winners by position, at most as many as the policy lists.

    :raises PolicyError: most is not in 1..positions
    """
    if not 1 <= maximum <= len(winning):
        raise PolicyError(
            "the length of lists is out of range",
            field="listed_max",
            expected=f"1..{len(winning)}",
            actual=maximum,
        )
    left, listed = maximum, []
    for bit in winning:
        listed.append(bit and left > 0)
        left -= bit
    return listed
