"""Published proofs of the scan argument, and what tests change in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rag_audit.proofs.reference.group import G, Point, decode, encode, total
from rag_audit.proofs.reference.session import Session
from rag_audit.proofs.reference.transcript import CHALLENGE, POINT, SCALAR, Reader, Transcript

VECTORS = Path(__file__).parents[2] / "vectors/v2/scan"


@cache
def published(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return made


class Labels:
    """What a transcript hears: kinds, labels, and four bytes of each state."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str, bytes]] = []
        self.states = b""

    def __call__(self, kind: int, label: str, data: bytes, state: bytes) -> None:
        self.heard.append((kind, label, data))
        self.states += state[:4]


class Blank(Reader):
    """A proof of neutral points and zeros, as long as it is read: what a run says, whatever it holds."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript, b"")

    def point(self, label: str) -> Point:
        self.transcript.point(label, encode(None))
        return None

    def scalar(self, label: str) -> int:
        self.transcript.scalar(label, 0)
        return 0


def counts(run: str, read: Callable[[Reader], Session]) -> list[str]:
    """How often a run says what, and claims what, in the words of the published traces."""
    heard = Labels()
    session = read(Blank(Transcript(run, heard)))
    said = Counter(
        f"{kind} {0 if kind == CHALLENGE else len(data) or len(label)} {label}"
        for kind, label, data in heard.heard
    )
    said.update(f"constraint: {name}" for name, *_ in session.constraints)
    said.update(f"product: {name}" for name in session.product_names)
    said.update(f"column claim: {name}" for name, *_ in session.claims)
    return [f"{n} x {what}" for what, n in said.items()]


def traces(name: str, run: str) -> dict[str, list[str]]:
    """The published counts of a run, by its sizes."""
    return {r["sizes"]: r["counts"] for r in published(name)["runs"] if r["run"] == run}


def words_by_label(verify: Callable[[Transcript], Any], run: str, proof: bytes) -> Iterator[bytes]:
    """The proof with another point or scalar in the place of the last one of each label."""
    labels = Labels()
    verify(Transcript(run, labels))
    words = [(kind, label, data) for kind, label, data in labels.heard if kind in (POINT, SCALAR)]
    words = words[len(words) - len(proof) // 32 :]
    assert b"".join(data for *_, data in words) == proof
    for i in {label: i for i, (_, label, _) in enumerate(words)}.values():
        kind, _, old = words[i]
        new = encode(total([(1, decode(old)), (1, G(0))])) if kind == POINT else bytes(31) + b"\x01"
        yield proof[: 32 * i] + new + proof[32 * (i + 1) :]
