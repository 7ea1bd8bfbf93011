"""A closed window for other tools: proofs for snarkjs, static tiles of its log (C2SP tlog-tiles), and COSE Receipts
(RFC 9942, RFC9162_SHA256).

This module verifies no window: readers of the files check them with their own keys. A receipt is a COSE_Sign1 with a
detached payload, the root of its inclusion proof. A checkpoint's signature covers other bytes, so a receipt needs
another signature by the log's key: only the provider can make the first receipt of a window. Every receipt of one tree
signs the same root under the same header, so there is one signature, and each receipt adds its path.

The function `cbor` encodes a receipt's CBOR in twenty lines. The maintained packages have dependencies that the base
install should not need for this purpose (pycose: ecdsa, certvalidator and cbor2; cwt: cbor2 and pyhpke); cwt reads the
files in tests/interop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from rag_audit._internal.canonical import jcs
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import EncodingError, StoreError
from rag_audit.estimate.statement import coalition_statement
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_ED25519
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.signing import SigningKey
from rag_audit.log.tiles import export_tiles
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.final_log import FinalLog
from rag_audit.models.manifest import check_manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import QueryRecord, parse_entry
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends import proof_writer
from rag_audit.proofs.statements.coalition import CoalitionStatement

ALG, KID, CWT_CLAIMS, VDS, VDP = 1, 4, 15, 395, 396
"""labels of header parameters (RFC 9052, RFC 9597, RFC 9942)"""
ED25519 = -19
"""RFC 9864: exactly Ed25519. EdDSA (-8) leaves the curve open and is deprecated"""
RFC9162_SHA256 = 1
INCLUSION = -1
ISSUER, SUBJECT = 1, 2
"""claims of RFC 8392"""
CHECKPOINT = "rag-audit/checkpoint"
"""label of the checkpoint with its cosignatures, as the window publishes it"""
_COSE_SIGN1 = b"\xd2"
"""the tag of a COSE_Sign1, which a receipt must have"""

Cbor: TypeAlias = (
    int | bytes | str | Sequence["Cbor"] | Mapping[int, "Cbor"] | Mapping[int | str, "Cbor"] | None
)


def cbor(value: Cbor) -> bytes:
    """The deterministic encoding of RFC 8949, 4.2.1, of the few types that receipts have.

    :raises EncodingError: a number has more than 64 bits
    """
    match value:
        case None:
            return b"\xf6"
        case int():
            return _head(0, value) if value >= 0 else _head(1, -1 - value)
        case bytes():
            return _head(2, len(value)) + value
        case str():
            text = value.encode()
            return _head(3, len(text)) + text
        case Mapping():
            pairs = sorted((cbor(key), cbor(item)) for key, item in value.items())
            return _head(5, len(pairs)) + b"".join(key + item for key, item in pairs)
        case _:
            return _head(4, len(value)) + b"".join(cbor(item) for item in value)


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([major << 5 | info]) + number.to_bytes(size, "big")
    raise EncodingError("not a CBOR number", expected="at most 64 bits", actual=f"{number.bit_length()} bits")


class CoseReceipts:
    """The receipts of one closed window.

    :param key: the log's key, which signed the window's final checkpoint
    :raises EncodingError: the key is of another signature type
    """

    def __init__(self, log: FinalLog, key: SigningKey) -> None:
        if key.verifier.algorithm != ALG_ED25519:
            raise EncodingError(
                "the key is of another signature type", field=key.name, expected="a log's key, 0x01"
            )
        self._log = log
        # RFC 9942 only signs the root. It signs neither the log's name nor the tree's size, and without the size some
        # paths are valid for two places. The checkpoint contains both, and the witnesses' cosignatures.
        self._protected = cbor(
            {
                ALG: ED25519,
                KID: key.verifier.key_id,
                CWT_CLAIMS: {ISSUER: key.name, SUBJECT: log.closed.header.log},
                VDS: RFC9162_SHA256,
                CHECKPOINT: str(log.note),
            }
        )
        # It begins with 0x84, as no UTF-8 does. All else that the key signs begins with text.
        self._signature = key.sign(cbor(["Signature1", self._protected, b"", log.tree.root()]))

    def receipt(self, index: int) -> bytes:
        """The receipt of the entry at an index.

        :raises EncodingError: there is no such entry
        """
        proof = cbor([self._log.tree.size, index, self._log.tree.inclusion_path(index)])
        unprotected = {VDP: {INCLUSION: [proof]}}
        return _COSE_SIGN1 + cbor([self._protected, unprotected, None, self._signature])


def write_cose(
    file: WindowFile, directory: Path, key: SigningKey, *, only: Collection[int] = ()
) -> list[int]:
    """Write `<index>.cose` and `<index>.entry`, the receipt and the canonical bytes of its entry, for each entry.

    :param only: the indices to write; empty writes all
    :returns: the written indices
    :raises SchemaError: the window is not closed, or its entries are not the ones under the checkpoint
    :raises SignatureError: the key did not sign the window's checkpoint
    :raises WindowStateError: the checkpoint has no cosignature
    :raises EncodingError: the ledger has no entry with one of the indices
    :raises StoreError: a file cannot be written
    """
    log = FinalLog.of(file, log_key=key.verifier)
    receipts = CoseReceipts(log, key)
    chosen = sorted(set(only)) or list(range(log.tree.size))
    result = [(index, receipts.receipt(index)) for index in chosen]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError("cannot be made", field=str(directory), actual=exc.strerror or str(exc)) from exc
    for index, receipt in result:
        replace_file(directory / f"{index}.entry", log.entries[index])
        replace_file(directory / f"{index}.cose", receipt)
    return chosen


def write_snarkjs(file: WindowFile, directory: Path) -> int:
    """Write every proof of a window that snarkjs verifies: key, public inputs, proof, and `verify.sh`.

    :returns: the number of written proofs; tenants without keys in their proof system have none
    :raises SchemaError: the window has no such proof, a part is not well-formed, or a key is missing
    :raises StoreError: a file cannot be written
    """
    return len(proof_writer()(file, directory, _coalition(file)))


def _coalition(file: WindowFile) -> CoalitionStatement | None:
    """The statement of the window's coalition proof, rebuilt from the published entries."""
    closed = ClosedWindow.of(file, field="entries")
    entries = [parse_entry(value, field=f"entries[{i}]") for i, value in enumerate(file.entries)]
    wanted = Policy.parse(file.policy, field="policy").estimator.coalition_proof
    declared = closed.trailer.coalition
    if wanted is None or declared is None:
        return None
    size = closed.head.size - 1
    tree = HashTree(leaf_hash(jcs(value)) for value in file.entries)
    return coalition_statement(
        [entry for entry in entries if isinstance(entry, QueryRecord)],
        declared,
        header_digest=closed.digest,
        head=Checkpoint(closed.header.log, size, tree.root(size)),
        dimension=check_manifest(file.embedder)["schema"]["dimension"],
        capacity=wanted.records,
    )


def write_tiles(file: WindowFile, directory: Path) -> int:
    """Write the ledger as a C2SP tlog-tiles folder, which any static web server can publish.

    :returns: the number of entries
    :raises StoreError: the folder contains the tiles of another log, or of a longer one
    :raises SchemaError: as `FinalLog.of`
    """
    log = FinalLog.of(file)
    export_tiles(directory, log.entries, log.note)
    return len(log.entries)
