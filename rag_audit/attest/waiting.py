"""The events that a window waits for, by name: missing cosignatures and reveals, or its opening time."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
        return (
            "the window is not open yet: its witnesses have not all cosigned and revealed; ask again at"
            f" {local_time(header.opens_at)} or later"
        )
    return f"the window is not open yet: it opens at {local_time(header.opens_at)}; ask again then"


def ended(header: WindowHeader) -> str:
    """Why a window takes no query any more."""
    return f"the window has ended: it was open until {local_time(header.closes_at)}"


def missing_cosignatures(public: PublicFolder, size: int, witnesses: Sequence[VerifierKey]) -> list[str]:
    """The witnesses without a cosignature on the published checkpoint of that size."""
    path = public.checkpoint(size)
    signed = {s.name for s in parse_note(path.read_bytes()).signatures} if path.exists() else set()
    return [key.name for key in witnesses if key.name not in signed]


def from_witnesses(
    what: str, names: Sequence[str], command: str, asked: Collection[str] = (), over: str = ""
) -> str:
    """What a window waits for from some witnesses, and who acts.

    :param what: the missing objects, such as `cosignatures`
    :param names: the witnesses
    :param command: the command of `rag-audit witness` by which a witness acts
    :param asked: the witnesses that the run asks over HTTP
    :param over: the signed object, such as `on the final checkpoint`
    """
    over_http = [name for name in names if name in asked]
    themselves = [name for name in names if name not in asked]
    request = f"{what} of {', '.join(over_http)}{over and f' {over}'} (the run asks them)"
    act = f"{what} of {', '.join(themselves)}{over and f' {over}'}: each runs `rag-audit witness {command}`"
    return " and ".join([*([request] if over_http else []), *([act] if themselves else [])])


def waited_for(
    header: WindowHeader,
    public: PublicFolder,
    witnesses: Sequence[VerifierKey],
    asked: Collection[str] = (),
) -> str:
    """The event that an inactive window waits for, and the command that causes it.

    :param asked: the witnesses that the run asks over HTTP
    """
    again = ", then run `rag-audit provider open` on the window's folder again"
    if missing := missing_cosignatures(public, 1, witnesses):
        return f"{from_witnesses('cosignatures', missing, 'cosign', asked)}{again}"
    if not isinstance(header.beacon, WitnessBeacon):
        return (
            f"round {header.beacon.round} of drand: `rag-audit provider open --drand-signature` supplies its"
            " signature"
        )
    if silent := [w.name for w in header.beacon.witnesses if not public.note("beacon", 1, w.name).exists()]:
        return f"{from_witnesses('reveals', silent, 'beacon', asked)}{again}"
    return "`rag-audit provider open` on the window's folder, which reads the stored reveals"
