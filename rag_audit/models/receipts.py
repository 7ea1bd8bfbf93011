"""Receipts. The provider makes a receipt for an answer, the account stores it, and account or verifier open it.

The text is a C2SP tlog-proof. Its `extra` field, which C2SP leaves unauthenticated, carries the openings under the
provider's own signature (docs/protocol.md, "Receipts").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit._internal.errors import EncodingError, SignatureError
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import leaf_hash, verify_inclusion
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    QueryRecord,
    ReceiptBody,
    SignedReceiptBody,
    TenantEntry,
    answer_digest,
    log_origin,
    receipt_message,
)
from rag_audit.relation.field import to_hex
from rag_audit.relation.native import hash_elements_list

if TYPE_CHECKING:
    from rag_audit.mechanisms import Mechanism

BODY, SIGNATURE, END = b'{"body":', b',"sig":"', b'"}'
"""The canonical JSON of a signed body around its two parts."""


@dataclass(frozen=True)
class OpenedReceipt:
    """A receipt with a verified provider signature and a verified inclusion proof."""

    record: QueryRecord
    body: ReceiptBody
    checkpoint: Checkpoint


def open_receipt(
    text: str, *, origin: str, header_digest: str, log_key: VerifierKey, field: str
) -> OpenedReceipt:
    """Check a receipt's own signatures and its inclusion path.

    :param origin: the provider's origin; the checkpoint is of the log of the record's window
    :raises EncodingError: the text is not a receipt, or its openings are not canonical
    :raises SignatureError: the provider did not sign the receipt for this window, or its openings were edited
    :raises InvalidProof: the path does not lead from the record to the checkpoint
    """
    proof = TlogProof.parse(text, field=field)
    if proof.extra is None:
        raise EncodingError("the receipt has no openings", field=f"{field}.extra")
    value = parse_json(proof.extra, source=f"{field}.extra")
    signed = SignedReceiptBody.parse(value, field=f"{field}.extra")
    if jcs(value) != proof.extra:
        raise EncodingError("the receipt's openings are not canonical JSON", field=f"{field}.extra")
    body = signed.body
    leaf = leaf_hash(body.record.canonical())
    opened = proof.extra[len(BODY) : -len(SIGNATURE + signed.sig.encode() + END)]  # as canonical as the whole
    if not log_key.verifies(bytes.fromhex(signed.sig), receipt_message(origin, header_digest, leaf, opened)):
        raise SignatureError("the receipt is not signed by the provider for this window", field=field)
    log = log_origin(origin, body.record.window)
    head: SignedCheckpoint = proof.verify(leaf, origin=log, log_key=log_key, field=field)
    if proof.index != body.record.seq:
        raise SignatureError(
            "the receipt's index differs from its record's index",
            field=field,
            expected=body.record.seq,
            actual=proof.index,
        )
    return OpenedReceipt(body.record, body, head.checkpoint)


def contradictions(receipt: OpenedReceipt, tenant: TenantEntry, policy: Policy) -> list[str]:
    """The contradictions in the provider's signed data, between openings, record and committed texts.

    :param policy: the window's policy, with the tenant; if the receipt has more positions than the policy allows, they
        are not hashed, since the time to hash grows with them
    """
    record, body = receipt.record, receipt.body
    part = policy.tenant(tenant.tenant)
    if part is None:
        return ["the policy does not have the record's tenant"]
    if tenant.capacity != part.capacity:  # before anything is made of that size
        return [f"the tenant's capacity is {tenant.capacity}, by the policy {part.capacity}"]
    mechanism = policy.mechanism(part)
    salt = int(body.salt_k, 16)
    if (wrong_list := mechanism.wrong_list(body.positions, len(body.documents))) is not None:
        return [wrong_list]
    htopk = hash_elements_list(*mechanism.list_elements(salt, body.positions))
    wrong = []
    if (record.listed_rows is not None) != mechanism.pools:
        wrong.append("the record belongs to another mechanism than the tenant's mechanism")
    if to_hex(htopk) != record.htopk:
        wrong.append("the positions do not open htopk")
    digests = [bytes.fromhex(d.hash) for d in body.documents]
    if answer_digest(bytes.fromhex(body.salt_a), digests).hex() != record.hans:
        wrong.append("the documents do not open hans")
    root = bytes.fromhex(tenant.c_docs)
    for position, document in zip(body.positions, body.documents, strict=True):
        path = [bytes.fromhex(h) for h in document.path]
        leaf = leaf_hash(bytes.fromhex(document.hash))
        if position >= tenant.capacity or not verify_inclusion(leaf, position, tenant.capacity, path, root):
            wrong.append(f"position {position} is not the committed document")
    return wrong + _misplaced_null_salts(body, mechanism)


def _misplaced_null_salts(body: ReceiptBody, mechanism: Mechanism) -> list[str]:
    """The null salts of a receipt that no honest provider signs (docs/protocol.md, "Withheld texts").

    With mechanism sampling, a position has a null salt only if it scores 0. Lists are ordered by falling score, then by
    rising position, so the positions of score 0 are the end of the list and ascend.
    """
    closed = [n for n, document in enumerate(body.documents) if document.salt is None]
    if not closed:
        return []
    first = closed[0]
    if not mechanism.withholds:
        return [f"position {body.positions[first]} has a null salt, and its tenant has no sample"]
    if not mechanism.withholds_by_score:
        return []
    rest = body.positions[first:]
    if len(closed) != len(rest) or rest != sorted(rest):
        return [
            f"position {body.positions[first]} has a null salt, and a later position of the list shows that it scores"
            " more than 0: the provider withholds its text"
        ]
    return []


def withheld_once(receipts: Sequence[OpenedReceipt], policy: Policy) -> dict[int, str]:
    """The receipts with a null salt at a position for which another receipt of the tenant has a salt.

    With noise and sampling, the window decides for each position whether answers return
    its text, so all receipts of a tenant agree. With mechanism sampling, the score decides for each question, so the
    function compares no receipts.

    :param receipts: accepted receipts of one window
    :param policy: the window's policy; the function skips receipts of tenants that the policy does not have
    :returns: for each such receipt, its index in `receipts` and the contradiction
    """
    shared = [
        policy.tenant(r.record.tenant) is not None
        and not policy.mechanism_of(r.record.tenant).withholds_by_score
        for r in receipts
    ]
    returned: dict[tuple[str, int], int] = {}
    for receipt, compared in zip(receipts, shared, strict=True):
        # A receipt with too few openings is a contradiction by itself (`contradictions`).
        for position, document in zip(receipt.body.positions, receipt.body.documents, strict=False):
            if compared and document.salt is not None:
                returned.setdefault((receipt.record.tenant, position), receipt.record.seq)
    result: dict[int, str] = {}
    for index, (receipt, compared) in enumerate(zip(receipts, shared, strict=True)):
        for position, document in zip(receipt.body.positions, receipt.body.documents, strict=False):
            seq = returned.get((receipt.record.tenant, position))
            if compared and document.salt is None and seq is not None:
                result.setdefault(
                    index,
                    f"position {position} has a null salt, and a salt in the receipt of record {seq}: the provider"
                    " withholds its text",
                )
    return result
