"""Columns that are drawn from the seed, committed to, and proved: a slot's noise or coins (docs/scan/noise.md,
docs/scan/coins.md), and the kept positions of a sampled tenant.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import COINS_PROTOCOL, ScanKey
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic, NoiseCertificate
from rag_audit.proofs.statements.tenant import KeptCommitment, SlotPublic
from rag_audit.relation.field import to_bytes


def certify(
    draw: Callable[[bytes], tuple[bytes, bytes, bytes]],
    seed: tuple[int, int],
    *,
    positions: int,
    gains: Sequence[int],
    what: str,
    low_memory: bool,
) -> tuple[bytes, bytes, bytes]:
    """The certificate of one drawn column: proof, commitments to its rows, 32 bytes each, and their secret blindings.

    :param draw: makes it of the seed's two halves, 32 bytes each
    :param gains: the draws of a position
    :param what: the name of the work, for errors
    :raises WitnessError: the seed is not that of `c_seed`, or a word cannot be proved (one in 2^94)
    :raises MemoryLimitError: the machine cannot hold the work
    """
    memory.require_proof(
        lambda low: memory.certificate_bytes(positions, gains, low_memory=low), what, low_memory=low_memory
    )
    try:
        return draw(b"".join(map(to_bytes, seed)))
    except ValueError as exc:
        slot = " for this slot" if what == NOISE else ""
        raise WitnessError(f"there is no {what}{slot}", field="slot", found=str(exc)) from exc


NOISE = "noise certificate"
COINS = "certificate of this slot's coins"


@dataclass(frozen=True)
class CertificateJob:
    """The job that makes the certificate of one slot's column: its noise, or a listing tenant's coins. It is picklable,
    and holds the seed, which `repr` omits.

    :param key: the tenant's key
    :param c_seed: commitment to the seed
    :param beacon: f(beacon value)
    :param slot: the slot
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param low_memory: whether to take less memory and more time for the same certificate
    """

    key: ScanKey
    c_seed: int
    beacon: int
    slot: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False

    @classmethod
    def of(cls, key: ScanKey, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool) -> CertificateJob:
        """The job for a slot's public values."""
        return cls(key, slot.c_seed, slot.beacon, slot.slot, s0, s1, low_memory)

    def run(self) -> NoiseCertificate:
        """The column's certificate.

        :raises WitnessError: the seed is not that of `c_seed`, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine cannot hold the work
        """
        key, low = self.key, self.low_memory
        slot = b"".join(map(to_bytes, (self.c_seed, self.beacon, self.slot)))

        def draw(seed: bytes) -> tuple[bytes, bytes, bytes]:
            if key.chance is None:
                return _native.scan_certify(key.index, key.parameters, slot, seed, low)
            return _native.scan_coins_certify(key.capacity, key.coins_context, slot, seed, key.chance, low)

        what, gains = (NOISE, key.gains) if key.chance is None else (COINS, (1,))
        made = certify(
            draw, (self.s0, self.s1), positions=key.capacity, gains=gains, what=what, low_memory=low
        )
        return NoiseCertificate(*made)


@dataclass(frozen=True)
class KeptJob:
    """The job that commits to the kept positions and proves them. It is picklable, and holds the seed, which `repr`
    omits.

    :param context: 32 bytes that bind the proof to window, tenant and protocol
    :param slot: c_seed, f(beacon) and the tenant's sampling slot, 32 bytes each
    :param keep: Pi, over 2^40
    :param low_memory: as for `CertificateJob`
    """

    capacity: int
    context: bytes
    slot: bytes
    keep: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False
    keys: ClassVar[dict[str, str]] = {}

    @classmethod
    def of(cls, kept: KeptPublic, s0: int, s1: int, *, low_memory: bool) -> KeptJob:
        """The job for a tenant's public values."""
        capacity = kept.tenant.constants.capacity
        return cls(capacity, context_of(kept), slot_of(kept), kept.keep, s0, s1, low_memory)

    def run(self) -> KeptColumn:
        """The commitment with its proof and its blindings.

        :raises WitnessError: the seed is not that of `c_seed`, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine cannot hold the work
        """

        def draw(seed: bytes) -> tuple[bytes, bytes, bytes]:
            return _native.scan_coins_certify(
                self.capacity, self.context, self.slot, seed, self.keep, self.low_memory
            )

        proof, rows, blindings = certify(
            draw,
            (self.s0, self.s1),
            positions=self.capacity,
            gains=(1,),
            what="proof of the kept positions",
            low_memory=self.low_memory,
        )
        value: dict[str, Json] = {
            "system": "scan",
            "protocol": COINS_PROTOCOL,
            "proof": base64.b64encode(proof).decode(),
        }
        return KeptColumn(KeptCommitment(kept_digest(rows, self.capacity), rows), value, blindings)


def context_of(kept: KeptPublic) -> bytes:
    """The bytes that bind a proof to window, tenant and protocol."""
    return sha256(b"rag-audit/scan/kept-context/v1" + kept.context + bytes.fromhex(COINS_PROTOCOL))


def slot_of(slot: SlotPublic) -> bytes:
    """c_seed, f(beacon) and the slot, 32 bytes each."""
    return b"".join(map(to_bytes, (slot.c_seed, slot.beacon, slot.slot)))


def rows_digest(domain: bytes, capacity: int, rows: bytes) -> str:
    """The digest that a ledger gets of a column's row commitments: SHA-256 over domain, capacity and rows, 64
    hexadecimal digits."""
    named: Json = {"capacity": capacity, "rows": base64.b64encode(rows).decode()}
    return sha256(domain + jcs(named)).hex()


def kept_digest(rows: bytes, capacity: int) -> str:
    """`rows_digest` of kept positions."""
    return rows_digest(b"rag-audit/scan/kept/v1", capacity, rows)


def open_kept(
    kept: KeptPublic,
    digest: str,
    value: Json,
    *,
    field: str,
    decides: Engine,
) -> KeptCommitment:
    """The commitment that the ledger names, if the proof from a file holds and is of it.

    :param decides: the verifier
    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    :raises InvalidProof: the proof does not hold, or is of another commitment
    """
    [proof] = parse_parts(value, ("proof",), COINS_PROTOCOL, what="a proof of kept positions", field=field)
    capacity = kept.tenant.constants.capacity
    try:
        rows = decides.kept_rows(capacity, context_of(kept), slot_of(kept), kept.keep, proof)
    except ValueError as exc:
        raise refused(exc) from exc
    if (found := kept_digest(rows, capacity)) != digest:
        raise InvalidProof("the proof is of another commitment", field=field, expected=digest, found=found)
    return KeptCommitment(digest, rows)
