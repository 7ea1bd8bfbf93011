"""RFC 9162 (RFC 6962) Merkle trees with SHA-256 as a verifier needs them, close to the RFC's own definitions.

The module computes roots, inclusion and consistency of a complete list. It shares no code with `log.tree`, which the
provider uses for its growing tree. The two implementations must agree.

Hashes are 32 bytes, indices count from 0, a path runs from the leaf's sibling to the root's child.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_audit import _native
from rag_audit._internal.errors import EncodingError

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
    """Root over all leaf hashes, or `EMPTY_ROOT` if there are none."""
    return HashTree(leaf_hashes).root()


@dataclass(frozen=True)
class Peaks:
    """The first leaves of a list by the fewest hashes that a longer tree needs of them.

    :param size: how many leaves
    :param roots: the roots of the complete subtrees that they make up, from the left; one for each 1 in binary
    :raises EncodingError: there are more or fewer roots, or one is not 32 bytes
    """

    size: int = 0
    roots: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if (
            self.size < 0
            or len(self.roots) != self.size.bit_count()
            or any(len(root) != HASH_SIZE for root in self.roots)
        ):
            raise EncodingError("not the peaks of a tree", expected=f"roots for {self.size} leaves")


class HashTree:
    """The tree of a list that does not grow. It costs one hash a leaf; a root or path then costs O(log n) hashes.

    :param leaf_hashes: the hashes of all leaves, or of those after `before`
    :param before: first leaves that are not available; a request that needs one of them, or a root among them, is
        refused
    :raises EncodingError: a leaf hash is not 32 bytes
    """

    def __init__(self, leaf_hashes: Iterable[bytes], before: Peaks = Peaks()) -> None:
        level, height, peaks = list(leaf_hashes), 0, list(before.roots)
        wrong = next((leaf for leaf in level if len(leaf) != HASH_SIZE), None)
        if wrong is not None:
            raise EncodingError(
                "not a leaf hash", expected=f"{HASH_SIZE} bytes", actual=f"{len(wrong)} bytes"
            )
        self._size, self._before = before.size + len(level), before.size
        self._levels: list[list[bytes]] = []
        """for each level h, the roots of the complete subtrees of 2^h leaves, from the last peak or first available
        leaf on"""
        while True:
            if before.size >> height & 1:
                level = [peaks.pop(), *level]
            self._levels.append(level)
            if len(level) < 2 and not peaks:
                break
            level = [node_hash(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
            height += 1

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._size

    def leaf(self, index: int) -> bytes:
        """The leaf hash at an index.

        :raises EncodingError: there is no such leaf
        """
        if not 0 <= index < self.size:
            raise EncodingError(
                "outside the tree", field="index", expected=f"below {self.size}", actual=index
            )
        return self._node(0, index)

    def peaks(self, size: int) -> Peaks:
        """The peaks of the first `size` leaves.

        :raises EncodingError: there are fewer leaves
        """
        roots, low = [], 0
        for height in reversed(range(self._within(size).bit_length())):
            if size >> height & 1:
                roots.append(self._node(height, low >> height))
                low += 1 << height
        return Peaks(size, tuple(roots))

    def root(self, size: int | None = None) -> bytes:
        """MTH(D[size]) of RFC 9162, 2.1.1: the root of the first `size` leaves (of all of them if None).

        :raises EncodingError: the arguments violate 0 <= size <= number of leaves
        """
        n = self._within(size)
        return self._hash(0, n) if n else EMPTY_ROOT

    def inclusion_path(self, index: int, size: int | None = None) -> list[bytes]:
        """PATH(index, D[size]) of RFC 9162, 2.1.3.1.

        :raises EncodingError: the arguments violate 0 <= index < size <= number of leaves
        """
        n, path, height = self._within(size), [], 0
        if not 0 <= index < n:
            raise EncodingError("outside the tree", field="index", expected=f"below {n}", actual=index)
        while (width := 1 << height) < n:
            beside = (index >> height) ^ 1
            first = beside << height
            if first + width <= n:
                path.append(self._node(height, beside))
            elif first < n:  # the last subtree is not complete
                path.append(self._hash(first, n))
            height += 1
        return path

    def consistency_path(self, m: int, n: int | None = None) -> list[bytes]:
        """PROOF(m, D[n]) of RFC 9162, 2.1.4.1; empty for m = 0 and for m = n.

        :raises EncodingError: the arguments violate 0 <= m <= n <= number of leaves
        """
        low, high, path = 0, self._within(n), []
        if not 0 <= m <= high:
            raise EncodingError("outside the tree", field="m", expected=f"at most {high}", actual=m)
        if m == 0:
            return []
        while m != high:
            middle = low + _split(high - low)
            if m <= middle:
                path.append(self._hash(middle, high))
                high = middle
            else:
                path.append(self._hash(low, middle))
                low = middle
        # Only a subtree at the left edge can be the earlier tree itself, and the verifier knows that tree's root.
        return path[::-1] if low == 0 else [self._hash(low, high), *path[::-1]]

    def _hash(self, low: int, high: int) -> bytes:
        """Root over leaves low..high - 1, a subtree of some prefix. The roots of complete subtrees are cached."""
        n = high - low
        if n & (n - 1) == 0:
            height = n.bit_length() - 1
            return self._node(height, low >> height)
        middle = low + _split(n)
        return node_hash(self._hash(low, middle), self._hash(middle, high))

    def _node(self, height: int, index: int) -> bytes:
        """The root of a complete subtree of 2^height leaves."""
        # A level begins at an even index, with a peak if there is one.
        place = index - (self._before >> height & ~1)
        if place < 0:
            raise EncodingError("before the leaves at hand", field="index", expected=f"from {self._before} on",
                                actual=index << height)  # fmt: skip
        return self._levels[height][place]

    def _within(self, size: int | None) -> int:
        n = self.size if size is None else size
        if not 0 <= n <= self.size:
            raise EncodingError("outside the tree", field="size", expected=f"at most {self.size}", actual=n)
        return n


def _split(n: int) -> int:
    """The largest power of two below n >= 2."""
    return 1 << (n - 1).bit_length() - 1


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` proves `leaf` (a leaf hash) at `index` under `root` (RFC 9162, 2.1.3.2)."""
    try:
        return path_root(leaf, index, size, path) == root
    except ValueError:  # one of them is no hash
        return False


def path_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root to which `path` leads from `leaf` at `index` (RFC 9162, 2.1.3.2); None if it has another length.

    By the native core: an account checks a hundred hashes for each answer.

    :raises ValueError: leaf or path has a value that is no hash
    """
    if not 0 <= index < size <= 1 << 63:
        return None
    return _native.path_root(leaf, index, size, list(path))


def verify_consistency(m: int, n: int, path: Sequence[bytes], root_m: bytes, root_n: bytes) -> bool:
    """Whether `path` proves that the tree of `n` leaves extends the tree of `m` leaves (RFC 9162, 2.1.4.2).

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
