"""A query during its processing, from a signed request to a durable record and an answer, and the functions that
compute its parts.

The functions of this module compute, and `answers` orders the calls. An answer leaves only after its record is durable,
and no value computed from a slot leaves the process before that (two queries in one slot would cancel the noise).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, Self, TypedDict, cast

from rag_audit._internal.canonical import Json, jcs, parse_json, sha256
from rag_audit._internal.errors import RequestRefused, StoreError
from rag_audit._internal.sealed import seal, unseal
from rag_audit._internal.words import some
from rag_audit.attest.state import Appending
from rag_audit.commit.commitment import CommittedTenant, WindowSecrets
from rag_audit.models.manifest import re_executable
from rag_audit.models.names import NamesRequest
from rag_audit.models.passage import EMPTY
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    DocumentOpening,
    QueryRecord,
    RosterEntry,
    SlotKey,
    WindowHeader,
    answer_digest,
    document_digest,
    verifies,
)
from rag_audit.models.requests import Answer, AnsweredDocument, Refusal, SignedRequest, answered
from rag_audit.proofs.statements.private import (
    NoiseProof,
    PooledListingPrivate,
    RecordPrivate,
)
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.engine import Drawn, Int8Array
from rag_audit.retrieval.query import OpenedQuery, is_blank
from rag_audit.retrieval.serving import Asked, Columns, Serving


@dataclass(eq=False)
class Query:
    """A signed request, with the result of each processing step. Processing ends when the query has an outcome.

    :param eager: whether its answer is proved before it leaves, whatever the policy
    """

    request: SignedRequest = field(repr=False)
    question: OpenedQuery = field(repr=False)
    eager: bool = False
    drawn: Drawn | None = field(default=None, repr=False)
    """the draw of its slot, taken from the pool; None if its tenant's mechanism draws no values"""
    positions: tuple[int, ...] = field(default=(), repr=False)
    withheld: frozenset[int] = field(default=frozenset(), repr=False)
    """the positions that the answer returns without a text"""
    listed: tuple[int, ...] | None = field(default=None, repr=False)
    """with pooled listing, the rows that the query lists for the first time; else None"""
    chain: tuple[str | None, str] | None = None
    """with pooled listing, the commitments to the tenant's listed rows before and after the query; else None"""
    htopk: int = 0
    """the commitment to the positions"""
    documents: Sequence[DocumentOpening] = field(default=(), repr=False)
    returned: Sequence[AnsweredDocument] = field(default=(), repr=False)
    """the documents that the answer returns with their texts"""
    sealed: bytes | None = field(default=None, repr=False)
    """the encrypted data for a later proof or a repeated answer"""
    record: QueryRecord | None = None
    """its draft; from the append on, the entry in the ledger"""
    appending: Appending | None = None
    outcome: Answer | Refusal | Exception | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, value: Json, embedder: Embedder) -> Self:
        """The query of a request in JSON.

        :raises SchemaError: the value is no request
        """
        request = SignedRequest.parse(value, field="request")
        return cls(request, OpenedQuery(request.query, bytes.fromhex(request.salt), embedder))

    @property
    def tenant(self) -> str:
        """The name of the tenant that is asked."""
        return self.request.tenant

    @property
    def account(self) -> str:
        """The name of the account that asks."""
        return self.request.account

    @property
    def slot(self) -> SlotKey:
        """The slot that the query uses."""
        return SlotKey(self.request.tenant, self.request.account, self.request.i)

    @property
    def drafted(self) -> QueryRecord:
        """The record, once it is drafted."""
        assert self.record is not None
        return self.record


def check_signed(
    request: SignedRequest | NamesRequest,
    *,
    header: WindowHeader,
    header_digest: str,
    account: RosterEntry | None,
    policy: Policy,
) -> None:
    """Check that a request is for this window, by an account of the tenant that it names. The function does not check
    the question.

    :raises RequestRefused: the request is refused, with a reason from `requests.REFUSALS`
    """
    if request.origin != header.origin or request.header != header_digest:
        raise RequestRefused(
            "wrong-window",
            "the request is for another window",
            field="request.header",
            expected=header_digest,
            actual=request.header,
        )
    if policy.tenant(request.tenant) is None:
        names = some([tenant.tenant for tenant in policy.tenants], 12)
        raise RequestRefused(
            "unknown-tenant",
            f"the policy has no tenant of this name; its tenants are {names}",
            field="request.tenant",
            expected=names,
            actual=request.tenant,
            hint="make the account for one of these tenants (`rag-audit account new --tenant`)",
        )
    if account is None:
        raise RequestRefused(
            "unknown-account",
            "the window has no account of this id",
            field="request.account",
            expected="an account on the roster of the window",
            actual=request.account,
            hint="ask the provider for a place on the roster (`rag-audit account request`)",
        )
    if account.tenant != request.tenant:
        raise RequestRefused(
            "wrong-tenant",
            "the account belongs to another tenant",
            field="request.tenant",
            expected=account.tenant,
            actual=request.tenant,
        )
    if not verifies(bytes.fromhex(account.key), request.message(), request.sig):
        raise RequestRefused(
            "bad-signature",
            "the request is not signed by the key that the window's roster has for this account",
            field="request.sig",
            expected=f"key {account.key}",
        )


