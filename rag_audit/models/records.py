"""Ledger entries, and the parts of receipts (docs/protocol.md, "Records and ledger").

Entry 0 is the window header, entry 1 its beacon; queries and enrolments follow; the window trailer is last. Every entry
is RFC 8785 JSON of at most 65,535 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import EncodingError, SchemaError, SizeError, VersionError
from rag_audit.log.keys import signed_by
from rag_audit.log.tlog_proof import MAX_PROOF_BYTES
from rag_audit.mechanisms import COLUMNS
from rag_audit.models.models import (
    Count,
    FieldHex,
    Hex32,
    Hex64,
    Identifier,
    Line,
    Millis,
    Model,
    One,
    Positive,
)

MAX_ENTRY_BYTES = 65_535
MAX_CHECKPOINT_BYTES = 16_384
"""Maximum bytes of a checkpoint with its cosignatures, in the form that a ledger stores."""
EMPTY_LEDGER = sha256(b"").hex()
"""The root of the empty ledger that a window header commits to."""


def log_origin(origin: str, window: str) -> str:
    """The origin line of a window's checkpoints: ``<origin>/<window>``.

    Each window starts a tree, and a C2SP log is one tree, so each window is a log of its own. A window's id has no
    slash, so two windows, or two origins, never share a line.
    """
    return f"{origin}/{window}"


class PreviousWindow(Model):
    """The window before this one in the provider's chain."""

    header: Hex32
    root: Hex32
    abandoned: Count
    """abandoned windows of this origin since the last complete one, the previous window included"""
    empty: Count
    """windows of this origin since the last complete one that were closed properly without a query, the previous
    window included"""


class BeaconWitness(Model):
    """A witness that contributes its committed nonce to the beacon."""

    name: Line
    vkey: Annotated[str, Field(min_length=1, max_length=512)]
    commitment: Hex32


class WitnessBeacon(Model):
    """The exact set of witnesses that contribute to the beacon value; all of their nonces must be revealed."""

    source: Literal["witnesses"]
    witnesses: Annotated[list[BeaconWitness], Field(min_length=1)]


class DrandBeacon(Model):
    """One round of one drand chain."""

    source: Literal["drand"]
    chain: Hex32
    round: Positive


BeaconSource: TypeAlias = Annotated[WitnessBeacon | DrandBeacon, Field(discriminator="source")]


class ListRoot(Model):
    """The RFC 6962 root over the canonical JSON of a list's items."""

    root: Hex32
    count: Count


class PreviousTable(Model):
    """The document table that a tenant's table continues: the table of the latest earlier window of the chain that has
    a `sample` entry of the tenant, whether or not the provider abandoned this window."""

    window: Identifier
    header: Hex32
    """digest of that window's header"""
    carried: Hex32
    """the digest in the field `carried` of that window's `sample` entry"""
    listed: Hex32 | None
    """for a tenant with pooled listing, `listed_rows` of its last record in that window; null if that window has no
    record of the tenant, and for other tenants"""


class TableEntry(Model):
    """The commitment to a tenant's document table."""

    c_table: Hex32
    """the commitment to the row of each position and to the name of each row"""
    previous: PreviousTable | None
    """null in the first window of a chain, and if each window draws the bits of all rows"""


class TenantEntry(Model):
    """The commitments for one tenant."""

    tenant: Identifier
    capacity: Positive
    c_idx: Hex32
    """groth16: a field element; scan: SHA-256 over the list of points"""
    c_docs: Hex32
    table: TableEntry | None
    """the document table; null without `documents` in the tenant's policy"""


class RosterEntry(Model):
    """One account: its tenant, its Ed25519 key, and the holder of that key."""

    account: Identifier
    tenant: Identifier
    key: Hex32
    custody: Literal["account", "provider"]


class WindowHeader(Model):
    """The window header, entry 0 of the ledger."""

    type: Literal["header"]
    v: One
    origin: Line
    window: Identifier
    opens_at: Millis
    closes_at: Millis
    previous: PreviousWindow | None
    beacon: BeaconSource
    c_emb: Hex32
    c_seed: FieldHex
    c_policy: Hex32
    roster: ListRoot
    tenants: ListRoot
    ledger: Hex32

    @property
    def log(self) -> str:
        """The origin line of this window's checkpoints (`log_origin`)."""
        return log_origin(self.origin, self.window)


