"""Noise certificates of slots whose query is still to come, or still to be proved (docs/scan/noise.md).

A slot's noise is a function of seed, beacon and slot, so a certificate that is lost or damaged is made again and says
the same. What must stay secret until the slot's query is proved are the blindings of its commitments.
"""

from __future__ import annotations

import logging
from pathlib import Path

from rag_audit.encoding.canonical import jcs, read_bytes, sha256
from rag_audit.encoding.durable import PRIVATE_MODE, replace_file
from rag_audit.encoding.sealed import seal, unseal
from rag_audit.errors import RagAuditError, StoreError
from rag_audit.formats.statements import SlotKey
from rag_audit.proofs.scan import PROTOCOL, NoiseCertificate

MAX_CERTIFICATE_BYTES = 1 << 24
_LENGTH = 4

log = logging.getLogger(__name__)


class CertificateStore:
    """One file a slot, encrypted under the window's retention key and bound to slot, window and protocol.

    A file that a crash left half written, or that somebody changed or moved, is as good as none.

    :param folder: made with the first certificate; private
    :param key: 32 bytes; deleting it makes all of them unreadable
    :param opening: digest of the window's opening
    """

    def __init__(self, folder: Path, key: bytes, opening: str) -> None:
        self._folder = folder
        self._key = key
        self._opening = opening
        for path in folder.glob(".*"):  # a replacement that a crash ended before the rename
            path.unlink(missing_ok=True)

    def get(self, slot: SlotKey) -> NoiseCertificate | None:
        """The slot's certificate, or None if there is none that can be read."""
        path = self._path(slot)
        if not path.exists():
            return None
        try:
            blob = read_bytes(path, max_bytes=MAX_CERTIFICATE_BYTES)
            return _unpack(unseal(blob, self._key, self._associated(slot), what="certificate"))
        except RagAuditError as exc:
            log.warning("the certificate of %s, i = %d is made again: %s", slot.account, slot.i, exc)
            return None

    def put(self, slot: SlotKey, certificate: NoiseCertificate) -> None:
        """Keep a certificate, durably, until `drop`.

        :raises StoreError: it cannot be written
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise StoreError("cannot be made", field=str(self._folder), found=exc.strerror) from exc
        parts = (certificate.proof, certificate.commitments, certificate.blindings)
        plain = b"".join(len(part).to_bytes(_LENGTH, "big") + part for part in parts)
        blob = seal(plain, self._key, self._associated(slot))
        replace_file(self._path(slot), blob, mode=PRIVATE_MODE)

    def drop(self, slot: SlotKey) -> None:
        """Forget a slot's certificate: its record is proved."""
        self._path(slot).unlink(missing_ok=True)

    def _path(self, slot: SlotKey) -> Path:
        return self._folder / f"{slot.account}-{slot.i}"

    def _associated(self, slot: SlotKey) -> bytes:
        named = {"protocol": PROTOCOL, "opening": self._opening, "tenant": slot.tenant,
                 "account": slot.account, "i": slot.i}  # fmt: skip
        return sha256(b"rag-audit/certificate/v1" + jcs(named))


def _unpack(plain: bytes) -> NoiseCertificate:
    parts, at = [], 0
    while at < len(plain):
        end = at + _LENGTH + int.from_bytes(plain[at : at + _LENGTH], "big")
        parts.append(plain[at + _LENGTH : end])
        at = end
    return NoiseCertificate(*parts)
