"""Records of listing tenants by the scan argument: the slot's coins, the list, and what the account holds after it
(docs/scan/listing.md).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rag_audit import _native
from rag_audit._internal.canonical import Json, sha256
from rag_audit._internal.errors import EncodingError, InvalidProof, WitnessError
from rag_audit._internal.parts import joined, separated
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.job import RECORD
from rag_audit.proofs.backends.scan.kept import certify_coins, rows_digest, slot_of
from rag_audit.proofs.backends.scan.key import COINS_PROTOCOL, LISTING_PROTOCOL, ScanKey
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.batch import NativeBatch, Refusals, in_chunks
from rag_audit.proofs.statements.retrieve import ListedStatement
from rag_audit.proofs.statements.sample import NoiseCertificate
from rag_audit.proofs.statements.tenant import SlotPublic
from rag_audit.relation.field import MODULUS, digest_to_field, to_bytes

PARTS = ("certificate", "before", "after", "proof")
"""The base64 fields of a record's proof: the certificate of the slot's coins, the commitments to what the account held
before the record and holds after it, and the proof of the list."""


@dataclass(frozen=True)
class ChanceJob:
    """The job that makes the certificate of a slot's coins. It is picklable, and holds the seed, which `repr` omits.

    :param slot: c_seed, f(beacon) and the slot, 32 bytes each
    :param low_memory: as for `proofs.scan.job.CertificateJob`
    """

    key: ScanKey
    slot: bytes
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False

    @classmethod
    def of(cls, key: ScanKey, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool) -> ChanceJob:
        """The job for a slot's public values."""
        return cls(key, slot_of(slot), s0, s1, low_memory)

    def run(self) -> NoiseCertificate:
        """The certificate: proof, commitments to the bits, and their blindings.

        :raises WitnessError: the seed is not that of `c_seed`, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine cannot hold the work
        """
        made = certify_coins(
            self.key.capacity, coins_context(self.key), self.slot, _chance(self.key), (self.s0, self.s1),
            what="certificate of this slot's coins", low_memory=self.low_memory,
        )  # fmt: skip
        return NoiseCertificate(*made)