class BeaconEntry(Model):
    """The beacon that an earlier entry (the window header, or an enrolment) named."""

    type: Literal["beacon"]
    v: One
    seq: Positive
    entry: Count
    """the ledger index of the window header or enrolment that named it"""
    source: Literal["witnesses", "drand"]
    value: Hex32
    notes: list[str]
    """the signed nonce reveals, or the round's signature in hexadecimal"""
    checkpoint: Annotated[str, Field(max_length=MAX_CHECKPOINT_BYTES)]
    """the cosigned checkpoint that contained the entry before the beacon was drawn"""


class Enrolment(Model):
    """An account added while the window is open; its slots use its own beacon."""

    type: Literal["enrolment"]
    v: One
    seq: Positive
    ts: Millis
    account: Identifier
    tenant: Identifier
    key: Hex32
    custody: Literal["account", "provider"]
    beacon: BeaconSource

    def roster_entry(self) -> RosterEntry:
        """The account as a roster line."""
        return RosterEntry(account=self.account, tenant=self.tenant, key=self.key, custody=self.custody)


class ColumnEntry(Model):
    """The commitment to a column of a tenant for the window, after entry 1 and before the tenant's first query."""

    type: Identifier
    """the column's name, one of `mechanisms.COLUMNS`"""
    v: One
    seq: Positive
    window: Identifier
    tenant: Identifier
    commitment: Hex32
    carried: Hex32 | None
    """with a document table, the digest of the columns that the next window's table continues; else null"""


class SampleEntry(ColumnEntry):
    """The commitment to a tenant's sample for the window, after entry 1 and before the tenant's first query."""

    type: Literal["sample"]


class QueryRecord(Model):
    """One answered query. hq, cq, htopk and hans are salted, since the ledger is public and queries are guessable."""

    type: Literal["query"]
    v: One
    window: Identifier
    seq: Positive
    account: Identifier
    tenant: Identifier
    i: Positive
    """the number of the account's query, which fixes the noise slot"""
    ts: Millis
    hq: FieldHex
    cq: FieldHex
    htopk: FieldHex
    hans: Hex32
    listed_rows: Hex32 | None
    """with pooled listing, the commitment to the tenant's listed rows after the record; null for other mechanisms"""
    sig: Hex64
    proof: Hex32 | None

    def context(self, header_digest: str) -> bytes:
        """The bytes that the proof's `ctx` input binds: the window and every field except `seq`, `ts` and `proof`.

        These are omitted because an eager proof is made before the record is appended; (account, i) names the record,
        and `verify` refuses a second record with the same pair.
        """
        body = {k: v for k, v in self.dump().items() if k not in ("seq", "ts", "proof")}
        return b"rag-audit/proof/v1" + jcs({"header": header_digest, "record": body})


@dataclass(frozen=True)
class SlotKey:
    """The slot of an account's i-th query in the window, i = 1, 2, .."""

    tenant: str
    account: str
    i: int

    def shifted(self, steps: int) -> SlotKey:
        """The slot of the account's query i + `steps`."""
        return SlotKey(self.tenant, self.account, self.i + steps)


class CoalitionEstimate(Model):
    """A window's declared estimate of repeated questions, without names (docs/estimator.md)."""

    c: Count
    """accounts of the largest cluster, over all tenants; 1 without clusters, 0 without records"""
    c_tenant: Count
    """maximum number of accounts of one cluster in one tenant"""
    theta: Annotated[list[Positive], Field(min_length=2, max_length=2)]
    tau: Count
    tau_unit: Literal["positions", "seconds"]
    coalition_proof: Hex32 | None
    """SHA-256 of the coalition proof; null where the estimate is only declared"""


class WindowTrailer(Model):
    """The window trailer, the last entry of the ledger."""

    type: Literal["trailer"]
    v: One
    seq: Positive
    ts: Millis
    window: Identifier
    queries: Count
    enrolments: Count
    coalition: CoalitionEstimate | None
    """the estimate; null if no estimator ran"""
    abandoned: bool


Entry: TypeAlias = WindowHeader | BeaconEntry | ColumnEntry | Enrolment | QueryRecord | WindowTrailer
_ENTRY_TYPES: dict[str, type[Entry]] = {
    "header": WindowHeader,
    "beacon": BeaconEntry,
    **dict.fromkeys(COLUMNS, ColumnEntry),
    "sample": SampleEntry,
    "enrolment": Enrolment,
    "query": QueryRecord,
    "trailer": WindowTrailer,
}


