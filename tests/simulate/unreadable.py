"""Input that cannot be read: each ends in a named error, before any check or as one check's outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from rag_audit._internal.canonical import jcs
from tests.simulate.cases import Fault

Files = dict[str, bytes]
LARGE = ("entries", "proofs", "verification_keys")


def window(change: Callable[[bytes], bytes]) -> Callable[[Files], None]:
    """Another text of the window file."""

    def files(stored_proofs: Files) -> None:
        stored_proofs["window.json"] = change(stored_proofs["window.json"])

    return files


def member(change: Callable[[dict[str, Any]], Any]) -> Callable[[Files], None]:
    """Another value of the window file, written by JSON's rules."""

    def files(stored_proofs: Files) -> None:
        value = json.loads(stored_proofs["window.json"])
        change(value)
        stored_proofs["window.json"] = json.dumps(value, ensure_ascii=False).encode() + b"\n"

    return files


def replaced(old: bytes, new: bytes) -> Callable[[Files], None]:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return window(change)


def in_trust(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def siblings(name: Callable[[bytes], str] = lambda data: hashlib.sha256(data).hexdigest() + ".json",
             content: Callable[[bytes], bytes] = lambda data: data) -> Callable[[Files], None]:  # fmt: skip
    """Large parts beside window.json, each in a file that is named by its SHA-256."""

    def files(stored_proofs: Files) -> None:
        value = json.loads(stored_proofs["window.json"])
        for part in LARGE:
            data = jcs(value[part])
            stored_proofs[hashlib.sha256(data).hexdigest() + ".json"] = content(data)
            value[part] = {"sibling": name(data)}
        stored_proofs["window.json"] = jcs(value) + b"\n"

    return files


def entry(number: int, **changes: Any) -> Callable[[Files], None]:
    return member(lambda v: v["entries"][number].update(changes))


def nested(stored_proofs: Files) -> None:
    stored_proofs["window.json"] = b'{"entries":' + b"[" * 100 + b"]" * 100 + b"}\n"


def _fault(name: str, says: str, **options: Any) -> Fault:
    return Fault(name, says, base="few", **options)


UNREADABLE = [
    _fault("siblings", "nothing: large parts lie in sibling files", files=siblings()),
    _fault(
        "sibling-of-another-content",
        "a sibling's content is not what its name says",
        files=siblings(content=lambda d: d + b" "),
    ),
    _fault(
        "sibling-with-a-path",
        "a sibling is named by a path",
        files=siblings(name=lambda d: "../few/window.json"),
    ),
    _fault("window-cut", "the window file was cut", files=window(lambda d: d[: len(d) // 2])),
    _fault(
        "window-not-unicode",
        "the window file is not UTF-8",
        files=replaced(b"example.org", b"example\xff\xfe"),
    ),
    _fault(
        "window-with-a-name-twice",
        "an object has one name twice",
        files=replaced(b'"challenges":', b'"challenges":[],"challenges":'),
    ),
    _fault("window-with-a-fraction", "a number is a fraction", files=replaced(b'"seq":1,', b'"seq":1.0,')),
    _fault(
        "window-with-a-long-number",
        "a number has 5,000 digits",
        files=replaced(b'"seq":1,', b'"seq":' + b"1" * 5000 + b","),
    ),
    _fault("window-nested-deeply", "arrays are nested a hundredfold", files=nested),
    _fault(
        "window-of-another-version",
        "the media type says another version",
        files=replaced(b"version=1", b"version=2"),
    ),
    _fault(
        "window-with-another-field",
        "the window file has a field that nobody knows",
        files=member(lambda v: v.update(summary="PASS")),
    ),
    _fault(
        "window-without-a-field",
        "the window file has no final checkpoint",
        files=member(lambda v: v.pop("final_checkpoint")),
    ),
    _fault("entry-type-a-list", "an entry's type is a list", files=entry(2, type=["query"])),
    _fault("entry-type-unknown", "an entry is of a type that nobody knows", files=entry(2, type="gift")),
    _fault("entry-with-a-boolean", "a boolean stands for an integer", files=entry(2, seq=True)),
    _fault("entry-with-another-field", "a record has a field that nobody knows", files=entry(2, note="x")),
    _fault(
        "roster-line-without-custody",
        "a roster line does not say who holds the key",
        files=member(lambda v: v["roster"][0].pop("custody")),
    ),
    _fault(
        "origin-of-two-lines",
        "the origin has a line break, so that it could write a line of the report",
        files=entry(0, origin="example.org/rag\nPASS eps_audit=0.1"),
    ),
    _fault(
        "manifest-with-a-number",
        "an artefact's digest is a number",
        files=member(lambda v: v["embedder"]["embedder"]["artefacts"].update({"table-scan": 5})),
    ),
    _fault(
        "beacon-entry-before-the-opening",
        "the ledger does not begin with an opening",
        files=member(lambda v: v["entries"].insert(0, v["entries"].pop(1))),
    ),
    _fault(
        "digits-of-another-script",
        "a decimal is written in digits of another script",
        files=member(lambda v: v["policy"].update(eps_acc="١٤")),
    ),
    _fault(
        "trust-with-an-unknown-name",
        "trust.toml has a requirement that nobody knows",
        trust=in_trust("[require]", '[require]\nmax_epsilom = "1"'),
    ),
    _fault("trust-that-is-no-toml", "trust.toml is no TOML", trust=lambda text: text[:-40] + "[[["),
    _fault(
        "trust-of-another-version",
        "trust.toml is of another version",
        trust=in_trust("version = 1", "version = 2"),
    ),
    _fault(
        "trust-without-the-provider", "trust.toml names no provider", trust=in_trust("[provider]", "[vendor]")
    ),
    _fault(
        "trust-with-a-vanishing-eta",
        "eta is too small to count with",
        require={"mode": "sampled", "beta": "0.5", "eta": "0.5"},
        trust=in_trust('eta = "0.5"', 'eta = "1e-999"'),
    ),
]
