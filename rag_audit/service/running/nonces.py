"""The nonce lines that witnesses leave for a run, of which each opening takes one of every witness."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.canonical import read_json
from rag_audit._internal.durable import sync_directory
from rag_audit._internal.errors import RagAuditError
from rag_audit.attest.service import Say
from rag_audit.log.keys import VerifierKey
from rag_audit.models.records import WitnessBeacon

MAX_LINE_BYTES = 1 << 16


def find_beacon(
    folder: Path, witnesses: Sequence[VerifierKey], used: set[str], say: Say
) -> tuple[WitnessBeacon | None, list[str]]:
    """A fresh nonce commitment of every witness, from the files in a folder, or one file.

    :param used: commitments that an opening names already
    :returns: the beacon, or None with the names of the witnesses of whom there is none
    """
    found: dict[str, dict[str, str]] = {}
    known = {str(w): w.name for w in witnesses}
    for path in _lines(folder):
        try:
            value = read_json(path, max_bytes=MAX_LINE_BYTES)
            line = WitnessBeacon.parse(
                {"source": "witnesses", "witnesses": [value]}, field=path.name
            ).witnesses[0]
        except RagAuditError as exc:
            say(f"{path.name} is no nonce line: {exc}")
            continue
        if line.vkey in known and line.commitment not in used:
            found.setdefault(known[line.vkey], line.model_dump())
    missing = [w.name for w in witnesses if w.name not in found]
    if missing:
        return None, missing
    lines = [found[w.name] for w in witnesses]
    return WitnessBeacon.parse({"source": "witnesses", "witnesses": lines}, field=str(folder)), []


def set_aside(folder: Path, target: Path, witness: VerifierKey, used: set[str]) -> bool:
    """Move a witness's fresh nonce line to where no opening looks for one.

    :returns: False if there is none
    """
    for path in _lines(folder):
        if find_beacon(path, [witness], used, lambda _: None)[0] is not None:
            target.mkdir(parents=True, exist_ok=True)
            os.replace(path, target / path.name)
            sync_directory(target)
            return True
    return False


def drop_used(folder: Path, used: set[str]) -> None:
    """Remove the files of commitments that openings name, which no other opening can."""
    for path in _lines(folder):
        try:
            value = read_json(path, max_bytes=MAX_LINE_BYTES)
        except RagAuditError:
            continue
        if isinstance(value, dict) and value.get("commitment") in used:
            path.unlink(missing_ok=True)


def _lines(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError:
        return []
