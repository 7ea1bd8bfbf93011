"""The notes that witnesses leave in a window's public folder, taken as they arrive."""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.canonical import read_text
from rag_audit._internal.errors import RagAuditError, StoreError
from rag_audit.attest.service import Say
from rag_audit.attest.window import Window
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.models.records import Enrolment, Opening, WitnessBeacon


class Notes:
    """Which notes were taken or refused: each version of a file is looked at once, a set of reveals once it changed."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._seen: dict[Path, tuple[int, int]] = {}

    def admit(self, window: Window) -> list[str]:
        """Take what is new: cosignatures one by one, then each beacon's reveals together.

        :returns: the names of the files that were taken
        """
        fresh: list[Path] = []
        for path in sorted(window.context.layout.public.notes.glob("*.txt")):
            if path.name.startswith(("challenge-", "drand-")):
                continue
            try:
                found = path.stat()
            except OSError:
                continue
            version = (found.st_mtime_ns, found.st_size)
            if self._seen.get(path) != version:
                self._seen[path] = version
                fresh.append(path)
        if not fresh:
            return []
        cosigned = [p for p in fresh if not p.name.startswith("beacon-")]
        taken = [p.name for p in cosigned] if self._together(window, cosigned) else [
            p.name for p in cosigned if self._admit(window, [p])
        ]  # fmt: skip
        # A reveal may come before the cosignatures that it rests on: whatever comes, all that wait are tried again.
        notes = window.context.layout.public.notes
        for size in sorted({p.name.split("-")[1] for p in notes.glob("beacon-*-*.txt")}):
            together = sorted(notes.glob(f"beacon-{size}-*.txt"))
            waits = not size.isdigit() or int(size) - 1 not in window.state.beacons
            if waits and len(together) >= _nonces(window, size) and self._admit(window, together):
                taken += [p.name for p in together]
        return taken

    def _together(self, window: Window, paths: list[Path]) -> bool:
        """Take several at once, after which an ended window is published once."""
        try:
            window.admit([read_text(path, max_bytes=MAX_NOTE_BYTES) for path in paths])
        except RagAuditError:
            return False
        return True

    def _admit(self, window: Window, paths: list[Path]) -> bool:
        try:
            window.admit([read_text(path, max_bytes=MAX_NOTE_BYTES) for path in paths])
        except StoreError:  # no fault of the notes: they are looked at again
            for path in paths:
                self._seen.pop(path, None)
            raise
        except RagAuditError as exc:
            self._say(f"{window.opening.window}: {paths[0].name} is not taken: {exc}")
            return False
        return True


def _nonces(window: Window, size: str) -> int:
    """How many reveals make the beacon of the entry that a checkpoint of that size ends with."""
    if not size.isdigit() or not 0 < int(size) <= len(window.state.entries):
        return len(window.witnesses)
    entry = window.state.entries[int(size) - 1]
    beacon = entry.beacon if isinstance(entry, Opening | Enrolment) else None
    return len(beacon.witnesses) if isinstance(beacon, WitnessBeacon) else len(window.witnesses)
