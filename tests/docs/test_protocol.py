"""docs/protocol.md says what the code does: its examples parse and fit together, its tables are complete."""

import importlib
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_audit._internal.canonical import digest_hex, jcs, parse_json, sha256
from rag_audit.account.account import check_receipt
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.note import parse_note, verify_note
from rag_audit.models.beacon import Reveal, members_of, witness_beacon
from rag_audit.models.challenge import Challenge
from rag_audit.models.header import list_root
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.receipts import open_receipt
from rag_audit.models.records import (
    BeaconWitness,
    CountersignedReceipt,
    DrandBeacon,
    QueryRecord,
    RosterEntry,
    SignedReceiptBody,
    TenantEntry,
    WindowHeader,
    document_digest,
    parse_entry,
    verifies,
)
from rag_audit.models.requests import REFUSALS, Answer, Refusal, SignedRequest
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.system import SYSTEM
from rag_audit.proofs.records import verify_records
from rag_audit.proofs.statements import COLUMNS
from rag_audit.proofs.statements.retrieve import record_public
from rag_audit.proofs.statements.tenant import tenant_public
from rag_audit.report.verification import ReportedVerdict

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/protocol.md").read_text()
REMAKE = "run: python docs/examples/generate.py"


@pytest.fixture(scope="module")
def blocks(generator: ModuleType) -> dict[str, str]:
    """The page's marked blocks, as a reader sees them."""
    return {m["name"]: m["body"] for m in generator.BLOCK.finditer(PAGE)}


@pytest.fixture(scope="module")
def values(blocks: dict[str, str]) -> dict[str, Any]:
    """The JSON among them, read strictly."""
    return {k: parse_json(v, source=k) for k, v in blocks.items() if v.startswith(("{", "["))}


@pytest.fixture(scope="module")
def trust(blocks: dict[str, str]) -> Trust:
    return Trust.from_toml(blocks["trust"].encode(), source="trust.toml")


@pytest.fixture(scope="module")
def verdict(generator: ModuleType) -> ReportedVerdict:
    result: ReportedVerdict = generator.verify()
    return result


def test_blocks_are_the_committed_run(generator: ModuleType) -> None:
    assert generator.filled(PAGE) == PAGE, REMAKE
    marked = {m["name"] for m in generator.BLOCK.finditer(PAGE)}
    assert marked == set(generator.examples())


def test_every_block_is_marked(generator: ModuleType) -> None:
    fences = re.findall(r"^```(?:json|toml|text)$", PAGE, re.MULTILINE)
    assert len(fences) == len(generator.BLOCK.findall(PAGE))


def test_the_example_window_verifies(generator: ModuleType, verdict: ReportedVerdict) -> None:
    assert verdict.line.startswith("PASS eps_audit="), REMAKE
    assert (generator.HERE / "verdict.txt").read_text().splitlines()[0] == verdict.line, REMAKE


def test_ledger_entries(values: dict[str, Any], generator: ModuleType) -> None:
    entries = [parse_entry(values[k], field=k) for k in ("header", "beacon", "enrolment", "query", "trailer")]
    ledger = generator.load("window.json")["entries"]
    for entry in entries:
        assert entry.dump() in ledger
        assert type(entry).__name__.lower().removeprefix("window").startswith(entry.type)


def test_opening_commits_to_the_lists_beside_it(values: dict[str, Any]) -> None:
    header = parse_entry(values["header"], field="header")
    policy = Policy.parse(values["policy"], field="policy")
    policy.check(768)
    assert header.c_policy == digest_hex(values["policy"])
    assert header.c_emb == digest_hex(values["embedder"])
    assert header.roster == list_root([RosterEntry.parse(r, field="roster") for r in values["roster"]])
    assert header.tenants == list_root([TenantEntry.parse(t, field="tenants") for t in values["tenants"]])
    publication = Publication.parse(values["publication"], field="publication")
    assert publication.parsed_header() == header


