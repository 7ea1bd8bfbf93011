"""The digest over all scan protocols of this release. A verifier pins it in trust.toml."""

from __future__ import annotations

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import SetupError
from rag_audit.proofs.backends.scan.key import (
    COALITION_PROTOCOL,
    COINS_PROTOCOL,
    LISTING_PROTOCOL,
    PROTOCOL,
    SAMPLED_PROTOCOL,
    TOGETHER_PROTOCOL,
    EmbedArgument,
)
from rag_audit.proofs.interface import Pins


def protocols_digest() -> str:
    """SHA-256 over the digests of all protocols, 64 hexadecimal digits: for `retrieve` of each kind, `embed` (by the
    protocol for one token), `kept` and the coalition proof. It changes with any of them.
    """
    return digest_hex({**_of_records(), "together": TOGETHER_PROTOCOL})


def record_protocols_digest() -> str:
    """The same without several records in one proof, as trust files pin it that are from before there were any."""
    return digest_hex(_of_records())


def noise_protocols_digest() -> str:
    """The same of the protocols that windows of version 1 use, as trust files of that time pin it."""
    return digest_hex(_of_noise())


def _of_records() -> dict[str, Json]:
    more: dict[str, Json] = {
        "kept": COINS_PROTOCOL,
        "listing": LISTING_PROTOCOL,
        "sampled": SAMPLED_PROTOCOL,
    }
    return _of_noise() | more


def _of_noise() -> dict[str, Json]:
    return {"coalition": COALITION_PROTOCOL, "embed": EmbedArgument(1).digest(), "retrieve": PROTOCOL}


def check_pin(pins: Pins, *, sampled: bool = False, together: bool = False) -> str:
    """Return the pinned digest if it is the digest of this release's protocols, or of earlier ones that include the
    proof's protocol.

    :param sampled: whether the proof uses a protocol of samples, or of tenants without noise
    :param together: whether the proof uses a protocol for several records
    :raises SetupError: there is no pin, or it belongs to a release with other protocols
    """
    found = protocols_digest()
    if pins.scan is None:
        raise SetupError("the scan protocols are not pinned", field="trust.pins.scan", expected=found)
    if not sampled and not together and pins.scan == noise_protocols_digest():
        return pins.scan
    if not together and pins.scan == record_protocols_digest():
        return pins.scan
    if pins.scan != found:
        raise SetupError(
            "the pinned scan protocols are another release's",
            field="trust.pins.scan",
            expected=pins.scan,
            found=found,
            hint="verify with that release, or pin this one's once you have read what changed",
        )
    return found
