"""What `export` and `receipt export --tlog-proof` write for other people's tools, and what they refuse to write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit._internal.node import find_node, npm_packages
from rag_audit.account.account import Account
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    SchemaError,
    SignatureError,
    StoreError,
    WindowStateError,
)
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.note import Note, parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tiles import read_tiles
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.final_log import FinalLog
from rag_audit.models.publication import Publication
from rag_audit.models.records import DocumentOpening, QueryRecord, ReceiptBody, SignedReceiptBody
from rag_audit.proofs.backends.groth16 import snarkjs
from rag_audit.proofs.backends.groth16.export import SNARKJS
from rag_audit.report.export import write_snarkjs, write_tiles
from tests.window.simulator import ORIGIN, Finished, Service

ROOT = Path(__file__).resolve().parents[2]
LINE = 65_535
"""bytes of a line that Go's bufio.Scanner reads with its own limit, without the newline"""


# A .tlog-proof for each receipt.


def export(finished: Finished, folder: Path, **changes: Any) -> list[Path]:
    account = finished.service.accounts["law-1"]
    public = Publication.load(finished.window / "public")
    arguments = {"file": finished.file, "provider": finished.service.key.verifier, **changes}
    return account.export_tlog_proofs(public, arguments["file"], folder, arguments["provider"])


def test_a_receipts_record_is_proved_under_the_cosigned_final_checkpoint(
    finished: Finished, tmp_path: Path
) -> None:
    written = export(finished, tmp_path)
    names = {"law-1-1.entry", "law-1-1.tlog-proof", "law-1-2.entry", "law-1-2.tlog-proof"}
    assert {p.name for p in written} == names == {p.name for p in tmp_path.iterdir()}
    keys = [w.vkey for w in finished.service.witnesses.values()]
    for number in (1, 2):
        entry = (tmp_path / f"law-1-{number}.entry").read_bytes()
        record = QueryRecord.parse(json.loads(entry), field="entry")
        assert (record.account, record.i, record.canonical()) == ("law-1", number, entry)
        proof = TlogProof.parse((tmp_path / f"law-1-{number}.tlog-proof").read_bytes())
        signed = proof.verify(leaf_hash(entry), origin=f"{ORIGIN}/w-1", log_key=finished.service.key.verifier,
                              witnesses=keys)  # fmt: skip
        assert (proof.index, proof.extra) == (record.seq, None)
        assert set(signed.cosignatures) == set(keys)
        assert signed.checkpoint.size == len(finished.file.entries)


def test_a_record_that_the_window_does_not_hold_is_not_proved(finished: Finished) -> None:
    log = FinalLog.of(finished.file, log_key=finished.service.key.verifier)
    value = next(e for e in finished.file.entries if isinstance(e, dict) and e["type"] == "query")
    record = QueryRecord.parse(value, field="record")
    assert log.proof(record).index == record.seq
    for other in ({"ts": record.ts + 1}, {"seq": 10_000}):
        with pytest.raises(InvalidProof, match="the window does not contain the record"):
            log.proof(record.model_copy(update=other))


def test_what_is_no_final_log(finished: Finished, tmp_path: Path) -> None:
    key = finished.service.key.verifier
    note = parse_note(finished.file.final_checkpoint)
    alone = finished.changed(final_checkpoint=str(Note(note.text, note.signatures[:1])))
    with pytest.raises(WindowStateError, match="no witness has cosigned"):
        export(finished, tmp_path, file=alone)
    with pytest.raises(SignatureError, match="no known key signed the note"):
        export(finished, tmp_path, provider=SigningKey.generate(ORIGIN).verifier)
    entries = finished.value()["entries"]
    with pytest.raises(SchemaError, match="not closed"):
        FinalLog.of(finished.changed(entries=entries[:-1]), log_key=key)
    edited = [*entries[:2], {**entries[2], "ts": entries[2]["ts"] + 1}, *entries[3:]]
    with pytest.raises(SchemaError, match="the window's entries do not match its final checkpoint"):
        export(finished, tmp_path, file=finished.changed(entries=edited))
    header = {**entries[0], "closes_at": entries[0]["closes_at"] + 1}
    with pytest.raises(SchemaError):
        FinalLog.of(finished.changed(entries=[header, *entries[1:]]), log_key=key)
    assert list(tmp_path.iterdir()) == []


def test_the_window_of_another_opening_is_refused(
    finished: Finished, scanned: Finished, tmp_path: Path
) -> None:
    with pytest.raises((SchemaError, SignatureError)):
        export(finished, tmp_path, file=scanned.file)
    with pytest.raises(SchemaError, match="the window file belongs to another window"):
        export(finished, tmp_path, file=scanned.file, provider=scanned.service.key.verifier)


# Tiles.


def test_a_window_as_tiles(finished: Finished, tmp_path: Path) -> None:
    assert write_tiles(finished.file, tmp_path) == len(finished.file.entries)
    note, entries = read_tiles(tmp_path)
    assert str(note) == finished.file.final_checkpoint
    assert entries == [jcs(e) for e in finished.file.entries]
    assert write_tiles(finished.file, tmp_path) == len(entries)  # again into the same folder


def test_tiles_do_not_overwrite_another_log_or_a_longer_one(
    finished: Finished, scanned: Finished, service: Service, tmp_path: Path
) -> None:
    write_tiles(finished.file, tmp_path)
    path = tmp_path / "checkpoint"
    before = path.read_text()
    for text in (
        before.replace("/w-1\n", "/w-2\n", 1),
        before.replace(f"\n{len(finished.file.entries)}\n", "\n99\n"),
    ):
        path.write_text(text)
        with pytest.raises(StoreError, match="the folder contains another log, or a longer log"):
            write_tiles(finished.file, tmp_path)
        assert path.read_text() == text


