"""A growing RFC 9162 tree with SHA-256 in the native core, for the provider's ledger and texts.

Verifiers use `merkle` instead, which shares no code with this module. The two must agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from rag_audit import _native
from rag_audit._internal.errors import EncodingError
from rag_audit.log.merkle import HASH_SIZE


class MerkleTree:
    """A growing Merkle tree. It stores the roots of complete subtrees, so a root or path costs O(log n) hashes.

    Safe to use from several threads.

    :param leaf_hashes: the hashes of the first leaves
    """

    def __init__(self, leaf_hashes: Iterable[bytes] = ()) -> None:
        self._tree = _native.GrowingTree()
        self.extend(leaf_hashes)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._tree.size

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        if len(leaf) != HASH_SIZE:
            raise EncodingError("not a leaf hash", expected=f"{HASH_SIZE} bytes", actual=f"{len(leaf)} bytes")
        self._tree.extend(leaf)

    def extend(self, leaf_hashes: Iterable[bytes]) -> None:
        """Add leaf hashes in order."""
        for leaf in leaf_hashes:
            self.append(leaf)

    def leaf(self, index: int) -> bytes:
        """The leaf hash at `index`."""
        (result,) = self.leaves(index, index + 1)
        return result

    def leaves(self, start: int, end: int) -> list[bytes]:
        """The leaf hashes from `start` to before `end`."""
        self._require(0 <= start <= end <= self.size, "end", end)
        return self._tree.leaves(start, end)

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves (of all of them if None)."""
        n = self.size if size is None else size
        self._require(0 <= n <= self.size, "size", n)
        return self._tree.root(n)

    def inclusion_path(self, index: int, size: int | None = None) -> list[bytes]:
        """PATH(index, D[size]) of RFC 9162, 2.1.3.1.

        :raises EncodingError: the arguments violate 0 <= index < size <= number of leaves
        """
        n = self.size if size is None else size
        self._require(0 <= n <= self.size, "size", n)
        self._require(0 <= index < n, "index", index)
        return self._tree.inclusion_path(index, n)

    def consistency_path(self, m: int, n: int | None = None) -> list[bytes]:
        """PROOF(m, D[n]) of RFC 9162, 2.1.4.1; empty for m = 0 and for m = n.

        :raises EncodingError: the arguments violate 0 <= m <= n <= number of leaves
        """
        later = self.size if n is None else n
        self._require(0 <= later <= self.size, "n", later)
        self._require(0 <= m <= later, "m", m)
        return self._tree.consistency_path(m, later)

    def _require(self, condition: bool, field: str, actual: int) -> None:
        if not condition:
            raise EncodingError(
                "outside the tree", field=field, expected=f"within {self.size} leaves", actual=str(actual)
            )