@dataclass(frozen=True)
class ListJob:
    """The job that proves one record. It is picklable, and holds secrets, which `repr` omits.

    :param certificate: that of the slot's coins, or the job that makes it
    :param chance: one byte 0 or 1 for each position, the slot's coins; `kept` and `held` (before the record) likewise
    :param kept_opening: blindings of the commitment to the kept positions
    :param before: the secret of the commitment before the record, None before the account's first
    :param after: the secret of the commitment after it
    :param scores: scores of all positions, int32 little-endian
    """

    key: ScanKey
    statement: ListedStatement
    certificate: NoiseCertificate | ChanceJob
    chance: bytes = field(repr=False)
    kept: bytes = field(repr=False)
    kept_opening: bytes = field(repr=False)
    held: bytes = field(repr=False)
    before: bytes | None = field(repr=False)
    after: bytes = field(repr=False)
    scores: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    blinding_key: bytes = field(repr=False)
    low_memory: bool = False

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, protocol, and `PARTS`.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises MemoryLimitError: the machine cannot hold the work
        """
        memory.require_proof(
            lambda low: memory.query_proof_bytes(self.key.capacity, low_memory=low),
            "proof of a list",
            low_memory=self.low_memory,
        )
        certificate = self.certificate
        if isinstance(certificate, ChanceJob):
            certificate = certificate.run()
        capacity = self.key.capacity
        rows, blindings = held_rows(capacity, self.held, self.before)
        statement = bound_to(self.statement, certificate.proof)
        try:
            proof, after = _native.scan_list_prove(
                self.key.index,
                constants_of(self.key),
                statement.encode(RECORD),
                (certificate.commitments, self.chance, certificate.blindings),
                (self.kept, self.kept_opening),
                (rows, self.held, blindings),
                held_blindings(capacity, self.after),
                self.scores,
                (self.vector, to_bytes(self.salt_c)),
                to_bytes(self.salt_k),
                self.blinding_key,
                self.low_memory,
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError("there is no proof for this record", field="record", found=str(exc)) from exc
        parts = (certificate.proof, rows, after, proof)
        encoded = {name: base64.b64encode(part).decode() for name, part in zip(PARTS, parts, strict=True)}
        return {"system": "scan", "protocol": LISTING_PROTOCOL, **encoded}


def constants_of(key: ScanKey) -> _native.ScanListing:
    """The tenant's constants in native form; a record's certificate of coins is verified in the same sum as its list.

    :raises EncodingError: a constant is out of range, or a commitment is no point
    """
    try:
        chance = (coins_context(key), _chance(key))
        return _native.ScanListing(key.window, key.kept or b"", key.hi, key.listed, chance)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the policy's constants are refused", field="listing", found=str(exc)) from exc


def coins_context(key: ScanKey) -> bytes:
    """The bytes that bind a certificate of coins to window, tenant and protocol."""
    return sha256(b"rag-audit/scan/chance-context/v1" + key.window + bytes.fromhex(COINS_PROTOCOL))


def bound_to(statement: ListedStatement, certificate: bytes) -> ListedStatement:
    """The statement whose context covers the certificate too, as the native argument leaves it to its caller."""
    ctx = sha256(b"rag-audit/scan/listed/v1" + to_bytes(statement.ctx) + sha256(certificate))
    return replace(statement, ctx=digest_to_field(ctx))


def held_rows(capacity: int, held: bytes, secret: bytes | None) -> tuple[bytes, bytes]:
    """The commitments to what an account holds, and their blindings; the public constant where it holds nothing yet.

    :param held: one byte 0 or 1 for each position
    :param secret: the record's own 32 bytes; None before the account's first record
    """
    if secret is None:
        rows = _native.scan_held_zero(capacity)
        return rows, to_bytes(1) * (len(rows) // 32)
    blindings = held_blindings(capacity, secret)
    return _native.scan_held_rows(capacity, held, blindings), blindings


def held_blindings(capacity: int, secret: bytes) -> bytes:
    """The blindings that follow from a record's secret, 32 bytes a row: SHA-512 of secret and number, modulo r."""
    rows = len(_native.scan_held_zero(capacity)) // 32
    out = b""
    for number in range(rows):
        wide = hashlib.sha512(b"rag-audit/held/v1" + secret + number.to_bytes(4, "big")).digest()
        out += to_bytes(int.from_bytes(wide, "big") % MODULUS)
    return out


def held_digest(capacity: int, rows: bytes) -> str:
    """What a record names: SHA-256 over capacity and row commitments, 64 hexadecimal digits."""
    return rows_digest(b"rag-audit/scan/held/v1", capacity, rows)


def parse_list_proof(value: Json, *, field: str) -> bytes:
    """Read a record's proof from a file's value, as `PARTS` with the length of each before it (4 bytes, big-endian).

    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    """
    return joined(parse_parts(value, PARTS, LISTING_PROTOCOL, what="a proof of a list", field=field))


def list_refusals(
    key: ScanKey,
    proofs: Sequence[bytes],
    statements: Sequence[ListedStatement],
    batch: NativeBatch[tuple[bytes, bytes, bytes, bytes, bytes]] | None = None,
) -> Refusals:
    """As `proofs.scan.verify.refusals`, for records of listing tenants."""
    zero = held_digest(key.capacity, _native.scan_held_zero(key.capacity))

    def record(i: int) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        statement = statements[i]
        certificate, before, after, proof = separated(proofs[i], len(PARTS), field="proof")
        if statement.c_idx != key.c_idx:
            raise InvalidProof(
                "the index is of another record", field="c_idx", expected=statement.c_idx, found=key.c_idx
            )
        for name, rows, expected in (
            ("before", before, statement.before or zero),
            ("after", after, statement.after),
        ):
            if (found := held_digest(key.capacity, rows)) != expected:
                raise InvalidProof(
                    "the account holds something else by the ledger",
                    field=name,
                    expected=expected,
                    found=found,
                )
        return bound_to(statement, certificate).encode(RECORD), certificate, before, after, proof

    if len(proofs) != len(statements):
        raise ValueError(f"{len(proofs)} proofs of {len(statements)} statements")
    decides = batch or _native.ScanListBatch(key.index, constants_of(key))
    return in_chunks(decides, len(proofs), record, refused)


def _chance(key: ScanKey) -> int:
    assert key.chance is not None  # as for every listing tenant
    return key.chance
