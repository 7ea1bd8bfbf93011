"""The events that a window waits for, by name: missing cosignatures and reveals, or its opening time."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.clock import local_time
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import parse_note
from rag_audit.models.layout import PublicFolder
from rag_audit.models.records import WindowHeader, WitnessBeacon


def not_open_yet(header: WindowHeader, *, drawn: bool) -> str:
    """Why a window takes no query yet, and until when.

    :param drawn: whether the beacon that the account's slots use is drawn
    """
    if not drawn:
        return "the window is not open yet: its witnesses have not all cosigned and revealed"
    return f"the window is not open yet: it opens at {local_time(header.opens_at)}"


def ended(header: WindowHeader) -> str:
    """Why a window takes no query any more."""
    return f"the window has ended: it was open until {local_time(header.closes_at)}"


def missing_cosignatures(public: PublicFolder, size: int, witnesses: Sequence[VerifierKey]) -> list[str]:
    """The witnesses without a cosignature on the published checkpoint of that size."""
    path = public.checkpoint(size)
    signed = {s.name for s in parse_note(path.read_bytes()).signatures} if path.exists() else set()
    return [key.name for key in witnesses if key.name not in signed]


def waited_for(header: WindowHeader, public: PublicFolder, witnesses: Sequence[VerifierKey]) -> str:
    """The event that an inactive window waits for, and the command that causes it."""
    if missing := missing_cosignatures(public, 1, witnesses):
        return (
            f"cosignatures of {', '.join(missing)}: each runs `rag-audit witness cosign`, then run `rag-audit"
            " provider open` on the window's folder again"
        )
    if not isinstance(header.beacon, WitnessBeacon):
        return (
            f"round {header.beacon.round} of drand: `rag-audit provider open --drand-signature` supplies its"
            " signature"
        )
    if silent := [w.name for w in header.beacon.witnesses if not public.note("beacon", 1, w.name).exists()]:
        return (
            f"reveals of {', '.join(silent)}: each runs `rag-audit witness beacon`, then run `rag-audit"
            " provider open` on the window's folder again"
        )
    return "`rag-audit provider open` on the window's folder, which reads the stored reveals"
