"""RFC 9162 (RFC 6962) Merkle trees with SHA-256: roots, inclusion and consistency proofs.

Trees are built with pymerkle; only this module knows it. Its paths have another form than the RFC's (the
leaf leads an inclusion path, and a consistency path splits the right-hand subtree up), so they are
converted here. Verification follows RFC 9162, 2.1.3.2 and 2.1.4.2, and does not use pymerkle.

Hashes are 32 bytes, indices count from 0, a path runs from the leaf's sibling to the root's child.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import reduce
from threading import RLock

from pymerkle import BaseMerkleTree

from rag_audit.errors import EncodingError

HASH_SIZE = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
"""Root of the tree without leaves (RFC 9162, 2.1.1)."""


def leaf_hash(data: bytes) -> bytes:
    """Hash of one entry: SHA-256(0x00 || data)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node: SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(leaf_hashes: Iterable[bytes]) -> bytes:
    """Root over all leaf hashes; `EMPTY_ROOT` without any."""
    return MerkleTree(leaf_hashes).root()


def inclusion_path(leaf_hashes: Sequence[bytes], index: int, size: int) -> list[bytes]:
    """Path that proves leaf `index` under the root of the first `size` leaves."""
    return MerkleTree(leaf_hashes[:size]).inclusion_path(index, size)


def consistency_path(leaf_hashes: Sequence[bytes], m: int, n: int) -> list[bytes]:
    """Path that proves that the tree of the first `n` leaves extends the tree of the first `m`."""
    return MerkleTree(leaf_hashes[:n]).consistency_path(m, n)


class _LeafHashes(BaseMerkleTree):  # type: ignore[misc]  # pymerkle has no type hints
    """pymerkle's storage interface over a list of leaf hashes (pymerkle counts leaves from 1)."""

    def __init__(self) -> None:
        super().__init__("sha256")
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
    """A growing tree. Subtree roots are cached, so a root or path costs O(log n) hashes after the first.

    Safe to use from several threads.

    :param leaf_hashes: the first leaves
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

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves (of all of them if None)."""
        with self._lock:
            n = self.size if size is None else size
            self._require(0 <= n <= self.size, "size", n)
            return bytes(self._tree.get_root(n))

    def inclusion_path(self, index: int, size: int | None = None) -> list[bytes]:
        """PATH(index, D[size]) of RFC 9162, 2.1.3.1.

        :raises EncodingError: not 0 <= index < size <= number of leaves
        """
        with self._lock:
            n = self.size if size is None else size
            self._require(0 <= n <= self.size, "size", n)
            self._require(0 <= index < n, "index", index)
            return list(self._tree.prove_inclusion(index + 1, n).path[1:])

    def consistency_path(self, m: int, n: int | None = None) -> list[bytes]:
        """PROOF(m, D[n]) of RFC 9162, 2.1.4.1; empty for m = 0 and for m = n.

        :raises EncodingError: not 0 <= m <= n <= number of leaves
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


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` proves `leaf` (a leaf hash) at `index` under `root` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size or not _hashes(leaf, root, *path):
        return False
    fn, sn, r = index, size - 1, leaf
    for p in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == root


def verify_consistency(m: int, n: int, path: Sequence[bytes], root_m: bytes, root_n: bytes) -> bool:
    """Whether `path` proves that the tree of `n` leaves extends that of `m` (RFC 9162, 2.1.4.2).

    Every tree extends the empty one: for m = 0 the path is empty and `root_m` is `EMPTY_ROOT`.
    """
    if not 0 <= m <= n or not _hashes(root_m, root_n, *path):
        return False
    if m == 0:
        return not path and root_m == EMPTY_ROOT and (n > 0 or root_n == EMPTY_ROOT)
    if m == n:
        return not path and root_m == root_n
    if not path:
        return False
    hashes = [root_m, *path] if m & (m - 1) == 0 else list(path)
    fn, sn = m - 1, n - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = hashes[0]
    for c in hashes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and fr == root_m and sr == root_n


def _hashes(*values: bytes) -> bool:
    return all(len(v) == HASH_SIZE for v in values)
