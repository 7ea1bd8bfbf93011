"""A plugin of pytest (`-p tests.scan.by_reference`): the second verifier decides wherever a test names no engine."""

from __future__ import annotations

from bench.proofs import failures, verify_batch
from rag_audit.proofs.backends.scan.coalition import ScanCoalition
from rag_audit.proofs.backends.scan.sample import BernoulliColumn
from rag_audit.proofs.records import verify_records
from rag_audit.report.verification import verify_window

for decides in (
    verify_window,
    failures,
    verify_batch,
    BernoulliColumn.open,
    verify_records,
    ScanCoalition.verify,
):
    assert decides.__kwdefaults__["engine"] == "native"
    decides.__kwdefaults__["engine"] = "reference"
