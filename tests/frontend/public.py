"""The public folder of a provider around a window of vectors/windows, and a provider's folder that holds more than it
may."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from rag_audit.models.publication import PUBLICATION

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted(path.parent for path in (ROOT / "vectors" / "windows").glob("*/case.json"))


class Case(NamedTuple):
    """A case of vectors/windows: the files that it names, as paths."""

    folder: Path
    stated: dict[str, Any]
    window: Path
    trust: Path

    @classmethod
    def of(cls, folder: Path) -> Case:
        stated = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        window = folder / stated["window"]
        window = window / "window.json" if window.is_dir() else window
        return cls(folder, stated, window.resolve(), (folder / stated["trust"]).resolve())

    def named(self, name: str) -> list[Path]:
        """The files under one of the names that are lists."""
        return [(self.folder / file).resolve() for file in self.stated.get(name, [])]

    def own(self) -> list[Path]:
        """The verifier's own files."""
        return [self.trust, *self.named("receipts"), *self.named("previous"), *self.named("challenges")]


def public_folder(case: Case, folder: Path) -> list[Path]:
    """Write all that a provider publishes about a case's window (docs/protocol.md) to a folder, and return the
    files."""
    folder.mkdir(parents=True)
    shutil.copy(case.window, folder / "window.json")
    for sibling in case.named("siblings"):
        shutil.copy(sibling, folder)
    window = _fields(case.window)
    header = {name: window.get(name) for name in ("policy", "embedder", "roster", "tenants")}
    entries = window.get("entries")
    first = entries[0] if isinstance(entries, list) and entries else None
    header |= {"mediaType": PUBLICATION, "header": first}
    (folder / "header.json").write_text(json.dumps(header))
    notes = folder / "notes"
    notes.mkdir()
    for name in ("header_checkpoint", "final_checkpoint"):
        if isinstance(note := window.get(name), str):
            size = note.split("\n")[1] if note.count("\n") > 1 else "1"
            (folder / f"checkpoint-{size if size.isdigit() else 1}.txt").write_text(note)
            (notes / f"cosign-{size if size.isdigit() else 1}-w1.txt").write_text(note)
    challenges = folder / "challenges"
    challenges.mkdir()
    published = window.get("challenges")
    for note in published if isinstance(published, list) else []:
        if isinstance(note, str):
            (challenges / f"{hashlib.sha256(note.encode()).hexdigest()}.txt").write_text(note)
    return files_below(folder)


def with_forged_roles(case: Case, folder: Path) -> list[Path]:
    """Write a provider's folder that also holds files of every role which only a verifier may fill: a trust file that
    asks for little, published draws under the name of a verifier's own, receipts, an earlier window, attack results.
    """
    public_folder(case, folder)
    shutil.copy(case.trust, folder / "trust.toml")
    (folder / "lenient.toml").write_text(
        case.trust.read_text(encoding="utf-8").replace('challenge = "own"', 'challenge = "published"')
    )
    for number, note in enumerate((folder / "challenges").iterdir()):
        shutil.copy(note, folder / f"challenge-{number}.txt")
        shutil.copy(note, folder / f"my-own-challenge-{number}.json")
    (folder / "receipts").mkdir()
    for number, receipt in enumerate(case.named("receipts")):
        shutil.copy(receipt, folder / "receipts" / f"{number}-{receipt.name}")
        digest = hashlib.sha256(receipt.read_bytes()).hexdigest()
        shutil.copy(receipt, folder / f"{digest}.json")
    (folder / "attacks.json").write_text('{"type": "attacks", "v": 1}')
    return files_below(folder)


def files_below(folder: Path) -> list[Path]:
    """Every file below a folder, in the order of their paths."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _fields(window: Path) -> dict[str, Any]:
    try:
        value = json.loads(window.read_bytes())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
