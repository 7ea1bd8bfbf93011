"""The store of precomputed noise proofs. Each waits until its slot's query is asked and proved (docs/scan/noise.md).

A slot's noise is a function of seed, beacon and slot, so a lost or damaged noise proof is recomputed for the same
noise. The blindings of its commitments must stay secret until the slot's query is proved.
"""

from __future__ import annotations

import logging
from pathlib import Path

from rag_audit._internal.canonical import Json, jcs, read_bytes, sha256
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import RagAuditError, StoreError
from rag_audit._internal.parts import joined, separated
from rag_audit._internal.sealed import seal, unseal
from rag_audit.models.records import SlotKey
from rag_audit.proofs.backends import protocols_digest
from rag_audit.proofs.statements.private import NoiseProof

MAX_NOISE_PROOF_BYTES = 1 << 24
_PARTS = 3
"""Proof, commitments and blindings."""

log = logging.getLogger(__name__)


class NoiseProofStore:
    """Noise proofs, one file for each slot, encrypted under the window's retention key and bound to slot, window and
    protocol.

    A file that a crash left half written, or that somebody changed or moved, counts as missing.

    :param folder: a private folder, which is created with the first noise proof
    :param key: 32 bytes; deleting it makes all noise proofs unreadable
    :param header: digest of the window header
    """

    def __init__(self, folder: Path, key: bytes, header: str) -> None:
        self._folder = folder
        self._key = key
        self._header = header
        for path in folder.glob(".*"):  # a replacement that a crash ended before the rename
            path.unlink(missing_ok=True)

    def has(self, slot: SlotKey) -> bool:
        """Whether there is a file for the slot."""
        return self._path(slot).exists()

    def get(self, slot: SlotKey) -> NoiseProof | None:
        """The slot's noise proof, or None if there is no readable one."""
        path = self._path(slot)
        if not path.exists():
            return None
        try:
            blob = read_bytes(path, max_bytes=MAX_NOISE_PROOF_BYTES)
            plain = unseal(blob, self._key, self._associated(slot), what="noise_proof")
            return NoiseProof(*separated(plain, _PARTS, field="noise_proof"))
        except RagAuditError as exc:
            log.warning("the noise proof of %s, i = %d is made a second time: %s", slot.account, slot.i, exc)
            return None

    def put(self, slot: SlotKey, noise_proof: NoiseProof) -> None:
        """Store a noise proof durably until `drop`.

        :raises StoreError: the noise proof cannot be written
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise StoreError(
                "the folder cannot be created", field=str(self._folder), actual=exc.strerror
            ) from exc
        parts = (noise_proof.proof, noise_proof.commitments, noise_proof.blindings)
        blob = seal(joined(parts), self._key, self._associated(slot))
        replace_file(self._path(slot), blob, mode=PRIVATE_MODE)

    def drop(self, slot: SlotKey) -> None:
        """Delete a slot's noise proof, once its record is proved."""
        self._path(slot).unlink(missing_ok=True)

    def _path(self, slot: SlotKey) -> Path:
        return self._folder / f"{slot.account}-{slot.i}"

    def _associated(self, slot: SlotKey) -> bytes:
        named: Json = {"protocol": protocols_digest(), "header": self._header, "tenant": slot.tenant,
                       "account": slot.account, "i": slot.i}  # fmt: skip
        return sha256(b"rag-audit/certificate/v1" + jcs(named))