# snarkjs.


def run(script: Path) -> subprocess.CompletedProcess[str]:
    cli = npm_packages() / "snarkjs" / "build" / "cli.cjs"
    return subprocess.run(
        ["sh", str(script)], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "SNARKJS": f"{find_node().node} {cli}"},
    )  # fmt: skip


@pytest.mark.circuits
def test_snarkjs_checks_what_is_written_for_it(finished: Finished, tmp_path: Path) -> None:
    """The real snarkjs, run as a reader runs it; one proof of each statement, to save time."""
    proofs = finished.value()["proofs"]
    kept = dict(sorted(proofs.items(), key=lambda item: int(item[0]))[:1])
    assert write_snarkjs(finished.changed(proofs=kept), tmp_path) == 2
    result = json.loads((tmp_path / "index.json").read_text())["proofs"]
    assert sorted(p["statement"] for p in result) == ["embed", "retrieve"]
    done = run(tmp_path / "verify.sh")
    assert done.returncode == 0 and done.stdout.count("OK!") == 2, done.stdout + done.stderr
    # Another public input: snarkjs, and so the script, says no.
    path = tmp_path / result[0]["folder"] / "public.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps([*values[:-1], str(int(values[-1]) + 1)]))
    assert run(tmp_path / "verify.sh").returncode != 0


def test_the_index_names_what_was_written(finished: Finished, tmp_path: Path) -> None:
    result = write_snarkjs(finished.file, tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    records = [e for e in finished.file.entries if isinstance(e, dict) and e["type"] == "query"]
    assert result == len(index["proofs"]) == 2 * len(records)
    assert index["keys"] == {p.circuit: p.vk for p in finished.service.trust(finished.policy).pins.groth16}
    for part in index["proofs"]:
        (record,) = (r for r in records if [r["seq"]] == part["records"])
        values = json.loads((tmp_path / part["folder"] / "public.json").read_text())
        named = dict(zip(part["inputs"], values, strict=True))
        cq = "cq" if part["statement"] == "embed" else "cq[0]"  # a place of the circuit's records
        assert named[cq] == str(int(record["cq"], 16))
        assert (tmp_path / "keys" / f"{part['circuit']}.json").exists()
        assert part["folder"] in (tmp_path / "verify.sh").read_text()
    lock = json.loads((ROOT / "circuits" / "package.json").read_text())
    assert f"snarkjs@{lock['dependencies']['snarkjs']}" == SNARKJS


def test_what_is_not_written_for_snarkjs(finished: Finished, scanned: Finished, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no Groth16 proof"):
        write_snarkjs(scanned.file, tmp_path)
    with pytest.raises(SchemaError, match="no verification key"):
        write_snarkjs(finished.changed(verification_keys={}), tmp_path)
    value = finished.value()["proofs"]
    seq = next(iter(value))
    value[seq]["retrieve"]["a"][0] = "00" * 31 + "02"
    with pytest.raises(EncodingError):
        write_snarkjs(finished.changed(proofs=value), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_for_snarkjs_are_what_the_engine_runs(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify --engine snarkjs` reads the same three files."""
    seen: list[set[str]] = []

    def look(arguments: list[str], folder: Path, _timeout: float) -> str:
        seen.append({p.name for p in folder.iterdir()} & set(arguments))
        return "OK!"

    monkeypatch.setattr(snarkjs, "_run", look)
    assert finished.verify(engine="snarkjs").passed
    assert seen and all(names == {"key.json", "public.json", "proof.json"} for names in seen)


# The line limit of Go's reader.


def receipt_line(top_k: int, capacity: int) -> int:
    """Bytes of a receipt's `extra` line at most, with the longest ids."""
    depth = (capacity - 1).bit_length()
    hashes = "ff" * 32
    document = DocumentOpening(hash=hashes, salt=hashes, path=[hashes] * depth)
    name = "a" * 128
    record = QueryRecord(
        type="query", v=1, window=name, seq=10**9, account=name, tenant=name, i=10**6, ts=10**13, hq="0" * 64,
        cq="0" * 64, htopk="0" * 64, hans=hashes, listed_rows=hashes, sig=hashes * 2, proof=hashes,
    )  # fmt: skip
    body = ReceiptBody(v=1, record=record, salt_k="0" * 64, salt_a=hashes, positions=[capacity - 1] * top_k,
                       documents=[document] * top_k)  # fmt: skip
    size = len(SignedReceiptBody(body=body, sig=hashes * 2).canonical())
    return len("extra ") + 4 * ((size + 2) // 3)


def maximum(capacity: int) -> int:
    return max(k for k in range(1, 200) if receipt_line(k, capacity) <= LINE)


def test_the_table_of_the_page_is_what_the_format_gives() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| K at most |"))
    said = [int(cell) for cell in row.split("|")[2:-1]]
    assert said == [maximum(capacity) for capacity in (64, 1_000, 10_000, 100_000, 1_000_000)]


def test_a_receipt_without_its_openings_is_short(finished: Finished, tmp_path: Path) -> None:
    """What `--tlog-proof` writes has no line that grows with K."""
    for path in export(finished, tmp_path):
        assert all(len(line) < 1024 for line in path.read_bytes().split(b"\n"))
    assert isinstance(finished.service.accounts["law-1"], Account)
