"""A ledger's tree computed by pymerkle, which shares no code with `merkle` and `tree`.

pymerkle is under the GPL, so no installation of this package includes it. A verifier who installs it gets the second
computation with `rag-audit verify --engine reference`.
"""

from __future__ import annotations

from collections.abc import Iterable


def root_by_pymerkle(entries: Iterable[bytes]) -> bytes | None:
    """The root of RFC 9162's tree over the entries, 32 bytes, or None where pymerkle is not installed."""
    try:
        from pymerkle import InmemoryTree
    except ImportError:
        return None
    tree = InmemoryTree(algorithm="sha256")
    for entry in entries:
        tree.append_entry(entry)
    root: bytes = tree.get_root()
    return root