def test_beacon_as_written_down(values: dict[str, Any], blocks: dict[str, str]) -> None:
    """The page's own words, in other code than the package's."""
    first, entry = values["header"], values["beacon"]
    reveals = {}
    for text in entry["notes"]:
        header, origin, window, size, root, nonce, _ts = text.split("\n")[:7]
        assert (header, origin, window, size) == (
            "rag-audit/beacon/v1",
            first["origin"],
            first["window"],
            "1",
        )
        reveals[parse_note(text).signatures[0].name] = (bytes.fromhex(nonce), root)
    message = b"rag-audit/beacon/v1"
    for name in sorted(reveals, key=str.encode):
        for part in (name.encode(), reveals[name][0]):
            message += len(part).to_bytes(4, "big") + part
    assert entry["value"] == sha256(message + leaf_hash(jcs(first))).hex()
    for line in first["beacon"]["witnesses"]:
        member = BeaconWitness.parse(line, field="witness")
        assert member.commitment == sha256(b"rag-audit/beacon-commit/v1" + reveals[member.name][0]).hex()
    assert blocks["beacon-note"] == entry["notes"][0]
    assert Reveal.parse(parse_note(blocks["beacon-note"]).text).window == first["window"]


def test_beacon_verifies(values: dict[str, Any], blocks: dict[str, str], trust: Trust) -> None:
    header = parse_entry(values["header"], field="header")
    keys = [m.vkey for m in members_of(header.beacon)]
    assert {str(k) for k in keys} == {w.vkey for w in trust.witness}
    signed = open_checkpoint(blocks["checkpoint"], origin=header.log,
                             log_key=VerifierKey.parse(trust.provider.vkey), witnesses=keys)  # fmt: skip
    assert signed.checkpoint.root == leaf_hash(header.canonical())
    value, _ = witness_beacon(
        header.beacon, values["beacon"]["notes"], signed, trusted=keys, quorum=2, window=header.window
    )
    assert value.hex() == values["beacon"]["value"]
    assert (
        BeaconWitness.parse(values["nonce-line"], field="nonce").dump()
        in values["header"]["beacon"]["witnesses"]
    )
    assert DrandBeacon.parse(values["drand-source"], field="drand").source == "drand"


def test_request_record_and_answer(values: dict[str, Any], trust: Trust) -> None:
    request = SignedRequest.parse(values["request"], field="request")
    record = QueryRecord.parse(values["query"], field="query")
    key = next(r["key"] for r in values["roster"] if r["account"] == request.account)
    signed = b"rag-audit/request/v1" + jcs(
        {k: values["request"][k] for k in ("origin", "header", "tenant", "account", "i", "hq")}
    )
    assert verifies(bytes.fromhex(key), signed, request.sig)
    assert request.header == digest_hex(values["header"])
    assert (record.account, record.i, record.hq, record.sig) == (
        request.account,
        request.i,
        request.hq,
        request.sig,
    )
    answer = Answer.parse(values["answer"], field="answer")
    publication = Publication.parse(values["publication"], field="publication")
    check_receipt(answer.receipt, publication, VerifierKey.parse(trust.provider.vkey), request=request)


def test_refusal(values: dict[str, Any], trust: Trust) -> None:
    refusal = Refusal.parse(values["refusal"], field="refusal")
    fields = ("origin", "header", "account", "i", "hq", "reason", "detail")
    message = b"rag-audit/refusal/v1" + jcs({k: values["refusal"][k] for k in fields})
    assert VerifierKey.parse(trust.provider.vkey).verifies(bytes.fromhex(refusal.sig), message)
    assert all(f"`{reason}`" in PAGE for reason in REFUSALS)


def test_receipt(values: dict[str, Any], blocks: dict[str, str], trust: Trust) -> None:
    countersigned = CountersignedReceipt.parse(values["countersigned"], field="receipt")
    assert countersigned.receipt == blocks["receipt"]
    key = next(r["key"] for r in values["roster"] if r["account"] == countersigned.account)
    body = {k: v for k, v in values["countersigned"].items() if k != "sig"}
    assert verifies(bytes.fromhex(key), b"rag-audit/countersign/v1" + sha256(jcs(body)), countersigned.sig)
    opened = open_receipt(
        blocks["receipt"],
        origin=trust.provider.origin,
        header_digest=digest_hex(values["header"]),
        log_key=VerifierKey.parse(trust.provider.vkey),
        field="receipt",
    )
    signed = SignedReceiptBody.parse(values["receipt-body"], field="receipt-body")
    assert signed.body == opened.body
    assert opened.record == QueryRecord.parse(values["query"], field="query")
    texts = {d["position"]: d["text"] for d in values["answer"]["documents"]}
    for position, document in zip(signed.body.positions, signed.body.documents, strict=True):
        digest = document_digest(bytes.fromhex(document.salt), texts.get(position, "").encode())
        assert digest.hex() == document.hash


