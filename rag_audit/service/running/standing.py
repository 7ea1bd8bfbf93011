"""Where a run stands, read from its folder without a lock, while it runs too."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from rag_audit._internal.lock import is_held
from rag_audit.attest.reading import WindowReader
from rag_audit.log.place import begun
from rag_audit.service.running.shelf import Place, RunState, places


def is_running(folder: Path) -> bool:
    """Whether a process runs the folder."""
    return is_held(folder / "lock")


def in_order(folder: Path, state: RunState) -> list[Place]:
    """A run's windows by number."""
    return sorted(places(folder, state.prefix), key=lambda place: place.number)


def without_commands(text: str) -> str:
    """What a window waits for, without the commands on its folder that a run makes needless."""
    for pattern, instead in (
        (r", then run `rag-audit [a-z]+`.*", ""),
        (r": `rag-audit (serve|prove|open)[^`]*`.*", ""),
        (r"^`rag-audit close`: ", "its closing record: "),
        (r"^`rag-audit open` on the window's folder, which takes ", ""),
    ):
        text = re.sub(pattern, instead, text)
    return text


def standing_of(place: Place, state: RunState, now: int) -> dict[str, object]:
    """Where one window stands, as `Standing` has it with the window's id; or how far its preparation is.

    :param now: milliseconds since the epoch
    """
    layout = place.layout
    if (
        not layout.commitment.exists()
        or layout.unfinished.exists()
        or not begun(layout.ledger, layout.ledger_place)
    ):
        if layout.prepared.exists():
            return {
                "window": place.window,
                "status": "prepared",
                "waits_for": "the end of the window before it",
            }
        return {"window": place.window, "status": "being prepared", "waits_for": "its documents' index"}
    found = asdict(WindowReader(place.folder).standing(now))
    if place.window in state.abandoned:
        found |= {"status": "abandoned", "waits_for": "nothing"}
    elif place.window in state.published and not layout.secrets.exists():
        found |= {
            "status": "deleted",
            "waits_for": "nothing: its secrets are deleted, what is published stays",
        }
    found["waits_for"] = without_commands(str(found["waits_for"]))
    return {"window": place.window, **found}