def check_opened(request: SignedRequest, query: OpenedQuery) -> None:
    """Check that hq opens to a signed request's question; any other is refused before a secret is used.

    The window checks the order of an account's requests (`slot-used`, `out-of-order`, `limit`) under the account's
    lock.

    :raises RequestRefused: the request is refused, with a reason from `requests.REFUSALS`
    """
    try:
        hq = query.hq
    except NothingToEmbed as exc:
        raise RequestRefused("empty-query", exc.message, field="request.query") from exc
    if hq != request.hq:
        raise RequestRefused(
            "query-mismatch",
            "hq does not open to the query and salt",
            field="request.hq",
            expected=hq,
            actual=request.hq,
        )


def check_visible(request: SignedRequest) -> None:
    """Refuse a new request with a blank question, before it uses one of its account's queries.

    :raises RequestRefused: the question has no visible character
    """
    if is_blank(request.query):
        raise RequestRefused("empty-query", "the question is blank", field="request.query",
                             expected="at least one visible character")  # fmt: skip


def select_positions(
    queries: Sequence[Query], *, serving: Serving, tenant: CommittedTenant, columns: Columns
) -> list[list[int] | Exception]:
    """The positions that a tenant's mechanism selects for its queries. The queries share passes over its index.

    :param queries: queries with a vector, and a draw if their mechanism needs it
    :param columns: the columns that the window commits to for the tenant
    :returns: each query's positions, or the error that stopped its selection
    """
    requested = [Asked(vector_of(query.question), query.drawn) for query in queries]
    return serving.select(tenant.index, requested, columns)


def vector_of(query: OpenedQuery) -> Int8Array:
    """The query's vector.

    :raises RequestRefused: the query has none
    """
    try:
        return query.vector
    except NothingToEmbed as exc:
        raise RequestRefused("empty-query", exc.message, field="request.query") from exc


def document_openings(
    tenant: CommittedTenant,
    positions: Sequence[int],
    window_secrets: WindowSecrets,
    withheld: Container[int],
) -> list[DocumentOpening]:
    """The openings of the selected positions' digests under C_docs.

    :param withheld: the positions with a digest that stays closed, because its salt would let its reader test a guess
        of the text (`Serving.withheld`)
    """
    openings = []
    for position in positions:
        salt = window_secrets.document_salt(tenant.entry.tenant, position)
        digest = document_digest(salt, tenant.documents_at.get(position, EMPTY).data)
        path = tenant.documents.inclusion_path(position, tenant.index.capacity)
        # The values computed here are well-formed, so validating hundreds of digits for each answer is unnecessary.
        openings.append(
            DocumentOpening.model_construct(
                hash=digest.hex(),
                salt=None if position in withheld else salt.hex(),
                path=[h.hex() for h in path],
            )
        )
    return openings


def query_record(
    request: SignedRequest,
    query: OpenedQuery,
    documents: Sequence[DocumentOpening],
    *,
    window: str,
    htopk: int,
    listed_rows: str | None,
) -> QueryRecord:
    """The record of a query, except its index (`seq`), its time (`ts`) and an eager proof's digest.

    :param htopk: the commitment to the listed positions (`Mechanism.list_elements`)
    :param listed_rows: with pooled listing, the commitment to the tenant's listed rows after the record; else None
    """
    return QueryRecord(
        type="query",
        v=1,
        window=window,
        seq=1,
        account=request.account,
        tenant=request.tenant,
        i=request.i,
        ts=0,
        hq=request.hq,
        cq=query.cq,
        htopk=to_hex(htopk),
        hans=answer_digest(query.salts.answer, [bytes.fromhex(d.hash) for d in documents]).hex(),
        listed_rows=listed_rows,
        sig=request.sig,
        proof=None,
    )


