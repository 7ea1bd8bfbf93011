"""A plugin of pytest (`-p tests.scan.by_reference`): the second verifier decides wherever a test names no engine."""

from __future__ import annotations

from rag_audit.proofs.backends.scan.coalition import ScanCoalition
from rag_audit.proofs.backends.scan.kept import CoinColumn
from rag_audit.proofs.backends.scan.system import Scan, verify_batch
from rag_audit.proofs.backends.scan.together import Together
from rag_audit.report.verification import verify_window

for decides in (
    verify_window,
    verify_batch,
    Scan.refusals,
    CoinColumn.open,
    Together.verify,
    ScanCoalition.verify,
):
    assert decides.__kwdefaults__["engine"] == "native"
    decides.__kwdefaults__["engine"] = "reference"
