"""drand chains: verification of a round's BLS12-381 signature under a pinned key (https://docs.drand.love).

Hashing to the curves and the encodings of points are RFC 9380's and the ZCash form, by the native core.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from rag_audit import _native
from rag_audit._internal.errors import EncodingError, VersionError

SCHEME_QUICKNET = "bls-unchained-g1-rfc9380"
SCHEME_CHAINED = "pedersen-bls-chained"
MAX_ROUND = 2**53 - 1


@dataclass(frozen=True)
class DrandChain:
    """A drand chain as a relying party pins it.

    :param hash: the chain's hash, 32 bytes
    :param public_key: compressed point: 96 bytes (G2) for quicknet's scheme, 48 (G1) for the chained one
    :param scheme: `SCHEME_QUICKNET` or `SCHEME_CHAINED`
    :param genesis: POSIX seconds of round 1
    :param period: seconds from one round to the next
    """

    hash: bytes
    public_key: bytes
    scheme: str
    genesis: int
    period: int

    def round_time(self, number: int) -> int:
        """The due time of round `number` (from 1), in POSIX seconds."""
        if not 1 <= number <= MAX_ROUND:
            raise EncodingError(
                "the number is not the number of a drand round",
                field="round",
                expected="1..2^53-1",
                actual=str(number),
            )
        return self.genesis + (number - 1) * self.period

    def signed(self, number: int, signature: bytes, previous: bytes = b"", *, field: str = "drand") -> bool:
        """Whether `signature` is the chain's on round `number`.

        :param previous: for the chained scheme the signature of the round before, else empty
        :raises EncodingError: the signature or the key is not a compressed point of prime order
        :raises VersionError: the scheme is unknown
        """
        message = hashlib.sha256(previous + number.to_bytes(8, "big")).digest()
        if self.scheme == SCHEME_QUICKNET:
            signed = _native.bls_signed_in_g1
        elif self.scheme == SCHEME_CHAINED:
            signed = _native.bls_signed_in_g2
        else:
            raise VersionError(
                "the drand scheme is unknown",
                field=field,
                expected=f"{SCHEME_QUICKNET} or {SCHEME_CHAINED}",
                actual=self.scheme,
            )
        try:
            return signed(self.public_key, message, signature)
        except ValueError as exc:
            place, _, actual = str(exc).partition(": ")
            raise EncodingError(
                "not a compressed BLS12-381 point",
                field="drand public key" if place == "public key" else field,
                actual=actual,
            ) from exc


QUICKNET = DrandChain(
    hash=bytes.fromhex("52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"),
    public_key=bytes.fromhex(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
        "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    scheme=SCHEME_QUICKNET,
    genesis=1692803367,
    period=3,
)
"""The League of Entropy's unchained network (drand.love, "quicknet")."""

DEFAULT_CHAIN = DrandChain(
    hash=bytes.fromhex("8990e7a9aaed2ffed73dbd7092123d6f289930540d7651336225dc172e51b2ce"),
    public_key=bytes.fromhex(
        "868f005eb8e6e4ca0a47c8a77ceaa5309a47978a7c71bc5cce96366b5d7a569937c529eeda66c7293784a9402801af31"
    ),
    scheme=SCHEME_CHAINED,
    genesis=1595431050,
    period=30,
)
"""The League of Entropy's first network."""
