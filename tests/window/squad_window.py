"""A window over SQuAD with the embedder `minilm-int`: 20 questions, whose proofs are made and verified.

RAG_AUDIT_DATA=.. python -m tests.window.squad_window --model FOLDER [--passages N] [--also browser] [--also reference]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rag_audit.commit.explore.collections import collection
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.browser.page import make_page
from rag_audit.report.verification import ReportedVerdict
from tests.browser.chromium import chromium
from tests.frontend.frontend import Frontend
from tests.window.simulator import TEXTS, Finished, Service

QUESTIONS = 5
"""Questions of each of the four accounts."""
PLACES = 32


def squad_window(
    root: Path, model: Path, passages: int
) -> tuple[Finished, ReportedVerdict, dict[str, float]]:
    """The window, its verdict, and the seconds of each step on this machine.

    :param passages: the number of SQuAD's passages, of which each tenant gets half
    """
    texts, seconds, started = collection("squad"), dict[str, float](), time.monotonic()

    def step(name: str) -> None:
        nonlocal started
        seconds[name], started = round(time.monotonic() - started, 1), time.monotonic()

    service = Service(root, embedder="minilm-int", model=model)
    half = passages // 2
    documents = {tenant: texts.passages[i * half : (i + 1) * half] for i, tenant in enumerate(TEXTS)}
    capacity = -(-half // 8) * 8
    window = service.open(
        documents=documents, capacities=dict.fromkeys(TEXTS, capacity), tokens=(PLACES, 256), system="scan",
        n=QUESTIONS, top_k=5,
    )  # fmt: skip
    step("open")
    asked = iter(texts.sample(4 * QUESTIONS).questions)
    for account in service.accounts:
        for _ in range(QUESTIONS):
            service.ask(window, account, next(asked))
    step("answer")
    service.finish(window)
    window.prove()
    step("prove")
    receipts = service.receipts(window, root / "receipts", disclose=False)
    window.shut()
    finished = Finished(
        service, window.directory, WindowFile.load(window.directory / "public"), window.policy, receipts
    )
    step("receipts")
    verdict = finished.verify(require=require(finished))
    step("verify")
    return finished, verdict, seconds


def require(finished: Finished) -> dict[str, Any]:
    """The requirements of the window's verifier."""
    noise = finished.policy.noise
    assert noise is not None
    return {"query_embedding": "proved", "allow_unsafe_setup": False, "max_epsilon": "1e9",
            "max_score_hi": noise.hi, "min_score_width": noise.hi - noise.lo}  # fmt: skip


def by_reference(finished: Finished, root: Path) -> str:
    """The verdict's line by the second verifier, which takes half a minute for each proof of A1."""
    return finished.verify(require=require(finished), engine="reference").line


def by_browser(finished: Finished, root: Path) -> str:
    """The verdict's line in the page, in a headless Chromium that gets the provider's public folder, trust.toml and the
    receipts."""
    page, trust = root / "verify.html", root / "trust.toml"
    page.write_bytes(make_page())
    trust.write_text(finished.service.trust_text(finished.policy, **require(finished)))
    with chromium(root / "profile") as browser:
        frontend = Frontend(browser, page)
        frontend.drop_folder(finished.window / "public", "provider")
        frontend.drop([], [trust, *sorted(finished.receipts.glob("*.json"))])
        frontend.verify()
        return str(frontend.value("document.getElementById('verdict').textContent"))


ALSO = {"browser": by_browser, "reference": by_reference}


def main() -> int:
    """Print the verdicts' lines and the measurements; 1 if the verifiers disagree."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=Path, required=True, help="the folder of the published files")
    options.add_argument("--passages", type=int, default=2067)
    options.add_argument(
        "--also", choices=ALSO, action="append", default=[], help="a further verifier; repeatable"
    )
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as root:
        finished, verdict, seconds = squad_window(Path(root), args.model, args.passages)
        proofs = finished.value()["proofs"].values()
        sizes = {len(p["embed"]["proof"]) * 3 // 4 for p in proofs if "embed" in p}
        print(verdict.line, flush=True)
        lines = {verdict.line}
        for name in args.also:
            started = time.monotonic()
            lines.add(line := ALSO[name](finished, Path(root)))
            seconds[f"verify ({name})"] = round(time.monotonic() - started, 1)
            print(f"{name}: {line}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"seconds": seconds, "bytes of a proof of A1": sorted(sizes), "peak MB": peak}))
    return len(lines) > 1


if __name__ == "__main__":
    sys.exit(main())
