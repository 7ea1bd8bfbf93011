"""The kept positions of a sampled tenant: their commitment, and the proof that they are coins (docs/scan/coins.md)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.key import COINS_PROTOCOL
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic
from rag_audit.proofs.statements.tenant import KeptCommitment, SlotPublic
from rag_audit.relation.field import to_bytes


@dataclass(frozen=True)
class KeptJob:
    """The job that commits to the kept positions and proves them. It is picklable, and holds the seed, which `repr`
    omits.

    :param context: 32 bytes that bind the proof to window, tenant and protocol
    :param slot: c_seed, f(beacon) and the tenant's sampling slot, 32 bytes each
    :param keep: Pi, over 2^40
    :param low_memory: as for `proofs.scan.job.CertificateJob`
    """

    capacity: int
    context: bytes
    slot: bytes
    keep: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False

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
        proof, rows, blindings = certify_coins(
            self.capacity, self.context, self.slot, self.keep, (self.s0, self.s1),
            what="proof of the kept positions", low_memory=self.low_memory,
        )  # fmt: skip
        value: dict[str, Json] = {
            "system": "scan",
            "protocol": COINS_PROTOCOL,
            "proof": base64.b64encode(proof).decode(),
        }
        return KeptColumn(KeptCommitment(kept_digest(rows, self.capacity), rows), value, blindings)


def context_of(kept: KeptPublic) -> bytes:
    """The bytes that bind a proof to window, tenant and protocol."""
    return sha256(b"rag-audit/scan/kept-context/v1" + kept.context + bytes.fromhex(COINS_PROTOCOL))


def certify_coins(
    capacity: int,
    context: bytes,
    slot: bytes,
    bound: int,
    seed: tuple[int, int],
    *,
    what: str,
    low_memory: bool,
) -> tuple[bytes, bytes, bytes]:
    """The certificate of a slot's coins: proof, commitments to the bits, 32 bytes a row, and their secret blindings.

    :param slot: c_seed, f(beacon) and the slot, 32 bytes each (`slot_of`)
    :param bound: the probability of 1, over 2^40
    :param seed: the seed's halves
    :param what: the name of the work, for errors
    :raises WitnessError: the seed is not that of `c_seed`, or a word cannot be proved (one in 2^94)
    :raises MemoryLimitError: the machine cannot hold the work
    """
    memory.require_proof(
        lambda low: memory.certificate_bytes(capacity, (1,), low_memory=low), what, low_memory=low_memory
    )
    halves = b"".join(map(to_bytes, seed))
    try:
        return _native.scan_coins_certify(capacity, context, slot, halves, bound, low_memory)
    except ValueError as exc:
        raise WitnessError(f"there is no {what}", field="slot", found=str(exc)) from exc


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
    rows_of: Callable[[int, bytes, bytes, int, bytes], bytes] = _native.scan_coins_verify,
) -> KeptCommitment:
    """The commitment that the ledger names, if the proof from a file holds and is of it.

    :param rows_of: what decides, the native core or the second verifier

    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    :raises InvalidProof: the proof does not hold, or is of another commitment
    """
    [proof] = parse_parts(value, ("proof",), COINS_PROTOCOL, what="a proof of kept positions", field=field)
    capacity = kept.tenant.constants.capacity
    try:
        rows = rows_of(capacity, context_of(kept), slot_of(kept), kept.keep, proof)
    except ValueError as exc:
        raise refused(exc) from exc
    if (found := kept_digest(rows, capacity)) != digest:
        raise InvalidProof("the proof is of another commitment", field=field, expected=digest, found=found)
    return KeptCommitment(digest, rows)
