"""Receipts as the provider makes them for its answers; accounts and verifiers open them (`models.receipts`)."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.note import Note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.log.tree import MerkleTree
from rag_audit.models.question import RequestSalts
from rag_audit.models.receipts import BODY, END, SIGNATURE
from rag_audit.models.records import (
    DocumentOpening,
    QueryRecord,
    ReceiptBody,
    log_origin,
    receipt_message,
)
from rag_audit.relation.field import to_hex


def make_receipt(
    record: QueryRecord,
    *,
    salt: bytes,
    positions: Sequence[int],
    documents: Sequence[DocumentOpening],
    tree: MerkleTree,
    origin: str,
    header_digest: str,
    key: SigningKey,
    head: tuple[int, Note] | None = None,
) -> str:
    """Make the receipt of an appended record, against a checkpoint of the ledger's current state.

    :param head: the size of that checkpoint and the checkpoint (`signed_head`), if it is signed already
    """
    size, checkpoint = head or signed_head(tree, log_origin(origin, record.window), key)
    salts = RequestSalts.derive(salt)
    body = ReceiptBody(
        v=1,
        record=record,
        salt_k=to_hex(salts.top_k),
        salt_a=salts.answer.hex(),
        positions=list(positions),
        documents=list(documents),
    )
    opened = body.canonical()
    leaf, path = tree.leaf(record.seq), tree.inclusion_path(record.seq, size)
    sig = key.sign(receipt_message(origin, header_digest, leaf, opened)).hex()
    proof = TlogProof(
        index=record.seq,
        path=tuple(path),
        checkpoint=checkpoint,
        extra=BODY + opened + SIGNATURE + sig.encode() + END,
    )
    return str(proof)


def signed_head(tree: MerkleTree, log: str, key: SigningKey) -> tuple[int, Note]:
    """A ledger's current size, and the signed checkpoint of it.

    :param log: the log's origin line
    """
    size = tree.size
    return size, Checkpoint(log, size, tree.root(size)).sign(key)
