"""Make the window that `rag-audit verify --example` verifies, below rag_audit/cli/example, with real keys and proofs.

    python docs/examples/packaged.py

The window has one tenant, two accounts and three questions. One scan proof covers all records, and the coalition
estimate has a proof. The proofs need no set-up, and the mechanism is noise with a finite epsilon. The script sets the
clock, so the window always opens at the same second; keys, salts and noise are fresh. The script discards all private
keys.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "rag_audit" / "cli" / "example"
sys.path.insert(0, str(ROOT))

from rag_audit._internal.canonical import jcs  # noqa: E402
from rag_audit.account.account import Account  # noqa: E402
from rag_audit.models.trust import Require  # noqa: E402
from rag_audit.models.windowfile import WindowFile  # noqa: E402
from rag_audit.report.verification import verify_window  # noqa: E402
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER  # noqa: E402
from tests.window.simulator import DEFAULT_SCORES, STRICT, TEXTS, Service  # noqa: E402

QUESTIONS = (
    ("alice", "Contract law: what is it?"),
    ("bob", "Bail money: how do I get out of jail?"),
    ("alice", "Copyright law: who owns a text?"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
    verdict = verify_window(
        EXAMPLE / "window.json", trust=EXAMPLE / "trust.toml", receipts=[EXAMPLE / "receipts"]
    )
    print(verdict.line)


def run(root: Path) -> None:
    """Runs the window with all its parties below `root`, and writes its public files, trust.toml and receipts."""
    service = Service(root, embedder=DEFAULT_EMBEDDER)
    service.accounts = {
        name: Account.create(root / "accounts" / name, name, "law") for name in ("alice", "bob")
    }
    window = service.open(
        window="example",
        capacities={"law": 8},
        documents={"law": TEXTS["law"]},
        system="scan",
        coalition_proof=("scan", 4),
        tokens=(24, 512),
        n=2,
        gains=(1, 8),
        eps_acc="8",
        accounts_max=2,
    )
    for account, question in QUESTIONS:
        service.ask(window, account, question)
    service.finish(window)
    window.prove(batch=len(QUESTIONS))

    (EXAMPLE / "receipts").mkdir(parents=True, exist_ok=True)
    for old in (EXAMPLE / "receipts").iterdir():
        old.unlink()
    service.receipts(window, EXAMPLE / "receipts", disclose=False)
    file = WindowFile.load(window.directory / "public")
    (EXAMPLE / "window.json").write_bytes(jcs(file.dump()) + b"\n")
    limits = {
        "max_epsilon": "10",
        "query_embedding": "proved",
        "coalition": "checked",
        "allow_unsafe_setup": False,
    }
    trust = service.trusting([], Require(**{**STRICT, **DEFAULT_SCORES, **limits}), ("alice", "bob"))
    (EXAMPLE / "trust.toml").write_text(trust, encoding="utf-8")
    window.shut()


if __name__ == "__main__":
    main()
