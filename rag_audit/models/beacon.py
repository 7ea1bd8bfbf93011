"""Beacon values: public randomness that was unpredictable when the provider committed to its seed.

There are two sources (docs/protocol.md, "Phases"). Either witnesses commit to nonces before the window header is
written, and all the named witnesses reveal their nonces, signed, over the cosigned root that contains the entry; or the
value is one round of one pinned drand chain. This module only verifies.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag_audit._internal.canonical import parse_base64, parse_hex
from rag_audit._internal.errors import EncodingError, InvalidProof, SchemaError, SignatureError, VersionError
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519, VerifierKey
from rag_audit.log.note import parse_note, verify_note
from rag_audit.models.drand import SCHEME_CHAINED, DrandChain
from rag_audit.models.records import DrandBeacon, WitnessBeacon, log_origin

HEADER = "rag-audit/beacon/v1"
NONCE_SIZE = 32
DRAND_LEAD_SECONDS = 60
"""The least seconds from the quorum of cosignatures to the drand round."""
_COMMIT_DOMAIN = b"rag-audit/beacon-commit/v1"


def nonce_commitment(nonce: bytes) -> bytes:
    """A witness's commitment before the window header: SHA-256("rag-audit/beacon-commit/v1" || nonce)."""
    return hashlib.sha256(_COMMIT_DOMAIN + nonce).digest()


@dataclass(frozen=True)
class BeaconMember:
    """A witness that an entry names as part of its beacon.

    :param vkey: the witness's cosignature key
    :param commitment: `nonce_commitment` of its nonce, 32 bytes
    """

    vkey: VerifierKey
    commitment: bytes


def members_of(source: WitnessBeacon, *, field: str = "beacon") -> tuple[BeaconMember, ...]:
    """The witnesses that an entry's ``beacon`` field names.

    :raises SchemaError: a key is not the named witness's cosignature key, or a name, key or commitment occurs twice
    """
    members = []
    for i, w in enumerate(source.witnesses):
        vkey = VerifierKey.parse(w.vkey, field=f"{field}.witnesses[{i}].vkey")
        if vkey.name != w.name or vkey.algorithm != ALG_COSIGNATURE:
            raise SchemaError(
                "the key is not the named witness's cosignature key",
                field=f"{field}.witnesses[{i}]",
                actual=w.vkey,
            )
        members.append(BeaconMember(vkey, bytes.fromhex(w.commitment)))
    for what, values in (
        ("name", {m.vkey.name for m in members}),
        ("key", {m.vkey.public for m in members}),
        ("commitment", {m.commitment for m in members}),
    ):
        if len(values) != len(members):
            raise SchemaError(f"a witness {what} occurs twice in a beacon", field=f"{field}.witnesses")
    return tuple(members)


@dataclass(frozen=True)
class Reveal:
    """The note that a witness signs when it reveals its nonce.

    :param origin: the provider's origin; with the window's id it gives the origin line of the window's log
    :param window: the window's id
    :param size: size of the cosigned checkpoint over which the nonce is revealed; `root` (32 bytes) is its root
    :param nonce: 32 bytes
    :param ts: milliseconds since the epoch
    """

    origin: str
    window: str
    size: int
    root: bytes
    nonce: bytes
    ts: int

    @property
    def text(self) -> str:
        """The note's seven lines."""
        head = Checkpoint(self.origin, self.size, self.root)
        return (
            f"{HEADER}\n{self.origin}\n{self.window}\n{self.size}\n"
            f"{base64.b64encode(head.root).decode()}\n{self.nonce.hex()}\n{self.ts}\n"
        )

    @classmethod
    def parse(cls, text: str, *, field: str = "beacon note") -> Reveal:
        """Read a reveal from a note's text; `witness_beacon` verifies who signed it.

        :raises VersionError: the note is of another kind or version
        :raises EncodingError: a line is missing or not canonical
        """
        lines = text.split("\n")
        if lines[0] != HEADER:
            raise VersionError("the note is not a beacon note", field=field, expected=HEADER, actual=lines[0])
        if len(lines) != 8:
            raise EncodingError(
                "the beacon note has the wrong number of lines",
                field=field,
                expected="7",
                actual=f"{len(lines) - 1}",
            )
        origin, window, size, root, nonce, ts = lines[1:7]
        for name, number in (("size", size), ("ts", ts)):
            if not number.isascii() or not number.isdigit() or str(int(number[:20])) != number:
                raise EncodingError("not a canonical number", field=f"{field}, {name}", actual=number[:40])
        reveal = cls(
            origin,
            window,
            int(size),
            parse_base64(root, field=f"{field}, root"),
            parse_hex(nonce, NONCE_SIZE, field=f"{field}, nonce"),
            int(ts),
        )
        if reveal.text != text:
            raise EncodingError("the beacon note is not canonical", field=field)
        return reveal


def combine(nonces: dict[str, bytes], root: bytes) -> bytes:
    """The beacon value: SHA-256(domain || name and nonce of each witness || root).

    Names (UTF-8, sorted by their bytes) and nonces are each preceded by their length in 4 bytes, big-endian; the
    domain is "rag-audit/beacon/v1".
    """
    out = hashlib.sha256(HEADER.encode())
    for name, nonce in sorted((name.encode(), nonce) for name, nonce in nonces.items()):
        for part in (name, nonce):
            out.update(len(part).to_bytes(4, "big") + part)
    out.update(root)
    return out.digest()


