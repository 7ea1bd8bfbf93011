"""The digest that names this release's scan protocols together, which a verifier pins in trust.toml."""

from __future__ import annotations

from rag_audit.encoding.canonical import digest_hex
from rag_audit.errors import SetupError
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.scan.embed import EmbedArgument
from rag_audit.proofs.scan.key import COALITION_PROTOCOL, PROTOCOL


def protocols_digest() -> str:
    """SHA-256 over the digests of the protocols for `retrieve`, `embed` (by that for one token) and the coalition
    proof, 64 hexadecimal digits. It changes with any of them.
    """
    return digest_hex(
        {"coalition": COALITION_PROTOCOL, "embed": EmbedArgument(1).digest(), "retrieve": PROTOCOL}
    )


def check_pin(pins: Pins) -> str:
    """Return the digest of this release's protocols if it is the pinned one.

    :raises SetupError: there is no pin, or it is that of a release with other protocols
    """
    found = protocols_digest()
    if pins.scan is None:
        raise SetupError("the scan protocols are not pinned", field="trust.pins.scan", expected=found)
    if pins.scan != found:
        raise SetupError(
            "the pinned scan protocols are another release's",
            field="trust.pins.scan",
            expected=pins.scan,
            found=found,
            hint="verify with that release, or pin this one's once you have read what changed",
        )
    return found