def record_private(
    query: OpenedQuery,
    positions: Sequence[int],
    *,
    tenant: CommittedTenant,
    window_secrets: WindowSecrets,
    noise: Callable[[], Drawn],
    noise_proof: Callable[[], NoiseProof | None],
    low_memory: bool,
    sample: tuple[bytes, bytes] | None = None,
    pooled_listing: PooledListingPrivate | None = None,
) -> RecordPrivate:
    """The private inputs of a record's proofs, which `record_public` complements."""
    salts = query.salts
    return RecordPrivate(
        s0=window_secrets.s0,
        s1=window_secrets.s1,
        index_salt=window_secrets.index_salts[tenant.entry.tenant],
        rows=tenant.index.rows.tobytes,
        noise=lambda: noise().tobytes(),
        scores=lambda: tenant.index.scores(query.vector).tobytes(),
        noise_proof=noise_proof,
        tokens=query.tokens,
        vector=query.vector.tobytes(),
        salt_q=salts.query,
        salt_c=salts.vector,
        salt_k=salts.top_k,
        positions=positions,
        low_memory=low_memory,
        sample=sample,
        pooled_listing=pooled_listing,
    )


@dataclass(frozen=True)
class Retained:
    """The data for proving a record later and for repeating its answer. They are stored encrypted until the deletion
    date.

    :param vector: the question's vector, for an embedder that might later return another vector
    :param listed: with pooled listing, the rows that the record listed for the first time; else None
    """

    query: str = field(repr=False)
    salt: str = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)
    vector: bytes | None = field(default=None, repr=False)
    listed: tuple[int, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, query: OpenedQuery, positions: Sequence[int], listed: tuple[int, ...] | None = None
    ) -> Retained:
        """The retained data of a question and its listed positions."""
        vector = None if re_executable(query.embedder.name) else query.vector.tobytes()
        return cls(query.text, query.salt.hex(), tuple(positions), vector, listed)

    def opened(self, embedder: Embedder) -> OpenedQuery:
        """The question, for a proof or a repeated answer."""
        return OpenedQuery(self.query, bytes.fromhex(self.salt), embedder, self.vector)


class _RetainedJson(TypedDict):
    """`Retained` as it is encrypted."""

    query: str
    salt: str
    positions: list[int]
    vector: NotRequired[str]
    listed: NotRequired[list[int]]


def seal_retained(retained: Retained, key: bytes, associated: bytes) -> bytes:
    """Encrypt retained data under the window's retention key; `associated` names the slot."""
    value: _RetainedJson = {
        "query": retained.query,
        "salt": retained.salt,
        "positions": list(retained.positions),
    }
    if retained.vector is not None:
        value["vector"] = retained.vector.hex()
    if retained.listed is not None:
        value["listed"] = list(retained.listed)
    return seal(jcs(cast("dict[str, Json]", value)), key, associated)


def unseal_retained(blob: bytes, key: bytes, associated: bytes) -> Retained:
    """Decrypt the output of `seal_retained`.

    :raises StoreError: the data was altered, is of another slot, or its key was deleted
    """
    plain = unseal(blob, key, associated, what="retained query")
    # `seal_retained` wrote the plaintext under the same key.
    value = cast(_RetainedJson, parse_json(plain, source="retained query"))
    vector = bytes.fromhex(value["vector"]) if "vector" in value else None
    listed = tuple(value["listed"]) if "listed" in value else None
    return Retained(value["query"], value["salt"], tuple(value["positions"]), vector, listed)


def open_retained(blob: bytes | None, key: bytes, header_digest: str, record: QueryRecord) -> Retained:
    """The retained data of a record's query.

    :param blob: the record's private bytes in the ledger
    :param key: the window's retention key
    :raises StoreError: the record has no retained data, or they cannot be decrypted
    """
    if blob is None:
        raise StoreError("the private inputs of this record are missing", field=f"record {record.seq}")
    return unseal_retained(blob, key, retained_context(header_digest, record.account, record.i))


def retained_context(header_digest: str, account: str, i: int) -> bytes:
    """The associated data for encrypting a retained query."""
    return sha256(b"rag-audit/retained/v1" + jcs({"header": header_digest, "account": account, "i": i}))


def documents_of(
    tenant: CommittedTenant, positions: Sequence[int], withheld: Container[int]
) -> list[AnsweredDocument]:
    """The selected documents in rank order, without empty and withheld positions (`Serving.withheld`).

    :raises StoreError: a position with a text has no row in the tenant's document table
    """
    result = ((p, tenant.documents_at.get(p)) for p in positions if p not in withheld)
    return [answered(p, passage, tenant.name_at(p)) for p, passage in result if passage is not None]
