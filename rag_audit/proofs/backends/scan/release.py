"""The digest over all scan protocols of this release. A verifier pins it in trust.toml."""

from __future__ import annotations

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import SetupError
from rag_audit.proofs.backends.scan.key import (
    BERNOULLI_PROTOCOL,
    COALITION_PROTOCOL,
    DOCUMENT_TABLE_PROTOCOL,
    POOLED_LISTING_PROTOCOL,
    POOLED_TABLE_PROTOCOL,
    PROTOCOL,
    EmbedArgument,
    EncoderArgument,
)
from rag_audit.proofs.interface import Pins


def protocols_digest() -> str:
    """SHA-256 over the digests of all protocols, 64 hexadecimal digits: for `retrieve`, without and with pooled
    listing, `embed` (by the protocol for one token, and by that of an integer encoder for 32 places), `kept`, by
    position, by document and with pooled listing, and the coalition proof. It changes with any of them.
    """
    named: dict[str, Json] = {
        "coalition": COALITION_PROTOCOL,
        "documents": DOCUMENT_TABLE_PROTOCOL,
        "embed": EmbedArgument(1).digest(),
        "encoder": EncoderArgument(32, 1).digest(),
        "kept": BERNOULLI_PROTOCOL,
        "pooled": POOLED_LISTING_PROTOCOL,
        "pooled-documents": POOLED_TABLE_PROTOCOL,
        "retrieve": PROTOCOL,
    }
    return digest_hex(named)


def check_pin(pins: Pins) -> None:
    """Return if the pinned digest is the digest of this release's protocols.

    :raises SetupError: there is no pin, or it belongs to a release with other protocols
    """
    actual = protocols_digest()
    if pins.scan is None:
        raise SetupError("the scan protocols are not pinned", field="trust.pins.scan", expected=actual)
    if pins.scan != actual:
        raise SetupError(
            "the pinned scan protocols are another release's",
            field="trust.pins.scan",
            expected=pins.scan,
            actual=actual,
            hint="verify with that release, or pin this one's once you have read what changed",
        )
