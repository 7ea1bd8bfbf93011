"""A growing RFC 9162 tree with SHA-256 over pymerkle, which holds the provider's ledger and texts.

Only this module uses pymerkle. Its paths have another form than the RFC's (an inclusion path starts with the leaf, and
a consistency path splits the right-hand subtree up), so they are converted here. Verifiers use `merkle` instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from threading import RLock

from pymerkle import BaseMerkleTree

from rag_audit.errors import EncodingError
from rag_audit.ledger.merkle import HASH_SIZE, node_hash


class _LeafHashes(BaseMerkleTree):  # type: ignore[misc]  # pymerkle has no type hints
    """pymerkle's storage interface over a list of leaf hashes (pymerkle counts leaves from 1)."""

    def __init__(self) -> None:
        # By default, subtrees of less than 128 leaves are hashed anew for each path.
        super().__init__("sha256", threshold=8)
        self.leaves: list[bytes] = []

    def _encode_entry(self, data: bytes) -> bytes:
        return data

    def _store_leaf(self, data: bytes, digest: bytes) -> int:
        self.leaves.append(digest)
        return len(self.leaves)

    def _get_leaf(self, index: int) -> bytes:
        return self.leaves[index - 1]

    def _get_leaves(self, offset: int, width: int) -> list[bytes]:
        return self.leaves[offset : offset + width]

    def _get_size(self) -> int:
        return len(self.leaves)


class MerkleTree:
    """A growing Merkle tree. Subtree roots are cached, so a root or path after the first costs O(log n) hashes.

    Safe to use from several threads.

    :param leaf_hashes: the hashes of the first leaves
    """

    def __init__(self, leaf_hashes: Iterable[bytes] = ()) -> None:
        self._lock = RLock()
        self._tree = _LeafHashes()
        self.extend(leaf_hashes)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._tree.leaves)

    def append(self, leaf: bytes) -> int:
        """Add one leaf hash and return its index."""
        if len(leaf) != HASH_SIZE:
            raise EncodingError("not a leaf hash", expected=f"{HASH_SIZE} bytes", found=f"{len(leaf)} bytes")
        with self._lock:
            self._tree.leaves.append(leaf)
            return len(self._tree.leaves) - 1

    def extend(self, leaf_hashes: Iterable[bytes]) -> None:
        """Add leaf hashes in order."""
        for leaf in leaf_hashes:
            self.append(leaf)

    def leaf(self, index: int) -> bytes:
        """The leaf hash at `index`."""
        self._require(0 <= index < self.size, "index", index)
        return self._tree.leaves[index]

    def leaves(self, start: int, end: int) -> list[bytes]:
        """The leaf hashes from `start` to before `end`."""
        self._require(0 <= start <= end <= self.size, "end", end)
        return self._tree.leaves[start:end]

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves (of all of them if None)."""
        with self._lock:
            n = self.size if size is None else size
            self._require(0 <= n <= self.size, "size", n)
            return bytes(self._tree.get_root(n))

    def inclusion_path(self, index: int, size: int | None = None) -> list[bytes]:
        """PATH(index, D[size]) of RFC 9162, 2.1.3.1.

        :raises EncodingError: the arguments do not keep 0 <= index < size <= number of leaves
        """
        with self._lock:
            n = self.size if size is None else size
            self._require(0 <= n <= self.size, "size", n)
            self._require(0 <= index < n, "index", index)
            return list(self._tree.prove_inclusion(index + 1, n).path[1:])

    def consistency_path(self, m: int, n: int | None = None) -> list[bytes]:
        """PROOF(m, D[n]) of RFC 9162, 2.1.4.1; empty for m = 0 and for m = n.

        :raises EncodingError: the arguments do not keep 0 <= m <= n <= number of leaves
        """
        with self._lock:
            later = self.size if n is None else n
            self._require(0 <= later <= self.size, "n", later)
            self._require(0 <= m <= later, "m", m)
            if m in (0, later):
                return []
            proof = self._tree.prove_consistency(m, later)
        # pymerkle walks on to a single leaf to the right of the first m, so the hashes before the first
        # one of the old tree fold up to the RFC's one hash. The old tree's own root is left out there.
        split = proof.subset.index(1)
        right = reduce(node_hash, proof.path[:split])
        known = [] if m & (m - 1) == 0 else [proof.path[split]]
        return [*known, right, *proof.path[split + 1 :]]

    def _require(self, condition: bool, field: str, found: int) -> None:
        if not condition:
            raise EncodingError(
                "outside the tree", field=field, expected=f"within {self.size} leaves", found=str(found)
            )
