"""Checkpoint signatures and witness quorums, for the checks."""

from __future__ import annotations

from rag_audit._internal.errors import SignatureError
from rag_audit.log.checkpoint import SignedCheckpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.models.records import log_origin
from rag_audit.verify.case import Case, refusal


def provider_key(case: Case) -> VerifierKey:
    """The provider's key, from trust.toml only."""
    return VerifierKey.parse(case.trust.provider.vkey, field="trust.provider.vkey")


def witness_keys(case: Case) -> list[VerifierKey]:
    """The witnesses' keys, from trust.toml only."""
    return [VerifierKey.parse(w.vkey, field=f"trust.witness.{w.name}") for w in case.trust.witness]


def open_trusted(case: Case, text: str, *, field: str, window: str | None = None) -> SignedCheckpoint:
    """Open a checkpoint of a window's log under trust.toml's origin, provider key and witness keys.

    :param window: the window's id; this window's if None
    :raises SignatureError: the checkpoint is of another log, or a signature is missing or wrong
    """
    return open_checkpoint(
        text,
        origin=log_origin(case.trust.provider.origin, window or case.header.window),
        log_key=provider_key(case),
        witnesses=witness_keys(case),
        field=field,
    )


def check_checkpoint(case: Case, text: str, signature_id: str, quorum_id: str) -> SignedCheckpoint | None:
    """Check that the provider signed a checkpoint for trust.toml's origin, and that a quorum cosigned it."""
    origin = log_origin(case.trust.provider.origin, case.header.window)
    try:
        signed = open_trusted(case, text, field=signature_id)
    except SignatureError as exc:
        # Without any signature of the pinned key, the error names that key first: the pin may be wrong.
        key = provider_key(case)
        other = str(exc.expected).split(" or ")[0] in (key.name, f"{key.name}+{key.key_id.hex()}")
        place = "trust.toml: provider.vkey" if other else signature_id
        case.report(signature_id, False, exc.expected or f"signed by {key}", refusal(exc), place)
        return None
    case.signed[signature_id] = signed
    case.report(signature_id, True, f"signed for {origin}", f"signed with size {signed.checkpoint.size}")
    expected = f"cosignatures of {case.trust.quorum} of {len(case.trust.witness)} witnesses"
    names = ", ".join(sorted(k.name for k in signed.cosignatures)) or "no witness of trust.toml"
    try:
        signed.quorum_time(case.trust.quorum)
    except SignatureError:
        case.require(quorum_id, False, expected, f"cosigned by {names}")
        return None
    case.report(quorum_id, True, expected, f"cosigned by {names}")
    return signed