def witness_beacon(
    source: WitnessBeacon,
    notes: Sequence[str],
    signed: SignedCheckpoint,
    *,
    trusted: Collection[VerifierKey],
    quorum: int,
    window: str,
    field: str = "beacon",
) -> tuple[bytes, int]:
    """Verify the reveals of a witness beacon and compute its value.

    :param source: the beacon source that the window header or enrolment names
    :param notes: the signed reveals, in any order
    :param signed: the cosigned checkpoint that contains the entry (size 1 for a window header)
    :param trusted: the cosignature keys that the relying party accepts; it must be exactly the named set
    :param quorum: how many of `signed`'s cosignatures make it published
    :returns: the value, 32 bytes, and the time of the last reveal in ms
    :raises SignatureError: there is no quorum, a witness is not trusted, or a reveal is not signed by its witness
    :raises InvalidProof: a reveal is missing, repeated, over another root or window, does not open its
        commitment, or is older than the quorum
    """
    members = members_of(source, field=field)
    named = {m.vkey for m in members}
    if named != set(trusted):
        raise SignatureError(
            "the beacon's witnesses differ from the trusted witnesses",
            field="trust.toml: beacon.witnesses",
            expected=", ".join(sorted(k.name for k in trusted)),
            actual=", ".join(sorted(k.name for k in named)),
        )
    not_before = 1000 * signed.quorum_time(quorum)
    by_signer = {m.vkey.with_algorithm(ALG_ED25519): m for m in members}
    reveals: dict[str, Reveal] = {}
    for i, text in enumerate(notes):
        place = f"{field}.notes[{i}]"
        note = parse_note(text, field=place)
        signers = verify_note(note, by_signer.keys(), field=place)
        if len(signers) != 1:
            raise SignatureError("a beacon note must have exactly one signer", field=place)
        member = by_signer[signers[0].key]
        reveal = Reveal.parse(note.text, field=place)
        if member.vkey.name in reveals:
            raise InvalidProof("a witness revealed twice", field=place, actual=member.vkey.name)
        _check_reveal(reveal, member, window, signed.checkpoint, not_before, place)
        reveals[member.vkey.name] = reveal
    if missing := sorted({m.vkey.name for m in members} - reveals.keys()):
        raise InvalidProof(
            "the beacon is incomplete: the window is void", field=field, expected=", ".join(missing)
        )
    value = combine({name: r.nonce for name, r in reveals.items()}, signed.checkpoint.root)
    return value, max(r.ts for r in reveals.values())


def _check_reveal(
    reveal: Reveal, member: BeaconMember, window: str, head: Checkpoint, not_before: int, field: str
) -> None:
    for name, expected, actual in (
        ("window", window, reveal.window),
        ("origin", head.origin, log_origin(reveal.origin, reveal.window)),
        ("size", head.size, reveal.size),
        ("root", head.root, reveal.root),
    ):
        if expected != actual:
            raise InvalidProof(
                "the beacon note covers another checkpoint",
                field=f"{field}, {name}",
                expected=expected,
                actual=actual,
            )
    if nonce_commitment(reveal.nonce) != member.commitment:
        raise InvalidProof("the nonce does not open its commitment", field=field, actual=member.vkey.name)
    if reveal.ts < not_before:
        raise InvalidProof(
            "the nonce was revealed before the quorum was complete",
            field=field,
            expected=f">= {not_before} ms",
            actual=f"{reveal.ts} ms",
        )


def drand_beacon(
    source: DrandBeacon,
    notes: Sequence[str],
    signed: SignedCheckpoint,
    *,
    chain: DrandChain,
    quorum: int,
    field: str = "beacon",
) -> tuple[bytes, int]:
    """Verify the drand round that an entry names, and compute its value, SHA-256(signature).

    :param notes: the round's signature in hexadecimal, and for the chained scheme also the previous round's signature
    :param signed: the cosigned checkpoint that contains the entry
    :param chain: the chain that the relying party pins
    :returns: the value, 32 bytes, and the time when the round was due in ms
    :raises InvalidProof: the chain is not the pinned one, the signature does not belong to the round, or the round was
        due less than 60 s after the quorum
    :raises SignatureError: there is no quorum
    :raises EncodingError: a point is not canonical, or not in the right group
    :raises VersionError: the scheme is unknown
    """
    if source.chain != chain.hash.hex():
        raise InvalidProof(
            "the drand chain differs from the pinned chain",
            field="trust.toml: beacon.drand",
            expected=chain.hash.hex(),
            actual=source.chain,
        )
    due = chain.round_time(source.round)
    earliest = signed.quorum_time(quorum) + DRAND_LEAD_SECONDS
    if due < earliest:
        raise InvalidProof(
            "the drand round was due too soon after the quorum",
            field=field,
            expected=f"due from {earliest} s on",
            actual=f"round {source.round} at {due} s",
        )
    expected = 2 if chain.scheme == SCHEME_CHAINED else 1
    if len(notes) != expected:
        raise SchemaError(
            "the number of drand signatures is wrong", field=f"{field}.notes", expected=str(expected)
        )
    signature, *before = (_hex_bytes(n, f"{field}.notes[{i}]") for i, n in enumerate(notes))
    if not chain.signed(source.round, signature, b"".join(before), field=field):
        raise InvalidProof(
            "the signature is not a signature of the drand chain on this round",
            field=field,
            actual=f"round {source.round}",
        )
    return hashlib.sha256(signature).digest(), 1000 * due


def _hex_bytes(text: str, field: str) -> bytes:
    return parse_hex(text, len(text) // 2, field=field)