def parse_entry(value: Json, *, field: str) -> Entry:
    """Read a ledger entry from its JSON value.

    :raises SchemaError: the type is unknown, or a field is wrong
    :raises VersionError: this release does not know the version
    :raises SizeError: the entry is larger than 65,535 bytes
    """
    kind = value.get("type") if isinstance(value, dict) else value
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in _ENTRY_TYPES:
        raise SchemaError(
            "the type of a ledger entry is unknown",
            field=f"{field}.type",
            expected=sorted(_ENTRY_TYPES),
            actual=kind,
        )
    if value.get("v") != 1:
        raise VersionError(
            "the version of a ledger entry is unknown", field=f"{field}.v", expected=1, actual=value.get("v")
        )
    entry = _ENTRY_TYPES[kind].parse(value, field=field)
    if (size := len(jcs(value))) > MAX_ENTRY_BYTES:
        raise SizeError(
            "a ledger entry is too large",
            field=field,
            expected=f"<= {MAX_ENTRY_BYTES} bytes",
            actual=str(size),
        )
    return entry


class DocumentOpening(Model):
    """The opening of one selected position's digest under C_docs. An empty position opens to no bytes."""

    hash: Hex32
    """`document_digest` of the position's salt and bytes"""
    salt: Hex32 | None
    """null where a sampled tenant returns the position without a text, and its digest stays closed"""
    path: list[Hex32]


class ReceiptBody(Model):
    """The openings in a receipt's `extra` field (docs/protocol.md, "Receipts")."""

    v: One
    record: QueryRecord
    salt_k: FieldHex
    """opens htopk"""
    salt_a: Hex32
    """opens hans"""
    positions: list[Count]
    documents: list[DocumentOpening]


class SignedReceiptBody(Model):
    """The signed openings; `extra` is base64 of their canonical JSON."""

    body: ReceiptBody
    sig: Hex64


def request_message(origin: str, header: str, tenant: str, account: str, i: int, hq: str) -> bytes:
    """The bytes that an account signs: "rag-audit/request/v1" || JCS of the named fields."""
    body: Json = {
        "origin": origin, "header": header, "tenant": tenant, "account": account, "i": i, "hq": hq,
    }  # fmt: skip
    return b"rag-audit/request/v1" + jcs(body)


def receipt_message(origin: str, header: str, leaf: bytes, body: bytes) -> bytes:
    """The bytes that the provider signs on a receipt: the digest of the JCS of {body, header, leaf, origin}.

    :param body: canonical JSON of the openings, which can be hundreds; its key sorts first
    """
    rest = jcs({"leaf": leaf.hex(), "header": header, "origin": origin})
    return b"rag-audit/receipt/v1" + sha256(b'{"body":' + body + b"," + rest[1:])


class DisclosedQuery(Model):
    """The query text and the account's salt, which open hq and cq and let a verifier re-execute the embedder."""

    query: Annotated[str, Field(max_length=32_768)]
    salt: Hex32


class CountersignedReceipt(Model):
    """A receipt as an account hands it to a verifier, who learns the query only if the account discloses it."""

    type: Literal["receipt"]
    v: One
    account: Identifier
    receipt: Annotated[str, Field(max_length=MAX_PROOF_BYTES)]
    disclosed: DisclosedQuery | None
    sig: Hex64

    def message(self) -> bytes:
        """The bytes under the account's countersignature."""
        body = {k: v for k, v in self.dump().items() if k != "sig"}
        return b"rag-audit/countersign/v1" + sha256(jcs(body))


def document_digest(salt: bytes, document: bytes) -> bytes:
    """The C_docs leaf content of one position: SHA-256(salt_i || document); an empty position has no bytes."""
    return sha256(salt + document)


def answer_digest(salt_a: bytes, digests: list[bytes]) -> bytes:
    """hans: the salted digest of the answer, from the selected positions' document digests in htopk order."""
    return sha256(b"rag-audit/answer/v1" + salt_a + b"".join(digests))


def verifies(key: bytes, message: bytes, signature: str) -> bool:
    """Whether `signature` (128 hex digits) is a valid Ed25519 signature (RFC 8032) by the 32-byte public `key`."""
    if len(key) != 32:
        raise EncodingError("not an Ed25519 public key", actual=key.hex())
    return signed_by(key, message, bytes.fromhex(signature))
