"""What an account checks of an answer beyond its receipt: its own question, and the committed documents."""

from __future__ import annotations

from rag_audit._internal.errors import InvalidProof, OtherWindow, SignatureError
from rag_audit.log.keys import VerifierKey
from rag_audit.models.manifest import re_executable
from rag_audit.models.receipts import OpenedReceipt
from rag_audit.models.records import document_digest
from rag_audit.models.requests import Answer, Refusal, SignedRequest
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.query import OpenedQuery


def check_refusal(refusal: Refusal, request: SignedRequest, provider: VerifierKey) -> None:
    """Check that a refusal is the provider's, of this request.

    :raises OtherWindow: it is the refusal of another window, which says nothing about this request's own
    :raises SignatureError: it is of another request, or not signed by the provider
    """
    named = (refusal.origin, refusal.account, refusal.i, refusal.hq)
    mine = (request.origin, request.account, request.i, request.hq)
    if named != mine or not provider.verifies(bytes.fromhex(refusal.sig), refusal.message()):
        raise SignatureError("the refusal is not the provider's for this request", field="reply")
    if refusal.opening != request.opening:
        raise OtherWindow(
            "the provider serves another window by now, and does not say whether the request was answered",
            field=f"i = {request.i}", expected=request.opening, found=refusal.opening,
            hint="the request is kept. Ask anew in the window that is served, under the key that its roster has; the"
                 " ledger of the request's own window shows whether it has a record, once that window is closed",
        )  # fmt: skip


def check_openings(query: OpenedQuery, receipt: OpenedReceipt) -> None:
    """Check that a receipt's openings are those of the account's own question.

    cq is checked where the account can embed its question itself, to the last bit; of other embedders the provider
    declares it, to its accounts as to a verifier.

    :raises InvalidProof: one is of another question
    """
    found = receipt.body
    checked = [("cq", query.cq, found.record.cq)] if re_executable(query.embedder.name) else []
    for name, expected, value in (
        *checked,
        ("salt_k", to_hex(query.salts.top_k), found.salt_k),
        ("salt_a", query.salts.answer.hex(), found.salt_a),
    ):
        if value != expected:
            raise InvalidProof(
                "the receipt is not about this query", field=f"receipt.{name}", expected=expected, found=value
            )


def check_documents(answer: Answer, receipt: OpenedReceipt, *, sampled: bool) -> None:
    """Check that an answer's documents are the committed ones at the receipt's positions, in rank order.

    A tenant that samples returns the positions that it does not keep without a text, and their digests stay closed.
    `receipts.contradictions` has checked by then where the mechanism allows such positions. What it allows, the
    account cannot tell from a text that the provider withholds: docs/protocol.md, "Withheld texts", names what remains.

    :param sampled: whether the policy samples the tenant's positions
    :raises InvalidProof: a text or its metadata is another, left out or added, or the order is another
    """
    body = receipt.body
    texts = {d.position: d.passage.data for d in answer.documents}
    handed = [d.position for d in answer.documents]
    if handed != [p for p in body.positions if p in texts]:
        raise InvalidProof(
            "the answer is not in the receipt's order",
            field="answer.documents",
            expected=body.positions,
            found=handed,
        )
    for position, document in zip(body.positions, body.documents, strict=True):
        if document.salt is None and sampled and position not in texts:
            continue
        data = texts.get(position, b"")
        if (salt := document.salt) is None or document_digest(
            bytes.fromhex(salt), data
        ).hex() != document.hash:
            raise InvalidProof(
                "a text or its metadata is not the committed document's",
                field=f"answer.documents, position {position}",
            )
