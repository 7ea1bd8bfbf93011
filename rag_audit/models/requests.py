"""The messages between accounts and provider: requests, answers, refusals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rag_audit._internal.canonical import Json, jcs
from rag_audit.models.models import Count, FieldHex, Hex32, Hex64, Identifier, Model, One, Positive
from rag_audit.models.names import NameOpening
from rag_audit.models.passage import Passage
from rag_audit.models.question import MAX_QUESTION
from rag_audit.models.records import request_message

REFUSALS = (
    "malformed",
    "wrong-window",
    "unknown-account",
    "unknown-tenant",
    "wrong-tenant",
    "bad-signature",
    "query-mismatch",
    "empty-query",
    "slot-used",
    "out-of-order",
    "limit",
    "in-flight",
    "not-open",
    "closed",
    "unavailable",
)
"""The closed list of a provider's reasons to refuse. No reason depends on scores or noise."""


UNDECIDED = ("in-flight", "unavailable")
"""Refusals that do not tell whether the request may still be recorded, so that only repeating it is safe."""


class SignedRequest(Model):
    """A query request. The signature covers every field except the openings `query` and `salt`, which hq binds."""

    type: Literal["request"]
    v: One
    origin: str
    header: Hex32
    tenant: Identifier
    account: Identifier
    i: Positive
    hq: FieldHex
    sig: Hex64
    query: Annotated[str, Field(max_length=MAX_QUESTION)]
    salt: Hex32

    def message(self) -> bytes:
        """The bytes under `sig`."""
        return request_message(self.origin, self.header, self.tenant, self.account, self.i, self.hq)


MAX_ANSWER_BYTES = 256 << 20
"""The largest answer in bytes of JSON, which accounts read as one line."""


class AnsweredDocument(Model):
    """One document of an answer."""

    position: Count
    text: str
    metadata: dict[str, Json]
    """empty for a document without metadata"""
    name: NameOpening | None
    """the opening of the name of the passage's document; null for a tenant without a document table"""

    @property
    def passage(self) -> Passage:
        """The document as it is committed to."""
        return Passage.of(self.text, self.metadata)


def answered(position: int, passage: Passage, name: NameOpening | None) -> AnsweredDocument:
    """A document as an answer has it."""
    return AnsweredDocument(position=position, text=passage.text, metadata=passage.fields, name=name)


class Answer(Model):
    """An answer to an account: the documents in htopk order, without scores, and the receipt."""

    type: Literal["answer"]
    v: One
    documents: list[AnsweredDocument]
    receipt: str


class Refusal(Model):
    """A provider-signed refusal from the closed list; after it a client may replace its request."""

    type: Literal["refusal"]
    v: One
    origin: str
    header: Hex32
    account: str
    i: Count
    hq: str
    reason: Annotated[str, Field(pattern="^(" + "|".join(REFUSALS) + ")$")]
    detail: str
    sig: Hex64

    def message(self) -> bytes:
        """The bytes under the provider's signature."""
        body = {k: v for k, v in self.dump().items() if k not in ("sig", "type", "v")}
        return b"rag-audit/refusal/v1" + jcs(body)