def test_proof_and_key(values: dict[str, Any], trust: Trust) -> None:
    key = VerificationKey.parse(values["verification-key"], field="key")
    pin = trust.pins.key(key.circuit)
    assert pin is not None and pin.vk == digest_hex(values["verification-key"])
    record = QueryRecord.parse(values["query"], field="query")
    tenant = next(t for t in values["tenants"] if t["tenant"] == record.tenant)
    public = tenant_public(
        TenantEntry.parse(tenant, field="tenants"),
        policy=Policy.parse(values["policy"], field="policy"),
        manifest=values["embedder"],
        header_digest=digest_hex(values["header"]),
    )
    header = parse_entry(values["header"], field="header")
    assert isinstance(header, WindowHeader)
    beacon = bytes.fromhex(values["beacon"]["value"])
    facts = record_public(record, public, header=header, beacon=beacon)
    steps = SYSTEM.steps("retrieve", public)
    proof = steps.parse_proof(values["proof"]["retrieve"], field="proof")
    assert proof.records == (steps.digest(steps.statement(facts)),)
    assert verify_records(steps, key, [proof], [steps.statement(facts)], [steps.statement(facts)]) == {}


def test_challenge_and_its_draw(blocks: dict[str, str], trust: Trust, generator: ModuleType) -> None:
    note = parse_note(blocks["challenge"])
    verify_note(note, [VerifierKey.parse(v.vkey) for v in trust.verifier])
    challenge = Challenge.parse(note.text, field="challenge")
    head = Checkpoint.parse(parse_note(generator.load("window.json")["final_checkpoint"]).text)
    assert (challenge.size, challenge.root) == (head.size, head.root)
    # The four steps of the page, in other code than the package's.
    count, sample = 7, 3
    seed = sha256(b"rag-audit/challenge/v1" + challenge.root + challenge.nonce)
    words = []
    for c in range(20):
        block = sha256(seed + c.to_bytes(8, "big"))
        words += [int.from_bytes(block[:16], "big"), int.from_bytes(block[16:], "big")]
    order = list(range(count))
    for j in range(sample):
        bound = count - j
        while (word := words.pop(0)) >= 2**128 // bound * bound:
            pass
        k = j + word % bound
        order[j], order[k] = order[k], order[j]
    seqs = [10 * n for n in range(count)]
    same = replace(challenge, sample=sample)
    assert same.positions(seqs) == sorted(10 * n for n in order[:sample])


def test_window_as_a_folder(values: dict[str, Any], generator: ModuleType, tmp_path: Path) -> None:
    whole = generator.load("window.json")
    (tmp_path / "window.json").write_bytes(jcs(values["window"]))
    for key, part in values["window"].items():
        if isinstance(part, dict) and set(part) == {"sibling"}:
            (tmp_path / part["sibling"]).write_bytes(jcs(whole[key]))
    assert WindowFile.load(tmp_path).dump() == whole


def test_every_check_is_documented(verdict: ReportedVerdict) -> None:
    table = PAGE[PAGE.index("| id | passes if |") : PAGE.index("## Levels")]
    documented = set(
        re.findall(r"`((?:header|ledger|proof|receipt|coalition|bound|trust)(?:\.[A-Za-z0-9_]+)+)", table)
    )
    tenants = r"\.(law|medicine|\{tenant\})$"
    emitted = {re.sub(tenants, "", c.id) for c in verdict.checks}
    for path in (ROOT / "rag_audit/verify/checks").glob("*.py"):
        groups = "header|ledger|proof|receipt|coalition|bound|trust"
        code = re.sub(r"^ *(>>>|\.\.\.) .*$", "", path.read_text(), flags=re.MULTILINE)  # without examples
        emitted |= {
            re.sub(tenants, "", result)
            for result in re.findall(rf'(?<!field=)(?<!\w)f?"((?:{groups})\.[A-Za-z0-9_.{{}}]+)"', code)
            if "{name}" not in result
        }
    emitted |= {f"{group}.{name}" for group in ("ledger", "proof") for name in COLUMNS}
    assert emitted - documented == set()
    assert documented - emitted == set()


def test_limits_are_the_codes() -> None:
    rows = re.findall(r"\| (\d+) [a-z ]+ \| `(rag_audit\.[a-z0-9_.]+)\.([A-Z_]+)` \|", PAGE)
    assert len(rows) == 34
    for value, module, name in rows:
        assert getattr(importlib.import_module(module), name) == int(value), (module, name)
