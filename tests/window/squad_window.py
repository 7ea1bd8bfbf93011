"""A window over SQuAD with the embedder `minilm-int`: 20 questions, whose proofs are made and verified.

RAG_AUDIT_DATA=.. python -m tests.window.squad_window --model FOLDER [--passages N]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from rag_audit.commit.explore.collections import collection
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import ReportedVerdict
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
    noise = window.policy.noise
    assert noise is not None
    require = {"query_embedding": "proved", "allow_unsafe_setup": False, "max_epsilon": "1e9",
               "max_score_hi": noise.hi, "min_score_width": noise.hi - noise.lo}  # fmt: skip
    step("receipts")
    verdict = finished.verify(require=require)
    step("verify")
    return finished, verdict, seconds


def main() -> None:
    """Print the verdict's line and the measurements."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=Path, required=True, help="the folder of the published files")
    options.add_argument("--passages", type=int, default=2067)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as root:
        finished, verdict, seconds = squad_window(Path(root), args.model, args.passages)
        proofs = finished.value()["proofs"].values()
        sizes = {len(p["embed"]["proof"]) * 3 // 4 for p in proofs if "embed" in p}
    print(verdict.line)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"seconds": seconds, "bytes of a proof of A1": sorted(sizes), "peak MB": peak}))


if __name__ == "__main__":
    main()
