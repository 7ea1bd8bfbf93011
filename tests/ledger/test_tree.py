"""Both Merkle trees, the provider's and the verifier's, against the RFC 6962 vectors and the RFC's own recursion."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit.errors import EncodingError
from rag_audit.log import merkle
from rag_audit.log.merkle import HashTree, Peaks
from rag_audit.log.tree import MerkleTree

# The eight entries and the roots of every prefix, as in certificate-transparency's merkletree tests.
ENTRIES = [
    bytes.fromhex(h)
    for h in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    bytes.fromhex(h)
    for h in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
LEAVES = [merkle.leaf_hash(e) for e in ENTRIES]

BOTH = pytest.mark.parametrize("kind", [HashTree, MerkleTree])


def b64(*texts: str) -> list[bytes]:
    return [base64.b64decode(t) for t in texts]


INCLUSION = [
    (0, 1, []),
    (
        0,
        8,
        b64(
            "lqKW0iTyhcZ77pPDD4owkVfw2qNdxbh+QQt4YwoJz8c=",
            "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
            "a0eq8p7jwq+a+Im8H7klTavTEXfxYjLdaqsDXKOb9uQ=",
        ),
    ),
    (
        5,
        8,
        b64(
            "vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=",
            "yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=",
            "037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=",
        ),
    ),
]
CONSISTENCY = [
    (1, 1, []),
    (
        1,
        8,
        b64(
            "lqKW0iTyhcZ77pPDD4owkVfw2qNdxbh+QQt4YwoJz8c=",
            "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
            "a0eq8p7jwq+a+Im8H7klTavTEXfxYjLdaqsDXKOb9uQ=",
        ),
    ),
    (
        6,
        8,
        b64(
            "DrxdNDf74tsVi58Sah0RjjCBgQMdCpSfje3t68VY72o=",
            "yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=",
            "037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=",
        ),
    ),
    (
        2,
        5,
        b64(
            "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
            "vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=",
        ),
    ),
    (
        6,
        7,
        b64(
            "DrxdNDf74tsVi58Sah0RjjCBgQMdCpSfje3t68VY72o=",
            "sIaT7C5yFZcTBkHoIR5+7cy0wmQTlj7ubB4u0W/7Gl8=",
            "037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=",
        ),
    ),
]


@BOTH
@pytest.mark.parametrize("size", range(9))
def test_roots_of_every_prefix(kind: type[HashTree | MerkleTree], size: int) -> None:
    assert merkle.root_of(LEAVES[:size]) == ROOTS[size]
    assert kind(LEAVES).root(size) == ROOTS[size]


def test_empty_root_is_the_hash_of_the_empty_string() -> None:
    assert merkle.root_of([]) == hashlib.sha256(b"").digest() == merkle.EMPTY_ROOT


@BOTH
@pytest.mark.parametrize(("index", "size", "path"), INCLUSION)
def test_inclusion_vectors(
    kind: type[HashTree | MerkleTree], index: int, size: int, path: list[bytes]
) -> None:
    assert kind(LEAVES).inclusion_path(index, size) == path
    assert merkle.verify_inclusion(LEAVES[index], index, size, path, ROOTS[size])


@BOTH
@pytest.mark.parametrize(("m", "n", "path"), CONSISTENCY)
def test_consistency_vectors(kind: type[HashTree | MerkleTree], m: int, n: int, path: list[bytes]) -> None:
    assert kind(LEAVES).consistency_path(m, n) == path
    assert merkle.verify_consistency(m, n, path, ROOTS[m], ROOTS[n])


def mth(leaves: list[bytes]) -> bytes:
    if not leaves:
        return merkle.EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return merkle.node_hash(mth(leaves[:k]), mth(leaves[k:]))


def split(n: int) -> int:
    return 1 << (n - 1).bit_length() - 1


def path_of(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return [*path_of(index, leaves[:k]), mth(leaves[k:])]
    return [*path_of(index - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: list[bytes], known: bool) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if known else [mth(leaves)]
    k = split(n)
    if m <= k:
        return [*subproof(m, leaves[:k], known), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def numbered(n: int) -> list[bytes]:
    return [merkle.leaf_hash(i.to_bytes(4, "big")) for i in range(n)]


@BOTH
def test_every_proof_up_to_33_leaves_is_the_one_of_the_rfc(kind: type[HashTree | MerkleTree]) -> None:
    leaves = numbered(33)
    grown = kind(leaves)
    for n in range(1, 34):
        root = mth(leaves[:n])
        assert grown.root(n) == root
        for i in range(n):
            path = grown.inclusion_path(i, n)
            assert path == path_of(i, leaves[:n])
            assert merkle.verify_inclusion(leaves[i], i, n, path, root)
        for m in range(1, n + 1):
            path = grown.consistency_path(m, n)
            assert path == subproof(m, leaves[:n], True)
            assert merkle.verify_consistency(m, n, path, mth(leaves[:m]), root)


def test_appending_leaves_earlier_roots_as_they_were() -> None:
    leaves = numbered(700)
    grown = MerkleTree()
    seen = []
    for i, leaf in enumerate(leaves):
        grown.append(leaf)
        assert grown.size == i + 1
        seen.append(grown.root())
    assert seen[-1] == mth(leaves)
    assert [grown.root(n + 1) for n in (0, 127, 128, 255, 511, 698)] == [
        seen[n] for n in (0, 127, 128, 255, 511, 698)
    ]


@settings(deadline=None)
@given(st.integers(1, 64), st.data())
def test_an_altered_inclusion_proof_does_not_verify(n: int, data: st.DataObject) -> None:
    leaves = numbered(n)
    root = merkle.root_of(leaves)
    i = data.draw(st.integers(0, n - 1))
    path = HashTree(leaves).inclusion_path(i)
    other = data.draw(st.integers(0, n).filter(lambda j: j != i))
    assert not merkle.verify_inclusion(leaves[i], other, n, path, root)
    assert not merkle.verify_inclusion(merkle.leaf_hash(b"other"), i, n, path, root)
    assert not merkle.verify_inclusion(leaves[i], i, n, [*path, root], root)
    assert not merkle.verify_inclusion(leaves[i], i, n, [root, *path], root)
    if path:
        assert not merkle.verify_inclusion(leaves[i], i, n, path[:-1], root)
        at = data.draw(st.integers(0, len(path) - 1))
        flipped = bytes([path[at][0] ^ 1]) + path[at][1:]
        assert not merkle.verify_inclusion(leaves[i], i, n, [*path[:at], flipped, *path[at + 1 :]], root)
        assert not merkle.verify_inclusion(leaves[i], i, n, [p[:31] for p in path], root)


@settings(deadline=None)
@given(st.integers(2, 64), st.data())
def test_an_altered_consistency_proof_does_not_verify(n: int, data: st.DataObject) -> None:
    leaves = numbered(n)
    m = data.draw(st.integers(1, n - 1))
    old, new = merkle.root_of(leaves[:m]), merkle.root_of(leaves)
    path = HashTree(leaves).consistency_path(m)
    assert merkle.verify_consistency(m, n, path, old, new)
    assert not merkle.verify_consistency(m, n, path, new, old)
    assert not merkle.verify_consistency(m, n, [], old, new)
    assert not merkle.verify_consistency(m, n, path[:-1], old, new)
    assert not merkle.verify_consistency(m, n, [*path, new], old, new)
    assert not merkle.verify_consistency(m, n, [old, *path], old, new)
    at = data.draw(st.integers(0, len(path) - 1))
    flipped = bytes([path[at][0] ^ 1]) + path[at][1:]
    assert not merkle.verify_consistency(m, n, [*path[:at], flipped, *path[at + 1 :]], old, new)


def test_a_rewritten_history_is_not_consistent() -> None:
    leaves = numbered(9)
    forked = [merkle.leaf_hash(b"forged"), *leaves[1:]]
    old = merkle.root_of(leaves[:4])
    path = HashTree(forked).consistency_path(4)
    assert not merkle.verify_consistency(4, 9, path, old, merkle.root_of(forked))


def test_consistency_with_the_empty_tree_and_with_itself() -> None:
    root = merkle.root_of(LEAVES)
    assert merkle.verify_consistency(0, 8, [], merkle.EMPTY_ROOT, root)
    assert not merkle.verify_consistency(0, 8, [], ROOTS[1], root)
    assert not merkle.verify_consistency(0, 8, [root], merkle.EMPTY_ROOT, root)
    assert not merkle.verify_consistency(0, 0, [], merkle.EMPTY_ROOT, root)
    assert merkle.verify_consistency(8, 8, [], root, root)
    assert not merkle.verify_consistency(8, 8, [], root, ROOTS[7])
    assert not merkle.verify_consistency(8, 8, [root], root, root)
    assert not merkle.verify_consistency(8, 7, [], root, ROOTS[7])


@BOTH
@pytest.mark.parametrize(("index", "size"), [(-1, 8), (8, 8), (0, 9), (0, 0)])
def test_inclusion_outside_the_tree_is_an_error(
    kind: type[HashTree | MerkleTree], index: int, size: int
) -> None:
    with pytest.raises(EncodingError):
        kind(LEAVES).inclusion_path(index, size)


@BOTH
@pytest.mark.parametrize(("m", "n"), [(-1, 8), (5, 4), (0, 9)])
def test_consistency_outside_the_tree_is_an_error(kind: type[HashTree | MerkleTree], m: int, n: int) -> None:
    with pytest.raises(EncodingError):
        kind(LEAVES).consistency_path(m, n)


@BOTH
def test_a_leaf_that_is_not_a_hash_is_an_error(kind: type[HashTree | MerkleTree]) -> None:
    with pytest.raises(EncodingError):
        kind([b"short"])


@settings(deadline=None)
@given(st.integers(1, 300), st.data())
def test_the_providers_tree_and_the_verifiers_agree(n: int, data: st.DataObject) -> None:
    leaves = [merkle.leaf_hash(data.draw(st.binary(max_size=4))) for _ in range(n)]
    ours, theirs = HashTree(leaves), MerkleTree(leaves)
    size = data.draw(st.integers(0, n))
    m = data.draw(st.integers(0, size))
    assert ours.root(size) == theirs.root(size)
    assert ours.consistency_path(m, size) == theirs.consistency_path(m, size)
    if m < size:
        assert ours.inclusion_path(m, size) == theirs.inclusion_path(m, size)


def same_or_refused(ours: HashTree, theirs: HashTree, what: str, *args: int) -> bool:
    """Whether a tree gives what a whole one gives; else it has to refuse."""
    try:
        result = getattr(ours, what)(*args)
    except EncodingError:
        return False
    assert result == getattr(theirs, what)(*args)
    return True


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 21, 33])
def test_a_tree_without_its_first_leaves_says_what_the_whole_one_says(n: int) -> None:
    """Of what lies behind them. Of these leaves it says the same or nothing."""
    leaves = numbered(n)
    whole = HashTree(leaves)
    for b in range(n + 1):
        later = HashTree(leaves[b:], whole.peaks(b))
        assert later.size == n
        for size in range(n + 1):
            assert same_or_refused(later, whole, "root", size) or size < b
            assert same_or_refused(later, whole, "peaks", size) or size < b
            for at in range(size):
                assert same_or_refused(later, whole, "inclusion_path", at, size) or at < b
                assert same_or_refused(later, whole, "leaf", at) or at < b
            for m in range(size + 1):
                assert same_or_refused(later, whole, "consistency_path", m, size) or m < b


@pytest.mark.parametrize("before", [0, 1, 65_535, 65_536, 99_999, 100_000])
def test_a_hundred_thousand_leaves_of_which_some_are_not_at_hand(before: int) -> None:
    leaves = numbered(100_000)
    whole = HashTree(leaves)
    later = HashTree(leaves[before:], whole.peaks(before))
    assert later.root() == whole.root() and later.peaks(100_000) == whole.peaks(100_000)
    assert later.consistency_path(before) == whole.consistency_path(before)
    if before < 100_000:
        assert later.inclusion_path(before) == whole.inclusion_path(before)
        assert later.inclusion_path(99_999) == whole.inclusion_path(99_999)


@pytest.mark.parametrize(
    ("size", "roots"),
    [(-1, ()), (0, (bytes(32),)), (1, ()), (3, (bytes(32),)), (4, (bytes(32), bytes(32))), (1, (bytes(31),))],
)
def test_peaks_that_no_tree_has_are_refused(size: int, roots: tuple[bytes, ...]) -> None:
    with pytest.raises(EncodingError):
        Peaks(size, roots)
