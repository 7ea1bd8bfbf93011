"""Make the worked examples of docs/protocol.md: one small window, run by every party, with real keys and proofs.

    python docs/examples/generate.py          run the window, write docs/examples and the blocks of docs/protocol.md
    python docs/examples/generate.py --verdict  verify the committed window again and write its report and the blocks
    python docs/examples/generate.py --check  compare the blocks with what docs/examples holds; exit 1 if they differ

The clock is set by hand, so that the example always opens at the same second; keys, salts and noise are fresh.
Private keys and the provider's secrets are thrown away.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from rag_audit._internal.canonical import jcs, sha256  # noqa: E402
from rag_audit.account.account import Account  # noqa: E402
from rag_audit.attest.window import Window  # noqa: E402
from rag_audit.log.merkle import HashTree, leaf_hash  # noqa: E402
from rag_audit.log.note import parse_note  # noqa: E402
from rag_audit.models.drand import QUICKNET  # noqa: E402
from rag_audit.models.publication import Publication  # noqa: E402
from rag_audit.models.records import DrandBeacon  # noqa: E402
from rag_audit.models.windowfile import WindowFile  # noqa: E402
from rag_audit.report.build import report_of  # noqa: E402
from rag_audit.report.text import render  # noqa: E402
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER  # noqa: E402
from tests.window.simulator import DEFAULT_SCORES, QUESTIONS, Service  # noqa: E402

PROTOCOL = HERE.parent / "protocol.md"
BLOCK = re.compile(
    r"<!-- example: (?P<name>[a-z-]+) -->\n```(?P<language>[a-z]*)\n(?P<body>.*?)```\n", re.DOTALL
)
LATE = "law-3"
VERIFIED_AT = 1_800_086_400_000
"""A day after the example's window opens."""
RELEASE = "0.1.0"


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        return int(PROTOCOL.read_text(encoding="utf-8") != filled(PROTOCOL.read_text(encoding="utf-8")))
    if arguments == ["--verdict"]:
        write_verdict()
        PROTOCOL.write_text(filled(PROTOCOL.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
    PROTOCOL.write_text(filled(PROTOCOL.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def run(root: Path) -> None:
    """Seven queries by four accounts, one of them enrolled late; full mode; the verdict's text beside it."""
    service = Service(root, embedder=DEFAULT_EMBEDDER)
    window = service.open(tokens=(24, 512), coalition_proof=("groth16", 8))
    publication = Publication.load(window.directory / "public")
    exchange: dict[str, Any] = {"roster": [a.roster_entry.dump() for a in service.accounts.values()]}

    def send(request: Any) -> Any:
        exchange.setdefault("request", request.dump())
        answer = window.handle(request.dump()).dump()
        exchange.setdefault("answer", answer)
        return answer

    service.clock.advance(7)
    service.accounts["law-1"].ask(publication, QUESTIONS["law"][0], service.key.verifier, send)
    changed = {**exchange["request"], "query": "Another question under the same signature"}
    exchange["refusal"] = window.handle(changed).dump()
    service.ask(window, "medicine-1", QUESTIONS["medicine"][0], eager=True)
    enrol(service, window)
    for account, number in (("law-2", 1), (LATE, 2), ("law-1", 2), ("medicine-2", 1), ("medicine-1", 2)):
        service.ask(window, account, QUESTIONS[account.split("-")[0]][number])
    service.finish(window)
    window.answer_challenge(service.challenge(window))
    public = window.directory / "public"
    receipts = service.receipts(window, root / "receipts")
    window.shut()

    file = WindowFile.load(public)
    write("window.json", file.dump())
    write("header.json", publication.dump())
    for name, value in exchange.items():
        write(f"{name}.json", value)
    (HERE / "receipts").mkdir(exist_ok=True)
    for old in (HERE / "receipts").glob("*.json"):
        old.unlink()
    for path in sorted(receipts.glob("*.json")):
        (HERE / "receipts" / path.name).write_bytes(path.read_bytes())
    trust = service.trust_text(window.policy, query_embedding="proved", coalition="checked", **DEFAULT_SCORES)
    (HERE / "trust.toml").write_text(trust, encoding="utf-8")
    write_verdict()


def write_verdict() -> None:
    """The example's report with every check, as of a day after its window."""
    verdict = verify()
    if not verdict.passed:
        raise SystemExit(f"the example does not pass: {verdict.line}")
    (HERE / "verdict.txt").write_text(verdict_text(verdict), encoding="utf-8")


def verdict_text(verdict: Any) -> str:
    """What `verify --details` prints of the example, at a fixed date and by the release that it was made for."""
    words = ("rag-audit", "verify", "window.json", "--trust", "trust.toml", "--receipts", "receipts")
    return render(report_of(verdict, now=VERIFIED_AT, version=RELEASE, command=words), checks=True)


def enrol(service: Service, window: Window) -> None:
    """An account that comes late: its entry, the witnesses' cosignatures over it, and its own beacon."""
    account = Account.create(service.root / "accounts" / LATE, LATE, LATE.split("-")[0])
    service.accounts[LATE] = account
    service.clock.advance(500)
    entry = window.enrol(account.roster_entry, service.beacon())
    size = entry.seq + 1
    checkpoint = window.directory / "public" / f"checkpoint-{size}.txt"
    log_key = service.key.verifier
    tree = HashTree(leaf_hash(jcs(e)) for e in WindowFile.load(window.export()).entries)
    for witness in service.witnesses.values():
        last = witness.last(window.header.log)
        assert last is not None
        path = tree.consistency_path(last[0], size)
        window.admit([str(witness.cosign(checkpoint.read_text(), log_key=log_key, consistency=path))])
    service.clock.advance(1_000)
    keys = [w.vkey for w in service.witnesses.values()]
    inclusion = tree.inclusion_path(entry.seq, size)
    notes = [
        str(w.reveal(parse_note(checkpoint.read_text()), jcs(entry.dump()), log_key=log_key, witnesses=keys,
                     quorum=len(keys), index=entry.seq, path=inclusion))
        for w in service.witnesses.values()
    ]  # fmt: skip
    window.admit(notes)


def verify() -> Any:
    """The verdict on the committed example."""
    from rag_audit.report.verification import verify_window

    return verify_window(HERE / "window.json", trust=HERE / "trust.toml", receipts=[HERE / "receipts"])


def write(name: str, value: Any) -> None:
    (HERE / name).write_bytes(jcs(value) + b"\n")


def load(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def siblings() -> dict[str, Any]:
    """The example window as a directory would hold it: large parts beside window.json, named by their SHA-256."""
    value = load("window.json")
    large = ("entries", "proofs", "verification_keys", "embedder", "policy", "tenants", "roster")
    return {k: {"sibling": f"{sha256(jcs(v)).hex()}.json"} if k in large else v for k, v in value.items()}


def examples() -> dict[str, tuple[str, str]]:
    """Language and text of every block of docs/protocol.md, by name."""
    window = load("window.json")
    entries = window["entries"]

    def entry(kind: str, which: int = 0) -> Any:
        return [e for e in entries if e["type"] == kind][which]

    receipt = load("receipts/law-1-1.json")
    proof = window["proofs"]["2"]
    vk = window["verification_keys"][proof["retrieve"]["circuit"]]
    drand = DrandBeacon(source="drand", chain=QUICKNET.hash.hex(), round=35_735_546)
    values = {
        "header": entry("header"),
        "beacon": entry("beacon"),
        "enrolment": entry("enrolment"),
        "query": entry("query"),
        "trailer": entry("trailer"),
        "policy": window["policy"],
        "embedder": window["embedder"],
        "tenants": window["tenants"],
        "roster": load("roster.json"),
        "publication": load("header.json"),
        "nonce-line": entry("header")["beacon"]["witnesses"][0],
        "drand-source": drand.dump(),
        "request": load("request.json"),
        "answer": load("answer.json"),
        "refusal": load("refusal.json"),
        "receipt-body": receipt_body(receipt["receipt"]),
        "countersigned": receipt,
        "proof": proof,
        "verification-key": vk,
        "window": siblings(),
    }
    texts = {
        "checkpoint": window["header_checkpoint"],
        "beacon-note": entry("beacon")["notes"][0],
        "challenge": window["challenges"][0],
        "receipt": receipt["receipt"],
        "verdict": (HERE / "verdict.txt").read_text(encoding="utf-8"),
    }
    blocks = {k: ("json", json.dumps(v, indent=1, ensure_ascii=False) + "\n") for k, v in values.items()}
    blocks |= {k: ("text", v) for k, v in texts.items()}
    return {**blocks, "trust": ("toml", (HERE / "trust.toml").read_text(encoding="utf-8"))}


def receipt_body(text: str) -> Any:
    from rag_audit._internal.canonical import parse_json
    from rag_audit.log.tlog_proof import TlogProof

    return parse_json(TlogProof.parse(text).extra or b"", source="extra")


def filled(page: str) -> str:
    """The page with every marked block as `examples` has it."""
    blocks = examples()

    def block(match: re.Match[str]) -> str:
        language, body = blocks[match["name"]]
        return f"<!-- example: {match['name']} -->\n```{language}\n{body}```\n"

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
