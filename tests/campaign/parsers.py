"""Coverage-guided fuzzing of every parser of a file or text, by atheris (libFuzzer), if it is installed.

    python -m tests.campaign.parsers notes -runs=100000            one target, with libFuzzer's own options
    python -m tests.campaign.parsers notes crash-1234              one finding

A parser may refuse an input by a named error. It may not end in another way, and it may not accept an input with another
form than its own output. Each start creates the corpus from the worked example and the vectors, so no corpus is stored.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["rag_audit"]):
    from rag_audit._internal.canonical import jcs, parse_base64, parse_json, parse_toml
    from rag_audit.errors import RagAuditError
    from rag_audit.log.checkpoint import Checkpoint
    from rag_audit.log.keys import VerifierKey
    from rag_audit.log.note import parse_note
    from rag_audit.log.signing import SigningKey
    from rag_audit.log.tiles import parse_bundle
    from rag_audit.log.tlog_proof import TlogProof
    from rag_audit.models.beacon import Reveal
    from rag_audit.models.challenge import Challenge
    from rag_audit.models.policy import Policy
    from rag_audit.models.receipts import open_receipt
    from rag_audit.models.records import CountersignedReceipt, parse_entry
    from rag_audit.models.requests import Answer, SignedRequest
    from rag_audit.models.trust import Trust
    from rag_audit.models.windowfile import WindowFile
    from rag_audit.proofs.backends.groth16.verifiers import parse_key, parse_proof

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def text(data: bytes) -> str:
    """Any text, surrogates too."""
    return data.decode("utf-8", "surrogateescape")


def same(actual: object, data: bytes) -> None:
    """The output for a parsed input must equal the input."""
    assert str(actual).encode() == data, "another form was read"


def canonical(data: bytes) -> None:
    value = parse_json(data, source="x")
    assert parse_json(jcs(value), source="x") == value


def notes(data: bytes) -> None:
    note = parse_note(data)
    same(note, data)
    for parse in (Checkpoint.parse, Reveal.parse, lambda t: Challenge.parse(t, field="x")):
        try:
            parse(note.text)
        except RagAuditError:
            continue


def keys(data: bytes) -> None:
    try:
        same(VerifierKey.parse(text(data)), data)
    except RagAuditError:
        SigningKey.parse(text(data))


def proofs(data: bytes) -> None:
    same(TlogProof.parse(data), data)


def receipts(data: bytes) -> None:
    value = CountersignedReceipt.parse(parse_json(data, source="x"), field="x")
    value.message()
    key = VerifierKey("example.org/rag", 1, bytes(32))
    open_receipt(value.receipt, origin="example.org/rag", header_digest="00" * 32, log_key=key, field="x")


def trust(data: bytes) -> None:
    Trust.from_toml(data, source="x")


def toml(data: bytes) -> None:
    parse_toml(data, source="x", max_bytes=1 << 16)


def windows(data: bytes) -> None:
    WindowFile.parse(parse_json(data, source="x"), field="x")


def entries(data: bytes) -> None:
    entry = parse_entry(parse_json(data, source="x"), field="x")
    assert parse_entry(entry.dump(), field="x") == entry


def policies(data: bytes) -> None:
    policy = Policy.parse(parse_json(data, source="x"), field="x")
    policy.check(256)


def messages(data: bytes) -> None:
    value = parse_json(data, source="x")
    for model in (SignedRequest, Answer):
        try:
            model.parse(value, field="x")
        except RagAuditError:
            continue


def groth16(data: bytes) -> None:
    value = parse_json(data, source="x")
    try:
        parse_key(value, field="x")
    except RagAuditError:
        parse_proof(value, "00" * 32, field="x")


def bundles(data: bytes) -> None:
    result = parse_bundle(data, "x")
    assert b"".join(len(e).to_bytes(2, "big") + e for e in result) == data


def base64(data: bytes) -> None:
    import base64 as standard

    result = parse_base64(text(data), field="x")
    assert standard.b64encode(result) == data, "another form was read"


def _value(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text())


def _seeds() -> dict[str, Iterable[bytes]]:
    window, receipt = _value("window.json"), _value("receipts/law-1-1.json")
    trusted = (EXAMPLES / "trust.toml").read_bytes()
    read = Trust.from_toml(trusted, source="x")
    result = [window["final_checkpoint"], *window["entries"][1]["notes"], *window["challenges"]]
    small = {**window, "entries": [], "proofs": {}, "verification_keys": {}, "roster": [], "tenants": []}
    groth = [*window["verification_keys"].values(), *next(iter(window["proofs"].values())).values()]
    return {
        "canonical": [jcs(window["policy"]), b'{"a":[1,-2,null,true,"\\u00e9\\ud83d\\ude00"]}'],
        "notes": [note.encode() for note in result],
        "keys": [read.provider.vkey.encode(), SigningKey("w1", 4, bytes(32)).export().encode()],
        "proofs": [receipt["receipt"].encode()],
        "receipts": [jcs(receipt)],
        "trust": [trusted],
        "toml": [b'a = 1\n[b.c]\nd = "x"\n[[e]]\nf = [1, 2]\n'],
        "windows": [jcs(small)],
        "entries": [jcs(entry) for entry in window["entries"]],
        "policies": [jcs(window["policy"])],
        "messages": [jcs(_value("request.json")), jcs(_value("answer.json"))],
        "groth16": [jcs(value) for value in groth],
        "bundles": [b"\x00\x03abc\x00\x00\x00\x01x"],
        "base64": [b"AAECAwQ=", b"/+8="],
    }


TARGETS: dict[str, Callable[[bytes], None]] = {
    f.__name__: f
    for f in (
        canonical,
        notes,
        keys,
        proofs,
        receipts,
        trust,
        toml,
        windows,
        entries,
        policies,
        messages,
        groth16,
        bundles,
        base64,
    )
}


def main() -> None:
    target, *options = sys.argv[1:]

    def one(data: bytes) -> None:
        try:
            TARGETS[target](data)
        except RagAuditError as exc:
            exc.diagnostics()

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(_seeds()[target]):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        again = any(not option.startswith("-") for option in options)
        atheris.Setup([sys.argv[0], *options, *([] if again else [corpus])], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
