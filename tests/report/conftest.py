"""Verdicts of every outcome on the worked example, each from the files that lead to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.build import report_of
from rag_audit.report.model import Report
from rag_audit.report.verification import ReportedVerdict, verify_window

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"
NOW = 1_800_010_000_000
"""After the example's end, in 2027."""
TIGHT: dict[str, Any] = {"max_epsilon": "1", "min_k_max": 9, "max_theta": None, "min_receipts": 5}
OUTCOMES = ("PASS", "PASS-SAMPLED", "PASS-INTEGRITY", "FAIL", "UNDECIDED", "UNPROVEN", "UNMET")


def verify(
    change: Callable[[Any], None] | None = None, *, window: Any = None, **require: Any
) -> ReportedVerdict:
    """The example's verdict, its window or requirements changed."""
    trust = Trust.load(EXAMPLES / "trust.toml")
    if require:
        trust = trust.model_copy(update={"require": trust.require.model_copy(update=require)})
    value = json.loads((EXAMPLES / "window.json").read_text())
    if change is not None:
        change(value)
    file = WindowFile.parse(value, field="window.json")
    return verify_window(file, trust=trust, receipts=[EXAMPLES / "receipts"])


def _another_root(value: Any) -> None:
    value["entries"][2]["hans"] = "0" * 64


def _no_proof(value: Any) -> None:
    del value["proofs"][sorted(value["proofs"])[0]]


def _no_cosignature(value: Any) -> None:
    """Leave the provider's signature alone on the final checkpoint: no witness vouches for the ledger's end."""
    text, _, signatures = value["final_checkpoint"].partition("\n\n")
    value["final_checkpoint"] = f"{text}\n\n{signatures.splitlines()[0]}\n"


def _of_integrity(verdict: ReportedVerdict) -> ReportedVerdict:
    """As if the tenants had no mechanism, which takes a window of its own."""
    tenants = {
        "law": {
            "mechanism": "none",
            "eps": "inf",
            "exclusion_factor": None,
            "exclusion_factor_all_accounts": None,
        }
    }
    figures: Any = {**verdict.figures, "eps_audit": "inf", "eps_audit_by": "no-bound", "tenants": tenants}
    bare = [
        t.model_copy(update={"mechanism": "none", "eps": "inf", "gains": []}) for t in verdict.facts.tenants
    ]
    return replace(verdict, figures=figures, described=replace(verdict.facts, tenants=bare))


@pytest.fixture(scope="session")
def verdicts() -> dict[str, ReportedVerdict]:
    passed = verify()
    return {
        "PASS": passed,
        "PASS-SAMPLED": verify(mode="sampled", beta="0.5", eta="0.5", challenge="published"),
        "PASS-INTEGRITY": _of_integrity(passed),
        "FAIL": verify(_another_root),
        "UNDECIDED": verify(_no_proof),
        "UNPROVEN": verify(_no_cosignature),
        "UNMET": verify(**TIGHT),
    }


@pytest.fixture(scope="session")
def reports(verdicts: dict[str, ReportedVerdict]) -> dict[str, Report]:
    return {name: report_of(verdict, now=NOW, version="0") for name, verdict in verdicts.items()}


def sampled_reports() -> dict[str, Report]:
    """The reports that docs/report.md shows, as of a day after the example's window."""
    at = 1_800_086_400_000
    words = ("rag-audit", "verify", "window.json", "--trust", "trust.toml", "--receipts", "receipts")
    passed = verify_window(
        EXAMPLES / "window.json", trust=EXAMPLES / "trust.toml", receipts=[EXAMPLES / "receipts"]
    )
    result = {"passed": passed, "failed": verify(_another_root), "unmet": verify(**TIGHT)}
    return {name: report_of(v, now=at, version="0.1.0", command=words) for name, v in result.items()}


@pytest.fixture(scope="session")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of the second window of a service with pooled listing, with the first window supplied."""
    from tests.window.test_document_tables import FIRST, SECOND
    from tests.window.test_pooled_listing import POOLED, PooledChain

    chain = PooledChain(tmp_path_factory.mktemp("pooled-report"))
    for texts in (FIRST, SECOND):
        chain.run(texts, mechanisms={"law": POOLED, "medicine": POOLED})
    return report_of(chain.verify(2), now=NOW, version="0")
