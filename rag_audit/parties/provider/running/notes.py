"""The notes that witnesses leave in a window's public folder, taken as they arrive."""

from __future__ import annotations

from pathlib import Path

from rag_audit.encoding.canonical import read_text
from rag_audit.errors import RagAuditError
from rag_audit.ledger.note import MAX_NOTE_BYTES
from rag_audit.parties.provider.service import Say
from rag_audit.parties.provider.window import Window


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
        taken = [p.name for p in fresh if not p.name.startswith("beacon-") and self._admit(window, [p])]
        for size in sorted({p.name.split("-")[1] for p in fresh if p.name.startswith("beacon-")}):
            together = sorted(window.context.layout.public.notes.glob(f"beacon-{size}-*.txt"))
            if self._complete(window, together) and self._admit(window, together):
                taken += [p.name for p in together]
        return taken

    def _complete(self, window: Window, reveals: list[Path]) -> bool:
        """Whether there is a note of every witness, before which a beacon cannot be drawn."""
        return len(reveals) >= len(window.witnesses)

    def _admit(self, window: Window, paths: list[Path]) -> bool:
        try:
            window.admit([read_text(path, max_bytes=MAX_NOTE_BYTES) for path in paths])
        except RagAuditError as exc:
            self._say(f"{window.opening.window}: {paths[0].name} is not taken: {exc}")
            return False
        return True
