"""Ed25519 in a page accepts what OpenSSL accepts, on keys and signatures that implementations differ about."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rag_audit import _native
from rag_audit.log.merkle import HashTree
from rag_audit.report.browser.inside import native, signatures
from tests import openssl

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]
IDENTITY = (0, 1)

pytestmark = [pytest.mark.page, pytest.mark.usefixtures("process")]


def add(a: Point, b: Point) -> Point:
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P


def times(k: int, point: Point) -> Point:
    total = IDENTITY
    while k:
        if k & 1:
            total = add(total, point)
        point, k = add(point, point), k >> 1
    return total


def encode(point: Point, *, sign: int | None = None, more: int = 0) -> bytes:
    x, y = point
    return (y + more * P | ((x & 1) if sign is None else sign) << 255).to_bytes(32, "little")


def decode(data: bytes) -> Point:
    number = int.from_bytes(data, "little")
    y, sign = (number & (1 << 255) - 1) % P, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (x if x & 1 == sign else -x % P), y


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
EIGHTH = decode(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
"""A point of order 8."""
SMALL = [times(k, EIGHTH) for k in range(8)]


def hashed(r: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % ORDER


def page(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        signatures.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (signatures.InvalidSignature, ValueError):
        return False
    return True


def compare(cases: list[tuple[bytes, bytes, bytes]]) -> list[bool]:
    result = [page(*case) for case in cases]
    assert result == [openssl.accepts(*case) for case in cases]
    return result


def test_the_points_are_those_that_they_should_be() -> None:
    assert times(ORDER, BASE) == IDENTITY
    assert times(4, EIGHTH) != IDENTITY and times(8, EIGHTH) == IDENTITY


def test_signatures_and_changes_of_each_part() -> None:
    cases = []
    for n in range(4):
        secret = Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32)
        key, message = secret.public_key().public_bytes_raw(), bytes(range(n * 40))
        signature = secret.sign(message)
        cases.append((key, signature, message))
        for at in (0, 1, 31, 32, 47, 63):
            changed = bytearray(signature)
            changed[at] ^= 1 << n
            cases.append((key, bytes(changed), message))
        cases += [
            (key, signature, message + b"."),
            (key, signature[:-1], message),
            (key, signature + b"\0", message),
        ]
        cases += [(key[:-1], signature, message), (key[:-1] + bytes([key[-1] ^ 0x80]), signature, message)]
        s = int.from_bytes(signature[32:], "little")
        cases += [
            (key, signature[:32] + (s + k * ORDER).to_bytes(32, "little"), message) for k in (1, 2, 7, 15)
        ]
    assert sum(compare(cases)) == 4


def test_keys_and_first_halves_of_small_order() -> None:
    """With S = 0 a key of small order signs whatever hashes to a multiple of it: who takes such keys takes these
    too."""
    result, zero = [], bytes(32)
    for (a, r), n in itertools.product(itertools.product(SMALL, SMALL), range(8)):
        key, first, message = encode(a), encode(r), bytes([n])
        holds = times(hashed(first, key, message) % 8, a) == ((-r[0]) % P, r[1])
        case = (key, first + zero, message)
        assert page(*case) == openssl.accepts(*case) == holds
        result.append(holds)
    assert any(result) and not all(result)


def test_points_of_mixed_order_are_not_cleared_of_their_cofactor() -> None:
    secret, nonce, outcomes = 1234567, 7654321, set()
    for k, n in itertools.product(range(8), range(6)):
        key = encode(add(times(secret, BASE), SMALL[k]))
        first = encode(times(nonce, BASE))
        message = bytes([n])
        s = (nonce + hashed(first, key, message) * secret) % ORDER
        case = (key, first + s.to_bytes(32, "little"), message)
        outcomes |= {page(*case)}
        assert page(*case) == openssl.accepts(*case)
    assert outcomes == {True, False}


def test_encodings_that_are_not_reduced() -> None:
    """y is below 2^255 and may be y + p for small y; the sign of x = 0 may be set."""
    loose = [encode((0, y), sign=sign, more=1) for y in range(19) for sign in (0, 1)]
    loose += [encode(IDENTITY, sign=1), encode((0, P - 1), sign=1), b"\xff" * 32]
    tight = [encode(point) for point in SMALL]
    cases = []
    for key, first, n in itertools.product(loose + tight, loose[::2] + tight, range(1)):
        cases.append((key, first + bytes(32), bytes([n])))
    result = compare(cases)
    assert any(result) and not all(result)
    with_loose_key = [ok for ok, (key, _, _) in zip(result, cases, strict=True) if key in loose]
    with_loose_first = [
        ok for ok, (_, signature, _) in zip(result, cases, strict=True) if signature[:32] in loose
    ]
    assert any(with_loose_key) and not any(with_loose_first)


def test_hashes_are_the_native_ones() -> None:
    elements = [i.to_bytes(32, "big") for i in range(1, 40)]
    for count in (1, 2, 15, 16):
        assert native.poseidon_hash(b"".join(elements[:count])) == _native.poseidon_hash(
            b"".join(elements[:count])
        )
    for count in (0, 1, 15, 16, 39):
        given = b"".join(elements[:count])
        assert native.poseidon_hash_list(4, given) == _native.poseidon_hash_list(4, given)
    for wrong in (b"", b"\xff" * 32, b"\0" * 31, b"\0" * 17 * 32):
        with pytest.raises(ValueError) as here:
            native.poseidon_hash(wrong)
        with pytest.raises(ValueError) as there:
            _native.poseidon_hash(wrong)
        assert str(here.value) == str(there.value)


def test_what_requests_and_receipts_ask_for_has_stand_ins() -> None:
    one = (3).to_bytes(32, "big")
    start = _native.poseidon_hash(one)
    lists = [(start, b""), (start, one), (start, one * 32), (start, one * 15)]
    assert native.poseidon_absorb(lists) == _native.poseidon_absorb(lists)
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(7)]
    tree = _native.GrowingTree()
    tree.extend(b"".join(leaves))
    for i, size in itertools.product(range(7), range(1, 8)):
        for path in (leaves[:2], tree.inclusion_path(min(i, size - 1), size)):
            if i < size:
                assert native.path_root(leaves[i], i, size, path) == _native.path_root(
                    leaves[i], i, size, path
                )
    for module in (native, _native):
        with pytest.raises(ValueError):
            module.path_root(leaves[0], 0, 2, [b"short"])
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"m")
    for message in (b"m", b"n"):
        assert native.ed25519_verifies(public, message, signature) == (message == b"m")


def test_trees_and_lists_are_the_native_ones() -> None:
    leaves = [hashlib.sha256(bytes([n])).digest() for n in range(13)]
    tree = HashTree(leaves)
    for size in range(1, 14):
        for index in range(size):
            path = tree.inclusion_path(index, size)
            for given in (path, path[:-1], [*path, leaves[0]], path[::-1]):
                requested = (leaves[index], index, size, given)
                assert native.path_root(*requested) == _native.path_root(*requested), requested
            assert native.path_root(leaves[index], index, size, path) == tree.root(size)
    elements = b"".join(n.to_bytes(32, "big") for n in range(1, 40))
    lists = [(elements[:32], elements[: 32 * count]) for count in (0, 1, 15, 16, 39)]
    assert native.poseidon_absorb(lists) == _native.poseidon_absorb(lists)
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    for message in (b"", b"m"):
        for signature in (key.sign(message), key.sign(b"other"), bytes(64)):
            requested = (key.public_key().public_bytes_raw(), message, signature)
            assert native.ed25519_verifies(*requested) == _native.ed25519_verifies(*requested)
